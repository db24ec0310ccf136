"""What a check says beyond each patch: does the patched component still fit what it guards?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.gitcmd.objects import reading
from patchkit.lock import Lock, load_lock
from patchkit.manifest.values import Component, Manifest
from patchkit.model.lint import Finding
from patchkit.model.progress import Progress
from patchkit.model.tree import ObjectSource
from patchkit.overrides.findings import override_findings
from patchkit.overrides.survey import TreeAt, read_replacements, resolver_of, survey
from patchkit.stack import Stack
from patchkit.store import Store


@dataclass(frozen=True, slots=True)
class Guarded:
    """A component whose patches apply; `source` reads all objects of its stack."""

    manifest: Manifest
    component: Component
    stack: Stack
    source: ObjectSource


def guard_findings(guarded: Guarded, store: Store, progress: Progress) -> Iterator[Finding]:
    """What somebody has to look at; fetches a component whose code this one replaces."""
    if guarded.stack.clean:
        yield from _overrides(guarded, store, progress)


def _overrides(guarded: Guarded, store: Store, progress: Progress) -> Iterator[Finding]:
    manifest, component = guarded.manifest, guarded.component
    if not component.overrides:
        return
    lock = load_lock(manifest.lock_path) or Lock({})
    own = TreeAt(guarded.source, guarded.stack.tree, guarded.stack.base.commit)
    for declared in component.overrides:
        target = manifest.component(declared.target)
        assert target is not None
        base = store.base(target, progress)
        with reading(store.repository(target)) as reader:
            resolver = resolver_of(declared, TreeAt(reader, base.tree, base.commit))
            calls = read_replacements(declared, manifest.root, own)
            reviewed = lock.overrides.get((component.name, target.name), {})
            found = survey(declared, calls, resolver, reviewed)
        command = f"patchkit overrides -m {manifest.name} -c {component.name}"
        yield from override_findings(found, f"{component.name} -> {target.name}", command)
