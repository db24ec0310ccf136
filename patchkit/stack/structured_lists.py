"""Lists of patches that are a part of other tools' files: source.json of a registry of Bazel's, and
Conan's conandata.yml. Both keep the patches in the folder `patches` beside them.

Places are YAML's own marks (JSON is YAML), and edits are made in the text: order, other fields,
quotes, comments and line ends stay as they are.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import new as new_hash
from pathlib import Path

from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.edit import last_character
from patchkit.manifest.values import FOLDER_BESIDE, LocalSeries
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table, decode, parse
from patchkit.model.series_file import (
    KNOWN_LISTS,
    LINE,
    Series,
    SeriesLine,
    name_problems,
)

_HASHES = ("sha256", "sha384", "sha512")
_VALUE = re.compile(r'(":\s*")([^"]*)(")')
_COMMA = re.compile(r"\s*,")
_END = re.compile(r"\s*,?\Z")


def parse_structured(data: bytes, entry: LocalSeries) -> Series:
    """What such a file lists; BadInputError with all that is wrong."""
    text = decode(data, Path(entry.path))
    root = parse(text, Path(entry.path))
    if not isinstance(root, Table):
        raise BadInputError(Problem("lists no patches", f"{entry.path}:1", KNOWN_LISTS))
    mark = "\ufeff" * data.startswith(b"\xef\xbb\xbf")
    reader = _registry_source if entry.kind == "bazel" else _conan_patches
    series = reader(text, root, entry)
    first, *rest = series.lines
    series = replace(series, lines=(replace(first, text=mark + first.text), *rest))
    problems = name_problems(series, entry.path)
    for line in series.lines:
        if line.name and not line.text.startswith(line.name, line.at):
            hint = "write its letters as they are"
            problems.append(Problem(f"{line.name!a} is written with escapes", entry.path, hint))
    if problems:
        raise BadInputError(*problems)
    return series


class _Pieces(Series, frozen=True):
    """A file of which only a part is the list."""

    start: int = 0  # the number of the piece that the first patch is, or would be
    where: str = ""  # the list, as file:line
    like: SeriesLine = SeriesLine("")  # a patch as it is listed; without a name where none is

    def _closed(self) -> tuple[SeriesLine, ...]:
        return super()._closed() if self.lines[-1].name else self.lines

    def _first(self) -> int:
        return min((n for n, line in enumerate(self.lines) if line.name), default=self.start)

    def _end(self, place: int) -> int:
        return place


class RegistrySource(_Pieces, frozen=True):
    """`patches` of a source.json: each name with the hash of its file, in the order of application.

    One strip level holds for all.
    """

    level: int = 0

    @property
    def strip(self) -> int | None:
        """`patch_strip`, as Bazel has it."""
        return self.level

    def objection(self, name: str, data: bytes) -> Problem | None:
        """That the file's bytes have another hash."""
        said = self._value(name)
        kind = said.partition("-")[0]
        wanted = _integrity(kind if kind in _HASHES else _HASHES[0], data)
        hint = f"if the patch is right, write {wanted}"
        return (
            Problem(f"{name} is not what {said} was written for", hint=hint)
            if said != wanted
            else None
        )

    def with_bytes(self, name: str, data: bytes) -> Series:
        """With the hash of these bytes."""
        place, said = self._index(name), self._value(name)
        kind = said.partition("-")[0]
        wanted = _integrity(kind if kind in _HASHES else _HASHES[0], data)
        line = self.lines[place]
        text = line.text[: line.at] + _VALUE.sub(
            rf"\g<1>{wanted}\g<3>", line.text[line.at :], count=1
        )
        return self._with(place, replace(line, text=text))

    def with_strip(self, name: str, strip: int) -> Series:
        """Refused: there is one level for all."""
        what = f"{name} needs -p{strip}, and patch_strip is {self.level} for all"
        raise BadInputError(Problem(what, self.where, "write its paths as the others'"))

    def insert_after(self, after: str | None, name: str) -> Series:
        """As in any series; `{}` becomes lines."""
        if not self.start:
            hint = 'write  "patches": {}  into it'
            raise BadInputError(Problem("it has no patches to add to", self.where, hint))
        series, tail = self, self.lines[-1]
        if not self.names and "\n" not in tail.text.partition("}")[0]:
            closed = replace(tail, text=f"\n{self._indent}{tail.text.lstrip()}")
            series = replace(self, lines=(*self.lines[:-1], closed))
        return super(RegistrySource, series).insert_after(after, name)

    @property
    def _indent(self) -> str:
        """What stands before `patches` in its line."""
        last = self.lines[0].text.rpartition("\n")[2]
        return last[: len(last) - len(last.lstrip())]

    def _new(self, after: str | None, name: str) -> SeriesLine:
        if self.like.name is not None:
            return self.like.called(name)
        begin = f'\n{self._indent * 2 or "  "}"'
        return SeriesLine(f'{begin}{name}": ""', name, self.level, len(begin))

    def _made(self, lines: Sequence[SeriesLine]) -> Series:
        """With a comma behind each but the last."""
        entries = [line for line in lines[1:-1] if line.name is not None]
        ended = [
            replace(line, text=_END.sub("," if number < len(entries) else "", line.text, count=1))
            for number, line in enumerate(entries, 1)
        ]
        return replace(self, lines=(lines[0], *ended, lines[-1]))

    def _value(self, name: str) -> str:
        line = self.lines[self._index(name)]
        found = _VALUE.search(line.text, line.at)
        return found[2] if found else ""


def _integrity(kind: str, data: bytes) -> str:
    return f"{kind}-{b64encode(new_hash(kind, data).digest()).decode()}"


def _registry_source(text: str, root: Table, entry: LocalSeries) -> Series:
    node, strip = root.get("patches"), root.text("patch_strip") or "0"
    if node is not None and not isinstance(node, Table):
        raise BadInputError(Problem("patches is no mapping", str(node.where), KNOWN_LISTS))
    if not strip.isdecimal():
        raise BadInputError(Problem("patch_strip is no number", f"{entry.path}:1"))
    if node is None:
        return RegistrySource((SeriesLine(text),), where=f"{entry.path}:1", level=int(strip))
    at = node.start + 1
    lines = [SeriesLine(text[:at])]
    for key, value in node.entries:
        comma = _COMMA.match(text, value.end)
        end = comma.end() if comma else value.end
        lines.append(SeriesLine(text[at:end], key.text, int(strip), key.start + 1 - at))
        at = end
    like = lines[-1]
    lines.append(SeriesLine(text[at:]))
    return RegistrySource(tuple(lines), start=1, where=str(node.where), like=like, level=int(strip))


class ConanPatches(_Pieces, frozen=True):
    """`patches` of a conandata.yml for one version: a block of fields for each patch."""

    elsewhere: Mapping[str, str] = {}

    @property
    def others(self) -> Mapping[str, str]:
        """What other versions take, too."""
        return self.elsewhere

    def with_strip(self, name: str, strip: int) -> Series:
        """Refused: Conan counts in another way."""
        what = f"{name} needs -p{strip}, which Conan has no word for"
        raise BadInputError(Problem(what, self.where, "write its paths with a/ and b/"))

    def _new(self, after: str | None, name: str) -> SeriesLine:
        like = self.like
        dash = re.match(r"\s*-\s+", like.text)
        quote = like.text[like.at - len(FOLDER_BESIDE) - 1]
        quote = quote if quote in "\"'" else ""
        begin = f"{dash[0] if dash else '- '}patch_file: {quote}{FOLDER_BESIDE}"
        end = "\r\n" if like.text.endswith("\r\n") else "\n"
        return SeriesLine(f"{begin}{name}{quote}{end}", name, None, len(begin))

    def arrange(self, names: Sequence[str]) -> Series:
        """As in any series; one patch at least is left."""
        if not names:
            hint = "take the version off the file by hand"
            raise BadInputError(Problem("no patch would be left of the version", self.where, hint))
        return super().arrange(names)


def _conan_patches(text: str, root: Table, entry: LocalSeries) -> Series:
    node, others = _of_version(root, entry)
    pieces: list[SeriesLine] = []
    problems: list[Problem] = []
    at = 0
    for item in node.items:
        file = item.get("patch_file") if isinstance(item, Table) else None
        if not isinstance(file, Scalar) or not file.text.startswith(FOLDER_BESIDE):
            hint = f"patch_file: {FOLDER_BESIDE}NAME is what is read"
            problems.append(Problem("no patch of the recipe's own", str(item.where), hint))
            continue
        start = text.rindex("\n", 0, item.start) + 1
        end = text.find("\n", last_character(text, item)) + 1 or len(text)
        pieces += map(SeriesLine, LINE.findall(text[at:start]))
        place = file.start + bool(file.style) + len(FOLDER_BESIDE) - start
        name = file.text.removeprefix(FOLDER_BESIDE)
        pieces.append(SeriesLine(text[start:end], name, None, place))
        at = end
    if problems:
        raise BadInputError(*problems)
    pieces += map(SeriesLine, LINE.findall(text[at:]))
    first = next(number for number, line in enumerate(pieces) if line.name is not None)
    return ConanPatches(tuple(pieces), first, str(node.where), pieces[first], elsewhere=others)


def _of_version(root: Table, entry: LocalSeries) -> tuple[Items, dict[str, str]]:
    """The list of the version that is meant, and what the other versions take: name -> which."""
    node, others = root.get("patches"), dict[str, str]()
    if isinstance(node, Table):
        versions = [key.text for key, _ in node.entries]
        wanted = entry.target or (versions[0] if len(versions) == 1 else "")
        if wanted not in versions:
            what = f"no version {wanted}" if wanted else "patches of several versions"
            hint = f'beside series: target: "{versions[0]}" (there are {", ".join(versions)})'
            raise BadInputError(Problem(what, str(node.where), hint))
        others = {
            name: key.text for key, of in node.entries if key.text != wanted for name in _files(of)
        }
        node = node.get(wanted)
    if not isinstance(node, Items) or node.flow or not node.items:
        where = str(node.where) if node is not None else f"{entry.path}:1"
        raise BadInputError(Problem("no list of patches", where, KNOWN_LISTS))
    return node, others


def _files(node: Node) -> Iterator[str]:
    for item in node.items if isinstance(node, Items) else ():
        if isinstance(item, Table):
            yield item.text("patch_file").removeprefix(FOLDER_BESIDE)
