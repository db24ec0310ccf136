"""What a set-up command left, put on disk again in place of running it once more.

Hundreds of tests begin with the same `apply` or `bump`, in a folder of the same name. What it
leaves follows from what is below that folder, the command line and the environment: under a digest
of these it is kept in memory, and whoever begins so again gets the difference.

Invariant: the digest is of all that is below the folder but for what an index knows of files on
disk. Git itself looks at these anew.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK

from tests.support.commands import Ran

#: What is on disk: mode, and a file's bytes, a link's target; None for a folder.
_Node = tuple[int, bytes | None]
_Nodes = dict[str, _Node]
_NOT_ASKED = ("PYTEST", "COVERAGE")
_INDEX = "/.git/index"


@dataclass(frozen=True)
class _Left:
    """What a command said and changed."""

    ran: Ran
    removed: Sequence[str]  # what is gone, or another file; what is in a folder comes before it
    made: Mapping[str, _Node]  # what is new; a folder comes before what is in it


_kept: dict[str, _Left] = {}


def run_or_recall(run: Callable[[], Ran], argv: tuple[str, ...], cwd: Path) -> Ran:
    """What `run` gives, a command line in `cwd`, a folder in that of the test."""
    root = Path(os.environ["HOME"]).parent
    if cwd.parent != root:
        return run()
    before = _look(root)
    key = _digest(before, argv, cwd)
    left = _kept.get(key)
    if left is not None:
        _put(left)
        return left.ran
    ran = run()
    after = _look(root)
    made = {path: after[path] for path in sorted(after) if before.get(path) != after[path]}
    removed = [path for path in sorted(before, reverse=True) if _gives_way(before, after, path)]
    _kept[key] = _Left(ran, removed, made)
    return ran


def _gives_way(before: _Nodes, after: _Nodes, path: str) -> bool:
    old, new = before[path], after.get(path)
    return old != new and not (new and S_ISDIR(old[0]) and S_ISDIR(new[0]))


def _look(root: Path) -> _Nodes:
    """All that is below a folder."""
    found: _Nodes = {}
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                data: bytes | None = None
                if entry.is_symlink():
                    data = os.fsencode(os.readlink(entry.path))
                elif entry.is_dir():
                    folders.append(entry.path)
                elif entry.is_file():
                    with open(entry.path, "rb", buffering=0) as file:
                        data = file.read()
                found[entry.path] = mode, data
    return found


def _digest(nodes: _Nodes, argv: tuple[str, ...], cwd: Path) -> str:
    environment = sorted(row for row in os.environ.items() if not row[0].startswith(_NOT_ASKED))
    summed = hashlib.sha256(repr((argv, cwd, _umask(), environment)).encode())
    for path in sorted(nodes):
        mode, data = nodes[path]
        seen = without_stat(data) if data and data.startswith(b"DIRC") else data
        summed.update(ascii((path, mode, seen is None, len(seen or b""))).encode())
        summed.update(seen or b"")
    return summed.hexdigest()


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _put(left: _Left) -> None:
    for path in left.removed:
        _remove(path)
    mask = _umask()
    for path, (mode, data) in left.made.items():
        _make(path, mode, data, mask)
    for path in left.made:
        if path.endswith(_INDEX):
            refresh = ["git", "update-index", "-q", "--refresh"]
            subprocess.run(refresh, cwd=path.removesuffix(_INDEX), check=False, capture_output=True)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except (IsADirectoryError, PermissionError):
        os.rmdir(path)


def _make(path: str, mode: int, data: bytes | None, mask: int) -> None:
    if S_ISLNK(mode):
        os.symlink(data or b"", os.fsencode(path))
        return
    given = S_IMODE(mode)
    if data is not None:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, given)
        with open(made, "wb", buffering=0) as file:
            file.write(data)
    elif os.path.isdir(path):
        mask = 0o777  # only its mode is another one
    else:
        os.mkdir(path, given)
    if given & (mask | 0o7000):
        os.chmod(path, given)


def without_stat(index: bytes) -> bytes:
    """An index of version 2 less what it knows of files on disk, and its checksum.

    It is a head of 12 bytes, rows of 62 bytes and a path, filled up with zeros to eights, and more
    that is not for us. A row begins with ctime, mtime, device, inode, mode, owner, group and size.
    """
    version, count = struct.unpack_from(">2I", index, 4)
    data, at = bytearray(index[:-20]), 12
    for _ in range(count if version == 2 else 0):
        data[at : at + 24] = bytes(24)
        data[at + 28 : at + 40] = bytes(12)
        at += (index.index(b"\0", at + 62) - at) // 8 * 8 + 8
    return bytes(data)
