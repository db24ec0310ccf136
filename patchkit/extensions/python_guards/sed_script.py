"""The part of sed that is used to patch: what `sed -i` makes of a file, read here, not run.

Known are s, d, a and i with addresses: numbers, `$`, patterns and ranges of these. Whatever else a
script says is refused, not guessed. Patterns are POSIX's, basic or extended, with GNU's escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import regex
from msgspec import Struct

from patchkit.extensions.python_guards.text_edits import (
    EditedText,
    SourceEdit,
    UnreadableEditError,
    compile_pattern,
    found_in,
    line_at,
)

#: A line's number, -1 for the last, or a pattern.
_Address: TypeAlias = "int | regex.Pattern[str]"


class SedCommand(Struct, frozen=True):
    """A command: `addresses` say for which lines, all without any.

    Of `s`, `pattern` is what it looks for and `pieces` what it puts there: texts, and numbers of
    groups. Of a and i, the only piece is the text.
    """

    written: str  # as it stands in the script
    name: str
    addresses: tuple[_Address, ...]
    pieces: tuple[str | int, ...] = ()
    pattern: regex.Pattern[str] | None = None
    every: bool = False  # all of a line, not the first alone

    @property
    def edit(self) -> SourceEdit:
        """What it looks for, and what it is held to."""
        numbers = tuple(each for each in self.addresses if isinstance(each, int) and each > 0)
        patterns = [
            each for each in (self.pattern, *self.addresses) if isinstance(each, regex.Pattern)
        ]
        blind = bool(numbers) and all(each.search("") for each in patterns)
        is_plain = all(isinstance(each, str) for each in self.pieces)
        new = "".join(map(str, self.pieces)) if is_plain else ""
        return SourceEdit(self.written, new, None, numbers, blind)


class SedScript(Struct, frozen=True):
    """A whole script; see EditScript. With `whole`, as by `-z`, a file is one line.

    `exact`: no part of it is read in another way by some seds.
    """

    commands: tuple[SedCommand, ...]
    options: tuple[str, ...]  # those that sed is given, without -i
    source: str  # the script as sed is given it
    whole: bool
    exact: bool

    @property
    def edits(self) -> tuple[SourceEdit, ...]:
        """See EditScript."""
        return tuple(each.edit for each in self.commands)

    def run(self, text: str) -> EditedText:
        """See EditScript."""
        end = "\0" if self.whole else "\n"
        lines = text.split(end)
        closed = lines[-1] == ""
        lines = lines[:-1] if closed else lines
        changed: list[list[int]] = [[] for _ in self.commands]
        ranges: dict[int, _Address] = {}  # command -> where the range that is underway ends
        out: list[str] = []
        for number, line in enumerate(lines, 1):
            place = number, len(lines)
            behind: list[str] = []
            kept: str | None = line
            for index, command in enumerate(self.commands):
                if kept is None or not _is_chosen(command, index, ranges, kept, place):
                    continue
                kept, found = _done(command, kept, out, behind)
                changed[index] += found if self.whole else [number for _ in found[:1]]
            out += [*([] if kept is None else [kept]), *behind]
            closed |= number == len(lines) and (kept is None or bool(behind))
        after = end.join(out) + (end if closed and out else "")
        return EditedText(after, tuple(map(tuple, changed)))

    def anywhere(self, number: int, text: str) -> tuple[int, ...]:
        """See EditScript."""
        command = self.commands[number]
        for wanted in (command.pattern, *command.addresses):
            if isinstance(wanted, regex.Pattern):
                if self.whole:
                    return tuple(line_at(text, each.start()) for each in found_in(wanted, text))
                lines = enumerate(text.split("\n"), 1)
                return tuple(number for number, line in lines if found_in(wanted, line))
        return ()


def _is_chosen(
    command: SedCommand, index: int, ranges: dict[int, _Address], text: str, place: tuple[int, int]
) -> bool:
    """Whether a command is for a line; `place` is its number, and how many there are."""
    if index in ranges:
        end = ranges[index]
        if isinstance(end, int) and 0 < end < place[0]:
            del ranges[index]
            return False
        if _is_at(end, text, place):
            del ranges[index]
        return True
    if not command.addresses:
        return True
    is_first = _is_at(command.addresses[0], text, place)
    if is_first and len(command.addresses) > 1:
        end = command.addresses[1]
        if not isinstance(end, int) or end == -1 or end > place[0]:
            ranges[index] = end
    return is_first


def _is_at(address: _Address, text: str, place: tuple[int, int]) -> bool:
    if isinstance(address, int):
        return place[0] == (place[1] if address == -1 else address)
    return bool(found_in(address, text))


def _done(
    command: SedCommand, text: str, out: list[str], behind: list[str]
) -> tuple[str | None, list[int]]:
    """A line after a command, None for none, and the lines in it that this changed."""
    if command.pattern is None:
        place = {"a": behind, "i": out}.get(command.name, [])
        place += map(str, command.pieces)
        return (None if command.name == "d" else text), [1]
    made, end, changed = "", 0, list[int]()
    for match in found_in(command.pattern, text)[: None if command.every else 1]:
        groups = [match[0], *(each or "" for each in match.groups())]
        new = "".join(each if isinstance(each, str) else groups[each] for each in command.pieces)
        made, end = made + text[end : match.start()] + new, match.end()
        changed += [line_at(text, match.start())] if new != match[0] else []
    return made + text[end:], changed


# How a script is written.


_ADDRESS = r"([1-9]\d{0,8}|\$|/(?:\\.|[^/\\\n])+/)"
_COMMAND = re.compile(rf"(?:{_ADDRESS}(?:,{_ADDRESS})?)?[ \t]*([sdai])", re.DOTALL)
_BLANK = re.compile(r"(?:[ \t\n;]|#[^\n]*)*")
_END = re.compile(r"[ \t]*(?=[;\n#]|$)")
_TEXT = re.compile(r"[ \t]*(?:\\\n?|(?![ \t\n]))((?:[^\\\n]|\\.)+)", re.DOTALL)
_CLASS = r"\[:(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]"
_MEMBERS = rf"\[(?!:[^\]]*:\])\^?\]?(?:{_CLASS}|\[(?![:.=])|[^\]\[])*\]"
_TIMES = r"\{\d{1,4}(?:,\d{0,4})?"  # how often; the bracket is escaped in a basic pattern
#: A part of a pattern: a bracket expression, an interval, an escape, or a character.
_PART = re.compile(rf"{_MEMBERS}|\\{_TIMES}\\\}}|\\.|.", re.DOTALL)
_EXTENDED_PART = re.compile(rf"{_MEMBERS}|{_TIMES}\}}|\\.|.", re.DOTALL)
#: GNU's escapes, and what each is to Python.
_ESCAPES = {each: rf"\{each}" for each in "wWsSbBnt123456789"} | {
    "<": r"\b(?=\w)",
    ">": r"\b(?<=\w)",
}
_SIGNS = frozenset("()|+?")
#: What seds read in several ways: something is repeated that is no character, or is repeated
#: already; a group before it is there; an escape, or a range of a range, among characters.
_ODD = re.compile(
    r"(?:\\[<>bB+?}]|(?<![\\\[])[\^*+?}])(?:[*+?{]|\\[+?{])|\^\^|\A[^(]*\\[1-9]"
    r"|\[[^\]]*(?:\\[^nt\W]|\w-\w-[^\]])|\\['`\n]"
)


def parse_sed(source: str, options: Sequence[str]) -> SedScript:
    """The script that sed is given with these options; UnreadableEditError for what is not known
    here, or no sed takes.
    """
    letters = {letter for each in options if not each.startswith("--") for letter in each}
    extended = bool(letters & {*"Er"}) or "--regexp-extended" in options
    whole = "z" in letters or "--null-data" in options
    commands, plain, at = list[SedCommand](), True, 0
    while (at := _after(_BLANK, source, at)) < len(source):
        command, end, is_plain = _command(source, at, extended)
        commands.append(command)
        plain &= is_plain and (command.name == "s" or not whole)
        at = end
    if not commands or letters & {*"n"}:
        raise UnreadableEditError(f"is not known here: {source!r:.200}")
    return SedScript(tuple(commands), tuple(options), source, whole, plain)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise UnreadableEditError(f"is not known here: {text[at:]!r:.200}")
    return match.end()


def _command(source: str, begin: int, extended: bool) -> tuple[SedCommand, int, bool]:
    """The command that begins there, where it ends, and whether every sed reads it alike."""
    at = _after(_COMMAND, source, begin)
    head = _COMMAND.match(source, begin)
    assert head is not None
    addresses = tuple(_address(each, extended) for each in head.groups()[:2] if each)
    pattern, every, plain, pieces = None, False, True, tuple[str | int, ...]()
    if head[3] == "s":
        sign = re.escape(source[at : at + 1] or "\n")
        part = rf"((?:\\.|(?!{sign})[^\\\n])*){sign}"
        whole = re.compile(rf"(?!\\|\n){sign}{part}{part}(g?[Ii]?)", re.DOTALL)
        end = _after(whole, source, at)
        old, new, flags = whole.match(source, at).groups()  # type: ignore[union-attr]
        sign = f"\\{source[at]}"
        special = ".*[]^$+?(){}|" if extended else ".*[]^$"
        if sign[1] in special and sign in old:
            raise UnreadableEditError(f"seds differ in what this means: {old!r:.200}")
        old = old.replace(sign, sign[1])
        pattern, every = _pattern(old, extended, ignoring=bool({*flags} & {*"Ii"})), "g" in flags
        plain = not (every and pattern.search(""))  # seds differ in where nothing is found again
        pieces, at = tuple(_pieces(new, pattern.groups, source[at])), end
    elif head[3] in "ai":
        at = _after(_TEXT, source, at)
        text = _TEXT.match(source, head.end())[1]  # type: ignore[index]
        plain = "\\" not in text.replace("\\\n", "")
        pieces = (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL),)
    at = _after(_END, source, at)
    written = source[begin:at].strip()
    return SedCommand(written, head[3], addresses, pieces, pattern, every), at, plain


def _address(text: str, extended: bool) -> _Address:
    if text[0] == "/":
        return _pattern(text[1:-1].replace("\\/", "/"), extended)
    return -1 if text == "$" else int(text)


def _pieces(new: str, groups: int, sign: str) -> Iterator[str | int]:
    for part in re.findall(r"\\.|&|[^\\&]+", new, re.DOTALL):
        if part == "&":
            yield 0
        elif part[0] != "\\":
            yield part
        elif part[1].isdigit() and int(part[1]) <= groups:
            yield int(part[1])
        elif part[1] in "nt" and part[1] != sign:
            yield {"n": "\n", "t": "\t"}[part[1]]
        elif part[1].isalnum() and part[1] != sign:
            raise UnreadableEditError(f"{part} is not known here: {new!r:.200}")
        else:
            yield part[1]


def _pattern(pattern: str, extended: bool, *, ignoring: bool = False) -> regex.Pattern[str]:
    flags = regex.DOTALL | regex.POSIX | (regex.IGNORECASE if ignoring else 0)
    if not pattern or _ODD.search(pattern):
        raise UnreadableEditError(f"seds differ in what this means: {pattern!r:.200}")
    return compile_pattern("".join(_translated(pattern, extended)), flags)


def _translated(pattern: str, extended: bool) -> Iterator[str]:
    """The parts of a pattern as Python writes them."""
    begins = True  # nothing stands before it that may be repeated
    for found in (_EXTENDED_PART if extended else _PART).finditer(pattern):
        part, rest = found[0], pattern[found.end() :]
        is_sign = part in _SIGNS if extended else part[0] == "\\" and part[1:] in _SIGNS
        ends = not rest or rest.startswith((")", "|") if extended else ("\\)", "\\|"))
        opened, begins = begins, is_sign and part[-1] in "(|"
        if part in (("[", "{") if extended else ("[", r"\{", r"\}")):
            raise UnreadableEditError(f"{part} is without its other half in {pattern!r:.200}")
        if is_sign:
            yield part[-1]
        elif part[-1] == "}" and len(part) > 2:
            yield part.replace("\\", "")
        elif part == "^" and (opened or extended):
            begins = True
            yield r"\A"
        elif part == "$" and (ends or extended):
            yield r"\Z"
        elif part == "." or (part == "*" and (extended or not opened)):
            yield part
        elif len(part) == 1:
            yield regex.escape(part)
        elif part[0] == "[":
            inner = re.split(r"(\[:[a-z]+:\])", part[1:-1])
            members = (re.sub(r"\\(?![nt])|[\[\]&~|]", _escaped, each) for each in inner[::2])
            inner[::2] = members
            yield f"[{''.join(inner)}]"
        elif part[1].isalnum() and part[1] not in _ESCAPES:
            raise UnreadableEditError(f"{part} is not known here: {pattern!r:.200}")
        else:
            yield _ESCAPES.get(part[1], regex.escape(part[1]))


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
