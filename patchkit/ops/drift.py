"""Look along tracked branches: which patches will not survive the next bump, and who broke them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.result_cache import recall_packed, remember_packed
from patchkit.drift.describe import explain_clash, landed_of, tell
from patchkit.drift.drift_report import (
    BrokenContract,
    Landed,
    MovedTarget,
    NewSite,
    PatchDrift,
    PatchForecast,
    Suspicion,
    TrendPoint,
)
from patchkit.drift.forecast_cache import SeriesMemory, Trials
from patchkit.drift.record import (
    KEPT,
    Line,
    Seen,
    SeenPatch,
    Since,
    append_seen,
    compare,
    read_record,
)
from patchkit.drift.silent_changes import (
    FoundSite,
    find_moved_targets,
    find_new_sites,
    find_suspicions,
    made_by,
)
from patchkit.drift.trial import Trial
from patchkit.drift.walk import (
    Walk,
    Walker,
    WatchedSeries,
    bisect_history,
    differing,
    ended,
    walk_history,
)
from patchkit.errors import (
    BadInputError,
    ExitCode,
    PatchkitError,
    Problem,
    SurroundingsError,
    worst,
)
from patchkit.explain.explanation import PatchExplanation
from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader
from patchkit.gitcmd.pins import absent_blobs
from patchkit.guards.overrides.override_review import TreeAt, read_replacements
from patchkit.guards.overrides.replacements import Replacements
from patchkit.guards.residual_sites import (
    ReviewState,
    fingerprint,
    lint_rules,
    load_baseline,
    review_sites,
)
from patchkit.manifest.values import Component, GitSource, Manifest, Overrides
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Status
from patchkit.model.progress import Progress
from patchkit.ops.agreements import partners_of
from patchkit.ops.built_stack import built_stack
from patchkit.ops.check_report import BrokenManifest
from patchkit.ops.reviews import baseline_path
from patchkit.parallel import in_parallel
from patchkit.recipes.generate import load_generator
from patchkit.refresh.conflict import load_resolutions
from patchkit.refresh.patch_plan import SeriesFolder
from patchkit.stack.series import LoadedPatch, LoadedSeries, load_series
from patchkit.upstream.git import LATEST
from patchkit.upstream.history import Bring, History, HistoryReader, bring_blobs, open_history
from patchkit.upstream.store import Store

# Silent drift, without a conflict: new code that patches should cover, and replaced functions that
# upstream changed.


class SilentDrift(Struct, frozen=True):
    """What changed upstream without a conflict; `unseen` says what could not be examined."""

    sites: tuple[NewSite, ...] = ()  # in the order of rules and files
    targets: tuple[MovedTarget, ...] = ()  # in the order of the manifest's overrides
    contracts: tuple[BrokenContract, ...] = ()  # in the order of the calling files
    unseen: tuple[str, ...] = ()


class Watched(Struct, frozen=True):
    """A component and its patches."""

    manifest: Manifest
    component: Component
    patches: Sequence[LoadedPatch]


def is_watched(manifest: Manifest, component: Component) -> bool:
    """Whether something is looked for in the component, whatever its patches."""
    has_own = bool(component.residual.rules) or component.contracts is not None
    return has_own or any(_overriding(manifest, component))


def find_silent_drift(
    watched: Watched, along: HistoryReader, store: Store, progress: Progress
) -> SilentDrift:
    """Compare the tip with the pin; fetches components that replace code of this one."""
    unseen: list[str] = []
    targets: list[MovedTarget] = []
    try:
        sites = _sites(watched, along, store)
    except SurroundingsError as error:
        sites = ()
        unseen.append(f"new sites: {error.problems[0]}")
    for other, declared in _overriding(watched.manifest, watched.component):
        try:
            calls = _calls(watched.manifest, other, declared, store, progress)
            targets += find_moved_targets(along, other.name, declared, calls, store.cache)
        except SurroundingsError as error:
            unseen.append(f"what {other.name} replaces: {error.problems[0]}")
    try:
        contracts = _contracts(watched, along, store, progress)
    except (BadInputError, SurroundingsError) as error:
        contracts = ()
        unseen.append(f"calls between components: {error.problems[0]}")
    return SilentDrift(sites, tuple(targets), contracts, tuple(unseen))


def _contracts(
    watched: Watched, along: HistoryReader, store: Store, progress: Progress
) -> tuple[BrokenContract, ...]:
    if watched.component.contracts is None:
        return ()
    from patchkit.drift.broken_calls import find_broken_contracts  # noqa: PLC0415

    name = watched.component.name
    with ExitStack() as stack:
        partners, given = partners_of(watched.manifest, store, progress, stack)
        return find_broken_contracts(along, name, partners, given, store.cache)


def _sites(watched: Watched, along: HistoryReader, store: Store) -> tuple[NewSite, ...]:
    """The new sites that nobody has reviewed and no recipe takes care of."""
    manifest, component, patches = watched.manifest, watched.component, watched.patches
    rules = lint_rules(manifest.root, component.residual.rules, patches)
    if not rules:
        return ()
    recipes = list(load_generator(patches).recipes.values())
    name = baseline_path(component)
    baseline = load_baseline(manifest.root / name, name)

    def unseen(all_found: Sequence[FoundSite]) -> Sequence[FoundSite]:
        found = [each for each in all_found if not made_by(each.site, recipes)]
        states = review_sites([each.site for each in found], baseline, date.min).sites
        pairs = zip(found, states, strict=True)
        return [each for each, s in pairs if each.is_new and s.state is ReviewState.NEW]

    return tuple(_told(find_new_sites(along, rules, store.cache, unseen), along))


def _told(found: Sequence[FoundSite], along: HistoryReader) -> Iterator[NewSite]:
    ids = list(dict.fromkeys(CommitId(each.by) for each in found if each.by))
    by: dict[str, Landed] = dict(zip(ids, landed_of(along.history, ids), strict=True))
    for each in found:
        known_by, site = fingerprint(each.site), each.site
        where = (site.rule, site.path, site.line, known_by.within, known_by.text)
        yield NewSite(*where, by.get(each.by or ""))


def _overriding(manifest: Manifest, component: Component) -> Iterator[tuple[Component, Overrides]]:
    for other in manifest.components:
        for declared in other.overrides:
            if declared.target == component.name:
                yield other, declared


def _calls(
    manifest: Manifest, other: Component, declared: Overrides, store: Store, progress: Progress
) -> Replacements:
    with built_stack(manifest, other, store, progress) as built:
        own = TreeAt(built.source, built.stack.tree, built.stack.base.commit)
        return read_replacements(declared, manifest.root, own)


# They wait for git and for the network; the judging itself is one at a time in any case.
_JOBS = 2


class ComponentDrift(Struct, frozen=True):
    """One component along the branch that it tracks.

    `ref` is the branch, tag or commit looked at; from `fork`, the newest commit that the pin and it
    have in common, to `tip` it has `commits` first-parent commits, of which `touching` change files
    of the patches. `on_branch`: the pin is on it. `bisected`: only some commits were tried, so that
    breaks which were mended may be missing. `skipped` says why there was nothing to look at.
    `line` has every commit from `start` on, where that was asked for. `trend` has a point for each
    report that saw something else, this one last; `since`, with --since-last, says what changed
    since the last one, and `patches` are only those that it is about. `sites` and `targets` are
    what changed without a conflict: code that rules name and no patch covers, and functions that
    other components replace; `contracts` are calls between components that fit no more; `unseen`
    says what of that could not be examined.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"line"})

    manifest: str  # its name
    name: str
    pin: str
    exit_code: ExitCode
    ref: str = ""
    fork: str = ""
    on_branch: bool = True
    start: Landed | None = None
    tip: Landed | None = None
    commits: int = 0
    touching: int = 0
    bisected: bool = False
    patches: tuple[PatchDrift, ...] = ()
    skipped: str = ""
    problems: tuple[Problem, ...] = ()
    line: tuple[Landed, ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    since: Since | None = None
    sites: tuple[NewSite, ...] = ()
    targets: tuple[MovedTarget, ...] = ()
    contracts: tuple[BrokenContract, ...] = ()
    unseen: tuple[str, ...] = ()


class DriftReport(Struct, frozen=True):
    """Every component that was looked at, and the manifests that could not be read.

    With --since-last, `unchanged` components are left out.
    """

    components: tuple[ComponentDrift, ...]
    broken: tuple[BrokenManifest, ...] = ()  # manifests that could not be read
    unchanged: int = 0

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all."""
        codes = [each.exit_code for each in self.components]
        return worst([*codes, *(each.exit_code for each in self.broken)])


def look_for_drift(
    chosen: Sequence[tuple[Manifest, Sequence[Component]]],
    store: Store,
    progress: Progress,
    *,
    to: str | None = None,
    bisect: bool = False,
    every_commit: bool = False,
    broken: Sequence[BrokenManifest] = (),
    known: Callable[[str, ComponentDrift], None] = lambda _name, _drift: None,
) -> DriftReport:
    """Judge every commit of the components' tracked branches, or of `to`, beyond their pins.

    One component's error stops no other; `known` gets each ("manifest: component") as soon as it is
    judged. With `every_commit` each is described, as a timeline
    needs it. On disk: the history and what was found, in the cache.
    """
    tools = _Tools(store, progress, to, bisect, every_commit)

    def look(pair: tuple[Manifest, Component]) -> ComponentDrift:
        manifest, component = pair
        blank = ComponentDrift(manifest.name, component.name, str(component.pin), ExitCode.OK)
        try:
            found = _look(blank, manifest, component, tools)
        except PatchkitError as error:
            found = replace(blank, exit_code=error.exit_code, problems=error.problems)
        progress.finish(component.name, "failed" if found.problems else "looked at")
        known(f"{manifest.name}: {component.name}", found)
        return found

    pairs = [(manifest, component) for manifest, each in chosen for component in each]
    return DriftReport(
        in_parallel(look, pairs, jobs=_JOBS, stop=store.stop.ask), broken=tuple(broken)
    )


class _Tools(Struct, frozen=True):
    store: Store
    progress: Progress
    to: str | None  # the commit to look up to; None: what `track` names
    bisect: bool  # judge only some commits
    every_commit: bool  # keep the state at each commit


def _look(
    blank: ComponentDrift, manifest: Manifest, component: Component, tools: _Tools
) -> ComponentDrift:
    wanted = tools.to or LATEST
    tracked = component.track if wanted == LATEST else wanted
    if not isinstance(component.source, GitSource):
        return replace(blank, skipped="comes from no git repository")
    if not component.patches and (tracked is None or not is_watched(manifest, component)):
        return replace(blank, skipped="no patches")
    series = load_series(manifest, component, tools.store, tools.progress)
    history = open_history(tools.store, component, wanted, tools.progress)
    tools.progress.step(component.name, f"looking along {history.ref}", local=True)
    with ObjectReader(history.repository) as reader:
        return _judged(blank, _Looking(manifest, component, series, history, reader, tools))


class _Looking(Struct, frozen=True):
    manifest: Manifest
    component: Component
    series: LoadedSeries  # its patches, read
    history: History
    reader: ObjectReader  # reads upstream's objects
    tools: _Tools  # what every component's look needs

    @property
    def bring(self) -> Bring:
        def bring(blobs: Iterable[str]) -> None:
            store, progress = self.tools.store, self.tools.progress
            bring_blobs(store, self.component, self.history, blobs, progress)

        return bring

    @property
    def along(self) -> HistoryReader:
        return HistoryReader(self.history, self.reader, self.bring)


class _Walked(Struct, frozen=True):
    """What a walk found: all of it follows from commits, series, recipes and resolutions."""

    walk: Walk
    forecasts: (
        tuple[PatchForecast, ...] | None
    )  # what carrying to the tip comes to; None: not known
    clashes: tuple[PatchExplanation | None, ...]  # for each patch, why it does not apply
    whole: bool  # whether nothing was missing: only then it is kept


def _judged(blank: ComponentDrift, looking: _Looking) -> ComponentDrift:
    history, patches = looking.history, looking.series.patches
    walked = _walked(looking)
    walk, forecasts = walked.walk, walked.forecasts
    told = tell(history, walk, patches)
    if looking.tools.bisect:
        told = tuple(replace(each, risk=None) for each in told)
    ends = landed_of(history, [walk.start, walk.tip])
    suspicions = _suspicions(told, looking)
    listed = [patch.listed_at(looking.manifest.root) for patch in patches]
    told = tuple(
        replace(
            each,
            explanation=walked.clashes[number],
            forecast=forecasts[number] if forecasts is not None else None,
            suspicions=odd,
            listed=at,
        )
        for number, (each, odd, at) in enumerate(zip(told, suspicions, listed, strict=True))
    )
    watched = Watched(looking.manifest, looking.component, patches)
    tools = looking.tools
    silent = find_silent_drift(watched, looking.along, tools.store, tools.progress)
    return replace(
        blank,
        ref=history.ref,
        fork=history.fork,
        on_branch=history.on_branch,
        start=ends[0],
        tip=ends[1],
        commits=walk.length,
        touching=len(walk.touches),
        bisected=looking.tools.bisect,
        patches=told,
        exit_code=_exit_code(told),
        line=_line(looking) if looking.tools.every_commit else (),
        sites=silent.sites,
        targets=silent.targets,
        contracts=silent.contracts,
        unseen=silent.unseen,
    )


def _line(looking: _Looking) -> tuple[Landed, ...]:
    line = looking.history.line()
    return tuple(landed_of(looking.history, [line.start, *line.commits]))


def _walked(looking: _Looking) -> _Walked:
    """The walk to the tip; the one of an earlier run where nothing changed since."""
    store, history, patches = looking.tools.store, looking.history, looking.series.patches
    recipes = load_generator(patches).recipes
    entry = looking.component.series
    home = SeriesFolder(looking.manifest.root, entry, looking.component) if entry else None
    remembered = load_resolutions(home) if home is not None else {}
    memory = SeriesMemory(store.cache, history, patches, recipes, remembered)
    kept = memory.walk(bisect=looking.tools.bisect)
    known = recall_packed(kept, _Walked)
    if known is not None:
        return known
    series = WatchedSeries(
        looking.series.series_patches, recipes, remembered, verdicts=memory.verdicts()
    )
    walked = _walk(looking, series, memory.trials())
    if walked.whole and not absent_blobs(history.repository):
        remember_packed(kept, walked)
    return walked


def _walk(looking: _Looking, series: WatchedSeries, trials: Trials) -> _Walked:
    """The walk, ending in what carrying to the tip comes to."""
    history = looking.history
    note = partial(looking.tools.progress.advance, looking.component.name)
    walker = Walker(looking.along, series, quick=True, note=note)
    walk = bisect_history(walker) if looking.tools.bisect else walk_history(walker)
    forecasts = Trial(looking.along, series, trials).carry_to(history.tip)
    if forecasts is not None:
        others = differing(walk, forecasts)
        if others and not looking.tools.bisect:
            walker = Walker(looking.along, series, quick=True, route=walker.route, thorough=others)
            walk = walk_history(walker)
        walk = ended(walk, forecasts)
    clashes: list[PatchExplanation | None] = []
    whole = forecasts is not None
    for number, told in enumerate(tell(history, walk, looking.series.patches)):
        try:
            clashes.append(_clash(told, number, walker, looking))
        except MissingObjectError:  # no server gives it, or it is gone from the cache
            clashes.append(None)
            whole = False
    return _Walked(walk, forecasts, tuple(clashes), whole)


def _suspicions(told: Sequence[PatchDrift], looking: _Looking) -> Sequence[tuple[Suspicion, ...]]:
    try:
        series = looking.series.series_patches
        return find_suspicions(looking.history, looking.reader, series)
    except MissingObjectError:  # a file that no server gives
        return [()] * len(told)


def _clash(
    patch: PatchDrift, number: int, walker: Walker, looking: _Looking
) -> PatchExplanation | None:
    """What clashes at the commit since which the patch is in its state."""
    if not patch.is_broken:
        return None
    position = patch.intervals[-1].first if patch.since else len(walker.route.line.commits)
    return explain_clash(
        looking.history,
        walker.forecaster,
        looking.series.series_patches[number],
        commit=walker.route.commit(position),
        met=walker.met_at(position, number),
        bring=looking.bring,
    )


def _exit_code(patches: Sequence[PatchDrift]) -> ExitCode:
    bad = any(map(needs_attention, patches))
    return ExitCode.FINDING if bad else ExitCode.OK


def needs_attention(patch: PatchDrift) -> bool:
    """Whether the series must be touched to follow: not where a recipe regenerates the patch."""
    review = patch.forecast is not None and bool(patch.forecast.review)
    return review or patch.status in (
        Status.CONFLICTED,
        Status.WAITING,
        Status.MERGED,
        Status.ABSORBED,
    )


# Remember what a drift report saw, and reduce the next one to what changed.


class RecordPlace(Struct, frozen=True):
    """Where records are: one file that the user named, or one for each manifest in a folder."""

    file: Path | None
    folder: Path

    def of(self, manifest: str) -> Path:
        """The record of a manifest."""
        return self.file or self.folder / f"{manifest}.jsonl"


def note_report(
    report: DriftReport, place: RecordPlace, now: datetime, *, since_last: bool
) -> DriftReport:
    """The report with what earlier ones saw; with `since_last` only what changed.

    On disk: what it saw, for the next time. A record in the cache that cannot be written is no
    error, one that the user named raises SurroundingsError.
    """
    seen = [_seen(each, now) for each in report.components if each.tip is not None]
    earlier: dict[Line, list[Seen]] = {}
    for path in dict.fromkeys(place.of(each.manifest) for each in seen):
        own = [each for each in seen if place.of(each.manifest) == path]
        with nullcontext() if place.file is not None else suppress(SurroundingsError):
            for each in read_record(path):
                earlier.setdefault(each.line, []).append(each)
            append_seen(path, own)
    known = {each.line: each for each in seen}
    told = [_with_trend(each, known, earlier) for each in report.components]
    if since_last:
        told = [_since(each, known, earlier) for each in told]
        news = tuple(each for each in told if each.problems or _is_news(each))
        looked_at = sum(each.since is not None for each in told)
        unchanged = looked_at - sum(each.since is not None for each in news)
        return replace(report, components=news, unchanged=unchanged)
    return replace(report, components=tuple(told))


def _is_news(component: ComponentDrift) -> bool:
    found = component.sites or component.targets or component.contracts
    return component.since is not None and bool(found or not component.since.is_empty)


def _seen(component: ComponentDrift, now: datetime) -> Seen:
    assert component.tip is not None
    return Seen(
        at=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        manifest=component.manifest,
        component=component.name,
        ref=component.ref,
        pin=component.pin,
        tip=component.tip.commit,
        patches={each.name: _seen_patch(each) for each in component.patches},
        notes=tuple(dict.fromkeys(_notes(component))),
    )


def _seen_patch(patch: PatchDrift) -> SeenPatch:
    return SeenPatch(patch.status, patch.event.commit if patch.event is not None else "")


def _notes(component: ComponentDrift) -> Iterator[str]:
    """What was found beside the states of patches, in words that stay the same."""
    for patch in component.patches:
        for each in patch.suspicions:
            yield f"{patch.name}: {each.path}: {each.what}"
        for hunk in patch.absorbed if patch.status is not Status.ABSORBED else ():
            yield f"{patch.name}: {hunk.path}: hunk {hunk.hunk} is upstream"
    yield from map(_site_note, component.sites)
    yield from map(_target_note, component.targets)
    yield from map(_contract_note, component.contracts)


def _site_note(site: NewSite) -> str:
    return f"{site.rule}: {site.path}: {site.within}: {site.text}"


def _target_note(target: MovedTarget) -> str:
    return f"{target.component} replaces {target.name}: {target.verdict.value}"


def _contract_note(contract: BrokenContract) -> str:
    place = contract.place
    return f"{place.component} in {place.within}: {place.target}: {place.what}"


def _with_trend(
    component: ComponentDrift, known: Mapping[Line, Seen], earlier: Mapping[Line, Sequence[Seen]]
) -> ComponentDrift:
    line = (component.manifest, component.name, component.ref)
    if line not in known:
        return component
    points = list(earlier.get(line, ()))
    if not points or not known[line].is_like(points[-1]):
        points.append(known[line])
    points = points[-KEPT:]
    return replace(component, trend=tuple(map(_point, points)))


def _point(seen: Seen) -> TrendPoint:
    states = [patch.status for patch in seen.patches.values()]
    carried = states.count(Status.MERGED) + states.count(Status.REGENERATED)
    absorbed, conflicts = states.count(Status.ABSORBED), states.count(Status.CONFLICTED)
    waiting = states.count(Status.WAITING)
    fits = len(states) - carried - absorbed - conflicts - waiting
    return TrendPoint(seen.at, seen.tip, fits, carried, absorbed, conflicts, waiting)


def _since(
    component: ComponentDrift, known: Mapping[Line, Seen], earlier: Mapping[Line, Sequence[Seen]]
) -> ComponentDrift:
    """The component with what changed alone; one that was not looked at stays as it is."""
    line = (component.manifest, component.name, component.ref)
    if line not in known:
        return component
    before = earlier.get(line, ())
    since = compare(before[-1] if before else None, known[line])
    sites = tuple(each for each in component.sites if _site_note(each) in since.new)
    targets = tuple(each for each in component.targets if _target_note(each) in since.new)
    contracts = tuple(e for e in component.contracts if _contract_note(e) in since.new)
    shown = {*map(_site_note, sites), *map(_target_note, targets), *map(_contract_note, contracts)}
    since = replace(since, new=tuple(each for each in since.new if each not in shown))
    changed = {change.patch for change in since.changes}
    changed |= {patch.name for patch in component.patches if _is_named(patch, since)}
    return replace(
        component,
        patches=tuple(patch for patch in component.patches if patch.name in changed),
        sites=sites,
        targets=targets,
        contracts=contracts,
        since=since,
        exit_code=_since_exit_code(component, since),
    )


def _is_named(patch: PatchDrift, since: Since) -> bool:
    return any(note.startswith(f"{patch.name}: ") for note in since.new)


def _since_exit_code(component: ComponentDrift, since: Since) -> ExitCode:
    quiet = component.exit_code is ExitCode.FINDING and not since.is_worse
    return ExitCode.OK if quiet else component.exit_code
