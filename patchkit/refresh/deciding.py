"""What a person decided about patches that could not be carried: used in place of carrying them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from patchkit.carry.values import Generate
from patchkit.model.outcome import FileOutcome, PatchOutcome, Status
from patchkit.model.tree import Tree
from patchkit.stack import SeriesPatch, StackBuilder

_BY_HAND = "its conflict was resolved by hand"


class Decision(Struct, frozen=True):
    """A patch makes `tree` of the tree `onto`; or, where `tree` is None, it is left out.

    `offered` is the tree with the conflict, `keys` tell the conflict of each path from others.
    `flagged` are files that were merged beside it, and should be looked at.
    """

    onto: str
    tree: str | None
    offered: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    flagged: tuple[FileOutcome, ...] = ()

    @property
    def files(self) -> tuple[FileOutcome, ...]:
        """What there is to say of the patch's files."""
        by_hand = (FileOutcome(each, Status.MERGED, reasons=(_BY_HAND,)) for each in self.keys)
        return (*by_hand, *self.flagged)


class Deciding(Struct, frozen=True):
    """Puts patches as they were decided; everything else is for `otherwise`.

    A decision about another tree than the one that is there is none.
    """

    decisions: Mapping[str, Decision]
    otherwise: Generate | None = None

    def __call__(self, builder: StackBuilder, patch: SeriesPatch) -> PatchOutcome | None:
        """The outcome of a decided patch, None for one that has to be carried."""
        decision = self.decisions.get(patch.name)
        if decision is None or decision.onto != builder.tree_id:
            return self.otherwise(builder, patch) if self.otherwise is not None else None
        if decision.tree is None:
            return PatchOutcome(patch.name, Status.ABSORBED)
        tree = Tree(builder.source, decision.tree)
        return builder.place(patch, tree, (), Status.MERGED, decision.files)

    @property
    def left_out(self) -> frozenset[str]:
        """The patches that were left out."""
        return frozenset(name for name, each in self.decisions.items() if each.tree is None)
