"""Where a function or module gives a name its value, and with which way into the expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from patchkit.python.bindings import FunctionNode

#: A step from an expression to what is meant: any element of it; other steps are indexes.
EACH = -1


def definitions_around(
    node: ast.AST, around: tuple[FunctionNode | ast.ClassDef, ...]
) -> Iterator[tuple[ast.AST, tuple[FunctionNode | ast.ClassDef, ...]]]:
    """Every expression below a node with the definitions around it, innermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child, around
        inner = (child, *around) if isinstance(child, FunctionNode | ast.ClassDef) else around
        yield from definitions_around(child, inner)


def _walk(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module without those of functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, FunctionNode | ast.ClassDef):
            yield child
            yield from _walk(child)


def sources(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
    """The expressions that a scope binds a name to, and the steps into each."""
    for node in _walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from ((value, steps) for steps in _steps(target, name))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from ((value, steps) for steps in _steps(target, name))
            case ast.NamedExpr(target=target, value=value):
                yield from ((value, steps) for steps in _steps(target, name))
            case (
                ast.For(target=target, iter=iterated)
                | ast.AsyncFor(target=target, iter=iterated)
                | ast.comprehension(target=target, iter=iterated)
            ):
                yield from ((iterated, (EACH, *steps)) for steps in _steps(target, name))


def _steps(target: ast.expr, name: str) -> Iterator[tuple[int, ...]]:
    """The way to a name in the target of an assignment."""
    match target:
        case ast.Name(id=found) if found == name:
            yield ()
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for index, each in enumerate(targets):
                yield from ((index, *steps) for steps in _steps(each, name))


def additions(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
    """What a scope puts into a container: expressions, and the steps to the elements."""
    for node in _walk(scope):
        match node:
            case ast.AugAssign(target=ast.Name(id=found), value=value) if found == name:
                yield value, (EACH,)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=how), args=args) if (
                found == name and args
            ):
                if how in ("append", "add", "insert"):
                    yield args[-1], ()
                elif how in ("extend", "update"):
                    yield args[0], (EACH,)
    for key, _ in items_set(scope, name):
        yield key, ()


def items_set(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The (key, value) pairs that a scope sets in a dict."""
    for node in _walk(scope):
        match node:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=found), slice=key)], value=value
            ) if found == name:
                yield key, value


class Attributes(Struct):
    """What a class and its methods give its attributes, by name.

    `values` come with the method around them, () for the class itself; `annotations` are what is
    said of their kind; `stored` are all that are set in any way; `by_name`: setattr is called.
    """

    values: dict[str, list[tuple[ast.expr, tuple[FunctionNode, ...]]]] = field(default_factory=dict)
    annotations: dict[str, list[ast.expr]] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    by_name: bool = False


def attributes_of(owner: ast.ClassDef) -> Attributes:
    """The attributes of a class; those of its bases are not among them."""
    found = Attributes()
    for node in _walk(ast.Module(owner.body, [])):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.values.setdefault(target.id, []).append((value, ()))
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=given):
                found.annotations.setdefault(name, []).append(annotation)
                if given is not None:
                    found.values.setdefault(name, []).append((given, ()))
    for method in (each for each in owner.body if isinstance(each, FunctionNode)):
        for node in ast.walk(method):
            _set_by(node, method, found)
    return found


def _set_by(node: ast.AST, method: FunctionNode, found: Attributes) -> None:
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
            found.values.setdefault(name, []).append((value, (method,)))
        case ast.AnnAssign(
            target=ast.Attribute(value=ast.Name(id="self"), attr=name),
            annotation=annotation,
            value=given,
        ):
            found.annotations.setdefault(name, []).append(annotation)
            if given is not None:
                found.values.setdefault(name, []).append((given, (method,)))
        case ast.Attribute(value=ast.Name(), attr=name, ctx=ast.Store()):
            found.stored.add(name)
        case ast.Call(func=ast.Name(id="setattr")):
            found.by_name = True


def parameter_names(function: FunctionNode) -> list[str]:
    """The parameters that take one argument, in order."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def default_of(function: FunctionNode, name: str) -> ast.expr | None:
    """A parameter's default, None if it has none."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    late = plain[len(plain) - len(arguments.defaults) :]
    pairs = [*zip(late, arguments.defaults, strict=True)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return next((d for a, d in (*pairs, *keywords) if a.arg == name and d is not None), None)


def callee(call: ast.Call) -> str:
    """The last part of the name that is called, "" if it is called by none."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def given(call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
    """What a call gives a parameter; None if nothing, or not plainly."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = parameter_names(function)
    bound = isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
    index = names.index(name) - bound
    if 0 <= index < len(call.args) and not isinstance(call.args[index], ast.Starred):
        return call.args[index]
    return None
