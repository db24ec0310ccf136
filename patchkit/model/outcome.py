"""What became of a patch on a base: one vocabulary for apply, check, refresh and carry."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


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
    SKIPPED = "skipped"  # not tried, an earlier patch of the series is conflicted

    @property
    def applies(self) -> bool:
        """Whether the patch has a place in the resulting stack."""
        return not self.fails and self is not Status.ABSORBED

    @property
    def fails(self) -> bool:
        """Whether the patch has no place there, for whatever reason."""
        return self in (Status.CONFLICTED, Status.WAITING, Status.SKIPPED)


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

    path: str
    reason: Reason
    line: int
    hunk: int = 0
    expected: tuple[bytes, ...] = ()
    found: tuple[bytes, ...] = ()
    found_at: int = 0
    detail: str = ""


class FileOutcome(Struct, frozen=True):
    """What became of one file change; `offsets` has one entry per hunk, 0: its recorded place.

    A carried file says more: `confidence`, from 0 to 1, with the `reasons` for it; `review` asks a
    person to look at it; `carried_to` is its path on the new base where that is another one;
    `remembered` is the file of the project from which its conflict was resolved. `waits_for` are
    the earlier patches without which it cannot be carried, `absorbed_by` the upstream commit, as
    "ID subject", that made the same change ("" if that is not known).
    """

    path: str
    status: Status
    preimage: Preimage = Preimage.UNKNOWN
    offsets: tuple[int, ...] = ()
    clashes: tuple[Clash, ...] = ()
    confidence: float = 1.0
    reasons: tuple[str, ...] = ()
    review: bool = False
    carried_to: str = ""
    remembered: str = ""
    waits_for: tuple[str, ...] = ()
    absorbed_by: str = ""


class PatchOutcome(Struct, frozen=True):
    """What became of one patch; `commit` and `tree` (after it) are None unless it applies."""

    name: str
    status: Status
    files: tuple[FileOutcome, ...] = ()
    commit: str | None = None
    tree: str | None = None

    @property
    def clashes(self) -> tuple[Clash, ...]:
        """Every clash of every file, in the patch's order."""
        return tuple(clash for file in self.files for clash in file.clashes)

    @property
    def review(self) -> bool:
        """Whether a person should look at what became of it."""
        return any(file.review for file in self.files)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Of a WAITING patch, the conflicted ones that it waits for, in no order that counts."""
        names = (name for file in self.files for name in file.waits_for)
        return tuple(dict.fromkeys(names)) if self.status is Status.WAITING else ()

    @property
    def absorbed_by(self) -> tuple[str, ...]:
        """The upstream commits, as "ID subject", that made the changes of absorbed files."""
        return tuple(dict.fromkeys(file.absorbed_by for file in self.files if file.absorbed_by))

    @property
    def made_for_another_base(self) -> bool:
        """Whether it applies although at least one preimage blob is another one."""
        return self.status.applies and any(f.preimage is Preimage.DIFFERS for f in self.files)
