"""Which files of the project a draft changes: patches, the series, sometimes the manifest; and what
that change does to other stacks that take the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import LARGEST_PATCH, Contents, bytes_at, read_plain
from patchkit.errors import BadInputError, PatchkitError, Problem
from patchkit.gitcmd.object_reader import reading
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.edit import add_patch, fold_patches
from patchkit.manifest.find import FOLDER, manifests_in
from patchkit.manifest.values import (
    Component,
    FilePin,
    LocalPatch,
    LocalSeries,
    Location,
    Manifest,
    OrderedFolder,
    PinnedPatch,
    SubmodulePin,
)
from patchkit.model.mail import parse_patch
from patchkit.model.progress import Progress
from patchkit.model.revision import Revision
from patchkit.model.series_file import Series
from patchkit.refresh.patch_plan import Draft, SeriesFolder
from patchkit.stack.build import build_stack
from patchkit.stack.lockfile import LockedComponent, lock_component
from patchkit.stack.patch_lists import parse_list, patch_files, read_series
from patchkit.stack.series import ImportedPatch, LoadedPatch, LoadedSeries, load_series
from patchkit.upstream.store import Store


class Project(Struct, frozen=True):
    """A component in its manifest: what file names are made from."""

    manifest: Manifest
    component: Component

    @property
    def home(self) -> SeriesFolder:
        """Where its new patches go; a component without a series gets one of its own."""
        entry = self.component.series
        if entry is None:
            path = f"patches/{self._own_folder}/series"
            entry = LocalSeries(path, Location(self.manifest.path, self.component.where.line))
        listed = Series() if entry.kind == "quilt" else read_series(self.manifest, entry)
        strip = self.component.strip if listed.strip is None else listed.strip
        return SeriesFolder(self.manifest.root, entry, self.component, strip, listed.others)

    @property
    def listed(self) -> tuple[str, ...]:
        """The names that its series lists."""
        entry = self.component.series
        return read_series(self.manifest, entry).names if entry is not None else ()

    @property
    def _own_folder(self) -> str:
        plain = self.component.name.replace("@", "/")
        taken = (self.manifest.root / "patches" / plain / "series").exists()
        return f"{plain}-{self.manifest.name}" if taken else plain


def files_of(project: Project) -> Contents:
    """The files that a change of the component's patches starts from, as they are now.

    Path -> bytes, None for one that is not there: the manifest, files that its pin stands in, the
    series and the patches beside it, patches that the manifest names. Read before anything is
    planned with them, it is what `write_set` must find again.
    """
    root, component = project.manifest.root, project.component
    home = project.home
    paths = {project.manifest.path}
    if not isinstance(home.entry, OrderedFolder):
        paths.add(root / home.entry.path)
    pin = component.pin
    if isinstance(pin, FilePin | SubmodulePin):
        places = (pin, *pin.also) if isinstance(pin, FilePin) else pin.also
        paths |= {root / each.file for each in places}
    for entry in component.patches:
        if isinstance(entry, LocalSeries):
            paths |= {*patch_files(root, entry), *_listed_files(project.manifest, entry)}
        elif isinstance(entry, LocalPatch):
            paths.add(root / entry.path)
    plain = {path for path in paths if path.is_file()}
    return {
        path: read_plain(path, most=LARGEST_PATCH, inside=root) if path in plain else None
        for path in paths
    }


def _listed_files(manifest: Manifest, entry: LocalSeries) -> list[Path]:
    """The files that a series lists, of any ending; none where it cannot be read."""
    try:
        names = read_series(manifest, entry).names
    except BadInputError:
        return []
    return [manifest.root / entry.beside(name) for name in names]


def patch_names_in(home: SeriesFolder) -> frozenset[str]:
    """The names of all patch files in a series' folder, listed or not."""
    files = patch_files(home.root, home.entry)
    return frozenset(path.relative_to(home.folder).as_posix() for path in files)


def changed_files(project: Project, draft: Draft, manifest: bytes) -> Contents:
    """Path -> new bytes of every file that a draft changes; None: it goes away.

    `manifest` is what the manifest's file is to hold without this draft.
    """
    root, home = project.manifest.root, project.home
    writes: dict[Path, bytes | None] = {}
    for row in draft.revised:
        patch = row.new or row.old
        if row.revision is Revision.UNCHANGED or patch is None or patch.path is None:
            continue
        if patch.name in home.others and row.new is not None:
            raise BadInputError(home.shared(patch))
        if patch.name not in home.others:
            writes[patch.path] = row.new.data if row.new is not None else None
    if not isinstance(home.entry, OrderedFolder):
        path = root / home.entry.path
        before = bytes_at(path)
        text = _series(path, home.entry, draft, home.strip).data
        if text != before and (draft.series or before is not None):
            writes[path] = text
    component, file = project.component, project.manifest.path
    own = home.entry.path if component.series is None and draft.series else None
    copied = [
        number
        for number, entry in enumerate(component.patches)
        if isinstance(entry, PinnedPatch) and entry.patch_name in draft.series
    ]
    if copied:
        writes[file] = fold_patches(manifest, component.name, copied, own, file=file)
    elif own is not None:
        writes[file] = add_patch(manifest, component.name, {"series": own}, file=file)
    return writes


def _series(path: Path, entry: LocalSeries, draft: Draft, strip: int) -> Series:
    """The list as a draft leaves it: options and comments move with their patch.

    `strip` is the component's, of which nothing has to be said.
    """
    series = parse_list(path.read_bytes(), entry) if path.is_file() else Series()
    for old, new in draft.renamed.items():
        if old in series.names:
            series = series.rename(old, new)
    known, series = series.names, series.arrange(draft.series)
    for patch in draft.patches:
        if patch.name in series.names:
            if patch.name not in known and patch.strip != strip:
                series = series.with_strip(patch.name, patch.strip)
            series = series.with_bytes(patch.name, patch.data)
    return series


# Patches from elsewhere, before they are files of the series.


def imported_patch(patch: ImportedPatch, home: SeriesFolder) -> LoadedPatch:
    """The patch as the file of the series that it is to be."""
    # what was a commit has an a/ and a b/ before its paths, whatever the component's files have
    strip = max(home.strip, 1) if patch.strip is None else patch.strip
    file = parse_patch(patch.data, name=patch.where, strip=strip)
    return replace(home.patch(patch.name, patch.data, file, strip), into=patch.into)


def with_imported(
    project: Project, series: LoadedSeries, patches: Sequence[ImportedPatch]
) -> LoadedSeries:
    """The series with patches behind those of its file, or behind the one that each changes; one
    that it has stays where it is.
    """
    component, old = project.component, list(series.patches)
    known = {each.name for each in old}
    new = [imported_patch(each, project.home) for each in patches if each.name not in known]
    entry = component.series
    entries = component.patches
    earlier = entries if entry is None else entries[: entries.index(entry) + 1]
    place = sum(each.origin in earlier for each in old)
    placed = [*old[:place], *(each for each in new if not each.into), *old[place:]]
    for each in new:
        if each.into:
            placed.insert([before.name for before in placed].index(each.into) + 1, each)
    return replace(series, patches=tuple(placed))


# Other stacks that take a changed file: each is built with the new files, at its own pin.


class OtherUse(Struct, frozen=True):
    """A component, of this manifest or another, that takes one of the changed files."""

    manifest: Manifest
    component: Component

    def __str__(self) -> str:
        return f"{self.component.name} of {self.manifest.path.name}"


class Consequences(Struct, frozen=True):
    """What a change does to the others: why it must not be, or what their locks say then."""

    problems: tuple[Problem, ...]
    locks: dict[Path, dict[str, LockedComponent]]


def other_uses(
    manifest: Manifest, component: Component, changed: Contents, store: Store
) -> tuple[OtherUse, ...]:
    """Who else takes a file that `component` of `manifest` is about to change."""
    found = []
    for each in (*other_manifests(manifest, store), manifest):
        for other in each.components:
            same = each.path == manifest.path and other.name == component.name
            if not same and _takes(each, other, changed):
                found.append(OtherUse(each, other))
    return tuple(found)


def foresee(
    uses: Sequence[OtherUse],
    changed: Contents,
    store: Store,
    progress: Progress,
) -> Consequences:
    """Try the changed files in every stack that takes them, at its own pin.

    None may lose what a patch does there: that was decided for another stack.
    """
    problems: list[Problem] = []
    locks: dict[Path, dict[str, LockedComponent]] = {}
    for use in uses:
        try:
            locked = _tried(use, changed, store, progress)
            locks.setdefault(use.manifest.lock_path, {})[use.component.name] = locked
        except PatchkitError as error:
            problems += error.problems
    return Consequences(tuple(problems), locks)


def other_manifests(manifest: Manifest, store: Store) -> Iterator[Manifest]:
    """The other manifests of the project, as far as they can be loaded."""
    for path in manifests_in(manifest.root / FOLDER):
        if path.absolute() != manifest.path.absolute():
            with suppress(BadInputError):
                yield read_manifest(path, store.cache)


def _takes(manifest: Manifest, component: Component, changed: Contents) -> bool:
    named = (e for e in component.patches if isinstance(e, LocalPatch | LocalSeries))
    paths = {manifest.root / each.path for each in named}
    series = component.series
    if series is not None:
        paths.update(_listed_files(manifest, series))
    if isinstance(series, OrderedFolder):
        paths.update(path for path in changed if path.is_relative_to(manifest.root / series.path))
    return bool(paths & changed.keys())


_OWN_FILES = (
    "copy the patches, and name the copy in one of the two manifests (`patchkit abort` first, "
    "if it waits)"
)


def _tried(use: OtherUse, changed: Contents, store: Store, progress: Progress) -> LockedComponent:
    base = store.cached_base(use.component)
    if base is None:
        what = "uses the same patches, and its upstream is not here to try them"
        hint = f"patchkit fetch {use.manifest.options()}  brings it"
        raise PatchkitError(Problem(what, str(use), hint))
    try:
        series = load_series(use.manifest, use.component, store, progress, changed=changed)
    except BadInputError as error:
        whats = (f"could not be read any more: {each.what}" for each in error.problems)
        raise PatchkitError(*(Problem(what, str(use), _OWN_FILES) for what in whats)) from error
    before = load_series(use.manifest, use.component, store, progress, partly=True)
    names = {patch.name for patch in series.patches}
    gone = [patch for patch in before.patches if patch.name not in names]
    with reading(store.repository(use.component)) as reader:
        stack = build_stack(reader, base, series.series_patches)
        old = build_stack(reader, base, before.series_patches) if gone else stack
    for outcome in stack.outcomes:
        if not outcome.status.applies:
            what = f"{outcome.name} would not apply there any more"
            raise PatchkitError(Problem(what, str(use), _OWN_FILES))
    if old.tree != stack.tree:  # not where a patch has another name or is part of another one
        what = f"would lose {', '.join(patch.name for patch in gone)}, which does something there"
        raise PatchkitError(Problem(what, str(use), _OWN_FILES))
    return lock_component(stack, series)
