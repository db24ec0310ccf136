"""What `check` says of a stack's Python: calls between components that do not fit, functions that
are replaced while it runs, and what several layers change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem, UsageError
from patchkit.extension import CheckedStack
from patchkit.extensions.python_guards.agreements import Agreements
from patchkit.extensions.python_guards.breaches import contract_findings
from patchkit.extensions.python_guards.guard_keys import GuardKeys, Layering, Overrides
from patchkit.extensions.python_guards.layers import (
    LayerStep,
    layer_step,
    layered_beneath,
    layered_findings,
    layered_targets,
    no_layer_finding,
    shared_findings,
    shared_places,
    twice_replaced,
)
from patchkit.extensions.python_guards.override_review import (
    override_findings,
    read_replacements,
    resolver_of,
    survey,
)
from patchkit.extensions.python_guards.replacements import Replacements
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.find import find_manifest
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding, Severity
from patchkit.model.outcome import Status
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack
from patchkit.stack.build import build_stack
from patchkit.stack.lockfile import Lock, load_lock
from patchkit.stack.series import LoadedPatch, load_series
from patchkit.upstream.store import Store


def call_findings(checked: CheckedStack, agreements: Agreements) -> Iterator[Finding]:
    """Calls of the component into others that do not fit."""
    manifest, component = checked.manifest, checked.component
    command = f"patchkit check --only calls {manifest.options(component.name)}"
    try:
        found = agreements.of(manifest, component)
    except BadInputError as error:
        # patches of another component do not apply: that one's own check says why
        what = f"calls between components were not looked at: {error.problems[0].what}"
        yield Finding(Severity.WARNING, "contracts-unseen", what, component.name)
        return
    yield from contract_findings(found, command)


def replacement_findings(
    checked: CheckedStack, store: Store, progress: Progress
) -> Iterator[Finding]:
    """What the component replaces, and what of that is not as it was reviewed.

    Fetches the components whose code it replaces.
    """
    manifest, component = checked.manifest, checked.component
    lock = load_lock(manifest.lock_path) or Lock({})
    own = TreeView(checked.source, checked.stack.tree)
    for declared in component.added(GuardKeys).overrides:
        target = manifest.component(declared.target)
        assert target is not None
        name = f"{component.name} -> {target.name}"
        with built_stack(manifest, target, store, progress) as built:
            if not built.stack.clean:
                # as it would run it cannot be seen; the target's own check says why
                what = f"patches of {target.name} do not apply: what is replaced there is not known"
                yield Finding(Severity.WARNING, "overrides-unseen", what, name)
                continue
            there = built.tip
            resolver = resolver_of(declared, there)
            calls = read_replacements(declared, manifest.root, own)
            reviewed = lock.overrides.get((component.name, target.name), {})
            found = survey(declared, calls, resolver, reviewed)
            layered = layered_targets(declared, found, own, there, built.stack)
        others = _other_replacements(checked, declared, store, progress)
        yield from layered_findings(layered, component.name, target.name)
        for lower, each in _components_beneath(manifest, target, store.cache):
            if each.pin != target.pin or _has(lower, component):
                continue
            with built_stack(lower, each, store, progress) as built:
                args = (declared, calls, own, built.tip, built.stack)
                place = f"{lower.name}: {each.name}"
                yield from layered_findings(layered_beneath(*args), component.name, place)
        yield from twice_replaced((component.name, calls), others, declared)
        command = f"patchkit check --only overrides {manifest.options(component.name)}"
        yield from override_findings(found, name, command)


def _other_replacements(
    checked: CheckedStack, declared: Overrides, store: Store, progress: Progress
) -> list[tuple[str, Replacements]]:
    """What components after this one in the manifest replace in the same target."""

    manifest = checked.manifest
    names = [each.name for each in manifest.components]
    found = []
    for other in manifest.components[names.index(checked.component.name) + 1 :]:
        same = [each for each in other.added(GuardKeys).overrides if each.target == declared.target]
        for each in same:
            with built_stack(manifest, other, store, progress) as built:
                calls = read_replacements(each, manifest.root, built.tip)
                found.append((other.name, calls))
    return found


# Stacks of other manifests that lie beneath this one's, in one workspace or installed tree.


def layer_findings(checked: CheckedStack, store: Store, progress: Progress) -> Iterator[Finding]:
    """What patches of the manifests beneath change as well, and what these replace at run time.

    Invariant: `tree` is the base with the series of the manifests that were looked at; the next
    one's, and in the end the component's own, is built on that.
    """
    component, base = checked.component, checked.stack.base
    source, tree, below = checked.source, base.tree, list[LayerStep]()
    mine = (f"{checked.manifest.name}: ", checked.patches)
    layers: list[tuple[str, Sequence[LoadedPatch]]] = []
    for lower, other in _components_beneath(checked.manifest, component, store.cache):
        if other.pin == component.pin:
            series = load_series(lower, other, store, progress)
            layers.append((f"{lower.name}: ", series.patches))
        else:
            what = f"{lower.name} pins {other.pin}: no folder can have its patches and these"
            yield Finding(Severity.WARNING, "layers-pin", what, component.name)
    known: dict[str, str] = {}
    for title, patches in [*layers, mine] if layers else []:
        given = [each.series_patch for each in patches]
        stack = build_stack(source, replace(base, tree=tree), given)
        source, tree = Overlay(source, stack.objects), stack.tree
        above = [layer_step(title, each) for each in stack.outcomes if each.tree is not None]
        for each, outcome in zip(patches, stack.outcomes, strict=True):
            if outcome.status is Status.CONFLICTED:
                twin = known.get(each.sha256, "")
                yield no_layer_finding(title + each.name, outcome, below, twin)
                return
        known |= {each.sha256: title + each.name for each in patches}
        if patches is checked.patches:
            yield from shared_findings(
                shared_places(source, base.tree, below, above), component.name
            )
        below += above
    yield from _replaced_beneath(checked, store, progress)


def _replaced_beneath(checked: CheckedStack, store: Store, progress: Progress) -> Iterator[Finding]:
    """What components of the manifests beneath replace of what this one's patches change."""

    stack, name = checked.stack, checked.component.name
    there = TreeView(checked.source, stack.tree)
    for lower in _manifests_beneath(checked.manifest, store.cache):
        for other in lower.components:
            for declared in (
                () if _has(checked.manifest, other) else other.added(GuardKeys).overrides
            ):
                target = lower.component(declared.target)
                mine = (checked.component.source, checked.component.pin)
                if target is None or (target.source, target.pin) != mine:
                    continue
                with built_stack(lower, other, store, progress) as built:
                    own = built.tip
                    calls = read_replacements(declared, lower.root, own)
                    found = layered_beneath(declared, calls, own, there, stack)
                    yield from layered_findings(found, f"{lower.name}: {other.name}", name)


def _has(manifest: Manifest, other: Component) -> bool:
    """Whether a manifest has a component that replaces the same: its own check tells of it."""
    found = manifest.component(other.name)
    return found is not None and (found.source, found.pin) == (other.source, other.pin)


def _manifests_beneath(manifest: Manifest, cache: Path) -> tuple[Manifest, ...]:
    """The manifests upon which this one lies, and theirs: the lowest first, each once.

    BadInputError where one is not there, cannot be read, or is layered on itself.
    """
    found: dict[str, Manifest] = {}

    def add(upper: Manifest, way: tuple[str, ...]) -> None:
        for name in upper.added(Layering).upon:
            if name in way:
                what = f"is layered on itself: {' -> '.join((*way, name))}"
                raise BadInputError(Problem(what, str(upper.path), "take one off `upon`"))
            if name in found:
                continue
            try:
                path = find_manifest(name, cwd=upper.path.parent, search=())
            except UsageError as error:
                (problem,) = error.problems
                what = f"upon: {problem.what}"
                raise BadInputError(Problem(what, str(upper.path), problem.hint)) from error
            lower = read_manifest(path, cache)
            add(lower, (*way, name))
            found[name] = lower

    add(manifest, (manifest.name,))
    return tuple(found.values())


def _components_beneath(
    manifest: Manifest, component: Component, cache: Path
) -> Iterator[tuple[Manifest, Component]]:
    """The components of the manifests beneath that patch the same upstream, the lowest first."""
    for lower in _manifests_beneath(manifest, cache):
        for each in lower.components:
            if each.source == component.source and each.patches:
                yield lower, each
