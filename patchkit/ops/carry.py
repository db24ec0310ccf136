"""Carry patch files from one commit of any repository to another one, without a manifest.

Nothing in the repository changes; what comes of it goes into a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct

from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.disk.files import write_folder
from patchkit.errors import (
    BadInputError,
    ExitCode,
    UsageError,
)
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import overlay
from patchkit.manifest.values import ExternalMerger
from patchkit.model.mail import parse_patch
from patchkit.model.names import unsafe_path
from patchkit.model.objects import Base, CommitId, TreeId, encode_path
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.revision import interdiff
from patchkit.ops.mergers import merger_of
from patchkit.refresh.patch_plan import commit_changes
from patchkit.stack.build import SeriesPatch, Stack, build_stack, series_paths
from patchkit.stack.importing import read_source, repository_at
from patchkit.stack.patch_files import (
    CommitChange,
    OriginalFile,
    PatchToWrite,
    export_patches,
    layout_of,
)


class PlainCarryReport(Struct, frozen=True):
    """A carry between two commits of one repository."""

    old_base: CommitId  # the commit that the patches are for
    new_base: CommitId  # the commit to which they were carried
    tree: TreeId  # what the carried patches give on the new base
    patches: tuple[PatchResult, ...]  # in the order of the series
    conflicts: tuple[str, ...]  # the paths in conflict, sorted
    written: Mapping[str, Path]  # patch -> its file for the new base, where one was written
    changes: Mapping[str, bytes] = {}  # patch -> how it differs from the old one, if asked for
    exit_code: ExitCode = ExitCode.OK


class Precedence(str, Enum):
    """Which lines come first where both sides insert some at one point, and nothing says it."""

    AUTO = "auto"  # the patch's in a merge of upstream into a branch, else upstream's
    UPSTREAM = "upstream"
    PATCH = "patch"


# So many commits at most are between two merges of upstream into a branch, mostly: 82 % of 326.
# Of the bumps of pins 15 % are as short.
_BRANCH_FOLLOWS = 100


class CarryWish(Struct, frozen=True):
    """What to carry, and where to: `out` None writes nothing.

    `careful`: flag nothing, leave it in conflict. `diff`: say how each patch differs from the one
    before. `mergers` are run for files in conflict.
    """

    old_base: str  # commit for which the patches were made
    new_base: str  # commit for which they are to be made
    patches: tuple[Path, ...]  # files, or what lists or holds several, in the order of application
    strip: int = 1  # folders to take off the patches' paths
    out: Path | None = None
    careful: bool = False
    first: Precedence = Precedence.AUTO  # whose lines come first where both insert at one point
    mergers: tuple[ExternalMerger, ...] = ()
    diff: bool = False


def carry_patches(folder: Path, wish: CarryWish) -> PlainCarryReport:
    """Carry patch files in the repository at `folder`; UsageError or BadInputError if it can't be.

    On disk: files below `wish.out`, nothing else.
    """
    repository = repository_at(folder)
    bases = _base(repository, wish.old_base), _base(repository, wish.new_base)
    patches = _load(wish)
    if wish.out is not None and wish.out.exists() and any(wish.out.iterdir()):
        raise UsageError(f"{wish.out} is not empty", hint="name a new folder")
    past = Between(repository, bases[0].commit, bases[1].commit, paths=series_paths(patches))
    with overlay(repository) as trial, reading(trial) as reader:
        first = wish.first is Precedence.PATCH
        if wish.first is Precedence.AUTO:
            first = is_branch_update(repository, bases[0].commit, bases[1].commit)
        report = carry_stack(
            reader,
            *bases,
            patches,
            CarryOptions(
                past=past,
                careful=wish.careful,
                patch_first=first,
                merger=merger_of(wish.mergers, run=True),
            ),
        )
        written: dict[str, Path] = {}
        changes: dict[str, bytes] = {}
        if wish.out is not None or wish.diff:
            before = build_stack(reader, bases[0], patches)
            write_objects(trial, (*before.objects, *report.stack.objects))
            made = _made_patches(trial, patches, before, report.stack)
        if wish.diff:
            changes = dict(_differences(patches, made))
        if wish.out is not None:
            write_folder(wish.out, made | dict(_results(report)))
            written = {name: wish.out / name for name in made}
    conflicts = tuple(sorted(_conflicts(report)))
    return PlainCarryReport(
        bases[0].commit,
        bases[1].commit,
        report.stack.tree,
        report.outcomes,
        conflicts,
        written,
        changes,
        ExitCode.OK if report.clean else ExitCode.HALTED,
    )


def is_branch_update(repository: Repository, old: str, new: str) -> bool:
    """Whether going from `old` to `new` looks like a merge of upstream into a branch.

    That is: `new` descends from `old` by some commits only. A rebased series begins at commits that
    are no ancestors, a pin moves by a release. `bump` moves a pin, and never asks.
    """
    if repository.git("merge-base", "--is-ancestor", old, new, accept=(0, 1)).code:
        return False
    most = f"--max-count={_BRANCH_FOLLOWS + 1}"
    between = repository.git("rev-list", "--count", most, f"{old}..{new}").out
    return 0 < int(between) <= _BRANCH_FOLLOWS


def _base(repository: Repository, revision: str) -> Base:
    commit = repository.commit(revision)
    if commit is None:
        raise UsageError(
            f"{revision}: no such commit in {repository.git_dir}",
            hint="fetch it first: carry never asks a server",
        )
    return read_base(repository, commit)


def _load(wish: CarryWish) -> list[SeriesPatch]:
    sources = [read_source(path, None, strip=wish.strip) for path in wish.patches]
    if damaged := [problem for source in sources for problem in source.damaged]:
        raise BadInputError(*damaged)
    found = [(Path(patch.name).name, patch) for source in sources for patch in source.patches]
    names = [name for name, _ in found]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(*(f"{name} is given twice" for name in double))
    strips = [wish.strip if patch.strip is None else patch.strip for _, patch in found]
    return [
        SeriesPatch(name, parse_patch(patch.data, name=patch.where, strip=strip), strip)
        for (name, patch), strip in zip(found, strips, strict=True)
    ]


def _made_patches(
    repository: Repository, patches: Sequence[SeriesPatch], before: Stack, after: Stack
) -> dict[str, bytes]:
    old, new = commit_changes(before), commit_changes(after)
    wanted, names = [], []
    for patch in patches:
        if patch.name in new:
            # one that did not apply on the old base has its own words all the same
            words = CommitChange("", "", new[patch.name].message, new[patch.name].author)
            original = OriginalFile(patch.file, old.get(patch.name, words))
            layout = layout_of(patch.file, patch.strip, patch.subdirectory)
            wanted.append(PatchToWrite(new[patch.name], original, layout))
            names.append(patch.name)
    return dict(zip(names, export_patches(repository, wanted), strict=True))


def _differences(
    patches: Sequence[SeriesPatch], made: Mapping[str, bytes]
) -> Iterator[tuple[str, bytes]]:
    """How each patch for the new base differs from the one for the old base."""
    for patch in patches:
        if patch.name in made:
            new = parse_patch(made[patch.name], name=patch.name)
            yield patch.name, interdiff(patch.file, new, patch.name)


def _results(report: CarryReport) -> Iterator[tuple[str, bytes]]:
    """The resulting files of touched paths, what is deleted, and what is left in conflict."""
    conflicts = _conflicts(report)
    results: dict[str, bytes | None] = {}
    marked: dict[str, bytes] = {}
    for outcome in report.outcomes:
        results.update(report.carried.get(outcome.name, {}))
        marked.update(report.marked.get(outcome.name, {}))
    proposals = {
        file.path: file.proposal.payload
        for files in report.conflicts.values()
        for file in files
        if file.proposal is not None
    }
    yield from _below("conflicts", marked)
    yield from _below("proposals", proposals)
    yield "conflicts.txt", encode_path("".join(f"{path}\n" for path in sorted(conflicts)))
    kept = {path: data for path, data in results.items() if path not in conflicts}
    yield from _below("tree", {path: data for path, data in kept.items() if data is not None})
    gone = sorted(path for path, data in kept.items() if data is None)
    yield "deleted.txt", encode_path("".join(f"{path}\n" for path in gone))


def _below(folder: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    safe = {path: data for path, data in files.items() if unsafe_path(path, None) is None}
    return ((f"{folder}/{path}", data) for path, data in safe.items())


def _conflicts(report: CarryReport) -> set[str]:
    return {
        file.carried_to or file.path
        for outcome in report.outcomes
        if outcome.status is Status.CONFLICTED
        for file in outcome.files
        if file.status is Status.CONFLICTED
    }
