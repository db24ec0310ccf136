"""Patches of an RPM spec: its Patch lines say which, its %prep how.

rpm is not run, so only what a line says by itself is taken: macros of one line are put in, and what
stands between %if and %endif is left out with a note, as some builds do without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.extensions.builders.listed_pieces import (
    COMPRESSED,
    LineList,
    ListedPatch,
    ListReading,
    checked,
    cut,
)
from patchkit.manifest.values import LocalSeries
from patchkit.manifest.yaml_nodes import decode
from patchkit.model.names import is_listed_name
from patchkit.model.series_file import LINE, Series, SeriesLine
from patchkit.model.variables import expanded

_TAG = re.compile(r"(?P<tag>[A-Za-z]+)(?P<number>\d{0,6})\s*:\s*(?P<value>\S+)")
_DEFINED = re.compile(r"\s*%(?:global|define)\s+(?P<name>\w+)\s+(?P<value>.*\S)\s*")
_MACRO = re.compile(r"%\{(?P<maybe>\??)(?P<braced>\w+)\}|%(?P<bare>[A-Za-z_]\w+)")
_SECTION = re.compile(
    r"%(prep|build|install|check|files|changelog|description|package|patchlist|sourcelist|conf|clean"
    r"|pre|post|preun|postun|pretrans|posttrans|triggerin|generate_buildrequires)\b.*"
)
_ALL = re.compile(r"%(?:autosetup|autopatch)\b(?P<options>.*)|git\s+(?:am|apply)\b.*%\{patches\}.*")
_BY_HAND = re.compile(r".*%\{(?:PATCH|P:\s*)(\d{1,6})\}.*")
_OPTION = re.compile(r"\s-[A-OQ-Za-z]\s*\S*|-P")
_NAMED = re.compile(r"\d{1,6}(?=\s|$)")
_REVERSED = re.compile(r"\s(-R|--reverse|-d|--directory)\b")
_LEVEL = re.compile(r"\s(?:-p|--strip=?)\s*(\d{1,2})\b")
_NUMBERS = r"(?i)\A([ \t]*(?:patch|%patch(?:[ \t]+(?:-P[ \t]*)?)?))(\d+)"
#: A patch that has a number, and what applies one of that number.
_NUMBER = re.compile(rf"{_NUMBERS}[ \t]*:")
_ROW = re.compile(rf"{_NUMBERS}\b(?![ \t]*:)")


class _Declared(Struct, frozen=True):
    """A patch that a spec declares: its place and name, and whether only some builds have it."""

    start: int
    end: int
    value: str
    at: int  # where the value stands
    sometimes: bool


class _Spec(ListReading, kw_only=True):
    """A spec so far: what it declares by number, what it applies with how many folders off."""

    declared: dict[int, _Declared] = field(default_factory=dict)
    applied: list[tuple[int, int]] = field(default_factory=list)  # (number, folders off), in order
    by_hand: bool = False  # by lines for single patches
    section: str = ""  # "" before the first
    depth: int = 0  # how many %if are open

    def expand(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name = found["braced"] or found["bare"]
            return self.values.get(name, "" if found["maybe"] else found[0])

        return expanded(text, _MACRO, value)

    def read(self) -> None:
        start = 0
        for line in LINE.findall(self.text):
            self.line(line, start)
            start += len(line)

    def line(self, line: str, start: int) -> None:
        word = line.strip()
        if word.startswith(("%if", "%endif")):
            self.depth = max(0, self.depth + (1 if word.startswith("%if") else -1))
        elif section := _SECTION.fullmatch(word):
            self.section = section[1]
        elif defined := _DEFINED.fullmatch(line):
            self.values[defined["name"]] = defined["value"]
        elif not word or word.startswith("#"):
            return
        elif self.section == "patchlist":
            self.declare("", word, start, line)
        elif self.section == "prep":
            self.prepare(word, start)
        elif self.section in ("", "package") and (tag := _TAG.match(line)):
            if tag["tag"].lower() == "patch":
                self.declare(tag["number"], tag["value"], start, line)
            self.values.setdefault(tag["tag"].lower(), tag["value"])

    def declare(self, number: str, value: str, start: int, line: str) -> None:
        at = start + line.rindex(value)
        which = int(number) if number else max(self.declared, default=-1) + 1
        self.declared[which] = _Declared(start, start + len(line), value, at, self.depth > 0)

    def prepare(self, line: str, start: int) -> None:
        if every := _ALL.fullmatch(line):
            options = every["options"] or " -p1"
            if "autosetup" in line and re.search(r"\s-N\b", options):
                return
            ends = (re.search(rf"\s-{end}\s*(\d{{1,6}})\b", options) for end in "mM")
            least, most = (int(end[1]) if end else None for end in ends)
            self.by_hand = self.by_hand or least is not None or most is not None
            chosen = [
                number
                for number in sorted(self.declared)
                if number >= (least or 0) and (most is None or number <= most)
            ]
            self.apply(chosen, options, start)
            return
        hand = _BY_HAND.fullmatch(line)
        if hand or line.startswith("%patch"):
            self.by_hand = True
            numbers = [hand[1]] if hand else _NAMED.findall(_OPTION.sub(" ", line))
            self.apply([*map(int, numbers)] or [0], line, start)

    def apply(self, numbers: list[int], options: str, start: int) -> None:
        reverse, level = _REVERSED.search(options), _LEVEL.search(options)
        for number in numbers:
            if number not in self.declared:
                hint = "is the patch named in a file that this one includes?"
                raise BadInputError(
                    Problem(f"no Patch{number} is declared", self.place(start), hint)
                )
            declared = self.declared[number]
            why = "is there on some builds only" if declared.sometimes else ""
            why = "is applied on some builds only" if self.depth else why
            why = f"is applied with {reverse[1]}" if reverse else why
            if why:
                notes = self.unusable if reverse else self.left_out
                self.note(notes, f"{declared.value} {why}", start)
            else:
                self.applied.append((number, int(level[1]) if level else 0))

    def patches(self) -> Iterator[ListedPatch]:
        for number, strip in self.applied:
            each = self.declared[number]
            name = self.expand(each.value).rpartition("/")[2]
            why = "is compressed" if name.endswith(COMPRESSED) else ""
            why = "is not a known name" if "%" in name or not is_listed_name(name) else why
            if why:
                self.note(self.unusable, f"{each.value} {why}", each.start)
            else:
                at = each.at + len(each.value) - len(name)
                yield ListedPatch(each.start, each.end, name, at, strip)


class SpecList(LineList, frozen=True):
    """The Patch lines of a spec.

    Invariant: the numbers of the lines, from first to last, are those that %prep applies in turn.
    """

    by_hand: bool = False  # %prep names each

    def is_plain(self, applied: Sequence[int]) -> bool:
        """Whether it says by numbers alone what %prep applies."""
        declared = [_number(line) for line in self.lines if line.name]
        rows = [_number(line) for line in self.lines if not line.name and _ROW.match(line.text)]
        numbers = [number for number in declared if number is not None]
        rising = numbers == sorted(numbers) and len(numbers) in (0, len(declared))
        listed = [*applied] == declared if self.by_hand else rising
        return listed and self.folders is not None and (rows == declared or not self.by_hand)

    def _new(self, after: str | None, name: str) -> SeriesLine:
        lines = [line for line in self.lines if line.name]
        if not lines:
            what = "it has no patch that a new one could be written like"
            raise BadInputError(Problem(what, self.where, "write the first one by hand"))
        like = lines[-1] if after is None else self.lines[self._index(after)]
        tag = _TAG.match(like.text)
        taken = [int(found[2]) for line in self.lines if (found := _NUMBER.match(line.text))]
        begin = _with_number(
            like.text[: tag.start("value")] if tag else "", max(taken, default=0) + 1
        )
        return SeriesLine(f"{begin}{name}{self._line_end}", name, self.folders, len(begin))

    def _made(self, lines: Sequence[SeriesLine]) -> Series:
        declared = [n for line in lines if line.name and (n := _number(line)) is not None]
        rows = [line for line in lines if not line.name and _ROW.match(line.text)]
        applied = [_number(line) for line in rows] if self.by_hand else sorted(declared)
        left = [number for number in applied if number in declared]
        new = [number for number in declared if number not in left]
        dealt, made = iter([*left, *new]), list[SeriesLine]()
        for line in lines:
            number = _number(line)
            if line.name and number is not None:
                text = _with_number(line.text, next(dealt))
                made.append(replace(line, text=text, at=line.at + len(text) - len(line.text)))
            elif not (self.by_hand and line in rows and number not in left):
                made.append(line)
            if self.by_hand and rows and line is rows[-1]:
                made += (SeriesLine(_with_number(line.text, number)) for number in new)
        return replace(self, lines=tuple(made))


def _number(line: SeriesLine) -> int | None:
    found = (_NUMBER if line.name else _ROW).match(line.text)
    return int(found[2]) if found else None


def _with_number(text: str, number: int) -> str:
    return re.sub(_NUMBERS, rf"\g<1>{number}", text, count=1)


def read_spec(data: bytes, entry: LocalSeries) -> Series:
    """The patches of a spec, in the order in which %prep applies them.

    BadInputError where it declares patches and applies none that can be seen.
    """
    spec = _Spec(where=entry.path, text=decode(data, Path(entry.path)))
    spec.read()
    if spec.declared and not (spec.applied or spec.left_out or spec.unusable):
        what = "declares patches, and %prep applies none that can be seen"
        hint = "%autosetup -p1, %autopatch, %patch -P N or git am %{patches}"
        raise BadInputError(Problem(what, f"{entry.path}:1", hint))
    found, levels = [*spec.patches()], {strip for _, strip in spec.applied}
    folders = levels.pop() if len(levels) == 1 else None
    empty = SpecList(where=f"{entry.path}:1", folders=folders, by_hand=spec.by_hand)
    listed = cut(spec.text, found, found[-1].end if found else 0, empty)
    if not listed.is_plain([number for number, _ in spec.applied]):
        spec.note(spec.unusable, "the order, which is not that of the lines, or is said twice", 0)
    return checked(data, spec.noted(listed), entry)


def spec_lines(names: list[str]) -> str:
    """Lines for a spec: the declarations, and as a comment how to apply them."""
    rows = "".join(f"Patch{number}: {name}\n" for number, name in enumerate(names, 1))
    return f"# in %prep: %autosetup -p1\n{rows}"
