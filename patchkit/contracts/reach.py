"""Which modules are loaded: what an import names, the packages around it, what a module may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchkit.python.bindings import Imported
from patchkit.python.sources import Module


def loaded_by(module: Module, statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The names that may be modules which an import loads, outer packages first."""
    if isinstance(statement, ast.Import):
        names = [each.name for each in statement.names]
    else:
        base = absolute_name(module, statement)
        inner = [f"{base}.{each.name}" for each in statement.names if each.name != "*"]
        names = [base, *inner] if base else []
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def absolute_name(module: Module, statement: ast.ImportFrom) -> str:
    """The module that a `from` names, "" if it leads out of the packages."""
    return module.absolute(Imported(statement.module or "", "", statement.level))
