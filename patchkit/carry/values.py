"""What carrying starts from and comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from patchkit.model.objects import GitObject, TreeEntry
from patchkit.model.outcome import FileOutcome, PatchOutcome, Status
from patchkit.stack import Base, SeriesPatch, Stack, StackBuilder

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
