"""A resolved conflict, as it is remembered: for which change among which files, and what it makes.

    Subject: Resolve answer.patch in serve.py

    Conflict: <key>
    Upstream: <mode> <blob>      the file on which the diff stands, or "none"
    Result: <mode> <blob>        what it must make of it, or "none"
    Merged-By: <name>            only where no person, but a merger of the manifest's resolved it

    diff --git ...

The key is a hash of the patch's hunks on the file, without line numbers, of its path, and of the
two upstream files: the one for which the patch was made, and the one that it met. So it holds for
that conflict alone, on any machine. The diff is empty where the result is upstream's own file.
"""

from __future__ import annotations

import re
from hashlib import sha256

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.model.mail import parse_patch
from patchkit.model.objects import TreeEntry
from patchkit.model.patch import FileChange

_KEY = re.compile(r"[0-9a-f]{64}")
_ENTRY = re.compile(r"(?P<mode>100644|100755|120000) (?P<oid>[0-9a-f]{40})")
_HINT = "delete it, and resolve the conflict again"


class Resolution(Struct, frozen=True):
    """What a conflict came to: `changes` make `result` of the file `upstream`; None for no file.

    `where` is the file that says so, `by` the merger that made it, "" for a person.
    """

    key: str  # SHA-256 of the conflict, in hex: see `conflict_key`
    upstream: TreeEntry | None
    result: TreeEntry | None
    changes: tuple[FileChange, ...]
    where: str
    by: str = ""


def conflict_key(
    change: FileChange, path: str, base: TreeEntry | None, upstream: TreeEntry | None
) -> str:
    """What tells a conflict of one file from every other."""
    parts = [change.kind.value, path, _text(base), _text(upstream)]
    parts += [f"{change.old_path} {change.new_path} {change.new_mode}"]
    digest = sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    for hunk in change.hunks:
        digest.update(b"\0@@" + b"".join(hunk.lines))
    for binary in change.binary or ():
        digest.update(b"\0bin" + (binary.data if binary is not None else b""))
    return digest.hexdigest()


def format_resolution(resolution: Resolution, patch: str, path: str, diff: bytes) -> bytes:
    """The file of a resolution of `patch` in `path`."""
    text = (
        f"Subject: Resolve {patch} in {path}\n\n"
        f"Conflict: {resolution.key}\n"
        f"Upstream: {_text(resolution.upstream)}\n"
        f"Result: {_text(resolution.result)}\n"
    )
    text += f"Merged-By: {resolution.by}\n\n" if resolution.by else "\n"
    return text.encode("utf-8", "surrogateescape") + diff


def parse_resolution(data: bytes, where: str) -> Resolution:
    """The resolution in a file; BadInputError if it is none."""
    file = parse_patch(data, name=where)
    fields = dict(
        re.findall(r"^(Conflict|Upstream|Result|Merged-By): (.+)$", file.message, re.MULTILINE)
    )
    key = fields.get("Conflict", "")
    if not _KEY.fullmatch(key) or not {"Upstream", "Result"} <= fields.keys():
        raise BadInputError(Problem("is not a recorded resolution", where, _HINT))
    upstream, result = (_entry(fields[name], where) for name in ("Upstream", "Result"))
    by = fields.get("Merged-By", "")
    return Resolution(key, upstream, result, file.changes, where, by)


def other_result(resolution: Resolution) -> BadInputError:
    """The error of a resolution that does not make what it says."""
    what = "gives another result than the one that was recorded"
    return BadInputError(Problem(what, resolution.where, _HINT))


def _text(entry: TreeEntry | None) -> str:
    return "none" if entry is None else f"{entry.mode:o} {entry.oid}"


def _entry(text: str, where: str) -> TreeEntry | None:
    if text == "none":
        return None
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise BadInputError(Problem(f"{text!r} names no file", where, _HINT))
    return TreeEntry(int(found["mode"], 8), found["oid"])
