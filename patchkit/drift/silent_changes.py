"""What drifts without a conflict: hunks and replaced functions, from pin to tip.

- Suspicions: git only looks at the lines of a hunk. Here the function around each hunk is compared,
  as the patch leaves it on the pin and at the tip.
- Moved targets: functions that another component replaces at run time, and that upstream has
  changed since.

Apart from `ops/line_drift.py`, which alone asks it: two searches, loaded only where one is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import ResultCache, memory_path, recall_as, remember
from patchkit.drift.describe import landed
from patchkit.drift.drift_report import Suspicion
from patchkit.extensions.python_guards.bodies import FunctionNode
from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.override_review import (
    OverrideTarget,
    TreeAt,
    as_it_was,
    resolver_of,
    standings,
    survey,
)
from patchkit.extensions.python_guards.replacements import (
    Definition,
    Replacements,
    signature_of,
)
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.first_parent import Landing, blobs_of
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Overrides
from patchkit.model.diff_parse import split_lines
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.merging.scopes import enclosing, find_enclosure, names_in
from patchkit.model.objects import CommitId, TreeEntry, TreeId
from patchkit.model.outcome import FileResult, PatchResult
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.syntax import parse_python
from patchkit.stack.build import SeriesPatch, StackBuilder, patch_changes
from patchkit.upstream.history import History, HistoryReader, tree_of

# Suspicions. How one file uses what it defines, by its words alone: which functions are called with
# which arguments, and which names occur at all.


_CALL = re.compile(rb"(?<![\w])([A-Za-z_]\w{2,})\s*\(")
_DEFINITION = re.compile(rb"\s*(?:async\s+def|def|class)\s+(\w+)")


def signatures(lines: Sequence[bytes]) -> dict[bytes, frozenset[str]]:
    """Function or class -> how it is called, in each of its definitions in the file.

    Empty for a file that cannot be parsed.
    """
    found: dict[bytes, set[str]] = {}
    for node in ast.walk(parse_python(b"".join(lines))[0]):
        name, called = "", ""
        if isinstance(node, FunctionNode):
            name, called = node.name, signature_of(node)
        elif isinstance(node, ast.ClassDef):
            made = [each for each in node.body if isinstance(each, FunctionNode)]
            name = node.name
            called = next((signature_of(each) for each in made if each.name == "__init__"), "")
        if called:
            found.setdefault(name.encode(), set()).add(called)
    return {name: frozenset(each) for name, each in found.items()}


def called_in(lines: Sequence[bytes]) -> set[bytes]:
    """The names that code calls; definitions do not count."""
    code = [line.partition(b"#")[0] for line in lines if not _DEFINITION.match(line)]
    return {name for line in code for name in _CALL.findall(line)}


def is_named(lines: Sequence[bytes], name: str) -> bool:
    """Whether the file names a function or class anywhere but where it is defined."""
    word = re.compile(rb"(?<!\w)" + re.escape(name.encode()) + rb"(?!\w)")
    for line in lines:
        defined = _DEFINITION.match(line)
        own = defined is not None and defined[1] == name.encode()
        if len(word.findall(line.partition(b"#")[0])) > own:
            return True
    return False


_PYTHON = (".py", ".pyi")

# Shorter names are everywhere.
_TELLING = 4


def find_suspicions(
    history: History, reader: ObjectReader, patches: Sequence[SeriesPatch]
) -> tuple[tuple[Suspicion, ...], ...]:
    """For each patch that applies on the pin and at the tip, what looks wrong at the tip."""
    pin = StackBuilder(reader, history.base(history.pin, reader))
    tip = StackBuilder(reader, history.base(history.tip, reader))
    found: list[tuple[Suspicion, ...]] = []
    for patch in patches:
        then, now = pin.push(patch), tip.push(patch)
        both = then.status.applies and now.status.applies
        looking = _HunkComparison(history, reader, pin, tip)
        found.append(tuple(looking.compare(patch, then, now)) if both else ())
    return tuple(found)


class _HunkComparison(Struct, frozen=True):
    history: History
    reader: ObjectReader  # reads the objects of both
    pin: StackBuilder  # the stack on the pin
    tip: StackBuilder  # the stack as far as it applies at the tip

    def compare(
        self, patch: SeriesPatch, then: PatchResult, now: PatchResult
    ) -> Iterator[Suspicion]:
        changes = patch_changes(patch)
        for change, before, after in zip(changes, then.files, now.files, strict=True):
            if change.hunks and change.path.endswith(_PYTHON) and change.old_path is not None:
                yield from self._file(change, before, after)

    def _file(
        self, change: FileChange, before: FileResult, after: FileResult
    ) -> Iterator[Suspicion]:
        old, new = _lines(self.pin, change.path), _lines(self.tip, change.path)
        if old == new:
            return
        for number, hunk in enumerate(change.hunks):
            shown = Suspicion(change.path, number + 1, hunk.line, "", "")
            then = enclosing(old, _first_change(hunk) + before.offsets[number])
            now = enclosing(new, _first_change(hunk) + after.offsets[number])
            was, is_now = then.name if then else "", now.name if now else ""
            if was != is_now:
                what = f"lands in {is_now or 'no function'}, was made in {was or 'none'}"
                yield shown.saying("another-scope", what, self._around(change.path, was))
            elif then is not None and now is not None and then.lines != now.lines:
                what = f"{was} has changed around it"
                yield shown.saying("scope-changed", what, self._around(change.path, was))
        yield from self._unused(change, old, new, after)
        yield from self._called_otherwise(change, old, new)
        for lost in _lost_names(change, old, new):
            name = lost.what.partition(" ")[0].encode()
            by = self._who(change.path, partial(_has_name, name=name))
            yield replace(lost, by=by)

    def _unused(
        self,
        change: FileChange,
        old: Sequence[bytes],
        new: Sequence[bytes],
        after: FileResult,
    ) -> Iterator[Suspicion]:
        """Patched functions that the file named elsewhere on the pin, and no more at the tip."""
        seen: set[str] = set()
        for number, hunk in enumerate(change.hunks):
            around = enclosing(new, _first_change(hunk) + after.offsets[number])
            name = around.name.rpartition(".")[2] if around is not None else ""
            if len(name) < _TELLING or name.startswith("__") or name in seen:
                continue
            seen.add(name)
            if is_named(old, name) and not is_named(new, name):
                what = f"{name}, which it patches, is not used in the file any more"
                by = self._who(change.path, partial(is_named, name=name))
                yield Suspicion(change.path, number + 1, hunk.line, "not-called", what, by)

    def _called_otherwise(
        self, change: FileChange, old: Sequence[bytes], new: Sequence[bytes]
    ) -> Iterator[Suspicion]:
        """Functions of the file that added lines call, and that take other arguments now."""
        calls = [called_in(_added(hunk)) for hunk in change.hunks]
        if not any(calls):
            return
        had, has = signatures(old), signatures(new)
        for name in sorted(set[bytes]().union(*calls)):
            if name in had and name in has and had[name] != has[name]:
                number = next(n for n, each in enumerate(calls) if name in each)
                line = change.hunks[number].line
                now = " or ".join(sorted(has[name]))
                what = f"{name.decode()} is called by added lines, and takes {now} now"
                by = self._who(change.path, partial(_signature, name=name))
                yield Suspicion(change.path, number + 1, line, "name-changed", what, by)

    def _around(self, path: str, name: str) -> Landed | None:
        """The first commit after which the function is another one than on the pin."""

        def lines_of(lines: Sequence[bytes]) -> object:
            around = find_enclosure(lines, name)
            return around.lines if around is not None else None

        return self._who(path, lines_of)

    def _who(self, path: str, probe: Callable[[Sequence[bytes]], object]) -> Landed | None:
        """The first commit whose file answers otherwise than the pin's."""
        found = self.history.landings([path])
        touched = [(each.commit, each.touches.get(path)) for each in found]
        oids = [entry.oid for _, entry in touched if entry is not None]
        first = probe(_lines(StackBuilder(self.reader, self.pin.base), path))
        versions = self.reader.read_present(oids)
        for commit, entry in touched:
            data = versions.get(entry.oid) if entry is not None else None
            if probe(split_lines(data or b"")) != first:
                return landed(self.history, commit)
        return None


def _lines(builder: StackBuilder, path: str) -> list[bytes]:
    entry = builder.tree.entry(path)
    return split_lines(builder.blobs.contents(entry.oid)) if entry is not None else []


def _first_change(hunk: Hunk) -> int:
    """The line, from 0, of the first one that the hunk changes, as it leaves the file."""
    context = next((n for n, line in enumerate(hunk.lines) if line[:1] != b" "), 0)
    return max(hunk.new_start - 1, 0) + context


def _lost_names(
    change: FileChange, old: Sequence[bytes], new: Sequence[bytes]
) -> Iterator[Suspicion]:
    """Names that added lines use, which the rest of the file had on the pin and has no more."""
    added = [line for hunk in change.hunks for line in _added(hunk)]
    ours = set(added)
    had = names_in([line for line in old if line not in ours])
    has = names_in([line for line in new if line not in ours])
    for name in sorted(names_in([line.partition(b"#")[0] for line in added]) & had - has):
        hunk = next(h for h in change.hunks if any(name in line[1:] for line in h.lines))
        number = change.hunks.index(hunk) + 1
        what = f"{name.decode()} is used by added lines, and gone from the rest of the file"
        yield Suspicion(change.path, number, hunk.line, "name-gone", what)


def _has_name(lines: Sequence[bytes], name: bytes) -> bool:
    return name in names_in(lines)


def _signature(lines: Sequence[bytes], name: bytes) -> frozenset[str] | None:
    return signatures(lines).get(name)


def _added(hunk: Hunk) -> list[bytes]:
    return [line[1:] for line in hunk.lines if line[:1] == b"+"]


# Moved targets: functions that another component replaces at run time, and that upstream has
# changed since. The replacement goes on to work on a function that does something else, or on none.


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
        return resolver_of(self.declared, TreeAt(reader, TreeId(tree), commit))

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
