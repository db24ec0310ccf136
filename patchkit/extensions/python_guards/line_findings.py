"""What upstream changed without a conflict between the pin and a tip, each with the commit that did
it: calls between components that do not fit any more, and functions that another component replaces
and that are gone or otherwise.

Compared are the upstream's own trees, beside the other components as they are patched: what was
broken before is no news.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import memory_path, recall_as, remember
from patchkit.drift.describe import landed
from patchkit.extensions.python_guards.agreement import (
    examine_module,
    examine_partners,
)
from patchkit.extensions.python_guards.breaches import UsePlace
from patchkit.extensions.python_guards.guard_keys import Contracts, Overrides
from patchkit.extensions.python_guards.known_modules import (
    KnownModules,
    Partner,
    facts_of,
    known_modules,
)
from patchkit.extensions.python_guards.modules import Modules, ParsedModules
from patchkit.extensions.python_guards.override_review import (
    as_it_was,
    standings,
    survey,
    verdict_on,
)
from patchkit.extensions.python_guards.replacements import Replacements
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.first_parent import blobs_of
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.objects import CommitId
from patchkit.upstream.history import HistoryReader, VersionOnLine, first_with, tree_of

#: Raise it when the same history could come to something else.
_FORM = 4

#: Whether something is otherwise in a tree than in the pin's.
_Test: TypeAlias = Callable[[TreeView], bool]
#: A file of the pin's tree, and what is asked of the tree with another version of it.
Question: TypeAlias = tuple[str, _Test]


def known_or_found(
    cache: Path, along: HistoryReader, facts: object, find: Callable[[], Iterator[Finding]]
) -> tuple[Finding, ...]:
    """What was found along a line, kept below the cache folder once the commit of each is known: a
    server that lacks a file today may have it tomorrow.
    """
    history = along.history
    line = [history.repository.source.url, history.pin, history.tip]
    path = memory_path(cache, "line-findings", [_FORM, *line, facts])
    kept = recall_as(path, tuple[Finding, ...])
    if kept is None:
        kept = tuple(find())
        if all(each.by is not None for each in kept):
            remember(path, to_builtins(kept))
    return kept


def _packages_at(
    along: HistoryReader, commit: CommitId, declared: Contracts | Overrides
) -> TreeView:
    """The upstream's tree at a commit; brings the files of the packages that are declared."""
    view = TreeView(along.reader, tree_of(along.reader, commit))
    root = f"{declared.root}/" if declared.root else ""
    heads = tuple(f"{root}{each.replace('.', '/')}" for each in declared.packages)
    inside = tuple(f"{each}/" for each in heads), {f"{each}.py" for each in heads}
    along.bring(
        blobs_of(
            entry
            for path, entry in view.files().items()
            if path.endswith(".py") and (path.startswith(inside[0]) or path in inside[1])
        )
    )
    return view


def since(
    along: HistoryReader, pinned: TreeView, questions: Sequence[Question]
) -> list[Landed | None]:
    """For each question the commit after which it is so, None where one file does not tell."""
    by: list[Landed | None] = [None] * len(questions)
    for path, versions in along.versions({path for path, _ in questions} - {""}):
        tree = cache(partial(_OneFileOther, pinned, path))
        for number, (_, ask) in (q for q in enumerate(questions) if q[1][0] == path):
            first = first_with(versions, partial(_is_so, ask, tree))
            by[number] = None if first is None else landed(along.history, first)
    return by


def _is_so(ask: _Test, tree: Callable[[VersionOnLine], TreeView], version: VersionOnLine) -> bool:
    return ask(tree(version))


class _OneFileOther(TreeView):
    """A tree with another version of one file."""

    def __init__(self, tree: TreeView, path: str, version: VersionOnLine) -> None:
        super().__init__(tree.source, tree.oid)
        self._tree, self._path, self._data = tree, path, version.data
        self._files = {each: there for each, there in tree.files().items() if each != path}
        if version.entry is not None:
            self._files[path] = version.entry

    def data(self, path: str) -> bytes | None:
        """See TreeView."""
        return self._data if path == self._path else self._tree.data(path)


# Calls between components.


def find_broken_contracts(
    along: HistoryReader,
    component: str,
    partners: Sequence[Partner],
    given: Collection[str],
    cache: Path,
) -> tuple[Finding, ...]:
    """The calls from or into `component` that fit at the pin and not at the tip.

    `partners` are the components that take part, itself included.
    """
    absent = [sorted({other.name for other in each.declared.absent}) for each in partners]

    def find() -> Iterator[Finding]:
        with known_modules(cache, partners, given) as known:
            yield from _CallSearch(along, component, tuple(partners), given, known).found()

    return known_or_found(cache, along, [component, absent, facts_of(partners, given)], find)


def _known_by(place: UsePlace) -> tuple[str, ...]:
    """What stays of a broken call while its file changes around it."""
    return (place.breach.value, place.component, place.within, place.target, place.what)


class _CallSearch(Struct, frozen=True):
    """Looks for calls that do not fit, in the trees of a line; `known` keeps what was parsed."""

    along: HistoryReader
    component: str  # the one whose line it is
    partners: tuple[Partner, ...]
    given: Collection[str]  # packages that are neither component nor requirement and are there
    known: KnownModules  # of earlier looks

    def found(self) -> Iterator[Finding]:
        """What is broken at the tip and was not at the pin."""
        history = self.along.history
        own = next(each.declared for each in self.partners if each.name == self.component)
        now = self._broken(_packages_at(self.along, history.tip, own))
        if not now:
            return
        self.known.parsed.known.clear()  # of the pin's few modules are looked at
        pinned = _packages_at(self.along, history.pin, own)
        # what is broken is known by the name of the function or class around it
        within = {part.name: set[str]() for part in self.partners}
        for place in now:
            within[place.component].add(place.within)
        known = {_known_by(place) for place in self._broken(pinned, within)}
        places = [place for place in now if _known_by(place) not in known]
        modules = Modules(pinned.files(), pinned.data, own.root)
        looked: dict[tuple[TreeView, str, str], set[tuple[str, ...]]] = {}

        def question(place: UsePlace) -> Question:
            def is_broken(view: TreeView) -> bool:
                key = view, place.component, place.path
                if key not in looked:
                    partners = self._with(view)
                    home = next(each for each in partners if each.name == place.component)
                    args = (self.given, home, place.path, self.known)
                    found = examine_module(partners, *args, within=within[home.name])
                    looked[key] = set(map(_known_by, found.broken))
                return _known_by(place) in looked[key]

            return self._path(place, modules), is_broken

        by = since(self.along, pinned, [question(each) for each in places])
        for place, commit in zip(places, by, strict=True):
            yield Finding(
                Severity.WARNING,
                "contract-upstream",
                place.words,
                f"{place.component}: {place.place}",
                by=commit,
                about=f"{place.component} in {place.within}: {place.words}",
            )

    def _broken(
        self, view: TreeView, within: Mapping[str, Collection[str]] | None = None
    ) -> list[UsePlace]:
        """The calls that touch the component and do not fit, and that nothing explains; others than
        those `within` functions and classes of these names may be missing.
        """
        found = examine_partners(self._with(view), self.given, self.known, within)
        return [
            place
            for partner in self.partners
            for place in found[partner.name].broken
            if self.component in (place.component, place.provider)
            and not any(fnmatchcase(place.target, each.name) for each in partner.declared.absent)
        ]

    def _with(self, view: TreeView) -> tuple[Partner, ...]:
        return tuple(
            replace(each, tree=view) if each.name == self.component else each
            for each in self.partners
        )

    def _path(self, place: UsePlace, modules: Modules) -> str:
        """The file whose versions decide: the caller's, or the target's, of the pin's modules."""
        if place.component == self.component:
            return place.path
        parts = place.target.split(".")
        paths = (modules.path_of(".".join(parts[:end])) for end in range(len(parts), 0, -1))
        return next(filter(None, paths), "")


# Functions that are replaced: the replacement goes on to work on one that does something else, or
# on none.


#: What upstream did to a function that is replaced, the worst first.
_MOVED = {
    TargetVerdict.GONE: "is gone",
    TargetVerdict.SIGNATURE: "is called in another way",
    TargetVerdict.BODY: "does something else",
}


def find_moved_targets(
    along: HistoryReader, component: str, declared: Overrides, calls: Replacements, cache: Path
) -> tuple[Finding, ...]:
    """What `component` replaces and the tip has no more, or has otherwise than the pin."""
    named = {name: [call.place for call in sites] for name, sites in sorted(calls.targets.items())}
    facts = [component, repr(declared), named]
    return known_or_found(
        cache, along, facts, lambda: _moved_targets(along, component, declared, calls)
    )


def _moved_targets(
    along: HistoryReader, component: str, declared: Overrides, calls: Replacements
) -> Iterator[Finding]:
    history, parsed = along.history, ParsedModules()
    resolvers = WeakKeyDictionary[TreeView, Resolver]()

    def resolver(view: TreeView) -> Resolver:
        if view not in resolvers:
            modules = Modules(view.files(), view.data, declared.root, parsed=parsed)
            resolvers[view] = Resolver(modules)
        return resolvers[view]

    pinned, tip = (_packages_at(along, each, declared) for each in (history.pin, history.tip))
    was = standings(resolver(pinned), calls.below(declared.packages))
    reviewed = as_it_was(was, history.pin)
    found = survey(declared, calls, resolver(tip), reviewed, comparing=True)
    moved = [each for each in found.targets if each.verdict in _MOVED]
    worst = list(_MOVED)

    def question(name: str, verdict: TargetVerdict) -> Question:
        def is_moved(view: TreeView) -> bool:
            now = standings(resolver(view), [name])[name]
            return verdict_on(now, reviewed[name]) in worst[: worst.index(verdict) + 1]

        return was[name].place.partition(":")[0], is_moved

    by = since(along, pinned, [question(each.name, each.verdict) for each in moved])
    for target, commit in zip(moved, by, strict=True):
        verdict, what = target.verdict, _MOVED[target.verdict]
        why = f": {target.now.why}" if target.now.why else ""
        now = target.now.place or "nowhere"
        yield Finding(
            Severity.NOTE if verdict is TargetVerdict.BODY else Severity.WARNING,
            f"override-{verdict.value}-upstream",
            f"{target.name}, which {component} replaces, {what}{why}",
            lines=(
                *(f"replaced at {each.place}" for each in target.calls),
                f"at the pin {was[target.name].place}, now {now}",
            ),
            by=commit,
            about=f"{component} replaces {target.name}: {verdict.value}",
        )
