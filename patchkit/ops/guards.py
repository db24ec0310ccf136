"""What a check says beyond each patch: does the patched component still fit what it guards?

Each guard is loaded where a component has it: most have none, and a check should feel instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct

from patchkit.errors import BadInputError
from patchkit.gitcmd.trees import Overlay
from patchkit.guards.syntax import parse_findings, well_formed_files
from patchkit.manifest.values import Component, Manifest, Overrides, RunStep
from patchkit.model.lint import Finding, Severity
from patchkit.model.progress import Progress
from patchkit.ops.agreements import Agreements
from patchkit.stack.build import Stack
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.store import Store

if TYPE_CHECKING:
    from patchkit.guards.overrides.replacements import Replacements


class Guarded(Struct, frozen=True):
    """A component and its stack, whose objects `source` reads all.

    `generated` are the patches whose recipes are in order: only these are looked for elsewhere.
    `agreements` knows what holds between the components of a manifest.
    """

    manifest: Manifest
    component: Component
    patches: tuple[LoadedPatch, ...]
    generated: tuple[LoadedPatch, ...]
    stack: Stack
    source: Overlay
    agreements: Agreements


def guard_findings(
    guarded: Guarded,
    store: Store,
    progress: Progress,
    *,
    run: bool = False,
    today: date | None = None,
) -> Iterator[Finding]:
    """What somebody has to look at; nothing where a patch does not apply.

    Fetches a component whose code this one replaces. `run`: run the commands of verify steps;
    `today`: the day on which reasons are over, None for never.
    """
    if guarded.stack.clean:
        yield from _parsing(guarded, store)
        yield from _verify(guarded, progress, run)
        yield from _overrides(guarded, store, progress)
        yield from _residual(guarded, store, today or date.min)
        yield from _contracts(guarded)


def _parsing(guarded: Guarded, store: Store) -> Iterator[Finding]:
    known = well_formed_files(store.cache, guarded.manifest.path, guarded.component.name)
    yield from parse_findings(guarded.source, guarded.stack, guarded.patches, known)
    known.close()


def _verify(guarded: Guarded, progress: Progress, run: bool) -> Iterator[Finding]:
    steps = guarded.component.verify
    if not steps:
        return
    from patchkit.guards.verify import (
        Verifying,
        not_run_findings,
        run_findings,
        step_findings,
    )

    verifying = Verifying(guarded.manifest.root, guarded.stack, guarded.source)
    yield from step_findings(verifying, steps)
    commands = [step for step in steps if isinstance(step, RunStep)]
    if not run:
        yield from not_run_findings(commands)
    elif commands:
        progress.step(guarded.component.name, "running commands", local=True)
        yield from run_findings(verifying, commands)


def _residual(guarded: Guarded, store: Store, today: date) -> Iterator[Finding]:
    manifest, component = guarded.manifest, guarded.component
    if not component.residual.rules and not any(each.has_recipe for each in guarded.generated):
        return
    from patchkit.guards.residual_sites import (
        lint_rules,
        load_baseline,
        residual_findings,
        review_sites,
        scan_once,
    )
    from patchkit.ops.residual import baseline_path

    rules = lint_rules(manifest.root, component.residual.rules, guarded.generated)
    if not rules:
        return
    scan = scan_once(store.cache, guarded.source, guarded.stack.tree, rules)
    name = baseline_path(component)
    review = review_sites(scan.sites, load_baseline(manifest.root / name, name), today)
    command = f"patchkit residual {manifest.options(component.name)}"
    yield from residual_findings(review, name, command)


def _contracts(guarded: Guarded) -> Iterator[Finding]:
    manifest, component = guarded.manifest, guarded.component
    if component.contracts is None:
        return
    from patchkit.guards.contracts.agreement import contract_findings

    command = f"patchkit contracts {manifest.options(component.name)}"
    try:
        found = guarded.agreements.of(manifest, component)
    except BadInputError as error:
        # patches of another component do not apply: that one's own check says why
        what = f"calls between components were not looked at: {error.problems[0].what}"
        yield Finding(Severity.WARNING, "contracts-unseen", what, component.name)
        return
    yield from contract_findings(found, command)


def _overrides(guarded: Guarded, store: Store, progress: Progress) -> Iterator[Finding]:
    manifest, component = guarded.manifest, guarded.component
    if not component.overrides:
        return
    from patchkit.guards.overrides.override_review import (
        TreeAt,
        layered_findings,
        layered_targets,
        override_findings,
        read_replacements,
        resolver_of,
        survey,
        twice_replaced,
    )
    from patchkit.ops.stacks import built_stack
    from patchkit.stack.lockfile import Lock, load_lock

    lock = load_lock(manifest.lock_path) or Lock({})
    own = TreeAt(guarded.source, guarded.stack.tree, guarded.stack.base.commit)
    for declared in component.overrides:
        target = manifest.component(declared.target)
        assert target is not None
        name = f"{component.name} -> {target.name}"
        with built_stack(manifest, target, store, progress) as built:
            if not built.stack.clean:
                # as it would run it cannot be seen; the target's own check says why
                what = f"patches of {target.name} do not apply: what is replaced there is not known"
                yield Finding(Severity.WARNING, "overrides-unseen", what, name)
                continue
            there = TreeAt(built.source, built.stack.tree, built.stack.base.commit)
            resolver = resolver_of(declared, there)
            calls = read_replacements(declared, manifest.root, own)
            reviewed = lock.overrides.get((component.name, target.name), {})
            found = survey(declared, calls, resolver, reviewed)
            layered = layered_targets(declared, found, own, there, built.stack)
        others = _other_replacements(guarded, declared, store, progress)
        yield from layered_findings(layered, component.name, target.name)
        yield from twice_replaced((component.name, calls), others, declared)
        command = f"patchkit overrides {manifest.options(component.name)}"
        yield from override_findings(found, name, command)


def _other_replacements(
    guarded: Guarded, declared: Overrides, store: Store, progress: Progress
) -> list[tuple[str, Replacements]]:
    """What components after this one in the manifest replace in the same target."""
    from patchkit.guards.overrides.override_review import TreeAt, read_replacements
    from patchkit.ops.stacks import built_stack

    manifest = guarded.manifest
    names = [each.name for each in manifest.components]
    found = []
    for other in manifest.components[names.index(guarded.component.name) + 1 :]:
        same = [each for each in other.overrides if each.target == declared.target]
        for each in same:
            with built_stack(manifest, other, store, progress) as built:
                tree = TreeAt(built.source, built.stack.tree, built.stack.base.commit)
                found.append((other.name, read_replacements(each, manifest.root, tree)))
    return found
