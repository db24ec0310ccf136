"""The values of carrying: the trees that a patch is carried between, what history is asked
(`Past`), what became of a file, a patch and a stack, how sure that is, and when it is taken for
safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from functools import partial
from stat import S_ISLNK, S_ISREG
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import advice
from patchkit.model.apply_changes import Blobs
from patchkit.model.line_diff import Edit
from patchkit.model.merging.regions import Doubt, Labels, Rule
from patchkit.model.merging.scopes import UNCHECKED, misplaced
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.outcome import Certainty, FileResult, PatchResult, Status, judged
from patchkit.model.patch import FileChange, Header
from patchkit.model.resolution import Resolution
from patchkit.model.tree import Tree
from patchkit.stack.build import Base, SeriesPatch, Stack, StackBuilder

if TYPE_CHECKING:
    from patchkit.gitcmd.commit_history import ToldCommit
    from patchkit.model.merging.merge import FileMerge
    from patchkit.stack.patch_files import CommitChange

# How sure a merge is, in one of three words, held to what people did with the conflicts of real
# histories (docs/carry.md): of the files whose change they kept nearly all that are sure were the
# same to the byte. Where the order of lines is open, or a check found something, a person has to
# look; where more speaks against it a merge of our own is only proposed.

_MANY = 3  # places in a file that are not just insertions: upstream worked there


def certainty_of(merge: FileMerge) -> Certainty | None:
    """How sure a merged file is; None of git's own merge where nothing speaks against it."""
    ours = [step for _, step in merge.steps if step is not None and step.rule is not Rule.CLEAN]
    rules = Counter(step.rule for step in ours)
    many = rules.total() - rules[Rule.BOTH_INSERT] >= _MANY
    grave = any(doubt.forbids or doubt is Doubt.UNBOUND for doubt in merge.doubts)
    if many or grave or len(merge.doubts) > 1 or rules[Rule.WORDS] or rules[Rule.MOVED]:
        return Certainty.DOUBTFUL
    if merge.clean and not merge.doubts:
        return None
    is_open = any(step.open_place for step in ours) or rules[Rule.CONTAINED] or not ours
    return Certainty.LOOK if merge.doubts or is_open else Certainty.SURE


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

    @property
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
        self, named: tuple[str, ...], header: Header, *, before: bool = False
    ) -> Sequence[ToldCommit]:
        """The commits that may have made a patch's very change, newest first.

        They are among `named` (ids, in full or short), or have its author and date, or its subject,
        if that is more than two words, or came by a request that its header names. Where none does,
        they name such a request or commit below their subject. With `before` not those of the range
        alone are looked at, but the last thousands up to it as well.
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
    remembered: Mapping[str, Resolution] = {}  # by the conflict's key
    patch_first: bool = False  # see CarryContext
    #: Names of patches: those that conflict are left out for good, up to the first conflict of
    #: another one; later ones are carried as if they had never been there.
    leave_out: Collection[str] = ()
    take_proposals: Collection[str] = ()  # patches whose merges are taken, likelier wrong or not
    #: The patches that come in from elsewhere, by name, with what they do where they were made; the
    #: others are made for the new base already. Empty: all were made for the old base, in order.
    made_on: Mapping[str, CommitChange] = {}
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
    conflicts: Mapping[str, tuple[CarriedFile, ...]] = {}
    #: Patches that were left out, each with the tree that it does not fit.
    left_out: Mapping[str, str] = {}
    external: Mapping[str, Mapping[str, str]] = {}

    @property
    def outcomes(self) -> tuple[PatchResult, ...]:
        """One outcome per patch, in the order of the series."""
        return self.stack.outcomes

    @property
    def clean(self) -> bool:
        """Whether nothing is left for a person to do before the stack is whole."""
        return not any(each.status.fails for each in self.outcomes)


# One file of a patch on its way: where it starts, and the results that every rule ends with.


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
    remembered: Mapping[str, Resolution] = {}
    patch_first: bool = False
    take_proposals: bool = False
    merger: Callable[[MergeRequest], MergerAnswer | None] | None = None
    explains: bool = True  # whether a merge says its reasons


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


def in_other_scopes(it: FileSides, data: bytes, edits: tuple[Edit, ...]) -> tuple[str, ...]:
    """Which lines of a result, to which `edits` lead from upstream's file, are in another scope
    than the one that they were made in.
    """
    before, here, after = it.texts
    check = partial(misplaced, path=it.target, edits=edits)
    found = advice(check, before, after, here, data)
    if found is None:
        return (UNCHECKED,)
    return tuple(f"{place}: see that it belongs there" for place in found)


def doubted(outcome: FileResult, said: tuple[str, ...]) -> FileResult:
    """The outcome; to look at, if it is not doubtful anyway, where there is something to say of
    the places of its lines.
    """
    if not said:
        return outcome
    doubtful = outcome.certainty is Certainty.DOUBTFUL
    certainty = Certainty.DOUBTFUL if doubtful else Certainty.LOOK
    return judged(outcome, certainty, (*said, *outcome.reasons))


def doubted_as(outcome: FileResult, before: FileResult) -> FileResult:
    """What was odd on the old base stays so; what is on the new one the two files show."""
    return replace(
        outcome,
        review=before.review,
        certainty=before.certainty,
        confidence=before.confidence,
        same_bytes=before.same_bytes,
        reasons=before.reasons,
    )


def accepted(context: CarryContext, carried: CarriedFile) -> CarriedFile:
    """The result, or a conflict if it is not certain and the user wants only what is."""
    outcome = carried.outcome
    if not (context.careful and (outcome.review or outcome.certainty is not None)):
        return carried
    outcome = _in_conflict(outcome, outcome.reasons)
    return CarriedFile(outcome, carried.path, marked=carried.marked)


def conflict(exact: FileResult, path: str, *reasons: str) -> CarriedFile:
    """The file as a conflict, for these reasons."""
    return CarriedFile(_in_conflict(exact, reasons), path)


def _in_conflict(outcome: FileResult, reasons: tuple[str, ...]) -> FileResult:
    status = judged(replace(outcome, status=Status.CONFLICTED), None, reasons)
    return replace(status, confidence=0.0, same_bytes=0.0)


def has_lines(lines: bytes, data: bytes | None) -> bool:
    """Whether a version of a file has some lines in one piece."""
    return lines in (data or b"")


def blob_of(blobs: Blobs, entry: TreeEntry) -> GitObject | None:
    """The object of an entry, which the other side may not have."""
    holds_bytes = S_ISREG(entry.mode) or S_ISLNK(entry.mode)
    return make_object("blob", blobs.contents(entry.oid)) if holds_bytes else None
