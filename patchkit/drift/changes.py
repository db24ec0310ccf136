"""What changed from one report on a component to the next."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from patchkit.drift.record import Seen, SeenPatch
from patchkit.model.outcome import Status

# How much there is to do about a patch; between states of one rank nothing worth telling changes.
_RANKS = {
    Status.UNCHANGED: 0,
    Status.SHIFTED: 0,
    Status.EMPTY: 0,
    Status.REGENERATED: 1,
    Status.MERGED: 2,
    Status.ABSORBED: 3,
    Status.WAITING: 4,
    Status.SKIPPED: 4,
    Status.CONFLICTED: 5,
}


class Change(Struct, frozen=True):
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
    tip: str
    changes: tuple[Change, ...]
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
    gone = (Change(name, None, before[name].status) for name in before if name not in now.patches)
    noted = last.notes if last is not None else ()
    return Since(
        at=last.at if last is not None else "",
        pin=last.pin if last is not None else "",
        tip=last.tip if last is not None else "",
        changes=tuple(_told(changes, first=last is None)) + tuple(gone),
        new=tuple(each for each in now.notes if each not in noted),
        settled=tuple(each for each in noted if each not in now.notes),
    )


def _told(changes: list[Change | None], *, first: bool) -> Iterator[Change]:
    """The changes that are any; in a first report patches that fit are no news."""
    for change in changes:
        if change is not None and not (first and not _rank(change.status)):
            yield change


def _change(name: str, was: SeenPatch | None, now: SeenPatch) -> Change | None:
    if was is None:
        return Change(name, now.status, None)
    if _rank(was.status) != _rank(now.status):
        return Change(name, now.status, was.status)
    broken = _rank(now.status) > 0 and now.by != was.by and bool(now.by)
    return Change(name, now.status, was.status, again=True) if broken else None


def _rank(status: Status | None) -> int:
    return 0 if status is None else _RANKS[status]
