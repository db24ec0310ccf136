"""What a shell is offered in place of a manifest, a component or a patch, asked by typer.

What cannot be read offers nothing: its mistakes are told by the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from patchkit.errors import PatchkitError

if TYPE_CHECKING:
    from patchkit.manifest.values import Manifest


def manifest_names(incomplete: str) -> list[str]:
    """The manifests of the project and of $PATCHKIT_MANIFESTS that begin so, by file name."""
    from patchkit.cli.session import manifests_by_name

    return [path.name for path in manifests_by_name() if path.name.startswith(incomplete)]


def component_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The components of the manifests that the command line names, or of all."""
    found: dict[str, None] = {}
    with suppress(PatchkitError):
        for manifest in _manifests(ctx):
            found |= dict.fromkeys(component.name for component in manifest.components)
    return [name for name in found if name.startswith(incomplete)]


def patch_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The patches in the series of these manifests."""
    from patchkit.cli.session import listed_patches

    found: dict[str, None] = {}
    with suppress(PatchkitError):
        for manifest in _manifests(ctx):
            for component in manifest.components:
                found |= dict.fromkeys(listed_patches(manifest, component))
    return [name for name in found if name.startswith(incomplete)]


def _manifests(ctx: typer.Context) -> Iterator[Manifest]:
    from patchkit.cli.session import Session

    session = Session(manifest=ctx.params.get("manifest"))
    yield from (manifest for manifest, _ in session.open_manifests()[0])
