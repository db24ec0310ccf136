"""How a value is called: functions, classes, dataclasses, objects; and whether a call fits.

How something is called is a signature, or it is Unknown, as where a decorator may change it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

from msgspec import Struct

from patchkit.extensions.python_guards.inference import (
    Bound,
    Instance,
    Unknown,
    Value,
    Values,
)
from patchkit.extensions.python_guards.resolve import Code, Inherited, is_dataclass
from patchkit.model.syntax import FunctionNode, decorator_names, last_name
from patchkit.model.text import counted

# How something is called, and whether a call fits: Python's rules for binding arguments.
#
# A call may leave open what it passes (`*rest`, `**more`): what follows for certain is said, and
# nothing else. The oracle of the tests is a call that is made.


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Arguments(Struct, frozen=True):
    """What a call passes.

    `positions` has what each positional argument is called where it comes from, "" for no name,
    those before the first `*rest` only; `after` counts the others. `open_rest`, `open_more`: there
    may be more that syntax does not show.
    """

    positions: tuple[str, ...] = ()
    after: int = 0
    keywords: tuple[str, ...] = ()
    open_rest: bool = False
    open_more: bool = False


def signature_from(arguments: ast.arguments) -> Signature:
    """The signature that a definition writes down; every default is `...`."""
    plain = [*arguments.posonlyargs, *arguments.args]
    required = len(plain) - len(arguments.defaults)
    found = [
        _parameter(
            each.arg,
            _BY_POSITION[number >= len(arguments.posonlyargs)],
            optional=number >= required,
        )
        for number, each in enumerate(plain)
    ]
    found += [_parameter(e.arg, Parameter.VAR_POSITIONAL) for e in (arguments.vararg,) if e]
    found += [
        _parameter(each.arg, Parameter.KEYWORD_ONLY, optional=default is not None)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    found += [_parameter(e.arg, Parameter.VAR_KEYWORD) for e in (arguments.kwarg,) if e]
    return Signature(found)


def _parameter(name: str, kind: Any, *, optional: bool = False) -> Parameter:
    return Parameter(name, kind, default=... if optional else Parameter.empty)


def signature_text(signature: Signature) -> str:
    """A signature as a person reads it."""
    return str(signature).replace("=Ellipsis", "=...")


def takes(signature: Signature, keyword: str) -> bool:
    """Whether an argument can be given by that name."""
    kinds = {each.kind for each in signature.parameters.values()}
    named = signature.parameters.get(keyword)
    return Parameter.VAR_KEYWORD in kinds or (named is not None and named.kind in _BY_NAME)


def misfits(signature: Signature, given: Arguments) -> Iterator[str]:
    """Why a call with these arguments cannot work.

    Invariant: whatever stays open in the call is taken to be what fits best.
    """
    parameters = signature.parameters.values()
    positional = [each for each in parameters if each.kind in _BY_POSITION]
    count = len(given.positions) + given.after
    rest = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    if count > len(positional) and not rest:
        yield f"takes {counted(len(positional), 'positional argument')}, is given {count}"
    unknown = [name for name in dict.fromkeys(given.keywords) if not takes(signature, name)]
    if unknown:
        yield f"takes no argument {', '.join(unknown)}"
    named = {each.name for each in parameters if each.kind in _BY_NAME}
    placed = [each.name for each in positional[: len(given.positions)]]
    twice = [name for name in placed if name in named and name in given.keywords]
    if twice:
        yield f"is given {', '.join(twice)} by position and by name"
    open_ones = named if given.open_more else named & {*given.keywords}
    lacking = [
        each.name
        for each in parameters
        if each.default is Parameter.empty
        and each.kind in (*_BY_POSITION, Parameter.KEYWORD_ONLY)
        and each not in positional[: None if given.open_rest else count]
        and each.name not in open_ones
    ]
    if lacking:
        yield f"needs {', '.join(lacking)}"


def crossed(signature: Signature, given: Arguments) -> Iterator[str]:
    """Arguments that bear the name of another parameter, which gets something else.

    Only the names decide, so only a name that is a parameter's very own counts.
    """
    positional = [each.name for each in signature.parameters.values() if each.kind in _BY_POSITION]
    by_position = dict(zip(positional, given.positions, strict=False))
    for parameter, name in by_position.items():
        is_other = name in signature.parameters and name != parameter
        if is_other and by_position.get(name, name) != name:
            yield f"{name} is passed as {parameter}"


#: Decorators, by the last part of the name, that keep how a function or class is called.
_KEEPING = frozenset({
    "abstractmethod", "annotate", "asynccontextmanager", "cache", "cached_property", "classmethod",
    "compile", "contextmanager", "dataclass", "dataclass_transform", "deprecated", "disable",
    "enable_grad", "export", "final", "ignore", "inference_mode", "lru_cache", "no_grad",
    "override", "property", "record_function", "register_pytree_node_class", "runtime_checkable",
    "script", "script_if_tracing", "staticmethod", "total_ordering", "typechecked", "unused",
    "wraps",
})  # fmt: skip

#: Bases of other packages that take no part in how a class is made.
_BARE_BASES = ("abc.", "typing.", "typing_extensions.", "builtins.object")


class Called(Struct, frozen=True):
    """A signature and where it is defined: `name` dotted, `place` as path:line of `tree`."""

    signature: Signature
    name: str
    tree: str
    place: str


def how_called(values: Values, value: Value) -> Called | Unknown:
    """How a value is called; what it is a part of, like `self`, is taken already."""
    match value:
        case Bound(function=Code() as function):
            return _of_function(function, bound=True)
        case Instance(owner=owner):
            return _of_object(values, owner)
        case Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda()):
            return _of_function(value, bound=False)
        case Code(node=ast.ClassDef()):
            return _of_class(values, value)
        case (Inherited() as made) | Bound(function=Inherited() as made):
            return _of_inherited(values, made)
    return value if isinstance(value, Unknown) else Unknown("it is not callable")


def _callable(code: Code, signature: Signature) -> Called:
    name = f"{code.module.name}.{code.qualified}"
    return Called(signature, name, code.module.tree, f"{code.module.path}:{code.line}")


def _of_function(function: Code, *, bound: bool) -> Called | Unknown:
    assert isinstance(function.node, FunctionNode | ast.Lambda)
    if changing := _changing(function):
        return Unknown(f"{function.name} is decorated by {changing}")
    signature = signature_from(function.node.args)
    several = list(signature.parameters.values())
    if bound and several and several[0].kind in _BY_POSITION:
        signature = signature.replace(parameters=several[1:])
    return _callable(function, signature)


def _changing(definition: Code) -> str:
    """The decorators of a definition that may change how it is called, "" for none."""
    node = definition.node
    names = decorator_names(node) if isinstance(node, FunctionNode | ast.ClassDef) else []
    return ", ".join(each for each in names if each not in _KEEPING)


def _of_class(values: Values, owner: Code) -> Called | Unknown:
    for each in (owner, *values.resolver.bases(owner, [])):
        assert isinstance(each.node, ast.ClassDef)
        meta = next((k.value for k in each.node.keywords if k.arg == "metaclass"), None)
        if meta is not None and last_name(meta) != "ABCMeta":
            return Unknown(f"{each.name} has a metaclass")
        if any(last_name(base) in ("NamedTuple", "TypedDict") for base in each.node.bases):
            return Unknown(f"{each.name} is made from its fields")
    if changing := _changing(owner):
        return Unknown(f"{owner.name} is decorated by {changing}")
    for name in ("__init__", "__new__"):
        made = list(values.resolver.of_class(owner, name))
        own = [e for e in made if isinstance(e, Code) and isinstance(e.node, FunctionNode)]
        if len(made) > 1:
            return Unknown(f"{owner.name} has several {name}")
        if own:
            return _of_function(own[0], bound=True)
    return _of_inherited(values, Inherited(owner, "__init__"))


def _of_inherited(values: Values, made: Inherited) -> Called | Unknown:
    owner, foreign = made.owner, list[str]()
    if made.name != "__init__":
        return Unknown(f"{owner.name} has {made.name} of every object")
    family = [owner, *values.resolver.bases(owner, foreign)]
    has_fields = any(map(is_dataclass, family))
    if foreign and not (has_fields and all(_is_plain(each) for each in foreign)):
        return Unknown(f"{owner.name} inherits from {foreign[0]}")
    if any("kw_only" in _said(each).lower() for each in family if has_fields):
        return Unknown(f"{owner.name} has fields that only a name gives")
    fields = values.resolver.dataclass_fields(owner)
    given = sorted(_given_fields(fields), key=lambda each: each.kind)
    return _callable(owner, Signature(given, __validate_parameters__=False))


def _is_plain(base: str) -> bool:
    """Whether a base of another package brings no fields: protocols, torch's modules."""
    return base.startswith(_BARE_BASES) or base.endswith((".Module", ".ABC", ".Generic"))


def _said(owner: Code) -> str:
    """What a class says of all its fields."""
    assert isinstance(owner.node, ast.ClassDef)
    fields = (each.annotation for each in owner.node.body if isinstance(each, ast.AnnAssign))
    return " ".join(map(ast.unparse, (*owner.node.decorator_list, *fields)))


def _given_fields(fields: Mapping[str, ast.expr | None]) -> Iterator[Parameter]:
    """The fields of a dataclass that are given when one is made."""
    for name, value in fields.items():
        told: dict[str | None, str] = {"default": ""} if value is not None else {}
        if isinstance(value, ast.Call) and last_name(value.func) == "field":
            told = {each.arg: ast.unparse(each.value) for each in value.keywords}
        if told.get("init") != "False":
            kind = _BY_NAME[told.get("kw_only") == "True"]
            optional = "default" in told or "default_factory" in told
            yield _parameter(name, kind, optional=optional)


def _of_object(values: Values, owner: Code) -> Called | Unknown:
    """How an object is called: by `__call__`, and torch's modules by `forward`."""
    for name in ("__call__", "forward"):
        found = [
            each
            for each in values.resolver.of_class(owner, name)
            if isinstance(each, Code) and isinstance(each.node, FunctionNode)
        ]
        if len(found) == 1:
            return _of_function(found[0], bound=True)
    return Unknown(f"how an object of {owner.name} is called")


def arguments_of(call: ast.Call) -> Arguments:
    """What a call passes; of `**more` the keys of a dict that is written down there."""
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
    for keyword in call.keywords:
        passed = [keyword.arg] if keyword.arg is not None else _keys(keyword.value)
        keywords += [name for name in passed if name is not None]
        open_more = open_more or None in passed
    return Arguments(tuple(positions), after, tuple(keywords), open_rest, open_more)


def _keys(node: ast.expr) -> Sequence[str | None]:
    """The keys of a dict that is written down; None for what syntax does not show."""
    match node:
        case ast.Dict(keys=keys):
            constants = (each.value if isinstance(each, ast.Constant) else None for each in keys)
            return [constant if isinstance(constant, str) else None for constant in constants]
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            return [keyword.arg for keyword in keywords]
    return [None]
