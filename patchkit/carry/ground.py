"""What a patch is carried between, and what every way to carry a file of it ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.carry.values import CarriedFile, Past
from patchkit.model.apply import Blobs
from patchkit.model.enclosing import ELSEWHERE, misplaced
from patchkit.model.linediff import Edit
from patchkit.model.merging.confidence import CERTAIN
from patchkit.model.merging.conflicts import Labels
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.outcome import FileOutcome, Status
from patchkit.model.patch import FileChange
from patchkit.model.resolution import Resolution
from patchkit.model.tree import Tree

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
