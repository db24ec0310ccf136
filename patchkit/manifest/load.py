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
from patchkit.manifest.format import FORMAT_VERSION, MANIFEST
from patchkit.manifest.rules import check_rules, find_warnings
from patchkit.manifest.types import MapOf, Record, Shape, check_manifest_path, resolve_url
from patchkit.manifest.validate import check_shape, shown
from patchkit.manifest.values import (
    AbsentTarget,
    ArchivePin,
    ArchiveSource,
    ArgumentValue,
    Component,
    Contracts,
    DeclaredCall,
    DifferingFiles,
    Environment,
    ExternalMerger,
    GitPin,
    GitSource,
    Image,
    IndexPin,
    IndexSource,
    InstallStep,
    Launch,
    LocalPatch,
    LocalSeries,
    Manifest,
    Overrides,
    PatchEntry,
    Pin,
    PinnedPatch,
    Residual,
    ReviewedFile,
    RuleStep,
    RunStep,
    SiteValue,
    Source,
    TextStep,
    UpstreamTests,
    VerifyStep,
)
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
from patchkit.model.objects import CommitId

# `extends`: lay one file's nodes over those of the parts that it shares.
#
# Mappings with keys of their own (environments, the components by name, a component) are merged
# key by key; every other value (a text, a list, a source, a pin) is taken whole from the file
# that says it last. Nodes keep their places, so a problem is reported where it was written.


#: What a file says of itself, not of those who share it.
_OWN = ("version", "description", "extends", "upon")


def shared(table: Table) -> Table:
    """What others take from a part."""
    entries = tuple(entry for entry in table.entries if entry[0].text not in _OWN)
    return replace(table, entries=entries)


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


# Checked nodes -> the frozen values of a manifest. Nothing is refused here any more.


def build_manifest(table: Table, path: Path, root: Path) -> Manifest:
    """The manifest that a checked table says."""
    return Manifest(
        path=path,
        root=root,
        name=path.stem,
        components=tuple(
            _component(key, value, root) for key, value in table.named_tables("components")
        ),
        environment=_environment(table.get("environment")),
        description=table.text("description"),
        values=tuple(_value(key, value) for key, value in table.named_tables("values")),
        image=_image(table.get("image")),
        launches=tuple(_launch(key, value) for key, value in table.named_tables("launch")),
        mergers=tuple(_merger(each) for each in table.tables("mergers")),
        upon=table.texts("upon"),
    )


def _merger(table: Table) -> ExternalMerger:
    files, seconds = table.texts("files"), int(table.text("seconds") or 0)
    return ExternalMerger(files, table.text("run"), table.where, table.text("name"), seconds)


def _component(key: Scalar, table: Table, root: Path) -> Component:
    pin = table.get("pin")
    assert pin is not None
    return Component(
        name=key.text,
        source=_source(_table(table, "source"), root),
        pin=_pin(pin),
        where=key.where,
        pin_where=(pin.get("version") or pin.get("sha256") or pin).where
        if isinstance(pin, Table)
        else pin.where,
        track=_optional(table, "track"),
        checkout=table.text("checkout") or key.text,
        strip=int(table.text("strip") or 1),
        subdirectory=_folder(table, "subdirectory"),
        layout={_plain_path(k): _plain_path(v) for k, v in _mapping(table, "layout").items()},
        differing=tuple(
            DifferingFiles(each.texts("files"), each.text("reason").strip(), each.where)
            for each in table.tables("differing")
        ),
        patches=tuple(_patch(each, root) for each in table.tables("patches")),
        install=tuple(_step(each) for each in table.tables("install")),
        environment=_environment(table.get("environment")),
        description=table.text("description"),
        overrides=tuple(_overrides(each) for each in table.tables("overrides")),
        verify=tuple(_verify(each) for each in table.tables("verify")),
        residual=_residual(table.get("residual")),
        contracts=_contracts(table.get("contracts")),
        upstream_tests=_upstream_tests(table.get("upstream_tests")),
    )


def _upstream_tests(node: Node | None) -> UpstreamTests | None:
    if not isinstance(node, Table):
        return None
    return UpstreamTests(
        run=node.text("run"),
        where=node.where,
        directory=_folder(node, "directory"),
        variables=_mapping(node, "variables"),
    )


def _overrides(table: Table) -> Overrides:
    return Overrides(
        target=table.text("target"),
        rule=_folder(table, "rule"),
        packages=table.texts("packages"),
        where=table.where,
        root=_folder(table, "root"),
        absent=_absent(table),
    )


def _contracts(node: Node | None) -> Contracts | None:
    if not isinstance(node, Table):
        return None
    calls = (
        DeclaredCall(each.text("call"), each.texts("files"), each.text("to"), each.where)
        for each in node.tables("calls")
    )
    return Contracts(
        packages=node.texts("packages"),
        where=node.where,
        root=_folder(node, "root"),
        entries=node.texts("entries"),
        holds=node.texts("holds"),
        fails=node.texts("fails"),
        calls=tuple(calls),
        outside=node.texts("outside"),
        absent=_absent(node),
    )


def _absent(table: Table) -> tuple[AbsentTarget, ...]:
    return tuple(
        AbsentTarget(each.text("name"), each.text("reason").strip(), each.where)
        for each in table.tables("absent")
    )


def _verify(table: Table) -> VerifyStep:
    where, name, after = table.where, table.text("name"), table.text("after")
    if table.get("run") is not None:
        return RunStep(table.text("run"), where, name, after, _folder(table, "directory"))
    if table.get("rules") is not None:
        return RuleStep(_folder(table, "rules"), where, name, after)
    wanted = table.get("present") is not None
    text = table.text("present" if wanted else "absent").removesuffix("\n")
    files = table.texts("files")
    return TextStep(text, wanted, files, where, name, after, table.text("optional").strip())


def _residual(node: Node | None) -> Residual:
    if not isinstance(node, Table):
        return Residual()
    rules = tuple(_plain_path(each) for each in node.texts("rules"))
    return Residual(rules, _folder(node, "baseline"))


def _source(table: Table, root: Path) -> Source:
    project = table.get("index")
    if project is not None:
        return IndexSource(table.text("index"))
    mirrors = tuple(resolve_url(url, root) for url in table.texts("mirrors"))
    if table.get("archive") is not None:
        return ArchiveSource(resolve_url(table.text("archive"), root), mirrors)
    return GitSource(resolve_url(table.text("git"), root), mirrors)


def _pin(node: Node) -> Pin:
    if isinstance(node, Scalar):
        return GitPin(CommitId(node.text))
    assert isinstance(node, Table)
    if node.get("version") is None:
        return ArchivePin(node.text("sha256"))
    return IndexPin(node.text("version"), node.text("sha256"))


def _patch(table: Table, root: Path) -> PatchEntry:
    if table.get("series") is not None:
        return LocalSeries(_folder(table, "series"), table.where)
    if table.get("patch") is not None:
        return LocalPatch(_folder(table, "patch"), table.where)
    git = _optional(table, "git")
    commit = _optional(table, "commit")
    strip = table.get("strip")
    return PinnedPatch(
        path=table.text("path"),
        sha256=table.text("sha256"),
        where=table.where,
        component=_optional(table, "component"),
        git=None if git is None else resolve_url(git, root),
        commit=None if commit is None else CommitId(commit),
        strip=None if strip is None else int(table.text("strip") or 0),
        name=_optional(table, "name"),
        other_base=tuple(
            ReviewedFile(each.text("file"), each.text("reason").strip(), each.where)
            for each in table.tables("other_base")
        ),
    )


def _step(table: Table) -> InstallStep:
    return InstallStep(
        run=table.text("run"),
        name=table.text("name"),
        directory=_folder(table, "directory"),
    )


def _environment(node: Node | None) -> Environment:
    if not isinstance(node, Table):
        return Environment()
    return Environment(
        versions=_mapping(node, "versions"),
        scripts=node.texts("scripts"),
        variables=_mapping(node, "variables"),
        paths=_lists(node, "paths"),
        unsupported=_mapping(node, "unsupported"),
    )


def _value(key: Scalar, table: Table) -> SiteValue:
    return SiteValue(key.text, table.text("description"), _optional(table, "default"), key.where)


def _image(node: Node | None) -> Image | None:
    if not isinstance(node, Table):
        return None
    return Image(node.text("base"), node.texts("packages"))


def _launch(key: Scalar, table: Table) -> Launch:
    groups = table.named_tables("arguments")
    return Launch(
        name=key.text,
        command=table.text("command"),
        where=key.where,
        description=table.text("description"),
        component=_optional(table, "component"),
        directory=_folder(table, "directory"),
        variables=_mapping(table, "variables"),
        before=tuple(_step(each) for each in table.tables("before")),
        arguments={group.text: _arguments(values) for group, values in groups},
    )


def _arguments(table: Table) -> Mapping[str, ArgumentValue]:
    return {
        key.text: value.text if isinstance(value, Scalar) else _texts(value)
        for key, value in table.entries
    }


def _lists(table: Table, key: str) -> Mapping[str, tuple[str, ...]]:
    return {name.text: _texts(value) for name, value in table.pairs(key)}


def _texts(node: Node) -> tuple[str, ...]:
    items = node.items if isinstance(node, Items) else ()
    return tuple(item.text for item in items if isinstance(item, Scalar))


def _mapping(table: Table, key: str) -> Mapping[str, str]:
    return {name.text: node.text for name, node in table.pairs(key) if isinstance(node, Scalar)}


def _table(table: Table, key: str) -> Table:
    node = table.get(key)
    assert isinstance(node, Table)
    return node


def _optional(table: Table, key: str) -> str | None:
    node = table.get(key)
    return node.text if isinstance(node, Scalar) else None


def _folder(table: Table, key: str) -> str:
    """A checked path in its one spelling: without `./` and a final slash."""
    return _plain_path(table.text(key))


def _plain_path(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


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
        reader.add(check_shape(table, MANIFEST, partial=reader.incomplete))
        if len(reader.problems) < _HOPELESS:
            reader.add(check_rules(table, root))
            warnings = list(find_warnings(table))
        if not reader.problems:
            manifest = build_manifest(table, absolute(path), root)
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
