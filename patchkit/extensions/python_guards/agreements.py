"""What holds between the components of a manifest: found once for a run, whoever asks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct, field

from patchkit.disk.result_cache import code_digest
from patchkit.extensions.python_guards.guard_keys import GuardKeys
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Component, Manifest, whole_environment
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.stack.series import load_series
from patchkit.stack.series_facts import series_facts
from patchkit.upstream.store import Store

if TYPE_CHECKING:
    from patchkit.extensions.python_guards.agreement import Agreement
    from patchkit.extensions.python_guards.breaches import ComponentContracts
    from patchkit.extensions.python_guards.known_modules import Partner


class Agreements(Struct):
    """What holds between the components of each manifest, found once; for several threads."""

    _store: Store
    _progress: Progress
    _lock: Lock = field(default_factory=Lock)
    _known: dict[Path, Agreement] = {}

    def of(
        self, manifest: Manifest, component: Component, tree: TreeView | None = None
    ) -> ComponentContracts:
        """What was found in one component that has contracts; `tree` is its own as it is patched,
        where that is known.

        Fetches the others. BadInputError if the stack of one of them is broken.
        """
        declared = component.added(GuardKeys).contracts
        assert declared is not None
        with self._lock:
            if manifest.path not in self._known:
                known = {component.name: tree} if tree is not None else {}
                self._known[manifest.path] = self._look(manifest, known)
        # most manifests have no contracts, and a check should feel instant
        from patchkit.extensions.python_guards.agreement import explain  # noqa: PLC0415

        found = self._known[manifest.path][component.name]
        return explain(declared, found, component.name, manifest.path)

    def _look(self, manifest: Manifest, known: Mapping[str, TreeView]) -> Agreement:
        from patchkit.extensions.python_guards.agreement import agreement_of  # noqa: PLC0415

        with ExitStack() as stack:
            partners, given = partners_of(manifest, self._store, self._progress, stack, known)
            self._progress.step(manifest.name, "binding calls between components", local=True)
            return agreement_of(self._store.cache, partners, given)


def partners_of(
    manifest: Manifest,
    store: Store,
    progress: Progress,
    stack: ExitStack,
    known: Mapping[str, TreeView] | None = None,
) -> tuple[list[Partner], frozenset[str]]:
    """The components with contracts as they are patched, and the packages that all bring; of those
    in `known` the tree is known already.

    Their objects can be read until `stack` is closed. BadInputError if a stack is broken.
    """
    from patchkit.extensions.python_guards.known_modules import Partner  # noqa: PLC0415
    from patchkit.upstream.requirements import modules_asked_for, modules_of  # noqa: PLC0415

    given = set(modules_of(whole_environment(manifest).versions))
    partners: list[Partner] = []
    for component in manifest.components:
        tip = (known or {}).get(component.name)
        if tip is None:
            built = stack.enter_context(built_stack(manifest, component, store, progress))
            require_clean(built, manifest)
            tip = built.tip
        given |= modules_asked_for(tip.data, component.install)
        declared = component.added(GuardKeys).contracts
        if declared is not None:
            partners.append(Partner(component.name, tip, declared))
    return partners, frozenset(given)


def partner_facts(manifest: Manifest, store: Store, progress: Progress) -> list[object]:
    """What `partners_of` comes to, and a look at all, follow from; no stack is built."""
    from patchkit.extensions.python_guards.known_modules import CODE  # noqa: PLC0415

    facts: list[object] = [code_digest(*CODE, "upstream"), sys.version_info[:2]]
    facts += sorted(whole_environment(manifest).versions)
    for component in manifest.components:
        series = load_series(manifest, component, store, progress).patches
        pin = store.base(component, progress).commit
        facts += [component.name, repr(component.install), repr(component.added(GuardKeys))]
        facts += series_facts("", pin, series, {})
    return facts
