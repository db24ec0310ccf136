"""What each report saw, so that the next one can say what changed since: a line of JSON for each.

    {"form":1,"at":"2026-03-05T12:00:00Z","manifest":"demo","component":"greeter","ref":"main",
     "pin":"...","tip":"...","patches":{"polite.patch":["conflicted","16f7..."]},"notes":[]}

One file for a manifest, oldest line first. A line is appended by a single write under a lock, so
that two runs cannot mix theirs; one that was torn by a crash is passed over. The newest lines of
each component and branch are kept.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import replace_file
from patchkit.errors import SurroundingsError
from patchkit.model.objects import CommitId, lines_of
from patchkit.model.outcome import Status
from patchkit.model.states import state_of

#: So many reports of one component along one branch are kept; the file may hold twice that.
KEPT = 200

#: A file of more bytes is made shorter: to half of that at most, with notes in newest lines only.
LARGEST = 4_000_000

_FORM = 1
_TEXTS = ("at", "manifest", "component", "ref", "pin", "tip")

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

    def is_like(self, other: Seen) -> bool:
        """Whether both saw the same."""
        mine = (self.line, self.pin, self.tip, dict(self.patches), set(self.notes))
        return mine == (other.line, other.pin, other.tip, dict(other.patches), set(other.notes))


def read_record(path: Path) -> tuple[Seen, ...]:
    """What was seen, oldest first; lines that are none are passed over."""
    try:
        return tuple(_parsed(path.read_bytes()))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be read: {error.strerror}") from error


def append_seen(path: Path, seen: Sequence[Seen]) -> None:
    """Add lines for what was seen, unless the last line about it says the same.

    Raises SurroundingsError where the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path) as descriptor:
            data = _whole(descriptor)
            known = tuple(_parsed(data))
            last = {each.line: each for each in known}
            new = [s for s in seen if s.line not in last or not s.is_like(last[s.line])]
            if _too_long([*known, *new]) or (new and len(data) > LARGEST):
                replace_file(path, _shortened([*known, *new]), named=True)
            elif new:
                # what a crash tore off stays a line of its own
                start = b"\n" if data and not data.endswith(b"\n") else b""
                _write(descriptor, start + b"".join(map(_line, new)))
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {error.strerror}") from error


def _write(descriptor: int, data: bytes) -> None:
    while data:  # once, but on a disk that is nearly full
        data = data[os.write(descriptor, data) :]


def _whole(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0)


def _too_long(record: Sequence[Seen]) -> bool:
    counts: defaultdict[Line, int] = defaultdict(int)
    for each in record:
        counts[each.line] += 1
    return any(count > 2 * KEPT for count in counts.values())


def _shortened(record: Sequence[Seen]) -> bytes:
    kept = KEPT
    while len(data := b"".join(map(_line, _newest(record, kept)))) > LARGEST // 2 and kept > 1:
        kept //= 2
    return data


def _newest(record: Sequence[Seen], kept: int) -> Iterable[Seen]:
    """The newest of each line; notes are compared with those of the newest only."""
    counts: defaultdict[Line, int] = defaultdict(int)
    found = []
    for each in reversed(record):
        counts[each.line] += 1
        if counts[each.line] <= kept:
            found.append(each if counts[each.line] == 1 else replace(each, notes=()))
    return reversed(found)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, open for appending, while nobody else writes it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_still(path, descriptor):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the file has not been replaced while we waited."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _line(seen: Seen) -> bytes:
    patches = {name: [each.status.value, each.by] for name, each in seen.patches.items()}
    facts = {
        "form": _FORM,
        "at": seen.at,
        "manifest": seen.manifest,
        "component": seen.component,
        "ref": seen.ref,
        "pin": seen.pin,
        "tip": seen.tip,
        "patches": patches,
        "notes": list(seen.notes),
    }
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n"


def _parsed(data: bytes) -> Iterator[Seen]:
    for row in lines_of(data):
        try:
            facts = json.loads(row)
            if facts["form"] == _FORM:
                yield _seen(facts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue


def _seen(facts: Mapping[str, Any]) -> Seen:
    patches = {
        str(name): SeenPatch(Status(status), str(by))
        for name, (status, by) in facts["patches"].items()
    }
    at, manifest, component, ref, pin, tip = (str(facts[key]) for key in _TEXTS)
    notes = tuple(map(str, facts["notes"]))
    return Seen(at, manifest, component, ref, pin, CommitId(tip), patches, notes)


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
