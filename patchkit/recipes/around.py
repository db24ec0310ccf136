"""The qualified name of the function or class around a site: "Outer.method"."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from patchkit.recipes.bounds import require_apart
from patchkit.recipes.values import CodeRule

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_NAMED = re.compile(r"function|class|method|definition|declaration|struct|impl|module|interface")
#: What a node is known by: kind, start, end.
_Key = tuple[str, int, int]


class Around:
    """Names of what is around the sites of a rule in one file; each node on the way is asked once.

    `name` raises BadInputError when the sites lie inside each other by the thousand.
    """

    def __init__(self, rule: CodeRule, path: str) -> None:
        self._rule, self._path = rule, path
        self._known: dict[_Key, tuple[str, ...]] = {}
        self._text = self._steps = 0

    def name(self, node: SgNode) -> str:
        """The names of the functions and classes around a node, outermost first."""
        names, depth = self._above(node)
        place = node.range()
        self._text += place.end.index - place.start.index
        self._steps += depth
        require_apart(self._rule, self._path, text=self._text, steps=self._steps)
        return ".".join(names)

    def _above(self, node: SgNode) -> tuple[tuple[str, ...], int]:
        """The names above a node, and how many nodes are."""
        # not parent(): each call of it walks down from the root again
        chain = [node, *node.ancestors()]
        way: list[tuple[_Key, SgNode, SgNode]] = []
        names: tuple[str, ...] = ()
        for inner, outer in pairwise(chain):
            key = _key(inner)
            if key in self._known:
                names = self._known[key]
                break
            way.append((key, inner, outer))
        for key, inner, outer in reversed(way):
            name = _own(outer, inner)
            names = (*names, name) if name else names
            self._known[key] = names
        return names, len(chain)


def _key(node: SgNode) -> _Key:
    place = node.range()
    return node.kind(), place.start.index, place.end.index


def _own(outer: SgNode, inner: SgNode) -> str:
    """What `outer` adds to the name of what is in its child `inner`; "" for nothing."""
    named = outer
    if outer.kind() == "decorated_definition":
        definition = outer.field("definition")
        if definition is None or definition.range().start == inner.range().start:
            return ""
        named = definition
    name = named.field("name") if _NAMED.search(named.kind()) else None
    return name.text() if name is not None else ""
