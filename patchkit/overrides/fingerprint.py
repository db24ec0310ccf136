"""What a replacement of a function depends on: how it is called, and what it does.

Both come from the syntax tree, so comments, blank lines, line breaks, quotes and docstrings do not
count. Nothing here depends on the version of Python that runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from hashlib import sha256

from patchkit.python.bindings import FunctionNode

#: Decorators that change how a function is called.
_CALLED_OTHERWISE = ("staticmethod", "classmethod", "property", "cached_property", "setter")

# Enough of a hash that two bodies never share it.
_DIGITS = 16


def signature_of(node: FunctionNode) -> str:
    """How a function is called: parameters with their order, kinds and defaults; no annotations.

    `@staticmethod (a, *, b=1)`: decorators that matter to a caller and `async` come first.
    """
    words = [f"@{name}" for name in _decorators(node) if name in _CALLED_OTHERWISE]
    words += ["async"] if isinstance(node, ast.AsyncFunctionDef) else []
    return " ".join([*words, f"({', '.join(_parameters(node.args))})"])


def fields_signature(fields: dict[str, str]) -> str:
    """How a dataclass with these fields (name -> default, "" for none) is made."""
    each = [name if not default else f"{name}={default}" for name, default in fields.items()]
    return f"({', '.join(['self', *each])})"


def parameters_in(signature: str) -> list[str]:
    """The parameters of a signature as `signature_of` writes it."""
    found, depth = [""], 0
    for character in signature.partition("(")[2].removesuffix(")"):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found if each.strip()]


def body_hash(node: ast.AST | None) -> str:
    """A hash of what code does: of a definition with its decorators, or of a value."""
    return sha256("".join(_words(node)).encode()).hexdigest()[:_DIGITS]


def joined_hash(hashes: list[str]) -> str:
    """One hash for a name that has several definitions (`if` and `else`)."""
    if len(hashes) == 1:
        return hashes[0]
    return sha256("\n".join(hashes).encode()).hexdigest()[:_DIGITS]


def text_of(node: ast.AST) -> str:
    """An expression as text, on one line."""
    return ast.unparse(node)


def _decorators(node: FunctionNode) -> Iterator[str]:
    for decorator in node.decorator_list:
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        yield inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    without = len(plain) - len(arguments.defaults)
    defaults = [None] * without + list(arguments.defaults)
    for number, (argument, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield _parameter(argument, default)
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg is not None:
        yield f"**{arguments.kwarg.arg}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return argument.arg if default is None else f"{argument.arg}={text_of(default)}"


def _words(node: object) -> Iterator[str]:
    """The tree as text, without what is empty: Pythons differ in which empty fields they have."""
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name in node._fields:
            value = _part(node, name)
            if value is None and not isinstance(node, ast.Constant):
                continue
            if value == [] or name in ("ctx", "kind", "type_comment", "type_ignores"):
                continue
            yield f" {name}="
            yield from _words(value)
        yield ")"
    elif isinstance(node, list):
        for each in node:
            yield from _words(each)
    else:
        yield f"{type(node).__name__}:{node!r}"


def _part(node: ast.AST, name: str) -> object:
    if name == "body":
        return _without_docstring(node)
    value = getattr(node, name, None)
    if name == "values" and isinstance(node, ast.JoinedStr):
        # Python 3.12 leaves empty texts in there
        return [each for each in node.values if getattr(each, "value", None) != ""]
    return value


def _without_docstring(node: ast.AST) -> object:
    body = getattr(node, "body", None)
    if not isinstance(node, FunctionNode | ast.ClassDef) or not isinstance(body, list) or not body:
        return body
    match body[0]:
        case ast.Expr(value=ast.Constant(value=str())):
            return body[1:]
    return body
