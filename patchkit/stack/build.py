"""A stack: a base and an ordered series of patches on it, one commit per patch.

`build_stack` is a pure function of the base and the patches' bytes: the same commit ids on every
machine, and nothing is written. `read_stack` is the way back: the commits between a base and a tip
as they now are.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.diff_parse import parse_diff
from patchkit.model.mail import add_patch_trailer, split_patch_trailer
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    Base,
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    lines_of,
    make_commit,
)
from patchkit.model.outcome import FileResult, PatchResult, Status
from patchkit.model.patch import FileChange, Identity, PatchFile
from patchkit.model.tree import ObjectSource, Tree, TreeChange, tree_differences

__all__ = [
    "COMMITTER",
    "Base",
    "SeriesPatch",
    "Stack",
    "StackBuilder",
    "StackCommit",
    "build_stack",
    "parse_commit",
    "patch_changes",
    "read_stack",
]

COMMITTER = Identity("patchkit", "patchkit@localhost")


class SeriesPatch(Struct, frozen=True):
    """A patch of a series: its name there, its contents, and where its paths are in the tree.

    `strip` leading folders are taken off its paths, then `subdirectory` is put before them.
    """

    name: str
    file: PatchFile  # parsed
    strip: int = 1
    subdirectory: str = ""


class StackFile(Struct, frozen=True):
    """A file of the upstream, and its entries: without the stack, then after each of `patches`."""

    path: str  # in the upstream's tree
    patches: tuple[str, ...]
    entries: tuple[TreeEntry | None, ...]

    @property
    def plain(self) -> bool:
        """Whether it is an ordinary file all the time."""
        return self._modes <= {FILE_MODE, EXECUTABLE_MODE}

    @property
    def has_modes(self) -> bool:
        """Whether the stack says who may run it: it adds it executable, or changes its mode."""
        added = self.entries[0] is None and EXECUTABLE_MODE in self._modes
        return added or len(self._modes) > 1

    @property
    def _modes(self) -> set[int]:
        return {entry.mode for entry in self.entries if entry is not None}


class Stack(Struct, frozen=True):
    """A series applied on a base."""

    base: Base
    #: What became of each patch, in order.
    outcomes: tuple[PatchResult, ...]
    #: After the last patch that applies.
    commit: CommitId
    tree: TreeId  # after the last patch that applied
    #: All that the base's repository does not have yet, blobs and trees before their commits.
    objects: tuple[GitObject, ...]
    files: tuple[StackFile, ...]  # what the patches make of each file, by path

    @property
    def clean(self) -> bool:
        """Whether every patch applies."""
        return all(outcome.status.applies for outcome in self.outcomes)

    @property
    def trees(self) -> tuple[TreeId, ...]:
        """The base's tree, then the one after each patch; one that does not apply leaves it."""
        trees = [self.base.tree]
        for outcome in self.outcomes:
            trees.append(outcome.tree or trees[-1])
        return tuple(trees)


class StackCommit(Struct, frozen=True):
    """A commit of a stack; `message` is without our trailer, which gave `patch` (or None)."""

    id: CommitId  # in full
    tree: TreeId  # after the commit
    parent: CommitId  # the commit before it
    author: Identity  # as the patch has it
    message: str
    patch: str | None

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]


def build_stack(source: ObjectSource, base: Base, patches: Sequence[SeriesPatch]) -> Stack:
    """Apply `patches` on `base` in memory.

    A patch without file changes is EMPTY and makes no commit. After a conflict the rest is tried on
    the tree without the patch that conflicts.
    """
    return StackBuilder(source, base).build(patches)


def series_paths(patches: Iterable[SeriesPatch]) -> list[str]:
    """Every path that a patch of the series names in the tree, sorted."""
    changes = (change for patch in patches for change in patch_changes(patch))
    return sorted({p for c in changes for p in (c.old_path, c.new_path) if p is not None})


def patch_changes(patch: SeriesPatch) -> tuple[FileChange, ...]:
    """The patch's changes with the paths that they have in the tree."""
    changes = patch.file.changes
    if patch.strip != patch.file.strip:
        first_line = patch.file.preamble.count(b"\n") + 1
        changes = parse_diff(patch.file.diff, first_line, strip=patch.strip, name=patch.name)
    folder = patch.subdirectory.strip("/")
    return tuple(_move_below(change, folder) for change in changes) if folder else changes


def read_stack(repository: Repository, base_commit: CommitId, tip: str) -> tuple[StackCommit, ...]:
    """The commits from `base_commit` (exclusive) to `tip`, oldest first.

    BadInputError if there is a merge among them or if `tip` is not built on `base_commit`.
    """
    listed = repository.git("rev-list", "--parents", f"{base_commit}..{tip}").out
    rows = [[CommitId(each) for each in row.split()] for row in lines_of(listed.decode())]
    parents = {row[0]: row[1:] for row in rows}
    last = rows[0][0] if rows else repository.commit(tip) or CommitId(tip)  # newest first
    checkout = shlex.quote(str(repository.git_dir.parent))
    hint = f"git -C {checkout} reset --soft {base_commit}  makes edits of its commits"
    ids = _line_of_commits(parents, base_commit, last, hint)
    with reading(repository) as reader:
        return tuple(parse_commit(*each) for each in reader.read_many(ids, "commit"))


class StackBuilder:
    """Puts patches on a base one by one; `tree` and `commit` are where it has got to.

    A `tree` that is given stands for the one that the base names.
    """

    def __init__(self, source: ObjectSource, base: Base, tree: Tree | None = None) -> None:
        self.base = base
        self.source = source
        self.commit = base.commit
        self.tree = self._start = Tree(source, base.tree) if tree is None else tree
        self.blobs = Blobs(source)
        self._tree_id = base.tree
        self._objects: dict[str, GitObject] = {}
        self._files: dict[str, StackFile] = {}

    def build(self, patches: Sequence[SeriesPatch]) -> Stack:
        """Put all patches; see `build_stack`."""
        self.preload(patches)
        return self.finish(list(map(self.push, patches)))

    def preload(self, patches: Sequence[SeriesPatch]) -> None:
        """Read at once all files of the base that the patches touch."""
        self.blobs.load_files(self.tree, chain.from_iterable(map(patch_changes, patches)))

    def push(self, patch: SeriesPatch) -> PatchResult:
        """Apply one patch and commit it, if it applies."""
        changes = patch_changes(patch)
        if not changes:
            return PatchResult(patch.name, Status.EMPTY)
        applied = apply_changes(self.tree, self.blobs, changes)
        if applied.tree is None:
            return PatchResult(patch.name, Status.CONFLICTED, applied.files)
        written = list(applied.blobs)
        self._land(patch, applied.tree, written)
        shifted = any(each.status is Status.SHIFTED for each in applied.files)
        status = Status.SHIFTED if shifted else Status.UNCHANGED
        return PatchResult(patch.name, status, applied.files, self.commit, self._tree_id)

    def place(
        self,
        patch: SeriesPatch,
        tree: Tree,
        objects: Sequence[GitObject],
        status: Status = Status.REGENERATED,
        files: tuple[FileResult, ...] = (),
    ) -> PatchResult:
        """Commit a tree, with its new objects, as what the patch makes, whatever its diff says."""
        for each in objects:
            if each.kind == "blob":
                self.blobs.add(each)
        self._land(patch, tree, list(objects))
        return PatchResult(patch.name, status, files, self.commit, self._tree_id)

    @property
    def tree_id(self) -> TreeId:
        """The id of `tree`."""
        return self._tree_id

    @property
    def objects(self) -> tuple[GitObject, ...]:
        """What was made so far."""
        return tuple(self._objects.values())

    def finish(self, outcomes: Sequence[PatchResult]) -> Stack:
        """The stack as built so far."""
        files = tuple(file for _, file in sorted(self._files.items()))
        return Stack(self.base, tuple(outcomes), self.commit, self._tree_id, self.objects, files)

    def changes(self, patches: Iterable[SeriesPatch]) -> tuple[TreeChange, ...]:
        """How the tree differs from the base's, in git's order; `patches` are all that were put."""
        return tree_differences(self._start, self.tree, series_paths(patches))

    def _land(self, patch: SeriesPatch, tree: Tree, written: list[GitObject]) -> None:
        self._tree_id = tree.write(written)
        for path in series_paths([patch]):
            before, after = self.tree.entry(path), tree.entry(path)
            if before != after:
                file = self._files.get(path, StackFile(path, (), (before,)))
                names, entries = (*file.patches, patch.name), (*file.entries, after)
                self._files[path] = StackFile(path, names, entries)
        self.tree = tree
        written.append(self._commit(patch))
        self.commit = CommitId(written[-1].oid)
        self._objects.update((each.oid, each) for each in written)

    def _commit(self, patch: SeriesPatch) -> GitObject:
        message = patch.file.message
        if not patch.file.subject.strip():
            message = f"{patch.name.removesuffix('.patch')}\n\n{message.strip()}".strip()
        author = patch.file.author or COMMITTER
        # git cannot read a commit from before 1970
        date = author.date if author.date[:1].isdigit() else self.base.date
        return make_commit(
            tree=self._tree_id,
            parents=[self.commit],
            author=replace(author, date=date),
            committer=replace(COMMITTER, date=date),
            message=add_patch_trailer(message, patch.name),
        )


def _move_below(change: FileChange, folder: str) -> FileChange:
    old, new = change.old_path, change.new_path
    return replace(
        change,
        old_path=None if old is None else f"{folder}/{old}",
        new_path=None if new is None else f"{folder}/{new}",
    )


def _line_of_commits(
    parents: dict[CommitId, list[CommitId]], base_commit: CommitId, tip: CommitId, hint: str
) -> list[CommitId]:
    """The commits after `base_commit` up to `tip`, oldest first."""
    line: list[CommitId] = []
    at = tip
    while at in parents:
        line.append(at)
        at = parents[at][0] if parents[at] else CommitId("")
    if at != base_commit:
        what = f"commit {tip} is not built on the base {base_commit}"
        raise BadInputError(Problem(what, hint=hint))
    if merges := [oid for oid in line if len(parents[oid]) > 1]:
        raise BadInputError(*(Problem(f"commit {oid} is a merge", hint=hint) for oid in merges))
    return line[::-1]


def parse_commit(oid: str, payload: bytes) -> StackCommit:
    """A commit with one parent from the payload of its object."""
    head, _, body = payload.partition(b"\n\n")
    fields = dict(reversed([line.partition(b" ")[::2] for line in head.split(b"\n")]))
    charset = fields.get(b"encoding", b"utf-8").decode("ascii", "replace")
    message, patch = split_patch_trailer(_decode(body, charset))
    return StackCommit(
        id=CommitId(oid),
        tree=fields[b"tree"].decode(),
        parent=fields[b"parent"].decode(),
        author=_identity(_decode(fields[b"author"], charset)),
        message=message,
        patch=patch,
    )


def _decode(data: bytes, charset: str) -> str:
    try:
        return data.decode(charset)
    except (LookupError, UnicodeDecodeError):
        return data.decode("utf-8", "surrogateescape")


def _identity(line: str) -> Identity:
    name, _, rest = line.partition(" <")
    email, _, date = rest.rpartition("> ")
    return Identity(name, email, date)
