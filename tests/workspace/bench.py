"""A checkout to experiment with: two bases and two stacks of a small upstream."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader, reading
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.objects import CommitId, GitObject, encode_path
from patchkit.model.tree import TreeChange
from patchkit.workspace import (
    APPLIED_REF,
    BASE_REF,
    BRANCH,
    Checkout,
    Snapshot,
    inspect,
)
from patchkit.workspace.contents import files_below, full_path
from patchkit.workspace.enter import Entered, Stacked, enter_stack
from tests.support.repos import Files, Upstream, git_in, tree_files

WHEN = 1767323045
STAMP = "20260102T030405Z"

BASE: Files = {"a.py": "one\n", "b.py": "two\n", "sub/c.py": "three\n", ".gitignore": "*.log\n"}
CHANGE: Files = {"a.py": "ONE\n", "new.py": "new\n", "sub/c.py": None}

#: The objects between two commits and their changes; what `git repack` made of a folder.
_stacks: dict[tuple[str, str], tuple[tuple[GitObject, ...], tuple[TreeChange, ...]]] = {}
_packed: dict[tuple[str, ...], dict[Path, bytes]] = {}


@dataclass
class Bench:
    """An upstream with a base and a stack on it, and the place of a checkout."""

    upstream: Upstream
    checkout: Checkout
    base: str = ""
    tip: str = ""

    @property
    def path(self) -> Path:
        """The checkout's folder."""
        return self.checkout.path

    def stack(self, base: Files = BASE, *changes: Files) -> Stacked:
        """A base that holds `base`, and on it a commit for each of `changes`."""
        self.base = self.tip = self.upstream.commit(base, "base", parents=())
        for number, change in enumerate(changes or (CHANGE,)):
            self.tip = self.upstream.commit(change, f"patch {number}", branch="main")
        return self.stacked(self.base, self.tip)

    def stacked(self, base: str, tip: str) -> Stacked:
        """The stack of two commits of the upstream."""
        self._repack()
        source = Repository(self.upstream.path)
        if (base, tip) not in _stacks:
            between = ("--objects", "--no-object-names", f"{base}..{tip}")
            listing = self.upstream.git("rev-list", *between).decode().split()
            with reading(source) as reader:
                objects = tuple(_object(reader, oid) for oid in listing)
            changes = tuple(tree_changes(source, CommitId(base), CommitId(tip)))
            _stacks[base, tip] = objects, changes
        objects, changes = _stacks[base, tip]
        return Stacked(CommitId(base), CommitId(tip), objects, source, changes)

    def _repack(self) -> None:
        """All objects in one pack; git makes it once of the same objects."""
        folder = self.upstream.path / "objects"
        before = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
        refs = self.upstream.path / "refs"
        tips = [path.read_text() for path in sorted(refs.rglob("*")) if path.is_file()]
        key = (*tips, *map(str, sorted(before)))
        if key not in _packed:
            self.upstream.git("repack", "-q", "-a", "-d")
            after = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
            _packed[key] = {name: path.read_bytes() for name, path in after.items()}
            return
        for name in before.keys() - _packed[key].keys():
            (folder / name).unlink()
        for name, data in _packed[key].items():
            if name not in before:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(data)

    def enter(self, stack: Stacked, *, force: bool = False) -> Entered:
        """Bring the checkout to a stack."""
        return enter_stack(self.checkout, stack, when=WHEN, force=force)

    def look(self) -> Snapshot:
        """The checkout's state."""
        return inspect(self.checkout)

    def git(self, *args: str, stdin: bytes = b"") -> str:
        """What git says in the checkout, as a user calls it."""
        return git_in(self.path, *args, stdin=stdin).decode("utf-8", "surrogateescape").strip()

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file in the checkout as a user does."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def assert_at(self, stack: Stacked) -> None:
        """Files, index and refs are exactly those of the stack; git finds nothing wrong."""
        names = ("HEAD", BRANCH, APPLIED_REF, BASE_REF, f"{stack.tip}^{{tree}}")
        *commits, tree = self.git("rev-parse", *names).split()
        assert commits == [*[stack.tip] * 3, stack.base]
        assert (self.path / ".git/HEAD").read_text() == f"ref: {BRANCH}\n"
        assert self.git("status", "--porcelain", "--untracked-files=no") == ""
        assert self.git("write-tree") == tree
        assert disk_files(self.path) >= committed_files(self.path, stack.tip)
        assert not (self.path / ".git/index.lock").exists()
        assert not (self.path / ".git/patchkit/move").exists()


def _object(reader: ObjectReader, oid: str) -> GitObject:
    for kind in ("commit", "tree", "blob"):
        try:
            return GitObject(kind, oid, reader.read(oid, kind))
        except MissingObjectError:
            continue
    raise AssertionError(oid)


def disk_files(folder: Path) -> set[tuple[bytes, bytes]]:
    """(path, contents) of every file below a folder but .git; a symlink's contents: its target."""
    below = files_below(folder, ".")
    paths = [path.removeprefix("./") for path in below if not path.startswith("./.git/")]
    return {(encode_path(path), _bytes(full_path(folder, path))) for path in paths}


def _bytes(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


_NOT_THERE = b"0" * 40


def committed_files(repository: Path, revision: str) -> set[tuple[bytes, bytes]]:
    """(path, contents as in a worktree) of every file of a commit."""
    rows = git_in(repository, "ls-tree", "-r", "-z", revision).split(b"\0")[:-1]
    facts = dict(row.split(b"\t", 1)[::-1] for row in rows if not row.startswith(b"160000"))
    settings = [Path.home() / ".gitconfig", repository / ".git/config"]
    set_up = (repository / ".git/info/attributes").exists() or any(
        b"autocrlf" in path.read_bytes().lower() for path in settings if path.exists()
    )
    if not set_up and not any(name.endswith(b".gitattributes") for name in facts):
        plain = tree_files(repository, revision)
        return {(os.fsencode(name), data) for name, data in plain.items()}
    # a row of git's names a regular file; behind each one that is not there, as a header tells a
    # file's size before its filters
    rows_of_git = {n: f.split()[2] for n, f in facts.items() if f[:3] == b"100" and b"\n" not in n}
    asked = b"".join(b"%s %s\n%s\n" % (o, n, _NOT_THERE) for n, o in rows_of_git.items())
    out = git_in(repository, "cat-file", "--batch=file", "--filters", stdin=asked)
    contents = out.split(b"\n%s missing\n" % _NOT_THERE)[:-1]
    found = dict(zip(rows_of_git, contents, strict=True))
    others = [(name, f"{revision}:{os.fsdecode(name)}") for name in facts if name not in found]
    return {
        *((name, data.removeprefix(b"file\n")) for name, data in found.items()),
        *((name, git_in(repository, "cat-file", "--filters", each)) for name, each in others),
    }
