"""Git objects written and read in this process: a test's commit costs no process.

Only loose objects are written; one that is packed is asked of `git cat-file`.
"""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Mode and id of what a name in a folder stands for.
Entry = tuple[bytes, str]
_FOLDER = b"40000"

#: Commits and trees that have been seen, of any repository: an id has one content.
_seen: dict[str, bytes] = {}


class Objects:
    """The objects of a bare repository."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / "objects"
        self._repository = repository

    def write(self, kind: bytes, content: bytes) -> str:
        """Store an object, unless it is there; its id."""
        data = b"%s %d\0%s" % (kind, len(content), content)
        name = hashlib.sha1(data).hexdigest()
        folder = self._folder / name[:2]
        file = folder / name[2:]
        if kind != b"blob":
            _seen[name] = content
        if not file.exists():
            folder.mkdir(exist_ok=True)
            file.write_bytes(zlib.compress(data, 1))
            file.chmod(0o444)
        return name

    def read(self, name: str) -> bytes:
        """The content of a commit or tree."""
        if name not in _seen:
            loose = self._folder / name[:2] / name[2:]
            if loose.is_file():
                _seen[name] = zlib.decompress(loose.read_bytes()).split(b"\0", 1)[1]
            else:
                asked = f"{name}\n".encode()
                argv = ["git", "cat-file", "--batch"]
                out = subprocess.check_output(argv, cwd=self._repository, input=asked)
                _seen[name] = out.split(b"\n", 1)[1][:-1]
        return _seen[name]

    def tree_of(self, commit: str) -> str:
        """The id of a commit's tree."""
        return self.read(commit)[5:45].decode()

    def changed(self, tree: str | None, changes: Mapping[bytes, Entry | None]) -> str:
        """The tree in which each path of `changes` has become its entry, or None: gone.

        As `git fast-import` has it: a file gives way to a folder and the other way round, later
        paths see what earlier ones did, and a folder without a file is left out.
        """
        return self._write(self._change(tree, list(changes.items()))) or self.write(b"tree", b"")

    def _change(
        self, tree: str | None, changes: Iterable[tuple[bytes, Entry | None]]
    ) -> dict[bytes, Entry]:
        entries = self._entries(tree)
        below: dict[bytes, list[tuple[bytes, Entry | None]]] = {}
        for path, entry in changes:
            name, slash, rest = path.partition(b"/")
            if slash:
                if name not in below and name not in entries and entry is None:
                    continue
                below.setdefault(name, []).append((rest, entry))
                continue
            below.pop(name, None)
            if entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
        for name, inner in below.items():
            mode, old = entries.get(name, (b"", ""))
            if mode != _FOLDER and all(entry is None for _, entry in inner):
                continue  # nothing below a file to take away
            made = self._write(self._change(old if mode == _FOLDER else None, inner))
            if made is None:
                entries.pop(name, None)
            else:
                entries[name] = (_FOLDER, made)
        return entries

    def _entries(self, tree: str | None) -> dict[bytes, Entry]:
        entries: dict[bytes, Entry] = {}
        data = self.read(tree) if tree else b""
        position = 0
        while position < len(data):
            end = data.index(b"\0", position)
            mode, name = data[position:end].split(b" ", 1)
            entries[name] = (mode, data[end + 1 : end + 21].hex())
            position = end + 21
        return entries

    def _write(self, entries: Mapping[bytes, Entry]) -> str | None:
        if not entries:
            return None
        # git compares names of folders as if they ended with a slash
        rows = sorted(entries.items(), key=lambda r: r[0] + (b"/" if r[1][0] == _FOLDER else b""))
        parts = [b"%s %s\0%s" % (mode, name, bytes.fromhex(oid)) for name, (mode, oid) in rows]
        return self.write(b"tree", b"".join(parts))
