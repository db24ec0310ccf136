"""Take patches that a manifest refers to into the component's own series, to be changed there.

A patch by reference is another repository's and is never rewritten, so that a new pin which it does
not fit stops it. Taken over it is like any other; where it came from stays in its message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.transaction import write_set
from patchkit.errors import BadInputError, ExitCode, Problem, UsageError
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.remote import readable_url
from patchkit.manifest.edit import fold_patches
from patchkit.manifest.values import (
    Component,
    Manifest,
    PinnedPatch,
)
from patchkit.model.mail import parse_patch, subject_from, with_trailer
from patchkit.model.names import pick_patch
from patchkit.model.progress import Progress
from patchkit.model.series_file import Series, parse_series
from patchkit.refresh.project_files import Project, files_of, patch_names_in
from patchkit.stack.build import build_stack
from patchkit.stack.lockfile import load_lock, lock_bytes, lock_component, merge_lock, recorded_in
from patchkit.stack.series import LoadedPatch, LoadedSeries, load_series
from patchkit.upstream.store import Store, home_of


class TakenPatch(Struct, frozen=True):
    """A patch, its file in the project, and where it came from."""

    name: str
    file: str
    origin: str


class TakeReport(Struct, frozen=True):
    """What was taken over into `series`; `files` were written (with a dry run: would be)."""

    manifest: str
    component: str
    series: str
    dry_run: bool
    patches: tuple[TakenPatch, ...]
    files: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """What cannot be taken over is an error."""
        return ExitCode.OK


def take_patches(
    manifest: Manifest,
    component: Component,
    names: Sequence[str],
    *,
    store: Store,
    progress: Progress,
    dry_run: bool = False,
) -> TakeReport:
    """Take the patches called `names`, or all that are by reference, into the series.

    The order of the stack stays, and what it makes of the base. On disk: the patch files, the
    series, the manifest and the lock, all or none. UsageError for a name that is no patch by
    reference; BadInputError where the order could not stay.
    """
    project = Project(manifest, component)
    series = project.home.entry.path  # once it is written, a new one would get another name
    seen = files_of(project)  # before they are read for good
    before = load_series(manifest, component, store, progress)
    chosen = _chosen(before, component, names)
    _require_room(project, chosen)
    taken = {each.name: _taken(each, project) for each in chosen}
    after = LoadedSeries(tuple(taken.get(each.name, each) for each in before.patches))
    writes = _writes(project, taken, after)
    if lock := _lock(project, before, after, store, progress):
        seen[manifest.lock_path] = manifest.lock_path.read_bytes()
        writes[manifest.lock_path] = lock
    if taken and not dry_run:
        seen |= {path: None for path in writes if path not in seen}
        write_set(manifest.root, writes, seen)
    return TakeReport(
        manifest.name,
        component.name,
        series,
        dry_run,
        tuple(TakenPatch(each.name, taken[each.name].where, each.where) for each in chosen),
        tuple(sorted(path.relative_to(manifest.root).as_posix() for path in writes)),
    )


def _chosen(series: LoadedSeries, component: Component, names: Sequence[str]) -> list[LoadedPatch]:
    referred = [each for each in series.patches if isinstance(each.origin, PinnedPatch)]
    listed = [each.name for each in series.patches]
    names = [pick_patch(name, listed) for name in names]
    strangers = set(names) - {each.name for each in referred}
    if strangers:
        known = ", ".join(each.name for each in referred) or "none is"
        what = f"{', '.join(sorted(strangers))}: not by reference in {component.name}"
        raise UsageError(Problem(what, hint=f"by reference: {known}"))
    return [each for each in referred if not names or each.name in names]


def _require_room(project: Project, chosen: Sequence[LoadedPatch]) -> None:
    """BadInputError if the order, the manifest or a file of that name forbid it."""
    problems = [*_not_here(project, chosen), *_between(project, chosen)]
    there = patch_names_in(project.home.folder)
    problems += [
        Problem("is there already", project.home.path(each.name), f"give it a `name` at {where}")
        for each in chosen
        for where in (each.origin.where,)
        if each.name in there
    ]
    if problems:
        raise BadInputError(*problems)


def _not_here(project: Project, chosen: Sequence[LoadedPatch]) -> Iterator[Problem]:
    for each in chosen:
        if not each.origin.where.file.samefile(project.manifest.path):
            what = f"{each.name} is inherited from here"
            hint = (
                f"write the patches of {project.component.name} into {project.manifest.path.name}"
            )
            yield Problem(what, str(each.origin.where), hint)


def _between(project: Project, chosen: Sequence[LoadedPatch]) -> Iterator[Problem]:
    """Entries that would change places with one that is taken."""
    manifest, component = project.manifest, project.component
    entries = component.patches
    moving = [entries.index(each.origin) for each in chosen]
    entry = component.series
    if entry is not None:
        moving.append(entries.index(entry))
    if not chosen:
        return
    for number in range(min(moving), max(moving) + 1):
        each = entries[number]
        if number not in moving:
            name = each.patch_name if isinstance(each, PinnedPatch) else each.path
            what = f"{name} is between patches that would be in one series"
            pinned = isinstance(each, PinnedPatch)
            hint = "list it in the series in place of the manifest"
            if pinned:
                hint = f"take them all: patchkit take {manifest.options(component.name)}"
            yield Problem(what, str(each.where), hint)


def _taken(patch: LoadedPatch, project: Project) -> LoadedPatch:
    """The patch as a file of the series, whose message says where it came from."""
    where = project.home.path(patch.name)
    reason = f"{subject_from(patch.name)}\n\nTaken over as it was published."
    data = with_trailer(patch.file, _origin(patch, project.manifest), reason)
    return LoadedPatch(
        name=patch.name,
        data=data,
        file=parse_patch(data, name=where, strip=patch.strip),
        origin=project.home.entry,
        path=project.manifest.root / where,
        where=where,
        strip=patch.strip,
        subdirectory=patch.subdirectory,
    )


def _origin(patch: LoadedPatch, manifest: Manifest) -> str:
    """Repository, commit, path and hash of a patch by reference, as trailers."""
    entry = patch.origin
    assert isinstance(entry, PinnedPatch)
    source, commit = home_of(manifest, entry)
    return (
        f"Origin: {readable_url(source.url)} {commit}\n"
        f"Origin-File: {entry.path}\nOrigin-SHA256: {entry.sha256}"
    )


def _writes(
    project: Project, taken: dict[str, LoadedPatch], after: LoadedSeries
) -> dict[Path, bytes | None]:
    manifest, component, home = project.manifest, project.component, project.home
    if not taken:
        return {}
    path = manifest.root / home.entry.path
    series = parse_series(path.read_bytes(), name=home.entry.path) if path.exists() else Series()
    listed = [each for each in after.patches if each.origin == home.entry]
    series = series.arrange([each.name for each in listed])
    for each in taken.values():
        if each.strip != component.strip:
            series = series.with_strip(each.name, each.strip)
    gone = [
        number
        for number, entry in enumerate(component.patches)
        if isinstance(entry, PinnedPatch) and entry.patch_name in taken
    ]
    own = None if component.series is not None else home.entry.path
    text = fold_patches(manifest.path.read_bytes(), component.name, gone, own, file=manifest.path)
    writes: dict[Path, bytes | None] = {manifest.root / e.where: e.data for e in taken.values()}
    return {**writes, path: series.data, manifest.path: text}


def _lock(
    project: Project,
    before: LoadedSeries,
    after: LoadedSeries,
    store: Store,
    progress: Progress,
) -> bytes | None:
    """The lock with the new files' hashes; None where it does not say what is there now."""
    manifest, component = project.manifest, project.component
    known = load_lock(manifest.lock_path)
    base = store.base(component, progress)
    recorded = recorded_in(known, component.name)
    if recorded is None or recorded.commit != base.commit or before == after:
        return None
    with reading(store.repository(component)) as reader:
        stacks = [build_stack(reader, base, each.series_patches) for each in (before, after)]
    if stacks[0].tree != stacks[1].tree:
        what = "taken over, the patches would make something else of the base"
        raise BadInputError(Problem(what, component.name, "please report it"))
    if not stacks[1].clean:
        return None
    return lock_bytes(merge_lock(known, {component.name: lock_component(stacks[1], after)}))
