"""Where things are, from options and the environment: cache, manifests, log.

Only this package reads environment variables of patchkit's own.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, UsageError
from patchkit.manifest.find import FOLDER as MANIFEST_FOLDER
from patchkit.manifest.find import manifests_in

if TYPE_CHECKING:
    from patchkit.manifest.values import Component, Manifest
    from patchkit.ops.check_report import BrokenManifest


def cache_folder(option: Path | None) -> Path:
    """The cache: --cache or $PATCHKIT_CACHE, else the platform's cache folder."""
    option = option or Path(os.environ.get("PATCHKIT_CACHE", ""))
    if option != Path():
        return option.absolute()
    from platformdirs import user_cache_path

    return user_cache_path("patchkit", appauthor=False)


def near(path: Path) -> str:
    """A path as seen from here, if it is below."""
    from patchkit.manifest.values import path_below

    return path_below(path, Path.cwd())


def log_folder() -> Path:
    """Where tracebacks of bugs go."""
    from platformdirs import user_log_path

    return user_log_path("patchkit", appauthor=False)


def manifest_folders() -> list[Path]:
    """Where a manifest given by name is looked for, in order."""
    extra = os.environ.get("PATCHKIT_MANIFESTS", "").split(os.pathsep)
    return [Path(MANIFEST_FOLDER), *(Path(each) for each in extra if each)]


def manifest_path(name: str | None) -> Path:
    """The file of the manifest option; without one, the only manifest there is."""
    if name is None:
        return _only_manifest()
    from patchkit.manifest.find import find_manifest

    return find_manifest(name, cwd=Path(), search=manifest_folders()[1:])


def all_manifest_paths(names: Sequence[str] | None) -> tuple[Path, ...]:
    """The files of a repeatable manifest option; without one, every manifest of manifests/."""
    if names:
        return tuple(dict.fromkeys(manifest_path(name) for name in names))
    found = tuple(manifests_in(Path(MANIFEST_FOLDER)))
    if not found:
        raise _no_manifest()
    return found


def open_manifest(name: str | None) -> Manifest:
    """The manifest of the option, loaded; see `load`."""
    return load(manifest_path(name))


def load(path: Path) -> Manifest:
    """A manifest; a change of the project's files that was killed half-way is completed first."""
    from patchkit.disk.transaction import recover
    from patchkit.manifest.cached import read_manifest

    cache = cache_folder(None)
    manifest = read_manifest(path, cache)
    return read_manifest(path, cache) if recover(manifest.root) else manifest


def open_manifests(
    paths: Sequence[Path], names: Sequence[str] | None
) -> tuple[list[tuple[Manifest, Sequence[Component]]], list[BrokenManifest]]:
    """The manifests with the components asked for, and those that cannot be read.

    Raises UsageError that names every component which none of them has.
    """
    from patchkit.ops.check_report import BrokenManifest

    manifests, broken = [], []
    for path in paths:
        try:
            manifests.append(load(path))
        except PatchkitError as error:
            broken.append(BrokenManifest(path.stem, error.exit_code, error.problems))
    return _pick_in_all(manifests, names, complete=not broken), broken


def _pick_in_all(
    manifests: Sequence[Manifest], names: Sequence[str] | None, *, complete: bool
) -> list[tuple[Manifest, Sequence[Component]]]:
    if not names:
        return [(manifest, manifest.components) for manifest in manifests]
    unknown = [n for n in names if all(each.component(n) is None for each in manifests)]
    if unknown and complete:
        have = ", ".join(dict.fromkeys(c.name for m in manifests for c in m.components))
        raise UsageError(*(f"{n}: no such component" for n in unknown), hint=f"there are {have}")
    chosen = [(m, tuple(c for c in m.components if c.name in names)) for m in manifests]
    return [(manifest, components) for manifest, components in chosen if components]


def pick_components(manifest: Manifest, names: Sequence[str] | None) -> tuple[Component, ...]:
    """The components of the option, in the manifest's order; all without one.

    Raises UsageError that names every unknown one.
    """
    if not names:
        return manifest.components
    unknown = [name for name in names if manifest.component(name) is None]
    if unknown:
        have = ", ".join(each.name for each in manifest.components)
        raise UsageError(
            *(f"{name}: no such component in {manifest.path.name}" for name in unknown),
            hint=f"it has {have}",
        )
    return tuple(each for each in manifest.components if each.name in names)


def pick_component(manifest: Manifest, name: str | None) -> Component:
    """The component of a single option; without one, the only component there is."""
    if name is not None:
        return pick_components(manifest, [name])[0]
    if len(manifest.components) == 1:
        return manifest.components[0]
    have = ", ".join(each.name for each in manifest.components)
    raise UsageError(
        f"{manifest.path.name} has several components", hint=f"choose with --component: {have}"
    )


def _only_manifest() -> Path:
    found = manifests_in(Path(MANIFEST_FOLDER))
    if len(found) == 1:
        return found[0]
    if not found:
        raise _no_manifest()
    names = ", ".join(each.stem for each in found)
    raise UsageError("several manifests in ./manifests", hint=f"choose with --manifest: {names}")


def _no_manifest() -> UsageError:
    """Who works in a checkout, or anywhere else in a project, is told where its manifests are."""
    hint = "name one with --manifest"
    here = Path.cwd()
    project = next((each for each in here.parents if manifests_in(each / MANIFEST_FOLDER)), None)
    if project is not None:
        hint = f"cd {shlex.quote(os.path.relpath(project))}  (its manifests/ has some), or {hint}"
    return UsageError("no manifest in ./manifests", hint=hint)


def moment() -> datetime:
    """Now in UTC; $SOURCE_DATE_EPOCH, where it is set, for reports that can be made again."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    fixed = given.isascii() and given.isdigit() and len(given) < 12
    seconds = int(given) if fixed else time.time()
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
