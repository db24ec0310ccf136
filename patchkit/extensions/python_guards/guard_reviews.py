"""What is found beyond patches and reviewed by people: functions that components replace in each
other, sites that rules name and no patch covers, and calls between components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from difflib import unified_diff
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import bytes_at
from patchkit.disk.transaction import write_set
from patchkit.errors import ExitCode, UsageError
from patchkit.extensions.python_guards.agreements import Agreements
from patchkit.extensions.python_guards.breaches import ComponentContracts
from patchkit.extensions.python_guards.guard_keys import GuardKeys, Overrides
from patchkit.extensions.python_guards.override_review import (
    OverrideTarget,
    accepted,
    count_verdicts,
    is_chosen,
    read_replacements,
    resolver_of,
    survey,
)
from patchkit.extensions.python_guards.replacements import definition_text, source_of
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Component, GitPin, GitSource, Manifest
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.stack.lockfile import Lock, Reviewed, load_lock, lock_bytes
from patchkit.upstream.store import Store


class OverridesOptions(Struct, frozen=True):
    """What to look at.

    `names` are globs over targets, () for all. `diff`: show how code changed. `accept`: record the
    chosen targets as reviewed.
    """

    names: tuple[str, ...] = ()
    diff: bool = False
    accept: bool = False


class ComponentOverrides(Struct, frozen=True):
    """What `component` replaces in `target` while it runs.

    `commit` is the target's. `counts` are of all targets, `targets` those that were asked for.
    `findings` say what of the declaration is in vain or cannot be followed. `accepted`: how many
    were recorded as reviewed.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"recorded"})

    component: str
    target: str
    commit: CommitId
    counts: Mapping[TargetVerdict, int]
    targets: tuple[OverrideTarget, ...]
    findings: tuple[Finding, ...]
    accepted: int
    recorded: Reviewed

    @property
    def is_open(self) -> bool:
        """Whether a person has to look at one of all its targets, or at its rules."""
        wrong = any(each.severity is Severity.ERROR for each in self.findings)
        return wrong or any(verdict.is_open for verdict in self.counts)


class OverridesReport(Struct, frozen=True):
    """Every pair of components of which one replaces code of the other."""

    manifest: str  # its name
    overrides: tuple[ComponentOverrides, ...]  # in the manifest's order

    @property
    def exit_code(self) -> ExitCode:
        """A finding where somebody has to look."""
        return ExitCode.FINDING if any(each.is_open for each in self.overrides) else ExitCode.OK


def review_overrides(
    manifest: Manifest,
    components: Sequence[Component],
    options: OverridesOptions,
    store: Store,
    progress: Progress,
) -> OverridesReport:
    """Judge the targets of all overrides of the components.

    On disk: with `accept` the lock, else nothing but what the store fetches. BadInputError if a
    rule or lock cannot be read or a stack is broken.
    """
    chosen = [
        (component, each)
        for component in components
        for each in component.added(GuardKeys).overrides
    ]
    seen = bytes_at(manifest.lock_path)
    lock = load_lock(manifest.lock_path) or Lock({})
    reviewing = _Reviewing(manifest, options, store, progress)
    report = tuple(reviewing.pair(*pair, lock) for pair in chosen)
    if options.accept and chosen:
        recorded = {(each.component, each.target): each.recorded for each in report}
        data = lock_bytes(replace(lock, overrides={**lock.overrides, **recorded}))
        write_set(manifest.root, {manifest.lock_path: data}, {manifest.lock_path: seen})
    return OverridesReport(manifest.name, report)


class _Reviewing(Struct, frozen=True):
    manifest: Manifest
    options: OverridesOptions  # of the command line
    store: Store
    progress: Progress

    def pair(self, component: Component, declared: Overrides, lock: Lock) -> ComponentOverrides:
        target = self.manifest.component(declared.target)
        assert target is not None
        options, name = self.options, component.name
        with ExitStack() as stack:
            built, there = (
                stack.enter_context(built_stack(self.manifest, each, self.store, self.progress))
                for each in (component, target)
            )
            require_clean(built, self.manifest)
            calls = read_replacements(declared, self.manifest.root, built.tip)
            require_clean(there, self.manifest)
            resolver, commit = resolver_of(declared, there.tip), there.stack.base.commit
            reviewed = lock.overrides.get((name, target.name), {})
            found = survey(declared, calls, resolver, reviewed)
            recorded = reviewed
            if options.accept:
                recorded = accepted(found.targets, options.names, commit)
                found = survey(declared, calls, resolver, recorded)
            asked = tuple(each for each in found.targets if is_chosen(each.name, options.names))
            self._require_known(asked, component, target)
            if options.diff:
                asked = tuple(self._with_diffs(asked, declared, target, resolver, stack))
        return ComponentOverrides(
            component=name,
            target=target.name,
            commit=commit,
            counts=count_verdicts(found.targets),
            targets=asked,
            findings=found.findings,
            accepted=sum(each not in reviewed.items() for each in recorded.items()),
            recorded=recorded,
        )

    def _reviewed_tree(self, target: Component, commit: str, stack: ExitStack) -> TreeView:
        """Upstream's tree at the commit of a review."""
        if not isinstance(target.source, GitSource):
            raise UsageError(f"{target.name} is not a git repository", hint="leave out --diff")
        base = self.store.base(replace(target, pin=GitPin(CommitId(commit))), self.progress)
        return TreeView(stack.enter_context(reading(self.store.repository(target))), base.tree)

    def _require_known(
        self, asked: Sequence[OverrideTarget], component: Component, target: Component
    ) -> None:
        for glob in self.options.names:
            if not any(is_chosen(each.name, [glob]) for each in asked):
                what = f"{component.name} replaces no {glob} in {target.name}"
                hint = "names are dotted and full; * is any text"
                if self.manifest.component(glob) is not None:
                    hint = f"{glob} is a component: -c {glob}"
                raise UsageError(what, hint=hint)

    def _with_diffs(
        self,
        targets: Sequence[OverrideTarget],
        declared: Overrides,
        target: Component,
        now: Resolver,
        stack: ExitStack,
    ) -> Iterator[OverrideTarget]:
        resolvers: dict[str, Resolver] = {}
        for each in targets:
            if each.reviewed is None or not each.verdict.is_open:
                yield each
                continue
            commit = each.reviewed.commit
            if commit not in resolvers:
                tree = self._reviewed_tree(target, commit, stack)
                resolvers[commit] = resolver_of(declared, tree)
            before, after = _text(resolvers[commit], each.name), _text(now, each.name)
            lines = unified_diff(before, after, f"a/{each.name}", f"b/{each.name}", lineterm="")
            yield replace(each, diff=tuple(lines))


def _text(resolver: Resolver, name: str) -> list[str]:
    """The source of a name's definitions, line by line."""
    lines: list[str] = []
    for code in source_of(resolver, name):
        if code.node is None:
            continue
        text = definition_text(code.module.text, code.node)
        lines += text.split("\n")[:-1]
    return lines


# Contracts: do the calls between a manifest's patched components fit?


class ContractsReport(Struct, frozen=True):
    """The components that were looked at."""

    manifest: str  # its name
    components: tuple[ComponentContracts, ...]

    @property
    def exit_code(self) -> ExitCode:
        """A finding where a place does not fit, or an entry is for nothing."""
        wrong = any(each.broken or each.findings for each in self.components)
        return ExitCode.FINDING if wrong else ExitCode.OK


def look_at_contracts(
    manifest: Manifest, components: Sequence[Component], store: Store, progress: Progress
) -> ContractsReport:
    """Bind the calls of the components into the others.

    On disk: what the store fetches, nothing else.
    """
    chosen = [each for each in components if each.added(GuardKeys).contracts is not None]
    agreements = Agreements(store, progress)
    return ContractsReport(manifest.name, tuple(agreements.of(manifest, each) for each in chosen))
