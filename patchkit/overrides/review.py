"""Targets as they are now against what was reviewed: gone, changed, never looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase

from msgspec import Struct

from patchkit.lock import Reviewed, ReviewedTarget
from patchkit.manifest.values import AbsentTarget
from patchkit.overrides.calls import CallSite
from patchkit.overrides.standing import Standing


class Verdict(str, Enum):
    """What became of a target since it was reviewed, from worst to best."""

    GONE = "gone"  # it was there when it was reviewed
    NOT_THERE = "not there"  # nobody ever saw it, and no reason is given
    SIGNATURE = "signature"  # it is called in another way, or is another kind of thing
    BODY = "body"  # it is called as before and does something else
    NEW = "new"  # it is there, and nobody has looked at it yet
    DECLARED = "declared"  # it is not there, and the manifest says why
    SAME = "same"

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look."""
        return self not in (Verdict.DECLARED, Verdict.SAME)


class Target(Struct, frozen=True):
    """A name that is replaced: the calls that name it, what it is now and what was reviewed.

    `reason` is the manifest's for one that need not be there.
    """

    name: str
    verdict: Verdict
    calls: tuple[CallSite, ...]
    now: Standing
    reviewed: ReviewedTarget | None = None
    reason: str = ""


def review_targets(
    calls: Mapping[str, tuple[CallSite, ...]],
    standings: Mapping[str, Standing],
    reviewed: Reviewed,
    absent: Sequence[AbsentTarget] = (),
    *,
    comparing: bool = False,
) -> tuple[Target, ...]:
    """Judge every target; the names of `calls` and `standings` are the same.

    `comparing`: `reviewed` is another commit of the target, and what it has and this one has not is
    gone, whatever is declared.
    """
    targets: list[Target] = []
    for name, sites in sorted(calls.items()):
        before = reviewed.get(name)
        reason = "" if comparing and before else _reason(name, absent)
        targets.append(_target(name, sites, standings[name], before, reason))
    return tuple(targets)


def unused_reasons(
    targets: Iterable[Target], absent: Sequence[AbsentTarget]
) -> Iterator[AbsentTarget]:
    """Declarations that no target needs: all that they name is there, or nothing names it."""
    missing = [each.name for each in targets if not each.now.kind.is_there]
    for declared in absent:
        if not any(fnmatchcase(name, declared.name) for name in missing):
            yield declared


def accepted(targets: Iterable[Target], chosen: Sequence[str], commit: str) -> Reviewed:
    """What the lock has to say once the targets that the globs name were looked at; () for all.

    What is not there cannot be accepted, only declared in the manifest, with the reason: until then
    it stays in the record, and so is told as gone.
    """
    found: dict[str, ReviewedTarget] = {}
    for target in targets:
        same = target.verdict is Verdict.SAME or not is_chosen(target.name, chosen)
        if target.now.kind.is_there and not same:
            found[target.name] = as_reviewed(target.now, commit)
        elif target.reviewed is not None and target.verdict is not Verdict.DECLARED:
            found[target.name] = target.reviewed
    return found


def as_reviewed(now: Standing, commit: str) -> ReviewedTarget:
    """A target as it stands, to be recorded."""
    return ReviewedTarget(commit, now.kind.value, now.signature, now.body)


def is_chosen(name: str, globs: Sequence[str]) -> bool:
    """Whether one of the globs names it; without globs all are meant."""
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def count_verdicts(targets: Iterable[Target]) -> dict[Verdict, int]:
    """How many targets have each verdict, the worst first; none that nobody has."""
    counted = Counter(each.verdict for each in targets)
    return {verdict: counted[verdict] for verdict in Verdict if counted[verdict]}


def _target(
    name: str,
    calls: tuple[CallSite, ...],
    now: Standing,
    before: ReviewedTarget | None,
    reason: str,
) -> Target:
    if not now.kind.is_there:
        if reason:
            return Target(name, Verdict.DECLARED, calls, now, before, reason)
        verdict = Verdict.GONE if before else Verdict.NOT_THERE
        return Target(name, verdict, calls, now, before)
    if before is None:
        verdict = Verdict.NEW
    elif (before.kind, before.signature) != (now.kind.value, now.signature):
        verdict = Verdict.SIGNATURE
    else:
        verdict = Verdict.SAME if before.body == now.body else Verdict.BODY
    return Target(name, verdict, calls, now, before)


def _reason(name: str, absent: Sequence[AbsentTarget]) -> str:
    return next((each.reason for each in absent if fnmatchcase(name, each.name)), "")
