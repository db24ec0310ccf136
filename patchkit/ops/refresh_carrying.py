"""What becomes of a component's patches where its base, or what their recipes give, is another.

The checkout has no say in it: it holds nothing of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.objects import reading
from patchkit.gitcmd.overlay import overlay
from patchkit.gitcmd.pins import read_base
from patchkit.ops.refresh_refusals import (
    Found,
    cannot_generate,
    edited_and_repinned,
    edited_before_bump,
    halted,
    refused,
    unknown_base,
    with_findings,
)
from patchkit.ops.refresh_report import RefreshedComponent, Result
from patchkit.refresh.carrying import FixedPatchesError, draft_carry
from patchkit.refresh.drafting import Draft
from patchkit.store import Store
from patchkit.workspace import State

#: States of a checkout that holds nothing of its own.
UNEDITED = (State.ABSENT, State.APPLIED, State.PRISTINE)


@dataclass(frozen=True, slots=True)
class PinEdit:
    """A pin that is written together with the patches for it.

    `file` holds `before`, and will hold `after`; `old` is the base that the patches are for.
    `way_out` is what to do where one conflicts.
    """

    file: Path
    before: bytes
    after: bytes
    old: str
    way_out: str


def carry_patches(
    found: Found,
    old: str,
    blank: RefreshedComponent,
    *,
    store: Store,
    pin: PinEdit | None,
    careful: bool,
) -> tuple[RefreshedComponent, Draft | None]:
    """The patches for the base `found`, made from those for `old`; the report says why not."""
    if found.snapshot.state not in UNEDITED:
        edited = edited_and_repinned if pin is None else edited_before_bump
        return refused(blank, edited(found)), None
    cache = store.repository(found.project.component)
    if cache.commit(old) is None:
        raise SurroundingsError(unknown_base(found, old))
    bases = (read_base(cache, old), found.base)
    generator = found.generator
    try:
        with overlay(cache) as trial, reading(trial) as reader:
            draft, report = draft_carry(
                trial,
                reader,
                bases,
                found.series.patches,
                found.project.home,
                generator=generator,
                careful=careful,
                history=cache,
            )
    except FixedPatchesError as error:
        return _fixed(blank, error), None
    blank = with_findings(replace(blank, carried=report.outcomes), generator)
    if generator.problems:
        return cannot_generate(blank, generator.problems), None
    if draft is None:
        return halted(blank, found, pin.way_out if pin is not None else ""), None
    detail = f"{old[:12]} -> {found.base.commit[:12]}; {_moves_later(found)}"
    blank = replace(blank, result=Result.CARRIED, dropped=draft.dropped, detail=detail)
    return blank, draft


def regenerate_patches(
    found: Found, blank: RefreshedComponent, store: Store
) -> tuple[RefreshedComponent, Draft | None] | None:
    """The patches that recipes give now; None if they are the ones that are there.

    A checkout that was edited comes first: its edits are for the patches as they are.
    """
    if not found.generator.recipes or found.snapshot.state not in UNEDITED:
        return None
    cache = store.repository(found.project.component)
    generator, bases = found.generator.again(), (found.base, found.base)
    with overlay(cache) as trial, reading(trial) as reader:
        draft, report = draft_carry(
            trial,
            reader,
            bases,
            found.series.patches,
            found.project.home,
            generator=generator,
        )
    if generator.problems:
        return cannot_generate(blank, generator.problems), None
    if draft is None or draft.plan is None or not draft.plan.changed:
        return None
    detail = "" if found.snapshot.state is State.ABSENT else _moves_later(found)
    blank = replace(
        blank,
        result=Result.REGENERATED,
        carried=report.outcomes,
        dropped=draft.dropped,
        detail=detail,
    )
    return with_findings(blank, generator), draft


def _fixed(blank: RefreshedComponent, error: FixedPatchesError) -> RefreshedComponent:
    return replace(
        blank,
        result=Result.CONFLICTED,
        exit_code=error.exit_code,
        carried=error.report.outcomes,
        problems=error.problems,
    )


def _moves_later(found: Found) -> str:
    return f"patchkit apply {found.target} moves the checkout"
