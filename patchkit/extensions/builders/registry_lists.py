"""Lists in YAML and JSON: Conan's conandata.yml and a Bazel registry's source.json.

Both keep the patches in the folder `patches` beside them. Places are YAML's own marks (JSON is
YAML).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import new as new_hash
from pathlib import Path

from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.extensions.builders.listed_pieces import (
    HashedList,
    LineList,
    ListedPatch,
    WordList,
    checked,
    chosen,
    cut,
)
from patchkit.manifest.edit import last_character
from patchkit.manifest.values import FOLDER_BESIDE, LocalSeries
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table, decode, parse
from patchkit.model.series_file import KNOWN_LISTS, Series, SeriesLine

_HASHES = ("sha256", "sha384", "sha512")


# A registry's source.json: each name with the hash of its file; one strip level holds for all.


class RegistrySource(HashedList, WordList, frozen=True):
    """`patches` of a source.json: each name with the hash of its file; one strip level for all."""

    hashed = re.compile(r'(?:":\s*"|\Z)([^"]*)')

    def insert_after(self, after: str | None, name: str) -> Series:
        """As in any list of words."""
        if not self.start:
            hint = 'write  "patches": {}  into it'
            raise BadInputError(Problem("it has no patches to add to", self.where, hint))
        return super().insert_after(after, name)

    def digest(self, said: str, data: bytes) -> str:
        """In base64, behind its kind."""
        kind = said.partition("-")[0]
        kind = kind if kind in _HASHES else _HASHES[0]
        return f"{kind}-{b64encode(new_hash(kind, data).digest()).decode()}"


def _registry_source(text: str, root: Table, entry: LocalSeries) -> Series:
    node, strip = root.get("patches"), root.text("patch_strip") or "0"
    if node is not None and not isinstance(node, Table):
        raise BadInputError(Problem("patches is no mapping", str(node.where), KNOWN_LISTS))
    if not strip.isdecimal():
        raise BadInputError(Problem("patch_strip is no number", f"{entry.path}:1"))
    where, level = f"{entry.path}:1" if node is None else str(node.where), int(strip)
    empty = RegistrySource(where=where, begin='"', behind='": ""', folders=level, mark=",")
    if node is None:
        return replace(empty, lines=(SeriesLine(text),))
    found = [
        ListedPatch(key.start, value.end, key.text, key.start + 1, level)
        for key, value in node.entries
    ]
    return cut(text, found, node.end - 1, empty)


class ConanPatches(LineList, frozen=True):
    """`patches` of a conandata.yml for one version: a block of fields for each patch."""

    def arrange(self, names: Sequence[str]) -> Series:
        """As in any series; one patch at least is left."""
        if not names:
            hint = "take the version off the file by hand"
            raise BadInputError(Problem("no patch would be left of the version", self.where, hint))
        return super().arrange(names)


def _conan_patches(text: str, root: Table, entry: LocalSeries) -> Series:
    node, others = _of_version(root, entry)
    found: list[ListedPatch] = []
    problems: list[Problem] = []
    for item in node.items:
        file = item.get("patch_file") if isinstance(item, Table) else None
        if not isinstance(file, Scalar) or not file.text.startswith(FOLDER_BESIDE):
            hint = f"patch_file: {FOLDER_BESIDE}NAME is what is read"
            problems.append(Problem("no patch of the recipe's own", str(item.where), hint))
            continue
        start = text.rindex("\n", 0, item.start) + 1
        end = text.find("\n", last_character(text, item)) + 1 or len(text)
        name = file.text.removeprefix(FOLDER_BESIDE)
        at = file.start + bool(file.style) + len(FOLDER_BESIDE)
        found.append(ListedPatch(start, end, name, at))
    if problems:
        raise BadInputError(*problems)
    first = text[found[0].start : found[0].end]
    empty = ConanPatches(
        where=str(node.where),
        begin=f'{first.partition("-")[0]}- patch_file: "{FOLDER_BESIDE}',
        behind='"\r\n' if first.endswith("\r\n") else '"\n',
        elsewhere=others,
    )
    return cut(text, found, found[-1].end, empty)


def _of_version(root: Table, entry: LocalSeries) -> tuple[Items, dict[str, str]]:
    """The list of the version that is meant, and what the other versions take: name -> which."""
    node, others = root.get("patches"), dict[str, str]()
    if isinstance(node, Table):
        versions = [key.text for key, _ in node.entries]
        wanted = chosen(entry, versions, str(node.where), "version")
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


def read_registry(data: bytes, entry: LocalSeries) -> Series:
    """What such a file lists; BadInputError with all that is wrong."""
    text = decode(data, Path(entry.path))
    root = parse(text, Path(entry.path))
    if not isinstance(root, Table):
        raise BadInputError(Problem("lists no patches", f"{entry.path}:1", KNOWN_LISTS))
    reader = _registry_source if entry.kind == "bazel" else _conan_patches
    return checked(data, reader(text, root, entry), entry)
