"""A stack as one Python module that replaces functions when it is imported, for images that cannot
be rebuilt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import replace_file
from patchkit.errors import BadInputError, Problem
from patchkit.extensions.python_guards.modules import read_namespace
from patchkit.extensions.python_guards.replacements import body_hash, definition_text, first_line
from patchkit.gitcmd.trees import TreeView
from patchkit.model.syntax import FunctionNode, parse_python
from patchkit.ops.built_stack import BuiltStack
from patchkit.ops.transfer import Form
from patchkit.templates.environments import render_template

_PRIVATE = re.compile(r"\b__[A-Za-z]\w*(?<!__)\b")


class _Replaced(Struct, frozen=True):
    """A function or method (Class.method) as the patches have it, and what it replaces, "" for a
    new one.
    """

    path: str
    line: int  # from 1, in the patched tree
    name: str
    sha256: str  # of the text that is replaced
    source: str


def _write(built: BuiltStack, target: Path) -> None:
    """Write the module; BadInputError if replacing functions does not do all of the patches."""
    base = TreeView(built.source, built.stack.base.tree)
    replaced, problems = list[_Replaced](), list[Problem]()
    for file in built.stack.files:
        old, new = base.data(file.path), built.tip.data(file.path)
        if old is None or new is None or not file.path.endswith(".py"):
            problems.append(Problem("is no Python file before and after the patches", file.path))
        else:
            _compare(file.path, _text(old), _text(new), replaced, problems)
    if problems:
        raise BadInputError(*problems)
    text = render_template("runtime.py.j2", built=built, replaced=replaced)
    replace_file(target, text.encode(), named=True)


def _text(data: bytes) -> str:
    """A file's text with the line ends that Python gives it."""
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _compare(
    path: str, old: str, new: str, replaced: list[_Replaced], problems: list[Problem]
) -> None:
    """Add the functions of a file that differ, and what else does."""
    (old_syntax, _), (syntax, problem) = parse_python(old), parse_python(new)
    if problem:
        problems.append(Problem(f"cannot be parsed: {problem}", path))
        return
    theirs = dict(_functions(old_syntax.body))
    for name, node in _functions(syntax.body):
        before = theirs.get(name)
        if before is None or body_hash(before) == body_hash(node):
            continue
        line, source = first_line(node), definition_text(new, node)
        if "." in name and (private := _PRIVATE.search(source)):
            why = f"{private[0]} in {name} is another name out of its class"
            problems.append(Problem(why, f"{path}:{line}"))
        digest = sha256(definition_text(old, before).encode()).hexdigest()
        replaced.append(_Replaced(path, line, name, digest, source))
        for part in node._fields:  # as it was: what else differs?
            setattr(node, part, getattr(before, part))
    for was, now in zip_longest(old_syntax.body, syntax.body):
        if body_hash(was) != body_hash(now):
            place = f"{path}:{first_line(now or was)}"
            problems.append(Problem("changes outside of functions", place))
            return


def _functions(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, FunctionNode]]:
    """The functions of a block and of classes in it that are bound once, by name in the module."""
    names = read_namespace(body).names
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{owner}{node.name}.")
        elif isinstance(node, FunctionNode) and len(names[node.name]) == 1:
            yield owner + node.name, node


RUNTIME = Form("runtime", write=_write)
