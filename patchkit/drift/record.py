"""What the last report saw, so that the next one can say what changed since: a line of JSON for
each component along a branch.

    {"at":"2026-03-05T12:00:00Z","manifest":"demo","component":"greeter","ref":"main","pin":"...",
     "tip":"...","patches":{"polite.patch":{"status":"conflicted","by":"16f7..."}},"notes":[]}

One file for a manifest. Whoever writes it holds a lock on its folder, so that two runs lose nothing
of each other; a line that is damaged is passed over.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from patchkit.disk.files import replace_file
from patchkit.errors import SurroundingsError
from patchkit.model.decoding import from_builtins
from patchkit.model.objects import CommitId, lines_of
from patchkit.model.outcome import Status
from patchkit.model.states import state_of

#: A component along a branch: manifest, component, ref.
Line: TypeAlias = tuple[str, str, str]


class SeenPatch(Struct, frozen=True):
    """A patch's state at the tip, and the commit that brought it about ("": none)."""

    status: Status
    by: str = ""  # the commit's id


class Seen(Struct, frozen=True):
    """What one report saw of a component; `at` is when, UTC, `notes` what else it found."""

    at: str
    manifest: str  # its name
    component: str
    ref: str  # the branch, tag or commit that was looked at
    pin: str  # as the manifest spells it
    tip: CommitId  # the newest commit of `ref` then
    patches: Mapping[str, SeenPatch]  # by name
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> Line:
        """What it is a report of."""
        return self.manifest, self.component, self.ref


def read_record(path: Path) -> dict[Line, Seen]:
    """What was seen last of each component; lines that cannot be read are passed over."""
    try:
        return {seen.line: seen for seen in _parsed(path.read_bytes())}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be read: {error.strerror}") from error


def note_seen(path: Path, seen: Iterable[Seen]) -> None:
    """Write what was seen now in place of what was seen before.

    Raises SurroundingsError where the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            record = read_record(path) | {each.line: each for each in seen}
            rows = (json.dumps(msgspec.to_builtins(each)) for each in record.values())
            replace_file(path, "".join(f"{row}\n" for row in rows).encode(), named=True)
        finally:
            os.close(folder)
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {error.strerror}") from error


def _parsed(data: bytes) -> Iterator[Seen]:
    for row in lines_of(data):
        try:
            yield from_builtins(json.loads(row), Seen)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            continue


# News: what changed from one report on a component to the next.


class StateChange(Struct, frozen=True):
    """A patch whose state is not what it was; None: it was not, or is not, in the series.

    `again`: it was mended in between, and another commit broke it.
    """

    patch: str
    status: Status | None
    was: Status | None
    again: bool = False

    @property
    def is_worse(self) -> bool:
        """Whether there is more to do than before; None counts as fitting."""
        return self.again or _rank(self.status) > _rank(self.was)


class Since(Struct, frozen=True):
    """What changed since the last report, which was made at `at` (UTC) and saw `pin` and `tip`.

    All three are empty where there was none. `new` and `settled` are other findings that came and
    went.
    """

    at: str
    pin: str
    tip: CommitId
    changes: tuple[StateChange, ...]  # of patches, in the order of the series
    new: tuple[str, ...]
    settled: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.changes or self.new or self.settled)

    @property
    def is_worse(self) -> bool:
        """Whether there is more to do for some patch than before."""
        return any(change.is_worse for change in self.changes)


def compare(last: Seen | None, now: Seen) -> Since:
    """What `now` saw and `last`, None for no report at all, did not."""
    before = last.patches if last is not None else {}
    changes = [_change(name, before.get(name), patch) for name, patch in now.patches.items()]
    gone = (
        StateChange(name, None, before[name].status) for name in before if name not in now.patches
    )
    noted = last.notes if last is not None else ()
    return Since(
        at=last.at if last is not None else "",
        pin=last.pin if last is not None else "",
        tip=last.tip if last is not None else CommitId(""),
        changes=tuple(_told(changes, first=last is None)) + tuple(gone),
        new=tuple(each for each in now.notes if each not in noted),
        settled=tuple(each for each in noted if each not in now.notes),
    )


def _told(changes: list[StateChange | None], *, first: bool) -> Iterator[StateChange]:
    """The changes that are any; in a first report patches that fit are no news."""
    for change in changes:
        if change is not None and not (first and not _rank(change.status)):
            yield change


def _change(name: str, was: SeenPatch | None, now: SeenPatch) -> StateChange | None:
    if was is None:
        return StateChange(name, now.status, None)
    if _rank(was.status) != _rank(now.status):
        return StateChange(name, now.status, was.status)
    broken = _rank(now.status) > 0 and now.by != was.by and bool(now.by)
    return StateChange(name, now.status, was.status, again=True) if broken else None


def _rank(status: Status | None) -> int:
    """Between states of one rank nothing worth telling changes."""
    return 0 if status is None else state_of(status).effort
