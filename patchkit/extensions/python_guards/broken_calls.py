"""Calls between components that upstream broke since the pin, and the commit that did it.

Compared are the upstream's own trees at the pin and at the tip, beside the other components as they
are patched: what was broken before is no news.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import memory_path, recall_as, remember
from patchkit.drift.describe import landed
from patchkit.extensions.python_guards.agreement import agreement_of, examine_module
from patchkit.extensions.python_guards.breaches import BrokenCall
from patchkit.extensions.python_guards.known_modules import (
    KnownModules,
    Partner,
    facts_of,
    known_modules,
)
from patchkit.extensions.python_guards.modules import Modules
from patchkit.gitcmd.first_parent import Landing, blobs_of
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import CommitId, TreeEntry
from patchkit.upstream.history import HistoryReader, tree_of

#: Raise it when the same history could come to something else.
_FORM = 2


def find_broken_contracts(
    along: HistoryReader,
    component: str,
    partners: Sequence[Partner],
    given: Collection[str],
    cache: Path,
) -> tuple[Finding, ...]:
    """The calls from or into `component` that fit at the pin and not at the tip.

    `partners` are the components that take part, itself included. What was found is kept below the
    cache folder, once the commit of each is known: a server that lacks a file today may have it
    tomorrow.
    """
    history = along.history
    line = [history.repository.source.url, history.pin, history.tip]
    absent = [sorted({other.name for other in each.declared.absent}) for each in partners]
    facts = [_FORM, component, *line, absent, facts_of(partners, given)]
    path = memory_path(cache, "broken-calls", facts)
    kept = recall_as(path, tuple[Finding, ...])
    if kept is None:
        with known_modules(cache, partners, given) as known:
            asked = (tuple(partners), tuple(sorted(given)), cache, known)
            kept = _found(_CallSearch(along, component, *asked))
        if all(each.by is not None for each in kept):
            remember(path, to_builtins(kept))
    return kept


def _found(looking: _CallSearch) -> tuple[Finding, ...]:
    along = looking.along
    now = list(looking.broken(along.history.tip))
    then = looking.broken(along.history.pin) if now else ()
    known = {_known_by(each) for each in then}
    return tuple(looking.told([each for each in now if _known_by(each) not in known]))


def _known_by(place: BrokenCall) -> tuple[str, ...]:
    """What stays of a broken call while its file changes around it."""
    return (place.breach.value, place.component, place.within, place.target, place.what)


class _CallSearch(Struct, frozen=True):
    """Looks for the commits that broke calls.

    `known` keeps each version of a file parsed once, `looked` what is broken in a module (the last
    two) with a version of one file (path, blob): several calls there may be broken.
    """

    along: HistoryReader  # reads the commits of the line
    component: str  # the one whose line it is
    partners: tuple[Partner, ...]
    given: tuple[str, ...]  # packages that are neither component nor requirement and are there
    cache: Path  # patchkit's cache folder
    known: KnownModules  # of earlier looks
    trees: dict[str, TreeView] = field(default_factory=dict)  # by commit
    looked: dict[tuple[str, str, str, str], frozenset[tuple[str, ...]]] = field(
        default_factory=dict
    )

    @property
    def own(self) -> Partner:
        return next(each for each in self.partners if each.name == self.component)

    def broken(self, commit: CommitId) -> Iterator[BrokenCall]:
        """The calls that touch the component and do not fit, and that nothing explains."""
        view = self._tree(commit)
        inside = (e for path, e in view.files().items() if self._is_inside(path))
        self.along.bring(blobs_of(inside))
        found = agreement_of(self.cache, self._with(view), self.given, self.known)
        for partner in self.partners:
            for place in found.found[partner.name].broken:
                reasons = (absent.name for absent in partner.declared.absent)
                touches = self.component in (place.component, place.provider)
                if touches and not any(fnmatchcase(place.target, name) for name in reasons):
                    yield place

    def _tree(self, commit: CommitId) -> TreeView:
        if commit not in self.trees:
            self.trees[commit] = TreeView(self.along.reader, tree_of(self.along.reader, commit))
        return self.trees[commit]

    def told(self, places: Sequence[BrokenCall]) -> Iterator[Finding]:
        """Broken calls, each with the commit that broke it, None where one file does not tell.

        One walk along the line for all of their files.
        """
        if not places:
            return
        history = self.along.history
        pinned = self._tree(history.pin)
        modules = Modules(pinned.files(), pinned.data, self.own.declared.root)
        paths = [self._path(each, modules) for each in places]
        found = history.landings(sorted({*paths} - {""}))
        self.along.bring(blobs_of(entry for each in found for entry in each.touches.values()))
        for place, path in zip(places, paths, strict=True):
            versions = [each for each in found if path in each.touches]
            broke = self._breaking(place, path, versions)
            yield Finding(
                Severity.WARNING,
                "contract-upstream",
                place.words,
                f"{place.component}: {place.place}",
                by=landed(history, broke.commit) if broke else None,
                about=f"{place.component} in {place.within}: {place.words}",
            )

    def _breaking(self, place: BrokenCall, path: str, found: Sequence[Landing]) -> Landing | None:
        """The version of a file from which on a call is broken."""
        tip = self._tree(self.along.history.tip)
        contents = self.along.contents(each.touches[path] for each in found)

        def is_broken(number: int) -> bool:
            entry = found[number].touches[path]
            key = path, entry.oid if entry is not None else "", place.component, place.path
            if key not in self.looked:
                data = contents.get(entry.oid) if entry is not None else None
                mixed = _OneFileOther(tip, path, entry, data)
                self.looked[key] = self._broken_in(place, mixed)
            return _known_by(place) in self.looked[key]

        return _first(found, is_broken)

    def _broken_in(self, place: BrokenCall, mixed: TreeView) -> frozenset[tuple[str, ...]]:
        """What is broken in the module that a place is in, with another version of one file."""
        partners = self._with(mixed)
        home = next(each for each in partners if each.name == place.component)
        looked = examine_module(partners, self.given, home, place.path, self.known)
        return frozenset(map(_known_by, looked.broken))

    def _with(self, view: TreeView) -> tuple[Partner, ...]:
        return tuple(
            replace(each, tree=view) if each.name == self.component else each
            for each in self.partners
        )

    def _path(self, place: BrokenCall, modules: Modules) -> str:
        """The file whose versions decide: the caller's, or the target's, of the pin's modules."""
        if place.component == self.component:
            return place.path
        parts = place.target.split(".")
        paths = (modules.path_of(".".join(parts[:end])) for end in range(len(parts), 0, -1))
        return next(filter(None, paths), "")

    def _is_inside(self, path: str) -> bool:
        declared = self.own.declared
        root = f"{declared.root}/" if declared.root else ""
        heads = tuple(f"{root}{each.replace('.', '/')}" for each in declared.packages)
        return path.endswith(".py") and any(
            path.startswith(f"{head}/") or path == f"{head}.py" for head in heads
        )


class _OneFileOther(TreeView):
    """A tree with another version of one file, or (None) without it."""

    def __init__(
        self, tree: TreeView, path: str, entry: TreeEntry | None, data: bytes | None
    ) -> None:
        super().__init__(tree.source, tree.oid)
        self._tree, self._path, self._data = tree, path, data
        self._files = {each: there for each, there in tree.files().items() if each != path}
        if entry is not None:
            self._files[path] = entry

    def data(self, path: str) -> bytes | None:
        """See TreeView."""
        return self._data if path == self._path else self._tree.data(path)


def _first(found: Sequence[Landing], is_broken: Callable[[int], bool]) -> Landing | None:
    """The first version from which on a call is broken, by halving; None if the last one is not."""
    low, high = -1, len(found) - 1
    if high < 0 or not is_broken(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_broken(middle) else (middle, high)
    return found[high]
