"""Find the commit that broke each patch by halving: few commits tried, for very long lines.

It takes for granted what a walk finds out: that a patch which does not fit at the tip never did
since it broke first. A break that was mended in between is not seen.
"""

from __future__ import annotations

from collections.abc import Callable

from patchkit.drift.along import Along
from patchkit.drift.judging import PatchVerdict, SeriesJudge
from patchkit.drift.walking import Change, Touch, Walk, change_at, judge_commit
from patchkit.gitcmd.firstparent import describe_commits


def bisect_history(along: Along, judge: SeriesJudge) -> Walk:
    """A walk of which only the start, the tip and the commits between two states are known."""
    history = along.history
    line = history.line()
    commits = (line.start, *line.commits)
    seen: dict[int, tuple[PatchVerdict, ...]] = {}

    def at(position: int) -> tuple[PatchVerdict, ...]:
        if position not in seen:
            seen[position] = judge_commit(along, judge, commits[position])
        return seen[position]

    at_pin = judge_commit(along, judge, history.pin)
    last = len(commits) - 1
    found = [_halved(at, patch, last) for patch in range(len(at_pin))]
    broke = sorted({change.position for changes in found for change in changes if change.position})
    described = describe_commits(history.repository, [commits[each] for each in broke])
    touches = tuple(Touch(each, described[commits[each]], commits[each - 1], ()) for each in broke)
    return Walk(line.start, history.tip, last, touches, at_pin, tuple(found))


def _halved(
    at: Callable[[int], tuple[PatchVerdict, ...]], patch: int, last: int
) -> tuple[Change, ...]:
    """The patch's state at the start and from where it is as at the end; one where these agree."""
    end = _fate(at(last)[patch])
    if _fate(at(0)[patch]) == end:
        return (change_at(0, at(last)[patch]),)
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fate(at(middle)[patch]) == end else (middle, high)
    return change_at(0, at(0)[patch]), change_at(high, at(high)[patch])


def _fate(verdict: PatchVerdict) -> str:
    return "fits" if verdict.status.applies else verdict.status.value
