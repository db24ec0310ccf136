"""Real upstream repositories and patches, built without a git process for each commit.

Ids are the same on every machine: authors and dates are fixed, each commit a minute after the last.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from patchkit.model.objects import CommitId
from tests.support.objects import Entry, Objects

_AUTHOR = "Ann Author <ann@example.com>"
_START = 1700000000
_ID = re.compile(r"[0-9a-f]{40}")
#: A commit of more files goes through `git fast-import`, which packs them.
_FEW = 100
_DIFF = ("-p", "--full-index", "--binary", "--diff-algorithm=histogram", "-M")
_DIFF_TREE = ("diff-tree", "--stdin", *_DIFF)


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
        minute: int | None = None,
    ) -> CommitId:
        """Commit a change of `files` on top of `branch` (or of `parents`); returns the full id.

        Each commit is made a minute after the one before, unless its `minute` is given.

        `branch` moves to the new commit. Paths that are not named stay as they are in the first
        parent; `parents=()` starts a new history.
        """
        self._commits += 1
        after = self._commits if minute is None else minute
        when = f"{_START + 60 * after} +0000"
        head = f"author {author} {when}\ncommitter {author} {when}\n".encode()
        tip = self.resolve(f"refs/heads/{branch}")
        ids = (tip,) if parents is None and tip else parents or ()
        if len(files) > _FEW or not all(_ID.fullmatch(each) for each in ids):
            return CommitId(self.fast_import(files, message, branch, ids, head))
        objects = Objects(self.path)
        made = {os.fsencode(path): _entry(objects, content) for path, content in files.items()}
        tree = objects.changed(objects.tree_of(ids[0]) if ids else None, made)
        lines = [f"tree {tree}\n", *(f"parent {each}\n" for each in ids)]
        commit = objects.write(b"commit", "".join(lines).encode() + head + b"\n" + _raw(message))
        self._point(f"refs/heads/{branch}", commit)
        return CommitId(commit)

    def fast_import(
        self, files: Files, message: str, branch: str, parents: tuple[str, ...], head: bytes
    ) -> str:
        """The same by git; `head` are the author's and the committer's line."""
        stream = [b"feature done\n", f"commit refs/heads/{branch}\nmark :1\n".encode(), head]
        stream.append(_data(message))
        words = ("from", *["merge"] * len(parents))
        stream += [f"{w} {p}\n".encode() for w, p in zip(words, parents, strict=False)]
        stream += [_change(path, content) for path, content in files.items()]
        stream.append(b"\nget-mark :1\ndone\n")
        return (
            self.git("fast-import", "--quiet", "--force", stdin=b"".join(stream)).decode().strip()
        )

    def branch(self, name: str, revision: str) -> None:
        """Make or move a branch."""
        self._point(f"refs/heads/{name}", revision)

    def tag(self, name: str, revision: str) -> None:
        """Make a lightweight tag."""
        self._point(f"refs/tags/{name}", revision)

    def _point(self, ref: str, revision: str) -> None:
        file = self.path / ref
        if not _ID.fullmatch(revision) or file.is_dir():
            self.git("update-ref", ref, revision)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{revision}\n")

    def resolve(self, revision: str) -> str | None:
        """The id that a full ref name or an expression stands for; None if there is none."""
        ref = self.path / revision
        if revision.startswith("refs/") and ref.is_file():
            return ref.read_text().strip()
        if revision.startswith("refs/") and not (self.path / "packed-refs").exists():
            return None
        out = git_in(self.path, "rev-parse", "--verify", "--quiet", revision, accept=(0, 1, 128))
        return out.decode().strip() or None

    def at(self, revision: str) -> CommitId:
        """The id that an expression stands for."""
        found = self.resolve(revision)
        assert found is not None
        return CommitId(found)

    def vanish(self) -> None:
        """Be reached no more, or again."""
        gone = self.path.with_name("gone")
        (gone if gone.exists() else self.path).rename(self.path if gone.exists() else gone)

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """Path -> contents of all files of a commit or tree."""
        return tree_files(self.path, revision)

    def tree(self, revision: str = "main") -> str:
        """The id of a commit's tree."""
        commit = revision if _ID.fullmatch(revision) else self.resolve(f"refs/heads/{revision}")
        if commit is not None and (self.path / "objects" / commit[:2] / commit[2:]).exists():
            return Objects(self.path).tree_of(commit)
        return self.git("rev-parse", revision + "^{tree}").decode().strip()

    def diff(self, old: str, new: str) -> bytes:
        """The change between two commits in the form that patchkit writes."""
        return self.git("-c", "core.quotePath=false", "diff-tree", *_DIFF, old, new)

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
    diff = _differ().diff(before, after)
    return diff if subject is None else patch_header(subject, body, author, date) + diff


def patch_header(subject: str, body: str = "", author: str = _AUTHOR, date: str = "") -> bytes:
    """The mail header and message that stand above a diff."""
    lines = [f"From: {author}"]
    lines += [f"Date: {date}"] if date else []
    lines += [f"Subject: {subject}", ""]
    lines += [body.rstrip("\n"), ""] if body else []
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


class _Differ:
    """One `git diff-tree --stdin` for all patches that a test run makes."""

    _END = b"=end of the difference="

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="patchkit-differ-")
        repository = Upstream.create(Path(self._folder.name) / "r.git").path
        self._objects = Objects(repository)
        settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/"}
        # no child of ours, so that a test may wait for all of its children; it ends with its input
        started = subprocess.Popen(
            [
                "sh",
                "-c",
                'exec 3<&0; git "$@" <&3 3<&- &',
                "git",
                "-c",
                "core.quotePath=false",
                *_DIFF_TREE,
            ],
            cwd=repository,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"} | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        started.wait()
        assert started.stdin is not None
        assert started.stdout is not None
        self._asking, self._answering = started.stdin, started.stdout
        atexit.register(self.close)

    def diff(self, before: Files, after: Files) -> bytes:
        old = self._tree(None, before)
        question = f"{old} {self._tree(old, after)}\n".encode()
        # what is no pair of ids is printed as it came, once all before it is
        self._asking.write(question + self._END + b"\n")
        answer = bytearray()
        while not answer.endswith(self._END + b"\n"):
            part = os.read(self._answering.fileno(), 1 << 16)
            assert part, "git diff-tree has ended"
            answer += part
        return bytes(answer.removeprefix(question).removesuffix(self._END + b"\n"))

    def _tree(self, base: str | None, files: Files) -> str:
        changes = {os.fsencode(p): _entry(self._objects, each) for p, each in files.items()}
        return self._objects.changed(base, changes)

    def close(self) -> None:
        self._asking.close()
        self._answering.close()
        self._folder.cleanup()


@cache
def _differ() -> _Differ:
    return _Differ()


def _entry(objects: Objects, content: Content) -> Entry | None:
    if content is None:
        return None
    if isinstance(content, Submodule):
        return b"160000", content.commit
    if isinstance(content, Symlink):
        return b"120000", objects.write(b"blob", _raw(content.target))
    if isinstance(content, File):
        return content.mode.encode(), objects.write(b"blob", _raw(content.data))
    return b"100644", objects.write(b"blob", _raw(content))


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
    data = _raw(text)
    return b"data %d\n%s\n" % (len(data), data)


def _raw(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _quoted(path: str) -> bytes:
    data = os.fsencode(path)
    if not data.startswith(b'"') and b"\n" not in data:
        return data
    return b'"' + data.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
