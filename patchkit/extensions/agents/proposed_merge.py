"""A merge that is proposed: taken by the engine that a person's goes through, or refused with what
does not hold. Whatever is refused has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from msgspec.structs import replace

from patchkit.carry.carried import CarryOptions, CarryReport, MergerAnswer, MergeRequest
from patchkit.errors import Problem
from patchkit.extension import CheckedStack, CheckRun, finders
from patchkit.extensions.agents.asked import ToolArguments
from patchkit.extensions.agents.merge_laws import SHOWN, merged_text
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.manifest.values import RunStep
from patchkit.model.finding import Severity
from patchkit.model.names import PYTHON
from patchkit.model.syntax import language_of
from patchkit.model.tree import Overlay
from patchkit.ops.check import guard_findings
from patchkit.ops.refresh_input import RefreshInput
from patchkit.ops.resume import CannotGoOnError, Resumed
from patchkit.refresh.patch_plan import Draft
from patchkit.report.json import plain
from patchkit.stack.build import SeriesPatch, Stack, build_stack


def propose_merge(
    found: RefreshInput,
    resumed: Resumed,
    reader: ObjectReader,
    carry: Callable[..., tuple[Draft | None, CarryReport]],
    options: CarryOptions,
    *,
    given: ToolArguments,
    run: bool,
) -> tuple[Draft | None, CarryReport]:
    """What `RefreshOptions.propose` asks; `run`: commands of `verify` are run.

    Raises CannotGoOnError with all that does not hold.
    """
    stood, name = resumed.halt.place, resumed.waiting.patch
    there = resumed.halt.commit, found.snapshot.head, plain(resumed.work.place)
    if there != (given.conflict, stood.tip, plain(stood)):
        what = "another conflict waits, or somebody works on it in the checkout"
        raise CannotGoOnError(Problem(what, found.component.name, "ask `conflict`"))
    problems, files = list[Problem](), dict(given.files)
    named = {line.strip() for line in given.dropped} - {""}
    unused = set(named)
    owed = "".join(f", owed: {place}" for place in _owed(found, run=run))

    def merger(patch: SeriesPatch, request: MergeRequest) -> MergerAnswer | None:
        if patch.name != name:
            return options.merger(patch, request) if options.merger is not None else None
        data, odd, wrong = merged_text(request, files.pop(request.path, ()), named)
        problems.extend(wrong)
        unused.difference_update(odd)
        title = f"a proposal (held: {_held(request.path)}; dropped as named: {len(odd)}{owed})"
        return MergerAnswer(title, data, "does not hold" if wrong else "")

    generator = found.generator.again() if found.generator is not None else None
    _, before = carry(options=replace(options, merger=None), generator=generator)
    draft, after = carry(options=replace(options, merger=merger))
    if not problems:
        problems += (Problem("no merge is asked for it", path) for path in files)
        problems += (Problem(f"`{line[:SHOWN]}` is named, and kept", name) for line in unused)
        problems += _unfit(before, after, name)
    if not problems:
        old = build_stack(reader, before.old_base, found.series.series_patches)
        known = _errors(found, old, reader).keys() | _errors(found, before.stack, reader).keys()
        errors = _errors(found, after.stack, reader, run=run and after.clean)
        problems += (errors[key] for key in errors.keys() - known)
    if problems:
        raise CannotGoOnError(*problems)
    return draft, after


def _owed(found: RefreshInput, *, run: bool) -> Iterator[str]:
    """The places of the commands that nobody runs about it."""
    component = found.component
    commands: list[Any] = [*filter(None, [component.upstream_tests])]
    commands += found.manifest.mergers if not found.options.run else ()
    commands += (step for step in component.verify if isinstance(step, RunStep) and not run)
    yield from (each.where.below(found.manifest.root) for each in commands)


def _held(path: str) -> str:
    """What held of a file, in words."""
    parses = "it parses, " if language_of(path) else ""
    names = "definitions, names, scopes, " if path.endswith(PYTHON) else ""
    return f"{parses}lines of both sides, {names}later patches, check"


def _unfit(before: CarryReport, after: CarryReport, patch: str) -> Iterator[Problem]:
    """Of a patch, and of later ones that fit before, why they do not fit."""
    fits = {patch, *(each.name for each in before.outcomes if not each.status.fails)}
    for outcome in after.outcomes:
        if outcome.status.fails and outcome.name in fits:
            reasons = "; ".join(said for file in outcome.files for said in file.reasons)
            yield Problem(f"does not fit: {reasons}", outcome.name)


def _errors(
    found: RefreshInput, stack: Stack, reader: ObjectReader, *, run: bool = False
) -> dict[tuple[str, str], Problem]:
    """The errors of a check of a stack (calls, overrides, files that parse, steps of `verify`), by
    what tells them from others on whatever line they stand.
    """
    seen = Overlay(reader, stack.objects)
    patches = found.series.patches
    checked = CheckedStack(found.manifest, found.component, patches, (), stack, seen)
    asking = CheckRun(found.store, found.progress, run, date.today())
    return {
        (each.what, each.where.partition(":")[0]): Problem(each.what, each.where, each.hint)
        for each in guard_findings(checked, asking, finders(asking))
        if each.severity is Severity.ERROR
    }
