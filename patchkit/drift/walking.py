"""One walk along a tracked branch: when each patch's state changed, and by which commit.

The walk looks at commits that touch the patches' files only; between two of them nothing can have
changed. It can go on from where an earlier one ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.along import Along, blobs_of
from patchkit.drift.judging import HunkFault, PatchVerdict, SeriesJudge
from patchkit.gitcmd.firstparent import Commit, Landing, Line, walk_line
from patchkit.model.outcome import Status

#: So many commits' versions of files are in memory together.
_READ_AT_ONCE = 100


class Touch(Struct, frozen=True):
    """A commit of the line that changes files of patches.

    `position` counts the commits of the line from 1 (0 is where it starts); `parent` is the one
    before it.
    """

    position: int
    commit: Commit
    parent: str
    paths: tuple[str, ...]


class Change(Struct, frozen=True):
    """From the commit at `position` of the line on, the patch's state is this one.

    `carried` is what the carry engine makes of a patch that does not apply.
    """

    position: int
    status: Status
    faults: tuple[HunkFault, ...] = ()
    carried: Status | None = None


class Walk(Struct, frozen=True):
    """What a walk from `start` to `tip`, `length` commits, came upon.

    `at_pin` has each patch's state on the pin itself; `changes` has, for each patch, its state at
    position 0 and each other one after it.
    """

    start: str
    tip: str
    length: int
    touches: tuple[Touch, ...]
    at_pin: tuple[PatchVerdict, ...]
    changes: tuple[tuple[Change, ...], ...]


def walk_history(along: Along, judge: SeriesJudge, earlier: Walk | None = None) -> Walk:
    """Judge every state between the fork and the tip; or only those after the `earlier` walk."""
    history = along.history
    since = history.fork if earlier is None else earlier.tip
    line, found = walk_line(history.repository, since, history.tip, judge.paths)
    if earlier is None:
        before = _begin(along, judge, line.start)
    elif _goes_on(along, judge, line, earlier):
        before = earlier
    else:
        return walk_history(along, judge)
    places = {commit: place for place, commit in enumerate(line.commits, before.length + 1)}
    touches, changes = list(before.touches), [list(each) for each in before.changes]
    for landing in with_contents(along, judge, found):
        position = places[landing.commit.id]
        touches.append(_touch(position, landing))
        _note(changes, position, judge.update(landing.touches, landing.commit.id))
    return replace(
        before,
        tip=history.tip,
        length=before.length + len(line.commits),
        touches=tuple(touches),
        changes=tuple(map(tuple, changes)),
    )


class Supplied(Protocol):
    """Takes files before it is asked about states that have them."""

    def supply(self, contents: Mapping[str, bytes]) -> None:
        """Take these blobs as read; those of the last time may be forgotten."""


def with_contents(along: Along, judge: Supplied, found: Sequence[Landing]) -> Iterator[Landing]:
    """The commits one by one, each when the files that it brings are at hand."""
    batches = [found[at : at + _READ_AT_ONCE] for at in range(0, len(found), _READ_AT_ONCE)]
    blobs = [_versions(batch) for batch in batches]
    brought, reader = False, along.reader
    for batch, wanted in zip(batches, blobs, strict=True):
        contents = reader.read_present(wanted)
        if wanted.keys() - contents.keys() and not brought:
            along.bring(set[str]().union(*blobs))  # one fetch for all
            reader.close()  # the running git need not see new packs
            contents |= reader.read_present(wanted.keys() - contents.keys())
            brought = True
        judge.supply(contents)
        yield from batch


def judge_commit(along: Along, judge: SeriesJudge, commit: str) -> tuple[PatchVerdict, ...]:
    """The verdicts on one commit, whatever was judged before it."""
    entries = along.entries(commit, judge.paths)
    judge.supply(along.contents(entries.values()))
    return judge.update(entries, commit)


def _begin(along: Along, judge: SeriesJudge, start: str) -> Walk:
    """A walk of no commits: the state on the pin, and where the line starts."""
    pin = along.history.pin
    at_pin = judge_commit(along, judge, pin)
    verdicts = at_pin if start == pin else judge_commit(along, judge, start)
    changes = tuple((change_at(0, verdict),) for verdict in verdicts)
    return Walk(start, start, 0, (), at_pin, changes)


def _goes_on(along: Along, judge: SeriesJudge, line: Line, earlier: Walk) -> bool:
    """Whether the line goes on from the end of the earlier walk, and its last states are right."""
    if line.start != earlier.tip or len(earlier.changes) != judge.count:
        return False  # the branch was rewritten, or the walk is another series'
    carry, judge.carry = judge.carry, None  # what the engine said was kept with the walk
    verdicts = judge_commit(along, judge, earlier.tip)
    judge.carry = carry
    now = [change_at(0, verdict) for verdict in verdicts]
    last = [replace(each[-1], position=0, carried=None) for each in earlier.changes]
    return now == last


def with_last(walk: Walk, verdicts: Sequence[PatchVerdict]) -> Walk:
    """The walk with what the carry engine says of its tip.

    That may be news: a recipe looks at files that no patch touches, and nobody watches them.
    """
    ended = []
    for changes, verdict in zip(walk.changes, verdicts, strict=True):
        last = replace(changes[-1], carried=verdict.carried)
        if changes[-1].carried in (None, verdict.carried):
            ended.append((*changes[:-1], last))
        else:
            ended.append((*changes, replace(last, position=walk.length)))
    return replace(walk, changes=tuple(ended))


def _note(changes: list[list[Change]], position: int, verdicts: Sequence[PatchVerdict]) -> None:
    for known, verdict in zip(changes, verdicts, strict=True):
        last = known[-1]
        was = (last.status, last.carried, last.faults)
        if was != (verdict.status, verdict.carried, verdict.faults):
            known.append(change_at(position, verdict))


def change_at(position: int, verdict: PatchVerdict) -> Change:
    """The state that the patch is in from that commit on."""
    return Change(position, verdict.status, verdict.faults, verdict.carried)


def _touch(position: int, landing: Landing) -> Touch:
    return Touch(position, landing.commit, landing.parent, tuple(landing.touches))


def _versions(batch: Sequence[Landing]) -> dict[str, None]:
    """The blobs that commits bring, the versions of one file together: git unpacks them faster."""
    touches = [pair for each in batch for pair in each.touches.items()]
    return blobs_of(entry for _, entry in sorted(touches, key=lambda pair: pair[0]))
