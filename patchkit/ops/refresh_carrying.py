"""What becomes of a component's patches where its base, or what their recipes give, is another.

The checkout has no say in it: it holds nothing of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.objects import reading
from patchkit.gitcmd.overlay import overlay
from patchkit.gitcmd.pins import read_base
from patchkit.manifest.values import GitPin
from patchkit.model.progress import Progress
from patchkit.ops.blaming import with_upstream
from patchkit.ops.bump_report import NamedPin
from patchkit.ops.halting import (
    CannotGoOnError,
    Resumed,
    Stop,
    Waiting,
    can_stop_in,
    halted_report,
    nothing_waits,
    pin_text,
    resume,
    seen_files,
    waits,
)
from patchkit.ops.refresh_options import PinEdit, RefreshOptions
from patchkit.ops.refresh_refusals import (
    Found,
    cannot_generate,
    edited_and_repinned,
    edited_before_bump,
    halted,
    not_ours,
    refused,
    stopped,
    unknown_base,
    with_findings,
)
from patchkit.ops.refresh_report import RefreshedComponent, Result
from patchkit.ops.ways_out import in_columns
from patchkit.refresh.carrying import FixedPatchesError, draft_carry
from patchkit.refresh.deciding import Decision
from patchkit.refresh.drafting import Draft
from patchkit.refresh.halting import Conflict, first_conflict
from patchkit.refresh.remembering import load_resolutions, new_resolutions
from patchkit.store import Store
from patchkit.workspace import State
from patchkit.workspace.halting import read_halt

#: States of a checkout that holds nothing of its own.
UNEDITED = (State.ABSENT, State.APPLIED, State.PRISTINE)


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of the patches: new ones in `draft`; else the report says why not.

    `stop` is a conflict to put into the checkout, `resumed` the one from which it went on;
    `resolutions` are files that remember how it was resolved.
    """

    report: RefreshedComponent
    draft: Draft | None = None
    stop: Stop | None = None
    resumed: Resumed | None = None
    resolutions: Mapping[Path, bytes] = field(default_factory=dict)


def carry_patches(  # noqa: PLR0917
    found: Found,
    old: str,
    blank: RefreshedComponent,
    store: Store,
    options: RefreshOptions,
    pin: PinEdit | None,
    progress: Progress,
) -> Carried:
    """The patches for the base `found`, made from those for `old`."""
    resumed = _resumed(found, options) if options.step is not None else None
    if resumed is None and found.snapshot.state not in UNEDITED:
        edited = edited_and_repinned if pin is None else edited_before_bump
        return Carried(refused(blank, edited(found)))
    cache = store.repository(found.project.component)
    if cache.commit(old) is None:
        raise SurroundingsError(unknown_base(found, old))
    generator = found.generator
    sources = [cache, *([found.checkout.repository] if resumed is not None else [])]
    decisions = dict(resumed.waiting.decisions) if resumed is not None else {}
    # a patch is left out only where `undo` can bring it back: it knows by the checkout
    may_leave_out = options.partial and (options.dry_run or can_stop_in(found.snapshot, resumed))
    try:
        with overlay(*sources) as trial, reading(trial) as reader:
            bases = (read_base(cache, old), found.base)
            remembered = load_resolutions(found.project.home)
            while True:
                conflict = None
                draft, report = draft_carry(
                    trial,
                    reader,
                    bases,
                    found.series.patches,
                    found.project.home,
                    generator=generator,
                    careful=options.careful,
                    history=cache,
                    decisions=decisions,
                    remembered=remembered,
                )
                if draft is None and not generator.problems:
                    conflict = first_conflict(reader, report, found.series.patches)
                if conflict is None or not may_leave_out:
                    break
                decisions[conflict.patch.name] = Decision(conflict.onto, None)
            files = new_resolutions(trial, reader, found.project.home, decisions)
    except FixedPatchesError as error:
        return Carried(_fixed(blank, error))
    blank = with_findings(replace(blank, carried=report.outcomes), generator)
    if generator.problems:
        return Carried(cannot_generate(blank, generator.problems))
    if draft is None:
        return _stopped(found, old, blank, options, pin, conflict, resumed, store, progress)
    detail = f"{old[:12]} -> {found.base.commit[:12]}"
    later = _moves_later(found) if resumed is None else "the checkout is there"
    blank = replace(
        blank,
        result=Result.CARRIED,
        dropped=draft.dropped,
        left_out=_decided(decisions, kept=False),
        resolved=_decided(decisions, kept=True),
        saved=resumed.saved if resumed is not None else "",
        detail=f"{detail}; {later}",
    )
    return Carried(blank, draft, resumed=resumed, resolutions=files)


def _resumed(found: Found, options: RefreshOptions) -> Resumed:
    halt = read_halt(found.checkout) if waits(found.snapshot) else None
    if halt is None or options.step is None:
        raise CannotGoOnError(nothing_waits(found.project.component.name))
    return resume(found, halt, options.step, options.when)


def _stopped(  # noqa: PLR0917
    found: Found,
    old: str,
    blank: RefreshedComponent,
    options: RefreshOptions,
    pin: PinEdit | None,
    conflict: Conflict | None,
    resumed: Resumed | None,
    store: Store,
    progress: Progress,
) -> Carried:
    """A conflict: put into the checkout if that may be, told in any case."""
    may_stop = options.stop and not options.dry_run and can_stop_in(found.snapshot, resumed)
    if conflict is None:
        return Carried(not_ours(blank, found))
    if not may_stop:
        return Carried(halted(blank, _way_out(found, old, options, pin)))
    conflict = with_upstream(conflict, found.project.component, old, store, progress)
    old_name = pin.old if pin is not None else NamedPin(old)
    new_name = pin.new if pin is not None else NamedPin(found.base.commit)
    waiting = Waiting(
        found.project.manifest.name,
        found.project.component.name,
        old,
        old_name,
        new_name,
        pin_text(pin.pin) if pin is not None else None,
        options.careful,
        options.fork,
        conflict.patch.name,
        conflict.onto,
        tuple(each.path for each in conflict.files if each.marked),
        seen_files(found),
        conflict.keys,
        resumed.waiting.decisions if resumed is not None else {},
    )
    cache = store.repository(found.project.component)
    stop = Stop(found, cache, conflict, waiting, resumed)
    report = stopped(blank, found, halted_report(stop))
    report = replace(
        report,
        left_out=_decided(waiting.decisions, kept=False),
        resolved=_decided(waiting.decisions, kept=True),
        saved=resumed.saved if resumed is not None else "",
    )
    return Carried(report, stop=stop, resumed=resumed)


def _way_out(found: Found, old: str, options: RefreshOptions, pin: PinEdit | None) -> str:
    """What to do about a conflict that was not put into the checkout."""
    project = found.project
    name, manifest = project.component.name, project.manifest.name
    if can_stop_in(found.snapshot, None):
        if options.dry_run:
            return "without --dry-run, the checkout gets the conflict, to be resolved there"
        if not options.stop:
            bump = f"patchkit bump {name} -m {manifest} --to-track"
            return f"nothing was written; {bump}  puts it into the checkout"
    if pin is not None:
        return pin.way_out
    again = [("put the pin back", old)]
    if isinstance(project.component.pin, GitPin):
        bump = f"patchkit bump {name} -m {manifest} --to {project.component.pin}"
        again += [("make a checkout", f"patchkit apply {found.target}"), ("bump it", bump)]
    return "nothing was written. To have the conflict in a checkout:\n" + in_columns(again)


def _decided(decisions: Mapping[str, Decision], *, kept: bool) -> tuple[str, ...]:
    """The patches that were resolved, or left out."""
    return tuple(name for name, each in decisions.items() if (each.tree is not None) == kept)


def regenerate_patches(found: Found, blank: RefreshedComponent, store: Store) -> Carried | None:
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
        return Carried(cannot_generate(blank, generator.problems))
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
    return Carried(with_findings(blank, generator), draft)


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
