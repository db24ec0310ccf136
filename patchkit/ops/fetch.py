"""Fetch what a manifest pins into the cache, so that everything else works offline."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import (
    BadInputError,
    ExitCode,
    OfComponents,
    PatchkitError,
    Problem,
    UsageError,
)
from patchkit.manifest.load import inspect_manifest
from patchkit.manifest.values import Component, GitPin, Manifest
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.progress import Progress
from patchkit.parallel import in_parallel
from patchkit.stack.lockfile import load_lock, merge_lock, write_lock
from patchkit.upstream.history import find_commit
from patchkit.upstream.store import JOBS, Store, cached_whole


def learn_names(path: Path, store: Store, progress: Progress) -> bool:
    """Have the lock hold the commits of tags that stand where pins do; False if it does already.

    A tag whose commit the lock holds is never asked for again. BadInputError for a name that the
    upstream has not, or that is a branch's.
    """
    nameless = inspect_manifest(path).nameless
    learned: dict[str, dict[str, CommitId]] = {}
    for component in nameless:
        assert isinstance(component.pin, GitPin)
        name, where = component.pin.name, str(component.pin_where)
        try:
            found = find_commit(store, component, name, progress).named
        except UsageError as error:
            problems = (Problem(p.what, where, p.hint) for p in error.problems)
            raise BadInputError(*problems) from error
        if found.branch:
            hint = f"a branch moves: write a tag, or {found.commit}, where it is now"
            raise BadInputError(Problem(f"{name} is a branch", where, hint))
        learned[component.name] = {name: found.commit}
    if not learned:
        return False
    lock_path = path.with_name(path.stem + ".lock.json")
    lock = load_lock(lock_path)
    known = lock.names if lock is not None else {}
    names = {name: {**known.get(name, {}), **new} for name, new in learned.items()}
    return write_lock(lock_path, merge_lock(lock, {}, names=names))


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
) -> FetchReport:
    """Bring the components' pins and patches by reference into the cache, `jobs` at once; one's
    error stops no other.

    A KeyboardInterrupt ends all fetches before it goes on. What is cached makes no progress. With
    `verify` that is read to the last byte first; what is damaged is fetched again.
    """
    damaged = {c.name for c in components if verify and not _verified(store, c, progress)}
    rows: dict[str, FetchedComponent] = {}
    missing = []

    def tell(row: FetchedComponent) -> None:
        rows[row.name] = replace(row, damaged=row.name in damaged)

    def bring(component: Component) -> None:
        try:
            base = store.base(component, progress)
            for entry in component.references:
                store.pinned_file(manifest, component, entry, progress)
        except PatchkitError as error:
            progress.finish(component.name, "failed")
            row = FetchedComponent(component.name, str(component.pin), FetchStatus.FAILED)
            tell(replace(row, problems=error.problems, exit_code=error.exit_code))
        else:
            progress.finish(component.name, "fetched")
            tell(_in_the_cache(store, component, FetchStatus.FETCHED, base))

    for component in components:
        if (base := cached_whole(store, manifest, component)) is None:
            missing.append(component)
        else:
            tell(_in_the_cache(store, component, FetchStatus.CACHED, base))
    in_parallel(bring, missing, jobs=jobs, stop=store.stop.ask)
    found = tuple(rows[component.name] for component in components)
    return FetchReport(manifest.name, store.cache, found)


def _in_the_cache(
    store: Store, component: Component, status: FetchStatus, base: Base
) -> FetchedComponent:
    return FetchedComponent(
        component.name,
        str(component.pin),
        status,
        base.commit,
        base.tree,
        files=len(component.references),
        absent=store.absent_paths(component),
    )


def _verified(store: Store, component: Component, progress: Progress) -> bool:
    progress.step(component.name, "verifying the cached copy", local=True)
    sound = store.verify(component, progress)
    progress.finish(component.name, "sound" if sound else "damaged")
    return sound
