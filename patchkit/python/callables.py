"""How a value is called: through classes, dataclasses, decorators and `**kwargs` passed on.

An answer is a signature or the reason why there is none. A decorator counts as keeping the
signature if it is known to, or if its source shows that it passes on all that it is given.

Apart from `guards/contracts/`, where its only user is: like all of `python/` it knows no component.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.model.syntax import last_name
from patchkit.model.text import counted
from patchkit.python.bodies import FunctionNode, blocks_of, walk, walk_scope
from patchkit.python.inference import Bound, Instance, NameScope, Unknown, Value, Values
from patchkit.python.resolve import (
    Code,
    Inherited,
    Outside,
    decorator_names,
    is_dataclass,
)

# How something is called, and whether a call fits: Python's rules for binding arguments.
#
# A call may leave open what it passes (`*rest`, `**more`): what follows for certain is said, and
# nothing else. The oracle of the tests is `inspect.Signature.bind`.


class Parameter(Struct, frozen=True):
    """A parameter that takes one argument; `by` is how it can be given."""

    name: str  # as the function spells it
    by_position: bool = True  # can be given without its name
    by_name: bool = True  # can be given as NAME=...
    optional: bool = False  # has a default


class Signature(Struct, frozen=True):
    """The parameters of a callable in order; `rest` and `more` are the names of * and **, or ""."""

    parameters: tuple[Parameter, ...]
    rest: str = ""
    more: str = ""

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """Those that a position can give."""
        return tuple(each for each in self.parameters if each.by_position)

    def without_first(self) -> Signature:
        """As it is called on an instance: the first position is taken."""
        first = next((p for p in self.parameters if p.by_position), None)
        if first is None:
            return self
        kept = tuple(each for each in self.parameters if each is not first)
        return Signature(kept, self.rest, self.more)

    def named(self, name: str) -> Parameter | None:
        """The parameter that a keyword gives."""
        return next((p for p in self.parameters if p.by_name and p.name == name), None)

    def __str__(self) -> str:
        words: list[str] = []
        star = False
        for number, each in enumerate(self.parameters):
            if not each.by_position and not star:
                words += [f"*{self.rest}" if self.rest else "*"]
                star = True
            words.append(f"{each.name}=..." if each.optional else each.name)
            after = self.parameters[number + 1 : number + 2]
            if not each.by_name and (not after or after[0].by_name):
                words.append("/")
        if self.rest and not star:
            words.append(f"*{self.rest}")
        if self.more:
            words.append(f"**{self.more}")
        return f"({', '.join(words)})"


class Arguments(Struct, frozen=True):
    """What a call passes.

    `positions` has what each positional argument is called where it comes from, "" for no name,
    those before the first `*rest` only; `after` counts the others. `keywords` are given in any
    case, `perhaps` on some ways. `open_rest`, `open_more`: there may be more that syntax does not
    show.
    """

    positions: tuple[str, ...] = ()
    after: int = 0
    keywords: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    open_rest: bool = False
    open_more: bool = False


class CallFault(str, Enum):
    """Why a call does not fit."""

    TOO_MANY = "too many positional arguments"
    LACKING = "missing argument"
    KEYWORD = "unknown keyword"
    TWICE = "argument given twice"
    CROSSED = "crossed arguments"


class CallMismatch(Struct, frozen=True):
    """One reason why a call does not fit: the parameters or keywords that it is about, and how."""

    misfit: CallFault  # what kind of reason
    names: tuple[str, ...]  # of parameters or keywords
    text: str  # the reason in words


def signature_from(arguments: ast.arguments) -> Signature:
    """The signature that a definition writes down."""
    plain = [*arguments.posonlyargs, *arguments.args]
    required = len(plain) - len(arguments.defaults)
    found = [
        Parameter(
            each.arg,
            by_name=number >= len(arguments.posonlyargs),
            optional=number >= required,
        )
        for number, each in enumerate(plain)
    ]
    found += [
        Parameter(each.arg, by_position=False, optional=default is not None)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    rest, more = arguments.vararg, arguments.kwarg
    return Signature(tuple(found), rest.arg if rest else "", more.arg if more else "")


def mismatches(signature: Signature, given: Arguments) -> tuple[CallMismatch, ...]:
    """Why a call with these arguments cannot work, or probably does not do what is meant.

    Invariant: whatever stays open in the call is taken to be what fits best.
    """
    positional = signature.positional
    count = len(given.positions) + given.after
    found: list[CallMismatch] = []
    if count > len(positional) and not signature.rest:
        text = f"takes {counted(len(positional), 'positional argument')}, is given {count}"
        found.append(CallMismatch(CallFault.TOO_MANY, (), text))
    names = tuple(dict.fromkeys((*given.keywords, *given.perhaps)))
    if not signature.more:
        unknown = tuple(k for k in dict.fromkeys(given.keywords) if signature.named(k) is None)
        if unknown:
            text = f"takes no argument {_listed(unknown)}"
            found.append(CallMismatch(CallFault.KEYWORD, unknown, text))
    placed = positional[: len(given.positions)]
    twice = tuple(p.name for p in placed if p.by_name and p.name in given.keywords)
    if twice:
        text = f"is given {_listed(twice)} by position and by name"
        found.append(CallMismatch(CallFault.TWICE, twice, text))
    lacking = _lacking(signature, given, names)
    if lacking:
        text = f"needs {_listed(lacking)}"
        found.append(CallMismatch(CallFault.LACKING, lacking, text))
    return tuple(found) or _crossed(signature, given)


def _lacking(signature: Signature, given: Arguments, names: Sequence[str]) -> tuple[str, ...]:
    placed = signature.positional[: len(given.positions) + given.after]
    return tuple(
        each.name
        for each in signature.parameters
        if not each.optional
        and each not in placed
        and not (each.by_name and (each.name in names or given.open_more))
        and not (each.by_position and given.open_rest)
    )


def _crossed(signature: Signature, given: Arguments) -> tuple[CallMismatch, ...]:
    """Arguments that bear the name of another parameter, which gets something else.

    Only the names decide, so only a name that is a parameter's very own counts.
    """
    pairs = list(zip(signature.positional, given.positions, strict=False))
    by_position = {parameter.name: name for parameter, name in pairs}
    known = {parameter.name for parameter in signature.parameters}
    crossed = [
        (parameter.name, name)
        for parameter, name in pairs
        if name in known and name != parameter.name and by_position.get(name, name) != name
    ]
    if not crossed:
        return ()
    told = [f"{name} is passed as {parameter}" for parameter, name in crossed]
    names = tuple(parameter for parameter, _ in crossed)
    return (CallMismatch(CallFault.CROSSED, names, ", ".join(told)),)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


#: Decorators of other packages, by the last part of the name, that keep how a function is called.
_KEEPING = frozenset({
    "abstractmethod", "annotate", "asynccontextmanager", "cache", "cached_property", "classmethod",
    "compile", "contextmanager", "dataclass_transform", "deprecated", "disable", "enable_grad",
    "export", "final", "ignore", "inference_mode", "lru_cache", "no_grad", "override", "property",
    "record_function", "register_pytree_node_class", "runtime_checkable", "script",
    "script_if_tracing", "staticmethod", "total_ordering", "typechecked", "unused", "wraps",
})  # fmt: skip

#: Bases of other packages that take no part in how a class is made.
_BARE_BASES = ("abc.", "typing.", "typing_extensions.", "builtins.object")

_DEEPEST = 4


class Called(Struct, frozen=True):
    """A signature and where it is defined: `name` dotted, `place` as path:line of `tree`.

    `made` is the class of which an object is made by it.
    """

    signature: Signature
    name: str
    tree: str
    place: str
    function: Code | None = None  # the definition; None for what has none in the trees
    made: Code | None = None


class Opaque(Struct, frozen=True):
    """It is not known how it is called: `why`."""

    why: str


def how_called(values: Values, value: Value) -> Called | Opaque:  # noqa: PLR0911
    """How a value is called; what it is a part of, like `self`, is taken already."""
    match value:
        case Bound(function=Code() as function):
            return _of_function(values, function, bound=True)
        case Instance(owner=owner):
            return _of_object(values, owner)
        case Code(node=ast.FunctionDef() | ast.AsyncFunctionDef()):
            return _of_function(values, value, bound=False)
        case Code(node=ast.Lambda() as node):
            return _callable(value, signature_from(node.args))
        case Code(node=ast.ClassDef()):
            found = _of_class(values, value)
            return found if isinstance(found, Opaque) else replace(found, made=value)
        case (Inherited() as made) | Bound(function=Inherited() as made):
            return _of_inherited(values, made)
        case Unknown(why=why):
            return Opaque(why)
    return Opaque("it is not callable")


def accepts(values: Values, called: Called, keyword: str, depth: int = 0) -> bool:
    """Whether a function that takes any keyword passes this one on to somebody who takes it.

    True also where that is not known.
    """
    function = called.function
    if called.signature.named(keyword) is not None or not called.signature.more:
        return called.signature.named(keyword) is not None
    if function is None or not isinstance(function.node, FunctionNode) or depth > _DEEPEST:
        return True
    calls = _passed_on(function.node, called.signature.more)
    if not calls or (called.made is not None and _has_several_bases(values, called.made)):
        return True  # with several bases, super() may lead to a class beside this one
    scope = NameScope(
        function.module, function.node, _owner(values, function), NameScope(function.module)
    )
    for call in calls:
        for value in values.of(scope, call.func):
            inner = how_called(values, value)
            if isinstance(inner, Opaque) or inner.function is function:
                return True
            if accepts(values, inner, keyword, depth + 1):
                return True
    return False


def _has_several_bases(values: Values, owner: Code) -> bool:
    family = (owner, *values.resolver.bases(owner, []))
    return any(isinstance(e.node, ast.ClassDef) and len(e.node.bases) > 1 for e in family)


def _passed_on(node: FunctionNode, more: str) -> list[ast.Call]:
    """The calls that a function passes its `**more` on to; none if it uses it in any other way."""
    calls = [
        call
        for call in walk(node)
        if isinstance(call, ast.Call)
        for each in call.keywords
        if each.arg is None and isinstance(each.value, ast.Name) and each.value.id == more
    ]
    used = sum(isinstance(each, ast.Name) and each.id == more for each in walk(node))
    return calls if used == len(calls) else []


def _owner(values: Values, function: Code) -> Code | None:
    """The class that a method stands in."""
    if not function.owner or function.owner == "<locals>":
        return None
    found = values.resolver.resolve(f"{function.module.name}.{function.owner}")
    return next(
        (e for e in found if isinstance(e, Code) and isinstance(e.node, ast.ClassDef)), None
    )


def _callable(code: Code, signature: Signature) -> Called:
    name = f"{code.module.name}.{code.qualified}"
    place = f"{code.module.path}:{code.line}"
    return Called(signature, name, code.module.tree, place, code)


# -- functions -------------------------------------------------------------------------------------


def _of_function(values: Values, function: Code, *, bound: bool) -> Called | Opaque:
    assert isinstance(function.node, FunctionNode)
    signature = signature_from(function.node.args)
    for decorator in reversed(function.node.decorator_list):
        changed = _decorated(values, function, decorator, signature)
        if isinstance(changed, Opaque):
            return changed
        signature = changed
    return _callable(function, signature.without_first() if bound else signature)


def _decorated(
    values: Values, function: Code, decorator: ast.expr, signature: Signature
) -> Signature | Opaque:
    """A signature as a decorator leaves it."""
    with_arguments = isinstance(decorator, ast.Call)
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    if last_name(name) in _KEEPING:
        return signature
    results = [
        _by(values, each, signature, with_arguments=with_arguments)
        for each in values.of(NameScope(function.module), name)
    ]
    opaque = next((each for each in results if isinstance(each, Opaque)), None)
    if opaque is not None or len(set(results)) != 1:
        return Opaque(f"{function.name} is decorated by {ast.unparse(name)}")
    return results[0]


def _by(
    values: Values, decorator: Value, signature: Signature, *, with_arguments: bool
) -> Signature | Opaque:
    if isinstance(decorator, Outside):
        keeps = decorator.name.rpartition(".")[2] in _KEEPING
        return signature if keeps else Opaque("a decorator of another package")
    if not isinstance(decorator, Code) or not isinstance(decorator.node, FunctionNode):
        return Opaque("a decorator that is no function")
    node: FunctionNode = decorator.node
    if with_arguments:
        made = _returned_function(node)
        if made is None:
            return Opaque("a decorator that makes none")
        node = made
    given = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][:1]
    returned = _returned_names(node)
    if returned and set(returned) <= set(given):
        return signature
    wrapper = _returned_function(node)
    if wrapper is None:
        return Opaque("a decorator that returns something else")
    own = signature_from(wrapper.args)
    return signature if own.rest and own.more else own


def _returned_names(node: FunctionNode) -> list[str]:
    """The names that a function returns; "" for what is no name."""
    found = [each for each in walk_scope(node) if isinstance(each, ast.Return)]
    return [each.value.id if isinstance(each.value, ast.Name) else "" for each in found]


def _returned_function(node: FunctionNode) -> FunctionNode | None:
    """The function in it that a function returns, if it is the only thing."""
    names = set(_returned_names(node))
    inner = [each for each in walk_scope(node) if isinstance(each, FunctionNode)]
    found = [each for each in inner if {each.name} == names]
    return found[0] if len(found) == 1 else None


# -- classes and objects ---------------------------------------------------------------------------


def _of_class(values: Values, owner: Code) -> Called | Opaque:  # noqa: PLR0911
    assert isinstance(owner.node, ast.ClassDef)
    foreign: list[str] = []
    family = (owner, *values.resolver.bases(owner, foreign))
    for each in family:
        assert isinstance(each.node, ast.ClassDef)
        meta = next((k.value for k in each.node.keywords if k.arg == "metaclass"), None)
        if meta is not None and last_name(meta) != "ABCMeta":
            return Opaque(f"{each.name} has a metaclass")
        if any(last_name(base) in ("NamedTuple", "TypedDict") for base in each.node.bases):
            return Opaque(f"{each.name} is made from its fields")
        changing = {*decorator_names(each.node)} - _KEEPING - {"dataclass"}
        if each is owner and changing and not _keeps_classes(values, owner):
            return Opaque(f"{owner.name} is decorated by {', '.join(sorted(changing))}")
    made = list(values.resolver.of_class(owner, "__init__"))
    if len(made) != 1:
        return Opaque(f"{owner.name} has several __init__")
    if isinstance(made[0], Code) and isinstance(made[0].node, FunctionNode):
        return _of_function(values, made[0], bound=True)
    if isinstance(made[0], Inherited) and is_dataclass(made[0].owner):
        return _of_inherited(values, made[0])
    news = [n for n in values.resolver.of_class(owner, "__new__") if isinstance(n, Code)]
    if len(news) == 1 and isinstance(news[0].node, FunctionNode):
        return _of_function(values, news[0], bound=True)
    if foreign:
        return Opaque(f"{owner.name} inherits from {foreign[0]}")
    return _callable(owner, Signature(()))


def _keeps_classes(values: Values, owner: Code) -> bool:
    """Whether all decorators of a class return it as it is."""
    assert isinstance(owner.node, ast.ClassDef)
    probe = Signature((Parameter("itself"),))
    named = zip(decorator_names(owner.node), owner.node.decorator_list, strict=True)
    return all(
        name == "dataclass" or _decorated(values, owner, decorator, probe) == probe
        for name, decorator in named
    )


def _of_inherited(values: Values, made: Inherited) -> Called | Opaque:
    owner = made.owner
    if made.name != "__init__":
        return Opaque(f"{owner.name} has {made.name} of every object")
    foreign: list[str] = []
    family = [owner, *values.resolver.bases(owner, foreign)]
    if any(map(is_dataclass, family)):
        if foreign and not all(_is_plain(each) for each in foreign):
            return Opaque(f"{owner.name} inherits from {foreign[0]}")
        return _callable(owner, _fields_signature(family))
    if foreign:
        return Opaque(f"{owner.name} inherits from {foreign[0]}")
    return _callable(owner, Signature(()))


def _is_plain(base: str) -> bool:
    """Whether a base of another package brings no fields: protocols, torch's modules."""
    return base.startswith(_BARE_BASES) or base.endswith((".Module", ".ABC", ".Generic"))


def _fields_signature(family: Sequence[Code]) -> Signature:
    """How a dataclass is made: the fields of its bases first; a field again keeps its place."""
    fields: dict[str, Parameter | None] = {}
    for each in reversed(family):
        if is_dataclass(each):
            fields |= dict(_fields(each))
    there = [each for each in fields.values() if each is not None]
    return Signature(
        (*(p for p in there if p.by_position), *(p for p in there if not p.by_position))
    )


def _fields(owner: Code) -> Iterator[tuple[str, Parameter | None]]:
    """The fields that a class adds; None for those that are not given to `__init__`."""
    assert isinstance(owner.node, ast.ClassDef)
    late = _flag(_dataclass_call(owner.node), "kw_only") is True
    for statement in owner.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                text = ast.unparse(annotation)
                if "KW_ONLY" in text:
                    late = True
                elif "ClassVar" not in text:
                    yield name, _field(name, value, late=late)


def _field(name: str, value: ast.expr | None, *, late: bool) -> Parameter | None:
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        if _flag(value, "init") is False:
            return None
        named = _flag(value, "kw_only")
        by_name = late if named is None else named
        has = any(each.arg in ("default", "default_factory") for each in value.keywords)
        return Parameter(name, by_position=not by_name, optional=has)
    return Parameter(name, by_position=not late, optional=value is not None)


def _dataclass_call(node: ast.ClassDef) -> ast.Call | None:
    calls = (each for each in node.decorator_list if isinstance(each, ast.Call))
    return next((each for each in calls if last_name(each.func) == "dataclass"), None)


def _flag(call: ast.Call | None, name: str) -> bool | None:
    for each in call.keywords if call is not None else ():
        if each.arg == name and isinstance(each.value, ast.Constant):
            return bool(each.value.value)
    return None


def _of_object(values: Values, owner: Code) -> Called | Opaque:
    """How an object is called: by `__call__`, and torch's modules by `forward`."""
    for name in ("__call__", "forward"):
        found = [
            each
            for each in values.resolver.of_class(owner, name)
            if isinstance(each, Code) and isinstance(each.node, FunctionNode)
        ]
        if len(found) == 1:
            return _of_function(values, found[0], bound=True)
    return Opaque(f"how an object of {owner.name} is called")


def arguments_of(call: ast.Call, scope: NameScope) -> Arguments:
    """What a call passes; literal dicts that a function fills are followed."""
    positions: list[str] = []
    after, open_rest, open_more = 0, False, False
    for each in call.args:
        if isinstance(each, ast.Starred):
            open_rest = True
        elif open_rest:
            after += 1
        else:
            positions.append(last_name(each))
    keywords: list[str] = []
    perhaps: list[str] = []
    for keyword in call.keywords:
        if keyword.arg is not None:
            keywords.append(keyword.arg)
            continue
        passed = _keys(keyword.value, scope, call)
        keywords += passed.sure
        perhaps += passed.perhaps
        open_more = open_more or not passed.whole
    return Arguments(tuple(positions), after, tuple(keywords), tuple(perhaps), open_rest, open_more)


# -- dicts that are passed as keywords -------------------------------------------------------------


class _Keys(Struct):
    """The keys of a dict: those in any case, those on some ways, and whether that is all."""

    sure: list[str] = field(default_factory=list)  # there in any case
    perhaps: list[str] = field(default_factory=list)  # there on some ways
    whole: bool = False  # there are no others


def _keys(node: ast.expr, scope: NameScope, call: ast.Call) -> _Keys:
    """The keys that `**dict` passes, where a function writes them down before a call.

    Counted is from the last statement on that gives the name a dict and that every way to the call
    goes through; where that is another one on some ways, nothing is known.
    """
    literal = _literal_keys(node)
    if literal is not None or not isinstance(node, ast.Name):
        return literal or _Keys()
    if not isinstance(scope.node, FunctionNode):
        return _Keys()
    way = _way_to(scope.node.body, call)
    given = [each for each in way if _gives(each, node.id) is not None]
    if not given:
        return _Keys()
    start = given[-1]
    value = _gives(start, node.id)
    found = _literal_keys(value) if value is not None else None
    if found is None:
        return _Keys()
    between = [
        each
        for each in walk(scope.node)
        if start.lineno < getattr(each, "lineno", 0) <= call.lineno and each is not call
    ]
    if any(isinstance(each, ast.stmt) and _gives(each, node.id) is not None for each in between):
        return _Keys()
    known: set[int] = {id(k.value) for k in call.keywords}
    for each in between:
        known |= _added(each, node.id, found)
    used = (each for each in between if isinstance(each, ast.Name) and each.id == node.id)
    if any(id(each) not in known for each in used):
        found.whole = False  # somebody else may have changed it
    return found


def _way_to(body: Sequence[ast.stmt], call: ast.Call) -> list[ast.stmt]:
    """The statements that every way to a call in a function goes through, first to last."""
    way: list[ast.stmt] = []
    for statement in body:
        if statement.lineno <= call.lineno <= (statement.end_lineno or 0):
            for block in blocks_of(statement):
                if block and block[0].lineno <= call.lineno <= (block[-1].end_lineno or 0):
                    return way + _way_to(block, call)
            return way
        way.append(statement)
    return way


def _gives(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement gives the name."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
            return value
        case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if found == name:
            return value
    return None


def _added(node: ast.AST, name: str, keys: _Keys) -> set[int]:
    """Put into `keys` what a node adds to the dict; the ids of the uses of the name in it."""
    match node:
        case ast.Subscript(
            value=ast.Name(id=found) as used, slice=ast.Constant(value=str() as key)
        ) if found == name:
            if isinstance(node.ctx, ast.Store):
                keys.perhaps.append(key)
            elif isinstance(node.ctx, ast.Del):
                keys.sure = [each for each in keys.sure if each != key]
            return {id(used)}
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=found) as used, attr="update"),
            args=parts,
            keywords=named,
        ) if found == name:
            keys.perhaps += [each.arg for each in named if each.arg is not None]
            for part in parts:
                inner = _literal_keys(part) or _Keys()
                keys.perhaps += inner.sure
                keys.whole = keys.whole and inner.whole
            return {id(used)}
    return set()


def _literal_keys(node: ast.expr) -> _Keys | None:
    """The keys of a dict that is written down."""
    match node:
        case ast.Dict(keys=keys):
            constants = [each for each in keys if isinstance(each, ast.Constant)]
            texts = [each.value for each in constants if isinstance(each.value, str)]
            return _Keys(texts, [], len(texts) == len(keys))
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            named = [each.arg for each in keywords if each.arg is not None]
            return _Keys(named, [], len(named) == len(keywords))
    return None
