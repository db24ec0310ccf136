"""A component's metadata along its branch, as its patches leave it: its distribution, its version
(from files, or from git's tags), and what it asks of others. Read, never run.
"""

from __future__ import annotations

import configparser
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.parser import HeaderParser
from importlib import import_module
from typing import Any, TypeAlias

from msgspec.structs import replace
from packaging.version import Version

from patchkit.drift.forecast import Forecaster
from patchkit.gitcmd.first_parent import Line
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.repository import RefChange, Repository
from patchkit.manifest.values import Component, InstallStep, normal_name
from patchkit.model.objects import SUBMODULE_MODE, CommitId, TreeEntry, lines_of
from patchkit.model.syntax import constant_text, module_constants, parse_python
from patchkit.model.tree import ObjectSource, Overlay, Tree
from patchkit.planning.plan_report import Declaration, MetadataRequirement
from patchkit.stack.build import SeriesPatch, build_stack
from patchkit.upstream.history import HistoryReader, tree_of
from patchkit.upstream.requirements import read_requirements, setup_arguments

# Declarations in the files of one commit. A version that only tags know is unknown here: see
# `TaggedVersions`.


#: A file of the component's tree by its path; None if there is none.
ReadFile: TypeAlias = Callable[[str], "bytes | None"]

_ATTRIBUTE = re.compile(r"[\w.]+")
_FROM_TAGS = re.compile(rb"setuptools[-_]scm|hatch[-_]vcs|versioningit|vcs[-_]versioning|pbr\b")
#: Characters of a name or version.
_LONGEST = 1000


def declaration_of(read: ReadFile, steps: Sequence[InstallStep], otherwise: str) -> Declaration:
    """What the metadata says that the install steps install; `otherwise` is a name to go by."""
    folders = dict.fromkeys([*(step.directory for step in steps), ""])
    name = version = ""
    for folder in folders:
        found = _identity(read, f"{folder}/" if folder else "")
        name, version = name or found[0], version or found[1]
    needs = (
        MetadataRequirement(
            normal_name(wish.requirement.name), str(wish.requirement.specifier), wish.file
        )
        for wish in read_requirements(read, steps).requirements
        if wish.requirement.marker is None or "extra" not in str(wish.requirement.marker)
    )
    known = tuple(dict.fromkeys(need for need in needs if need.specifier))
    by_tags = not version and any(_asks_git(read, f"{each}/" if each else "") for each in folders)
    return Declaration(normal_name(name or otherwise), version, known, by_tags)


def _asks_git(read: ReadFile, prefix: str) -> bool:
    """Whether the build takes the version from git's tags."""
    files = (read(f"{prefix}{name}") for name in ("pyproject.toml", "setup.cfg", "setup.py"))
    return any(_FROM_TAGS.search(data) for data in files if data is not None)


def _identity(read: ReadFile, prefix: str) -> tuple[str, str]:
    name = version = ""
    for file, parse in (
        ("pyproject.toml", _pyproject),
        ("setup.cfg", _setup_cfg),
        ("setup.py", _setup_py),
        ("PKG-INFO", _pkg_info),
    ):
        data = read(prefix + file)
        if data is not None:
            with suppress(RecursionError, MemoryError):  # nested without end
                found = parse(data.decode("utf-8", "replace"), read, prefix)
                name, version = name or found[0], version or found[1]
    return name[:_LONGEST], version[:_LONGEST]


def _pyproject(text: str, read: ReadFile, prefix: str) -> tuple[str, str]:
    try:
        told = import_module("tomllib").loads(text)
    except (ImportError, ValueError):
        return "", ""
    project = _table(told, "project")
    version = project.get("version", "")
    if not version:
        dynamic = _table(told, "tool", "setuptools", "dynamic").get("version")
        version = _dynamic(dynamic, read, prefix) if isinstance(dynamic, dict) else ""
    return constant_text(project.get("name")), constant_text(version)


def _dynamic(told: Mapping[str, Any], read: ReadFile, prefix: str) -> str:
    files = told.get("file", [])
    for file in [files] if isinstance(files, str) else files if isinstance(files, list) else []:
        data = read(f"{prefix}{file}")
        if data is not None:
            return data.decode("utf-8", "replace").strip()
    return _attribute(str(told.get("attr", "")), read, prefix)


def _attribute(dotted: str, read: ReadFile, prefix: str) -> str:
    """The value of a.b.NAME, of the file a/b.py or a/b/__init__.py."""
    module, _, name = dotted.rpartition(".")
    if not module or not _ATTRIBUTE.fullmatch(dotted):
        return ""
    path = module.replace(".", "/")
    for root in (prefix, f"{prefix}src/"):
        for file in (f"{root}{path}.py", f"{root}{path}/__init__.py"):
            data = read(file)
            if data is not None:
                return constant_text(module_constants(parse_python(data)[0]).get(name))
    return ""


def _setup_cfg(text: str, read: ReadFile, prefix: str) -> tuple[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return "", ""
    version = parser.get("metadata", "version", fallback="").strip()
    kind, _, where = version.partition(":")
    if kind in ("attr", "file"):
        version = _dynamic({kind: where.strip()}, read, prefix)
    return parser.get("metadata", "name", fallback="").strip(), version


def _setup_py(text: str, _read: ReadFile, _prefix: str) -> tuple[str, str]:
    found = setup_arguments(text) or {}
    name, version = (constant_text(found.get(each)) for each in ("name", "version"))
    return name, version


def _pkg_info(text: str, _read: ReadFile, _prefix: str) -> tuple[str, str]:
    headers = HeaderParser().parsestr(text)
    return headers.get("Name", ""), headers.get("Version", "")


def _table(told: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        below = told.get(name)
        told = below if isinstance(below, dict) else {}
    return told


def asked_for(read: ReadFile, steps: Sequence[InstallStep]) -> Iterator[str]:
    """The paths that `declaration_of` reads, whether or not they are there."""
    asked: list[str] = []

    def recording(path: str) -> bytes | None:
        asked.append(path)
        return read(path)

    declaration_of(recording, steps, "")
    yield from dict.fromkeys(asked)


# Versions of a component whose build takes them from git's tags, as setuptools-scm does. A tagged
# commit has its version; one behind it is on its way to the next, `1.2` to `1.3.dev0`. Tags are
# kept as refs of the history, so that a plan offline knows them, too.


#: Asks the upstream for its tags: name -> commit.
AskTags: TypeAlias = Callable[[], Mapping[str, str]]

_BEHIND = ".dev0"
_REFS = "refs/patchkit/tags/"
# Of a release; another product's of the same repository begins with its name.
_TAG = re.compile(r"v?([0-9]+(?:\.[0-9]+)+(?:\.?(?:a|b|rc|post|dev)\.?[0-9]+)*)")


class TaggedVersions:
    """Versions by the tags of a history; these are asked for when one is first wanted."""

    def __init__(self, repository: Repository, ask: AskTags) -> None:
        self._repository = repository
        self._ask: AskTags | None = ask

    def at(self, commit: CommitId, declared: Declaration) -> Declaration:
        """The declaration with the version that tags give a commit, if they do."""
        if not declared.by_tags:
            return declared
        self._bring()
        return _tagged(declared, self._version(commit))

    def along(
        self, line: Line, declared: Sequence[tuple[int, Declaration]]
    ) -> tuple[tuple[int, Declaration], ...]:
        """(position, what is declared from there on), the versions of tags with it."""
        if not any(each.by_tags for _, each in declared):
            return tuple(declared)
        self._bring()
        versions = list(self._along(line))
        found: list[tuple[int, Declaration]] = []
        for position in sorted({each for each, _ in (*declared, *versions)}):
            said = [each for first, each in declared if first <= position][-1]
            version = [each for first, each in versions if first <= position][-1]
            now = _tagged(said, version) if said.by_tags else said
            if not found or found[-1][1] != now:
                found.append((position, now))
        return tuple(found)

    def _along(self, line: Line) -> Iterable[tuple[int, str]]:
        """(position, version from there on), from the line's start."""
        ids = (line.start, *line.commits)
        places = {commit: number for number, commit in enumerate(ids)}
        landed: dict[int, tuple[Version, bool]] = {}
        for name, commit in self._names(ids[-1]).items() - self._names(line.start).items():
            position = places.get(commit) or self._lands(ids, commit)
            found = _version(name), commit in places
            landed[position] = max(found, landed.get(position, found))
        start = self._version(line.start)
        yield 0, start
        if start and len(ids) > 1 and 1 not in landed and not start.endswith(_BEHIND):
            yield 1, _next(Version(start))
        for position, (version, exact) in sorted(landed.items()):
            yield position, str(version) if exact else _next(version)
            if exact and position + 1 < len(ids) and position + 1 not in landed:
                yield position + 1, _next(version)

    def _lands(self, ids: Sequence[CommitId], commit: CommitId) -> int:
        """The position of the first commit of the line that has a commit of another branch."""

        def has(position: int) -> bool:
            arguments = ["merge-base", "--is-ancestor", commit, ids[position]]
            return self._repository.git(*arguments, accept=(0, 1)).code == 0

        return bisect_left(range(len(ids)), True, key=has)

    def _version(self, commit: CommitId) -> str:
        """What a commit is called, by the highest version among the tags that it has."""
        names = self._names(commit)
        best = max(names, key=_version, default=None)
        if best is None:
            return ""
        version = _version(best)
        return str(version) if names[best] == commit else _next(version)

    def _names(self, commit: CommitId) -> dict[str, CommitId]:
        """Tag -> commit, of the releases that a commit has.

        SurroundingsError where git leaves one out as it is damaged: without it the version would be
        another one.
        """
        layout, merged = "%(objectname) %(refname)", f"--merged={commit}"
        hint = f"delete {self._repository.git_dir / _REFS}: what is there is fetched again"
        out = self._repository.for_each_ref(layout, _REFS, merged, hint=hint)
        rows = (row.split(" ", 1) for row in lines_of(out.decode("utf-8", "surrogateescape")))
        return {name.removeprefix(_REFS): CommitId(oid) for oid, name in rows}

    def _bring(self) -> None:
        """Note the tags of commits that are here."""
        ask, self._ask = self._ask, None
        if ask is None:
            return
        known = self._repository.refs(_REFS)
        found = {
            _REFS + name: commit
            for name, commit in ask().items()
            if _TAG.fullmatch(name) and self._repository.commit(commit) is not None
        }
        changes = [
            RefChange(name, commit, known.get(name))
            for name, commit in found.items()
            if known.get(name) != commit
        ]
        if changes:
            self._repository.free_refs(each.name for each in changes)
            self._repository.update_refs(changes, reason="patchkit: tags")


def _tagged(declared: Declaration, version: str) -> Declaration:
    return replace(declared, version=version)


def _version(name: str) -> Version:
    match = _TAG.fullmatch(name)
    return Version(match[1] if match else name)


def _next(version: Version) -> str:
    """What comes behind a release on its way to the next one."""
    *first, last = version.release
    step = 0 if version.is_prerelease else 1
    return f"{'.'.join(map(str, [*first, last + step]))}{_BEHIND}"


class Metadata:
    """The files with metadata of a component, those of its pin and of the tip.

    `paths` are all that are looked at; `at_pin` is what the patched pin declares.
    """

    def __init__(
        self,
        along: HistoryReader,
        component: Component,
        patches: Sequence[SeriesPatch],
        tags: AskTags | None = None,
    ) -> None:
        self._along, self._component = along, component
        history = along.history
        self._tags = TaggedVersions(history.repository, tags or dict)
        self._found: list[tuple[int, Declaration]] = []
        self._files: tuple[TreeEntry | None, ...] = ()
        pin = history.base(history.pin, along.reader)
        tip = tree_of(along.reader, history.tip)
        at_pin = self._patched(patches)
        asked = [
            path
            for read in (self._at(along.reader, pin.tree), at_pin, self._at(along.reader, tip))
            for path in asked_for(read, component.install)
        ]
        self.paths = tuple(dict.fromkeys(asked))
        self.at_pin = self._tags.at(history.pin, self._declared(at_pin))

    def note(self, position: int, forecaster: Forecaster) -> None:
        """Note what is declared from a position of the line on, which was judged last."""
        files = tuple(map(forecaster.after, self.paths))
        if self._found and files == self._files:
            return
        self._files = files
        try:
            declared = self._declared(forecaster.patched)
        except MissingObjectError:  # a file that no server gives
            return
        if not self._found or declared != self._found[-1][1]:
            self._found.append((position, declared))

    def along(self, line: Line) -> tuple[tuple[int, Declaration], ...]:
        """(position, what is declared from there on), from the start of the line to its tip."""
        return self._tags.along(line, self._found)

    def _declared(self, read: ReadFile) -> Declaration:
        return declaration_of(read, self._component.install, self._component.name)

    def _patched(self, patches: Sequence[SeriesPatch]) -> ReadFile:
        """The files of the pin with the patches that apply there."""
        history, reader = self._along.history, self._along.reader
        try:
            stack = build_stack(reader, history.base(history.pin), patches)
        except MissingObjectError:  # a file that no server gives
            return self._at(reader, history.base(history.pin).tree)
        return self._at(Overlay(reader, stack.objects), stack.tree)

    def _at(self, source: ObjectSource, tree: str) -> ReadFile:
        files = Tree(source, tree)

        def read(path: str) -> bytes | None:
            entry = files.entry(path)
            if entry is None or entry.mode == SUBMODULE_MODE:
                return None
            try:
                return source.read(entry.oid, "blob")
            except MissingObjectError:
                self._along.bring([entry.oid])
            try:
                return source.read(entry.oid, "blob")
            except MissingObjectError:
                return None

        return read
