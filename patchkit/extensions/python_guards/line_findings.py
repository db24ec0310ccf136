"""What upstream changed without a conflict between the pin and a tip, each with the commit that did
it: calls between components that do not fit any more, and functions that another component replaces
and that are gone or otherwise.

Compared are the upstream's own trees, beside the other components as they are patched: what was
broken before is no news.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import TypeAlias
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

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
)
from patchkit.extensions.python_guards.modules import Modules, ParsedModules
from patchkit.extensions.python_guards.override_review import (
    as_it_was,
    standings,
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

#: Whether something is otherwise in a tree than in the pin's.
_Test: TypeAlias = Callable[[TreeView], bool]
#: A file of the pin's tree, and what is asked of the tree with another version of it.
Question: TypeAlias = tuple[str, _Test]


def _packages_at(
    along: HistoryReader, commit: CommitId, declared: Contracts | Overrides
) -> TreeView:
    """The upstream's tree at a commit; brings the files of the packages that are declared."""
    view = TreeView(along.reader, tree_of(along.reader, commit))
    root = f"{declared.root}/" if declared.root else ""
    heads = tuple(f"{root}{name.replace('.', '/')}/" for name in declared.packages)
    along.bring(
        blobs_of(
            entry
            for path, entry in view.files().items()
            if path.endswith(".py") and f"{path[:-3]}/".startswith(heads)
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
        for number, (home, ask) in enumerate(questions):
            if home == path and (first := first_with(versions, partial(_is_so, ask, tree))):
                by[number] = landed(along.history, first)
    return by


def _is_so(ask: _Test, tree: Callable[[VersionOnLine], TreeView], version: VersionOnLine) -> bool:
    return ask(tree(version))


class _OneFileOther(TreeView):
    """A tree with another version of one file."""

    def __init__(self, tree: TreeView, path: str, version: VersionOnLine) -> None:
        super().__init__(tree.source, tree.oid)
        self._tree, self._path, self._data = tree, path, version.data
        self._files = {**tree.files()}
        self._files.pop(path, None)
        if version.entry is not None:
            self._files[path] = version.entry

    def data(self, path: str) -> bytes | None:
        """See TreeView."""
        return self._data if path == self._path else self._tree.data(path)


# Calls between components.


def _known_by(place: UsePlace) -> tuple[str, ...]:
    """What stays of a broken call while its file changes around it."""
    return (place.breach.value, place.component, place.within, place.target, place.what)


class CallSearch(Struct, frozen=True):
    """Looks for calls from or into a component that fit at the pin and not at the tip."""

    along: HistoryReader
    component: str  # the one whose line it is
    partners: Sequence[Partner]  # the components that take part, itself included
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
        within = defaultdict[str, set[str]](set)
        for place in now:
            within[place.component].add(place.within)
        known = {_known_by(place) for place in self._broken(pinned, within)}
        places = [place for place in now if _known_by(place) not in known]
        modules = Modules(pinned.files(), pinned.data, own.root)

        @cache
        def broken(view: TreeView, home: str, path: str) -> set[tuple[str, ...]]:
            args = (self._with(view), self.given, home, path, self.known)
            return set(map(_known_by, examine_module(*args, within=within[home]).broken))

        def question(place: UsePlace) -> Question:
            def is_broken(view: TreeView) -> bool:
                return _known_by(place) in broken(view, place.component, place.path)

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
    along: HistoryReader, component: str, declared: Overrides, calls: Replacements
) -> Iterator[Finding]:
    """What `component` replaces and the tip has no more, or has otherwise than the pin."""
    history, parsed = along.history, ParsedModules()
    resolvers = WeakKeyDictionary[TreeView, Resolver]()

    def resolver(view: TreeView) -> Resolver:
        if view not in resolvers:
            modules = Modules(view.files(), view.data, declared.root, parsed=parsed)
            resolvers[view] = Resolver(modules)
        return resolvers[view]

    named = calls.below(declared.packages)
    pinned, tip = (_packages_at(along, each, declared) for each in (history.pin, history.tip))
    was, now = (standings(resolver(view), sorted(named)) for view in (pinned, tip))
    before = as_it_was(was, history.pin)
    verdicts = {name: verdict_on(now[name], before.get(name)) for name in was}
    moved = [name for name, verdict in verdicts.items() if verdict in _MOVED]
    worst = list(_MOVED)

    def question(name: str) -> Question:
        bad = worst[: worst.index(verdicts[name]) + 1]

        def is_moved(view: TreeView) -> bool:
            return verdict_on(standings(resolver(view), [name])[name], before[name]) in bad

        return was[name].place.partition(":")[0], is_moved

    for name, commit in zip(moved, since(along, pinned, [*map(question, moved)]), strict=True):
        verdict, here = verdicts[name], now[name]
        why = f": {here.why}" if here.why else ""
        yield Finding(
            Severity.NOTE if verdict is TargetVerdict.BODY else Severity.WARNING,
            f"override-{verdict.value}-upstream",
            f"{name}, which {component} replaces, {_MOVED[verdict]}{why}",
            lines=(
                *(f"replaced at {call.place}" for call in named[name]),
                f"at the pin {was[name].place}, now {here.place or 'nowhere'}",
            ),
            by=commit,
            about=f"{component} replaces {name}: {verdict.value}",
        )
