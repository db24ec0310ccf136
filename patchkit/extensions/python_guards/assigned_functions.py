"""Functions that one upstream assigns over those of another, as text in that other one.

That is a replacement of text only where every name in the function means the same in the module of
what it replaces; what an import of its own module brings is imported within the function.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator
from copy import deepcopy
from textwrap import dedent, indent

from patchkit.extensions.python_guards.bodies import walk
from patchkit.extensions.python_guards.modules import Module
from patchkit.extensions.python_guards.replacements import (
    Replacements,
    body_hash,
    definition_text,
    first_line,
)
from patchkit.extensions.python_guards.resolve import Absent, Code, Outside, Resolver, Unclear
from patchkit.extensions.python_guards.text_edits import Replacement, Rewrite
from patchkit.model.syntax import FunctionNode, parse_python, unbound_names

_BUILT_IN = frozenset(dir(builtins))
#: What means something else in another module, or in a class.
_BOUND_TO_ITS_PLACE = re.compile(r"\b(?:global|super|__class__|__[A-Za-z]\w*(?<!__))\b")


class _StaysError(Exception):
    """Why a function cannot stand where another one does."""


def assigned_functions(
    calls: Replacements, packages: Collection[str], own: Resolver, target: Resolver
) -> Iterator[Rewrite]:
    """What assignments in the tree of `own` put in the place of functions of `target`: with a
    script, or with the problem that keeps it where it is.
    """
    for name, sites in calls.below(packages).items():
        for site in sites:
            module = own.modules.at(site.path)
            if module is None or name.rpartition(".")[2] != site.text.rpartition(".")[2]:
                continue  # no assignment
            script, problem = None, ""
            top = (each for each in module.syntax.body if isinstance(each, ast.Assign))
            here = [each.value for each in top if each.lineno == site.line]
            try:
                if len(sites) > 1 or not here:
                    raise _StaysError("only a run tells whether it is assigned")
                script = _moved(name, module, here[0], own, target)
            except _StaysError as error:
                problem = str(error)
            yield Rewrite(site.path, site.line, name, True, script, problem=problem)


def _moved(
    name: str, module: Module, value: ast.expr, own: Resolver, target: Resolver
) -> Replacement:
    """The text of the function that is assigned, as the definition of a target's name."""
    match (*own.evaluate(module, value), *target.resolve(name)):
        case (
            Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() as ours, owner="") as new,
            Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() as theirs) as old,
        ) if f"{old.module.name}.{old.qualified}" == name:
            before = definition_text(old.module.text, theirs)
            source = dedent(definition_text(new.module.text, ours))
            imports = _imports(source, new, old, own, target)
            after = _placed(source, ours, theirs, imports)
            return Replacement(before, after, written=f"{name} = {ast.unparse(value)}")
    raise _StaysError("it is not one function that is put in the place of one of that name")


def _imports(source: str, new: Code, old: Code, own: Resolver, target: Resolver) -> list[str]:
    """The imports that the names of the new function need where the old one is."""
    unbound = unbound_names(source.encode())
    if unbound is None:
        raise _StaysError("its names are not plain to see")
    if found := _BOUND_TO_ITS_PLACE.search(source):
        raise _StaysError(f"{found[0]} in it means something else there")
    assert isinstance(new.node, FunctionNode)
    body = new.node.body[0].lineno - first_line(new.node)
    header = "\n".join(source.split("\n")[:body])
    bound = {*new.module.namespace.names, *old.module.namespace.names}
    shadowed = _BUILT_IN & bound & {*re.findall(r"\w+", source)}
    imports = list[str]()
    for name in sorted(unbound | shadowed):
        node = ast.Name(name, ast.Load())
        brought = there = own.evaluate(new.module, node)
        outer = brought[0].name if isinstance(brought[0], Outside) else ""
        if target.modules.module(outer.partition(".")[0]) is not None:
            there = target.resolve(outer)
        is_one = len(there) == 1 and there != (old,) and not isinstance(there[0], Absent | Unclear)
        if is_one and there == target.evaluate(old.module, node):
            continue
        # an import of `name.inner` loads more than it names
        is_loaded = re.search(rf"\bimport {name}\.", new.module.text)
        if not (is_one and outer) or re.search(rf"\b{name}\b", header) or is_loaded:
            raise _StaysError(f"{name} means something else in {old.module.path}")
        home, _, last = outer.rpartition(".")
        given = last if last == name else f"{last} as {name}"
        imports.append(f"from {home} import {given}" if home else f"import {given}")
    return imports


def _placed(source: str, new: FunctionNode, old: FunctionNode, imports: list[str]) -> str:
    """A function's text under the name and in the place of another one, with imports in it."""
    begin = int(ast.get_docstring(new) is not None and len(new.body) > 1)
    wanted = deepcopy(new)
    wanted.name = old.name
    wanted.body[begin:begin] = parse_python("\n".join(imports))[0].body
    lines = re.sub(rf"(\bdef\s+){new.name}\b", rf"\g<1>{old.name}", source, count=1).split("\n")
    at = new.body[begin].lineno - first_line(new)
    lines[at:at] = [indent(each, lines[at][: -len(lines[at].lstrip())]) for each in imports]
    placed = indent("\n".join(lines), " " * old.col_offset)
    syntax, _ = parse_python(f"class _:\n{placed}" if old.col_offset else placed)
    made = next((each for each in walk(syntax) if isinstance(each, FunctionNode)), None)
    if body_hash(made) != body_hash(wanted):
        raise _StaysError("its text cannot be set in so far")
    return placed
