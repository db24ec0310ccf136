"""Look along tracked branches: which patches will not survive the next bump, and who broke them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.along import Along, Bring
from patchkit.drift.bisecting import bisect_history
from patchkit.drift.carried import carry_of
from patchkit.drift.changes import Since
from patchkit.drift.clashes import explain_clash
from patchkit.drift.forecast import forecast
from patchkit.drift.judging import SeriesJudge
from patchkit.drift.remembering import (
    forecast_path,
    recall_forecasts,
    recall_walk,
    remember_forecasts,
    remember_walk,
    walk_path,
)
from patchkit.drift.silent import find_suspicions
from patchkit.drift.telling import landed_of, tell
from patchkit.drift.values import (
    BrokenContract,
    Forecast,
    Landed,
    MovedTarget,
    NewSite,
    PatchDrift,
    Suspicion,
    TrendPoint,
)
from patchkit.drift.walking import Walk, walk_history, with_last
from patchkit.errors import ExitCode, PatchkitError, Problem, worst
from patchkit.gitcmd.objects import MissingObjectError, ObjectReader
from patchkit.histories import History, bring_blobs, open_history
from patchkit.manifest.values import Component, GitSource, Manifest
from patchkit.model.outcome import Status
from patchkit.model.progress import Progress
from patchkit.ops.check_report import BrokenManifest
from patchkit.ops.drift_silently import Watched, find_silent_drift, is_watched
from patchkit.parallel import in_parallel
from patchkit.recipes.generating import load_generator
from patchkit.recipes.values import Recipe
from patchkit.series import LoadedSeries, load_series
from patchkit.sources.refs import LATEST
from patchkit.store import Store

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
    says what of that could not be looked at.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"line"})

    manifest: str
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
    broken: tuple[BrokenManifest, ...] = ()
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
    every_state: bool = True,
    every_commit: bool = False,
    broken: Sequence[BrokenManifest] = (),
) -> DriftReport:
    """Judge every commit of the components' tracked branches, or of `to`, beyond their pins.

    One component's error stops no other. Without `every_state` what a bump would make of a patch
    that does not apply is said of the tip alone, and intervals before it say CONFLICTED: that takes
    a tenth of the time. With `every_commit` each is described, as a timeline needs it. On disk: the
    history and what was found, in the cache.
    """
    tools = _Tools(store, progress, to, bisect, every_state, every_commit)

    def look(pair: tuple[Manifest, Component]) -> ComponentDrift:
        manifest, component = pair
        blank = ComponentDrift(manifest.name, component.name, str(component.pin), ExitCode.OK)
        try:
            found = _look(blank, manifest, component, tools)
        except PatchkitError as error:
            found = replace(blank, exit_code=error.exit_code, problems=error.problems)
        progress.finish(component.name, "failed" if found.problems else "looked at")
        return found

    pairs = [(manifest, component) for manifest, each in chosen for component in each]
    return DriftReport(
        in_parallel(look, pairs, jobs=_JOBS, stop=store.stop.ask), broken=tuple(broken)
    )


class _Tools(Struct, frozen=True):
    store: Store
    progress: Progress
    to: str | None
    bisect: bool
    every_state: bool
    every_commit: bool


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
    series: LoadedSeries
    history: History
    reader: ObjectReader
    tools: _Tools

    @property
    def bring(self) -> Bring:
        def bring(blobs: Iterable[str]) -> None:
            store, progress = self.tools.store, self.tools.progress
            bring_blobs(store, self.component, self.history, blobs, progress)

        return bring

    @property
    def along(self) -> Along:
        return Along(self.history, self.reader, self.bring)


def _judged(blank: ComponentDrift, looking: _Looking) -> ComponentDrift:
    history, patches = looking.history, looking.series.patches
    walk = _walk(looking)
    told = tell(history, walk, patches)
    if looking.tools.bisect:
        told = tuple(replace(each, risk=None) for each in told)
    ends = landed_of(history, [walk.start, walk.tip])
    forecasts = _forecasts(told, looking)
    suspicions = _suspicions(told, looking)
    listed = [patch.listed_at(looking.manifest.root) for patch in patches]
    told = tuple(
        replace(_explained(each, number, looking), forecast=ahead, suspicions=odd, listed=at)
        for number, (each, ahead, odd, at) in enumerate(
            zip(told, forecasts, suspicions, listed, strict=True)
        )
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


def _walk(looking: _Looking) -> Walk:
    patches = looking.series.patches
    recipes = load_generator(patches).recipes
    series = looking.series.series_patches
    along = looking.along
    judge = SeriesJudge(looking.reader, series)
    carry = carry_of(judge, series, recipes, along)
    if looking.tools.bisect:
        judge.carry = carry
        return bisect_history(along, judge)
    if not looking.tools.every_state:
        walk = _kept_walk(looking, judge, recipes)
        judge.carry = carry
        ended = with_last(walk, judge.update({}, walk.tip))
        if all(changes[-1].carried is not Status.ABSORBED for changes in ended.changes):
            return ended
        # which commit it was that made a patch superfluous only the engine can say
    judge.carry = carry
    walk = _kept_walk(looking, judge, recipes)
    return with_last(walk, judge.update({}, walk.tip))


def _kept_walk(looking: _Looking, judge: SeriesJudge, recipes: Mapping[str, Recipe]) -> Walk:
    """The walk as far as it was kept, gone on with; kept for the next time."""
    history, patches = looking.history, looking.series.patches
    cache, every_state = looking.tools.store.cache, judge.carry is not None
    path = walk_path(cache, history, patches, recipes, every_state=every_state)
    earlier = recall_walk(path)
    if earlier is not None and not looking.along.has(earlier.tip):
        earlier = None
    walk = walk_history(looking.along, judge, earlier)
    if walk != earlier:
        remember_walk(path, walk)
    return walk


def _forecasts(told: Sequence[PatchDrift], looking: _Looking) -> Sequence[Forecast | None]:
    """What a bump would do; nobody asks where every patch fits."""
    if not any(each.is_broken or each.status is Status.ABSORBED for each in told):
        return [None] * len(told)
    history, patches = looking.history, looking.series.patches
    recipes = load_generator(patches).recipes
    path = forecast_path(looking.tools.store.cache, history, patches, recipes)
    kept = recall_forecasts(path)
    if kept is None or len(kept) != len(told):
        kept = forecast(history, looking.reader, patches, looking.bring)
        remember_forecasts(path, kept)
    return kept


def _suspicions(told: Sequence[PatchDrift], looking: _Looking) -> Sequence[tuple[Suspicion, ...]]:
    try:
        series = looking.series.series_patches
        return find_suspicions(looking.history, looking.reader, series)
    except MissingObjectError:  # a file that no server gives
        return [()] * len(told)


def _explained(patch: PatchDrift, number: int, looking: _Looking) -> PatchDrift:
    if not patch.is_broken:
        return patch
    commit = patch.broken_by.commit if patch.broken_by else looking.history.tip
    try:
        explanation = explain_clash(
            looking.history,
            looking.reader,
            looking.series.series_patches,
            number,
            commit=commit,
            bring=looking.bring,
        )
    except MissingObjectError:  # a file that no server gives
        return patch
    return replace(patch, explanation=explanation)


def _exit_code(patches: Sequence[PatchDrift]) -> ExitCode:
    bad = any(map(needs_attention, patches))
    return ExitCode.FINDING if bad else ExitCode.OK


def needs_attention(patch: PatchDrift) -> bool:
    """Whether the series must be touched to follow: not where a recipe gives the patch anew."""
    return patch.status in (Status.CONFLICTED, Status.MERGED, Status.ABSORBED)
