"""RECORD, in which an installer lists a wheel's files with their hashes: read, and kept true.

The format is that of the packaging specifications ("Recording installed projects"): CSV, one row
for each file: path, `sha256=` and the digest in URL-safe base64 without padding, size. Rows are
edited one by one and the others stay byte for byte, so that taking an edit back gives the old file.
"""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from patchkit.disk.files import files_in
from patchkit.model.names import can_be_a_file

RECORD = "RECORD"


class RowEdit(Struct, frozen=True):
    """What became of a row of RECORD: `old` and `new` are its lines, None where there is none.

    `at` is the number of the row in the old file, or where the new one was put.
    """

    path: str  # the row's first column
    at: int
    old: str | None
    new: str | None


class Distribution(Struct, frozen=True):
    """A wheel that was installed into a folder.

    `folder` is its .dist-info, `rows` has the line of its RECORD for each path that this lists.
    `editable` is the folder that it runs from, None for a copy.
    """

    folder: str
    rows: Mapping[str, str]
    editable: Path | None = None

    @property
    def title(self) -> str:
        """Name and version: `sglang 0.5.9`."""
        name, _, version = self.folder.removesuffix(".dist-info").partition("-")
        return f"{name.replace('_', '-')} {version}".strip()

    @property
    def record(self) -> str:
        """RECORD's path."""
        return f"{self.folder}/{RECORD}"

    def has_folder(self, name: str) -> bool:
        """Whether it installed something below the folder."""
        return any(path.startswith(f"{name}/") for path in self.rows)

    def is_own(self, path: str, data: bytes) -> bool | None:
        """Whether a file is as RECORD says; None where RECORD tells no hash of it."""
        told = _fields(self.rows.get(path, ""))[1:2]
        return told[0] == _digest(data) if told and told[0].startswith("sha256=") else None


def distributions(root: Path, read: Callable[[str], bytes | None]) -> tuple[Distribution, ...]:
    """The wheels installed into a folder, whose files `read` reads by path, by name.

    OSError for a RECORD that cannot be read.
    """
    found = (each.name for each in files_in(root, "*.dist-info") if each.is_dir())
    return tuple(_distribution(name, read) for name in found)


def edited(
    record: bytes, own: str, changes: Mapping[str, bytes | None]
) -> tuple[bytes, tuple[RowEdit, ...]]:
    """RECORD, whose path is `own`, with the new bytes of some paths (None: the file goes).

    Also what that did to it. What goes and is not listed makes no edit. A new row stands before
    RECORD's own.
    """
    rows, edits = _lines(record), list[RowEdit]()
    place = {path: number for number, path in enumerate(map(_path, rows)) if path}
    like, before = rows[0] if rows else "", place.get(own, 0)
    made: list[str | None] = [*rows]
    added: list[str] = []
    for path, data in sorted(changes.items()):
        at = place.get(path)
        new = None if data is None else _row(path, data, like if at is None else rows[at])
        if at is None and new is not None:
            edits.append(RowEdit(path, before, None, new))
            added.append(new)
        elif at is not None and new != rows[at]:
            edits.append(RowEdit(path, at, rows[at], new))
            made[at] = new
    made[before:before] = added
    return _text(row for row in made if row is not None), tuple(edits)


def restored(record: bytes, edits: Sequence[RowEdit]) -> bytes:
    """RECORD without the edits; rows that others wrote since stay."""
    rows = _lines(record)
    paths = [_path(row) for row in rows]
    for each in edits:
        if each.path in paths and (each.old is None or each.new is not None):
            at = paths.index(each.path)
            if each.old is None:
                del rows[at], paths[at]
            else:
                rows[at] = each.old
    # in the order of the old rows: each then finds all that stood before it
    for each in sorted(edits, key=lambda edit: edit.at):
        if each.new is None and each.old is not None and each.path not in paths:
            rows.insert(each.at, each.old)
            paths.insert(each.at, each.path)
    return _text(rows)


def _distribution(folder: str, read: Callable[[str], bytes | None]) -> Distribution:
    rows = _lines(read(f"{folder}/{RECORD}") or b"")
    listed = {path: row for path, row in zip(map(_path, rows), rows, strict=True) if path}
    return Distribution(folder, listed, _editable(read(f"{folder}/direct_url.json")))


def _editable(url: bytes | None) -> Path | None:
    """Where an editable install runs from (PEP 610)."""
    try:
        document = json.loads(url or b"")
        parts = urlsplit(document["url"])
        editable = document["dir_info"]["editable"] is True and parts.scheme == "file"
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Path(unquote(parts.path)) if editable else None


def _lines(data: bytes) -> list[str]:
    # str.splitlines would end lines at U+2028 and more, which names may have
    return re.findall(r"[^\n]*\n|[^\n]+", data.decode("utf-8", "surrogateescape"))


def _text(rows: Iterable[str]) -> bytes:
    return "".join(rows).encode("utf-8", "surrogateescape")


def _fields(row: str) -> list[str]:
    try:
        found = next(csv.reader([row.rstrip("\r\n")]), [])
    except csv.Error:
        return []
    return found if len(found) == 3 else []


def _path(row: str) -> str:
    fields = _fields(row)
    return fields[0] if fields and can_be_a_file(fields[0]) else ""


def _row(path: str, data: bytes, like: str) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([path, _digest(data), len(data)])
    end = "\r\n" if like.endswith("\r\n") else "\n" if like.endswith("\n") or not like else ""
    return text.getvalue() + end


def _digest(data: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
