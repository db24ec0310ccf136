"""Carry a stack onto another base, strictly: every patch lands exactly, is absorbed, or conflicts.

A patch lands UNCHANGED where it stood on the old base, or SHIFTED by some lines. It is ABSORBED
where it does not apply but undoing it does: the new base contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from patchkit.model.apply import Blobs, apply_changes
from patchkit.model.outcome import FileOutcome, PatchOutcome, Status
from patchkit.model.patch import FileChange
from patchkit.model.reverse import reverse_changes
from patchkit.model.tree import ObjectSource, Tree
from patchkit.stack import Base, SeriesPatch, Stack, StackBuilder, build_stack, patch_changes

#: Puts a patch that is made from a recipe onto what is built so far; None: it is an ordinary one.
Generate: TypeAlias = Callable[[StackBuilder, SeriesPatch], PatchOutcome | None]


@dataclass(frozen=True, slots=True)
class CarryReport:
    """What became of a stack on a new base; `stack` holds what landed there."""

    old_base: Base
    new_base: Base
    stack: Stack

    @property
    def outcomes(self) -> tuple[PatchOutcome, ...]:
        """One outcome per patch, in the order of the series."""
        return self.stack.outcomes

    @property
    def clean(self) -> bool:
        """Whether nothing is left for a person to do."""
        return all(each.status not in (Status.CONFLICTED, Status.SKIPPED) for each in self.outcomes)


def carry_stack(
    source: ObjectSource,
    old_base: Base,
    new_base: Base,
    patches: Sequence[SeriesPatch],
    generate: Generate | None = None,
) -> CarryReport:
    """Put `patches`, made for `old_base`, onto `new_base`; nothing is written.

    A patch that conflicts is left out and the next one is tried without it. `generate` is asked
    first for each patch.
    """
    before = build_stack(source, old_base, patches, stop_at_conflict=False)
    builder = StackBuilder(source, new_base)
    builder.preload(patches)
    outcomes = [
        _carry(builder, patch, old, generate)
        for patch, old in zip(patches, before.outcomes, strict=True)
    ]
    return CarryReport(old_base, new_base, builder.finish(outcomes))


def is_contained(tree: Tree, blobs: Blobs, changes: Sequence[FileChange]) -> bool:
    """Whether `tree` holds the changes already: undoing all of them applies exactly, in place."""
    undone = apply_changes(tree, blobs, reverse_changes(changes))
    return bool(changes) and undone.tree is not None and not _shifted(undone.files)


def _carry(
    builder: StackBuilder, patch: SeriesPatch, before: PatchOutcome, generate: Generate | None
) -> PatchOutcome:
    generated = generate(builder, patch) if generate is not None else None
    if generated is not None:
        return _as_on_old_base(generated, before)
    tree = builder.tree
    changes = patch_changes(patch)
    exact = apply_changes(tree, builder.blobs, changes)
    lands_elsewhere = exact.tree is None or _shifted(exact.files)
    # a change whose lines repeat may find a second place at an offset: being there comes first
    if changes and lands_elsewhere and is_contained(tree, builder.blobs, changes):
        return PatchOutcome(patch.name, Status.ABSORBED, exact.files)
    return _as_on_old_base(builder.push(patch), before)


def _as_on_old_base(outcome: PatchOutcome, before: PatchOutcome) -> PatchOutcome:
    """Unchanged means: just as it applied on the old base, offsets and all."""
    if outcome.status is not Status.SHIFTED or not before.status.applies:
        return outcome
    files = tuple(
        replace(now, status=Status.UNCHANGED) if now.offsets == then.offsets else now
        for now, then in zip(outcome.files, before.files, strict=True)
    )
    status = Status.SHIFTED if any(f.status is Status.SHIFTED for f in files) else Status.UNCHANGED
    return replace(outcome, status=status, files=files)


def _shifted(files: Sequence[FileOutcome]) -> bool:
    return any(each.status is Status.SHIFTED for each in files)
