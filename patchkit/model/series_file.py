"""A series file: which patches, in which order. quilt's format, kept to the byte.

One patch name a line, optionally followed by `-pN` and by a comment after ` #`; lines that begin
with `#` and blank lines are the user's. Guards before a name (`+slime`, `-npu`, a lone `-` for off)
say for which targets it is: lines for others are the user's, too. Every edit returns a new series
in which all that is not concerned keeps its bytes and its place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.model.names import broken_name_rule, is_listed_name

LINE = re.compile(r"[^\n]*\n|[^\n]+")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*", re.DOTALL)
#: With more wrong lines than this and none that is right, a file is no series.
_MOST_SLIPS = 2
#: For hints: the formats of lists that are read.
KNOWN_LISTS = "known are quilt's series, and what `dialect` names"
#: What says for which targets the patch of a line is: `+slime -!npu `.
_GUARDS = re.compile(r"[ \t]*(?:[-+][^\s#]*[ \t]+)+(?=[^\s#])")
_STRIP = re.compile(r"-p[ \t]*([0-9]{1,2})")


class SeriesEntry(Struct, frozen=True):
    """One patch of a series; `strip` is None where the component's applies, `line` is 1-based."""

    name: str  # of the file, from the series' folder
    strip: int | None
    line: int


class SeriesLine(Struct, frozen=True):
    """One line with its line end, decoded with surrogateescape; `name` is None for a comment."""

    text: str  # as it stands in the file
    name: str | None = None
    strip: int | None = None  # of `-pN`; None where it says none
    at: int = 0  # where the name stands in the text
    ending: str = ""  # of the name, where it is not written

    def called(self, name: str, options: str = "") -> SeriesLine:
        """The line with another name, and options directly behind it."""
        rest = self.text[self.at + len(self.name or "") - len(self.ending) :]
        written = name.removesuffix(self.ending) + options
        return replace(self, text=f"{self.text[: self.at]}{written}{rest}", name=name)


class Series(Struct, frozen=True):
    """The lines of a series file; edit with the methods, write `data`.

    Other formats (`extensions/builders/`) are lists of pieces in the place of lines.
    """

    lines: tuple[SeriesLine, ...] = ()
    left_out: tuple[Problem, ...] = ()  # what only some builds apply
    unusable: tuple[Problem, ...] = ()  # why it cannot be used where it is

    @property
    def strip(self) -> int | None:
        """How many folders go from the paths of all patches; None where that is not said here."""
        return None

    @property
    def others(self) -> Mapping[str, str]:
        """Patches that the file lists for another version as well: name -> where."""
        return {}

    def objection(self, name: str, data: bytes) -> Problem | None:
        """That the file says something of a patch's bytes that is not true of these."""
        return None

    def with_bytes(self, name: str, data: bytes) -> Series:
        """With what the file says of a patch's bytes."""
        return self

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return "".join(line.text for line in self.lines).encode("utf-8", "surrogateescape")

    @property
    def entries(self) -> tuple[SeriesEntry, ...]:
        """The patches in order."""
        found, number = list[SeriesEntry](), 1
        for line in self.lines:
            if line.name is not None:
                above = line.text.count("\n", 0, line.at)
                found.append(SeriesEntry(line.name, line.strip, number + above))
            number += line.text.count("\n")
        return tuple(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The patches' names in order."""
        return tuple(line.name for line in self.lines if line.name is not None)

    def append(self, name: str) -> Series:
        """With `name` as the last patch, below everything that is there."""
        return self.insert_after(next(reversed(self.names), None), name)

    def insert_after(self, after: str | None, name: str) -> Series:
        """With `name` directly after the patch `after`; None: before the first patch.

        Behind the last one it goes below what stands there, such as patches commented out.
        """
        self._require_new(name)
        lines = self._closed()
        place = self._first() if after is None else self._index(after) + 1
        if self.names[-1:] == (after,):
            place = self._end(place)
        return self._made((*lines[:place], self._new(after, name), *lines[place:]))

    def _new(self, after: str | None, name: str) -> SeriesLine:
        """What lists a new patch, set in and guarded as the one before it."""
        like = (
            self.lines[self._first() if after is None else self._index(after)]
            if self.names
            else None
        )
        begin = like.text[: like.at] if like is not None else ""
        return SeriesLine(f"{begin}{name}{self._line_end}", name, None, len(begin))

    def _end(self, place: int) -> int:
        """Where a patch goes that is to be the last: the last one stands before `place`."""
        return len(self.lines)

    def _made(self, lines: Sequence[SeriesLine]) -> Series:
        """With these lines in the place of all."""
        return replace(self, lines=tuple(lines))

    def with_strip(self, name: str, strip: int) -> Series:
        """With `-pN` behind the patch `name`, which has no options yet."""
        place = self._index(name)
        line = self.lines[place].called(name, f" -p{strip}")
        return self._with(place, replace(line, strip=strip))

    def remove(self, name: str) -> Series:
        """Without the patch `name`; comments stay, they are the user's."""
        return self._with(self._index(name))

    def rename(self, old: str, new: str) -> Series:
        """With the patch `old` called `new`, in place; options and comment stay."""
        place = self._index(old)
        if old.casefold() != new.casefold():
            self._require_new(new)
        _require_name(new)
        return self._with(place, self.lines[place].called(new))

    def arrange(self, names: Sequence[str]) -> Series:
        """With exactly the patches `names` in that order; a patch that moves keeps its options.

        Comments directly above a patch move with it, except at the top of the file.
        """
        if len({name.casefold() for name in names}) != len(names):
            raise ValueError("a series names no patch twice")
        series: Series = self
        for name in self.names:
            if name not in names:
                series = series.remove(name)
        for before, name in zip((None, *names), names, strict=False):
            if name not in series.names:
                series = series.insert_after(before, name)
        return series._reorder(names)

    def _reorder(self, names: Sequence[str]) -> Series:
        if self.names == tuple(names):
            return self
        lines = self._closed()
        blocks = dict(_blocks(lines))
        order = iter(names)
        moved: list[SeriesLine] = []
        taken = {id(line) for block in blocks.values() for line in block}
        for line in lines:
            if line.name is not None:
                moved += blocks[next(order)]
            elif id(line) not in taken:
                moved.append(line)
        return self._made(moved)

    def _with(self, place: int, *lines: SeriesLine) -> Series:
        """With these lines in the place of one."""
        return self._made((*self.lines[:place], *lines, *self.lines[place + 1 :]))

    def _closed(self) -> tuple[SeriesLine, ...]:
        """The lines, the last one with a line end."""
        if not self.lines or self.lines[-1].text.endswith("\n"):
            return self.lines
        last = replace(self.lines[-1], text=self.lines[-1].text + self._line_end)
        return (*self.lines[:-1], last)

    @property
    def _line_end(self) -> str:
        return "\r\n" if self.lines and self.lines[0].text.endswith("\r\n") else "\n"

    def _first(self) -> int:
        places = (n for n, line in enumerate(self.lines) if line.name is not None)
        return next(places, len(self.lines))

    def _index(self, name: str) -> int:
        for place, line in enumerate(self.lines):
            if line.name == name:
                return place
        raise KeyError(name)

    def _require_new(self, name: str) -> None:
        _require_name(name)
        if name.casefold() in {each.casefold() for each in self.names}:
            raise BadInputError(f"{name} is in the series already")


def series_of(names: Iterable[str]) -> Series:
    """A series of these patches, one a line."""
    return Series(tuple(SeriesLine(f"{name}\n", name) for name in names))


def parse_series(data: bytes, *, name: str, target: str = "") -> Series:
    """A series from a file's bytes; `name` is the file, for messages.

    `target` are the symbols, set apart by blanks, by which lines with guards are chosen.

    Raises BadInputError with every line that cannot be taken.
    """
    text = data.decode("utf-8", "surrogateescape")
    lines: list[SeriesLine] = []
    problems: list[Problem] = []
    symbols = target.split()
    for number, raw in enumerate(LINE.findall(text), 1):
        line, problem = _parse_line(raw, symbols)
        lines.append(line)
        if problem is not None:
            problems.append(replace(problem, where=f"{name}:{number}"))
    problems += name_problems(Series(tuple(lines)), name)
    if len(problems) > _MOST_SLIPS and not any(line.name for line in lines):
        raise BadInputError(Problem("lists no patches", problems[0].where, KNOWN_LISTS))
    if problems:
        problems.sort(key=lambda each: int(each.where.rsplit(":", 1)[1]))
        raise BadInputError(*first_problems(problems))
    return Series(tuple(lines))


def _parse_line(raw: str, symbols: Collection[str]) -> tuple[SeriesLine, Problem | None]:
    found = _GUARDS.match(raw)
    at = found.end() if found else len(raw) - len(raw.lstrip())
    guards = found[0].split() if found else []
    words = _COMMENT.sub("", raw)[at:].split(maxsplit=1)
    if not words:
        return SeriesLine(raw), None
    if not symbols and (named := [each for each in guards if each.strip("+-!")]):
        hint = f"beside series: target: {named[0].strip('+-!')}"
        return SeriesLine(raw), Problem(f"{words[0]!a} is for {named[0]} only", hint=hint)
    if not _is_chosen(guards, symbols):
        return SeriesLine(raw), None
    name, options = words[0], "".join(words[1:]).strip()
    if not is_listed_name(name):
        return SeriesLine(raw), _name_problem(name, "rename the file, and this line: ")
    strip = _STRIP.fullmatch(options)
    if options and strip is None:
        return SeriesLine(raw, name, at=at), _options_problem(name, options)
    return SeriesLine(raw, name, int(strip[1]) if strip else None, at), None


def _is_chosen(guards: Sequence[str], symbols: Collection[str]) -> bool:
    """Whether the last guard that holds includes a line; the first says what is without one.

    As guards(1) has it: `+x` includes, `-x` excludes where x is a symbol, `+!x` where it is none,
    and a sign alone always holds.
    """
    chosen = not guards or guards[0].startswith("-")
    for guard in guards:
        symbol = guard[1:].removeprefix("!")
        if not symbol or (symbol in symbols) != guard[1:].startswith("!"):
            chosen = guard.startswith("+")
    return chosen


def name_problems(series: Series, name: str) -> list[Problem]:
    """What is wrong with the names that a file lists, each at its line of the file `name`."""
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for entry in series.entries:
        where = f"{name}:{entry.line}"
        if not is_listed_name(entry.name):
            problems.append(replace(_name_problem(entry.name), where=where))
        before = first.setdefault(entry.name.casefold(), entry.line)
        if before != entry.line:
            what = f"{_shown(entry.name)} is in line {before} already"
            hint = "each patch once; names must differ in more than case"
            problems.append(Problem(what, where, hint))
    return problems


def _name_problem(name: str, first: str = "") -> Problem:
    if name.startswith("\ufeff"):
        return Problem("a byte order mark", hint="save the file as UTF-8 without a BOM")
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        hint = "patches are in the folder of their series file, or below it"
        return Problem(f"{_shown(name)} leaves the folder of the series", hint=hint)
    return Problem(
        f"{_shown(name)} is not a valid patch name",
        hint=first + broken_name_rule(name),
    )


def _options_problem(name: str, options: str) -> Problem:
    if options.split(maxsplit=1)[0] in ("-R", "--reverse"):
        return Problem(
            f"{name} is to be applied in reverse", hint="store the reversed patch (interdiff, git)"
        )
    return Problem(
        f"{name} has an option that is not understood: {_shown(options)}",
        hint="only -pN, the number of folders to strip",
    )


def _require_name(name: str) -> None:
    if not is_listed_name(name):
        raise BadInputError(_name_problem(name))


def _blocks(lines: Sequence[SeriesLine]) -> Iterator[tuple[str, list[SeriesLine]]]:
    """Each patch with the comment lines directly above it, except those that open the file."""
    comments: list[SeriesLine] = []
    at_top = True
    for line in lines:
        if line.name is not None:
            yield line.name, [*comments, line]
            comments = []
        elif line.text.lstrip().startswith("#"):
            if not at_top:
                comments.append(line)
            continue
        else:
            comments = []
        at_top = False


def _shown(text: str) -> str:
    """Text from a file, safe to print on one line."""
    return ascii(text[:80])[1:-1]
