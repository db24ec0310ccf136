"""The patch files of a stack whose pin was changed: rewritten for the base that it names now."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions, Past
from patchkit.disk.result_cache import (
    code_digest,
    memory_path,
    recall_packed,
    remember_packed,
)
from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.repository import Repository
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
from patchkit.stack.build import SeriesPatch, build_stack, series_paths
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


#: The code that decides what a carry comes to.
_CODE = ("carry", "gitcmd", "model", "model/merging", "stack")


class _KeptCarry(Struct, frozen=True):
    """A carry as it is kept."""

    facts: str  # a digest of all that it follows from
    report: CarryReport  # what it came to


class LastCarry:
    """The last carry of a series that took long, kept for whoever makes or tries the same again.

    Invariant: what is kept follows from its facts, which are the code, the syntax that it can
    read, both bases, the patches, what is remembered of conflicts, and what the carry goes by. A
    carry in which a recipe, a merger or a person has a say is not kept, nor is one for which a part
    of upstream's history could not be had.
    """

    def __init__(self, cache: Path, about: Sequence[str], worth: float = 0.3) -> None:
        """`about` is whose series it is; a carry of less than `worth` seconds is not kept."""
        self._path = memory_path(cache, "carries", list(about))
        self._worth = worth
        self._facts = ""
        self._began: float | None = None

    def known(
        self, bases: tuple[Base, Base], patches: Sequence[LoadedPatch], options: CarryOptions
    ) -> CarryReport | None:
        """What the carry came to, if it is the one that is kept."""
        facts = [
            code_digest(*_CODE),
            sys.version_info[:2],
            bases,
            [(each.name, each.sha256, each.strip, each.subdirectory) for each in patches],
            sorted(options.remembered.items(), key=lambda item: item[0]),
            (options.careful, options.patch_first, sorted(options.leave_out)),
        ]
        self._facts = sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
        kept = recall_packed(self._path, _KeptCarry)
        if kept is not None and kept.facts == self._facts:
            return kept.report
        self._began = thread_time()
        return None

    def keep(self, report: CarryReport) -> None:
        """Keep what a carry came to that was not known, in the place of the last one."""
        if self._began is not None and thread_time() - self._began >= self._worth:
            remember_packed(self._path, _KeptCarry(self._facts, report))


def draft_carry(
    reader: ObjectReader,
    bases: tuple[Base, Base],
    patches: Sequence[LoadedPatch],
    home: SeriesFolder,
    *,
    generator: Generator | None = None,
    decisions: Mapping[str, Decision] | None = None,
    options: CarryOptions | None = None,
    last: LastCarry | None = None,
) -> tuple[Draft | None, CarryReport]:
    """What the patches must say on the second base, made for the first; None if one conflicts.

    A patch that the new base contains leaves the series; one that `generator` has a recipe for is
    made from that. The repository of `reader` takes trial objects, and has the trees of
    `decisions`, a person's about single patches. Raises FixedPatchesError where a patch that is no
    file of the series would have to change. Of `options` what these two say is not used. `last` may
    know what the carry comes to.
    """
    old_base, new_base = bases
    repository = reader.repository
    series = [each.series_patch for each in patches]
    deciding = DecidedPatches(decisions or {}, generator)
    options = options or CarryOptions()
    options = replace(
        options,
        generate=deciding,
        past=options.past or _between(repository, bases, series),
        take_proposals=deciding.take_proposals,
    )
    report = last.known(bases, patches, options) if last is not None else None
    if report is None:
        report = carry_stack(reader, old_base, new_base, series, options)
    if not report.clean:
        return None, report
    _require_rewritable(report, patches, deciding.left_out | report.left_out.keys())
    made_on = options.made_on
    before = build_stack(reader, new_base if made_on else old_base, series)
    write_objects(repository, (*before.objects, *report.stack.objects))
    # what a recipe makes is always written in canonical form, whatever the file said before
    generated = generator.recipes if generator is not None else {}
    changes = commit_changes(before, patches) | dict(made_on)
    changes = {name: change for name, change in changes.items() if name not in generated}
    # one that comes in from elsewhere is no file yet
    there = [e for e in patches if e.path is None or e.name in generated or e.path.exists()]
    context = PlanContext(repository, reader, new_base, home, there, changes)
    loaded = {each.name: each for each in patches}
    landed = commit_changes(report.stack, patches)
    slots = [StackSlot(name, change, loaded[name]) for name, change in landed.items()]
    gone = tuple(each.name for each in report.outcomes if each.status is Status.ABSORBED)
    return replace(plan_patches(slots, patches, context), dropped=gone), report


def _between(
    repository: Repository, bases: tuple[Base, Base], series: Sequence[SeriesPatch]
) -> Past:
    old, new = (each.commit for each in bases)
    return Between(repository, old, new, paths=series_paths(series))


def _require_rewritable(
    report: CarryReport, patches: Sequence[LoadedPatch], left_out: frozenset[str]
) -> None:
    fixed = _fixed(report, patches, left_out)
    if fixed:
        theirs = {each.name for each in patches if each.path is None}
        merged = [each.name for each in report.outcomes if each.status is Status.MERGED]
        raise FixedPatchesError(report, [name for name in merged if name in theirs], fixed)


def _fixed(
    report: CarryReport, patches: Sequence[LoadedPatch], left_out: frozenset[str]
) -> list[Problem]:
    """What the new base asks of patches that cannot be rewritten, or taken off the series."""
    problems = []
    for outcome, patch in zip(report.outcomes, patches, strict=True):
        if outcome.status is Status.MERGED and patch.path is None:
            what = f"{patch.name} belongs to another repository, and fits only rewritten"
            problems.append(Problem(what, patch.where))
        elif outcome.status is Status.ABSORBED and not isinstance(patch.origin, LocalSeries):
            what = f"{patch.name} is in the new base already"
            if patch.name in left_out:
                what = f"{patch.name} was left out, and is named in the manifest itself"
            entry = str(patch.origin.where)
            problems.append(Problem(what, patch.where, f"take its entry off the manifest: {entry}"))
    return problems


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
