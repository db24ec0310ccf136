"""What `check` says of a stack's Python: calls between components that do not fit, and functions
that are replaced while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.errors import BadInputError
from patchkit.extension import CheckedStack
from patchkit.extensions.python_guards.agreements import Agreements
from patchkit.extensions.python_guards.breaches import contract_findings
from patchkit.extensions.python_guards.guard_keys import GuardKeys
from patchkit.extensions.python_guards.layers import layered_findings, layered_targets
from patchkit.extensions.python_guards.override_review import (
    override_findings,
    read_replacements,
    resolver_of,
    survey,
)
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
        yield from layered_findings(layered, component.name, target.name)
        command = f"patchkit check --only overrides {manifest.options(component.name)}"
        yield from override_findings(found, name, command)
