"""Fetch what a manifest pins into the cache, so that everything else works offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct

from patchkit.errors import ExitCode, OfComponents, PatchkitError, Problem
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.progress import Progress
from patchkit.upstream.store import JOBS, Store, cached_whole, fetch_all


class FetchStatus(str, Enum):
    """How a component's pin stands in the cache now."""

    CACHED = "cached"  # it was here already
    FETCHED = "fetched"
    FAILED = "failed"


class FetchedComponent(Struct, frozen=True):
    """What became of one component.

    `commit` and `tree` are the base's, null if it failed; `files` counts its patches by
    reference. `absent` are paths of the base whose contents no server has, because the
    upstream repository is damaged; everything else of it is here. `damaged`: the cached copy was,
    and was thrown away.
    """

    name: str  # in the manifest
    pin: str  # as the manifest spells it
    status: FetchStatus  # how its pin stands in the cache now
    commit: CommitId | None = None
    tree: TreeId | None = None
    files: int = 0
    absent: tuple[str, ...] = ()
    damaged: bool = False
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class FetchReport(OfComponents, Struct, frozen=True):
    """What became of every component of a manifest; `cache` is the folder that holds it all."""

    manifest: str
    cache: Path
    components: tuple[FetchedComponent, ...]


def fetch_components(
    manifest: Manifest,
    components: Sequence[Component],
    store: Store,
    progress: Progress,
    *,
    verify: bool = False,
    jobs: int = JOBS,
    known: Callable[[str, FetchedComponent], None] = lambda _name, _fetched: None,
) -> FetchReport:
    """Bring the components' pins and patches by reference into the cache, several at once.

    `known` gets each as soon as it is there.

    With `verify`, what is cached is read to the last byte first; what is damaged is fetched again.
    """
    damaged = {c.name for c in components if verify and not _verified(store, c, progress)}
    cached = {c.name for c in components if cached_whole(store, manifest, c) is not None}

    def told(each: Component, result: Base | PatchkitError) -> FetchedComponent:
        return _component(store, each, result, each.name in cached, each.name in damaged)

    results = fetch_all(
        manifest,
        store,
        progress,
        components=components,
        jobs=jobs,
        known=lambda each, result: known(each.name, told(each, result)),
    )
    rows = tuple(told(each, results[each.name]) for each in components)
    return FetchReport(manifest.name, store.cache, rows)


def _component(
    store: Store, component: Component, result: Base | PatchkitError, cached: bool, damaged: bool
) -> FetchedComponent:
    if isinstance(result, PatchkitError):
        return FetchedComponent(
            component.name,
            str(component.pin),
            FetchStatus.FAILED,
            damaged=damaged,
            problems=result.problems,
            exit_code=result.exit_code,
        )
    return FetchedComponent(
        component.name,
        str(component.pin),
        FetchStatus.CACHED if cached else FetchStatus.FETCHED,
        result.commit,
        result.tree,
        files=len(component.references),
        absent=store.absent_paths(component),
        damaged=damaged,
    )


def _verified(store: Store, component: Component, progress: Progress) -> bool:
    progress.step(component.name, "verifying the cached copy", local=True)
    sound = store.verify(component, progress)
    progress.finish(component.name, "sound" if sound else "damaged")
    return sound
