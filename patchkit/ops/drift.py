"""Look along tracked branches: which patches will not survive the next bump, and who broke them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.drift_report import (
    LineDrift,
    PatchDrift,
)
from patchkit.drift.forecast_cache import SeriesMemory
from patchkit.errors import ExitCode, OfComponents, PatchkitError, Problem, SurroundingsError
from patchkit.extension import WatchedLine, silent_searches
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.workers import in_processes
from patchkit.manifest.values import Component, GitSource, Manifest
from patchkit.model.finding import Finding, Landed
from patchkit.model.names import short_id
from patchkit.model.outcome import Fate
from patchkit.model.progress import Progress
from patchkit.model.text import counted
from patchkit.ops.check_report import BrokenManifest, Chosen
from patchkit.ops.version_matrix import VersionMatrix, find_matrices
from patchkit.parallel import return_memory, share_memory
from patchkit.refresh.conflict import load_resolutions
from patchkit.refresh.patch_plan import SeriesFolder
from patchkit.stack.series import LoadedSeries, load_series
from patchkit.upstream.git import LATEST
from patchkit.upstream.history import History, HistoryReader, open_history
from patchkit.upstream.store import Store

if TYPE_CHECKING:
    from patchkit.model.resolution import Resolution
    from patchkit.stack.generated import PatchRecipe


def is_watched(manifest: Manifest, component: Component) -> bool:
    """Whether something is looked for in the component, whatever its patches."""
    searches = silent_searches().values()
    return any(search.watches(manifest, component) for search in searches)


class ComponentDrift(Struct, frozen=True):
    """One component along the branch that it tracks.

    `ref` is the branch, tag or commit looked at; from `fork`, the newest commit that the pin and it
    have in common, to `tip` it has `commits` first-parent commits, of which `touching` change files
    of the patches. `on_branch`: the pin is on it. `skipped` says why there was nothing to look at.
    `line` has every commit from `start` on, where that was asked for.
    `findings` are what changed without a conflict: code that rules name and no patch covers,
    functions that other components replace, calls between components that fit no more; and what of
    that could not be examined.
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
    patches: tuple[PatchDrift, ...] = ()
    skipped: str = ""
    problems: tuple[Problem, ...] = ()
    line: tuple[Landed, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> tuple[str, str]:
        """The state of the component, and what was looked at, in a line."""
        if self.problems:
            return "failed", "could not be examined, see below"
        if self.tip is None:
            return "skipped", self.skipped
        where = ""
        if self.fork == self.tip.commit and not self.on_branch:
            where = ", an ancestor of the pin"
        elif not self.on_branch:
            where = f" since {short_id(self.fork)}, where they part: the pin is not on the branch"
        to = f"{self.ref} to {short_id(self.tip.commit)} of {self.tip.day}"
        state = "ok" if self.exit_code is ExitCode.OK else "failed"
        return state, f"{to}, {counted(self.commits, 'commit')}{where}"


class DriftReport(OfComponents, Struct, frozen=True):
    """Every component that was looked at, and the manifests that could not be read."""

    components: tuple[ComponentDrift, ...]
    broken: tuple[BrokenManifest, ...] = ()  # manifests that could not be read
    versions: tuple[VersionMatrix, ...] = ()  # components that were looked at at several pins


def look_for_drift(
    chosen: Chosen,
    store: Store,
    progress: Progress,
    *,
    to: str | None = None,
    every_commit: bool = False,
    broken: Sequence[BrokenManifest] = (),
    known: Callable[[str, ComponentDrift], None] = lambda _name, _drift: None,
    first: Callable[[], None] = lambda: None,
) -> DriftReport:
    """Judge every commit of the components' tracked branches, or of `to`, beyond their pins.

    One component's error stops no other; `known` gets each ("manifest: component") as soon as it is
    judged; `first` is done beside the first of them. With `every_commit` each is described, as a
    timeline needs it. On disk: the history and what was found, in the cache.
    """
    share_memory()
    pairs = [(manifest, component) for manifest, each in chosen for component in each]

    def tell(pair: tuple[Manifest, Component], found: ComponentDrift) -> None:
        known(f"{pair[0].name}: {pair[1].name}", found)

    alone = len(pairs) == 1
    look = partial(_looked, tools=_Tools(store, progress, to, every_commit, alone))
    stop = store.stop
    found = in_processes(look, pairs, progress=progress, stop=stop, told=tell, first=first)
    versions = find_matrices(pairs, found, store)
    return DriftReport(found, broken=tuple(broken), versions=versions)


class _Tools(Struct, frozen=True):
    store: Store
    progress: Progress
    to: str | None  # the commit to look up to; None: what `track` names
    every_commit: bool  # keep the state at each commit
    alone: bool  # no other component is looked at, so that a worker may help with this one


def _looked(pair: tuple[Manifest, Component], *, tools: _Tools) -> ComponentDrift:
    """What a look at one component comes to; its errors are its own."""
    manifest, component = pair
    blank = ComponentDrift(manifest.name, component.name, str(component.pin), ExitCode.OK)
    try:
        found = _look(blank, manifest, component, tools)
    except PatchkitError as error:
        found = replace(blank, exit_code=error.exit_code, problems=error.problems)
    tools.progress.finish(component.name, "failed" if found.problems else "looked at")
    return_memory()
    return found


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
        along = HistoryReader(history, reader)
        return _judged(blank, _Looking(manifest, component, series, along, tools))


class _Looking(Struct, frozen=True):
    manifest: Manifest
    component: Component
    series: LoadedSeries  # its patches, read
    along: HistoryReader  # reads upstream's line
    tools: _Tools  # what every component's look needs


def _judged(blank: ComponentDrift, looking: _Looking) -> ComponentDrift:
    history, tools, patches = looking.along.history, looking.tools, looking.series.patches
    known = _line_drift(looking)
    told = tuple(
        replace(each, where=patch.where, listed=patch.listed_at(looking.manifest.root))
        for each, patch in zip(known.patches, patches, strict=True)
    )
    found = replace(
        blank,
        ref=history.ref,
        fork=known.fork,
        on_branch=known.fork == history.pin,
        start=known.start,
        tip=known.tip,
        commits=known.commits,
        touching=known.touching,
        patches=told,
        exit_code=_exit_code(told),
    )
    if tools.every_commit:
        from patchkit.drift.describe import landed_of  # noqa: PLC0415

        line = history.line
        found = replace(found, line=tuple(landed_of(history, [line.start, *line.commits])))
    if not is_watched(looking.manifest, looking.component):
        return found
    from patchkit.ops.line_drift import find_silent_drift  # noqa: PLC0415

    about = (looking.manifest, looking.component, patches, looking.along)
    silent = find_silent_drift(WatchedLine(*about, tools.store, tools.progress))
    return replace(found, findings=silent)


def _line_drift(looking: _Looking) -> LineDrift:
    """What becomes of the patches along the line; that of an earlier run if nothing changed since.

    What searches a line is loaded only where it has to be searched.
    """
    along, tools = looking.along, looking.tools
    about = looking.manifest, looking.component, looking.series, along.history
    memory = memory_of(*about, tools.store)
    known = memory.line()
    if known is not None:
        return known
    from patchkit.ops.line_drift import judge_line  # noqa: PLC0415

    # a recipe may be of a kind that cannot be sent to a worker
    return judge_line(along, looking.series, memory, helped=tools.alone and not memory.recipes)


def carried_to_tip(
    manifest: Manifest, component: Component, store: Store, progress: Progress
) -> list[tuple[Fate | None, Landed | None]]:
    """The fate of each patch at the tip of the tracked branch, with the commit that it names.

    Nothing is searched along the line. On disk: as `look_for_drift`.
    """
    from patchkit.ops.line_drift import commits_of_fates, forecast_tip  # noqa: PLC0415

    series = load_series(manifest, component, store, progress)
    history = open_history(store, component, LATEST, progress)
    progress.step(component.name, f"carrying to {history.ref}", local=True)
    memory = memory_of(manifest, component, series, history, store)
    forecasts = forecast_tip(series.series_patches, memory, history)
    if forecasts is None:
        what = f"cannot be carried to {history.ref}: files for it are not to be had"
        raise SurroundingsError(Problem(what, component.name))
    by = commits_of_fates(history, forecasts)
    return list(zip([forecast.fate for forecast in forecasts], by, strict=True))


def memory_of(
    manifest: Manifest, component: Component, series: LoadedSeries, history: History, store: Store
) -> SeriesMemory:
    """What is known of a series along a history, with its recipes and what the project decided."""
    remembered: Mapping[str, Resolution] = {}
    if component.series is not None:
        remembered = load_resolutions(SeriesFolder(manifest.root, component.series, component))
    recipes: Mapping[str, PatchRecipe] = {}
    if any(each.has_recipe for each in series.patches):
        from patchkit.stack.generated import load_generator  # noqa: PLC0415

        recipes = load_generator(series.patches).recipes
    return SeriesMemory(store.cache, history, series.patches, recipes, remembered)


def _exit_code(patches: Sequence[PatchDrift]) -> ExitCode:
    bad = any(patch.needs_attention for patch in patches)
    return ExitCode.FINDING if bad else ExitCode.OK
