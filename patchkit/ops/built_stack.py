"""The stack of a component as the looking commands need it: built in memory, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.values import Component, Manifest
from patchkit.model.line_history import Attribution, PatchDependency
from patchkit.model.progress import Progress
from patchkit.stack.build import Stack, build_stack, patch_changes
from patchkit.stack.series import LoadedSeries, load_series
from patchkit.upstream.store import Store


class BuiltStack(Struct, frozen=True):
    """A component's series and the stack that it makes; `source` reads all its objects."""

    component: Component
    series: LoadedSeries
    stack: Stack
    source: Overlay

    @property
    def tip(self) -> TreeView:
        """The tree after the last patch that applies."""
        return TreeView(self.source, self.stack.tree)

    def needs(self) -> tuple[PatchDependency, ...]:
        """Which patches need which."""
        attribution = Attribution(TreeView(self.source, self.stack.base.tree).data)
        needs: list[PatchDependency] = []
        pairs = zip(self.series.series_patches, self.stack.outcomes, strict=True)
        for number, (patch, outcome) in enumerate(pairs, 1):
            if outcome.status.applies and outcome.files:
                needs += attribution.add(number, patch_changes(patch), outcome.files)
        return tuple(needs)


@contextmanager
def built_stack(
    manifest: Manifest, component: Component, store: Store, progress: Progress
) -> Iterator[BuiltStack]:
    """The component's stack; its objects can be read within the block."""
    series = load_series(manifest, component, store, progress)
    base = store.base(component, progress)
    with ObjectReader(store.repository(component)) as reader:
        stack = build_stack(reader, base, series.series_patches)
        yield BuiltStack(component, series, stack, Overlay(reader, stack.objects))


def require_clean(built: BuiltStack, manifest: Manifest, command: str = "check") -> None:
    """BadInputError, with the command that says why, if a patch of the stack does not apply."""
    failed = [each.name for each in built.stack.outcomes if not each.status.applies]
    if failed:
        name = built.component.name
        hint = f"patchkit {command} {manifest.options(name)}  says why"
        raise BadInputError(Problem(f"{failed[0]} does not apply", name, hint))
