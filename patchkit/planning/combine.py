"""How far each amount of work reaches along a branch, and one commit for each component.

The chosen commits are the newest that fit each other by what metadata says: a component's
requirement of another one's version, and requirements of two components of a third that no version
meets. What today's pins do not meet either stops nobody; it is reported.

Apart from `ops/plan.py`, its only user: the search, where that fetches, walks and reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from patchkit.drift.describe import landed_of
from patchkit.drift.drift_report import PatchForecast
from patchkit.drift.follow import Route
from patchkit.drift.trial import Trial
from patchkit.drift.walk import Walker, WatchedSeries
from patchkit.planning.metadata import Metadata
from patchkit.planning.plan_report import (
    CommitRange,
    Declaration,
    Effort,
    FarthestCommit,
    Grade,
    UnmetRequirement,
    effort_of,
    stays,
)
from patchkit.upstream.history import History, HistoryReader
from patchkit.upstream.requirements import satisfies

_GRADES = tuple(Grade)
_MORE = ".0.0.1"  # a version right above another one
#: So many partial choices are looked at for one amount of work; the best so far is taken then.
_PATIENCE = 200_000


class Option(Struct, frozen=True):
    """A commit that a component could go to; `position` None: the pin as it is.

    `age` is how much older than the tip it is, in seconds.
    """

    position: int | None
    effort: Effort
    age: int
    declaration: Declaration


class Combined(Struct, frozen=True):
    """One option for each component, and the work that they take together."""

    effort: Effort
    age: int  # how much older than the tips the commits are, in seconds, summed
    options: Mapping[str, Option]


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
    options: Mapping[str, Sequence[Option]], tolerated: Collection[UnmetRequirement]
) -> tuple[Combined, ...]:
    """The newest combination for each amount of work, from none on; the same one only once.

    Clashes between the same components about the same subject as one that is `tolerated` are none.
    """
    names = sorted(options, key=lambda name: len(options[name]))
    known = {_about(clash) for clash in tolerated}
    search = _Search(names, {name: _worthwhile(options[name]) for name in names}, known)
    most = sum(max(each.effort.conflicts for each in options[name]) for name in names)
    found: list[Combined] = []
    for grade, conflicts in [*((grade, 0) for grade in _GRADES[:-1])] + [
        (Grade.CONFLICTED, count) for count in range(1, most + 1)
    ]:
        best = search.best(grade, conflicts)
        if best is not None and (not found or best.age < found[-1].age):
            found.append(best)
        if best is not None and best.age == 0:
            break
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


def _worthwhile(options: Sequence[Option]) -> list[Option]:
    """Without those for which a newer one says the same and takes no more; newest first."""
    kept: list[Option] = []
    for option in sorted(options, key=lambda each: (each.age, each.effort)):
        if not any(
            known.declaration == option.declaration and known.effort <= option.effort
            for known in kept
        ):
            kept.append(option)
    return kept


class _Search(Struct):
    """Depth first, one component after the other, newest options first.

    Branch and bound: `rest` are the smallest ages that are still to come, so that what cannot be
    newer than the best so far is not looked at. A package resolver (resolvelib, pip's) takes the
    first combination that fits: of 2,000 made-up choices, four components with eight options each,
    it found the newest in 870, in three times the time; and it knows no sum of conflicts.
    """

    names: Sequence[str]  # of components, the one with the fewest options first
    options: Mapping[str, Sequence[Option]]
    known: Collection[tuple[frozenset[str], str]]  # clashes that stop nothing
    _fits: dict[tuple[str, str, Declaration, Declaration], bool] = field(default_factory=dict)
    _best: Combined | None = None
    _tried: int = 0

    def best(self, grade: Grade, conflicts: int) -> Combined | None:
        """The newest combination with no more work than that, the least work of equally new."""
        self._best, self._tried = None, 0
        most = _GRADES.index(grade)
        allowed = {
            name: [each for each in self.options[name] if _GRADES.index(each.effort.grade) <= most]
            for name in self.names
        }
        if all(allowed.values()):
            rest = [min(each.age for each in allowed[name]) for name in self.names]
            self._choose(allowed, rest, {}, conflicts)
        return self._best

    def _choose(
        self,
        allowed: Mapping[str, Sequence[Option]],
        rest: Sequence[int],
        chosen: dict[str, Option],
        conflicts: int,
    ) -> None:
        self._tried += 1
        age = sum(each.age for each in chosen.values())
        if len(chosen) == len(self.names):
            self._take(chosen, age)
            return
        name = self.names[len(chosen)]
        for option in allowed[name]:
            least = age + option.age + sum(rest[len(chosen) + 1 :])
            if self._tried > _PATIENCE or (self._best is not None and least > self._best.age):
                return
            if option.effort.conflicts <= conflicts and self._joins(name, option, chosen):
                chosen[name] = option
                self._choose(allowed, rest, chosen, conflicts - option.effort.conflicts)
                del chosen[name]

    def _take(self, chosen: Mapping[str, Option], age: int) -> None:
        efforts = [each.effort for each in chosen.values()]
        effort = Effort(
            sum(each.conflicts for each in efforts),
            sum(each.review for each in efforts),
            sum(each.changed for each in efforts),
        )
        if self._best is None or (age, effort) < (self._best.age, self._best.effort):
            self._best = Combined(effort, age, dict(chosen))

    def _joins(self, name: str, option: Option, chosen: Mapping[str, Option]) -> bool:
        return all(
            self._fit(name, option.declaration, other, each.declaration)
            for other, each in chosen.items()
        )

    def _fit(self, one: str, a: Declaration, other: str, b: Declaration) -> bool:
        key = one, other, a, b
        if key not in self._fits:
            found = clashes(one, a, other, b)
            self._fits[key] = all(_about(clash) in self.known for clash in found)
        return self._fits[key]


# From a walk over a branch to how far each amount of hand work reaches.


# So many commits are carried to for one component: those that the command names, and what stops
# them. What is said of others is the forecast.
_MOST = 12


def walk_stack(
    along: HistoryReader,
    series: WatchedSeries,
    metadata: Metadata | None = None,
    note: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Route, tuple[CommitRange, ...]]:
    """Forecast every state of the files between the fork and the tip; `metadata` sees them, too."""
    walker = Walker(along, series, quick=False, note=note)
    names = [patch.name for patch in series.patches]
    found: list[tuple[int, tuple[PatchForecast, ...]]] = []
    before: object = None
    for position, verdicts in walker.judge_all():
        pairs = zip(names, verdicts, strict=True)
        patches = tuple(verdict.forecast(name) for name, verdict in pairs)
        # one stretch where all stays, at whatever lines it applies
        becomes = all(map(stays, patches)) or patches
        if becomes != before:
            found.append((position, patches))
            before = becomes
        if metadata is not None:
            metadata.note(position, walker.forecaster)
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
