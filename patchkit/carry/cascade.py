"""What fails only because an earlier patch of the series fails.

Beside the stack as it can be built, which leaves failing patches out, runs a second one: the stack
as it would be once they are resolved: with each of their files that could be carried, and where
lines conflict with those of the patch. A file that fails on the first and is carried on the second
*waits* for those patches; so does one that applies as it is on the second only, and one whose path
they leave open, since it is not known what will be there. What fails on both fails by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from stat import S_ISREG
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry.carried import CarriedFile, CarryContext
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.diff_parse import is_binary
from patchkit.model.objects import TreeEntry, make_object
from patchkit.model.outcome import FileResult, PatchResult, Status
from patchkit.model.patch import FileChange
from patchkit.model.tree import ObstructedError, Tree

#: The names of patches that must be resolved first.
Names: TypeAlias = tuple[str, ...]


class ResolvedStack(Struct):
    """The stack as it would be once every patch that failed is resolved.

    `open` are paths that such a patch changes in a way that is not known yet, each with the patches
    to resolve; `failed` are the patches that failed, each with its paths.
    """

    tree: Tree
    open: dict[str, Names] = {}
    failed: list[tuple[str, frozenset[str]]] = []

    def cascade(
        self,
        context: CarryContext,
        changes: Sequence[FileChange],
        files: Sequence[CarriedFile],
        old: PatchResult,
        carry_one: Callable[[CarryContext, FileChange, FileResult], CarriedFile],
    ) -> tuple[list[CarriedFile | Names], tuple[FileResult, ...]]:
        """What becomes of each change of a patch here, or the patches that leave its path open.

        And what there is to say of it: what fails for that reason only waits. `files` are the
        changes on the stack as it is, `context.here`; `old` is the patch on the old base.
        """
        there = [
            self._carry(context, change, before, file, carry_one)
            for change, before, file in zip(changes, old.files, files, strict=True)
        ]
        outcomes = tuple(map(self.outcome, changes, files, there))
        return there, outcomes

    def _carry(
        self,
        context: CarryContext,
        change: FileChange,
        before: FileResult,
        file: CarriedFile,
        carry_one: Callable[[CarryContext, FileChange, FileResult], CarriedFile],
    ) -> CarriedFile | Names:
        paths = {*paths_of(change), file.path}
        names = self.open_at(paths)
        if names:
            return names
        if all(self.tree.entry(path) == context.here.entry(path) for path in paths):
            return file
        context = replace(context, here=self.tree, merger=None)
        return carry_one(context, change, before)

    def outcome(
        self, change: FileChange, file: CarriedFile, there: CarriedFile | Names
    ) -> FileResult:
        """What to say of a file that comes to `there` on this stack."""
        outcome = file.outcome
        if there is file:
            return outcome
        if isinstance(there, tuple):
            return outcome if file.carried else waiting(outcome, there)
        if waits(outcome.status, there.outcome.status):
            return waiting(outcome, self.failed_at({*paths_of(change), file.path}))
        return outcome if file.carried else there.outcome

    def take(
        self,
        outcome: PatchResult,
        changes: Sequence[FileChange],
        files: Sequence[CarriedFile],
        there: Sequence[CarriedFile | Names],
        context: CarryContext,
    ) -> None:
        """Be one patch further; `outcome` is what it came to on the stack as it is.

        The blobs of `context` learn what is there.
        """
        touched: set[str] = set()
        for change, file, each in zip(changes, files, there, strict=True):
            paths = {*paths_of(change), file.path}
            touched |= paths
            if isinstance(each, tuple):
                self.open.update(dict.fromkeys(paths, each))
            elif not self._put(supposed(each, context.old_blobs, context.blobs)):
                self.open.update(dict.fromkeys(paths, (outcome.name,)))
        if outcome.status.fails:
            self.failed.append((outcome.name, frozenset(touched)))

    def take_whole(
        self, name: str, changes: Sequence[FileChange], blobs: Blobs, status: Status
    ) -> Names:
        """Be one patch further that is taken as a whole; what it waits for, if it only waits.

        A patch that a person left out, or that upstream has, does nothing.
        """
        paths = frozenset(path for change in changes for path in paths_of(change))
        if status is Status.ABSORBED or not changes:
            return ()
        names = self.open_at(paths)
        applied = apply_changes(self.tree, blobs, changes, terse=True)
        if applied.tree is not None and not names:
            self.tree = applied.tree
            names = self.failed_at(paths) if status.fails and self.failed else ()
        else:
            self.open.update(dict.fromkeys(paths, names or (name,)))
        if status.fails:
            self.failed.append((name, paths))
        return names if status.fails else ()

    def open_at(self, paths: Collection[str]) -> Names:
        """The patches that leave one of the paths open."""
        return _once(name for path in sorted(paths) for name in self.open.get(path, ()))

    def failed_at(self, paths: Collection[str]) -> Names:
        """The patches that failed and change one of the paths; all of them if none does."""
        names = [name for name, touched in self.failed if not touched.isdisjoint(paths)]
        return _once(names or (name for name, _ in self.failed))

    def _put(self, file: CarriedFile | None) -> bool:
        """Put a carried file; whether there is one, and room for it."""
        if file is None:
            return False
        try:
            self.tree = edited(self.tree, (file,))
        except ObstructedError:
            return False
        return True


def supposed(file: CarriedFile, old_blobs: Blobs, blobs: Blobs) -> CarriedFile | None:
    """The file, a conflict resolved as the patch has its lines; None where no lines can be merged.

    `blobs` learns its contents.
    """
    if file.taken_for is not None:
        return replace(file, entry=file.taken_for)
    if not file.carried:
        before, here, after = file.sides
        if before is None or here is None or after is None:
            return None
        if not all(S_ISREG(side.mode) for side in (before, here, after)):
            return None
        base, ours = (old_blobs.contents(each.oid) for each in (before, after))
        upstream = blobs.contents(here.oid)
        if any(map(is_binary, (base, upstream, ours))):
            return None
        # loaded where a file needs it: in most bumps none is in conflict
        from patchkit.model.merging.merge import compare_texts  # noqa: PLC0415

        three = compare_texts(base, upstream, ours)
        taken = [r.patch if r.settled is None else r.settled for r in three.regions]
        blob = make_object("blob", three.assemble(taken))
        file = replace(file, entry=TreeEntry(here.mode, blob.oid), blob=blob)
    if file.blob is not None:
        blobs.add(file.blob)
    return file


def edited(tree: Tree, files: Sequence[CarriedFile]) -> Tree:
    """The tree with carried files; ObstructedError if a file or a folder is in the way."""
    for file in files:
        gone = file.leaves if file.leaves is not None else file.path if not file.entry else None
        if gone is not None and tree.entry(gone) is not None:
            tree = tree.remove(gone)
    for file in files:
        if file.entry is not None:
            tree = tree.put(file.path, file.entry)
    return tree


def waits(here: Status, there: Status) -> bool:
    """Whether a file waits that comes to `here` now, and to `there` without earlier conflicts.

    So does one that applies as it is then, and now would have to be merged.
    """
    fails = here is Status.CONFLICTED and not there.fails
    return fails or (here is Status.MERGED and there in (Status.UNCHANGED, Status.SHIFTED))


def waiting(file: FileResult, names: Names) -> FileResult:
    """The file as one that cannot be carried before these patches are."""
    return replace(
        file,
        status=Status.WAITING,
        clashes=(),
        certainty=None,
        confidence=0.0,
        reasons=(f"waits for {', '.join(names)}",),
        review=False,
        waits_for=names,
    )


def paths_of(change: FileChange) -> frozenset[str]:
    """The paths that a change names."""
    return frozenset(path for path in (change.old_path, change.new_path) if path is not None)


def _once(names: Iterable[str]) -> Names:
    return tuple(dict.fromkeys(names))
