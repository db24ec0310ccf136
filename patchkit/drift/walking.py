"""One walk along a tracked branch: when each patch's state changed, and by which commit.

The walk looks at commits that touch the patches' files only; between two of them nothing can have
changed. It can go on from where an earlier one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from patchkit.drift.judging import HunkFault, PatchVerdict, SeriesJudge, State
from patchkit.gitcmd.firstparent import (
    Commit,
    Entries,
    Landing,
    Line,
    entries_at,
    landings,
)
from patchkit.gitcmd.objects import ObjectReader
from patchkit.histories import History
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.model.outcome import Status

#: So many commits' versions of files are in memory together.
_READ_AT_ONCE = 100

#: Brings the blobs that are about to be read.
Bring = Callable[[Iterable[str]], None]


@dataclass(frozen=True, slots=True)
class Touch:
    """A commit of the line that changes files of patches.

    `position` counts the commits of the line from 1 (0 is where it starts); `parent` is the one
    before it.
    """

    position: int
    commit: Commit
    parent: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """From the commit at `position` of the line on, the patch's state is this one.

    `carried` is what the carry engine makes of a patch that does not apply.
    """

    position: int
    status: Status
    faults: tuple[HunkFault, ...] = ()
    carried: Status | None = None


@dataclass(frozen=True, slots=True)
class Walk:
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


def walk_history(
    history: History, judge: SeriesJudge, bring: Bring, earlier: Walk | None = None
) -> Walk:
    """Judge every state between the fork and the tip; or only those after the `earlier` walk."""
    whole = history.line()
    before = _resume(history, judge, bring, whole, earlier) if earlier is not None else None
    if before is None:
        before = _begin(history, judge, bring, whole.start)
    found = landings(history.repository, _since(history, before), history.tip, judge.paths)
    places = {commit: position for position, commit in enumerate(whole.commits, 1)}
    touches, changes = list(before.touches), [list(each) for each in before.changes]
    for landing in _with_contents(history, judge, bring, found):
        position = places[landing.commit.id]
        touches.append(_touch(position, landing))
        _note(changes, position, judge.update(landing.touches, landing.commit.id))
    return replace(
        before,
        tip=history.tip,
        length=len(whole.commits),
        touches=tuple(touches),
        changes=tuple(map(tuple, changes)),
    )


def _with_contents(
    history: History, judge: SeriesJudge, bring: Bring, found: Sequence[Landing]
) -> Iterator[Landing]:
    """The commits one by one, each when the files that it brings are at hand."""
    batches = [found[at : at + _READ_AT_ONCE] for at in range(0, len(found), _READ_AT_ONCE)]
    blobs = [_versions(batch) for batch in batches]
    brought = False
    with ObjectReader(history.repository) as reader:
        for batch, wanted in zip(batches, blobs, strict=True):
            contents = reader.read_present(wanted)
            if wanted.keys() - contents.keys() and not brought:
                bring(set[str]().union(*blobs))  # one fetch for all
                reader.close()  # the running git need not see new packs
                contents |= reader.read_present(wanted.keys() - contents.keys())
                brought = True
            judge.supply(contents)
            yield from batch


def state_of(entries: Entries, paths: Sequence[str]) -> State:
    """The whole state of `paths`, with None for those that hold nothing."""
    return {path: entries.get(path) for path in paths}


def judge_commit(
    history: History, judge: SeriesJudge, bring: Bring, commit: str
) -> tuple[PatchVerdict, ...]:
    """The verdicts on one commit, whatever was judged before it."""
    entries = entries_at(history.repository, commit, judge.paths)
    bring(_blobs(entries.values()))
    return judge.update(state_of(entries, judge.paths), commit)


def _begin(history: History, judge: SeriesJudge, bring: Bring, start: str) -> Walk:
    """A walk of no commits: the state on the pin, and where the line starts."""
    at_pin = judge_commit(history, judge, bring, history.pin)
    verdicts = at_pin if start == history.pin else judge_commit(history, judge, bring, start)
    changes = tuple((_change(0, verdict),) for verdict in verdicts)
    return Walk(start, start, 0, (), at_pin, changes)


def _resume(
    history: History, judge: SeriesJudge, bring: Bring, line: Line, earlier: Walk
) -> Walk | None:
    """The earlier walk, if the line goes on from its end and its last states are right."""
    reached = (line.start, *line.commits)[earlier.length : earlier.length + 1]
    same_series = len(earlier.changes) == judge.count
    if earlier.start != line.start or reached != (earlier.tip,) or not same_series:
        return None  # the branch was rewritten, or the walk is another series'
    verdicts = judge_commit(history, judge, bring, earlier.tip)
    now = [_change(0, verdict) for verdict in verdicts]
    last = [replace(each[-1], position=0) for each in earlier.changes]
    return earlier if now == last else None


def _since(history: History, walk: Walk) -> str:
    return walk.tip if walk.length else history.fork


def _note(changes: list[list[Change]], position: int, verdicts: Sequence[PatchVerdict]) -> None:
    for known, verdict in zip(changes, verdicts, strict=True):
        now = _change(position, verdict)
        if replace(now, position=known[-1].position) != known[-1]:
            known.append(now)


def _change(position: int, verdict: PatchVerdict) -> Change:
    return Change(position, verdict.status, verdict.faults, verdict.carried)


def _touch(position: int, landing: Landing) -> Touch:
    return Touch(position, landing.commit, landing.parent, tuple(landing.touches))


def _versions(batch: Sequence[Landing]) -> dict[str, None]:
    """The blobs that commits bring, the versions of one file together: git unpacks them faster."""
    touches = [pair for each in batch for pair in each.touches.items()]
    entries = [entry for _, entry in sorted(touches, key=lambda pair: pair[0])]
    return dict.fromkeys(e.oid for e in entries if e is not None and e.mode != SUBMODULE_MODE)


def _blobs(entries: Iterable[TreeEntry | None]) -> set[str]:
    return {e.oid for e in entries if e is not None and e.mode != SUBMODULE_MODE}
