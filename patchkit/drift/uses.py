"""How one file uses what it defines: who is called in which way, and who is named at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patchkit.overrides.fingerprint import signature_of
from patchkit.python.bindings import FunctionNode
from patchkit.python.sources import parse_python

_CALL = re.compile(rb"(?<![\w])([A-Za-z_]\w{2,})\s*\(")
_DEFINITION = re.compile(rb"\s*(?:async\s+def|def|class)\s+(\w+)")


def signatures(lines: Sequence[bytes]) -> dict[bytes, frozenset[str]]:
    """Function or class -> how it is called, in each of its definitions in the file.

    Empty for a file that cannot be parsed.
    """
    found: dict[bytes, set[str]] = {}
    for node in ast.walk(parse_python(b"".join(lines))[0]):
        name, called = "", ""
        if isinstance(node, FunctionNode):
            name, called = node.name, signature_of(node)
        elif isinstance(node, ast.ClassDef):
            made = [each for each in node.body if isinstance(each, FunctionNode)]
            name = node.name
            called = next((signature_of(each) for each in made if each.name == "__init__"), "")
        if called:
            found.setdefault(name.encode(), set()).add(called)
    return {name: frozenset(each) for name, each in found.items()}


def called_in(lines: Sequence[bytes]) -> set[bytes]:
    """The names that code calls; definitions do not count."""
    code = [line.partition(b"#")[0] for line in lines if not _DEFINITION.match(line)]
    return {name for line in code for name in _CALL.findall(line)}


def is_named(lines: Sequence[bytes], name: str) -> bool:
    """Whether the file names a function or class anywhere but where it is defined."""
    word = re.compile(rb"(?<!\w)" + re.escape(name.encode()) + rb"(?!\w)")
    for line in lines:
        defined = _DEFINITION.match(line)
        own = defined is not None and defined[1] == name.encode()
        if len(word.findall(line.partition(b"#")[0])) > own:
            return True
    return False
