"""Components and manifests as values, for tests of what does not read YAML."""

from __future__ import annotations

from pathlib import Path

from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Location,
    Manifest,
    PatchEntry,
    Pin,
    Source,
)
from patchkit.model.objects import CommitId

WHERE = Location(Path("manifests/demo.yaml"), 7)


def git_component(
    url: str,
    commit: str,
    *,
    name: str = "demo",
    mirrors: tuple[str, ...] = (),
    track: str | None = None,
    patches: tuple[PatchEntry, ...] = (),
) -> Component:
    return _component(
        name, GitSource(url, mirrors), GitPin(CommitId(commit)), track=track, patches=patches
    )


def index_component(project: str, version: str, digest: str, *, name: str = "demo") -> Component:
    return _component(name, IndexSource(project), IndexPin(version, digest))


def archive_component(
    url: str, digest: str, *, name: str = "demo", mirrors: tuple[str, ...] = ()
) -> Component:
    return _component(name, ArchiveSource(url, mirrors), ArchivePin(digest))


def manifest_of(*components: Component, root: Path = Path("/project")) -> Manifest:
    path = root / "manifests" / "demo.yaml"
    return Manifest(path=path, root=root, name="demo", version=1, components=components)


def _component(
    name: str,
    source: Source,
    pin: Pin,
    *,
    track: str | None = None,
    patches: tuple[PatchEntry, ...] = (),
) -> Component:
    return Component(
        name=name,
        source=source,
        pin=pin,
        where=WHERE,
        pin_where=WHERE,
        track=track,
        patches=patches,
    )
