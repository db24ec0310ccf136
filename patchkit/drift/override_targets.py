"""Functions that another component replaces while it runs, and that upstream has changed since.

The replacement goes on to work on a function that does something else, or on none: nothing tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins

from patchkit.disk.result_cache import ResultCache, memory_path, recall, remember
from patchkit.drift.describe import landed
from patchkit.drift.drift_report import Landed, MovedTarget
from patchkit.gitcmd.first_parent import Landing, landings
from patchkit.gitcmd.tree_view import Terrain
from patchkit.guards.overrides.calls import Replacements
from patchkit.guards.overrides.definitions import Standing, standing_of
from patchkit.guards.overrides.override_review import (
    OverrideTarget,
    TargetVerdict,
    TreeAt,
    as_it_was,
    resolver_of,
    survey,
)
from patchkit.manifest.values import Overrides
from patchkit.model.objects import TreeEntry
from patchkit.python.modules import Modules
from patchkit.python.resolve import Resolver
from patchkit.upstream.history import Along, tree_of

#: Raise it when the same calls could come to something else along the same line.
_FORM = 2

_MOVED = (TargetVerdict.GONE, TargetVerdict.SIGNATURE, TargetVerdict.BODY)


def find_moved_targets(
    along: Along, component: str, declared: Overrides, calls: Replacements, cache: Path
) -> tuple[MovedTarget, ...]:
    """What `component` replaces and the tip has no more, or has otherwise than the pin.

    Kept below the cache folder.
    """
    history = along.history
    line = [history.repository.git_dir.name, history.pin, history.fork]
    named = {name: [call.place for call in sites] for name, sites in sorted(calls.targets.items())}
    about = [component, repr(declared), named]
    path = memory_path(cache, "replaced", [_FORM, *line, history.tip, *about])
    kept = _kept(recall(path))
    if kept is not None:
        return kept
    # for the next tip: most of its files are those of this one
    notes = ResultCache(memory_path(cache, "replaced", [_FORM, *line, *about]))
    looking = _Looking(along, component, declared, notes)
    then, now = looking.resolver(history.pin), looking.resolver(history.tip)
    reviewed = as_it_was(then, list(calls.below(declared.packages)), history.pin)
    found = survey(declared, calls, now, reviewed, comparing=True)
    targets = [each for each in found.targets if each.verdict in _MOVED]
    moved = tuple(looking.told(targets, then))
    notes.close()
    remember(path, [to_builtins(each) for each in moved])
    return moved


def _kept(data: Any) -> tuple[MovedTarget, ...] | None:
    try:
        return tuple(
            MovedTarget(
                **{
                    **each,
                    "verdict": TargetVerdict(each["verdict"]),
                    "calls": tuple(each["calls"]),
                    "by": Landed(**each["by"]) if each["by"] is not None else None,
                }
            )
            for each in data
        )
    except (KeyError, TypeError, ValueError):
        return None


class _Looking(Struct, frozen=True):
    along: Along
    component: str
    declared: Overrides
    notes: ResultCache

    def resolver(self, commit: str) -> Resolver:
        """What resolves names at a commit; brings the packages' files."""
        reader = self.along.reader
        tree = tree_of(reader, commit)
        files = Terrain(reader, tree).files()
        inside = [entry for path, entry in files.items() if self._is_inside(path)]
        self.along.contents(inside)
        return resolver_of(self.declared, TreeAt(reader, tree, commit))

    def _is_inside(self, path: str) -> bool:
        root = f"{self.declared.root}/" if self.declared.root else ""
        heads = tuple(f"{root}{each.replace('.', '/')}" for each in self.declared.packages)
        return path.endswith(".py") and any(
            path.startswith(f"{head}/") or path == f"{head}.py" for head in heads
        )

    def told(self, targets: Sequence[OverrideTarget], then: Resolver) -> Iterator[MovedTarget]:
        """The targets with where they were, and the commits that changed them."""
        was = {target.name: standing_of(then, target.name) for target in targets}
        commits = self._commits(targets, was, then.modules)
        for target in targets:
            yield MovedTarget(
                component=self.component,
                name=target.name,
                verdict=target.verdict,
                calls=tuple(call.place for call in target.calls),
                was=was[target.name].place,
                now=target.now.place,
                why=target.now.why,
                by=commits.get(target.name),
            )

    def _commits(
        self, targets: Sequence[OverrideTarget], was: Mapping[str, Standing], pinned: Modules
    ) -> dict[str, Landed]:
        history = self.along.history
        homes = {name: standing.place.partition(":")[0] for name, standing in was.items()}
        now = self.along.entries(history.tip, set(homes.values()) - {""})
        line = frozenset(history.line().commits)
        by: dict[str, Landed] = {}
        left: dict[str, list[OverrideTarget]] = {}
        for target in targets:
            path = homes[target.name]
            told = self.notes.known(_asked(target, path, now.get(path)), _is_on(line))
            if told is not None:
                by.update((target.name, Landed(**each)) for each in told)
            elif path:
                left.setdefault(path, []).append(target)
        for path, file in self._files(pinned, sorted(left)):
            for target in left[path]:
                broke = file.broken_by(target, was[target.name])
                told = [] if broke is None else [landed(history, broke.commit)]
                by.update((target.name, each) for each in told)
                asked = _asked(target, path, now.get(path))
                self.notes.note(asked, [to_builtins(each) for each in told])
        return by

    def _files(self, pinned: Modules, paths: Sequence[str]) -> Iterator[tuple[str, _File]]:
        history = self.along.history
        found = landings(history.repository, history.fork, history.tip, paths)
        contents = self.along.contents(e for each in found for e in each.touches.values())
        for path in paths:
            versions = [each for each in found if path in each.touches]
            yield path, _File(pinned, path, versions, contents)


def _asked(target: OverrideTarget, path: str, entry: TreeEntry | None) -> str:
    """What changed a target follows from what its file is at the tip, on a line that goes on."""
    return f"{entry.oid if entry is not None else '-'} {path} {target.name} {target.verdict.value}"


def _is_on(line: frozenset[str]) -> Callable[[Any], bool]:
    """Whether the commit that was named is on the line: a branch may have been rewritten."""
    return lambda told: isinstance(told, list) and all(each["commit"] in line for each in told)


class _File(Struct, frozen=True):
    """One file of the pin's tree, to be looked at as the commits of the line have it."""

    pinned: Modules
    path: str
    versions: Sequence[Landing]
    contents: Mapping[str, bytes]
    resolvers: dict[int, Resolver] = field(default_factory=dict)

    def broken_by(self, target: OverrideTarget, was: Standing) -> Landing | None:
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

    def _standing(self, number: int, name: str) -> Standing:
        if number not in self.resolvers:
            self.resolvers[number] = self._resolver(self.versions[number].touches[self.path])
        return standing_of(self.resolvers[number], name)

    def _resolver(self, entry: TreeEntry | None) -> Resolver:
        data = self.contents.get(entry.oid) if entry is not None else None
        return Resolver(self.pinned.with_file(self.path, data))


def _is_moved(now: Standing, verdict: TargetVerdict, was: Standing) -> bool:
    """Whether what a verdict says is true of that standing."""
    if verdict is TargetVerdict.GONE:
        return not now.kind.is_there
    if verdict is TargetVerdict.SIGNATURE:
        return (now.kind, now.signature) != (was.kind, was.signature)
    return now.body != was.body
