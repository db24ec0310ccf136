"""Which branches run, by what a manifest says of the machine: true, false or not known.

`assume: {is_npu: true}` holds for the name `is_npu`, for the attribute, and for what a call of it
gives. Names that a module or function binds once are followed to what they are bound to.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec import Struct

from patchkit.python.inference import NameScope, Values, parameters_of
from patchkit.python.modules import FunctionNode
from patchkit.python.resolve import Code

_DEEPEST = 8


class Conditions(Struct, frozen=True):
    """Judges tests in the modules that `values` reads; `assume` by the tree of the module."""

    values: Values
    assume: Mapping[str, Mapping[str, bool]]

    def holds(self, scope: NameScope, test: ast.expr, depth: int = 0) -> bool | None:
        """Whether a test is true; None where that depends on more than is known."""
        found: bool | None = None
        match test:
            case ast.Constant(value=value):
                found = bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                held = self.holds(scope, inner, depth)
                found = None if held is None else not held
            case ast.BoolOp(op=op, values=parts):
                found = self._several(scope, parts, depth, decisive=isinstance(op, ast.Or))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found = self._assumed(scope, name)
            case ast.Attribute(attr=name):
                found = self._assumed(scope, name)
            case ast.Name(id=name):
                found = self._assumed(scope, name)
                if found is None and depth < _DEEPEST:
                    found = self._followed(scope, name, depth)
            case ast.Compare(
                left=ast.Name(id="__name__"), comparators=[ast.Constant(value="__main__")]
            ):
                found = False
        return found

    def _assumed(self, scope: NameScope, name: str) -> bool | None:
        if name == "TYPE_CHECKING":
            return False
        return self.assume.get(scope.module.tree, {}).get(name)

    def _several(
        self, scope: NameScope, parts: list[ast.expr], depth: int, *, decisive: bool
    ) -> bool | None:
        found = [self.holds(scope, part, depth) for part in parts]
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    def _followed(self, scope: NameScope, name: str, depth: int) -> bool | None:
        """What a name holds that is bound once, for certain, to an expression."""
        place: NameScope | None = scope
        while place is not None and place.node is not None:
            if name in place.hidden or name in parameters_of(place.node):
                return None
            if isinstance(place.node, FunctionNode):
                bound = self.values.local_names(place.node).names.get(name, [])
                if bound:
                    only = bound[0]
                    if len(bound) > 1 or not only.certain or not isinstance(only.meaning, ast.expr):
                        return None
                    return self.holds(place, only.meaning, depth + 1)
            place = place.outer
        things = self.values.resolver.evaluate(scope.module, ast.Name(name, ast.Load()))
        match things:
            case (Code(node=ast.expr() as value, module=module, owner=""),):
                return self.holds(NameScope(module), value, depth + 1)
        return None
