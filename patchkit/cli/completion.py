"""What a shell is offered in place of a manifest, a component or a patch, asked by typer.

What cannot be read offers nothing: its mistakes are told by the commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
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
    return _names(ctx, incomplete, lambda manifest: (c.name for c in manifest.components))


def patch_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The patches in the series of these manifests."""
    from patchkit.cli.session import listed_patches

    def listed(manifest: Manifest) -> Iterator[str]:
        return chain(*(listed_patches(manifest, component) for component in manifest.components))

    return _names(ctx, incomplete, listed)


def _names(
    ctx: typer.Context, incomplete: str, of: Callable[[Manifest], Iterable[str]]
) -> list[str]:
    """What `of` names in the manifests that the command line names, each once."""
    from patchkit.cli.session import Session

    found: dict[str, None] = {}
    with suppress(PatchkitError):
        for manifest, _ in Session(manifest=ctx.params.get("manifest")).open_manifests()[0]:
            found |= dict.fromkeys(of(manifest))
    return [name for name in found if name.startswith(incomplete)]
