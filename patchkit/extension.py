"""What the core asks of extensions: the forms of what their entry points lead to.

Each is found by the name of its entry point, and imported where it is asked. Commands are declared
by `cli/command.py`, keys of manifests as `manifest/keys.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import TypeAlias

from msgspec import Struct

from patchkit import entry_points
from patchkit.gitcmd.trees import Overlay
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding
from patchkit.model.progress import Progress
from patchkit.stack.build import Stack
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.store import Store

# patchkit.findings: what `check` says beyond single patches, each a value of `check --only`.


class CheckRun(Struct, frozen=True):
    """What all components of a check have in common; they are checked side by side.

    `run`: the user lets commands of the manifest run. `today`: the day on which reasons are over.
    """

    store: Store
    progress: Progress
    run: bool
    today: date


class CheckedStack(Struct, frozen=True):
    """A component's stack, which applies; `source` reads all objects of it.

    `generated` are the patches whose recipes are in order: only these are looked for elsewhere.
    """

    manifest: Manifest
    component: Component
    patches: tuple[LoadedPatch, ...]
    generated: tuple[LoadedPatch, ...]
    stack: Stack
    source: Overlay


#: What is to be looked at in a stack. It is asked of every stack: let it load the rest of its code
#: where there is something to look at.
Finder: TypeAlias = Callable[[CheckedStack], Iterable[Finding]]


def finders(run: CheckRun) -> tuple[Finder, ...]:
    """Those of all extensions, in the order of their names; SurroundingsError where one cannot be
    loaded.
    """
    places = entry_points.named("patchkit.findings")
    return tuple(entry_points.load(places[name])(run) for name in sorted(places))
