"""What the core asks of extensions: the forms of what their entry points lead to.

Each is found by the name of its entry point, and imported where it is asked. Commands are declared
by `cli/command.py`, keys of manifests as `manifest/keys.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct, to_builtins

from patchkit import entry_points
from patchkit.disk.result_cache import memory_path, recall_as, remember
from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.pins import absent_blobs
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding
from patchkit.model.objects import TreeId
from patchkit.model.progress import Progress
from patchkit.parallel import return_memory
from patchkit.stack.build import Stack
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.history import HistoryReader
from patchkit.upstream.store import Store

# patchkit.findings: what `check` says beyond single patches; all but `rules` can be asked alone, by
# `check --only`.


class CheckRun(Struct, frozen=True):
    """What all components of a check have in common; they are checked side by side.

    `run`: the user lets commands of the manifest run. `today`: the day on which reasons are over.
    """

    store: Store
    progress: Progress
    run: bool
    today: date


class CheckedStack(Struct, frozen=True):
    """A component's stack, which applies; `source` reads all objects of it.

    `generated` are the patches whose recipes are in order: only these are looked for elsewhere.
    """

    manifest: Manifest
    component: Component
    patches: tuple[LoadedPatch, ...]
    generated: tuple[LoadedPatch, ...]
    stack: Stack
    source: Overlay

    def tree_after(self, patch: str) -> TreeId | None:
        """The tree after a patch, "" for the last; None if the stack has no such patch."""
        if not patch:
            return self.stack.tree
        tree = self.stack.base.tree
        for outcome in self.stack.outcomes:
            tree = outcome.tree or tree
            if outcome.name == patch:
                return tree
        return None


#: What is to be looked at in a stack. It is asked of every stack: let it load the rest of its code
#: where there is something to look at.
Finder: TypeAlias = Callable[[CheckedStack], Iterable[Finding]]


def finders(run: CheckRun) -> tuple[Finder, ...]:
    """Those of all extensions, in the order of their names; SurroundingsError where one cannot be
    loaded.
    """
    places = entry_points.named("patchkit.findings")
    return tuple(entry_points.load(places[name])(run) for name in sorted(places))


# patchkit.silent: what upstream changed without a conflict, by what `drift` calls it.


class WatchedLine(Struct, frozen=True):
    """A component's patches, and the line from its pin to a tip, whose commits `along` reads."""

    manifest: Manifest
    component: Component
    patches: Sequence[LoadedPatch]
    along: HistoryReader
    store: Store
    progress: Progress

    def known_or_found(
        self, facts: object, find: Callable[[], Iterable[Finding]]
    ) -> tuple[Finding, ...]:
        """What was found along the line, kept for the next run; it follows from `facts` beside the
        commits. Not where a server lacks a file: it may have it tomorrow.
        """
        history = self.along.history
        line = [history.repository.source.url, history.pin, history.tip]
        path = memory_path(self.store.cache, "line-findings", [*line, facts])
        kept = recall_as(path, tuple[Finding, ...])
        if kept is None:
            return_memory()
            kept = tuple(find())
            if not absent_blobs(history.repository):
                remember(path, to_builtins(kept))
        return kept


class SilentSearch(Protocol):
    """Compares what is at the tip of a line with what is at its pin. With `breaks` a bump says what
    it finds, too: what ran at the pin does not run there.
    """

    breaks: bool

    def watches(self, manifest: Manifest, component: Component) -> bool:
        """Whether it looks for something in the component, whatever its patches."""

    def find(self, line: WatchedLine) -> Iterable[Finding]:
        """What is otherwise at the tip, each with the commit that did it; SurroundingsError where
        that cannot be seen.
        """


def silent_searches() -> Mapping[str, SilentSearch]:
    """Those of all extensions; SurroundingsError where one cannot be loaded."""
    places = entry_points.named("patchkit.silent")
    return {name: entry_points.load(places[name])() for name in sorted(places)}


# patchkit.rules: what an extension asks of the one that runs rules on code.


class Captured(Struct, frozen=True):
    """What the variable of a rule stands for at a place.

    `span` is where that begins and ends: a line from 1, as Python counts them, and how many bytes
    of it stand before.
    """

    path: str
    line: int  # from 1, of the whole match
    within: str  # the function around it
    text: str
    span: tuple[tuple[int, int], tuple[int, int]]
    allowed: bool  # the rule says that it may stay


class Captures(Struct, frozen=True):
    """What rules find in a tree, file by file; `findings` are what they should and do not."""

    found: Mapping[str, Sequence[Captured]]
    findings: tuple[Finding, ...]


def captures(root: Path, file: str, variable: str, tree: TreeView) -> Captures:
    """What a variable stands for wherever the rules of a file of the project match Python code.

    BadInputError where these edit, or do not have the variable, and where nothing is installed that
    runs rules.
    """
    place = entry_points.named("patchkit.rules").get("captures")
    if place is None:
        raise BadInputError(Problem("no extension that runs rules is installed", file))
    find: Callable[[Path, str, str, TreeView], Captures] = entry_points.load(place)
    return find(root, file, variable, tree)
