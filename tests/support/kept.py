"""What a set-up command left, put on disk again in place of running it once more.

Hundreds of tests begin with the same `apply` or `bump`, in a folder of the same name. What it
leaves follows from what is below that folder, the command line and the environment: under a digest
of these it is kept in memory, and whoever begins so again gets the difference.

Invariant: the digest is of all that is below the folder but for what an index knows of files on
disk, which git looks up again.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import Ran

#: What is on disk: mode, and a file's bytes, a link's target; None for a folder.
_Node = tuple[int, bytes | None]
_Nodes = dict[str, _Node]
_NOT_ASKED = ("PYTEST", "COVERAGE")


@dataclass(frozen=True)
class _Left:
    """What a command said and changed; None: it is gone."""

    ran: Ran
    changes: Mapping[str, _Node | None]


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
        _put(left.changes)
        return left.ran
    ran = run()
    after = _look(root)
    changed = {path: node for path, node in after.items() if before.get(path) != node}
    _kept[key] = _Left(ran, {**changed, **dict.fromkeys(before.keys() - after.keys())})
    return ran


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
                    data = os.fsencode(Path(entry.path).readlink())
                elif entry.is_dir():
                    folders.append(entry.path)
                elif entry.is_file():
                    data = Path(entry.path).read_bytes()
                found[entry.path] = mode, data
    return found


def _digest(nodes: _Nodes, argv: tuple[str, ...], cwd: Path) -> str:
    mask = os.umask(0o022)
    os.umask(mask)
    environment = sorted(row for row in os.environ.items() if not row[0].startswith(_NOT_ASKED))
    summed = hashlib.sha256(repr((argv, cwd, mask, environment)).encode())
    for path in sorted(nodes):
        mode, data = nodes[path]
        seen = _without_stat(data) if data and data.startswith(b"DIRC") else data
        summed.update(ascii((path, mode, seen is None, len(seen or b""))).encode())
        summed.update(seen or b"")
    return summed.hexdigest()


def _without_stat(index: bytes) -> bytes:
    """An index less what it knows of files on disk, and its checksum."""
    data = bytearray(index[:-20])
    version, count = struct.unpack_from(">2I", data, 4)
    at = 12
    for _ in range(count if version == 2 else 0):
        data[at : at + 24] = bytes(24)
        data[at + 28 : at + 40] = bytes(12)
        end = data.index(b"\0", at + 62)
        at += (end - at) // 8 * 8 + 8
    return bytes(data)


def _put(changes: Mapping[str, _Node | None]) -> None:
    for path in sorted((path for path, node in changes.items() if node is None), reverse=True):
        _remove(path)
    for path in sorted(changes):
        node = changes[path]
        if node is not None:
            _make(path, *node)
    for path in changes:
        if path.endswith("/.git/index"):  # its rows know other files
            refresh = ["git", "update-index", "-q", "--unmerged", "--really-refresh"]
            folder = path.removesuffix("/.git/index")
            subprocess.run(refresh, cwd=folder, stdout=subprocess.DEVNULL, check=False)


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _remove(path: str) -> None:
    place = Path(path)
    if _is_folder(place):
        place.rmdir()
    else:
        place.unlink(missing_ok=True)


def _make(path: str, mode: int, data: bytes | None) -> None:
    place = Path(path)
    if data is not None or not _is_folder(place):
        _remove(path)
    if mode & 0o170000 == 0o120000:
        place.symlink_to(os.fsdecode(data or b""))
        return
    if data is None:
        place.mkdir(exist_ok=True)
    else:
        place.write_bytes(data)
    place.chmod(mode & 0o7777)
