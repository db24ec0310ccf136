"""Which files of the project a draft changes: patches, the series, sometimes the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.edit import add_patch, set_series
from patchkit.manifest.values import Component, LocalPatch, LocalSeries, Location, Manifest
from patchkit.model.names import recipe_name
from patchkit.model.revision import Revision
from patchkit.model.series import Series, parse_series
from patchkit.reading import LARGEST_PATCH, read_plain
from patchkit.refresh.drafting import Draft
from patchkit.refresh.planning import Home


class Project(Struct, frozen=True):
    """A component in its manifest: what file names are made from."""

    manifest: Manifest
    component: Component

    @property
    def home(self) -> Home:
        """Where its new patches go; a component without a series gets one of its own."""
        entry = self.component.series
        if entry is None:
            path = f"patches/{self._own_folder}/series"
            entry = LocalSeries(path, Location(self.manifest.path, self.component.where.line))
        return Home(self.manifest.root, entry, self.component)

    @property
    def fork(self) -> str:
        """The path of a series that no other manifest uses."""
        base = f"patches/{self.component.name}-{self.manifest.name}"
        folder, count = base, 1
        while (self.manifest.root / folder).exists():
            count += 1
            folder = f"{base}-{count}"
        return f"{folder}/series"

    @property
    def _own_folder(self) -> str:
        plain = self.component.name
        taken = (self.manifest.root / "patches" / plain / "series").exists()
        return f"{plain}-{self.manifest.name}" if taken else plain


def files_of(project: Project) -> dict[Path, bytes | None]:
    """The files that a change of the component's patches starts from, as they are now.

    Path -> bytes, None for one that is not there: the manifest, the series and the patches beside
    it, patches that the manifest names. Read before anything is planned with them, it is what
    `write_set` must find again.
    """
    root, component = project.manifest.root, project.component
    paths = {project.manifest.path, root / project.home.entry.path}
    for entry in component.patches:
        if isinstance(entry, LocalSeries):
            paths |= {root / entry.path, *(root / entry.path).parent.glob("*.patch")}
        elif isinstance(entry, LocalPatch):
            paths.add(root / entry.path)
    plain = {path for path in paths if path.is_file()}
    return {path: read_plain(path, most=LARGEST_PATCH) if path in plain else None for path in paths}


def patch_names_in(folder: Path) -> frozenset[str]:
    """The names of all patch files in a folder, listed or not."""
    return frozenset(path.name for path in folder.glob("*.patch"))


def changed_files(project: Project, draft: Draft, manifest: bytes) -> dict[Path, bytes | None]:
    """Path -> new bytes of every file that a draft changes; None: it goes away.

    `manifest` is what the manifest's file is to hold without this draft.
    """
    assert draft.plan is not None
    root, home = project.manifest.root, project.home
    writes: dict[Path, bytes | None] = {}
    for row in draft.plan.revised:
        patch = row.new or row.old
        if row.revision is Revision.IDENTICAL or patch is None or patch.path is None:
            continue
        writes[patch.path] = row.new.data if row.new is not None else None
    path = root / home.entry.path
    series, before = _series(path, home.entry.path), path.read_bytes() if path.exists() else None
    text = series.arrange(draft.series).data
    if text != before and (draft.series or before is not None):
        writes[path] = text
    if project.component.series is None and draft.series:
        writes[project.manifest.path] = _with_series(project, home.entry.path, manifest)
    return writes


def forked_files(project: Project, draft: Draft, data: bytes) -> dict[Path, bytes | None]:
    """The same change in a copy of the series that is this component's alone.

    `data` is what the manifest's file is to hold without this draft.
    """
    assert draft.plan is not None
    manifest, entry = project.manifest, project.component.series
    strangers = list(_changed_elsewhere(draft))
    if entry is None or strangers:
        what = strangers[0] if strangers else f"{project.component.name} has no series"
        hint = "only a series can be forked"
        raise BadInputError(Problem(what, str(project.component.where), hint))
    path = manifest.root / project.fork
    text = _series(manifest.root / entry.path, entry.path).arrange(draft.series).data
    writes: dict[Path, bytes | None] = {path: text}
    for patch in draft.plan.patches:
        if isinstance(patch.origin, LocalSeries):
            writes[path.parent / patch.name] = patch.data
            recipe = (manifest.root / entry.path).parent / recipe_name(patch.name)
            if recipe.is_file():
                writes[path.parent / recipe.name] = recipe.read_bytes()
    writes[manifest.path] = set_series(
        data, project.component.name, project.fork, file=manifest.path
    )
    return writes


def _changed_elsewhere(draft: Draft) -> Iterator[str]:
    assert draft.plan is not None
    for row in draft.plan.revised:
        patch = row.new or row.old
        changed = patch is not None and row.revision is not Revision.IDENTICAL
        if changed and patch is not None and not isinstance(patch.origin, LocalSeries):
            yield f"{patch.name} is not in the series"


def _series(path: Path, name: str) -> Series:
    return parse_series(path.read_bytes(), name=name) if path.exists() else Series()


def _with_series(project: Project, path: str, data: bytes) -> bytes:
    entry = {"series": path}
    return add_patch(data, project.component.name, entry, file=project.manifest.path)
