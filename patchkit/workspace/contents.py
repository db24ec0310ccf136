"""What stands at a path of a worktree, as bytes on disk: no attribute or filter is looked at."""

from __future__ import annotations

import os
import stat
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

from patchkit.model.objects import decode_path, encode_path

FILE = "file"
EXECUTABLE = "executable"
LINK = "link"
FOLDER = "folder"
SPECIAL = "special"

_CHUNK = 1 << 20


class Contents(Struct, frozen=True):
    """The kind of thing at a path, and the blob id of its bytes ("" but for files and links)."""

    kind: str
    oid: str = ""


def full_path(root: Path, path: str) -> Path:
    """Where `path` of a tree is on disk: the same bytes, whatever the locale."""
    return root / os.fsdecode(encode_path(path))


def _on_disk(root: Path, path: str) -> bytes:
    """The same as what the system takes; a move asks six times for each file."""
    return os.fsencode(root) + b"/" + encode_path(path)


def contents_at(root: Path, path: str) -> Contents | None:
    """What stands at `path` below `root`; None for nothing, or if a parent is no real folder."""
    if blocking_parent(root, path) is not None:
        return None
    return _contents(_on_disk(root, path))


def contents_of(place: Path) -> Contents | None:
    """What stands at a place, symbolic links not followed."""
    return _contents(os.fsencode(place))


def _contents(place: bytes) -> Contents | None:
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
    place = _on_disk(root, path)
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
    """Every path below a folder that is no folder, links not followed; in no order."""
    found: list[str] = []
    for entry in os.scandir(full_path(root, folder)):
        path = f"{folder}/{decode_path(os.fsencode(entry.name))}"
        if entry.is_dir(follow_symlinks=False):
            found += files_below(root, path)
        else:
            found.append(path)
    return found


def is_there(place: Path) -> bool:
    """Whether anything stands at a place, be it a link that leads nowhere."""
    return os.path.lexists(place)


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
