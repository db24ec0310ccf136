"""Read a manifest with all that it extends, and tell everything that is wrong with it at once.

Text -> nodes (yaml_nodes.py) -> each file checked against its declared keys (values.py,
validate.py) -> parts merged -> rules between values (rules.py) -> frozen values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import is_inside
from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.manifest.find import absolute, project_root
from patchkit.manifest.keys import record_of
from patchkit.manifest.rules import check_rules, find_warnings
from patchkit.manifest.types import MapOf, Record, check_manifest_path
from patchkit.manifest.validate import Whole, read_shape, shown
from patchkit.manifest.values import FORMAT_VERSION, Component, FilePin, Manifest, SubmodulePin
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

#: How long a chain of `extends` may be.
MAXIMUM_EXTENDS = 8

#: With this many values that are wrong in themselves, how they go together is not looked at.
_HOPELESS = 1000

#: What a file says of itself, not of those who share it.
_OWN = ("version", "description", "retired", "extends")


class Inspection(Struct, frozen=True):
    """What was found in a manifest; `manifest` is None if there are problems.

    `files` are the files read and their bytes, the manifest first, then its parts and the files
    that pins stand in. `nameless` are components whose pin is a name that the lock does not know.
    """

    files: Mapping[Path, bytes]
    manifest: Manifest | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]  # what is right and probably not meant
    nameless: tuple[Component, ...]

    def require(self) -> Manifest:
        """The manifest; raises BadInputError with every problem, each with its file:line."""
        if self.manifest is None:
            raise BadInputError(*self.problems)
        return self.manifest


def load_manifest(path: Path) -> Manifest:
    """The manifest at `path`; raises BadInputError with every problem, each with its file:line."""
    return inspect_manifest(path).require()


def inspect_manifest(path: Path, data: bytes | None = None) -> Inspection:
    """The manifest at `path`, or everything that keeps it from being one.

    `data` is what it is about to hold, where that is not what it does.
    """
    root = project_root(path)
    files = _Files(root, {path: data or b""})
    table, manifest, warnings = files.read(path, ()), None, list[Problem]()
    nameless: tuple[Component, ...] = ()
    if table is not None:
        given = {"path": absolute(path), "root": root, "name": path.stem}
        whole = Whole(root=root, partial=files.incomplete, given=given)
        apart = files.pins_apart(table)
        if apart is not table:  # first what is wrong, by the names that are written
            files.value(table, Whole(partial=True))
        if apart is table or not files.problems:
            manifest = files.value(apart, whole)
        if len(files.problems) < _HOPELESS:
            files.add(check_rules(apart, root))
            warnings = list(find_warnings(table))
    if manifest is not None and not files.problems:
        manifest, nameless = files.read_pins(manifest)
    if files.problems:
        manifest = None
    return Inspection(files.data, manifest, files.sorted_problems(), tuple(warnings), nameless)


class _Files(Struct):
    """Reads files and merges them; `incomplete` once a file or a part could not be used."""

    root: Path
    data: dict[Path, bytes]
    problems: dict[tuple[str, str], Problem] = {}
    incomplete: bool = False
    _parts: dict[Path, Table | None] = {}

    def add(self, problems: Iterable[Problem]) -> None:
        """Note problems; one that a part and the whole both have is reported once."""
        for problem in problems:
            self.problems.setdefault((problem.where, problem.what), problem)

    def sorted_problems(self) -> tuple[Problem, ...]:
        """By file in the order read, then by line."""
        files = {str(path): number for number, path in enumerate(self.data)}

        def place(problem: Problem) -> tuple[int, int]:
            file, _, line = problem.where.rpartition(":")
            return files.get(file, 0), int(line) if line.isdigit() else 0

        return first_problems(sorted(self.problems.values(), key=place))

    def value(self, table: Table, whole: Whole) -> Manifest | None:
        """What a table says, its problems noted."""
        value, problems = read_shape(table, record_of(Manifest), whole)
        self.add(problems)
        return value if isinstance(value, Manifest) else None

    def pins_apart(self, manifest: Table) -> Table:
        """The manifest with each pin of `pins` as a component: its keys on those beside."""
        rows: list[tuple[Scalar, Node]] = []
        for key, component in manifest.pairs("components"):
            pins = component.pairs("pins") if isinstance(component, Table) else ()
            rows += [] if pins else [(key, component)]
            for label, own in pins:
                if isinstance(own, Table) and isinstance(component, Table):
                    if pin := component.get("pin"):
                        hint = "write it below `pins:`, under a name of its own"
                        self.add([Problem(f"{key.text} has pin and pins", str(pin.where), hint)])
                    beside = _without(component, "pins")
                    name = replace(label, text=f"{key.text}@{label.text}")
                    rows.append((name, _merged(beside, own, record_of(Component))))
        components = manifest.get("components")
        if not isinstance(components, Table) or components.entries == tuple(rows):
            return manifest
        apart = replace(components, entries=tuple(rows))
        entries = ((k, apart if value is components else value) for k, value in manifest.entries)
        return replace(manifest, entries=tuple(entries))

    def read_pins(self, manifest: Manifest) -> tuple[Manifest, tuple[Component, ...]]:
        """The manifest with what other files say of its pins; and whose names nobody knows yet."""
        if not any(isinstance(c.pin, FilePin | SubmodulePin) for c in manifest.components):
            return manifest, ()
        from patchkit.manifest.pin_places import read_pins  # noqa: PLC0415 (most pins are here)

        read = read_pins(manifest)
        self.data.update(read.files)
        self.add(read.problems)
        return replace(manifest, components=tuple(read.components)), tuple(read.nameless)

    def read(self, path: Path, chain: tuple[Path, ...]) -> Table | None:
        """The file's table with its parts under it; None if it cannot be used at all."""
        try:
            self.data[path] = self.data.setdefault(path, b"") or _read(path)
            table = _parse(path, self.data[path])
        except BadInputError as error:
            self.incomplete = True
            self.add(error.problems)
            return None
        extends = table.get("extends")
        if chain or extends is not None:
            self.value(table, Whole(partial=True))
        if not isinstance(extends, Items):
            return table
        chain = (*chain, Path(os.path.realpath(path)))
        parts = [self._part(item, chain) for item in extends.items]
        self.incomplete = self.incomplete or None in parts
        tables = (*(part for part in parts if part is not None), _without(table, "extends"))
        return reduce(lambda under, over: _merged(under, over, record_of(Manifest)), tables)

    def _part(self, item: Node, chain: tuple[Path, ...]) -> Table | None:
        if not isinstance(item, Scalar) or item.reading is not Reading.TEXT:
            return None  # as for what is no path: told already
        if check_manifest_path(item.text) is not None:
            return None
        path = Path(os.path.normpath(item.where.file.parent / item.text))
        what, hint = self._refusal(path, chain)
        if what:
            self.add([Problem(f"{shown(item.text)} {what}", str(item.where), hint)])
            return None
        if path not in self._parts:  # several may share a part: read it once
            table = self.read(path, chain)
            self._parts[path] = None if table is None else _without(table, *_OWN)
        return self._parts[path]

    def _refusal(self, path: Path, chain: tuple[Path, ...]) -> tuple[str, str]:
        """Why a part may not be read, and what to do; "" if it may."""
        if not is_inside(path, self.root):
            return "is outside of the project", f"parts are below {self.root.name}/"
        try:
            there = path.is_file()
        except OSError as error:  # a name that is too long, a folder that may not be entered
            return f"cannot be read: {error.strerror}", ""
        if not there:
            return "does not exist", "paths start from this file's folder"
        if Path(os.path.realpath(path)) in chain:
            return "extends this file, directly or not", "break the cycle"
        if len(chain) >= MAXIMUM_EXTENDS:
            return f"is the end of a chain of more than {MAXIMUM_EXTENDS} files", "extend fewer"
        return "", ""


# `extends`: lay one file's nodes over those of the parts that it shares; and so `pins`, over those
# of the component.
#
# Mappings with keys of their own (environments, the components by name, a component) are merged
# key by key; every other value (a text, a list, a source, a pin) is taken whole from the file
# that says it last. Nodes keep their places, so a problem is reported where it was written.


def _merged(under: Table, over: Table, shape: MapOf | Record) -> Table:
    """`over` laid on `under`; keys of `under` come first, in its order."""
    entries = {key.text: (key, value) for key, value in under.entries}
    for key, value in over.entries:
        _, below = entries.get(key.text, (key, None))
        field = None if isinstance(shape, MapOf) else shape.field(key.text)
        of = shape.of if isinstance(shape, MapOf) else field and field.shape
        entries[key.text] = key, value
        if isinstance(below, Table) and isinstance(value, Table) and isinstance(of, MapOf | Record):
            entries[key.text] = key, _merged(below, value, of)
    return replace(over, entries=tuple(entries.values()))


def _without(table: Table, *keys: str) -> Table:
    return replace(table, entries=tuple(e for e in table.entries if e[0].text not in keys))


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise BadInputError(Problem(f"{path} {what}"))
        with path.open("rb") as stream:
            return stream.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error


def _parse(path: Path, data: bytes) -> Table:
    """A file's nodes; one of another format is refused before its keys are called unknown."""
    table = parse(decode(data, path), path)
    where, hint = f"{path}:1", f"begin with `version: {FORMAT_VERSION}`"
    if not isinstance(table, Table):
        raise BadInputError(Problem("not a mapping", str(table.where), hint))
    node = table.get("version")
    if node is None:
        raise BadInputError(Problem("version is missing", where, hint))
    is_number = isinstance(node, Scalar) and node.reading is Reading.INTEGER
    number = table.text("version")
    if is_number and number.isdecimal() and number.lstrip("0") != str(FORMAT_VERSION):
        hint = f"this patchkit reads version {FORMAT_VERSION}; is there a newer one?"
        what = f"version {shown(number)} is not supported"
        raise BadInputError(Problem(what, str(node.where), hint))
    return table
