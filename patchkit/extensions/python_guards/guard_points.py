"""Where the core asks: what `check` is to say, and what upstream changed without a conflict.

Both are asked of every component; what they need is loaded where a manifest has such a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial

from patchkit.extension import CheckedStack, CheckRun, Finder, WatchedLine
from patchkit.extensions.python_guards.guard_keys import GuardKeys, Overrides
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding


def calls(run: CheckRun) -> Finder:
    """Calls between components."""
    from patchkit.extensions.python_guards.agreements import Agreements  # noqa: PLC0415

    agreements = Agreements(run.store, run.progress)

    def look(checked: CheckedStack) -> Iterable[Finding]:
        if "contracts" not in checked.component.more:
            return
        from patchkit.extensions.python_guards.guard_findings import call_findings  # noqa: PLC0415

        yield from call_findings(checked, agreements)

    return look


def overrides(run: CheckRun) -> Finder:
    """Functions that are replaced."""

    def look(checked: CheckedStack) -> Iterable[Finding]:
        if "overrides" not in checked.component.more:
            return
        from patchkit.extensions.python_guards.guard_findings import (  # noqa: PLC0415
            replacement_findings,
        )

        yield from replacement_findings(checked, run.store, run.progress)

    return look


def rewrites(run: CheckRun) -> Finder:
    """Text that is rewritten."""

    def look(checked: CheckedStack) -> Iterable[Finding]:
        if "rewrites" not in checked.component.more:
            return
        from patchkit.extensions.python_guards.rewrite_findings import (  # noqa: PLC0415
            rewrite_findings,
        )

        yield from rewrite_findings(checked, run)

    return look


class BrokenCalls:
    """Calls between components that upstream broke; see patchkit/extension.py."""

    breaks = True

    def watches(self, manifest: Manifest, component: Component) -> bool:
        """Whether the component takes part."""
        del manifest
        return "contracts" in component.more

    def find(self, line: WatchedLine) -> Iterable[Finding]:
        """The calls, each with the commit that broke it. BadInputError if a stack is broken."""
        from patchkit.extensions.python_guards.agreements import (  # noqa: PLC0415
            partner_facts,
            partners_of,
        )

        if not self.watches(line.manifest, line.component):
            return ()
        name, about = line.component.name, (line.manifest, line.store, line.progress)
        line.progress.step(name, "binding calls between components", local=True)

        def find() -> Iterator[Finding]:
            from patchkit.extensions.python_guards.known_modules import (  # noqa: PLC0415
                known_modules,
            )
            from patchkit.extensions.python_guards.line_findings import (  # noqa: PLC0415
                CallSearch,
            )

            with ExitStack() as stack:
                partners, given = partners_of(*about, stack)
                known = stack.enter_context(known_modules(line.store.cache, partners, given))
                yield from CallSearch(line.along, name, partners, given, known).found()

        return line.known_or_found([name, *partner_facts(*about)], find)


class MovedTargets:
    """Functions that other components replace and upstream changed; see patchkit/extension.py."""

    breaks = False

    def watches(self, manifest: Manifest, component: Component) -> bool:
        """Whether another component replaces some of this one."""
        return any(self._overriding(manifest, component))

    def find(self, line: WatchedLine) -> Iterable[Finding]:
        """The functions, each with the commit that changed it; fetches who replaces them."""
        from patchkit.disk.result_cache import code_digest  # noqa: PLC0415
        from patchkit.extensions.python_guards.known_modules import CODE  # noqa: PLC0415
        from patchkit.extensions.python_guards.line_findings import (  # noqa: PLC0415
            find_moved_targets,
        )
        from patchkit.extensions.python_guards.override_review import (  # noqa: PLC0415
            read_replacements,
        )
        from patchkit.ops.built_stack import built_stack  # noqa: PLC0415

        manifest, store = line.manifest, line.store
        for other, declared in self._overriding(manifest, line.component):
            with built_stack(manifest, other, store, line.progress) as built:
                calls = read_replacements(declared, manifest.root, built.tip)
            facts = [code_digest(*CODE), other.name, repr(declared), repr(calls.targets)]
            search = partial(find_moved_targets, line.along, other.name, declared, calls)
            yield from line.known_or_found(facts, search)

    def _overriding(
        self, manifest: Manifest, component: Component
    ) -> Iterator[tuple[Component, Overrides]]:
        for other in manifest.components:
            for declared in other.added(GuardKeys).overrides if other.more else ():
                if declared.target == component.name:
                    yield other, declared


class MovedRewrites:
    """What rewrites of text look for and upstream changed; see patchkit/extension.py."""

    breaks = True

    def watches(self, manifest: Manifest, component: Component) -> bool:
        """Whether something rewrites the component."""
        del manifest
        return "rewrites" in component.more

    def find(self, line: WatchedLine) -> Iterable[Finding]:
        """The rewrites, each with the commit that moved what it looks for."""
        from patchkit.extensions.python_guards.rewrite_findings import (  # noqa: PLC0415
            moved_rewrites,
        )

        return moved_rewrites(line) if self.watches(line.manifest, line.component) else ()
