"""What a move of a checkout is about to do, on disk before the first file changes.

The folder of a move, `.git/patchkit/move/`:

    new/<path>     the files to put in place, already in the form that they have in a worktree
    old/<number>   the files that they replaced, until the move is through
    index          the index to end with
    journal.json   this journal; as long as it is there, the worktree may be half-way

A write-ahead journal with redo, and the old files kept for undo. Invariant: while it is there, all
new files, the new index and the old files that went are in the folder of the move, and each path of
the journal holds its old or its new contents. So the move can be finished at any moment, each step
any number of times; until the first ref has moved it can be put back as well. It is written once
all of it is there, and removed once files, index and refs agree. Whatever else is found at one of
its paths was written by the user after a crash, and stops the move.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from msgspec import Struct, to_builtins

from patchkit.disk.files import replace_file
from patchkit.errors import SurroundingsError
from patchkit.model.decoding import from_builtins
from patchkit.model.objects import CommitId
from patchkit.workspace.contents import Contents

_VERSION = 1


class MoveStep(Struct, frozen=True):
    """One path of a move, relative to the checkout: what is there and what is to be."""

    path: str
    old: Contents | None  # None for nothing
    new: Contents | None  # None for nothing


class Journal(Struct, frozen=True):
    """A move of a checkout from `head` to `tip`, a stack on `base`.

    `branch`, `applied`, `base_before` and `halt_before` are what the refs say before it, None where
    there is no such ref; `halt` is what the checkout waits for after it. `index` is the id of the
    index file's bytes. `folders` are submodules to make a folder for, `dropped` those whose folder
    goes if it is empty.
    """

    head: CommitId | None
    branch: str | None
    applied: str | None
    base_before: str | None
    index: str | None
    base: CommitId
    tip: CommitId
    steps: tuple[MoveStep, ...]  # one for each path that differs, by path
    folders: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    halt: str | None = None
    halt_before: str | None = None


def move_folder(own_folder: Path) -> Path:
    """The folder of a move."""
    return own_folder / "move"


def journal_path(own_folder: Path) -> Path:
    """The journal's file."""
    return move_folder(own_folder) / "journal.json"


def write_journal(own_folder: Path, journal: Journal) -> None:
    """Put the journal on disk, whole and synced, by one rename."""
    text = json.dumps({"version": _VERSION, **to_builtins(journal)})
    replace_file(journal_path(own_folder), text.encode("ascii"))


def read_journal(own_folder: Path) -> Journal | None:
    """The journal of a move that did not end; None if there is none.

    SurroundingsError if it is damaged, or another version's.
    """
    path = journal_path(own_folder)
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        if data.pop("version", None) == _VERSION:
            return from_builtins(data, Journal)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        checkout = shlex.quote(str(own_folder.parent.parent))
        raise SurroundingsError(
            f"{path} is damaged: {error}",
            hint=f"see what git -C {checkout} status says, then delete that file",
        ) from None
    raise SurroundingsError(
        f"{path} is of another version of patchkit",
        hint="finish the apply with the patchkit that began it",
    )
