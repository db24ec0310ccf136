"""What `check` says of a stack's Python: calls between components that do not fit, and functions
that are replaced while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.errors import BadInputError
from patchkit.extension import CheckedStack
from patchkit.extensions.python_guards.agreements import Agreements
from patchkit.extensions.python_guards.breaches import contract_findings
from patchkit.extensions.python_guards.guard_keys import GuardKeys, Overrides
from patchkit.extensions.python_guards.layers import (
    layered_findings,
    layered_targets,
    twice_replaced,
)
from patchkit.extensions.python_guards.override_review import (
    override_findings,
    read_replacements,
    resolver_of,
    survey,
)
from patchkit.extensions.python_guards.replacements import Replacements
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Severity
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack
from patchkit.stack.lockfile import Lock, load_lock
from patchkit.upstream.store import Store


def call_findings(checked: CheckedStack, agreements: Agreements) -> Iterator[Finding]:
    """Calls of the component into others that do not fit."""
    manifest, component = checked.manifest, checked.component
    command = f"patchkit check --only calls {manifest.options(component.name)}"
    try:
        tree = TreeView(checked.source, checked.stack.tree)
        found = agreements.of(manifest, component, tree)
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
