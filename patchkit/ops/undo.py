"""What it takes to undo a bump: the project's files as they were, and where the checkout was.

One record for each checkout, in the workspace; only the last bump can be undone. It is believed
only where the files are what it says that the bump made of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import replace_file
from patchkit.disk.transaction import write_set
from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.model.names import can_be_a_file
from patchkit.model.resolution import ENDING
from patchkit.ops.refresh_report import BumpedComponent
from patchkit.workspace import Checkout
from patchkit.workspace.checkout import OWN_FOLDER

_VERSION = 1


class CannotUndoError(PatchkitError):
    """There is nothing to undo, or it changed since."""

    exit_code = ExitCode.FINDING


class Undo(Struct, frozen=True):
    """A bump, or a verb on the series, that can be undone.

    `files`: path below the root -> (bytes before, SHA-256 after), None for no file. `before` and
    `after` are the (base, tip) of the checkout, None if it was not moved. `bump`: its pin was.
    """

    component: str
    files: Mapping[str, tuple[bytes | None, str | None]]
    before: tuple[str, str] | None = None
    after: tuple[str, str] | None = None
    bump: bool = True

    def is_done(self, root: Path) -> bool:
        """Whether every file is as the bump made it."""
        return all(_digest(root / path) == new for path, (_, new) in self.files.items())

    @property
    def taken_back(self) -> dict[str, tuple[bytes | None, str | None]]:
        """The files that undo puts back: not what remembers how a conflict was resolved."""
        return {path: each for path, each in self.files.items() if not is_resolution(path)}

    def is_undone(self, root: Path) -> bool:
        """Whether every file is as it was before."""
        return all(_digest(root / path) == _hash(old) for path, (old, _) in self.taken_back.items())

    def put_back(self, root: Path) -> bool:
        """Give every file its old bytes, all or none; False if they have them.

        Recorded resolutions stay: they are work of a person's. CannotUndoError if a file was
        changed since.
        """
        if self.is_undone(root):
            return False
        files = self.taken_back
        changed = [path for path, (_, new) in files.items() if _digest(root / path) != new]
        if changed:
            what = f"{', '.join(changed)} changed since"
            raise CannotUndoError(Problem(what, self.component, "take it back with git"))
        writes = {root / path: old for path, (old, _) in files.items()}
        seen = {path: _bytes(path) for path in writes}
        write_set(root, writes, seen)
        return True


def is_resolution(path: str) -> bool:
    """Whether a file of the project remembers how a conflict was resolved."""
    return path.endswith(ENDING)


def record_path(checkout: Checkout) -> Path:
    """Where the record of a checkout's last bump is."""
    return checkout.workspace / OWN_FOLDER / f"{checkout.name}.undo.json"


def bump_record_path(checkout: Checkout) -> Path:
    """Where the report of a checkout's last finished bump is, for its review."""
    return checkout.workspace / OWN_FOLDER / f"{checkout.name}.bump.json"


def keep_report(checkout: Checkout, row: BumpedComponent) -> BumpedComponent:
    """Record what a bump did, in place of the one before; only of one that is finished, and
    where there is a workspace. Returns `row`.
    """
    path = bump_record_path(checkout)
    if row.moved and path.parent.is_dir():
        kept = replace(row, halted=None, notes=(), problems=(), findings=())
        replace_file(path, msgspec.json.encode({"version": _VERSION, "component": kept}))
    return row


def read_report(path: Path) -> BumpedComponent | None:
    """The report that was kept there; None if there is none that can be read."""
    try:
        text = json.loads(path.read_bytes())
        if text["version"] != _VERSION:
            return None
        return msgspec.convert(text["component"], BumpedComponent)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_undo(checkout: Checkout, undo: Undo) -> None:
    """Keep a record, in place of the one before; nothing where there is no workspace."""
    path = record_path(checkout)
    if not path.parent.is_dir():
        return
    text = {
        "version": _VERSION,
        "component": undo.component,
        "files": {name: [_encoded(old), new] for name, (old, new) in undo.files.items()},
        "before": undo.before,
        "after": undo.after,
        "bump": undo.bump,
    }
    replace_file(path, json.dumps(text, indent=1).encode("ascii"))


def read_undo(checkout: Checkout) -> Undo | None:
    """The record; None if there is none that can be read."""
    try:
        text = json.loads(record_path(checkout).read_bytes())
        if text["version"] != _VERSION:
            return None
        files = {_inside(name): (_decoded(old), new) for name, (old, new) in text["files"].items()}
        places = (tuple(each) if each else None for each in (text["before"], text["after"]))
        before, after = places
        return Undo(text["component"], files, before, after, bool(text.get("bump", True)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def forget_undo(checkout: Checkout) -> None:
    """Remove the record, and that of the bump's report."""
    record_path(checkout).unlink(missing_ok=True)
    bump_record_path(checkout).unlink(missing_ok=True)


def made_of(
    root: Path, writes: Mapping[Path, bytes | None]
) -> dict[str, tuple[bytes | None, str | None]]:
    """The files of an Undo, of a set that is about to be written."""
    return {
        path.relative_to(root).as_posix(): (_bytes(path), _hash(data))
        for path, data in writes.items()
        if path.is_relative_to(root)
    }


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _digest(path: Path) -> str | None:
    return _hash(_bytes(path))


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _inside(name: str) -> str:
    """A path of a record, which may have come with a project; ValueError if it leads out."""
    if not can_be_a_file(name):
        raise ValueError(name)
    return name


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
