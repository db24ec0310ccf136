"""Trees: the files of one, the one that a worktree comes to, and the diff between two."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchkit.disk.files import scratch_folder
from patchkit.errors import SurroundingsError
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.process import run_sealed
from patchkit.gitcmd.repository import NOT_HERE, Repository
from patchkit.model.diff_parse import split_lines
from patchkit.model.objects import (
    EMPTY_TREE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SYMLINK_MODE,
    TREE_MODE,
    TreeEntry,
    TreeId,
    decode_path,
    encode_path,
    parse_tree,
)
from patchkit.model.tree import ObjectSource, Overlay, Tree, TreeChange

if TYPE_CHECKING:
    from patchkit.model.similarity import Index

__all__ = ["Overlay", "TreeView"]


class TreeView:
    """A tree, with each file's lines read once; nothing here changes it."""

    def __init__(self, source: ObjectSource, tree: TreeId) -> None:
        self.source = source
        self.oid = tree
        self.tree = Tree(source, tree)
        self._lines: dict[str, list[bytes]] = {}
        self._indexes: dict[str, Index] = {}
        self._files: dict[str, TreeEntry] | None = None

    def data(self, path: str) -> bytes | None:
        """A file's contents; None if no file is there, or its blob can't be had."""
        entry = self.tree.entry(path)
        if entry is None or entry.mode & ~0o777 not in (FILE_MODE & ~0o777, SYMLINK_MODE):
            return None
        try:
            return self.source.read(entry.oid, "blob")
        except MissingObjectError:
            return None

    def lines(self, path: str) -> list[bytes]:
        """A file's lines with their newlines; none if no file is there."""
        if path not in self._lines:
            self._lines[path] = split_lines(self.data(path) or b"")
        return self._lines[path]

    def index(self, path: str) -> Index:
        """Where each of the file's lines stands."""
        if path not in self._indexes:
            from patchkit.model.similarity import index_lines  # noqa: PLC0415 (for explanations)

            self._indexes[path] = index_lines(self.lines(path))
        return self._indexes[path]

    def files(self) -> dict[str, TreeEntry]:
        """Path -> entry of every file, symlink and submodule; reads every folder once."""
        if self._files is None:
            self._files = dict(self._walk(self.oid, ""))
        return self._files

    def contents(self, covers: Callable[[str], bool]) -> dict[str, bytes]:
        """Path -> contents of the ordinary files whose paths are covered."""
        regular = (FILE_MODE, EXECUTABLE_MODE)
        found = {p: e.oid for p, e in self.files().items() if e.mode in regular and covers(p)}
        blobs = dict(self.source.read_many(sorted({*found.values()}), "blob"))
        return {path: blobs[oid] for path, oid in sorted(found.items())}

    def _walk(self, oid: str, prefix: str) -> Iterator[tuple[str, TreeEntry]]:
        if oid == EMPTY_TREE:
            return
        for name, entry in parse_tree(self.source.read(oid, "tree")).items():
            if entry.mode == TREE_MODE:
                yield from self._walk(entry.oid, f"{prefix}{name}/")
            else:
                yield prefix + name, entry


# Which paths differ between two trees; then diffs whose bytes depend on nothing but the trees.


def tree_changes(
    repository: Repository, old: str, new: str, *, required: bool = True
) -> list[TreeChange]:
    """The paths in which two trees differ, in git's order; a rename is two of them.

    Where one of them is not here GitFailureError, or nothing if it is not `required`.
    """
    if old == new:
        return []
    command = ["diff-tree", "-r", "-z", "--raw", "--no-renames", old, new, "--"]
    out = repository.git(*command).out if required else repository.ask(*command, no=NOT_HERE) or b""
    fields = decode_path(out).split("\0")[:-1]
    return [_change(head, path) for head, path in zip(fields[::2], fields[1::2], strict=True)]


def _change(head: str, path: str) -> TreeChange:
    old_mode, new_mode, old, new, _ = head.removeprefix(":").split(" ")
    return TreeChange(path, _entry(old_mode, old), _entry(new_mode, new))


def _entry(mode: str, oid: str) -> TreeEntry | None:
    return TreeEntry(int(mode, 8), oid) if int(mode, 8) else None


# Every setting of git that changes a diff's bytes is either pinned by an option or out of reach:
# git runs in an empty repository of its own that only borrows the objects, so neither the
# repository's configuration nor `info/attributes` nor a `.gitattributes` file is ever seen.
# Attributes would choose the text behind `@@`, and which files count as binary, differently on
# each machine.


_PINNED = (
    "--full-index",  # abbreviated ids grow with the repository
    "--binary",
    "--diff-algorithm=histogram",
    "--indent-heuristic",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
    "--no-color",
    "--no-color-moved",
    "--no-ext-diff",
    "--no-textconv",
    "--no-function-context",
    "--submodule=short",
    "--ignore-submodules=none",
    "--no-rename-empty",  # an empty file is no evidence of where a change came from
    "-O/dev/null",  # not in the order of a diff.orderFile
    "-l5000",
)

_PINNED_CONFIG = (
    "core.bare=true",
    "core.bigFileThreshold=512m",  # what is larger counts as binary
    "core.looseCompression=1",  # the payload of binary changes; 1 is what git takes by default
    "core.abbrev=40",
    "diff.suppressBlankEmpty=false",
)


def diff_trees(
    repository: Repository, pairs: Sequence[tuple[str, str]], *options: str
) -> list[bytes]:
    """The diff of each pair of tree ids, in order, by one git process; b"" where nothing differs.

    `options` say what is not pinned: the context and whether renames are looked for.
    """
    if not pairs:
        return []
    lines = [f"{before} {after}\n" for before, after in pairs]
    command: list[str] = []
    for setting in _PINNED_CONFIG:
        command += ["-c", setting]
    command += ["diff-tree", "--stdin", "-r", "-p", *_PINNED, *options]
    with scratch_folder() as folder:
        bare = _empty_repository(folder)
        objects = {"GIT_OBJECT_DIRECTORY": str(objects_directory(repository))}
        out = run_sealed(command, git_dir=bare, stdin="".join(lines).encode(), extra=objects).out
    return _split(out, [line.encode() for line in lines])


def objects_directory(repository: Repository) -> Path:
    """Where the repository's objects are: its own folder, or that of the main one of a worktree."""
    common = repository.git_dir / "commondir"
    if common.is_file():
        return (repository.git_dir / common.read_text().strip() / "objects").resolve()
    return repository.git_dir / "objects"


def _empty_repository(folder: Path) -> Path:
    (folder / "refs").mkdir()
    (folder / "objects").mkdir()
    (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    return folder


def _split(out: bytes, separators: Sequence[bytes]) -> list[bytes]:
    # git puts "TREE TREE" on a line before each diff; no line of a diff can look like that, since
    # each starts with a marker, a keyword or a base85 length
    starts = []
    position = 0
    for separator in separators:
        if not out.startswith(separator, position):
            position = out.find(b"\n" + separator, position) + 1
            if position == 0:
                raise SurroundingsError("git diff-tree answers in an unknown form")
        starts.append((position, position + len(separator)))
        position += len(separator)
    ends = [start for start, _ in starts[1:]] + [len(out)]
    return [out[begin:end] for (_, begin), end in zip(starts, ends, strict=True)]


# Trees of worktrees: what is there, as git would record it or as the bytes on disk; the worktree's
# own index stays.


def git_folder(folder: Path) -> Path | None:
    """The git directory of the repository whose top folder, or bare folder, this is."""
    if not folder.is_dir():
        return None
    for candidate in (folder / ".git", folder):
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
            return candidate.absolute()
    if not (folder / ".git").is_file():
        return None
    # a linked worktree or a submodule: its file says where
    done = run_sealed(["rev-parse", "--absolute-git-dir"], work_tree=folder.absolute())
    return Path(done.out.decode("utf-8", "surrogateescape").rstrip("\n"))


def tracked_tree(repository: Repository, trial: Repository) -> TreeId:
    """The tree of the tracked files as they are on disk; all that is written goes to `trial`."""
    view = replace(repository, objects=trial.git_dir / "objects")
    return write_tracked(repository, trial.git_dir / "index", view)


def write_tracked(repository: Repository, index: Path, view: Repository) -> TreeId:
    """Write the tracked files as they are on disk, whatever the own index says of them.

    Makes `index` a new index of them, and returns their tree. They are added by a view of the
    repository, which says where new objects go (`unfiltered`).
    """

    def git(*args: str, stdin: bytes = b"") -> bytes:
        return view.git(*args, stdin=stdin, index=index).out

    listing = repository.git("ls-files", "-t", "--stage", "-z").out.split(b"\0")[:-1]
    rows = [row.split(b" ", 1) for row in listing]
    index.unlink(missing_ok=True)
    # in the own index, files may be marked not to be looked at
    git("update-index", "-z", "--index-info", stdin=b"".join(row[1] + b"\0" for row in rows))
    absent = [path for tag, entry in rows if tag == b"S" for path in _absent(repository, entry)]
    if absent:
        git("update-index", "--skip-worktree", "-z", "--stdin", stdin=b"".join(absent))
    git("add", "--update", "--", ".")
    # blobs that nobody has are in the tree all the same
    return TreeId(git("write-tree", "--missing-ok").decode().strip())


def add_paths(view: Repository, index: Path, paths: Iterable[str]) -> None:
    """Add files to an index, ignored ones as well, by a view of the repository or itself."""
    given = b"".join(encode_path(path) + b"\0" for path in paths)
    if given:
        options = ("add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        view.git("--literal-pathspecs", *options, stdin=given, index=index)


def unfiltered(repository: Repository, folder: Path) -> Repository:
    """A view of a repository in which no attribute holds: what is added are the bytes on disk.

    On disk: a new git directory in `folder`; what is written by it goes to the repository.
    """
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "refs").mkdir(parents=True)
    (folder / "info").mkdir()
    (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (folder / "info" / "attributes").write_bytes(_NO_CONVERSION)
    exclude = repository.git_dir / "info" / "exclude"
    if exclude.is_file():
        shutil.copyfile(exclude, folder / "info" / "exclude")
    # what the file system can hold, and nothing else of the repository's own settings
    kept = (
        "config",
        "--local",
        "--bool",
        "--get-regexp",
        r"^core\.(filemode|symlinks|ignorecase)$",
    )
    rows = repository.git(*kept, accept=(0, 1)).out.decode().split("\n")[:-1]
    lines = (
        f"\t{name.partition('.')[2]} = {value}\n"
        for name, _, value in (row.partition(" ") for row in rows)
    )
    (folder / "config").write_text("[core]\n\tautocrlf = false\n" + "".join(lines))
    return Repository(folder, repository.work_tree, objects_directory(repository))


_NO_CONVERSION = b"* -text -crlf -eol -ident -filter !working-tree-encoding\n"


def _absent(repository: Repository, entry: bytes) -> list[bytes]:
    """The path of a row if it is not meant to be on disk: nobody has it, or a sparse checkout."""
    path = entry.split(b"\t", 1)[1]
    place = Path(repository.work_tree or "") / os.fsdecode(path)
    return [] if os.path.lexists(place) else [path + b"\0"]
