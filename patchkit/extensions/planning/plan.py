"""How far components can go along their tracked branches, alone and together, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.describe import landed_of
from patchkit.drift.trial import Trial
from patchkit.drift.walk import WatchedSeries
from patchkit.errors import (
    ExitCode,
    OfComponents,
    PatchkitError,
    Problem,
    SurroundingsError,
)
from patchkit.extensions.planning.combination import clashes, combine, reaches, tried, walk_stack
from patchkit.extensions.planning.metadata import Declared, declared_along
from patchkit.extensions.planning.plan_report import (
    DAY,
    ChosenCommit,
    Combination,
    CommitRange,
    Declaration,
    Effort,
    FarthestCommit,
    MetadataRequirement,
    UnmetRequirement,
)
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.workers import in_processes
from patchkit.manifest.values import (
    Component,
    GitSource,
    IndexPin,
    IndexSource,
    LocalSeries,
    Manifest,
    normal_name,
)
from patchkit.model.finding import Landed
from patchkit.model.progress import Progress
from patchkit.ops.drift import memory_of
from patchkit.stack.patch_lists import patch_files
from patchkit.stack.series import load_series
from patchkit.upstream.git import LATEST, list_refs
from patchkit.upstream.history import History, HistoryReader, open_history
from patchkit.upstream.store import Store

_ENVIRONMENT = "environment"


class ComponentPlan(Struct, frozen=True):
    """One component along the branch that it tracks.

    `ref` is the branch, tag or commit looked at; from `fork`, the newest commit that the pin and it
    have in common, to `tip` it has `commits` first-parent commits, of which `touching` change files
    of the patches. `reaches` are the newest commits for each amount of work, from the least to what
    the tip takes; `stretches` all that the line takes, in order (commit 0 is where it starts).
    `version` and `tip_version` are those of its metadata, "" where only tags know. `skipped` says
    why there was nothing to look at.
    """

    name: str  # in the manifest
    pin: str
    exit_code: ExitCode
    ref: str = ""
    fork: str = ""
    on_branch: bool = True  # the pin is on the branch itself
    tip: Landed | None = None
    commits: int = 0
    touching: int = 0
    version: str = ""
    tip_version: str = ""
    reaches: tuple[FarthestCommit, ...] = ()
    stretches: tuple[CommitRange, ...] = ()
    skipped: str = ""
    problems: tuple[Problem, ...] = ()


class PlanReport(OfComponents, Struct, frozen=True):
    """What each component can do, and the newest combinations of several.

    `clashes` are requirements that today's pins do not meet either, so that they stop nothing.
    """

    manifest: str  # its name
    components: tuple[ComponentPlan, ...]
    combinations: tuple[Combination, ...] = ()
    clashes: tuple[UnmetRequirement, ...] = ()


class _Planned(Struct, frozen=True):
    """A component's plan, and what a combination is chosen from."""

    plan: ComponentPlan
    pinned: Declaration  # what its metadata says at the pin
    options: tuple[ChosenCommit, ...] = ()


def plan_components(
    manifest: Manifest,
    components: Sequence[Component],
    store: Store,
    progress: Progress,
    *,
    to: str | None = None,
    known: Callable[[str, ComponentPlan], None] = lambda _name, _plan: None,
) -> PlanReport:
    """Look along each component's tracked branch, or `to`, beyond its pin, in this order.

    One component's error stops no other; `known` gets each plan as soon as it is there. On disk:
    the history, in the cache.
    """

    def tell(component: Component, found: _Planned) -> None:
        known(component.name, found.plan)

    look = partial(_looked, manifest=manifest, store=store, progress=progress, to=to)
    found = in_processes(look, components, progress=progress, stop=store.stop, told=tell)
    by_name = {looked.plan.name: looked for looked in found}
    planned = [by_name[one.name] for one in manifest.components if one.name in by_name]
    plans = tuple(each.plan for each in planned)
    if sum(bool(each.options) for each in planned) < 2:
        return PlanReport(manifest.name, plans)
    together, unmet = _together(manifest, planned)
    return PlanReport(manifest.name, plans, together, unmet)


def _looked(
    component: Component,
    *,
    manifest: Manifest,
    store: Store,
    progress: Progress,
    to: str | None,
) -> _Planned:
    """What a look along one component comes to; its errors are its own."""
    blank = ComponentPlan(component.name, str(component.pin), ExitCode.OK)
    try:
        found = _look(blank, manifest, component, store, progress, to=to)
    except PatchkitError as error:
        failed = replace(blank, exit_code=error.exit_code, problems=error.problems)
        found = _Planned(failed, Declaration(normal_name(component.name), "", ()))
    progress.finish(component.name, "failed" if found.plan.problems else "looked at")
    return found


def cheapest_first(manifest: Manifest, components: Sequence[Component]) -> list[Component]:
    """Components with few patches first: their answers need not wait for those of others."""

    def patches(component: Component) -> int:
        series = [entry for entry in component.patches if isinstance(entry, LocalSeries)]
        others = len(component.patches) - len(series)
        return others + sum(len(patch_files(manifest.root, entry)) for entry in series)

    return sorted(components, key=patches)


def _look(
    blank: ComponentPlan,
    manifest: Manifest,
    component: Component,
    store: Store,
    progress: Progress,
    *,
    to: str | None,  # the commit to look up to; None: what `track` names
) -> _Planned:
    if not isinstance(component.source, GitSource):
        skipped = replace(blank, skipped="comes from no git repository")
        return _Planned(skipped, _released(component))
    series = load_series(manifest, component, store, progress)
    history = open_history(store, component, to or LATEST, progress)
    progress.step(component.name, f"looking along {history.ref}", local=True)
    memory = memory_of(manifest, component, series, history, store)
    patches = series.series_patches
    told = WatchedSeries(patches, memory.recipes, memory.remembered, memory.verdicts())
    with ObjectReader(history.repository) as reader:
        along = HistoryReader(history, reader)
        declared = declared_along(along, component, patches, partial(_tags, component, store))
        note = partial(progress.advance, component.name)
        route, stretches = walk_stack(along, told, note)
        progress.step(component.name, "carrying to where it may go", local=True)
        stretches = tried(stretches, route, Trial(along, told, memory.trials()))
    plan = replace(
        blank,
        ref=history.ref,
        fork=history.fork,
        on_branch=history.fork == history.pin,
        tip=landed_of(history, [history.tip])[0],
        commits=len(route.line.commits),
        touching=len(route.steps),
        version=declared.at_pin.version,
        tip_version=declared.along[-1][1].version,
        reaches=reaches(history, route, stretches),
        stretches=stretches,
    )
    return _Planned(plan, declared.at_pin, tuple(_options(plan, history, declared)))


def _tags(component: Component, store: Store) -> Mapping[str, str]:
    """The upstream's tags; none where they cannot be asked for."""
    if store.offline or not isinstance(component.source, GitSource):
        return {}
    with suppress(SurroundingsError):
        return list_refs(component.source, stop=store.stop).tags
    return {}


def _released(component: Component) -> Declaration:
    """What a component that stays where it is declares: its version, if it is a release."""
    source, pin = component.source, component.pin
    name = source.project if isinstance(source, IndexSource) else component.name
    version = pin.version if isinstance(pin, IndexPin) else ""
    return Declaration(normal_name(name), version, ())


def _options(plan: ComponentPlan, history: History, declared: Declared) -> Iterable[ChosenCommit]:
    """The newest commit of each part of the line where neither work nor metadata change."""
    line = history.line
    ids = (line.start, *line.commits)
    lasts = {each.last for each in plan.stretches} | {at - 1 for at, _ in declared.along[1:]}
    positions = sorted(lasts)
    pin, tip, *landed = landed_of(history, [history.pin, history.tip, *(ids[n] for n in positions)])

    def option(commit: Landed, behind: int, effort: Effort, said: Declaration) -> ChosenCommit:
        to = commit if commit.commit != history.pin else None
        age = _age(commit.date, tip.date)
        return ChosenCommit(plan.name, to, said.version, effort, age, age // DAY, behind, said)

    yield option(pin, plan.commits, Effort(), declared.at_pin)
    for position, commit in zip(positions, landed, strict=True):
        effort = next(each.effort for each in plan.stretches if each.last >= position)
        said = [each for first, each in declared.along if first <= position][-1]
        yield option(commit, plan.commits - position, effort, said)


def _age(since: str, until: str) -> int:
    first, last = (datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (since, until))
    return max(0, int((last - first).total_seconds()))


def _together(
    manifest: Manifest, planned: Sequence[_Planned]
) -> tuple[tuple[Combination, ...], tuple[UnmetRequirement, ...]]:
    """The combinations, and the clashes of today's pins."""
    versions = manifest.environment.versions.items()
    file = manifest.path.name
    needs = [MetadataRequirement(normal_name(name), spec, file) for name, spec in versions]
    pinned = {each.plan.name: each.pinned for each in planned}
    # what the manifest itself asks for takes part like a component that stays where it is
    pinned[_ENVIRONMENT] = Declaration("", "", tuple(needs))
    unmet = tuple(
        clash
        for (other, theirs), (one, ours) in combinations(pinned.items(), 2)
        for clash in clashes(one, ours, other, theirs)
    )
    options = {each.plan.name: each.options for each in planned if each.options}
    fixed = {name: declared for name, declared in pinned.items() if name not in options}
    return combine(options, fixed, unmet), unmet
