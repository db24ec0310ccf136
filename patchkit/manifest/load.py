"""Read a manifest with all that it extends, and tell everything that is wrong with it at once.

Text -> nodes (yaml_nodes.py) -> each file checked against the declared format (format.py,
validate.py) -> parts merged -> rules between values (rules.py) -> frozen values (values.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import is_inside
from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.manifest.find import (
    absolute,
    available_manifests,
    find_manifest,
    project_root,
)
from patchkit.manifest.keys import record_of
from patchkit.manifest.rules import check_rules, find_warnings
from patchkit.manifest.types import MapOf, Record, Shape, check_manifest_path
from patchkit.manifest.validate import Whole, read_shape, shown
from patchkit.manifest.values import FORMAT_VERSION, Manifest
from patchkit.manifest.yaml_nodes import (
    MAXIMUM_BYTES,
    Items,
    Node,
    Reading,
    Scalar,
    Table,
    decode,
    parse,
)

# `extends`: lay one file's nodes over those of the parts that it shares.
#
# Mappings with keys of their own (environments, the components by name, a component) are merged
# key by key; every other value (a text, a list, a source, a pin) is taken whole from the file
# that says it last. Nodes keep their places, so a problem is reported where it was written.


#: What a file says of itself, not of those who share it.
_OWN = ("version", "description", "extends", "upon")


def _without(table: Table, *keys: str) -> Table:
    return replace(table, entries=tuple(e for e in table.entries if e[0].text not in keys))


def merge(under: Node, over: Node, shape: Shape) -> Node:
    """`over` laid on `under`; keys of `under` come first, in its order."""
    if not isinstance(under, Table) or not isinstance(over, Table):
        return over
    match shape:
        case MapOf(of=of):
            return _merge_tables(under, over, lambda key: of)
        case Record():
            return _merge_tables(under, over, lambda key: _field_shape(shape, key))
        case _:
            return over


def _merge_tables(under: Table, over: Table, shape_of: Callable[[str], Shape | None]) -> Table:
    ours = dict(reversed([(key.text, (key, value)) for key, value in over.entries]))
    merged: list[tuple[Scalar, Node]] = []
    for key, value in under.entries:
        if key.text in ours:
            our_key, our_value = ours[key.text]
            shape = shape_of(key.text)
            merged.append((our_key, our_value if shape is None else merge(value, our_value, shape)))
        else:
            merged.append((key, value))
    inherited = {key.text for key, _ in under.entries}
    merged += (entry for entry in over.entries if entry[0].text not in inherited)
    return replace(over, entries=tuple(merged))


def _field_shape(record: Record, key: str) -> Shape | None:
    field = record.field(key)
    return None if field is None else field.shape


__all__ = [
    "Inspection",
    "available_manifests",
    "find_manifest",
    "inspect_manifest",
    "load_manifest",
]

#: How long a chain of `extends` may be.
MAXIMUM_EXTENDS = 8

#: With this many values that are wrong in themselves, how they go together is not looked at.
_HOPELESS = 1000


class Inspection(Struct, frozen=True):
    """What was found in a manifest; `manifest` is None if there are problems.

    `files` are the files read, the manifest first, then its parts.
    """

    path: Path
    files: tuple[Path, ...]
    manifest: Manifest | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]  # what is right and probably not meant


def load_manifest(path: Path) -> Manifest:
    """The manifest at `path`; raises BadInputError with every problem, each with its file:line."""
    return load_with_files(path)[0]


def load_with_files(path: Path) -> tuple[Manifest, Mapping[Path, bytes]]:
    """As load_manifest, and the files that it was read from, itself first."""
    reader = _Reader(project_root(path))
    inspection = _inspect(path, reader)
    if inspection.manifest is None:
        raise BadInputError(*inspection.problems)
    return inspection.manifest, reader.data


def inspect_manifest(path: Path) -> Inspection:
    """The manifest at `path`, or everything that keeps it from being one."""
    return _inspect(path, _Reader(project_root(path)))


def _inspect(path: Path, reader: _Reader) -> Inspection:
    root = reader.root
    table = reader.read(path, ())
    manifest: Manifest | None = None
    warnings: list[Problem] = []
    if table is not None:
        given = {"path": absolute(path), "root": root, "name": path.stem}
        value, problems = read_shape(
            table, record_of(Manifest), Whole(root=root, partial=reader.incomplete, given=given)
        )
        reader.add(problems)
        if len(reader.problems) < _HOPELESS:
            reader.add(check_rules(table, root))
            warnings = list(find_warnings(table))
        if not reader.problems:
            manifest = value
    return Inspection(
        path, tuple(reader.files), manifest, reader.sorted_problems(), tuple(warnings)
    )


class _Reader:
    """Reads files and merges them; `incomplete` once a file or a part could not be used."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[Path] = []
        self.data: dict[Path, bytes] = {}
        self.problems: dict[tuple[str, str], Problem] = {}
        self.incomplete = False
        self._parts: dict[Path, Table | None] = {}

    def add(self, problems: Iterable[Problem]) -> None:
        """Note problems; one that a part and the whole both have is reported once."""
        for problem in problems:
            self.problems.setdefault((problem.where, problem.what), problem)

    def sorted_problems(self) -> tuple[Problem, ...]:
        """By file in the order read, then by line."""
        files = [str(path) for path in self.files]

        def place(problem: Problem) -> tuple[int, int]:
            file, _, line = problem.where.rpartition(":")
            return files.index(file) if file in files else 0, int(line) if line.isdigit() else 0

        return first_problems(sorted(self.problems.values(), key=place))

    def read(self, path: Path, chain: tuple[Path, ...]) -> Table | None:
        """The file's table with its parts under it; None if it cannot be used at all."""
        if path not in self.files:
            self.files.append(path)
        try:
            self.data[path] = _read(path)
            table = _parse(path, self.data[path])
        except BadInputError as error:
            self.incomplete = True
            self.add(error.problems)
            return None
        extends = table.get("extends")
        if chain or extends is not None:
            self.add(read_shape(table, record_of(Manifest), Whole(partial=True))[1])
        if not isinstance(extends, Items):
            return table
        own = _without(table, "extends")
        return self._with_parts(own, extends, (*chain, Path(os.path.realpath(path))))

    def _with_parts(self, table: Table, extends: Items, chain: tuple[Path, ...]) -> Table:
        under: Table | None = None
        for item in extends.items:
            part = self._part(item, chain)
            if part is not None:
                merged: Node = part if under is None else merge(under, part, record_of(Manifest))
                assert isinstance(merged, Table)
                under = merged
        if under is None:
            return table
        whole = merge(under, table, record_of(Manifest))
        assert isinstance(whole, Table)
        return whole

    def _part(self, item: Node, chain: tuple[Path, ...]) -> Table | None:
        if not _is_text(item) or check_manifest_path(item.text) is not None:
            self.incomplete = True
            return None
        path = Path(os.path.normpath(item.where.file.parent / item.text))
        problem = self._refused(path, item, chain)
        if problem is not None:
            self.incomplete = True
            self.add([problem])
            return None
        if path not in self._parts:  # several may share a part: read it once
            table = self.read(path, chain)
            self._parts[path] = None if table is None else _without(table, *_OWN)
        return self._parts[path]

    def _refused(self, path: Path, item: Scalar, chain: tuple[Path, ...]) -> Problem | None:
        where, name = str(item.where), shown(item.text)
        if not is_inside(path, self.root):
            return Problem(
                f"{name} is outside of the project", where, f"parts are below {self.root.name}/"
            )
        try:
            there = path.is_file()
        except OSError as error:  # a name that is too long, a folder that may not be entered
            return Problem(f"{name} cannot be read: {error.strerror}", where)
        if not there:
            return Problem(f"{name} does not exist", where, "paths start from this file's folder")
        if Path(os.path.realpath(path)) in chain:
            return Problem(f"{name} extends this file, directly or not", where, "break the cycle")
        if len(chain) >= MAXIMUM_EXTENDS:
            return Problem(
                f"{name} is the end of a chain of more than {MAXIMUM_EXTENDS} files",
                where,
                "extend fewer",
            )
        return None


def _parse(path: Path, data: bytes) -> Table:
    table = parse(decode(data, path), path)
    if not isinstance(table, Table):
        raise BadInputError(
            Problem("not a mapping", f"{path}:{table.where.line}", "begin with `version: 1`")
        )
    _require_version(table, path)
    return table


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise BadInputError(Problem(f"{path} {what}"))
        with path.open("rb") as stream:
            return stream.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error


def _require_version(table: Table, path: Path) -> None:
    """Refuse a file of another format before its keys are called unknown."""
    node = table.get("version")
    if node is None:
        raise BadInputError(
            Problem("version is missing", f"{path}:1", f"begin with `version: {FORMAT_VERSION}`")
        )
    if _is_number(node) and node.text.lstrip("0") != str(FORMAT_VERSION):
        hint = f"this patchkit reads version {FORMAT_VERSION}; is there a newer one?"
        raise BadInputError(
            Problem(f"version {shown(node.text)} is not supported", str(node.where), hint)
        )


def _is_text(node: Node) -> TypeGuard[Scalar]:
    return isinstance(node, Scalar) and node.reading is Reading.TEXT


def _is_number(node: Node) -> TypeGuard[Scalar]:
    return isinstance(node, Scalar) and node.reading is Reading.INTEGER and node.text.isdecimal()
