"""How far each amount of work reaches along a branch, and one commit for each component.

The chosen commits are the newest that fit each other by what metadata says: a component's
requirement of another one's version, and requirements of two components of a third that no version
meets. What today's pins do not meet either stops nobody; it is reported.

Apart from `plan.py`, its only user: the search, where that fetches, walks and reports.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from patchkit.drift.describe import landed_of
from patchkit.drift.drift_report import PatchForecast
from patchkit.drift.follow import Route
from patchkit.drift.trial import Trial
from patchkit.drift.walk import Walker, WatchedSeries
from patchkit.extensions.planning.plan_report import (
    DAY,
    ChosenCommit,
    Combination,
    CommitRange,
    Declaration,
    Effort,
    FarthestCommit,
    UnmetRequirement,
    effort_of,
    stays,
)
from patchkit.upstream.history import History, HistoryReader
from patchkit.upstream.requirements import satisfies

_MORE = ".0.0.1"  # a version right above another one
#: So many partial choices are looked at for one amount of work; the best so far is taken then.
_PATIENCE = 200_000
_LOOK = 2  # the level of work at which files are to be looked at, and none is in conflict


def clashes(one: str, a: Declaration, other: str, b: Declaration) -> Iterator[UnmetRequirement]:
    """What the declarations of two components ask for and the other one does not give."""
    yield from _unmet(one, a, other, b)
    yield from _unmet(other, b, one, a)
    theirs = defaultdict(list)
    for need in b.needs:
        theirs[need.name].append(need)
    for need in a.needs:
        for against in theirs.get(need.name, ()):
            if not any_version_meets(need.specifier, against.specifier):
                spec = against.specifier
                yield UnmetRequirement(one, need.name, need.specifier, need.file, other, spec)


def combine(
    options: Mapping[str, Sequence[ChosenCommit]],
    fixed: Mapping[str, Declaration],
    tolerated: Collection[UnmetRequirement],
) -> tuple[Combination, ...]:
    """The combinations that somebody would choose, from the oldest: five at most.

    The newest without any work, with merges, with files to look at; the newest of all, and the one
    with half as many conflicts as that takes. `fixed` are components that stay where they are.
    Clashes between the same components about the same subject as one that is `tolerated` are none.
    """
    known = {_about(clash) for clash in tolerated}

    @cache
    def fit(one: str, a: Declaration, other: str, b: Declaration) -> bool:
        return all(_about(clash) in known for clash in clashes(one, a, other, b))

    open_to: list[list[ChosenCommit]] = []
    for name, rows in options.items():
        fitting = [
            o for o in rows if all(fit(name, o.declaration, *each) for each in fixed.items())
        ]
        open_to.append(_worthwhile(fitting))
    newest = _newest(open_to, sys.maxsize, fit)
    if newest is None:
        return ()
    half = max(_LOOK, _LOOK + newest.effort.conflicts // 2)
    found: list[Combination] = []
    for each in [*(_newest(open_to, level, fit) for level in (*range(_LOOK + 1), half)), newest]:
        if each is not None and (not found or each.age < found[-1].age):
            found.append(each)
    return tuple(found)


def any_version_meets(one: str, other: str) -> bool:
    """Whether some version meets both specifiers."""
    both = SpecifierSet(one) & SpecifierSet(other)
    named = [clause.version.removesuffix(".*") for clause in both]
    tried = ["0", *named, *(f"{each}{_MORE}" for each in named)]
    return any(_meets(each, both) for each in tried)


def _meets(text: str, wanted: SpecifierSet) -> bool:
    try:
        return wanted.contains(Version(text), prereleases=True)
    except InvalidVersion:  # `===` may name anything: not known
        return True


def _unmet(one: str, a: Declaration, other: str, b: Declaration) -> Iterator[UnmetRequirement]:
    for need in a.needs:
        named = need.name == b.distribution and b.version
        if named and satisfies(b.version, need.specifier) is False:
            yield UnmetRequirement(one, need.name, need.specifier, need.file, other, b.version)


def _about(clash: UnmetRequirement) -> tuple[frozenset[str], str]:
    return frozenset((clash.component, clash.other)), clash.subject


def _worthwhile(options: Sequence[ChosenCommit]) -> list[ChosenCommit]:
    """Without those for which a newer one says the same and takes no more; newest first."""
    kept: list[ChosenCommit] = []
    for option in sorted(options, key=lambda each: (each.age, each.effort)):
        if not any(
            known.declaration == option.declaration and known.effort <= option.effort
            for known in kept
        ):
            kept.append(option)
    return kept


def _newest(
    options: Sequence[Sequence[ChosenCommit]],
    level: int,
    fit: Callable[[str, Declaration, str, Declaration], bool],
) -> Combination | None:
    """The newest combination with no more work than a level, the least work of equally new.

    Depth first, one component after the other, newest options first; what cannot be newer than the
    best so far is not looked at. A package resolver (resolvelib, pip's) takes the first combination
    that fits: of 2,000 made-up choices, four components with eight options each, it found the
    newest in 870, in three times the time; and it knows no sum of conflicts.
    """
    allowed = [[each for each in rows if each.effort.level <= level] for rows in options]
    if not all(allowed):
        return None
    order = sorted(range(len(options)), key=lambda number: len(options[number]))
    least = [min(each.age for each in allowed[number]) for number in order]
    best: Combination | None = None
    tried = 0

    def choose(chosen: tuple[ChosenCommit, ...]) -> None:
        nonlocal best, tried
        tried += 1
        if len(chosen) == len(order):
            by_place = dict(zip(order, chosen, strict=True))
            told = _together([by_place[number] for number in range(len(order))])
            if best is None or (told.age, told.effort) < (best.age, best.effort):
                best = told
            return
        for option in allowed[order[len(chosen)]]:
            more = (*chosen, option)
            age = sum(each.age for each in more) + sum(least[len(more) :])
            if tried > _PATIENCE or (best is not None and age > best.age):
                return
            conflicts = sum(each.effort.conflicts for each in more)
            if conflicts <= max(0, level - _LOOK) and all(
                fit(option.component, option.declaration, each.component, each.declaration)
                for each in chosen
            ):
                choose(more)

    choose(())
    return best


def _together(choices: Sequence[ChosenCommit]) -> Combination:
    efforts = [each.effort for each in choices]
    effort = Effort(
        sum(each.conflicts for each in efforts),
        sum(each.review for each in efforts),
        sum(each.changed for each in efforts),
    )
    age = sum(each.age for each in choices)
    return Combination(effort.grade, effort, age, age // DAY, tuple(choices))


# From a walk over a branch to how far each amount of hand work reaches.


# So many commits are carried to for one component: those that the command names, and what stops
# them. What is said of others is the forecast.
_MOST = 12


def walk_stack(
    along: HistoryReader,
    series: WatchedSeries,
    note: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Route, tuple[CommitRange, ...]]:
    """Forecast every state of the files between the fork and the tip."""
    walker = Walker(along, series, quick=False, note=note)
    found: list[tuple[int, tuple[PatchForecast, ...]]] = []
    before: object = None
    for position, verdicts in walker.judge_all():
        patches = tuple(verdict.forecast for verdict in verdicts)
        # one stretch where all stays, at whatever lines it applies
        becomes = all(map(stays, patches)) or patches
        if becomes != before:
            found.append((position, patches))
            before = becomes
    return walker.route, _stretches(found, len(walker.route.line.commits))


def tried(stretches: Sequence[CommitRange], route: Route, trial: Trial) -> tuple[CommitRange, ...]:
    """The stretches, as carrying has those that reach farthest for some amount of work.

    And those behind each of them, which are said to take more.
    """
    told = list(stretches)
    for _ in range(_MOST):
        stretch = _to_try(told)
        if stretch is None:
            break
        patches = trial.carry_to(route.commit(stretch.last))
        told[told.index(stretch)] = _as_found(stretch, patches)
    return tuple(told)


def _to_try(stretches: Sequence[CommitRange]) -> CommitRange | None:
    """The next one to carry to: the tip's, then by work, from the least, with what stops each."""
    best = farthest(stretches)
    behind = {each.first: each for each in stretches}
    order = [best[-1]]
    for each in best:
        order.append(each)
        if each.last + 1 in behind:
            order.append(behind[each.last + 1])
    return next((each for each in order if not each.tried), None)


def _as_found(stretch: CommitRange, patches: tuple[PatchForecast, ...] | None) -> CommitRange:
    if patches is None:
        return replace(stretch, tried=True)
    return replace(stretch, effort=effort_of(patches), patches=patches, tried=True)


def reaches(
    history: History, route: Route, stretches: Sequence[CommitRange]
) -> tuple[FarthestCommit, ...]:
    """How far each amount of work reaches, from the least to what the tip takes.

    An amount that reaches no farther than less work is left out.
    """
    best = farthest(stretches)
    length = len(route.line.commits)
    ids = (route.line.start, *route.line.commits)
    wanted = [ids[each.last] for each in best]
    wanted += [ids[min(each.last + 1, length)] for each in best]
    landed = landed_of(history, wanted)
    return tuple(
        FarthestCommit(
            grade=each.effort.grade,
            effort=each.effort,
            position=each.last,
            behind=length - each.last,
            commit=landed[number],
            stopped_by=landed[len(best) + number] if each.last < length else None,
            patches=tuple(patch for patch in each.patches if not stays(patch)),
            tried=each.tried,
        )
        for number, each in enumerate(best)
    )


def farthest(stretches: Sequence[CommitRange]) -> list[CommitRange]:
    """The stretch that reaches farthest for each amount of work, from the least."""
    best: list[CommitRange] = []
    for stretch in sorted(stretches, key=lambda each: (each.effort.level, -each.last)):
        if not best or stretch.last > best[-1].last:
            best.append(stretch)
    return best


def _stretches(
    found: Sequence[tuple[int, tuple[PatchForecast, ...]]], length: int
) -> tuple[CommitRange, ...]:
    firsts = [position for position, _ in found]
    lasts = [*(first - 1 for first in firsts[1:]), length]
    return tuple(
        CommitRange(first, last, effort_of(patches), patches)
        for (first, patches), last in zip(found, lasts, strict=True)
    )
