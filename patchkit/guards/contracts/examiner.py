"""One module's uses of other components, each bound to what it finds there.

A place is reported as broken only if everything that it can mean does not fit; where one of the
meanings is not known, neither is the place.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, field

from patchkit.guards.contracts.breaches import Breach, BrokenCall, Examined, OpenCall
from patchkit.guards.contracts.traversal import CodeUse, Traversal, UseSpot, absolute_name
from patchkit.manifest.values import DeclaredCall
from patchkit.python.callables import (
    Arguments,
    Called,
    CallFault,
    CallMismatch,
    Opaque,
    accepts,
    arguments_of,
    how_called,
    mismatches,
)
from patchkit.python.inference import Bound, Instance, Value, Values
from patchkit.python.modules import Imported, JoinedModules, Module
from patchkit.python.resolve import Absent, Code, Inherited, Outside
from patchkit.recipes.rule import Scope as Files

_NO_IMPORT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_NO_NAME = frozenset({"AttributeError", *_NO_IMPORT})
#: Who asks for a version has a reason to call in another way.
_VERSIONED = "a test of a version or signature decides whether it runs"
_NO_FIT = frozenset({"TypeError"})
#: Why nothing is known of the rest of a module.
TOO_DEEP = "what comes from here on is nested too deeply"


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
    _broken: list[BrokenCall] = field(default_factory=list)
    _open: list[OpenCall] = field(default_factory=list)
    _bound: int = 0
    _used: set[int] = field(default_factory=set)

    def examine(self, module: Module, *, calls: bool = True) -> Examined:
        """Everything that a module uses of other components, or what it imports alone.

        It follows from the module and from what it leads to alone, whatever was examined before.
        """
        self._broken, self._open, self._bound, self._used = [], [], 0, set()
        try:
            for found in self.traversal.walk(module, calls=calls):
                match found.node:
                    case ast.Import() | ast.ImportFrom():
                        self._import(module, found)
                    case ast.Call() as call:
                        self._call(module, call, found.spot)
                    case ast.Attribute() as name:
                        self._name(module, name, found.spot)
        except RecursionError:
            self._open.append(OpenCall(module.path, 1, "", module.name, TOO_DEEP))
        if module.problem:
            self._open.append(OpenCall(module.path, 1, "", module.name, module.problem))
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
                self._module(module, found, alias.name)
            return
        assert isinstance(found.node, ast.ImportFrom)
        name = absolute_name(module, found.node)
        if not name or not self._module(module, found, name):
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
                    self._tell(Breach.NAME, module, found, f"{name}.{alias.name}", what, provider)

    def _module(self, module: Module, found: CodeUse, name: str) -> bool:
        """Whether a module that is imported belongs to a component and is there."""
        if self.modules.path_of(name) is not None:
            return True
        provider = self._nearest(name)
        if not provider:
            self._package(module, found, name)
        elif provider != self.tree:
            what = f"there is no module {name}"
            self._tell(Breach.MODULE, module, found, name, what, provider)
        return False

    def _package(self, module: Module, found: CodeUse, name: str) -> None:
        """A package that no component gives."""
        first = name.partition(".")[0]
        if self.modules.path_of(first) is not None:  # a namespace of several distributions
            first = ".".join(name.split(".")[:2])
        known = self.given is None or first in sys.stdlib_module_names
        if not known and not any(fnmatchcase(first, glob) for glob in self.given or ()):
            what = f"no component or requirement provides {first}"
            self._tell(Breach.PACKAGE, module, found, first, what, "")

    def _nearest(self, name: str) -> str:
        """The component that has the package which a missing module would be in."""
        return self.modules.tree_around(name.rpartition(".")[0])

    def _tell(  # noqa: PLR0917
        self,
        breach: Breach,
        module: Module,
        found: CodeUse,
        target: str,
        what: str,
        provider: str,
    ) -> None:
        place = (module.path, found.node.lineno, found.spot.within)
        if found.spot.versioned:
            self._open.append(OpenCall(*place, target, f"{what}; {_VERSIONED}"))
        else:
            self._broken.append(BrokenCall(breach, self.tree, *place, target, what, provider))

    # -- names ---------------------------------------------------------------------------------

    def _name(self, module: Module, node: ast.Attribute, spot: UseSpot) -> None:
        """A dotted name that leads into a module of another component."""
        if spot.caught & _NO_NAME or node.attr in spot.asked or not _is_dotted(node.value):
            return
        if node.attr.startswith("__"):  # the loader gives modules some by itself
            return
        bases = self.values.of(spot.scope, node.value)
        if not all(isinstance(each, Module) and self._is_foreign(each) for each in bases):
            return
        found = [each for base in bases for each in self.values.member(base, node.attr)]
        if found and all(isinstance(each, Absent) for each in found):
            base = bases[0]
            assert isinstance(base, Module)
            what = f"{base.name} has no {node.attr}"
            at = CodeUse(node, spot)
            self._tell(Breach.NAME, module, at, f"{base.name}.{node.attr}", what, base.tree)

    def _is_foreign(self, module: Module) -> bool:
        return bool(module.path) and module.tree != self.tree

    # -- calls ---------------------------------------------------------------------------------

    def _call(self, module: Module, call: ast.Call, spot: UseSpot) -> None:
        declared = self._declared(module, call)
        if not declared and isinstance(call.func, ast.Attribute):
            self._name(module, call.func, spot)
        found = declared or self.values.of(spot.scope, call.func)
        called = [how_called(self.values, each) for each in found]
        foreign = [e for e in called if isinstance(e, Called) and e.tree != self.tree]
        opaque = [
            (value, each)
            for value, each in zip(found, called, strict=True)
            if isinstance(each, Opaque) and not isinstance(value, Absent | Outside)
        ]
        if not foreign:
            told = [each for value, each in opaque if self._leads_out(value)]
            if told:
                self._leave_open(module, call, spot, told[0].why)
            elif not declared and isinstance(call.func, ast.Attribute):
                self._method(module, call, spot)
            return
        if opaque:
            self._leave_open(module, call, spot, opaque[0][1].why)
        elif len(foreign) == len(called):
            self._bind(module, call, spot, foreign)
        else:
            self._bound += 1

    def _leads_out(self, value: Value) -> bool:
        """Whether a value is something of another component."""
        match value:
            case Bound(function=Code(module=home) | Inherited(owner=Code(module=home))):
                return home.tree != self.tree
            case Instance(owner=Code(module=home)) | Inherited(owner=Code(module=home)):
                return home.tree != self.tree
            case Code(module=home):
                return home.tree != self.tree
        return False

    def _method(self, module: Module, call: ast.Call, spot: UseSpot) -> None:
        """A method that an object of another component's class has not."""
        assert isinstance(call.func, ast.Attribute)
        name = call.func.attr
        if spot.caught & _NO_NAME or name in spot.asked:
            return
        bases = self.values.of(spot.scope, call.func.value)
        if not bases or not all(isinstance(e, Instance) and e.exact for e in bases):
            return
        found = [each for base in bases for each in self.values.member(base, name)]
        if not all(isinstance(each, Absent) for each in found):
            return
        base = bases[0]
        assert isinstance(base, Instance)
        owner = base.owner
        if owner.module.tree != self.tree:
            place = f"{owner.module.name}.{owner.qualified}"
            at, target = CodeUse(call, spot), f"{place}.{name}"
            self._tell(Breach.NAME, module, at, target, f"{place} has no {name}", owner.module.tree)

    def _bind(
        self, module: Module, call: ast.Call, spot: UseSpot, targets: Sequence[Called]
    ) -> None:
        given = arguments_of(call, spot.scope)
        wrong = [self._mismatches(each, given) for each in targets]
        if not all(wrong) or spot.caught & _NO_FIT:
            doubtful = [n for n in given.perhaps if not any(self._takes(e, n) for e in targets)]
            if doubtful:
                why = f"{targets[0].name} takes no {', '.join(doubtful)}, given on some ways"
                self._leave_open(module, call, spot, why)
            else:
                self._bound += 1
            return
        target, first = targets[0], wrong[0]
        if spot.versioned:
            what = "; ".join(each.text for each in first)
            self._leave_open(module, call, spot, f"{target.name} {what}; {_VERSIONED}")
            return
        crossed = all(each.misfit is CallFault.CROSSED for each in first)
        self._broken.append(
            BrokenCall(
                breach=Breach.CROSSED if crossed else Breach.ARGUMENTS,
                component=self.tree,
                path=module.path,
                line=call.lineno,
                within=spot.within,
                target=target.name,
                what="; ".join(each.text for each in first),
                provider=target.tree,
                defined=target.place,
                signature=str(target.signature),
            )
        )

    def _mismatches(self, target: Called, given: Arguments) -> tuple[CallMismatch, ...]:
        found = mismatches(target.signature, given)
        if found or not target.signature.more:
            return found
        names = dict.fromkeys(given.keywords)
        unknown = tuple(each for each in names if not self._takes(target, each))
        if not unknown:
            return ()
        text = f"takes no argument {', '.join(unknown)}, nor does what it passes them on to"
        return (CallMismatch(CallFault.KEYWORD, unknown, text),)

    def _takes(self, target: Called, keyword: str) -> bool:
        return accepts(self.values, target, keyword)

    def _leave_open(self, module: Module, call: ast.Call, spot: UseSpot, why: str) -> None:
        text = ast.unparse(call.func)
        self._open.append(OpenCall(module.path, call.lineno, spot.within, text, why))

    def _declared(self, module: Module, call: ast.Call) -> tuple[Value, ...]:
        """What the manifest says that a call leads to, () if nothing."""
        for number, declared in enumerate(self.calls):
            if (
                Files(declared.files).covers(module.path)
                and ast.unparse(call.func) == declared.call
            ):
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
