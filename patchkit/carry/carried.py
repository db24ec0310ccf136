"""The values of carrying: the trees that a patch is carried between, what history is asked
(`Past`), what became of a file, a patch and a stack, and when a result is taken for safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.model.apply_changes import Blobs
from patchkit.model.line_diff import Edit
from patchkit.model.merging.confidence import CERTAIN
from patchkit.model.merging.markers import Labels
from patchkit.model.merging.scopes import ELSEWHERE, misplaced
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.outcome import FileOutcome, PatchOutcome, Status
from patchkit.model.patch import FileChange
from patchkit.model.resolution import Resolution
from patchkit.model.tree import Tree
from patchkit.stack.build import Base, SeriesPatch, Stack, StackBuilder

#: Puts a patch that is made from a recipe onto what is built so far; None: it is an ordinary one.
Generate: TypeAlias = Callable[[StackBuilder, SeriesPatch], PatchOutcome | None]


class Past(Protocol):
    """What upstream's history tells about the range from the old base to the new one."""

    def renamed(self, path: str) -> str | None:
        """Where a file of the old base is on the new one; None if it was not renamed."""

    def folder_renamed(self, folder: str) -> str | None:
        """Where most files of a folder of the old base are on the new one."""

    def deleted_by(self, path: str) -> str:
        """The commit that took the file away, as "ID subject"; "" if it is not known."""

    def removed_by(self, path: str, line: bytes) -> str:
        """The last commit that took the line out of the file, as "ID subject"; "" if unknown."""

    def written_by(self, commit: str, like: str) -> tuple[str, ...]:
        """The files that a commit, as "ID subject", added or changed, of the kind of `like`."""

    def brought_by(self, path: str, line: bytes) -> str:
        """The commit that brought a line into the file, as "ID subject"; "" if it is not known."""

    def changed_by(self, path: str) -> tuple[str, ...]:
        """The last commits that changed the file, newest first, as "ID subject"."""


class NoPast:
    """A Past that knows nothing: there is no history at hand."""

    def renamed(self, path: str) -> str | None:
        """See Past."""
        return None

    def folder_renamed(self, folder: str) -> str | None:
        """See Past."""
        return None

    def deleted_by(self, path: str) -> str:
        """See Past."""
        return ""

    def removed_by(self, path: str, line: bytes) -> str:
        """See Past."""
        return ""

    def written_by(self, commit: str, like: str) -> tuple[str, ...]:
        """See Past."""
        return ()

    def brought_by(self, path: str, line: bytes) -> str:
        """See Past."""
        return ""

    def changed_by(self, path: str) -> tuple[str, ...]:
        """See Past."""
        return ()


class Besides(Struct, frozen=True):
    """A further file that a change comes to change, where upstream split one into several."""

    path: str
    entry: TreeEntry
    blob: GitObject


class CarriedFile(Struct, frozen=True):
    """One file of a patch, carried.

    `entry` stands at `path` afterwards, nothing if it is None; `leaves` is another path that the
    change vacates. `blob` is a new object for `entry`. In a conflict `entry` is None, and
    `marked` the file with conflict markers where there is one to show; `sides` are what the old
    base, the new one and the patch have there, `blobs` objects that the new base may lack, `key`
    what tells this conflict from others. `split`: upstream took the file apart, or a part of it
    away, and `besides` are further files that have its code now.
    """

    outcome: FileOutcome
    path: str
    entry: TreeEntry | None = None
    blob: GitObject | None = None
    leaves: str | None = None
    marked: bytes | None = None
    sides: tuple[TreeEntry | None, TreeEntry | None, TreeEntry | None] = (None, None, None)
    blobs: tuple[GitObject, ...] = ()
    key: str = ""
    split: bool = False
    besides: tuple[Besides, ...] = ()

    @property
    def carried(self) -> bool:
        """Whether it is through."""
        return self.outcome.status is not Status.CONFLICTED


#: Path -> contents (None: no file there) of what was carried of a patch, also if not all was.
PartialResult: TypeAlias = Mapping[str, bytes | None]


class CarryReport(Struct, frozen=True):
    """What became of a stack on a new base; `stack` holds what landed there.

    `carried` has, per patch, the files that came through, whether or not the whole patch did;
    `marked` the contents with conflict markers of those that did not. `conflicts` has all files of
    each patch that did not.
    """

    old_base: Base
    new_base: Base
    stack: Stack
    carried: Mapping[str, PartialResult] = field(default_factory=dict)
    marked: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[CarriedFile, ...]] = field(default_factory=dict)

    @property
    def outcomes(self) -> tuple[PatchOutcome, ...]:
        """One outcome per patch, in the order of the series."""
        return self.stack.outcomes

    @property
    def clean(self) -> bool:
        """Whether nothing is left for a person to do before the stack is whole."""
        return not any(each.status.fails for each in self.outcomes)


# One file of a patch on its way: where it starts, and the results that every rule ends with.


TYPE = 0o170000
REGULAR = 0o100000


class Ground(Struct, frozen=True):
    """The trees that a patch is carried between: old base, old base with it, new base so far."""

    before: Tree
    after: Tree
    here: Tree
    old_blobs: Blobs
    blobs: Blobs
    past: Past
    careful: bool
    labels: Labels
    remembered: Mapping[str, Resolution] = field(default_factory=dict)


class Change(Struct, frozen=True):
    """A changed file: its entries on the old base, patched there, and on the new base."""

    ground: Ground
    change: FileChange
    exact: FileOutcome
    place: str
    before: TreeEntry
    after: TreeEntry
    here: TreeEntry

    @property
    def target(self) -> str:
        """Where the result goes."""
        moves = self.change.new_path != self.change.old_path
        return str(self.change.new_path) if moves else self.place

    @property
    def texts(self) -> tuple[bytes, bytes, bytes]:
        """The contents: before, here, after."""
        old, new = self.ground.old_blobs, self.ground.blobs
        return (
            old.contents(self.before.oid),
            new.contents(self.here.oid),
            old.contents(self.after.oid),
        )


def judged(outcome: FileOutcome, confidence: float, reasons: tuple[str, ...]) -> FileOutcome:
    """The outcome with how sure it is; what is not certain is for review."""
    review = confidence < CERTAIN
    return replace(outcome, confidence=confidence, reasons=reasons, review=review)


def placed_well(
    it: Change, outcome: FileOutcome, data: bytes, edits: Sequence[Edit]
) -> FileOutcome:
    """The outcome; for review if lines are in another scope than the one they were made in.

    `data` is the result, to which `edits` lead from upstream's file.
    """
    before, here, after = it.texts
    found = misplaced(it.target, (before, after), (here, data), edits)
    said = (*map(str, found), *(it.exact.reasons if it.exact.review else ()))
    if not said:
        return outcome
    return judged(outcome, round(outcome.confidence * ELSEWHERE, 2), (*said, *outcome.reasons))


def doubted_as(outcome: FileOutcome, before: FileOutcome) -> FileOutcome:
    """What was odd on the old base stays so; what is on the new one the two files show."""
    return replace(
        outcome, review=before.review, confidence=before.confidence, reasons=before.reasons
    )


def accepted(ground: Ground, carried: CarriedFile) -> CarriedFile:
    """The result, or a conflict if it is not certain and the user wants only what is."""
    if not (ground.careful and carried.outcome.review):
        return carried
    outcome = replace(carried.outcome, status=Status.CONFLICTED, review=False)
    return CarriedFile(outcome, carried.path, marked=carried.marked)


def conflict(exact: FileOutcome, path: str, *reasons: str) -> CarriedFile:
    """The file as a conflict, for these reasons."""
    outcome = replace(
        exact, status=Status.CONFLICTED, confidence=0.0, reasons=reasons, review=False
    )
    return CarriedFile(outcome, path)


def blob_of(blobs: Blobs, entry: TreeEntry) -> GitObject | None:
    """The object of an entry, which the other side may not have."""
    if entry.mode & TYPE not in (REGULAR, 0o120000):
        return None
    return make_object("blob", blobs.contents(entry.oid))
