"""The values of carrying: the trees that a patch is carried between, what history is asked
(`Past`), what became of a file, a patch and a stack, how sure that is, and when it is taken for
safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from stat import S_ISLNK, S_ISREG
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.errors import advice
from patchkit.model.apply_changes import Blobs
from patchkit.model.line_diff import Edit
from patchkit.model.merging.regions import Doubt, Labels, Region, RegionResolution, Rule
from patchkit.model.merging.scopes import ELSEWHERE, UNCHECKED, misplaced
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.outcome import FileResult, PatchResult, Status
from patchkit.model.patch import FileChange, Header
from patchkit.model.resolution import Resolution
from patchkit.model.tree import Tree
from patchkit.stack.build import Base, SeriesPatch, Stack, StackBuilder

if TYPE_CHECKING:
    from patchkit.gitcmd.commit_history import ToldCommit
    from patchkit.model.merging.merge import FileMerge
    from patchkit.stack.patch_files import CommitChange

# How sure a merge is: measured on what maintainers did with the conflicts of real histories.
#
# Two numbers: that these lines stand at this place, and that the file is the same to the byte,
# which an order of two insertions or a blank line may change. Each is the share of files in which
# people came to just that, also counting those where they dropped or reworked the change
# (docs/carry.md has the tables). Maintainers decide for themselves, so even a merge that loses no
# line is far from certain: what is below `CERTAIN` is for a person to look at, and what is below
# `LIKELY` is no merge but a proposal.


#: From here on nobody needs to look.
CERTAIN = 0.95
#: Below it a merge of our own is likelier wrong than right.
LIKELY = 0.5


class Confidence(Struct, frozen=True):
    """From 0 to 1: how surely these lines at this place, and these very bytes."""

    lines: float  # that these lines stand at this place
    same_bytes: float  # that the file is the same to the byte

    def times(self, other: Confidence) -> Confidence:
        """Both at once, as if they had nothing to do with each other."""
        return Confidence(
            round(self.lines * other.lines, 2), round(self.same_bytes * other.same_bytes, 2)
        )

    def least(self, other: Confidence) -> Confidence:
        """The lesser of each."""
        return Confidence(min(self.lines, other.lines), min(self.same_bytes, other.same_bytes))


SURE = Confidence(1.0, 1.0)

_CLEAN = Confidence(0.99, 0.99)
_BY_RULE = {
    Rule.CLEAN: _CLEAN,
    Rule.CONTAINED: Confidence(0.5, 0.48),  # some of it: what is left was mostly rewritten, too
    Rule.MOVED: Confidence(0.56, 0.42),
    Rule.BESIDE: Confidence(0.56, 0.42),
    Rule.BOTH_INSERT: Confidence(0.7, 0.44),
    Rule.WORDS: Confidence(0.46, 0.41),
}
_BESIDE_REWRITTEN = Confidence(0.6, 0.44)
_SHORT_INSERTION = Confidence(0.77, 0.56)  # of a few lines only, mostly entries of a list
_SHORT = 3
# Nothing of the change is left to put in: upstream has it.
_ABSORBED = Confidence(0.86, 0.84)

# Both sides moved the newline at the end of the file: the lines are plain, it is not.
_LAST_NEWLINE = Confidence(0.9, 0.4)

# Each further place that our rules settle in a file: upstream worked there. A further insertion
# says little of the lines, and much of the bytes: its order is open, too.
_FURTHER_PLACE = Confidence(0.9, 0.86)
_FURTHER_INSERTION = Confidence(0.92, 0.45)
_DOUBTED = {
    Doubt.UPSTREAM_HAS_MOST: Confidence(0.78, 0.64),
    Doubt.UPSTREAM_HAS_A_HUNK: Confidence(0.68, 0.68),
    Doubt.NAME_GONE: Confidence(0.7, 0.74),
    Doubt.UNBOUND: Confidence(0.48, 0.58),
}
# A name that upstream took away with the neighbour that it rewrote: less than one that is gone
# though nothing was rewritten here.
_NAME_REWRITTEN = Confidence(0.84, 0.74)
# The same of git's own merge, where nothing else speaks against it.
_CLEAN_DOUBTED = _DOUBTED | {
    Doubt.UPSTREAM_HAS_MOST: Confidence(0.75, 0.75),
    Doubt.NAME_GONE: Confidence(0.75, 0.75),
    Doubt.UNBOUND: Confidence(0.5, 0.5),
    Doubt.UNCHECKED: Confidence(0.5, 0.5),
    Doubt.DOES_NOT_PARSE: Confidence(0, 0),
    Doubt.DEFINED_TWICE: Confidence(0.5, 0.5),
}


# What a score is worth: (up to this score, which share of files was right). Monotone steps of at
# least 200 files, fitted by `python -m bench.carry.calibrate` to 3,059 files of the 24 histories
# that docs/carry.md names, with how right each is by a table of the others.
_LINES = ((0.49, 0.37), (0.71, 0.58), (0.8, 0.71), (0.9, 0.86))
_BYTES = ((0.29, 0.22), (0.41, 0.36), (0.56, 0.49), (0.84, 0.83))


def confidence_of(merge: FileMerge) -> Confidence:
    """How often files of such a score were right."""
    return worth_of(score_of(merge))


def worth_of(score: Confidence) -> Confidence:
    """How often files of a score were right; from `LIKELY` on it stays so, and below it below.

    Bytes are right where lines are, so never surer than those.
    """
    lines = _worth(_LINES, score.lines)
    return Confidence(lines, min(lines, _worth(_BYTES, score.same_bytes)))


def _worth(steps: Sequence[tuple[float, float]], score: float) -> float:
    return next((share for most, share in steps if score <= most), score)


def score_of(merge: FileMerge) -> Confidence:
    """The score of a merged file: that of its least certain place, less for each other one."""
    if merge.absorbed:
        return _CLEAN if merge.clean else _ABSORBED
    settled = [(region, each) for region, each in merge.steps if each is not None]
    ours = [(region, each) for region, each in settled if each.rule is not Rule.CLEAN]
    result = _CLEAN if merge.clean or ours else _LAST_NEWLINE
    for region, resolution in ours:
        result = result.least(_place(region, resolution))
    insertions = sum(each.rule is Rule.BOTH_INSERT for _, each in ours)
    others = len(ours) - insertions
    for _ in range(insertions if others else insertions - 1):
        result = result.times(_FURTHER_INSERTION)
    for _ in range(others - 1):
        result = result.times(_FURTHER_PLACE)
    factors = _CLEAN_DOUBTED if merge.clean else _DOUBTED
    if any(Doubt.REWRITTEN in each.doubts for _, each in ours):
        factors = factors | {Doubt.NAME_GONE: _NAME_REWRITTEN}
    for doubt in merge.doubts:
        result = result.times(factors.get(doubt, SURE))
    return result


def _place(region: Region, resolution: RegionResolution) -> Confidence:
    if resolution.rule is Rule.BOTH_INSERT:
        added = sum(bool(line.strip()) for line in region.patch)
        return _SHORT_INSERTION if added <= _SHORT else _BY_RULE[Rule.BOTH_INSERT]
    if Doubt.REWRITTEN in resolution.doubts:
        return _BESIDE_REWRITTEN
    return _BY_RULE[resolution.rule]


#: Puts a patch that is made from a recipe onto what is built so far; None: it is an ordinary one.
Generate: TypeAlias = Callable[[StackBuilder, SeriesPatch], PatchResult | None]


class Past(Protocol):
    """What upstream's history tells about the range from the old base to the new one.

    What answers itself here knows nothing.
    """

    def renamed(self, path: str) -> str | None:
        """Where a file of the old base is on the new one; None if it was not renamed."""
        return None

    def folder_renamed(self, folder: str) -> str | None:
        """Where most files of a folder of the old base are on the new one."""
        return None

    def goes_back(self) -> bool:
        """Whether the new base is an ancestor of the old one."""
        return False

    def deleted_by(self, path: str) -> str:
        """The commit that took the file away, as "ID subject"; "" if it is not known."""
        return ""

    def since(self, paths: Sequence[str], holds: Callable[[bytes | None], bool]) -> str:
        """The commit since which something holds of a file up to the new base, as "ID subject".

        It holds at that commit and not at its parents. The file is at the first of `paths` that is
        there; `holds` gets its contents, None for no file. "" where that is not known, and where
        nothing between the bases made it so.
        """
        return ""

    def lacks(self, paths: Sequence[str], holds: Callable[[bytes | None], bool]) -> str:
        """The commit of the old base, as "without ID subject", since which something does not hold.

        For a new base on another branch, which lacks it; "" otherwise.
        """
        return ""

    def changed_by(self, path: str) -> tuple[str, ...]:
        """The last commits that changed the file, newest first, as "ID subject"."""
        return ()

    def same_change(
        self, named: tuple[str, ...], header: Header | None = None
    ) -> Sequence[ToldCommit]:
        """The commits that may have made a patch's very change, newest first.

        They are among `named` (ids, in full or short), or have its author and date, or its subject,
        if that is more than two words, or came by a request that its header names.
        """
        return ()

    def paths_of(self, commit: str) -> Collection[str]:
        """The paths that a commit changes."""
        return ()

    def lines_of(self, commit: str) -> Mapping[str, Sequence[bytes]]:
        """Path -> the lines of a commit's hunks, with marker; nothing where files are not here."""
        return {}

    def versions(self, path: str) -> Sequence[tuple[str, bytes]]:
        """("ID subject", contents) of a file after each commit that changed it, oldest first.

        Nothing where they are too many to look at, or not here.
        """
        return ()


class NoPast(Past):
    """There is no history at hand."""


class MergeRequest(Struct, frozen=True):
    """A file in conflict: its three texts, and what is known of them.

    `marked` is the file with conflict markers; `reasons` say why it is in conflict, `commits` are
    those of upstream that changed the file between the bases, newest first, as "ID subject".
    """

    path: str  # as the patch names it on the new base
    base: bytes
    upstream: bytes
    patched: bytes  # the file as the patch makes it on the old base
    marked: bytes
    reasons: tuple[str, ...]
    commits: tuple[str, ...]


class MergerAnswer(Struct, frozen=True):
    """What a merger made of a file, None with a `problem` where it made nothing."""

    name: str  # the merger's, of the manifest
    data: bytes | None = None  # the file's new bytes
    problem: str = ""


#: Answers a request for a patch; None where it has nothing to do with such files.
Merger: TypeAlias = Callable[[SeriesPatch, MergeRequest], MergerAnswer | None]


#: Carries one change of a patch, as `carry_change` does; the last is what it was on the old base.
CarryOne: TypeAlias = Callable[[SeriesPatch, "CarryContext", FileChange, FileResult], "CarriedFile"]


class CarryOptions(Struct, frozen=True):
    """What a carry goes by, beside the patches and the two bases."""

    generate: Generate | None = None  # asked first for each patch; None from it: carry the patch
    past: Past | None = None  # what is known of upstream between the bases; None follows no renames
    careful: bool = False  # what would be flagged for review is a conflict
    remembered: Mapping[str, Resolution] = field(default_factory=dict)  # by the conflict's key
    patch_first: bool = False  # see CarryContext
    #: Names of patches: those that conflict are left out for good, up to the first conflict of
    #: another one; later ones are carried as if they had never been there.
    leave_out: Collection[str] = ()
    take_proposals: Collection[str] = ()  # patches whose merges are taken, likelier wrong or not
    #: The patches that come in from elsewhere, by name, with what they do where they were made; the
    #: others are made for the new base already. Empty: all were made for the old base, in order.
    made_on: Mapping[str, CommitChange] = field(default_factory=dict)
    merger: Merger | None = None  # asked about each file that would be in conflict (`external.py`)
    #: For whoever carries to many bases and remembers; then neither are contents gathered, nor is
    #: upstream's history asked who made the same change.
    carry_one: CarryOne | None = None


class CarriedFile(Struct, frozen=True, omit_defaults=True):
    """One file of a patch, carried.

    `entry` stands at `path` afterwards, nothing if it is None; `leaves` is another path that the
    change vacates. `blob` is a new object for `entry`. In a conflict `entry` is None, and
    `marked` the file with conflict markers where there is one to show; `sides` are what the old
    base, the new one and the patch have there, `blobs` objects that the new base may lack, `key`
    what tells this conflict from others. `proposal` is what a conflict could be merged to, if a
    person says so.
    """

    outcome: FileResult  # what there is to say of it
    path: str
    entry: TreeEntry | None = None
    blob: GitObject | None = None
    leaves: str | None = None
    marked: bytes | None = None
    sides: tuple[TreeEntry | None, TreeEntry | None, TreeEntry | None] = (None, None, None)
    blobs: tuple[GitObject, ...] = ()
    key: str = ""
    proposal: GitObject | None = None
    taken_for: TreeEntry | None = None  # what later patches take a conflict for, if that is known

    @property
    def carried(self) -> bool:
        """Whether it is through."""
        return self.outcome.status is not Status.CONFLICTED


class CarryReport(Struct, frozen=True):
    """What became of a stack on a new base; `stack` holds what landed there.

    `conflicts` has all files of each patch that did not come through. `external` has, per patch,
    the keys of the conflicts that a merger beside the engine settled, by path.
    """

    old_base: Base  # the base that the patches were for
    new_base: Base  # the base that they were carried to
    stack: Stack
    conflicts: Mapping[str, tuple[CarriedFile, ...]] = field(default_factory=dict)
    #: Patches that were left out, each with the tree that it does not fit.
    left_out: Mapping[str, str] = field(default_factory=dict)
    external: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def outcomes(self) -> tuple[PatchResult, ...]:
        """One outcome per patch, in the order of the series."""
        return self.stack.outcomes

    @property
    def clean(self) -> bool:
        """Whether nothing is left for a person to do before the stack is whole."""
        return not any(each.status.fails for each in self.outcomes)


# One file of a patch on its way: where it starts, and the results that every rule ends with.


_NOT_SURE = Confidence(0.0, 0.0)
#: A merge by a program beside the engine: nobody has measured it.
EXTERNAL = Confidence(0.5, 0.5)


class CarryContext(Struct, frozen=True):
    """The trees that a patch is carried between: old base, old base with it, new base so far.

    `careful`: what is not certain is a conflict. `patch_first`: of two insertions at one point the
    patch's comes first, as in a merge of upstream into the patch's branch. `take_proposals`: a
    merge that is likelier wrong than right is a result all the same. `merger` is asked about files
    in conflict.
    """

    before: Tree  # the old stack without the patch
    after: Tree  # the old stack with the patch
    here: Tree  # the new stack so far
    old_blobs: Blobs  # contents of the old stack's files
    blobs: Blobs  # contents of the new stack's files
    past: Past  # what upstream's history tells
    careful: bool
    labels: Labels  # how conflict markers name the sides
    #: Resolutions by the key of their conflict.
    remembered: Mapping[str, Resolution] = field(default_factory=dict)
    patch_first: bool = False
    take_proposals: bool = False
    merger: Callable[[MergeRequest], MergerAnswer | None] | None = None


class PatchSide(Enum):
    """What a patch does to a file."""

    ADDS = "adds"
    DELETES = "deletes"
    CHANGES = "changes"  # its contents, with its mode or path perhaps
    MOVES = "moves"  # its mode or path only


class UpstreamSide(Enum):
    """What the new base has where the patch's file is, or comes to be."""

    NOTHING = "nothing"
    OLD = "old"  # the old base's contents
    PATCHED = "patched"  # what the patch makes of it
    OTHER = "other"


class FileSides(Struct, frozen=True):
    """One file of a patch: its entries on the old base, patched there, and on the new base.

    `exact` is what applying the change as it is comes to; `place` where the new base has the file,
    `renamed` whether only upstream took it there.
    """

    context: CarryContext  # the trees that it is carried between
    change: FileChange  # what the patch does to the file
    exact: FileResult
    place: str
    renamed: bool
    before: TreeEntry | None  # on the old base, without the patch
    after: TreeEntry | None  # on the old base, with it
    here: TreeEntry | None  # on the new base so far

    @property
    def does(self) -> PatchSide:
        """What the patch does to it."""
        if self.before is None:
            return PatchSide.ADDS
        if self.after is None:
            return PatchSide.DELETES
        return PatchSide.MOVES if self.before.oid == self.after.oid else PatchSide.CHANGES

    @property
    def has(self) -> UpstreamSide:
        """What upstream has there; a file where the path has a folder is another one."""
        if self.here is None:
            blocked = self.before is None and self.context.here.leaf_above(self.place) is not None
            return UpstreamSide.OTHER if blocked else UpstreamSide.NOTHING
        if self.before is None:
            return UpstreamSide.PATCHED if self.here == self.after else UpstreamSide.OTHER
        if self.here.oid == self.before.oid:
            return UpstreamSide.OLD
        same = self.after is not None and self.here.oid == self.after.oid
        return UpstreamSide.PATCHED if same else UpstreamSide.OTHER

    @property
    def target(self) -> str:
        """Where the result goes."""
        moves = self.change.new_path != self.change.old_path
        return str(self.change.new_path) if moves else self.place

    @property
    def leaves(self) -> str | None:
        """The path that the file vacates, if the patch moves it."""
        return self.place if self.target != self.place else None

    @property
    def entries(self) -> tuple[TreeEntry, TreeEntry, TreeEntry]:
        """Before, here, after, of a file that all three have."""
        assert self.before is not None
        assert self.here is not None
        assert self.after is not None
        return self.before, self.here, self.after

    @property
    def mode(self) -> int | None:
        """The three-way merge of the modes; None where both changed it, each to another one."""
        before, here, after = (each.mode for each in self.entries)
        if here == before:
            return after
        return here if after in (before, here) else None

    @property
    def texts(self) -> tuple[bytes, bytes, bytes]:
        """The contents: before, here, after."""
        old, new = self.context.old_blobs, self.context.blobs
        before, here, after = (each.oid for each in self.entries)
        return old.contents(before), new.contents(here), old.contents(after)


def judged(outcome: FileResult, sure: Confidence, reasons: tuple[str, ...]) -> FileResult:
    """The outcome with how sure it is; what is not certain is for review."""
    return replace(
        outcome,
        confidence=sure.lines,
        same_bytes=sure.same_bytes,
        reasons=reasons,
        review=sure.lines < CERTAIN,
    )


#: What is left of the confidence where lines are in another scope.
ANOTHER_SCOPE = Confidence(ELSEWHERE, ELSEWHERE)


def in_other_scopes(it: FileSides, data: bytes, edits: Sequence[Edit]) -> tuple[str, ...]:
    """Which lines of a result, to which `edits` lead from upstream's file, are in another scope
    than the one that they were made in.
    """
    before, here, after = it.texts
    found = advice(misplaced, it.target, (before, after), (here, data), edits)
    return (UNCHECKED,) if found is None else tuple(map(str, found))


def doubted(outcome: FileResult, said: tuple[str, ...]) -> FileResult:
    """The outcome; for review if there is something to say of the places of its lines."""
    if not said:
        return outcome
    sure = Confidence(outcome.confidence, outcome.same_bytes).times(ANOTHER_SCOPE)
    return judged(outcome, sure, (*said, *outcome.reasons))


def doubted_as(outcome: FileResult, before: FileResult) -> FileResult:
    """What was odd on the old base stays so; what is on the new one the two files show."""
    return replace(
        outcome,
        review=before.review,
        confidence=before.confidence,
        same_bytes=before.same_bytes,
        reasons=before.reasons,
    )


def accepted(context: CarryContext, carried: CarriedFile) -> CarriedFile:
    """The result, or a conflict if it is not certain and the user wants only what is."""
    if not (context.careful and carried.outcome.review):
        return carried
    outcome = _in_conflict(carried.outcome, carried.outcome.reasons)
    return CarriedFile(outcome, carried.path, marked=carried.marked)


def conflict(exact: FileResult, path: str, *reasons: str) -> CarriedFile:
    """The file as a conflict, for these reasons."""
    return CarriedFile(_in_conflict(exact, reasons), path)


def _in_conflict(outcome: FileResult, reasons: tuple[str, ...]) -> FileResult:
    status = judged(replace(outcome, status=Status.CONFLICTED), _NOT_SURE, reasons)
    return replace(status, review=False)


def blob_of(blobs: Blobs, entry: TreeEntry) -> GitObject | None:
    """The object of an entry, which the other side may not have."""
    holds_bytes = S_ISREG(entry.mode) or S_ISLNK(entry.mode)
    return make_object("blob", blobs.contents(entry.oid)) if holds_bytes else None
