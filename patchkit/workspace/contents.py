"""What stands at a path of a worktree, as bytes on disk: no attribute or filter is looked at.

Also which names of a tree are one on this file system, where case does not count.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import (
    GitObject,
    TreeEntry,
    Treeish,
    decode_path,
    encode_path,
    make_object,
)
from patchkit.model.text import listed

FILE = "file"
EXECUTABLE = "executable"
LINK = "link"
FOLDER = "folder"
SPECIAL = "special"

_CHUNK = 1 << 20


class Contents(Struct, frozen=True):
    """The kind of thing at a path, and the blob id of its bytes ("" but for files and links)."""

    kind: str
    oid: str = ""  # 40 hex digits, or ""

    @property
    def is_regular(self) -> bool:
        """Whether it is a file, and no symbolic link."""
        return self.kind in (FILE, EXECUTABLE)


def kind_of(mode: int) -> str:
    """The kind of thing that a tree's entry for a file or a symbolic link stands for."""
    if stat.S_ISLNK(mode):
        return LINK
    return EXECUTABLE if mode & stat.S_IXUSR else FILE


def fits(contents: Contents, mode: int) -> bool:
    """Whether what is on disk is of the kind that a tree's entry says."""
    return contents.kind == kind_of(mode)


def blob_at(place: Path) -> tuple[TreeEntry, GitObject]:
    """What a file or symbolic link is in a tree, its bytes as they are; and the blob."""
    mode = place.lstat().st_mode
    if stat.S_ISLNK(mode):
        data = os.readlink(os.fsencode(place))  # noqa: PTH115
        entry_mode = stat.S_IFLNK
    else:
        data = place.read_bytes()
        entry_mode = stat.S_IFREG | (0o755 if mode & stat.S_IXUSR else 0o644)
    blob = make_object("blob", data)
    return TreeEntry(entry_mode, blob.oid), blob


def full_path(root: Path, path: str) -> Path:
    """Where `path` of a tree is on disk: the same bytes, whatever the locale."""
    return root / os.fsdecode(encode_path(path))


def on_disk(root: Path, path: str) -> bytes:
    """The same as what the system takes; a move asks a dozen times for each file."""
    return os.fsencode(root) + b"/" + encode_path(path)


def contents_at(root: Path, path: str) -> Contents | None:
    """What stands at `path` below `root`; None for nothing, or if a parent is no real folder."""
    if blocking_parent(root, path) is not None:
        return None
    return contents_of(on_disk(root, path))


def contents_of(place: Path | bytes) -> Contents | None:
    """What stands at a place, symbolic links not followed."""
    place = os.fsencode(place)
    try:
        mode = os.lstat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(mode):
        return Contents(FOLDER)
    if stat.S_ISLNK(mode):
        # not Path.readlink, which tidies the target up
        return Contents(LINK, blob_id(os.readlink(place)))  # noqa: PTH115
    if stat.S_ISREG(mode):
        return Contents(EXECUTABLE if mode & stat.S_IXUSR else FILE, _file_id(place))
    return Contents(SPECIAL)


def blocking_parent(root: Path, path: str) -> str | None:
    """The first parent of `path` that is there and is no real folder (a file, a link)."""
    place = on_disk(root, path)
    end = len(os.fsencode(root)) + 1
    start = end
    while (end := place.find(b"/", end)) >= 0:
        try:
            mode = os.lstat(place[:end]).st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISDIR(mode):
            return decode_path(place[start:end])
        end += 1
    return None


def files_below(root: Path, folder: str) -> list[str]:
    """Every path below a folder that is not a folder, links not followed; in no order."""
    found: list[str] = []
    for entry in os.scandir(full_path(root, folder)):
        path = f"{folder}/{decode_path(os.fsencode(entry.name))}"
        if entry.is_dir(follow_symlinks=False):
            found += files_below(root, path)
        else:
            found.append(path)
    return found


def is_there(place: Path | bytes) -> bool:
    """Whether anything stands at a place, be it a link that leads nowhere."""
    return os.path.lexists(place)


def free_name(path: Path) -> Path:
    """The path, or with a number behind it where something is there."""
    name, number = path, 1
    while is_there(name):
        number += 1
        name = path.with_name(f"{path.name}-{number}")
    return name


def blob_id(data: bytes) -> str:
    """The id of a blob with these bytes."""
    return sha1(b"blob %d\x00%s" % (len(data), data), usedforsecurity=False).hexdigest()


def _file_id(place: bytes) -> str:
    with open(place, "rb", buffering=0) as stream:  # noqa: PTH123  no Path takes bytes
        size = os.fstat(stream.fileno()).st_size
        digest = sha1(b"blob %d\x00" % size, usedforsecurity=False)
        while chunk := stream.read(min(size + 1, _CHUNK)):
            digest.update(chunk)
    return digest.hexdigest()


# File systems that take `README` and `readme` for one file: no tree may need both there.
#
# git notes when it makes a repository whether names that differ by case are the same ones. Where
# they are not, nothing here costs anything.


_MOST_TOLD = 5


def require_distinct(repository: Repository, commit: Treeish) -> None:
    """SurroundingsError if names of a tree are one on the file system of this worktree."""
    if not folds_case(repository):
        return
    listing = repository.git("ls-tree", "-r", "-t", "--name-only", "-z", commit).out
    paths = [os.fsdecode(path) for path in listing.split(b"\0")[:-1]]
    if told := _told(paths):
        raise SurroundingsError(
            Problem(
                f"this file system takes names for one that differ only by case: {told}",
                str(repository.work_tree),
                "put the workspace where case counts (--workspace DIR)",
            )
        )


def require_steady(repository: Repository, changed: Iterable[str]) -> None:
    """SurroundingsError if paths that change are one on the file system of this worktree.

    To put the one there and to take the other away would leave neither.
    """
    if not folds_case(repository):
        return
    above = (path.split("/")[:deep] for path in changed for deep in range(1, path.count("/") + 2))
    if told := _told(dict.fromkeys("/".join(parts) for parts in above)):
        raise SurroundingsError(
            Problem(
                f"names change only by case, which this file system takes for one: {told}",
                str(repository.work_tree),
                "rename the checkout, and apply makes a new one; or use a case-sensitive disk",
            )
        )


def _told(paths: Iterable[str]) -> str:
    return listed([f"{one} and {other}" for one, other in clashing(list(paths))], _MOST_TOLD)


def folds_case(repository: Repository) -> bool:
    """Whether git found that names here are the same whatever their case."""
    return is_set(repository, "ignorecase", "true|yes|on|1")


def is_set(repository: Repository, key: str, values: str) -> bool:
    """Whether the repository's own settings give a key one of these values (`one|other`).

    They are read as text, at each move: what git found of the file system when it made it.
    """
    try:
        text = (repository.git_dir / "config").read_text("utf-8", "replace").lower()
    except FileNotFoundError:
        return False
    return re.search(rf"(?m)^\s*{key}\s*=\s*({values})\s*$", text) is not None


def clashing(paths: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that are one where case does not count, nor how an accent is written."""
    import unicodedata  # noqa: PLC0415 (few paths are not ASCII)

    first: dict[str, str] = {}
    for path in paths:
        composed = path if path.isascii() else unicodedata.normalize("NFC", path)
        before = first.setdefault(composed.casefold(), path)
        if before != path:
            yield before, path
