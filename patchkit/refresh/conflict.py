"""A conflict of a carried stack: the first one as a checkout is to hold it, what was decided about
such patches, and the resolutions that the project keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from patchkit.disk.files import files_in, read_given
from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.names import RESOLUTION_ENDING
from patchkit.model.objects import (
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    lines_of,
    make_object,
)
from patchkit.model.outcome import ConflictedFile, FileResult, PatchResult, Status
from patchkit.model.resolution import Resolution, format_resolution, parse_resolution
from patchkit.model.tree import ObjectSource, ObstructedError, Overlay, Tree
from patchkit.refresh.patch_plan import SeriesFolder
from patchkit.stack.build import SeriesPatch, StackBuilder, patch_changes
from patchkit.stack.patch_files import canonical_diffs
from patchkit.stack.series import LoadedPatch

if TYPE_CHECKING:  # a refresh that carries nothing does not load the engine
    from patchkit.carry.carried import CarriedFile, CarryReport, Generate

# What the lines of a conflict begin with; `=======` alone may be anybody's.
_MARKERS = (b"<<<<<<< upstream ", b"||||||| base ")


class Conflict(Struct, frozen=True):
    """The first patch that could not be carried, and the tree in which to resolve it.

    `tip` and `onto` are the commit and tree of what came before it. `worktree` is that tree with
    what could be carried of the patch, and markers; `index` the rows ("mode id stage") of the paths
    in conflict, `keys` tell each of these from others. `objects` are all that the new base lacks.
    `later` are patches on the same files. `flagged` are files beside it to look at, `unknown` says
    why no commits of upstream are named.
    """

    patch: LoadedPatch
    tip: CommitId
    onto: TreeId
    worktree: TreeId
    index: Mapping[str, tuple[str, ...]]
    files: tuple[ConflictedFile, ...]
    later: tuple[str, ...]
    objects: tuple[GitObject, ...]
    keys: Mapping[str, str]
    flagged: tuple[FileResult, ...] = ()
    unknown: str = ""


def first_conflict(
    source: ObjectSource, report: CarryReport, patches: Sequence[LoadedPatch]
) -> Conflict:
    """The conflict at which to stop."""
    at = next(i for i, each in enumerate(report.outcomes) if each.status is Status.CONFLICTED)
    patch, outcome = patches[at], report.outcomes[at]
    landed = [each for each in report.outcomes[:at] if each.commit and each.tree]
    tip = str(landed[-1].commit) if landed else report.new_base.commit
    onto = str(landed[-1].tree) if landed else report.new_base.tree
    files = report.conflicts.get(patch.name, ())
    written = list(report.stack.objects)
    worktree = _worktree(Tree(Overlay(source, written), onto), files, written)
    paths = {path for each in outcome.files for path in (each.path, each.carried_to) if path}
    return Conflict(
        patch,
        CommitId(tip),
        TreeId(onto),
        TreeId(worktree),
        {each.path: _stages(each) for each in files if not each.carried},
        _shown_files(outcome, files),
        tuple(each.name for each in patches[at + 1 :] if paths & _paths(each)),
        tuple(written),
        {each.path: each.key for each in files if not each.carried},
        tuple(each for each in outcome.files if each.review),
    )


def _shown_files(outcome: PatchResult, files: Sequence[CarriedFile]) -> tuple[ConflictedFile, ...]:
    """The files in conflict; of a patch that was not merged at all, as the outcome has them."""
    open_files = [each for each in files if not each.carried]
    if not open_files:
        failed = (each for each in outcome.files if each.status is Status.CONFLICTED)
        return tuple(ConflictedFile(each.path, each.reasons, marked=False) for each in failed)
    return tuple(
        ConflictedFile(
            each.path,
            each.outcome.reasons,
            _MARKERS[0] in (each.marked or b""),
            _upstream_lines(each.marked or b""),
            proposed=each.proposal is not None,
        )
        for each in open_files
    )


def _worktree(tree: Tree, files: Sequence[CarriedFile], written: list[GitObject]) -> str:
    """The id of the tree with all files; new objects are added to `written`."""
    for file in files:
        written += [file.blob] if file.blob is not None else []
        written += file.blobs
        entry = file.entry if file.carried else _shown(file, written)
        for gone in (file.leaves, file.path if entry is None else None):
            if gone is not None and tree.entry(gone) is not None:
                tree = tree.remove(gone)
        if entry is not None:
            try:
                tree = tree.put(file.path, entry)
            except ObstructedError:
                continue  # upstream has something else there; the index tells
    return tree.write(written)


def _upstream_lines(marked: bytes) -> frozenset[bytes]:
    """What upstream changed where it conflicts, of a file with markers."""
    upstream: set[bytes] = set()
    base: set[bytes] = set()
    into: set[bytes] | None = None
    for line in lines_of(marked):
        if line.startswith(_MARKERS[0]):
            into = upstream
        elif line.startswith(_MARKERS[1]) and into is upstream:
            into = base
        elif line.rstrip(b"\r") == b"=======" and into is base:
            into = None
        elif into is not None:
            into.add(line.strip())
    return frozenset((upstream ^ base) - {b""})


def _shown(file: CarriedFile, written: list[GitObject]) -> TreeEntry | None:
    """What stands at the path of a conflict: the file with markers, else upstream's, else ours."""
    _, here, after = file.sides
    if file.marked is None:
        return here or after
    blob = make_object("blob", file.marked)
    written.append(blob)
    kept = here or after
    return TreeEntry(kept.mode if kept is not None else 0o100644, blob.oid)


def _stages(file: CarriedFile) -> tuple[str, ...]:
    rows = enumerate(file.sides, 1)
    return tuple(f"{each.mode:o} {each.oid} {stage}" for stage, each in rows if each is not None)


def _paths(patch: LoadedPatch) -> set[str]:
    changes = patch_changes(patch.series_patch)
    return {path for each in changes for path in (each.old_path, each.new_path) if path}


# Decisions about patches that could not be carried. One counts only on the tree on which it was
# made (`onto`): where anything before it has changed, the patch is carried again.


_BY_HAND = "its conflict was resolved by hand"


class Decision(Struct, frozen=True):
    """A patch makes `tree` of the tree `onto`; or, where `tree` is None, it is left out.

    `offered` is the tree with the conflict, `keys` tell the conflict of each path from others.
    `flagged` are files that were merged beside it, and should be looked at. `proposed`: not left
    out, but carried with the merges that the conflict offers. `by` is the merger that decided, ""
    for a person.
    """

    onto: TreeId
    tree: TreeId | None
    offered: str = ""
    keys: Mapping[str, str] = {}
    flagged: tuple[FileResult, ...] = ()
    proposed: bool = False
    by: str = ""

    @property
    def leaves_out(self) -> bool:
        """Whether the patch is to leave the series."""
        return self.tree is None and not self.proposed

    @property
    def files(self) -> tuple[FileResult, ...]:
        """What there is to say of the patch's files."""
        by_hand = (
            FileResult(each, Status.MERGED, reasons=(_BY_HAND,))
            for each in self.keys
            if not self.by
        )
        return (*by_hand, *self.flagged)


def external_decisions(report: CarryReport) -> dict[str, Decision]:
    """What mergers beside the engine decided, of the patches that landed.

    As decisions they are not asked for again while the rest is resolved: another run may answer in
    another way.
    """
    found, onto = dict[str, Decision](), report.new_base.tree
    for outcome in report.outcomes:
        keys = report.external.get(outcome.name, {})
        if keys and outcome.tree is not None:
            by = ", ".join(sorted({each.merged_by for each in outcome.files if each.merged_by}))
            flagged = tuple(each for each in outcome.files if each.review)
            found[outcome.name] = Decision(
                onto, outcome.tree, str(outcome.tree), dict(keys), flagged, by=by
            )
        onto = outcome.tree or onto
    return found


class DecidedPatches(Struct, frozen=True):
    """Puts patches as they were decided; everything else is for `otherwise`.

    A decision about another tree than the one that is there is none.
    """

    decisions: Mapping[str, Decision]
    otherwise: Generate | None = None

    def __call__(self, builder: StackBuilder, patch: SeriesPatch) -> PatchResult | None:
        """The outcome of a decided patch, None for one that has to be carried."""
        decision = self.decisions.get(patch.name)
        if decision is None or decision.proposed or decision.onto != builder.tree_id:
            return self.otherwise(builder, patch) if self.otherwise is not None else None
        if decision.tree is None:
            return PatchResult(patch.name, Status.ABSORBED)
        tree = Tree(builder.source, decision.tree)
        return builder.place(patch, tree, (), Status.MERGED, decision.files)

    @property
    def left_out(self) -> frozenset[str]:
        """The patches that were left out."""
        return frozenset(name for name, each in self.decisions.items() if each.leaves_out)

    @property
    def take_proposals(self) -> frozenset[str]:
        """The patches whose conflicts are merged as is proposed."""
        return frozenset(name for name, each in self.decisions.items() if each.proposed)


# Resolutions that the project keeps: one file for each conflict in the folder `resolutions` beside
# the series, where a colleague or a CI job that carries the same patch over the same change of
# upstream finds it.


FOLDER = "resolutions"
# as much of the key as a file's name takes
_NAME = 16


def load_resolutions(home: SeriesFolder) -> dict[str, Resolution]:
    """Key -> resolution, of all that are beside the series; BadInputError for one that is none."""
    found = {}
    for path in files_in(home.folder / FOLDER, f"*{RESOLUTION_ENDING}"):
        where = path.relative_to(home.root).as_posix()
        resolution = parse_resolution(read_given(path, where, inside=home.root), where)
        found[resolution.key] = resolution
    return found


def new_resolutions(
    repository: Repository,
    source: ObjectSource,
    home: SeriesFolder,
    decisions: Mapping[str, Decision],
) -> dict[Path, bytes]:
    """The files to write for what was decided; `repository` takes trial objects.

    A decision that changes files beside those in conflict is not remembered: half of it would be
    wrong elsewhere.
    """
    files: dict[Path, bytes] = {}
    for patch, decision in decisions.items():
        if decision.tree is None:
            continue
        changes = tree_changes(repository, decision.offered, decision.tree)
        if {each.path for each in changes} - decision.keys.keys():
            continue
        for path, key in decision.keys.items():
            resolution, diff = _resolved(repository, source, decision, path)
            data = format_resolution(resolution, patch, path, diff)
            files[home.folder / FOLDER / f"{key[:_NAME]}{RESOLUTION_ENDING}"] = data
    return files


def _resolved(
    repository: Repository, source: ObjectSource, decision: Decision, path: str
) -> tuple[Resolution, bytes]:
    """What one conflict came to, and that as a diff on upstream's file."""
    before, after = Tree(source, decision.onto), Tree(source, str(decision.tree))
    upstream, result = before.entry(path), after.entry(path)
    alone = before
    if result is not None:
        alone = before.put(path, result)
    elif upstream is not None:
        alone = before.remove(path)
    written: list[GitObject] = []
    tree = alone.write(written)
    write_objects(repository, written)
    (diff,) = canonical_diffs(repository, [(decision.onto, tree)])
    return Resolution(decision.keys[path], upstream, result, (), "", decision.by), diff
