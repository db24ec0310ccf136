"""Drift reports made up from strings: one letter for the state on each commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from hashlib import sha1
from itertools import groupby

from patchkit.drift.drift_report import Break, HunkFault, Interval, PatchDrift
from patchkit.errors import ExitCode
from patchkit.model.finding import Landed
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Reason, Status
from patchkit.ops.drift import ComponentDrift, DriftReport

STATES = {
    "u": Status.UNCHANGED,
    "s": Status.SHIFTED,
    "a": Status.ABSORBED,
    "e": Status.EMPTY,
    "x": Status.CONFLICTED,
}
PAGE = "https://forge.example/owner/name/commit/"
_START = datetime(2025, 12, 20, tzinfo=timezone.utc)


def landed(number: int, subject: str = "", author: str = "Ann") -> Landed:
    """The commit at a place of the line; five a month."""
    oid = sha1(str(number).encode(), usedforsecurity=False).hexdigest()
    date = (_START + timedelta(days=6 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Landed(CommitId(oid), date, author, subject or f"Change {number}", number, PAGE + oid)


def component_drift(
    patches: Mapping[str, str], subjects: Sequence[str] = (), author: str = "Ann"
) -> ComponentDrift:
    """A component: {"one.patch": "uusx"} is a patch along a start and three commits."""
    cells = max(map(len, patches.values()))
    names = [*subjects, *[""] * cells][:cells]
    line = tuple(landed(number, name, author) for number, name in enumerate(names))
    told = tuple(_patch(name, states, line) for name, states in patches.items())
    bad = any(each.status is Status.CONFLICTED for each in told)
    return ComponentDrift(
        manifest="made-up",
        name="demo",
        pin=line[0].commit,
        exit_code=ExitCode.FINDING if bad else ExitCode.OK,
        ref="main",
        fork=line[0].commit,
        start=line[0],
        tip=line[-1],
        commits=cells - 1,
        touching=cells - 1,
        patches=told,
        line=line,
    )


def drift_report(*components: ComponentDrift) -> DriftReport:
    """A report of these."""
    return DriftReport(components)


def _patch(name: str, states: str, line: Sequence[Landed]) -> PatchDrift:
    runs, at = [], 0
    for letter, group in groupby(states):
        length = len(list(group))
        runs.append(_interval(name, STATES[letter], at, at + length - 1, line))
        at += length
    end = runs[-1]
    broken = end.since if end.status is Status.CONFLICTED else None
    breaks = (Break(broken, None, False, end.faults),) if broken is not None else ()
    return PatchDrift(
        name=name,
        where="patches/demo/a.patch",
        at_pin=runs[0].status,
        status=end.status,
        since=end.since,
        last_good=line[end.first - 1] if broken is not None else None,
        broken_by=broken,
        days=None,
        absorbed_by=end.since if end.status is Status.ABSORBED else None,
        breaks=breaks,
        risk=None,
        intervals=tuple(runs),
    )


def _interval(name: str, status: Status, first: int, last: int, line: Sequence[Landed]) -> Interval:
    clashes = status is Status.CONFLICTED
    faults = (HunkFault(f"{name}.py", 1, 7, Reason.CONTEXT),) if clashes else ()
    return Interval(status, first, last, line[first] if first else None, faults)
