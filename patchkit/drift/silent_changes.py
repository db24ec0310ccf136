"""What drifts without a conflict: hunks, replaced functions and new code, from pin to tip.

- Suspicions: git only looks at the lines of a hunk. Here the function around each hunk is compared,
  as the patch leaves it on the pin and at the tip.
- Moved targets: functions that another component replaces at run time, and that upstream has
  changed since.
- New sites: what rules name at the tip and not at the pin.

Apart from `ops/line_drift.py`, which alone asks it: three searches, loaded only where one is
needed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import ResultCache, memory_path, read_as, recall_as, remember
from patchkit.drift.describe import landed
from patchkit.drift.drift_report import Suspicion
from patchkit.gitcmd.first_parent import Landing, blobs_of
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.trees import TreeView
from patchkit.guards.overrides import TargetVerdict
from patchkit.guards.overrides.override_review import (
    OverrideTarget,
    TreeAt,
    as_it_was,
    resolver_of,
    standings,
    survey,
)
from patchkit.guards.overrides.replacements import (
    Definition,
    Replacements,
    signature_of,
)
from patchkit.guards.residual_sites import SHOWN_TEXT, Fingerprint, Scanner, fingerprint
from patchkit.manifest.values import Overrides
from patchkit.model.diff_parse import split_lines
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.merging.scopes import enclosing, find_enclosure, names_in
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, CommitId, TreeEntry, TreeId
from patchkit.model.outcome import FileResult, PatchResult
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.syntax import parse_python
from patchkit.python.bodies import FunctionNode
from patchkit.python.modules import Modules
from patchkit.python.resolve import Resolver
from patchkit.recipes.rule import Rule
from patchkit.recipes.run import Recipe
from patchkit.recipes.sites import Site, engine_version
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


# New sites: what rules name at the tip and not at the pin. Nothing conflicts where upstream writes
# new code. Only files that differ between pin and tip are scanned, and few of their versions in
# between, from the newest back, until a site is not there.


#: Raise it when the same rules could find something else along the same line.
_SITES_FORM = 3

#: So many answers on files are kept where nobody asked for them.
_KEPT = 100_000
#: So many bytes behind a decorator have the name of what it is of.
_BEHIND = 200


class FoundSite(Struct, frozen=True):
    """A site at the tip, in a file that differs from the pin's.

    `is_new`: the pin has fewer of its kind. `by` is the commit since which it is there, "" where
    none of the line brought it, None where nobody asked.
    """

    site: Site
    is_new: bool
    by: str | None = None


#: Of all sites those whose commits are asked for.
PickSites: TypeAlias = Callable[[Sequence[FoundSite]], Sequence[FoundSite]]


def find_new_sites(
    along: HistoryReader, rules: Sequence[Rule], cache: Path, pick: PickSites
) -> Sequence[FoundSite]:
    """What `pick` picks of all sites at the tip in files that are others than at the pin.

    Each with the commit that brought it. What was found is kept below `cache`.
    """
    history = along.history
    line = [history.repository.git_dir.name, history.pin]
    looked_for = [engine_version(), [repr(rule) for rule in rules]]
    path = memory_path(cache, "new-sites", [_SITES_FORM, *line, history.tip, *looked_for])
    kept = recall_as(path, tuple[FoundSite, ...])
    if kept is not None and all(each.by is not None for each in pick(kept)):
        return pick(kept)
    # for the next tip: most of its files are those of this one
    notes_path = memory_path(cache, "new-sites", [_SITES_FORM, *line, history.fork, *looked_for])
    notes = ResultCache(notes_path, spare=_KEPT if kept is not None else 0)
    search = _SiteSearch(along, rules, notes)
    found = kept if kept is not None else tuple(search.find())
    by = search.commits([each.site for each in pick(found) if each.by is None])
    found = tuple(replace(each, by=by.get(fingerprint(each.site), each.by)) for each in found)
    notes.close()
    remember(path, [to_builtins(each) for each in found])
    return pick(found)


def made_by(site: Site, recipes: Iterable[Recipe]) -> bool:
    """Whether a recipe would edit the site when its patch is regenerated."""
    return any(
        rule.edits
        and rule.scope.covers(site.path)
        and site.rule in (rule.id, f"{rule.where.file.name.partition('.')[0]}:{rule.id}")
        for recipe in recipes
        for rule in recipe.all_rules
    )


class _SiteSearch(Struct, frozen=True):
    along: HistoryReader  # reads the commits of the line
    rules: Sequence[Rule]
    notes: ResultCache  # answers kept for the next run

    def find(self) -> Iterable[FoundSite]:
        """All sites at the tip in files that are others than at the pin."""
        pin, tip = self._files(self.along.history.pin), self._files(self.along.history.tip)
        now = self._sites({path: each for path, each in tip.items() if pin.get(path) != each})
        # what a site is known by has its path: other files of the pin have none of these
        known = self._known({path: pin[path] for site in now if (path := site.path) in pin})
        for site in now:
            known[fingerprint(site)] -= 1
            yield FoundSite(site, known[fingerprint(site)] < 0)

    def _files(self, commit: CommitId) -> dict[str, TreeEntry]:
        files = TreeView(self.along.reader, tree_of(self.along.reader, commit)).files()
        return {
            path: entry
            for path, entry in files.items()
            if entry.mode in (FILE_MODE, EXECUTABLE_MODE)
            and any(rule.scope.covers(path) for rule in self.rules)
        }

    def _known(self, files: Mapping[str, TreeEntry]) -> Counter[Fingerprint]:
        return Counter(map(fingerprint, self._sites(files)))

    def _sites(self, files: Mapping[str, TreeEntry]) -> list[Site]:
        """All sites in files, by their paths; those of known contents are known."""
        found = {path: self._noted(path, entry) for path, entry in files.items()}
        fresh: dict[str, list[str]] = {}
        for path in sorted(path for path, sites in found.items() if sites is None):
            fresh.setdefault(files[path].oid, []).append(path)
        scanner, entries = Scanner(self.rules), [files[paths[0]] for paths in fresh.values()]
        for contents in self.along.in_batches(entries):
            for oid, data in contents.items():
                for path in fresh[oid]:
                    sites = found[path] = scanner.sites(path, data)
                    key = _site_key(path, files[path])
                    self.notes.note(key, [to_builtins(each) for each in sites])
        return [site for path in sorted(files) for site in found[path] or ()]

    def _noted(self, path: str, entry: TreeEntry) -> Sequence[Site] | None:
        return read_as(self.notes.known(_site_key(path, entry), _is_list), tuple[Site, ...])

    def commits(self, fresh: Sequence[Site]) -> dict[Fingerprint, str]:
        """The commit since which there are more of each than on the pin, "" for none."""
        if not fresh:
            return {}
        history = self.along.history
        wanted: dict[str, set[Fingerprint]] = {}
        for site in fresh:
            wanted.setdefault(site.path, set()).add(fingerprint(site))
        now = self.along.entries(history.tip, wanted)
        asked = {path: f"by {_site_key(path, each)}" for path, each in now.items() if each}
        by: dict[Fingerprint, str] = {}
        line = frozenset(history.line().commits)
        for path, sites in sorted(wanted.items()):
            told = self.notes.known(asked[path], _brought_on(line))
            brought = {Fingerprint(*facts): commit for *facts, commit in told or ()}
            if sites <= brought.keys():
                by |= brought
                del wanted[path]
        for path, brought in self._looked_up(wanted):
            told = [[*to_builtins(site).values(), commit] for site, commit in brought.items()]
            self.notes.note(asked[path], told)
            by |= brought
        return by

    def _looked_up(
        self, wanted: Mapping[str, set[Fingerprint]]
    ) -> Iterator[tuple[str, dict[Fingerprint, str]]]:
        """Sites that are wanted in files, with their commits, file by file."""
        history, reader = self.along.history, self.along.reader
        pinned = self.along.entries(history.pin, wanted)
        known = self._known({path: entry for path, entry in pinned.items() if entry})
        found = history.landings(sorted(wanted))
        self.along.bring(blobs_of(e for each in found for e in each.touches.values()))
        for path, sites in wanted.items():
            versions = [each for each in found if path in each.touches]
            contents = reader.read_present(blobs_of(each.touches[path] for each in versions))
            named = {each.rule for each in sites}
            scanner = Scanner(rule for rule in self.rules if rule.id in named)
            file = SiteHistory(path, versions, contents, sites=sites, known=known, scanner=scanner)
            yield path, file.brought()


class SiteHistory:
    """The versions of a file, asked since when it has sites that it has at the last of them.

    Parsing a version takes a hundred times as long as looking for a site's text in it. Invariant: a
    version has what `_has` says, or it lies between two of the same run that have the same. A run
    are versions that follow each other in which the same lines, in the same functions, have the
    text of the sites; inside a run the rest is found by halving.
    """

    def __init__(
        self,
        path: str,
        versions: Sequence[Landing],
        contents: Mapping[str, bytes],
        *,
        sites: Collection[Fingerprint],
        known: Counter[Fingerprint],
        scanner: Scanner,
    ) -> None:
        self._path, self._versions, self._contents = path, versions, contents
        self._known, self._scanner = known, scanner
        self._texts = {site: _needle(site.text) for site in sites}
        sizes = {site: len(site.text) if " " in site.text else 0 for site in sites}
        self._asked = sorted({(self._texts[site], sizes[site]) for site in sites})
        self._there: dict[int, frozenset[Fingerprint]] = {}
        self._left = set(sites)
        self._by = dict.fromkeys(sorted(sites), "")

    def brought(self) -> dict[Fingerprint, str]:
        """For each site the oldest of the newest versions that all have it, "" for none."""
        marks = [self._mark(self._data(number)) for number in range(len(self._versions))]
        high = len(marks) - 1
        while high >= 0 and self._left:
            low = high
            while low and marks[low - 1] == marks[high]:
                low -= 1
            self._settle(low, high)
            high = low - 1
        return self._by

    def _settle(self, low: int, high: int) -> None:
        """Go through the versions from one to another, the newest first."""
        if not self._left:
            return
        if self._left & self._has(low) == self._left & self._has(high):
            self._left &= self._has(high)
            self._by.update(dict.fromkeys(self._left, self._versions[low].commit.id))
            return
        middle = (low + high) // 2
        self._settle(middle + 1, high)
        self._settle(low, middle)

    def _data(self, number: int) -> bytes:
        entry = self._versions[number].touches[self._path]
        return self._contents.get(entry.oid, b"") if entry is not None else b""

    def _has(self, number: int) -> frozenset[Fingerprint]:
        """The sites of which a version has more than the pin."""
        if number not in self._there:
            data = self._data(number)
            there: Counter[Fingerprint] = Counter()
            if any(text in data for text in self._texts.values()):
                there = Counter(map(fingerprint, self._scanner.sites(self._path, data)))
            more = frozenset(each for each in self._texts if there[each] > self._known[each])
            self._there[number] = more
        return self._there[number]

    def _mark(self, data: bytes) -> tuple[object, ...]:
        """What tells the runs apart, of one version."""
        mark: list[object] = []
        for text, size in self._asked:
            if not text:
                return (data,)
            at = data.find(text)
            while at >= 0:
                mark.append(_around(data, at, size))
                at = data.find(text, at + len(text))
            mark.append(None)
        return tuple(mark)


def _needle(text: str) -> bytes:
    """A text that stands in every file with a site of this text; b"" where none is known."""
    pieces = [each for each in text[:SHOWN_TEXT].split(" ") if each.isascii() and "?" not in each]
    return max(pieces, key=len, default="").encode()


def _around(data: bytes, at: int, size: int) -> tuple[bytes, ...]:
    """The line of a place, as much behind it as `size` may take, and what it stands in."""
    begin = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    line = data[begin : end if end >= 0 else None]
    if size or line.lstrip().startswith(b"@"):  # a decorator is of what stands behind it
        line = b" ".join(data[begin : begin + 2 * size + _BEHIND].split())
    top = max(data.rfind(word, 0, begin) for word in (b"\nclass ", b"\ndef ", b"\nasync def "))
    inner = max(
        data.rfind(word, max(top, 0), begin) for word in (b"\n    def ", b"\n    async def ")
    )
    return line.strip(), _line_at(data, top), _line_at(data, inner)


def _line_at(data: bytes, at: int) -> bytes:
    return data[at + 1 : data.find(b"\n", at + 1)] if at >= 0 else b""


def _site_key(path: str, entry: TreeEntry) -> str:
    return f"{entry.oid} {path}"


def _is_list(answer: Any) -> bool:
    return isinstance(answer, list)


def _brought_on(line: frozenset[str]) -> Callable[[Any], bool]:
    """Whether the commits that were named are on the line: a branch may have been rewritten."""
    return lambda told: isinstance(told, list) and all(row[-1] in {*line, ""} for row in told)
