"""Names that a merged Python file uses and nothing in it binds: an error in waiting.

One side takes a name away, the other one uses it in new lines; git's own merge is clean then. The
compiler's own tables of scopes tell, so that a name that another function binds is no help, and
strings, comments and attributes are no names.
"""

from __future__ import annotations

import builtins
import re
import symtable
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache

from patchkit.model.linediff import Edit
from patchkit.model.merging.regions import ThreeWay

#: Bound in every module, besides the built-in ones.
_MODULE = frozenset(("__file__", "__path__", "__builtins__", "__annotations__", "__class__"))
_BOUND = frozenset(dir(builtins)) | _MODULE
_WORD = re.compile(rb"[^\W\d]\w*")
_EVERYTHING = re.compile(rb"(?m)^[ \t]*from[ \t]+\S+[ \t]+import[ \t]*\*")
_KEPT = 8  # files: the sides of a merge, which meet many versions of each other


def names_unbound(path: str, three: ThreeWay, merged: bytes) -> tuple[str, ...]:
    """Names without a binding in `merged` that have one, or are not used, on each side."""
    if not path.endswith(".py") or not _may_lose_a_binding(three):
        return ()
    sides = [unbound_names(b"".join(side)) for side in (three.upstream, three.patch)]
    result = unbound_names(merged)
    if result is None or any(side is None for side in sides):
        return ()
    return tuple(sorted(result.difference(*(side for side in sides if side is not None))))


@lru_cache(maxsize=_KEPT)
def unbound_names(data: bytes) -> frozenset[str] | None:
    """The names that have no binding in their scopes; None if nobody can say.

    That is a file that does not parse, or that imports everything of another module.
    """
    if _EVERYTHING.search(data):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # it takes bytes as `compile` does, a line that names their encoding included
            module = symtable.symtable(data, "file", "exec")  # type: ignore[arg-type]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    bound, used = set[str](), set[str]()
    todo = [module]
    while todo:
        scope = todo.pop()
        todo += scope.get_children()
        for symbol in scope.get_symbols():
            everywhere = scope is module or symbol.is_declared_global()
            if everywhere and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            if symbol.is_referenced() and (scope is module or symbol.is_global()):
                used.add(symbol.get_name())
    return frozenset(used - bound - _BOUND)


def _may_lose_a_binding(three: ThreeWay) -> bool:
    """Whether a word that one side takes away is in the other's new lines: mostly none is."""
    up, own = three.upstream_edits, three.patch_edits
    return bool(
        _taken(three.base, up) & _brought(three.patch, own)
        or _taken(three.base, own) & _brought(three.upstream, up)
    )


def _taken(base: Sequence[bytes], edits: Iterable[Edit]) -> set[bytes]:
    return {word for e in edits for line in base[e.start : e.end] for word in _WORD.findall(line)}


def _brought(side: Sequence[bytes], edits: Iterable[Edit]) -> set[bytes]:
    lines = (line for e in edits for line in side[e.new_start : e.new_end])
    return {word for line in lines for word in _WORD.findall(line)}
