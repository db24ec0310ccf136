"""What a shell is offered in place of a manifest, a component or a patch, asked by typer.

What cannot be read offers nothing: its mistakes are told by the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from patchkit.cli.project import manifests_by_name
from patchkit.cli.session import Session
from patchkit.cli.words import listed_patches
from patchkit.errors import PatchkitError


def offered(metavar: str, manifest: Any, incomplete: str) -> list[str]:
    """The names that begin so, each once; `manifest` is what the command line has for -m."""
    found = dict.fromkeys(_names(metavar, manifest))
    return [name for name in found if name.startswith(incomplete)]


def _names(metavar: str, given: Any) -> Iterator[str]:
    """All manifests; else what is in those that the command line names, or in all of them."""
    if metavar == "MANIFEST":
        yield from (path.name for path in manifests_by_name())
        return
    with suppress(PatchkitError):
        for manifest, _ in Session(manifest=given).open_manifests()[0]:
            for component in manifest.components:
                patches = listed_patches(manifest, component)
                yield from (component.name,) if metavar == "COMPONENT" else patches
