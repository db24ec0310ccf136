"""What drifts without a conflict: code that patches should cover, functions that are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import date

from msgspec import Struct

from patchkit.drift.along import Along
from patchkit.drift.newsites import FoundSite, find_new_sites, made_by
from patchkit.drift.replaced import find_moved_targets
from patchkit.drift.telling import landed_of
from patchkit.drift.values import BrokenContract, Landed, MovedTarget, NewSite
from patchkit.errors import BadInputError, SurroundingsError
from patchkit.manifest.values import Component, Manifest, Overrides
from patchkit.model.progress import Progress
from patchkit.ops.agreements import partners_of
from patchkit.ops.residual import baseline_path
from patchkit.ops.stacks import built_stack
from patchkit.overrides.calls import Replacements
from patchkit.overrides.survey import TreeAt, read_replacements
from patchkit.recipes.generating import load_generator
from patchkit.residual.baseline import fingerprint, load_baseline
from patchkit.residual.reviewing import State, review_sites
from patchkit.residual.scanning import lint_rules
from patchkit.series import LoadedPatch
from patchkit.store import Store


class SilentDrift(Struct, frozen=True):
    """What changed upstream without a conflict; `unseen` says what could not be looked at."""

    sites: tuple[NewSite, ...] = ()
    targets: tuple[MovedTarget, ...] = ()
    contracts: tuple[BrokenContract, ...] = ()
    unseen: tuple[str, ...] = ()


class Watched(Struct, frozen=True):
    """A component and its patches."""

    manifest: Manifest
    component: Component
    patches: Sequence[LoadedPatch]


def is_watched(manifest: Manifest, component: Component) -> bool:
    """Whether something is looked for in the component, whatever its patches."""
    has_own = bool(component.residual.rules) or component.contracts is not None
    return has_own or any(_overriding(manifest, component))


def find_silent_drift(
    watched: Watched, along: Along, store: Store, progress: Progress
) -> SilentDrift:
    """Compare the tip with the pin; fetches components that replace code of this one."""
    unseen: list[str] = []
    targets: list[MovedTarget] = []
    try:
        sites = _sites(watched, along, store)
    except SurroundingsError as error:
        sites = ()
        unseen.append(f"new sites: {error.problems[0]}")
    for other, declared in _overriding(watched.manifest, watched.component):
        try:
            calls = _calls(watched.manifest, other, declared, store, progress)
            targets += find_moved_targets(along, other.name, declared, calls, store.cache)
        except SurroundingsError as error:
            unseen.append(f"what {other.name} replaces: {error.problems[0]}")
    try:
        contracts = _contracts(watched, along, store, progress)
    except (BadInputError, SurroundingsError) as error:
        contracts = ()
        unseen.append(f"calls between components: {error.problems[0]}")
    return SilentDrift(sites, tuple(targets), contracts, tuple(unseen))


def _contracts(
    watched: Watched, along: Along, store: Store, progress: Progress
) -> tuple[BrokenContract, ...]:
    if watched.component.contracts is None:
        return ()
    from patchkit.drift.broken_calls import find_broken_contracts  # noqa: PLC0415

    name = watched.component.name
    with ExitStack() as stack:
        partners, given = partners_of(watched.manifest, store, progress, stack)
        return find_broken_contracts(along, name, partners, given, store.cache)


def _sites(watched: Watched, along: Along, store: Store) -> tuple[NewSite, ...]:
    """The new sites that nobody has reviewed and no recipe takes care of."""
    manifest, component, patches = watched.manifest, watched.component, watched.patches
    rules = lint_rules(manifest.root, component.residual.rules, patches)
    if not rules:
        return ()
    recipes = list(load_generator(patches).recipes.values())
    found = [f for f in find_new_sites(along, rules, store.cache) if not made_by(f.site, recipes)]
    name = baseline_path(component)
    baseline = load_baseline(manifest.root / name, name)
    states = review_sites([each.site for each in found], baseline, date.min).sites
    unseen = [f for f, s in zip(found, states, strict=True) if f.is_new and s.state is State.NEW]
    return tuple(_told(unseen, along))


def _told(found: Sequence[FoundSite], along: Along) -> Iterator[NewSite]:
    ids = list(dict.fromkeys(each.by for each in found if each.by))
    by: dict[str, Landed] = dict(zip(ids, landed_of(along.history, ids), strict=True))
    for each in found:
        known_by, site = fingerprint(each.site), each.site
        where = (site.rule, site.path, site.line, known_by.within, known_by.text)
        yield NewSite(*where, by.get(each.by))


def _overriding(manifest: Manifest, component: Component) -> Iterator[tuple[Component, Overrides]]:
    for other in manifest.components:
        for declared in other.overrides:
            if declared.target == component.name:
                yield other, declared


def _calls(
    manifest: Manifest, other: Component, declared: Overrides, store: Store, progress: Progress
) -> Replacements:
    with built_stack(manifest, other, store, progress) as built:
        own = TreeAt(built.source, built.stack.tree, built.stack.base.commit)
        return read_replacements(declared, manifest.root, own)
