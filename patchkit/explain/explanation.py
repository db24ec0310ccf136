"""Why a patch does not fit, as values: what `explain_stack` finds, what reports print."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from msgspec import Struct

from patchkit.model.objects import CommitId
from patchkit.model.outcome import Preimage, Reason
from patchkit.model.similarity import SimilarLines


class Cause(str, Enum):
    """What stands in a hunk's way, as far as one can tell."""

    CONTAINED = "contained"  # its result stands in the file already
    LINE_ENDS = "line-ends"  # the same lines, with other line ends
    WHITESPACE = "whitespace"  # the same lines but for blanks
    REWORDED = "reworded"  # every line that differs differs by a renaming seen throughout
    CHANGED = "changed"  # its lines are there, some of them are others now
    MOVED = "moved"  # its lines are in another file
    GONE = "gone"  # nothing like its lines was found
    ANCHORED = "anchored"  # it must stand at the start or end of the file, and its lines do not
    ORDER = "order"  # its lines are there, before those of an earlier hunk or inside it


class Mismatch(Struct, frozen=True):
    """Lines that a hunk expects and those that stand in their place; either may be empty.

    `expected_lines` has each expected line's number in the patch file; `found_at` is where the
    found lines start in the upstream file.
    """

    expected: tuple[bytes, ...]
    expected_lines: tuple[int, ...]
    found: tuple[bytes, ...]
    found_at: int


class HunkExplanation(Struct, frozen=True):
    """Why one hunk has no place.

    `number` counts the file's hunks from 1, `line` is where it stands in the patch file,
    `recorded` the line of the upstream file that it names. `place` is what is most like its lines
    now, in the file `place_path` (None: nothing is); `mismatches` what is otherwise there, or at
    the recorded place if there is none. Of its `added` lines that have words, `present` are in the
    file already.
    """

    number: int
    line: int
    recorded: int
    cause: Cause
    place_path: str
    place: SimilarLines | None
    mismatches: tuple[Mismatch, ...]
    added: int
    present: int


class MovedPath(Struct, frozen=True):
    """A path where the file may be now, from 0 to 1 how much of what the patch needs is there.

    `how`: "same contents", "same name", "similar contents", or "renamed by COMMIT".
    """

    path: str
    likeness: float
    how: str


class FileExplanation(Struct, frozen=True):
    """Why a file change does not fit: of `hunks_total` hunks those in `hunks` have no place.

    `preimage` MATCHES: the file is the very one that the patch was made against, so it is the patch
    that was edited. `contained`: undoing the whole change works, so it has been made already.
    """

    path: str
    reason: Reason
    preimage: Preimage
    line: int
    detail: str
    contained: bool
    hunks_total: int
    hunks: tuple[HunkExplanation, ...]
    moves: tuple[MovedPath, ...]


class RenamedName(Struct, frozen=True):
    """A renaming between the patch's words and the tree's.

    The patch says `expected` where the tree says `found`, in `lines` lines of `files`; it alone
    explains `hunks` hunks. `expected_exists` and `found_exists`: whether the tree has such a module
    or folder, None for a name that is none.
    """

    expected: str
    found: str
    lines: int
    hunks: int
    files: tuple[str, ...]
    expected_exists: bool | None
    found_exists: bool | None


class OtherBlob(Struct, frozen=True):
    """A file that was another one when the patch was made; ids as the patch and the tree say."""

    path: str
    expected: str
    found: str


class Origin(Struct, frozen=True):
    """What the patch's `index` lines tell about the base it was made for.

    Of `known` files with such a line, `others` are another blob in the tree. `commit` is the
    newest commit known here that has the most of them (`commit_matches` files), None if nothing
    better than the base was found; `made_by` names patches whose result one of the blobs is.
    `alone`: the patch was made for this very base, without the patches before it.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"alone"})

    known: int
    others: tuple[OtherBlob, ...]
    commit: CommitId | None = None
    commit_subject: str = ""
    commit_matches: int = 0
    made_by: tuple[str, ...] = ()
    alone: bool = False


class PatchEdit(Struct, frozen=True):
    """The commit after which a patch that another repository has fits no more.

    Before it stands, at `fits_at`, the newest version of the file that fits; `fits_sha256` is its.
    """

    commit: CommitId
    date: str
    author: str
    subject: str
    fits_at: str
    fits_sha256: str


class PatchExplanation(Struct, frozen=True):
    """Why a patch does not apply.

    `contained`: the tree has the whole change already. `files` are those that do not fit, of
    `files_total`; `renamed` are renamings that explain hunks of them. `edit` is what its own
    repository did to it, where that repository's history is here.
    """

    name: str
    contained: bool
    files_total: int
    files: tuple[FileExplanation, ...]
    renamed: tuple[RenamedName, ...]
    origin: Origin
    edit: PatchEdit | None = None

    @property
    def hunks(self) -> tuple[HunkExplanation, ...]:
        """Every hunk without a place."""
        return tuple(hunk for file in self.files for hunk in file.hunks)
