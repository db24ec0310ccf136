"""What became of a patch on a base: one vocabulary for apply, check, refresh and carry."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.model.objects import CommitId, TreeId


class Status(str, Enum):
    """The verdict on a patch or on one of its files, from best to worst."""

    UNCHANGED = "unchanged"  # every hunk at its recorded place
    SHIFTED = "shifted"  # every hunk exact, at least one at an offset
    MERGED = "merged"  # a three-way merge was needed
    REGENERATED = "regenerated"  # its recipe was run again
    ABSORBED = "absorbed"  # the base contains the change already
    EMPTY = "empty"  # nothing to do: the patch changes no file
    CONFLICTED = "conflicted"  # does not apply
    WAITING = "waiting"  # fails only because an earlier patch of the series is conflicted

    @property
    def applies(self) -> bool:
        """Whether the patch has a place in the resulting stack."""
        return not self.fails and self is not Status.ABSORBED

    @property
    def fails(self) -> bool:
        """Whether the patch has no place there, for whatever reason."""
        return self in (Status.CONFLICTED, Status.WAITING)


class Preimage(str, Enum):
    """Whether the blob that a file change was made against is the one that it met."""

    MATCHES = "matches"
    DIFFERS = "differs"
    UNKNOWN = "unknown"  # the patch has no usable index line


class Reason(str, Enum):
    """Why a file change does not apply."""

    CONTEXT = "context"  # a hunk's lines stand nowhere in the file
    MISSING = "missing"  # the file to change is not in the tree
    EXISTS = "exists"  # the file to add is in the tree already
    MODE = "mode"  # the file is of another type (symlink, submodule, directory)
    BINARY = "binary"  # a binary change whose base is another blob, or without payload
    UNSAFE = "unsafe"  # the path leaves the tree, enters .git, or goes through a symlink


class Clash(Struct, frozen=True):
    """One place where a patch does not fit.

    `line` is the line in the patch file; `hunk` the 1-based number of the hunk in its file change
    (0: the file change as a whole). `expected` are the preimage lines; `found` the lines that
    stand at the recorded place (`found_at`, 1-based), both without markers.
    """

    path: str  # as the patch names it
    reason: Reason
    line: int
    hunk: int = 0
    expected: tuple[bytes, ...] = ()
    found: tuple[bytes, ...] = ()
    found_at: int = 0
    detail: str = ""  # more words; "" for none


class Certainty(str, Enum):
    """How sure a merge is that git does not make, or that a check doubts (docs/carry.md)."""

    SURE = "sure"  # nothing speaks against the place or the order of its lines
    LOOK = "look"  # likely, but lines may stand in another order, or a check found something
    DOUBTFUL = "doubtful"  # as likely wrong as right: a merge of our own is only proposed


class UpstreamPart(Struct, frozen=True):
    """How much of what a change adds upstream added as well; blank lines do not count."""

    known: int  # added lines that are upstream
    added: int  # all lines that it adds
    commit: str = ""  # "ID subject" of the commit that brought them, if known

    @property
    def words(self) -> str:
        """How much it is."""
        by = f" ({self.commit})" if self.commit else ""
        return f"{self.known} of {self.added} added lines are upstream{by}"


class FileResult(Struct, frozen=True):
    """What became of one file of a patch on a base."""

    path: str  # as the patch names it
    status: Status  # the verdict on this file
    preimage: Preimage = Preimage.UNKNOWN  # is it the blob that the patch was made against?
    offsets: tuple[int, ...] = ()  # one for each hunk, in lines; 0: at its recorded place
    clashes: tuple[Clash, ...] = ()  # the places where it does not fit
    certainty: Certainty | None = None  # how sure it is; None where there is no question
    #: The shares of such files whose lines, and whose bytes, were right, 0 to 1; 0 of a conflict.
    confidence: float = 1.0
    same_bytes: float = 1.0
    reasons: tuple[str, ...] = ()  # what the certainty rests on, or why it is in conflict
    review: bool = False  # whether a person should look at it
    carried_to: str = ""  # its path on the new base, where that is another one
    remembered: str = ""  # the project's file by which its conflict was resolved
    waits_for: tuple[str, ...] = ()  # the earlier patches without which it cannot be carried
    merged_by: str = ""  # the merger beside the engine that settled its conflict
    absorbed_by: str = ""  # "ID subject" of the upstream commit with the same change, if known
    upstream: UpstreamPart | None = None  # of a conflict or a flagged file: how much upstream has


#: The shares of files of a word whose lines, and whose bytes, people came to (docs/carry.md): they
#: drop and rework many changes where git conflicts.
_RIGHT = {
    None: (1.0, 1.0),
    Certainty.SURE: (0.77, 0.72),
    Certainty.LOOK: (0.73, 0.56),
    Certainty.DOUBTFUL: (0.4, 0.33),
}


def judged(
    outcome: FileResult, certainty: Certainty | None, reasons: tuple[str, ...]
) -> FileResult:
    """The outcome with how sure it is, which is for review where a person has to look."""
    lines, same_bytes = _RIGHT[certainty]
    return replace(
        outcome,
        certainty=certainty,
        confidence=lines,
        same_bytes=same_bytes,
        reasons=reasons,
        review=certainty in (Certainty.LOOK, Certainty.DOUBTFUL),
    )


class Attention(str, Enum):
    """What a patch on a new pin asks of a reviewer, from most to least."""

    CONFLICTED = "conflicted"  # it does not fit
    WAITING = "waiting"  # it fails only because one before it is in conflict
    RESOLVED = "resolved"  # a person resolved its conflict, now or before
    FLAGGED = "flagged"  # merged or dropped without certainty, or its change is another one now
    CONTEXT = "context"  # the same change among other lines
    SHIFTED = "shifted"  # the same at other lines
    REGENERATED = "regenerated"  # its recipe was run again
    ABSORBED = "absorbed"  # the new pin contains it: it leaves the series
    LEFT_OUT = "left out"  # a person took it off the series
    UNCHANGED = "unchanged"  # not a byte


class Fate(Struct, frozen=True):
    """What became of a patch upstream, by which commit.

    `word` is "landed", "perhaps landed" (somebody should look), "landed differently" (by its commit
    or request, and it is needed all the same), "landed in part", "reverted" (upstream had it, and
    took it back) or "open".
    """

    word: str
    by: str = ""  # "ID subject"; "" where no commit is known

    @property
    def words(self) -> str:
        """Both."""
        return f"{self.word} by {self.by}" if self.by else self.word


class OfFiles:
    """What became of a patch, with a verdict on each of its `files`."""

    __slots__ = ()

    files: tuple[FileResult, ...]

    @property
    def absorbed_by(self) -> tuple[str, ...]:
        """The upstream commits, as "ID subject", that made the changes of absorbed files."""
        return tuple(dict.fromkeys(file.absorbed_by for file in self.files if file.absorbed_by))


class PatchResult(OfFiles, Struct, frozen=True):
    """What became of one patch on a base, whoever asks: apply, check, refresh, bump or carry."""

    name: str  # its file's name in the series
    status: Status  # the verdict on the whole patch
    files: tuple[FileResult, ...] = ()  # one for each file change, in the patch's order
    commit: CommitId | None = None  # its commit in the new stack; None unless it applies
    tree: TreeId | None = None  # the tree after it; None unless it applies
    attention: Attention | None = None  # what a bump asks of a reviewer; None of anything else
    fate: Fate | None = None  # of one that was carried; None where nothing ties it to upstream

    @property
    def clashes(self) -> tuple[Clash, ...]:
        """Every clash of every file, in the patch's order."""
        return tuple(clash for file in self.files for clash in file.clashes)

    @property
    def review(self) -> bool:
        """Whether a person should look at what became of it."""
        return any(file.review for file in self.files)

    @property
    def explained(self) -> bool:
        """Whether its files say why it asks for attention."""
        return any(each.review or each.reasons for each in self.files)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Of a WAITING patch, the conflicted ones that it waits for, in no order that counts."""
        names = (name for file in self.files for name in file.waits_for)
        return tuple(dict.fromkeys(names)) if self.status is Status.WAITING else ()

    @property
    def made_for_another_base(self) -> bool:
        """Whether it applies although at least one preimage blob is another one."""
        return self.status.applies and any(f.preimage is Preimage.DIFFERS for f in self.files)


class ConflictedFile(Struct, frozen=True):
    """A file in conflict."""

    not_in_json: ClassVar[frozenset[str]] = frozenset({"lines"})

    path: str  # where it is on the new base
    reasons: tuple[str, ...]  # why it could not be merged
    marked: bool  # whether it holds conflict markers; else it is decided by git add or rm
    lines: frozenset[bytes] = frozenset()  # what upstream changed there, without blanks around
    upstream: tuple[str, ...] = ()  # upstream's commits to look at, as "ID subject"
    proposed: bool = False  # whether there is a merge, likelier wrong than right, to be taken
