"""The project that a command is in: its folder, its manifests, and the folders of patchkit's own.

A project is a folder with manifests/; it is found from any folder below it, too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from patchkit.errors import UsageError
from patchkit.manifest.find import ENDINGS, find_manifest, manifests_in
from patchkit.manifest.find import FOLDER as MANIFEST_FOLDER

if TYPE_CHECKING:
    from patchkit.manifest.values import Manifest


def project_folder() -> Path:
    """The project that the command is in: this folder, or the nearest above it with manifests.

    Relative to here ("." or "../.."), so that a path in a message can be typed as it is. This
    folder if no folder above has manifests.
    """
    here = Path.cwd()
    for depth, folder in enumerate((here, *here.parents)):
        if manifests_in(folder / MANIFEST_FOLDER):
            return Path(*[".."] * depth)
    return Path()


def own_manifests() -> list[Path]:
    """The manifests of the project, by name."""
    return manifests_in(project_folder() / MANIFEST_FOLDER)


def near(path: Path) -> str:
    """A path as seen from here: relative in this project, else as it is."""
    path = path.absolute()
    project = project_folder()
    if path.is_relative_to(Path.cwd()) or (
        project != Path() and path.is_relative_to(project.resolve())
    ):
        return Path(os.path.relpath(path)).as_posix()
    return str(path)


def cache_folder(option: Path | None) -> Path:
    """The cache: --cache or $PATCHKIT_CACHE, else the platform's cache folder."""
    option = option or Path(os.environ.get("PATCHKIT_CACHE", ""))
    if option != Path():
        if in_ci():
            _require_untracked(option)
        return option.absolute()
    from platformdirs import user_cache_path

    return user_cache_path("patchkit", appauthor=False)


def _require_untracked(cache: Path) -> None:
    """Refuse a cache of which git tracks anything, or that is behind a tracked link or submodule.

    In CI the checkout holds what a pull request says, and a verdict may rest on what a cache holds.
    """
    from patchkit.gitcmd.process import run_sealed

    top = run_sealed(["rev-parse", "--show-toplevel"], work_tree=Path.cwd(), accept=(0, 128))
    if top.code != 0:
        return
    root = Path(os.fsdecode(top.out.removesuffix(b"\n")))
    tracked = run_sealed(["ls-files", "-z"], work_tree=root).out.decode(errors="surrogateescape")
    for path in {Path(os.path.realpath(Path.cwd())) / cache, Path(os.path.realpath(cache))}:
        if not path.is_relative_to(root):
            continue
        below = f"{path.relative_to(root).as_posix()}/".casefold()
        for name in tracked.casefold().split("\0")[:-1]:
            if below.startswith(f"{name}/") or name.startswith(below):
                raise UsageError(
                    f"the cache {near(path)} is part of the checkout: git tracks {name}",
                    hint="set PATCHKIT_CACHE to a folder outside of it",
                )


def in_ci() -> bool:
    """Whether this is a job of a CI system: all of them set CI."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def log_folder() -> Path:
    """Where tracebacks of bugs go."""
    from platformdirs import user_log_path

    return user_log_path("patchkit", appauthor=False)


def manifests_by_name() -> list[Path]:
    """All manifests that can be named: the project's, and those of the other folders."""
    return [
        *own_manifests(),
        *(path for folder in _other_folders() for path in manifests_in(folder)),
    ]


def _other_folders() -> list[Path]:
    """Where a manifest given by name is looked for after manifests/, in order."""
    extra = os.environ.get("PATCHKIT_MANIFESTS", "").split(os.pathsep)
    return [Path(folder) for folder in extra if folder]


def manifest_path(name: str) -> Path:
    """The file of a manifest that is named: a path from here, or a name in a manifests folder."""
    project = project_folder()
    search = [*([] if project == Path() else [project / MANIFEST_FOLDER]), *_other_folders()]
    return find_manifest(name, cwd=Path(), search=search)


def named_manifest(name: str) -> Path | None:
    """The file of the manifest that a word names; None if it names none."""
    try:
        path = manifest_path(name)
    except UsageError:
        return None
    # a word may be any path, as that of a patch: only -m takes a file of any ending
    return path if path.suffix in ENDINGS else None


def load(path: Path, cache: Path | None = None) -> Manifest:
    """A manifest; a change of the project's files that was killed half-way is completed first.

    `cache` is the option's, where what was read is kept.
    """
    from patchkit.disk.files import is_half_done
    from patchkit.manifest.cached import read_manifest

    folder = cache_folder(cache)
    manifest = read_manifest(path, folder)
    if not is_half_done(manifest.root):
        return manifest
    from patchkit.disk.transaction import recover

    return read_manifest(path, folder) if recover(manifest.root) else manifest
