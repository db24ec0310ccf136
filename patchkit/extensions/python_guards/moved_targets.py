"""Functions that another component replaces at run time, and that upstream changed since the pin.

The replacement goes on to work on a function that does something else, or on none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins

from patchkit.disk.result_cache import ResultCache, memory_path, recall_as, remember
from patchkit.drift.describe import landed
from patchkit.extensions.python_guards.guard_keys import Overrides
from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.override_review import (
    OverrideTarget,
    as_it_was,
    resolver_of,
    standings,
    survey,
)
from patchkit.extensions.python_guards.replacements import Definition, Replacements
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.first_parent import Landing, blobs_of
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.objects import CommitId, TreeEntry, TreeId
from patchkit.upstream.history import HistoryReader, tree_of

#: Raise it when the same calls could come to something else along the same line.
_TARGETS_FORM = 3

#: What upstream did to a function that is replaced.
_MOVED = {
    TargetVerdict.GONE: "is gone",
    TargetVerdict.SIGNATURE: "is called in another way",
    TargetVerdict.BODY: "does something else",
}


def find_moved_targets(
    along: HistoryReader, component: str, declared: Overrides, calls: Replacements, cache: Path
) -> tuple[Finding, ...]:
    """What `component` replaces and the tip has no more, or has otherwise than the pin.

    Kept below the cache folder.
    """
    history = along.history
    line = [history.repository.git_dir.name, history.pin]
    named = {name: [call.place for call in sites] for name, sites in sorted(calls.targets.items())}
    about = [component, repr(declared), named]
    path = memory_path(cache, "replaced", [_TARGETS_FORM, *line, history.tip, *about])
    kept = recall_as(path, tuple[Finding, ...])
    if kept is not None:
        return kept
    # for the next tip: most of its files are those of this one
    notes_path = memory_path(cache, "replaced", [_TARGETS_FORM, *line, history.fork, *about])
    notes = ResultCache(notes_path)
    looking = _TargetSearch(along, component, declared, notes)
    then, now = looking.resolver(history.pin), looking.resolver(history.tip)
    was = standings(then, calls.below(declared.packages))
    found = survey(declared, calls, now, as_it_was(was, history.pin), comparing=True)
    targets = [each for each in found.targets if each.verdict in _MOVED]
    moved = tuple(looking.told(targets, was, then.modules))
    notes.close()
    remember(path, [to_builtins(each) for each in moved])
    return moved


class _TargetSearch(Struct, frozen=True):
    along: HistoryReader  # reads the commits of the line
    component: str  # the one that replaces
    declared: Overrides  # its entry in the manifest
    notes: ResultCache  # answers kept for the next run

    def resolver(self, commit: CommitId) -> Resolver:
        """What resolves names at a commit; brings the packages' files."""
        reader = self.along.reader
        tree = tree_of(reader, commit)
        files = TreeView(reader, tree).files()
        self.along.bring(blobs_of(e for path, e in files.items() if self._is_inside(path)))
        return resolver_of(self.declared, TreeView(reader, TreeId(tree)))

    def _is_inside(self, path: str) -> bool:
        root = f"{self.declared.root}/" if self.declared.root else ""
        heads = tuple(f"{root}{each.replace('.', '/')}" for each in self.declared.packages)
        return path.endswith(".py") and any(
            path.startswith(f"{head}/") or path == f"{head}.py" for head in heads
        )

    def told(
        self, targets: Sequence[OverrideTarget], was: Mapping[str, Definition], pinned: Modules
    ) -> Iterator[Finding]:
        """The targets with where they were, and the commits that changed them."""
        commits = self._commits(targets, was, pinned)
        for target in targets:
            verdict, place = target.verdict, was[target.name].place
            why = f": {target.now.why}" if target.now.why else ""
            lines = [f"replaced at {each.place}" for each in target.calls]
            lines.append(f"at the pin {place}, now {target.now.place or 'nowhere'}")
            yield Finding(
                Severity.NOTE if verdict is TargetVerdict.BODY else Severity.WARNING,
                f"override-{verdict.value}-upstream",
                f"{target.name}, which {self.component} replaces, {_MOVED[verdict]}{why}",
                lines=tuple(lines),
                by=commits.get(target.name),
                about=f"{self.component} replaces {target.name}: {verdict.value}",
            )

    def _commits(
        self, targets: Sequence[OverrideTarget], was: Mapping[str, Definition], pinned: Modules
    ) -> dict[str, Landed]:
        history = self.along.history
        homes = {each.name: was[each.name].place.partition(":")[0] for each in targets}
        now = self.along.entries(history.tip, set(homes.values()) - {""})
        line = frozenset(history.line().commits)
        by: dict[str, Landed] = {}
        left: dict[str, list[OverrideTarget]] = {}
        for target in targets:
            path = homes[target.name]
            told = self.notes.known(_target_key(target, path, now.get(path)), _landed_on(line))
            if told is not None:
                by.update((target.name, Landed(**each)) for each in told)
            elif path:
                left.setdefault(path, []).append(target)
        for path, file in self._files(pinned, sorted(left)):
            for target in left[path]:
                broke = file.broken_by(target, was[target.name])
                told = [] if broke is None else [landed(history, broke.commit)]
                by.update((target.name, each) for each in told)
                asked = _target_key(target, path, now.get(path))
                self.notes.note(asked, [to_builtins(each) for each in told])
        return by

    def _files(self, pinned: Modules, paths: Sequence[str]) -> Iterator[tuple[str, _File]]:
        history = self.along.history
        found = history.landings(paths)
        contents = self.along.contents(e for each in found for e in each.touches.values())
        for path in paths:
            versions = [each for each in found if path in each.touches]
            yield path, _File(pinned, path, versions, contents)


def _target_key(target: OverrideTarget, path: str, entry: TreeEntry | None) -> str:
    """What changed a target follows from what its file is at the tip, on a line that goes on."""
    return f"{entry.oid if entry is not None else '-'} {path} {target.name} {target.verdict.value}"


def _landed_on(line: frozenset[str]) -> Callable[[Any], bool]:
    """Whether the commit that was named is on the line: a branch may have been rewritten."""
    return lambda told: isinstance(told, list) and all(each["commit"] in line for each in told)


class _File(Struct, frozen=True):
    """One file of the pin's tree, to be looked at as the commits of the line have it."""

    pinned: Modules  # the modules of the pin's tree
    path: str  # in the tree
    versions: Sequence[Landing]  # commits that change it, in order
    contents: Mapping[str, bytes]  # blob id -> bytes
    resolvers: dict[int, Resolver] = field(default_factory=dict)

    def broken_by(self, target: OverrideTarget, was: Definition) -> Landing | None:
        """A commit after which the target is no more as on the pin, found by halving.

        None if this file does not tell: what it inherits may stand in another one.
        """
        low, high = -1, len(self.versions) - 1
        if high < 0 or not _is_moved(self._standing(high, target.name), target.verdict, was):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            moved = _is_moved(self._standing(middle, target.name), target.verdict, was)
            low, high = (low, middle) if moved else (middle, high)
        return self.versions[high]

    def _standing(self, number: int, name: str) -> Definition:
        if number not in self.resolvers:
            self.resolvers[number] = self._resolver(self.versions[number].touches[self.path])
        return standings(self.resolvers[number], [name])[name]

    def _resolver(self, entry: TreeEntry | None) -> Resolver:
        data = self.contents.get(entry.oid) if entry is not None else None
        return Resolver(self.pinned.with_file(self.path, data))


def _is_moved(now: Definition, verdict: TargetVerdict, was: Definition) -> bool:
    """Whether what a verdict says is true of that standing."""
    if verdict is TargetVerdict.GONE:
        return not now.kind.is_there
    if verdict is TargetVerdict.SIGNATURE:
        return (now.kind, now.signature) != (was.kind, was.signature)
    return now.body != was.body
