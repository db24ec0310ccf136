"""A component's metadata along its branch, as its patches leave it: its distribution, its version
(from files, or from git's tags), and what it asks of others. Read, never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from packaging.version import Version

from patchkit.carry import carry_stack
from patchkit.extensions.planning.plan_report import Declaration, MetadataRequirement
from patchkit.gitcmd.first_parent import Line, blobs_of, landed_with
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.repository import RefChange, Repository
from patchkit.manifest.values import Component, InstallStep, normal_name
from patchkit.model.objects import CommitId, lines_of
from patchkit.model.syntax import constant_text, module_constants, parse_python
from patchkit.model.tree import Overlay, Tree
from patchkit.stack.build import SeriesPatch, patch_changes, series_paths
from patchkit.upstream.history import HistoryReader, tree_of
from patchkit.upstream.requirements import ReadFile, files_metadata, read_requirements

# Declarations in the files of one commit. A version that only tags know is unknown here: see
# `TaggedVersions`.
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
        MetadataRequirement(wish.name, str(wish.requirement.specifier), wish.file)
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
    for _, told in files_metadata(read, prefix):
        name, version = name or told.project, version or _told(told.version, read, prefix)
    return name[:_LONGEST], version[:_LONGEST]


def _told(version: str, read: ReadFile, prefix: str) -> str:
    """A version, or the one that stands where this says: `attr: a.b.NAME`, `file: VERSION`."""
    kind, _, where = version.partition(":")
    if kind == "file":
        found = (read(f"{prefix}{file.strip()}") for file in where.split(","))
        data = next((data for data in found if data is not None), b"")
        return data.decode("utf-8", "replace").strip()
    return _attribute(where.strip(), read, prefix) if kind == "attr" else version


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
                with suppress(RecursionError, MemoryError):  # nested without end
                    return constant_text(module_constants(parse_python(data)[0]).get(name))
    return ""


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


class TaggedVersions(Struct):
    """Versions by the tags of a history; these are asked for when one is first wanted."""

    repository: Repository
    ask: AskTags | None  # None: they were asked for

    def at(self, commit: CommitId, declared: Declaration) -> Declaration:
        """The declaration with the version that tags give a commit, if they do."""
        if not declared.by_tags:
            return declared
        return replace(declared, version=_version(commit, self._tags(commit)))

    def along(
        self, line: Line, declared: Sequence[tuple[int, Declaration]]
    ) -> tuple[tuple[int, Declaration], ...]:
        """(position, what is declared from there on), the versions of tags with it."""
        if not any(each.by_tags for _, each in declared):
            return tuple(declared)
        ids = (line.start, *line.commits)
        came = [(0, tag) for tag in self._tags(line.start)]
        for tag in self._tags(ids[-1]):
            if (0, tag) not in came:
                came.append((landed_with(self.repository, line, tag[1]), tag))
        positions = {first for first, _ in declared}
        positions.update(each for first, _ in came for each in (first, first + 1))
        found: list[tuple[int, Declaration]] = []
        for position in sorted(positions & set(range(len(ids)))):
            said = [each for first, each in declared if first <= position][-1]
            if said.by_tags:
                there = [tag for first, tag in came if first <= position]
                said = replace(said, version=_version(ids[position], there))
            if not found or found[-1][1] != said:
                found.append((position, said))
        return tuple(found)

    def _tags(self, commit: CommitId) -> list[tuple[Version, CommitId]]:
        """The tags of the releases that a commit has, with their commits.

        SurroundingsError where git leaves one out as it is damaged: without it the version would be
        another one.
        """
        self._bring()
        layout, merged = "%(objectname) %(refname:lstrip=3)", f"--merged={commit}"
        hint = f"delete {self.repository.git_dir / _REFS}: what is there is fetched again"
        out = self.repository.for_each_ref(layout, _REFS, merged, hint=hint)
        rows = (row.split(" ", 1) for row in lines_of(out.decode("utf-8", "surrogateescape")))
        known = ((_TAG.fullmatch(name), oid) for oid, name in rows)
        return [(Version(match[1]), CommitId(oid)) for match, oid in known if match]

    def _bring(self) -> None:
        """Note the tags of commits that are here."""
        ask, self.ask = self.ask, None
        if ask is None:
            return
        known = self.repository.refs(_REFS)
        found = {
            _REFS + name: commit
            for name, commit in ask().items()
            if _TAG.fullmatch(name) and self.repository.commit(commit) is not None
        }
        changes = [
            RefChange(name, commit, known.get(name))
            for name, commit in found.items()
            if known.get(name) != commit
        ]
        if changes:
            self.repository.free_refs(change.name for change in changes)
            self.repository.update_refs(changes, reason="patchkit: tags")


def _version(commit: CommitId, tags: Sequence[tuple[Version, CommitId]]) -> str:
    """What a commit is called that has these tags, by the highest of their versions."""
    if not tags:
        return ""
    version = max(version for version, _ in tags)
    if (version, commit) in tags:
        return str(version)
    *first, last = version.release
    step = 0 if version.is_prerelease else 1
    return f"{'.'.join(map(str, [*first, last + step]))}{_BEHIND}"


# What a component declares at its pin, and along its branch.


class Declared(Struct, frozen=True):
    """What the patched pin declares, and `along` the line (position, what from there on)."""

    at_pin: Declaration
    along: tuple[tuple[int, Declaration], ...]


def declared_along(
    along: HistoryReader, component: Component, patches: Sequence[SeriesPatch], ask: AskTags
) -> Declared:
    """Read the files with metadata on each commit of the line that changes them.

    These are the files of the pin and of the tip; what patches change there is carried along.
    """
    history, line, steps = along.history, along.history.line, component.install
    tags = TaggedVersions(history.repository, ask)
    few: Sequence[SeriesPatch] = ()
    paths: dict[str, None] = {}
    for commit in (history.tip, history.pin, history.pin):  # last with what patches ask for
        paths |= dict.fromkeys(asked_for(_files_at(along, commit, few), steps))
        few = [each for patch in patches if (each := _part(patch, paths)).file.changes]
    places = {commit: number for number, commit in enumerate((line.start, *line.commits))}
    landings = history.landings(sorted(paths))
    along.bring(blobs_of(entry for each in landings for entry in each.touches.values()))

    def declared(commit: CommitId) -> Declaration:
        return declaration_of(_files_at(along, commit, few), steps, component.name)

    commits = (line.start, *(each.commit.id for each in landings))
    found = [(places[commit], declared(commit)) for commit in commits]
    return Declared(tags.at(history.pin, declared(history.pin)), tags.along(line, found))


def _part(patch: SeriesPatch, paths: Container[str]) -> SeriesPatch:
    """What a patch does to some files."""
    changes = tuple(c for c in patch_changes(patch) if c.old_path in paths or c.new_path in paths)
    return SeriesPatch(patch.name, replace(patch.file, changes=changes, strip=1))


def _files_at(along: HistoryReader, commit: CommitId, patches: Sequence[SeriesPatch]) -> ReadFile:
    """The files of a commit, as patches of the pin leave them there."""
    reader, pin = along.reader, along.history.pin
    files, made = Tree(reader, tree_of(reader, commit)), dict[str, bytes]()
    if patches:
        for each in (pin, commit):
            along.bring(blobs_of(along.entries(each, series_paths(patches)).values()))
        old, new = (along.history.base(each, reader) for each in (pin, commit))
        with suppress(MissingObjectError):  # a file that no server gives
            stack = carry_stack(reader, old, new, patches).stack
            files = Tree(Overlay(reader, stack.objects), stack.tree)
            made = {each.oid: each.payload for each in stack.objects}

    def read(path: str) -> bytes | None:
        entry = files.entry(path)
        if entry is None or entry.oid in made:
            return made[entry.oid] if entry is not None else None
        return along.contents([entry]).get(entry.oid)

    return read
