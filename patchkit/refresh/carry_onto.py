"""The patch files of a stack whose pin was changed: rewritten for the base that it names now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.manifest.values import LocalSeries
from patchkit.model.objects import Base
from patchkit.model.outcome import Status
from patchkit.model.revision import Revision
from patchkit.refresh.conflict import DecidedPatches, Decision
from patchkit.refresh.patch_plan import (
    Draft,
    PlanContext,
    SeriesFolder,
    StackSlot,
    commit_changes,
    plan_patches,
)
from patchkit.stack.build import build_stack
from patchkit.stack.patch_files import CommitChange
from patchkit.stack.series import LoadedPatch

if TYPE_CHECKING:
    from patchkit.stack.generated import Generator


class FixedPatchesError(PatchkitError):
    """Patches that would have to change, and that the manifest takes as they are.

    `report` has the verdicts; `rewritten` are patches that fit if they are. Their problems have no
    hint.
    """

    exit_code = ExitCode.HALTED

    def __init__(
        self, report: CarryReport, rewritten: Sequence[str], problems: Sequence[Problem]
    ) -> None:
        self.report, self.rewritten = report, rewritten
        super().__init__(*problems)


def draft_carry(
    reader: ObjectReader,
    bases: tuple[Base, Base],
    patches: Sequence[LoadedPatch],
    home: SeriesFolder,
    *,
    generator: Generator | None = None,
    decisions: Mapping[str, Decision] | None = None,
    options: CarryOptions | None = None,
) -> tuple[Draft | None, CarryReport]:
    """What the patches must say on the second base, made for the first; None if one conflicts.

    A patch that the new base contains leaves the series; one that `generator` has a recipe for is
    made from that; an edit of another one becomes a part of it. The repository of `reader` takes
    trial objects, and has the trees of `decisions`, a person's about single patches. Raises
    FixedPatchesError where a patch that is no file of the series would have to change. Of `options`
    what these two say is not used.
    """
    old_base, new_base = bases
    repository = reader.repository
    series = [each.series_patch for each in patches]
    deciding = DecidedPatches(decisions or {}, generator)
    options = options or CarryOptions()
    options = replace(
        options,
        generate=deciding,
        take_proposals=deciding.take_proposals,
    )
    report = carry_stack(reader, old_base, new_base, series, options)
    if not report.clean:
        return None, report
    _require_rewritable(report, patches, deciding.left_out | report.left_out.keys())
    made_on = options.made_on
    before = build_stack(reader, new_base if made_on else old_base, series)
    write_objects(repository, (*before.objects, *report.stack.objects))
    # what a recipe makes is always written in canonical form, whatever the file said before
    generated = generator.recipes if generator is not None else {}
    changes = commit_changes(before) | dict(made_on)
    changes = {name: change for name, change in changes.items() if name not in generated}
    # one that comes in from elsewhere is no file yet
    there = [e for e in patches if e.path is None or e.name in generated or e.path.exists()]
    context = PlanContext(repository, reader, new_base, home, there, changes)
    loaded = {each.name: each for each in patches}
    landed = _whole_changes(report, patches)
    listed = [each for each in patches if not each.into or each.name in landed]
    slots = [StackSlot(name, change, loaded[name]) for name, change in landed.items()]
    gone = tuple(each.name for each in report.outcomes if each.status is Status.ABSORBED)
    return replace(plan_patches(slots, listed, context), dropped=gone), report


def _whole_changes(report: CarryReport, patches: Sequence[LoadedPatch]) -> dict[str, CommitChange]:
    """What each patch that landed does, with what edits of it do."""
    landed = commit_changes(report.stack)
    for each in patches:
        if each.into in landed and each.name in landed:
            after = landed.pop(each.name).after
            landed[each.into] = replace(landed[each.into], after=after)
    return landed


def _require_rewritable(
    report: CarryReport, patches: Sequence[LoadedPatch], left_out: frozenset[str]
) -> None:
    """What the new base must not ask: of patches to be rewritten, or taken off the series."""
    problems, rewritten = [], []
    for outcome, patch in zip(report.outcomes, patches, strict=True):
        if outcome.status is Status.MERGED and patch.path is None:
            rewritten.append(patch.name)
            what = f"{patch.name} belongs to another repository, and fits only rewritten"
            problems.append(Problem(what, patch.where))
        elif outcome.status is Status.ABSORBED and not isinstance(patch.origin, LocalSeries):
            what = f"{patch.name} is in the new base already"
            if patch.name in left_out:
                what = f"{patch.name} was left out, and is named in the manifest itself"
            entry = str(patch.origin.where)
            problems.append(Problem(what, patch.where, f"take its entry off the manifest: {entry}"))
    if problems:
        raise FixedPatchesError(report, rewritten, problems)


def edited_recipes(
    reader: ObjectReader, base: Base, draft: Draft, generator: Generator
) -> tuple[str, ...]:
    """The generated patches that a draft changes into something their recipes do not give."""
    edited = {
        row.name
        for row in draft.revised
        if row.name in generator.recipes and row.revision is Revision.CONTENT
    }
    if not edited:
        return ()
    series = [each.series_patch for each in draft.patches]
    report = carry_stack(reader, base, base, series, CarryOptions(generator.again()))
    other = (Status.REGENERATED, Status.CONFLICTED)
    return tuple(
        each.name for each in report.outcomes if each.name in edited and each.status in other
    )
