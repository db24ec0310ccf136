"""The modules of a manifest's components as one program: each that can be loaded looked at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import (
    ResultCache,
    code_digest,
    memory_path,
    read_as,
    recall_as,
    remember,
)
from patchkit.gitcmd.trees import TreeView
from patchkit.guards.contracts.breaches import (
    BrokenCall,
    ComponentAgreement,
    Examined,
    Explained,
    joined,
)
from patchkit.guards.contracts.contact import Contacts
from patchkit.guards.contracts.examiner import TOO_DEEP, Examiner
from patchkit.guards.contracts.traversal import (
    Conditions,
    Traversal,
    loaded_by,
)
from patchkit.manifest.values import Contracts, Location
from patchkit.python.inference import Values
from patchkit.python.modules import JoinedModules, Module, Modules, ParsedModules
from patchkit.python.resolve import Resolver
from patchkit.recipes.rule import Scope as Files

#: The code that decides what the same trees come to.
_CODE = ("guards/contracts", "python")


class Partner(Struct, frozen=True):
    """A component that takes part: its tree as patched, and what the manifest says of it."""

    name: str  # the component's
    tree: TreeView
    declared: Contracts  # what the manifest says of its calls


class Agreement(Struct, frozen=True):
    """What was found in each component; `modules` is how many were looked at."""

    found: Mapping[str, Examined]
    modules: Mapping[str, int]


#: So many answers about modules are kept that nobody asked for the last time, some 100 bytes each.
_SPARE = 20_000


class KnownModules(Struct, frozen=True):
    """Modules of trees that were looked at, for versions of them in which most files are the same.

    `answers` has what was found of single modules (None: nothing is kept), `trees` the last tree
    of each component, `parsed` all its modules by their contents.
    """

    answers: ResultCache | None = None
    trees: dict[str, tuple[TreeView, Modules]] = field(default_factory=dict)
    parsed: dict[str, ParsedModules] = field(default_factory=dict)

    def of(self, partner: Partner) -> Modules:
        """The modules of a component's tree."""
        name, tree = partner.name, partner.tree
        known = self.trees.get(name)
        if known is None or known[0] is not tree:
            parsed = self.parsed.setdefault(name, ParsedModules())
            modules = Modules(tree.files(), tree.data, partner.declared.root, name, parsed)
            self.trees[name] = known = (tree, modules)
        return known[1]

    def rest(self) -> bool:
        """Fold what was parsed, if it is much; then no node of a function's body may be held."""
        folded = [each.rest() for each in self.parsed.values()]
        return any(folded)


#: Held by whoever looks: the answers of one serve the next, and memory has the trees of one look.
_LOOKING = Lock()


@contextmanager
def known_modules(
    cache: Path, partners: Sequence[Partner], given: Collection[str]
) -> Iterator[KnownModules]:
    """What earlier looks found of single modules, kept below the cache folder."""
    facts = ["modules", *_facts(partners, given)]
    with _LOOKING:
        answers = ResultCache(memory_path(cache, "contracts", facts), _SPARE)
        try:
            yield KnownModules(answers)
        finally:
            answers.close()


def agreement_of(
    cache: Path,
    partners: Sequence[Partner],
    given: Collection[str],
    known: KnownModules | None = None,
) -> Agreement:
    """See `examine_partners`; kept below the cache folder, since it follows from the trees."""
    path = memory_path(cache, "contracts", facts_of(partners, given))
    kept = recall_as(path, Agreement)
    if kept is None:
        with known_modules(cache, partners, given) if known is None else nullcontext(known) as each:
            kept = examine_partners(partners, given, each)
        remember(path, to_builtins(kept))
    return kept


_NOWHERE = Location(Path(), 0)


def facts_of(partners: Sequence[Partner], given: Collection[str]) -> list[Any]:
    """All that an agreement follows from, for the name of a file that keeps it."""
    return [*_facts(partners, given), [each.tree.oid for each in partners]]


def _facts(partners: Sequence[Partner], given: Collection[str]) -> list[Any]:
    """The same without the trees."""
    facts = [[each.name, repr(_told(each.declared))] for each in partners]
    version = list(sys.version_info[:2])  # the syntax that can be read
    return [code_digest(*_CODE), version, facts, sorted(given)]


def _told(declared: Contracts) -> Contracts:
    """What an answer follows from: not the places in the manifest, nor what is explained."""
    calls = tuple(replace(each, where=_NOWHERE) for each in declared.calls)
    return replace(declared, calls=calls, absent=(), where=_NOWHERE)


def explain(
    declared: Contracts, found: Examined, modules: int, manifest: Path
) -> ComponentAgreement:
    """Take out what the manifest explains, and name explanations in it that nothing needs.

    Those of a part that several manifests share may be for another one of them.
    """
    broken: list[BrokenCall] = []
    explained: list[Explained] = []
    used: set[int] = set()
    for place in found.broken:
        number = next(
            (n for n, each in enumerate(declared.absent) if fnmatchcase(place.target, each.name)),
            None,
        )
        if number is None:
            broken.append(place)
        else:
            used.add(number)
            explained.append(Explained(place, declared.absent[number].reason))
    return ComponentAgreement(
        replace(found, broken=tuple(broken)),
        modules,
        tuple(explained),
        tuple(
            each
            for n, each in enumerate(declared.absent)
            if n not in used and each.where.file.resolve() == manifest.resolve()
        ),
        tuple(each for n, each in enumerate(declared.calls) if n not in found.used),
    )


def examine_partners(
    partners: Sequence[Partner], given: Collection[str], known: KnownModules | None = None
) -> Agreement:
    """Look at every module that the entries load, or at all where no component has entries.

    `given` are the first names of packages that requirements bring; with entries, imports of others
    are told.
    """
    together = _Together.of(partners, given, known or KnownModules())
    everything = list(_all_modules(partners, together.trees))
    globs = [glob for each in partners for glob in each.declared.entries]
    names = list(dict.fromkeys(name for name, _ in everything))
    entries = [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]
    loaded = list(together.loaded(entries if globs else names))
    for name in loaded:
        together.load(name)
    parts: dict[str, list[Examined]] = {each.name: [] for each in partners}
    contacts = together.contacts(everything)
    for name in loaded:
        home = together.home(name)
        calls = together.is_declared(name) or contacts.may_lead_out(home, name)
        parts[home].append(together.examine(name, calls=calls))
    return Agreement(
        {name: joined(found) for name, found in parts.items()},
        {name: len(found) for name, found in parts.items()},
    )


def examine_module(
    partners: Sequence[Partner], given: Collection[str], tree: str, name: str, known: KnownModules
) -> Examined:
    """Look at one module of one component; nothing is found if it is not there."""
    together = _Together.of(partners, given, known)
    if not together.modules.path_of(name) or together.home(name) != tree:
        return Examined()
    together.load(name)
    return together.examine(name)


#: So many answers are kept about one version of a module, for what it leads to differs.
_ANSWERS = 6

#: An answer that JSON can hold, and whether it is good for another run.
_Found = tuple[Any, bool]


class _ModuleAnswers(Struct, frozen=True):
    """What was found of single modules, by their contents.

    Invariant: an answer follows from the text of its module, from what the manifest says (the
    key of the cache), and from what stands at the names that were asked for on the way to it:
    which file of which tree, with what contents, and what modules that were loaded have given to
    the one there. With each answer is a digest of that, over these names; it holds where the
    digest is the same.
    """

    modules: JoinedModules  # of all components
    trees: Mapping[str, TreeView]  # by component
    answers: ResultCache | None  # None: nothing is kept
    given: dict[str, str] = field(default_factory=dict)  # to a module, by others: what, by which
    known: dict[str, str] = field(default_factory=dict)  # name -> what stands there

    def of(self, question: str, name: str, find: Callable[[], _Found]) -> Any:
        """The answer to a question about a module, kept or found."""
        if self.answers is None:
            return find()[0]
        asked = f"{question} {name} {self._standing(name)}"
        rows = self.answers.known(asked) or []
        for names, digest, answer in rows:
            if self._digest(names) == digest:
                return answer
        self.modules.asked.clear()
        answer, is_good = find()
        names = sorted(each for each in self.modules.asked if self.modules.may_have(each))
        if is_good and not any(map(self.modules.is_lacking, (name, *names))):
            row = [names, self._digest(names), answer]
            self.answers.note(asked, [row, *rows[: _ANSWERS - 1]])
        return answer

    def note_given(self, giver: str, given: Iterable[tuple[str, str]]) -> None:
        """A module has given something to others, from now on."""
        for home, what in given:
            row = f"{what} {giver} {self._standing(giver)}"
            self.given[home] = f"{self.given.get(home, '')}\n{row}"

    def _digest(self, names: Sequence[str]) -> str:
        rows = (f"{self._standing(each)} {self.given.get(each, '')}" for each in names)
        return sha256("\0".join(rows).encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def _standing(self, name: str) -> str:
        """The file that is a module: its tree, path and blob; or a folder, or nothing."""
        if name not in self.known:
            path, home = self.modules.path_of(name), self.modules.home(name)
            there = repr(path)
            if home is not None and path:
                there = f"{home.tree} {path} {self.trees[home.tree].files()[path]}"
            self.known[name] = there
        return self.known[name]


class _Together(Struct, frozen=True):
    """The modules of all components as one program, and who looks at those of each."""

    trees: Mapping[str, Modules]  # component -> its modules
    modules: JoinedModules  # of all components
    resolver: Resolver
    traversal: Traversal
    examiners: Mapping[str, Examiner]  # by component
    answers: _ModuleAnswers  # of earlier looks
    known: KnownModules

    @classmethod
    def of(
        cls, partners: Sequence[Partner], given: Collection[str], known: KnownModules
    ) -> _Together:
        trees = {each.name: known.of(each) for each in partners}
        modules = JoinedModules([(trees[each.name], each.declared.packages) for each in partners])
        values = Values(Resolver(modules))
        assume = {each.name: _assumed(each.declared) for each in partners}
        traversal = Traversal(Conditions(values, assume))
        told = any(each.declared.entries for each in partners)
        examiners = {
            each.name: Examiner(
                each.name,
                modules,
                values,
                traversal,
                each.declared.calls,
                {*given, *each.declared.outside} if told else None,
            )
            for each in partners
        }
        views = {each.name: each.tree for each in partners}
        answers = _ModuleAnswers(modules, views, known.answers)
        return cls(trees, modules, values.resolver, traversal, examiners, answers, known)

    def home(self, name: str) -> str:
        """The component of a module that is there."""
        home = self.modules.home(name)
        assert home is not None
        return home.tree

    def loaded(self, entries: Collection[str]) -> Iterator[str]:
        """The names of the modules that entries load, with themselves."""
        seen = dict.fromkeys(entries)
        queue = list(seen)
        for name in queue:  # grows while it is walked
            if not self.modules.path_of(name):
                continue
            yield name
            for each in self.answers.of("loads", name, partial(self._imports, name)):
                if each not in seen and self.modules.path_of(each) is not None:
                    seen[each] = None
                    queue.append(each)

    def load(self, name: str) -> None:
        """Note what a module has given to others."""
        if self.answers.of("gives", name, partial(self._gives, name)):
            self.answers.note_given(name, self.resolver.load(self._module(name)))

    def contacts(self, everything: Iterable[tuple[str, str]]) -> Contacts:
        """Which of all modules, each with its component, may lead to another component."""
        known, rebound = self.answers, self.resolver.rebound
        seen = (self.modules, rebound, everything)
        return Contacts.of(known.trees, self.trees, *seen, answers=known.answers)

    def is_declared(self, name: str) -> bool:
        """Whether the manifest may say what calls in a module lead to."""
        path = str(self.modules.path_of(name))
        declared = self.examiners[self.home(name)].calls
        return any(Files(each.files).covers(path) for each in declared)

    def examine(self, name: str, *, calls: bool = True) -> Examined:
        """Everything that a module uses of other components, or what it imports alone."""
        question = "uses" if calls else "imports"
        answer = self.answers.of(question, name, partial(self._uses, name, calls=calls))
        found = read_as(answer, Examined)
        assert found is not None
        return found

    def _module(self, name: str) -> Module:
        """A module to look at, when what was followed from those before is forgotten."""
        self.traversal.conditions.values.forget(nodes=self.known.rest())
        module = self.modules.module(name)
        assert module is not None
        return module

    def _imports(self, name: str) -> _Found:
        """The names that may be modules which a module loads."""
        module, names, whole = self._module(name), dict[str, None](), False
        with suppress(RecursionError):  # the examiner tells it
            for statement in self.traversal.imports(module):
                names |= dict.fromkeys(loaded_by(module, statement))
            whole = True
        return list(names), whole

    def _gives(self, name: str) -> _Found:
        """Whether a module gives something to others, when all before it are loaded."""
        return self.resolver.gives(self._module(name)), True

    def _uses(self, name: str, *, calls: bool) -> _Found:
        found = self.examiners[self.home(name)].examine(self._module(name), calls=calls)
        return to_builtins(found), all(each.why != TOO_DEEP for each in found.open)


def _assumed(declared: Contracts) -> Mapping[str, bool]:
    return {**dict.fromkeys(declared.holds, True), **dict.fromkeys(declared.fails, False)}


def _all_modules(
    partners: Sequence[Partner], trees: Mapping[str, Modules]
) -> Iterator[tuple[str, str]]:
    """Every module of the components' packages, with its component."""
    for partner in partners:
        for path in sorted(partner.tree.files()):
            name = trees[partner.name].name_of(path)
            packages = partner.declared.packages
            if path.endswith(".py") and any(f"{name}.".startswith(f"{p}.") for p in packages):
                yield name, partner.name
