"""Stage a move by our own hand, where all files are plain: their bytes on disk are those of blobs.

Git does it where an attribute, a filter, a line end, a link, a submodule, a sparse checkout or a
setting that we do not know may give a file another form (`changes.py`). Both end in the same files
and in the same rows of the index; a test compares them. It saves four git processes, of which one
writes every file.

*The index.* What is known: the checkout is clean, and its index is what git looked at then, so its
rows are those of HEAD's tree. So the rows of paths that differ between the two trees are replaced
(each has to be what the old tree has), all others stay; of the extensions the cache of trees stays,
but for the folders above those paths. The format is in gitformat-index(5).

*What a row says of a file on disk* (times, size, inode) lets git skip reading it. Git compares
times by the second, and reads a file that is not older than the index (its technical/racy-git).
Invariant: a row says something only of bytes that are its blob's, and whoever writes to the file
from now on gives it a time of another second, or one that is not before the index's.

- A row that stays, of a file not older than the old index: the file is read once more, and if its
  second is not over the row says nothing.
- A new row: a file keeps inode, size and time of its staging when it is renamed in. With another
  time to the nanosecond, or staged only a tick of the clock ago and with other bytes by now, its
  row says nothing. If the second went by until the index was written, all are looked at once more.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    TreeEntry,
    decode_path,
    encode_path,
)
from patchkit.model.tree import TreeChange
from patchkit.workspace.checkout import Checkout
from patchkit.workspace.contents import Contents, contents_at, kind_of, on_disk

_HEAD = struct.Struct(">4sII")
_ROW = struct.Struct(">10I20sH")
_STAT = struct.Struct(">10I")
_VERSION = 2
_SUM = 20  # bytes of the checksum at the end
_NAME_BITS = 0xFFF
#: Bits of a row's flags for: not to be looked at, more flags follow, one side of a conflict.
_ODD_BITS = 0xF000
#: What the settings that `create.py` makes, and git's own at `git init`, say; any other is odd.
_CORE = {
    **{"repositoryformatversion": "0", "filemode": "true", "bare": "false"},
    **{"logallrefupdates": "true", "autocrlf": "false", "eol": "lf", "safecrlf": "false"},
    **{"symlinks": "true", "splitindex": "false", "sparsecheckout": "false"},
}
_HARMLESS_SECTIONS = re.compile(r"\[\s*(user|remote|branch|alias|color|gc|pack|diff|log|push)\b.*")
#: What in a .gitattributes can change the bytes of a file in a worktree.
_FORMS = re.compile(rb"\b(eol|ident|filter|working-tree-encoding|crlf)\b|\[attr\]")
_SECOND = 10**9  # in nanoseconds
_MODE = 6  # what of a row's head is the mode
_32_BITS = 0xFFFFFFFF  # what a row has room for
#: A tick of a file system's clock is at most so long, in nanoseconds.
_TICK = 20_000_000


class StagedFile(Struct, frozen=True):
    """A file in the move's folder, as it was written there."""

    contents: Contents
    #: Where its row starts in the index.
    row: int
    inode: int  # of the file as written
    size: int  # in bytes
    #: When it was written, in nanoseconds, by the file system's clock.
    time: int


class PlainStage(Struct):
    """Files that were staged, and the index to end with."""

    #: By their paths.
    files: dict[str, StagedFile]
    index: bytearray
    #: When files began to move, in nanoseconds since the epoch.
    begun: int = 0


def stage_plainly(
    checkout: Checkout,
    changes: Sequence[TreeChange],
    blobs: Mapping[str, bytes],
    folder: Path,
) -> PlainStage | None:
    """Write the files to come below `folder`/new, and `folder`/index; None where git has to do it.

    The index is that of the old tree of `changes`, and locked. `blobs` are new blobs by id; others
    are read from the repository. Nothing is written if the answer is None.
    """
    rows = {encode_path(each.path): each for each in changes}
    if not _all_plain(changes) or not _has_plain_settings(checkout.git_dir):
        return None
    if (folder / "new").exists():
        return None
    index = (checkout.git_dir / "index").read_bytes()
    stamp = int((checkout.git_dir / "index").stat().st_mtime)
    edited = _edited_index(index, rows, stamp)
    if edited is None or not _has_plain_attributes(checkout, index, rows):
        return None
    wanted = [each.new.oid for each in changes if each.new is not None]
    data = dict(blobs)
    if missing := [oid for oid in wanted if oid not in data]:
        with reading(checkout.repository) as reader:
            data |= reader.read_present(missing)
    if any(oid not in data for oid in wanted):
        return None
    (folder / "new").mkdir()
    edited.smudge(checkout.path, int((folder / "new").stat().st_mtime))
    places = edited.places
    files = {
        each.path: _write(folder / "new", each, data[each.new.oid], places)
        for each in changes
        if each.new is not None
    }
    stage = PlainStage(files, edited.index)
    _write_index(stage, folder / "index")
    return stage


def note_files(stage: PlainStage, root: Path, index: Path) -> None:
    """Let the index say of each file that was put in place what git knows unedited files by."""
    newest = max((each.time for each in stage.files.values()), default=0) // _SECOND
    for _ in range(2):
        for path, staged in stage.files.items():
            _STAT.pack_into(stage.index, staged.row, *_stat_of(stage, root, path, staged))
        _write_index(stage, index)
        if int(index.stat().st_mtime) <= newest:
            break  # git reads what is as new as the index


def date_new_files(repository: Repository, then: int) -> bool:
    """Date the files that git has just written to `then`, in nanoseconds, and let the index say so.

    Nobody has edited them yet, and whoever does makes them younger than the index says: an edit
    in the second of the index could be hidden else. False, with nothing changed, where the form of
    a file may be another one than its blob's: there git has to look. Invariant: a row says
    something only of the file that git noted there when it wrote it.
    """
    root, index = repository.work_tree, repository.git_dir / "index"
    if root is None or not _has_plain_settings(repository.git_dir):
        return False
    data = bytearray(index.read_bytes())
    rows = _all_rows(data)
    if rows is None:
        return False
    attributes = [at for path, at in rows if path.rpartition(b"/")[2] == b".gitattributes"]
    if not _say_no_form(repository, [data[at + 40 : at + 60].hex() for at in attributes]):
        return False
    above = os.fsencode(root) + b"/"
    for path, at in rows:
        place = above + path
        noted = _STAT.unpack_from(data, at)
        if noted[_MODE] == SUBMODULE_MODE:
            continue
        before = os.lstat(place)
        os.utime(place, ns=(then, then), follow_symlinks=False)
        now = os.lstat(place)
        known = (before.st_mtime_ns, before.st_ino, before.st_size)
        if _noted_time(noted) == _lowest_bits(known) and now.st_size == before.st_size:
            _STAT.pack_into(data, at, *_row_stat(now, noted[_MODE]))
        else:
            _STAT.pack_into(data, at, *([0] * _MODE), noted[_MODE], 0, 0, 0)
    data[-_SUM:] = sha1(memoryview(data)[:-_SUM]).digest()
    _replace(index, data)
    return True


def _noted_time(row: Sequence[int]) -> tuple[int, int, int]:
    """Time, inode and size of a file, as a row has them."""
    return row[2] * _SECOND + row[3], row[5], row[9]


def _lowest_bits(known: tuple[int, int, int]) -> tuple[int, int, int]:
    """The same of a file on disk, as far as a row has room for it."""
    seconds, rest = divmod(known[0], _SECOND)
    return (seconds & _32_BITS) * _SECOND + rest, known[1] & _32_BITS, known[2] & _32_BITS


def _row_stat(now: os.stat_result, mode: int) -> list[int]:
    """What a row says of a file on disk."""
    times = (*divmod(now.st_ctime_ns, _SECOND), *divmod(now.st_mtime_ns, _SECOND))
    place = (now.st_dev, now.st_ino, mode, now.st_uid, now.st_gid, now.st_size)
    return [each & _32_BITS for each in (*times, *place)]


def _all_rows(data: bytearray) -> list[tuple[bytes, int]] | None:
    """Path and start of each row of an index; None for an odd one."""
    count = _count(data)
    if count is None:
        return None
    rows: list[tuple[bytes, int]] = []
    at = _HEAD.size
    for _ in range(count):
        end = data.index(b"\0", at + _ROW.size)
        if data[at + 60] & (_ODD_BITS >> 8):
            return None
        rows.append((bytes(data[at + _ROW.size : end]), at))
        at += (end - at) // 8 * 8 + 8
    return rows


def _count(data: bytes | bytearray) -> int | None:
    """How many rows an index has; None if it is damaged or of another version."""
    if len(data) < _HEAD.size + _SUM or data[-_SUM:] != sha1(memoryview(data)[:-_SUM]).digest():
        return None
    mark, version, count = _HEAD.unpack_from(data)
    return int(count) if mark == b"DIRC" and version == _VERSION else None


def _stat_of(stage: PlainStage, root: Path, path: str, staged: StagedFile) -> list[int]:
    """What the row of a file says of it; but for the mode nothing if it is not what was staged."""
    mode = _STAT.unpack_from(stage.index, staged.row)[_MODE]
    now = os.lstat(on_disk(root, path))
    is_same = (now.st_ino, now.st_size, now.st_mtime_ns) == (staged.inode, staged.size, staged.time)
    if not is_same or (
        stage.begun - staged.time < _TICK and contents_at(root, path) != staged.contents
    ):
        return [0] * _MODE + [mode, 0, 0, 0]
    return _row_stat(now, mode)


def _all_plain(changes: Iterable[TreeChange]) -> bool:
    """Whether only ordinary files change, and none that says how others look."""
    entries = [entry for each in changes for entry in (each.old, each.new) if entry is not None]
    names = {each.path.rpartition("/")[2] for each in changes}
    return ".gitattributes" not in names and all(
        entry.mode in (FILE_MODE, EXECUTABLE_MODE) for entry in entries
    )


def _has_plain_settings(git_dir: Path) -> bool:
    """Whether the repository's own settings are all known to leave files as they are."""
    info = git_dir / "info"
    others = (info / "attributes", info / "sparse-checkout", git_dir / "config.worktree")
    if any(each.exists() for each in others):
        return False
    section = ""
    for line in (git_dir / "config").read_bytes().decode("utf-8", "replace").lower().split("\n"):
        text = line.strip()
        if text.startswith("["):
            section = text
            if text != "[core]" and not _HARMLESS_SECTIONS.fullmatch(text):
                return False
        elif section == "[core]" and text:
            key, _, value = (part.strip() for part in text.partition("="))
            if _CORE.get(key) != value:
                return False
    return True


def _has_plain_attributes(checkout: Checkout, index: bytes, rows: Iterable[bytes]) -> bool:
    """Whether no .gitattributes on the way to these paths says how a file looks on disk."""
    if b".gitattributes\0" not in index:
        return True
    folders = {row[: at + 1] for row in rows for at in _slashes(row)}
    blobs = [
        blob
        for folder in folders
        if (blob := _blob_in(index, folder + b".gitattributes")) is not None
    ]
    return _say_no_form(checkout.repository, blobs)


def _say_no_form(repository: Repository, blobs: Sequence[str]) -> bool:
    """Whether none of these .gitattributes says how a file looks on disk."""
    if not blobs:
        return True
    with reading(repository) as reader:
        found = reader.read_present(blobs)
    return all(oid in found and not _FORMS.search(found[oid]) for oid in blobs)


def _slashes(path: bytes) -> list[int]:
    """Where the folders above a path end, -1 for the top."""
    return [-1, *(at for at, byte in enumerate(path) if byte == ord("/"))]


def _blob_in(index: bytes, path: bytes) -> str | None:
    """The blob of a path in an index; None if it has none."""
    at = 0
    while (at := index.find(path + b"\0", at + 1)) >= 0:
        if at >= _HEAD.size + _ROW.size:
            *_, oid, flags = _ROW.unpack_from(index, at - _ROW.size)
            if flags & _NAME_BITS == min(len(path), _NAME_BITS):
                return str(oid.hex())
    return None


def _edited_index(data: bytes, rows: Mapping[bytes, TreeChange], stamp: int) -> _Edited | None:
    """An index with the rows after the changes; None for an odd one. `stamp`: its time, in seconds.

    Rows are in the order of their paths' bytes. Invariant of the walk: `parts` has what becomes of
    all before `kept`, and every path of `wanted` comes after the row before `at`.
    """
    count = _count(data)
    if count is None:
        return None
    rest = _Rows(rows)
    fresh: list[tuple[bytes, int]] = []
    kept = at = _HEAD.size
    since = min(stamp, _32_BITS).to_bytes(4, "big")
    for _ in range(count):
        end = data.index(b"\0", at + _ROW.size)
        path = data[at + _ROW.size : end]
        after = at + (end - at) // 8 * 8 + 8
        if rest.wanted and path >= rest.wanted[-1]:
            rest.keep(data[kept:at])
            kept = at
            rest.add_before(path)
            if rest.wanted and path == rest.wanted[-1]:
                if not rest.replace(path, _ROW.unpack_from(data, at)):
                    return None
                kept = after
        if kept <= at and data[at + 8 : at + 12] >= since:
            fresh.append((path, rest.length + at - kept))
        at = after
    rest.keep(data[kept:at])
    rest.add_before(None)
    extension = _cache_of_trees(data[at:-_SUM], rows)
    if extension is None or rest.odd:
        return None
    head = _HEAD.pack(b"DIRC", _VERSION, count + rest.more)
    index = bytearray(b"".join([head, *rest.parts, extension, bytes(_SUM)]))
    return _Edited(index, rest.places, fresh)


class _Edited(Struct):
    """An index with other rows."""

    index: bytearray
    #: Where the new rows start.
    places: dict[bytes, int]
    #: Rows that stayed, of files not older than the index was: path, start.
    fresh: list[tuple[bytes, int]]

    def smudge(self, root: Path, now: int) -> None:
        """Let rows that stayed say nothing where the file may be edited; `now` is in seconds."""
        for path, row in self.fresh:
            stat = _ROW.unpack_from(self.index, row)
            found = contents_at(root, decode_path(path))
            if stat[2] >= now or found is None or found.oid != stat[10].hex():
                struct.pack_into(">I", self.index, row + 36, 0)  # the size


class _Rows:
    """The rows of an index in the making; `wanted` are paths still to come, the next one last."""

    def __init__(self, changes: Mapping[bytes, TreeChange]) -> None:
        self.wanted = sorted(changes, reverse=True)
        self.parts: list[bytes] = []
        self.places: dict[bytes, int] = {}
        self.more = 0
        self.odd = False  # a row that should have been there was not
        self._changes = changes
        self.length = _HEAD.size

    def keep(self, rows: bytes) -> None:
        self.parts.append(rows)
        self.length += len(rows)

    def add_before(self, path: bytes | None) -> None:
        """Add the new rows of paths that come before this one, of all for None."""
        while self.wanted and (path is None or self.wanted[-1] < path):
            change = self._changes[self.wanted[-1]]
            self.odd = self.odd or change.old is not None
            self._add(self.wanted.pop(), change.new)

    def replace(self, path: bytes, old: tuple[object, ...]) -> bool:
        """Put the new row of a path, if it has one, for its old one; False if that is odd."""
        change = self._changes[self.wanted.pop()]
        *_, oid, flags = old
        assert isinstance(oid, bytes)
        assert isinstance(flags, int)
        if change.old is None or flags & _ODD_BITS:
            return False
        if (old[_MODE], oid.hex()) != (change.old.mode, change.old.oid):
            return False
        self.more -= 1
        self._add(path, change.new)
        return True

    def _add(self, path: bytes, entry: TreeEntry | None) -> None:
        if entry is None:
            return
        self.places[path] = self.length
        self.more += 1
        stat = (0, 0, 0, 0, 0, 0, entry.mode, 0, 0, 0)
        row = _ROW.pack(*stat, bytes.fromhex(entry.oid), min(len(path), _NAME_BITS)) + path
        self.keep(row.ljust(_length(path), b"\0"))


def _length(path: bytes) -> int:
    """How long the row of a path is: one to eight NULs end it at a multiple of eight."""
    return (_ROW.size + len(path) + 8) // 8 * 8


def _cache_of_trees(extensions: bytes, paths: Iterable[bytes]) -> bytes | None:
    """The cache of trees among an index's extensions, less the folders above these paths.

    The others only save time; None for one without which git cannot read the index.
    """
    at, found = 0, b""
    while at + 8 <= len(extensions):
        name, size = extensions[at : at + 4], int.from_bytes(extensions[at + 4 : at + 8], "big")
        if name[:1].islower():
            return None
        if name == b"TREE":
            node, _ = _node(extensions[at + 8 : at + 8 + size], 0)
            for path in paths:
                node.forget(path.split(b"/"))
            body = node.written()
            found = b"TREE" + len(body).to_bytes(4, "big") + body
        at += 8 + size
    return found


class _Node(Struct):
    """A folder in the cache of trees: rows below it, -1 where its tree is not known; its tree."""

    name: bytes  # of the folder; b"" for the top
    count: int  # rows of the index below it; -1: its tree is not known
    tree: bytes
    below: list[_Node]

    def forget(self, parts: Sequence[bytes]) -> None:
        """Let the trees of the folders above a path be unknown."""
        self.count, self.tree = -1, b""
        for each in self.below:
            if len(parts) > 1 and each.name == parts[0]:
                each.forget(parts[1:])

    def written(self) -> bytes:
        """The folder and all below it, as git writes them."""
        head = b"%s\0%d %d\n%s" % (self.name, self.count, len(self.below), self.tree)
        return b"".join([head, *(each.written() for each in self.below)])


def _node(data: bytes, at: int) -> tuple[_Node, int]:
    """The folder that starts there, and where it ends."""
    named = data.index(b"\0", at)
    line = data.index(b"\n", named)
    count, below = map(int, data[named + 1 : line].split())
    end = line + 1 + (20 if count >= 0 else 0)
    node = _Node(data[at:named], count, data[line + 1 : end], [])
    for _ in range(below):
        child, end = _node(data, end)
        node.below.append(child)
    return node, end


def _write(
    folder: Path, change: TreeChange, data: bytes, places: Mapping[bytes, int]
) -> StagedFile:
    """Write a file to come below a folder, at its path."""
    assert change.new is not None
    path = encode_path(change.path)
    place = os.path.join(os.fsencode(folder), path)  # noqa: PTH118
    mode = 0o777 if change.new.mode == EXECUTABLE_MODE else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(place, flags, mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120
        descriptor = os.open(place, flags, mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        now = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    contents = Contents(kind_of(change.new.mode), change.new.oid)
    return StagedFile(contents, places[path], now.st_ino, now.st_size, now.st_mtime_ns)


def _write_index(stage: PlainStage, path: Path) -> None:
    """Write the index with its checksum, whole or not at all."""
    stage.index[-_SUM:] = sha1(memoryview(stage.index)[:-_SUM]).digest()
    _replace(path, stage.index)


def _replace(path: Path, data: bytearray) -> None:
    draft = path.with_name("index.draft")
    draft.write_bytes(data)
    draft.replace(path)
