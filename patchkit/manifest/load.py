"""Read a manifest with all that it extends, and tell everything that is wrong with it at once.

Text -> nodes (nodes.py) -> each file checked against the declared format (fields.py, checking.py)
-> parts merged (merging.py) -> rules between values (rules.py) -> frozen values (building.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.building import build_manifest
from patchkit.manifest.checking import check_shape, shown
from patchkit.manifest.fields import FORMAT_VERSION, MANIFEST
from patchkit.manifest.find import absolute, available_manifests, find_manifest, project_root
from patchkit.manifest.merging import merge, shared
from patchkit.manifest.nodes import (
    MAXIMUM_BYTES,
    Items,
    Node,
    Reading,
    Scalar,
    Table,
    decode,
    parse,
)
from patchkit.manifest.rules import check_rules, find_warnings, is_inside
from patchkit.manifest.values import Manifest
from patchkit.manifest.words import check_manifest_path

__all__ = [
    "Inspection",
    "available_manifests",
    "find_manifest",
    "inspect_manifest",
    "load_manifest",
]

#: How long a chain of `extends` may be.
MAXIMUM_EXTENDS = 8

#: More are counted, not told.
MAXIMUM_PROBLEMS = 100


class Inspection(Struct, frozen=True):
    """What was found in a manifest; `manifest` is None if there are problems.

    `files` are the files read, the manifest first, then its parts.
    """

    path: Path
    files: tuple[Path, ...]
    manifest: Manifest | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def load_manifest(path: Path) -> Manifest:
    """The manifest at `path`; raises BadInputError with every problem, each with its file:line."""
    inspection = inspect_manifest(path)
    if inspection.manifest is None:
        raise BadInputError(*inspection.problems)
    return inspection.manifest


def inspect_manifest(path: Path) -> Inspection:
    """The manifest at `path`, or everything that keeps it from being one."""
    root = project_root(path)
    reader = _Reader(root)
    table = reader.read(path, ())
    manifest: Manifest | None = None
    warnings: list[Problem] = []
    if table is not None:
        reader.add(check_shape(table, MANIFEST, partial=reader.incomplete))
        reader.add(check_rules(table, root))
        warnings = list(find_warnings(table))
        if not reader.problems:
            manifest = build_manifest(table, absolute(path), root)
    return Inspection(
        path, tuple(reader.files), manifest, tuple(reader.sorted_problems()), tuple(warnings)
    )


class _Reader:
    """Reads files and merges them; `incomplete` once a file or a part could not be used."""

    def __init__(self, root: Path) -> None:
        self.files: list[Path] = []
        self.problems: dict[tuple[str, str], Problem] = {}
        self.incomplete = False
        self._root = root
        self._parts: dict[Path, Table | None] = {}

    def add(self, problems: Iterable[Problem]) -> None:
        """Note problems; one that a part and the whole both have is told once."""
        for problem in problems:
            self.problems.setdefault((problem.where, problem.what), problem)

    def sorted_problems(self) -> list[Problem]:
        """By file in the order read, then by line."""
        files = [str(path) for path in self.files]

        def place(problem: Problem) -> tuple[int, int]:
            file, _, line = problem.where.rpartition(":")
            return files.index(file) if file in files else 0, int(line) if line.isdigit() else 0

        found = sorted(self.problems.values(), key=place)
        more = len(found) - MAXIMUM_PROBLEMS
        if more <= 0:
            return found
        return [
            *found[:MAXIMUM_PROBLEMS],
            Problem(f"{more} more problems", hint="mend these first"),
        ]

    def read(self, path: Path, chain: tuple[Path, ...]) -> Table | None:
        """The file's table with its parts under it; None if it cannot be used at all."""
        if path not in self.files:
            self.files.append(path)
        try:
            table = _parse_file(path)
        except BadInputError as error:
            self.incomplete = True
            self.add(error.problems)
            return None
        extends = table.get("extends")
        if chain or extends is not None:
            self.add(check_shape(table, MANIFEST, partial=True))
        if not isinstance(extends, Items):
            return table
        return self._with_parts(table, extends, (*chain, Path(os.path.realpath(path))))

    def _with_parts(self, table: Table, extends: Items, chain: tuple[Path, ...]) -> Table:
        under: Table | None = None
        for item in extends.items:
            part = self._part(item, chain)
            if part is not None:
                merged: Node = part if under is None else merge(under, part, MANIFEST)
                assert isinstance(merged, Table)
                under = merged
        if under is None:
            return table
        whole = merge(under, table, MANIFEST)
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
            self._parts[path] = None if table is None else shared(table)
        return self._parts[path]

    def _refused(self, path: Path, item: Scalar, chain: tuple[Path, ...]) -> Problem | None:
        where, name = str(item.where), shown(item.text)
        if not is_inside(path, self._root):
            return Problem(
                f"{name} is outside of the project", where, f"parts are below {self._root.name}/"
            )
        try:
            there = path.is_file()
        except OSError as error:  # a name that is too long, a folder that may not be entered
            return Problem(f"{name} cannot be read: {error.strerror}", where)
        if not there:
            return Problem(f"{name} does not exist", where, "paths start from this file's folder")
        if Path(os.path.realpath(path)) in chain:
            return Problem(f"{name} extends this file, directly or not", where, "break the circle")
        if len(chain) >= MAXIMUM_EXTENDS:
            return Problem(
                f"{name} is the end of a chain of more than {MAXIMUM_EXTENDS} files",
                where,
                "extend fewer",
            )
        return None


def _parse_file(path: Path) -> Table:
    table = parse(decode(_read(path), path), path)
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
