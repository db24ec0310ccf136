"""Each call bound to the signature that it finds; for a manifest, each module that can be loaded
looked at once.

A place is reported as broken only if everything that it can mean does not fit; where one of the
meanings is not known, neither is the place.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import filter as matching
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import (
    memory_path,
    read_as,
    recall_as,
    remember,
)
from patchkit.extensions.python_guards.breaches import (
    Breach,
    ComponentContracts,
    Examined,
    UsePlace,
    idle_entries,
    joined,
)
from patchkit.extensions.python_guards.callables import (
    Called,
    arguments_of,
    crossed,
    how_called,
    misfits,
    signature_text,
)
from patchkit.extensions.python_guards.contact import Contacts
from patchkit.extensions.python_guards.guard_keys import Contracts, DeclaredCall
from patchkit.extensions.python_guards.inference import Bound, Instance, Unknown, Value, Values
from patchkit.extensions.python_guards.known_modules import (
    FoundAnswer,
    KnownModules,
    ModuleAnswers,
    Partner,
    facts_of,
    known_modules,
)
from patchkit.extensions.python_guards.modules import (
    Imported,
    JoinedModules,
    Module,
    Modules,
    ParsedModules,
)
from patchkit.extensions.python_guards.resolve import Absent, Code, Inherited, Outside, Resolver
from patchkit.extensions.python_guards.traversal import (
    CodeUse,
    Conditions,
    Traversal,
    UseSpot,
    absolute_name,
    loaded_by,
)
from patchkit.manifest.globs import Scope as Files

_NO_IMPORT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_NO_NAME = frozenset({"AttributeError", *_NO_IMPORT})
#: Who asks for a version has a reason to call in another way.
_VERSIONED = "a test of a version or signature decides whether it runs"
_NO_FIT = frozenset({"TypeError"})
#: Why nothing is known of the rest of a module.
_UNREAD = "what comes from here on cannot be parsed, or is nested too deeply"


class Examiner(Struct):
    """Looks at modules of the component `tree`.

    `given` are globs of first names of modules that come from elsewhere; None: imports of packages
    that no component gives are not judged. `calls` are declared receivers.
    """

    tree: str
    modules: JoinedModules
    values: Values
    traversal: Traversal
    calls: Sequence[DeclaredCall] = ()
    given: Collection[str] | None = None
    _path: str = ""  # of the module that is looked at
    _broken: list[UsePlace] = []
    _open: list[UsePlace] = []
    _bound: int = 0
    _used: set[int] = set()

    def examine(
        self, module: Module, *, calls: bool = True, within: Collection[str] | None = None
    ) -> Examined:
        """Everything that a module uses of other components, or what it imports alone; with
        `within` only in functions and classes of these dotted names, and around them.

        It follows from the module and from what it leads to alone, whatever was examined before.
        """
        self._path = module.path
        self._broken, self._open, self._bound, self._used = [], [], 0, set()
        left: list[str] = []
        try:
            for found in self.traversal.walk(module, calls=calls, within=within):
                match found.node:
                    case ast.Import() | ast.ImportFrom():
                        self._import(module, found)
                    case ast.Call() as call:
                        self._call(call, found.spot)
                    case ast.Attribute() as name:
                        self._name(name, found.spot)
        except RecursionError:
            left.append(_UNREAD)
        for why in filter(None, (*left, module.problem)):
            place = (module.path, 1, "", module.name)
            self._open.append(UsePlace(Breach.OPEN, self.tree, *place, why))
        return Examined(
            broken=tuple(self._broken),
            open=tuple(self._open),
            bound=self._bound,
            used=tuple(sorted(self._used)),
        )

    # -- imports -------------------------------------------------------------------------------

    def _import(self, module: Module, found: CodeUse) -> None:
        if found.spot.caught & _NO_IMPORT:
            return
        if isinstance(found.node, ast.Import):
            for alias in found.node.names:
                self._module(found, alias.name)
            return
        assert isinstance(found.node, ast.ImportFrom)
        name = absolute_name(module, found.node)
        if not name or not self._module(found, name):
            return
        home = self.modules.home(name)
        if home is not None and home.tree == self.tree:
            return
        for alias in found.node.names:
            things = list(self.values.resolver.imported(module, Imported(name, alias.name, 0)))
            if alias.name != "*" and all(isinstance(each, Absent) for each in things):
                inner = self.modules.home(f"{name}.{alias.name}")
                if things and inner is None:
                    provider = home.tree if home is not None else ""
                    what = f"{name} has no {alias.name}"
                    self._tell(Breach.NAME, found, f"{name}.{alias.name}", what, provider)

    def _module(self, found: CodeUse, name: str) -> bool:
        """Whether a module that is imported belongs to a component and is there."""
        if self.modules.path_of(name) is not None:
            return True
        # the component that has the package which the missing module would be in
        provider = self.modules.tree_around(name.rpartition(".")[0])
        if not provider:
            self._package(found, name)
        elif provider != self.tree:
            what = f"there is no module {name}"
            self._tell(Breach.MODULE, found, name, what, provider)
        return False

    def _package(self, found: CodeUse, name: str) -> None:
        """A package that no component gives."""
        first = name.partition(".")[0]
        if self.modules.path_of(first) is not None:  # a namespace of several distributions
            first = ".".join(name.split(".")[:2])
        known = self.given is None or first in sys.stdlib_module_names
        if not known and not any(fnmatchcase(first, glob) for glob in self.given or ()):
            what = f"no component or requirement provides {first}"
            self._tell(Breach.PACKAGE, found, first, what)

    def _tell(  # noqa: PLR0917
        self,
        breach: Breach,
        found: CodeUse,
        target: str,
        what: str,
        provider: str = "",
        defined: str = "",
        signature: str = "",
    ) -> None:
        place = (self.tree, self._path, found.node.lineno, found.spot.within, target)
        if found.spot.versioned:
            self._open.append(UsePlace(Breach.OPEN, *place, f"{what}; {_VERSIONED}"))
        else:
            self._broken.append(UsePlace(breach, *place, what, provider, defined, signature))

    # -- names ---------------------------------------------------------------------------------

    def _name(self, node: ast.Attribute, spot: UseSpot, *, called: bool = False) -> None:
        """A name that a module of another component has not, or of what is `called`, an object."""
        name = node.attr
        if spot.caught & _NO_NAME or name in spot.asked or name.startswith("__"):
            return  # the loader gives modules some by itself
        dotted = _is_dotted(node.value)
        bases = self.values.of(spot.scope, node.value) if dotted or called else ()
        owners = [self._foreign_owner(base, dotted=dotted, called=called) for base in bases]
        if not owners or owners[0] is None or None in owners:
            return
        found = [each for base in bases for each in self.values.member(base, name)]
        if found and all(isinstance(each, Absent) for each in found):
            place, tree = owners[0]
            what = f"{place} has no {name}"
            self._tell(Breach.NAME, CodeUse(node, spot), f"{place}.{name}", what, tree)

    def _foreign_owner(self, base: Value, *, dotted: bool, called: bool) -> tuple[str, str] | None:
        """The dotted name and the tree of what has its names in another component."""
        match base:
            case Module(name=name, path=path, tree=tree) if path and dotted:
                return (name, tree) if tree != self.tree else None
            case Instance(owner=Code(module=home) as owner, exact=True) if called:
                name = f"{home.name}.{owner.qualified}"
                return (name, home.tree) if home.tree != self.tree else None
        return None

    # -- calls ---------------------------------------------------------------------------------

    def _call(self, call: ast.Call, spot: UseSpot) -> None:
        declared = self._declared(call)
        if not declared and isinstance(call.func, ast.Attribute):
            self._name(call.func, spot, called=True)
        found = declared or self.values.of(spot.scope, call.func)
        called = [how_called(self.values, each) for each in found]
        foreign = [e for e in called if isinstance(e, Called) and e.tree != self.tree]
        opaque = [
            (value, each)
            for value, each in zip(found, called, strict=True)
            if isinstance(each, Unknown) and not isinstance(value, Absent | Outside)
        ]
        if not foreign:
            told = [each for value, each in opaque if self._leads_out(value)]
            if told:
                self._leave_open(call, spot, told[0].why)
            return
        if opaque:
            self._leave_open(call, spot, opaque[0][1].why)
        elif len(foreign) == len(called):
            self._bind(call, spot, foreign)
        else:
            self._bound += 1

    def _leads_out(self, value: Value) -> bool:
        """Whether a value is something of another component."""
        match value:
            case Bound(function=function):
                return self._leads_out(function)
            case (
                Code(module=home)
                | Instance(owner=Code(module=home))
                | Inherited(owner=Code(module=home))
            ):
                return home.tree != self.tree
        return False

    def _bind(self, call: ast.Call, spot: UseSpot, targets: Sequence[Called]) -> None:
        given = arguments_of(call)
        wrong = [list(misfits(each.signature, given)) for each in targets]
        mixed = [list(crossed(each.signature, given)) for each in targets]
        target, told = targets[0], "; ".join(wrong[0]) or ", ".join(mixed[0])
        if not all(map(any, zip(wrong, mixed, strict=True))) or spot.caught & _NO_FIT:
            self._bound += 1
            return
        breach = Breach.ARGUMENTS if wrong[0] else Breach.CROSSED
        where, taken = target.place, signature_text(target.signature)
        self._tell(breach, CodeUse(call, spot), target.name, told, target.tree, where, taken)

    def _leave_open(self, call: ast.Call, spot: UseSpot, why: str) -> None:
        place = (self._path, call.lineno, spot.within, ast.unparse(call.func))
        self._open.append(UsePlace(Breach.OPEN, self.tree, *place, why))

    def _declared(self, call: ast.Call) -> tuple[Value, ...]:
        """What the manifest says that a call leads to, () if nothing."""
        for number, declared in enumerate(self.calls):
            if Files(declared.files).covers(self._path) and ast.unparse(call.func) == declared.call:
                self._used.add(number)
                return tuple(_as_called(each) for each in self.values.resolver.resolve(declared.to))
        return ()


def _as_called(thing: Value) -> Value:
    """A method that a manifest names, as it is called on an object."""
    if isinstance(thing, Code) and thing.owner and not isinstance(thing.node, ast.ClassDef):
        return Bound(thing)
    return thing


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


# All modules of a manifest, each of which is looked at once.


#: What was found in each component.
Agreement: TypeAlias = Mapping[str, Examined]


def agreement_of(
    cache: Path,
    partners: Sequence[Partner],
    given: Collection[str],
) -> Agreement:
    """See `examine_partners`; kept below the cache folder, since it follows from the trees."""
    trees = [partner.tree.oid for partner in partners]
    path = memory_path(cache, "contracts", [*facts_of(partners, given), trees])
    kept: Agreement | None = recall_as(path, dict[str, Examined])
    if kept is None:
        with known_modules(cache, partners, given) as known:
            kept = examine_partners(partners, given, known)
        remember(path, to_builtins(kept))
    return kept


def explain(
    declared: Contracts, found: Examined, component: str, manifest: Path
) -> ComponentContracts:
    """Take out what the manifest explains, and name explanations in it that nothing needs.

    Those of a part that several manifests share may be for another one of them.
    """
    place_of = (str(declared.where.file), declared.where.line)
    idle = (
        UsePlace(Breach.IDLE, component, *place_of, "", name, "names no module")
        for name in found.idle
    )
    broken: list[UsePlace] = []
    explained: list[UsePlace] = []
    unused = list(declared.absent)
    for place in (*found.broken, *idle):
        by = next((e for e in declared.absent if fnmatchcase(place.target, e.name)), None)
        if by is None:
            broken.append(place)
        else:
            unused = [each for each in unused if each is not by]
            explained.append(replace(place, reason=by.reason))
    unmatched = (each for n, each in enumerate(declared.calls) if n not in found.used)
    own = (each for each in unused if each.where.file.resolve() == manifest.resolve())
    return ComponentContracts(
        component=component,
        modules=found.modules,
        bound=found.bound,
        broken=tuple(broken),
        explained=tuple(explained),
        open=found.open,
        findings=tuple(idle_entries(unmatched, own)),
    )


def examine_partners(
    partners: Sequence[Partner],
    given: Collection[str],
    known: KnownModules,
    within: Mapping[str, Collection[str]] | None = None,
) -> Agreement:
    """Look at every module that the entries load, or at all where no component has entries.

    `given` are the first names of packages that requirements bring; with entries, imports of others
    are reported. `within` limits the search, by component, to functions and classes of these dotted
    names; modules without any of them are skipped.
    """
    together = _Together.of(partners, given, known)
    names_of = {
        partner.name: _all_modules(partner, together.trees[partner.name]) for partner in partners
    }
    globs = [glob for each in partners for glob in each.declared.entries]
    names = list(dict.fromkeys(chain.from_iterable(names_of.values())))
    entries = [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]
    loaded = list(together.loaded(entries if globs else names))
    for name in loaded:
        together.load(name)
    parts: dict[str, list[Examined]] = {each.name: [] for each in partners}
    contacts = together.contacts(names_of)
    for name in loaded:
        home = together.home(name)
        inside = within.get(home, ()) if within is not None else None
        if inside is not None and not together.may_define(name, inside):
            continue
        # a few functions are looked at sooner than it is found whether they lead anywhere
        calls = bool(inside) or together.is_declared(name) or contacts.may_lead_out(home, name)
        parts[home].append(together.examine(name, calls=calls, within=inside))
    dotted = [f"{name}." for name in names]

    def idle(declared: Contracts) -> tuple[str, ...]:
        words = (*declared.packages, *declared.entries)
        return tuple(word for word in words if not matching(dotted, f"{word}.*"))

    return {each.name: joined(parts[each.name], idle(each.declared)) for each in partners}


def examine_module(
    partners: Sequence[Partner],
    given: Collection[str],
    home: str,
    path: str,
    known: KnownModules,
    *,
    within: Collection[str],
) -> Examined:
    """Look at functions and classes in one file of the component `home`, by their dotted names;
    nothing is found if it is not there.
    """
    together = _Together.of(partners, given, known)
    name = together.trees[home].name_of(path)
    if not together.modules.path_of(name) or together.home(name) != home:
        return Examined()
    together.load(name)
    return together.examine(name, within=within)


class _Together(Struct, frozen=True):
    """The modules of all components as one program, and who looks at those of each."""

    trees: Mapping[str, Modules]  # component -> its modules
    modules: JoinedModules  # of all components
    resolver: Resolver
    traversal: Traversal
    examiners: Mapping[str, Examiner]  # by component
    answers: ModuleAnswers  # of earlier looks
    parsed: ParsedModules  # their modules

    @classmethod
    def of(
        cls, partners: Sequence[Partner], given: Collection[str], known: KnownModules
    ) -> _Together:
        trees = {each.name: known.of(each) for each in partners}
        modules = JoinedModules([(trees[each.name], each.declared.packages) for each in partners])
        values = Values(Resolver(modules))
        assume = {
            partner.name: dict.fromkeys(partner.declared.holds, True)
            | dict.fromkeys(partner.declared.fails, False)
            for partner in partners
        }
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
        answers = ModuleAnswers(modules, views, known.answers)
        return cls(trees, modules, values.resolver, traversal, examiners, answers, known.parsed)

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

    def may_define(self, name: str, within: Collection[str]) -> bool:
        """Whether one of these functions and classes may be in a module, by its text."""
        text = self.answers.trees[self.home(name)].data(str(self.modules.path_of(name))) or b""
        # beyond ASCII a name may be spelled in another way
        names = (dotted.encode().split(b".") for dotted in within)
        return not text.isascii() or any(all(part in text for part in parts) for parts in names)

    def load(self, name: str) -> None:
        """Note what a module has given to others."""
        if self.answers.of("gives", name, partial(self._gives, name)):
            self.answers.note_given(name, self.resolver.load(self._module(name)))

    def contacts(self, names: Mapping[str, Sequence[str]]) -> Contacts:
        """Which of all modules, by component, may lead to another component."""
        known, rebound = self.answers, self.resolver.rebound
        return Contacts(known.trees, self.trees, self.modules, names, rebound, known.answers)

    def is_declared(self, name: str) -> bool:
        """Whether the manifest may say what calls in a module lead to."""
        path = str(self.modules.path_of(name))
        declared = self.examiners[self.home(name)].calls
        return any(Files(each.files).covers(path) for each in declared)

    def examine(
        self, name: str, *, calls: bool = True, within: Collection[str] | None = None
    ) -> Examined:
        """See `Examiner`; what was found in the whole module at another time is as good."""
        question = "uses" if calls else "imports"
        answer = self.answers.of(question, name, partial(self._uses, name, calls, within))
        found = read_as(answer, Examined)
        assert found is not None
        return found

    def _module(self, name: str) -> Module:
        """A module to look at, when what was followed from those before is forgotten."""
        self.traversal.conditions.values.forget(nodes=self.parsed.rest())
        module = self.modules.module(name)
        assert module is not None
        return module

    def _imports(self, name: str) -> FoundAnswer:
        """The names that may be modules which a module loads."""
        module, names, whole = self._module(name), dict[str, None](), False
        with suppress(RecursionError):  # the examiner tells it
            for statement in self.traversal.imports(module):
                names |= dict.fromkeys(loaded_by(module, statement))
            whole = True
        return list(names), whole

    def _gives(self, name: str) -> FoundAnswer:
        """Whether a module gives something to others, when all before it are loaded."""
        return self.resolver.gives(self._module(name)), True

    def _uses(self, name: str, calls: bool, within: Collection[str] | None) -> FoundAnswer:
        examiner = self.examiners[self.home(name)]
        found = examiner.examine(self._module(name), calls=calls, within=within)
        is_whole = within is None and all(place.what != _UNREAD for place in found.open)
        return to_builtins(found), is_whole


def _all_modules(partner: Partner, modules: Modules) -> list[str]:
    """Every module of a component's packages."""
    names = (modules.name_of(path) for path in sorted(partner.tree.files()) if path.endswith(".py"))
    heads = tuple(f"{package}." for package in partner.declared.packages)
    return [name for name in names if f"{name}.".startswith(heads)]
