"""Take patches from elsewhere into a component's series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.transaction import write_set
from patchkit.errors import ExitCode, Problem
from patchkit.explain.diagnose import explain_stack
from patchkit.explain.explanation import PatchExplanation
from patchkit.gitcmd.object_reader import reading
from patchkit.manifest.edit import add_patch
from patchkit.manifest.values import Component, Manifest
from patchkit.model.mail import parse_patch
from patchkit.model.outcome import Status
from patchkit.model.progress import Progress
from patchkit.model.series_file import Series, parse_series
from patchkit.refresh.patch_plan import SeriesFolder
from patchkit.refresh.project_files import Project, files_of, foresee, other_uses, patch_names_in
from patchkit.stack.build import Stack, build_stack
from patchkit.stack.importing import ImportedPatch, ImportSource, with_free_names
from patchkit.stack.lockfile import (
    LockedComponent,
    load_lock,
    lock_bytes,
    lock_component,
    merge_lock,
)
from patchkit.stack.series import LoadedPatch, LoadedSeries, load_series
from patchkit.upstream.store import Store


class AdoptOptions(Struct, frozen=True):
    """How to import: `force` takes what does not apply."""

    force: bool = False
    dry_run: bool = False


class AdoptedPatch(Struct, frozen=True):
    """One patch: where it came from, its file in the project, and whether it applies there."""

    name: str
    source: str
    file: str
    status: Status


class AdoptReport(Struct, frozen=True):
    """What was taken in, in order, from a source of that `kind`.

    `series` is the series file; `written` is false for a dry run, and where a patch does not apply
    and `--force` was not given: nothing was written then. `explanations` say why it does not.
    """

    component: str
    kind: str
    series: str
    patches: tuple[AdoptedPatch, ...]
    written: bool
    exit_code: ExitCode = ExitCode.OK
    explanations: tuple[PatchExplanation, ...] = ()
    problems: tuple[Problem, ...] = ()


def adopt_patches(
    manifest: Manifest,
    component: Component,
    found: ImportSource,
    *,
    store: Store,
    options: AdoptOptions,
    progress: Progress,
) -> AdoptReport:
    """Append the patches of a source to a component's series; nothing is overwritten.

    A patch whose bytes the series has already is passed over. On disk: the patch files, the series
    (and its entry in the manifest, if there was none) and the lock, all or none of them.
    """
    project = Project(manifest, component)
    home = project.home
    seen = files_of(project)  # before they are read for good
    old = load_series(manifest, component, store, progress)
    new = _loaded(found, home, old)
    base = store.base(component, progress)
    series = LoadedSeries(_in_place(old, new, component))
    repository = store.repository(component)
    with reading(repository) as reader:
        stack = build_stack(reader, base, series.series_patches)
        explanations = explain_stack(reader, stack, series.series_patches, history=repository)
    writes = _writes(project, new)
    problems, locks = _consequences(project, writes, series, stack, store=store, progress=progress)
    refused = (bool(problems) or not stack.clean) and not options.force
    written = bool(new) and not refused and not options.dry_run
    if written:
        seen |= {path: path.read_bytes() if path.exists() else None for path in locks}
        write_set(manifest.root, writes | _lock_files(locks), seen)
    status = {each.name: each.status for each in stack.outcomes}
    names = {patch.name: each.where for patch, each in zip(new, _fresh(found, old), strict=True)}
    return AdoptReport(
        component.name,
        found.kind,
        home.entry.path,
        tuple(AdoptedPatch(p.name, names[p.name], p.where, status[p.name]) for p in new),
        written,
        ExitCode.FINDING if problems or not stack.clean else ExitCode.OK,
        explanations,
        problems,
    )


def _fresh(found: ImportSource, old: LoadedSeries) -> list[ImportedPatch]:
    known = {patch.data for patch in old.patches}
    return [each for each in found.patches if each.data not in known]


def _loaded(found: ImportSource, home: SeriesFolder, old: LoadedSeries) -> tuple[LoadedPatch, ...]:
    taken = {each.name for each in old.patches} | patch_names_in(home.folder)
    named = with_free_names(_fresh(found, old), taken)
    return tuple(_load(each, home) for each in named)


def _load(patch: ImportedPatch, home: SeriesFolder) -> LoadedPatch:
    # what was a commit has an a/ and a b/ before its paths, whatever the component's files have
    strip = max(home.component.strip, 1) if patch.strip is None else patch.strip
    where = home.path(patch.name)
    return LoadedPatch(
        name=patch.name,
        data=patch.data,
        file=parse_patch(patch.data, name=patch.where, strip=strip),
        origin=home.entry,
        path=home.root / where,
        where=where,
        strip=strip,
        subdirectory=home.component.subdirectory,
    )


def _in_place(
    old: LoadedSeries, new: Sequence[LoadedPatch], component: Component
) -> tuple[LoadedPatch, ...]:
    """All patches in the order in which they apply: the new ones behind those of the series."""
    patches = list(old.patches)
    entry = component.series
    if entry is None:
        return (*patches, *new)
    earlier = component.patches[: component.patches.index(entry) + 1]
    place = sum(each.origin in earlier for each in patches)
    return (*patches[:place], *new, *patches[place:])


def _writes(project: Project, new: Sequence[LoadedPatch]) -> dict[Path, bytes | None]:
    manifest, home, component = project.manifest, project.home, project.component
    writes: dict[Path, bytes | None] = {home.root / each.where: each.data for each in new}
    path = manifest.root / home.entry.path
    series = parse_series(path.read_bytes(), name=home.entry.path) if path.exists() else Series()
    for each in new:
        series = series.append(each.name)
        if each.strip != component.strip:
            text = series.data.rstrip(b"\r\n") + f" -p{each.strip}\n".encode()
            series = parse_series(text, name=home.entry.path)
    writes[path] = series.data
    if component.series is None:
        data = manifest.path.read_bytes()
        entry = {"series": home.entry.path}
        writes[manifest.path] = add_patch(data, component.name, entry, file=manifest.path)
    return writes


def _consequences(
    project: Project,
    writes: Mapping[Path, bytes | None],
    series: LoadedSeries,
    stack: Stack,
    *,
    store: Store,
    progress: Progress,
) -> tuple[tuple[Problem, ...], dict[Path, dict[str, LockedComponent]]]:
    """Why other stacks do not bear the change, and what the locks say after it."""
    manifest, component = project.manifest, project.component
    uses = other_uses(manifest, component, writes)
    consequences = foresee(uses, writes, store, progress)
    locks: dict[Path, dict[str, LockedComponent]] = {}
    for use, locked in consequences.locks:
        locks.setdefault(use.manifest.lock_path, {})[use.component.name] = locked
    if stack.clean:
        locks.setdefault(manifest.lock_path, {})[component.name] = lock_component(stack, series)
    return consequences.problems, locks


def _lock_files(locks: Mapping[Path, Mapping[str, LockedComponent]]) -> dict[Path, bytes | None]:
    """The lock files as they will be; where there is none yet, `apply` writes it."""
    files: dict[Path, bytes | None] = {}
    for path, components in locks.items():
        known = load_lock(path)
        if known is not None:
            files[path] = lock_bytes(merge_lock(known, components))
    return files
