"""Real upstream repositories and patches, built fast: one git process per commit.

Ids are the same on every machine: authors and dates are fixed, each commit a minute after the last.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

_AUTHOR = "Ann Author <ann@example.com>"
_START = 1700000000


@dataclass(frozen=True)
class File:
    """A file's contents and mode."""

    data: str | bytes
    mode: str = "100644"


@dataclass(frozen=True)
class Symlink:
    target: str


@dataclass(frozen=True)
class Submodule:
    commit: str


#: What a path becomes; None: it goes away.
Content: TypeAlias = str | bytes | File | Symlink | Submodule | None
Files: TypeAlias = Mapping[str, Content]


def executable(data: str | bytes) -> File:
    """An executable file."""
    return File(data, "100755")


@dataclass
class Upstream:
    """A bare repository that plays the upstream."""

    path: Path
    _commits: int = field(default=0, repr=False)

    @classmethod
    def create(cls, path: Path) -> Upstream:
        """An empty repository at `path`, branch main, without a git process."""
        for folder in ("objects", "refs/heads"):
            (path / folder).mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/main\n")
        (path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        return cls(path)

    @property
    def url(self) -> str:
        """The file: URL."""
        return f"file://{self.path}"

    def commit(
        self,
        files: Files,
        message: str = "Change files",
        *,
        branch: str = "main",
        parents: tuple[str, ...] | None = None,
        author: str = _AUTHOR,
    ) -> str:
        """Commit a change of `files` on top of `branch` (or of `parents`); returns the full id.

        `branch` moves to the new commit. Paths that are not named stay as they are in the first
        parent; `parents=()` starts a new history.
        """
        self._commits += 1
        when = f"{_START + 60 * self._commits} +0000"
        stream = [b"feature done\n", f"commit refs/heads/{branch}\nmark :1\n".encode()]
        stream.append(f"author {author} {when}\ncommitter {author} {when}\n".encode())
        stream.append(_data(message))
        stream += _parents(self.resolve(f"refs/heads/{branch}"), parents)
        stream += [_change(path, content) for path, content in files.items()]
        stream.append(b"\nget-mark :1\ndone\n")
        return (
            self.git("fast-import", "--quiet", "--force", stdin=b"".join(stream)).decode().strip()
        )

    def branch(self, name: str, revision: str) -> None:
        """Make or move a branch."""
        self.git("update-ref", f"refs/heads/{name}", revision)

    def tag(self, name: str, revision: str) -> None:
        """Make a lightweight tag."""
        self.git("update-ref", f"refs/tags/{name}", revision)

    def resolve(self, revision: str) -> str | None:
        """The id that a full ref name or an expression stands for; None if there is none."""
        ref = self.path / revision
        if revision.startswith("refs/") and ref.is_file():
            return ref.read_text().strip()
        out = git_in(self.path, "rev-parse", "--verify", "--quiet", revision, accept=(0, 1, 128))
        return out.decode().strip() or None

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """Path -> contents of all files of a commit or tree."""
        return tree_files(self.path, revision)

    def tree(self, revision: str = "main") -> str:
        """The id of a commit's tree."""
        return self.git("rev-parse", revision + "^{tree}").decode().strip()

    def diff(self, old: str, new: str) -> bytes:
        """The change between two commits in the form that patchkit writes."""
        return self.git(
            "-c",
            "core.quotePath=false",
            "diff-tree",
            "-p",
            "--full-index",
            "--binary",
            "--diff-algorithm=histogram",
            "-M",
            old,
            new,
        )

    def git(self, *args: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> bytes:
        """The output of a git command in this repository; asserts the exit code."""
        return git_in(self.path, *args, stdin=stdin, accept=accept)


def git_in(folder: Path, *args: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> bytes:
    """The output of `git ARGS` in a folder, a checkout or bare; asserts the exit code."""
    done = subprocess.run(["git", *args], cwd=folder, input=stdin, capture_output=True, check=False)
    assert done.returncode in accept, f"git {' '.join(args)}: {done.stderr.decode()}"
    return done.stdout


def tree_files(repository: Path, revision: str) -> dict[str, bytes]:
    """Path -> contents of all files of a commit or tree (a symlink's is its target)."""
    listing = git_in(repository, "ls-tree", "-r", "-z", revision).split(b"\0")[:-1]
    rows = [entry.split(b"\t", 1) for entry in listing]
    rows = [row for row in rows if b" commit " not in row[0]]
    ids = [meta.split()[2] for meta, _ in rows]
    out = git_in(repository, "cat-file", "--batch", stdin=b"".join(i + b"\n" for i in ids))
    files, position = {}, 0
    for _, path in rows:
        end = out.index(b"\n", position)
        size = int(out[position:end].split()[2])
        files[os.fsdecode(path)] = out[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
    return files


def make_patch(
    before: Files,
    after: Files,
    *,
    subject: str | None = "Change files",
    body: str = "",
    author: str = _AUTHOR,
    date: str = "Wed, 15 Nov 2023 10:00:00 +0000",
) -> bytes:
    """A patch file that turns `before` into `after` (paths left out of `after` stay).

    `subject=None` gives a raw diff without a header.
    """
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.create(Path(folder) / "r.git")
        old = upstream.commit(before)
        diff = upstream.diff(old, upstream.commit(after))
    return diff if subject is None else patch_header(subject, body, author, date) + diff


def patch_header(subject: str, body: str = "", author: str = _AUTHOR, date: str = "") -> bytes:
    """The mail header and message that stand above a diff."""
    lines = [f"From: {author}"]
    lines += [f"Date: {date}"] if date else []
    lines += [f"Subject: {subject}", ""]
    lines += [body.rstrip("\n"), ""] if body else []
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _parents(tip: str | None, parents: tuple[str, ...] | None) -> list[bytes]:
    ids = (tip,) if parents is None and tip else parents or ()
    return [f"{'merge' if i else 'from'} {oid}\n".encode() for i, oid in enumerate(ids)]


def _change(path: str, content: Content) -> bytes:
    name = _quoted(path)
    if content is None:
        return b"D %s\n" % name
    if isinstance(content, Submodule):
        return b"M 160000 %s %s\n" % (content.commit.encode(), name)
    if isinstance(content, Symlink):
        return b"M 120000 inline %s\n%s" % (name, _data(content.target))
    if isinstance(content, File):
        return b"M %s inline %s\n%s" % (content.mode.encode(), name, _data(content.data))
    return b"M 100644 inline %s\n%s" % (name, _data(content))


def _data(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return b"data %d\n%s\n" % (len(data), data)


def _quoted(path: str) -> bytes:
    data = os.fsencode(path)
    if not data.startswith(b'"') and b"\n" not in data:
        return data
    return b'"' + data.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
