"""Contracts: do the calls between a manifest's patched components fit?"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchkit.errors import ExitCode, UsageError
from patchkit.guards.contracts.agreement import ComponentAgreement, Explained
from patchkit.guards.contracts.breaches import BrokenCall, OpenCall
from patchkit.manifest.values import AbsentTarget, Component, DeclaredCall, Manifest
from patchkit.model.progress import Progress
from patchkit.ops.agreements import Agreements
from patchkit.upstream.store import Store


class ComponentContracts(Struct, frozen=True):
    """What a component calls in the others.

    `modules` were looked at, `bound` calls into other components fit, `broken` places do not;
    `explained` would be broken if the manifest did not say why they need not fit, `open` are calls
    of which it cannot be told. `unused` and `unmatched` are entries of the manifest for nothing.
    """

    component: str
    modules: int
    bound: int
    broken: tuple[BrokenCall, ...] = ()
    explained: tuple[Explained, ...] = ()
    open: tuple[OpenCall, ...] = ()
    unused: tuple[AbsentTarget, ...] = ()
    unmatched: tuple[DeclaredCall, ...] = ()


class ContractsReport(Struct, frozen=True):
    """The components that were looked at."""

    manifest: str
    components: tuple[ComponentContracts, ...]

    @property
    def exit_code(self) -> ExitCode:
        """A finding where a place does not fit, or an entry is for nothing."""
        wrong = any(e.broken or e.unused or e.unmatched for e in self.components)
        return ExitCode.FINDING if wrong else ExitCode.OK


def look_at_contracts(
    manifest: Manifest, components: Sequence[Component], store: Store, progress: Progress
) -> ContractsReport:
    """Bind the calls of the components into the others.

    On disk: what the store fetches, nothing else. UsageError if no component has contracts.
    """
    chosen = [each for each in components if each.contracts is not None]
    if not chosen:
        hint = "a component says so under `contracts:` (docs/howto/contracts.md)"
        raise UsageError("no component has contracts", hint=hint)
    agreements = Agreements(store, progress)
    found = {each.name: agreements.of(manifest, each) for each in chosen}
    return ContractsReport(manifest.name, tuple(map(_row_of, found, found.values())))


def _row_of(name: str, found: ComponentAgreement) -> ComponentContracts:
    return ComponentContracts(
        component=name,
        modules=found.modules,
        bound=found.found.bound,
        broken=found.found.broken,
        explained=found.explained,
        open=found.found.open,
        unused=found.unused,
        unmatched=found.unmatched,
    )
