"""What refresh and new print: where each edit goes, and which patches a reviewer must read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from patchkit.cli.bump_output import print_halted
from patchkit.cli.carried_output import print_carried, print_carried_file
from patchkit.cli.terminal import Terminal
from patchkit.cli.text import Line, Paint, Painted
from patchkit.cli.words import word
from patchkit.errors import Problem
from patchkit.model.counting import counted
from patchkit.model.revision import Revision
from patchkit.ops.refresh_report import RefreshedComponent, RefreshedPatch, RefreshReport, Result
from patchkit.refresh.drafting import RoutedEdit

_SHOWN = 8

#: What a dry run says in place of a result.
_WOULD = {
    Result.REFRESHED: "would refresh",
    Result.CARRIED: "would carry",
    Result.REGENERATED: "would regenerate",
}


def render_refresh(*, diff: bool) -> Callable[[Terminal, RefreshReport], None]:
    """A renderer of the report; `diff`: with the change of each patch."""

    def render(terminal: Terminal, report: RefreshReport) -> None:
        for component in report.components:
            _component(terminal, component, diff=diff, dry_run=report.dry_run)
        written = any(each.files for each in report.components)
        if report.dry_run and written:
            terminal.say("a dry run: nothing was written")

    return render


def _component(
    terminal: Terminal, component: RefreshedComponent, *, diff: bool, dry_run: bool
) -> None:
    text = _WOULD.get(component.result, "") if dry_run else ""
    terminal.product([word(component.result, text), "  ", component.name, _detail(component)])
    terminal.table(_edits(component.edits), indent=2)
    terminal.table(_patches(component), indent=2)
    if diff:
        for patch in component.patches:
            terminal.diff(patch.diff)
    for outcome in component.carried:
        if outcome.review or not outcome.status.applies:
            print_carried(terminal, outcome.name, outcome.status, review=outcome.review, indent=1)
            for file in outcome.files:
                print_carried_file(terminal, file)
    if component.halted is not None:
        print_halted(terminal, component.halted)
    for finding in component.findings:
        terminal.warn(Problem(finding.what, finding.where, finding.hint))
    for note in component.notes:
        terminal.warn(note)
    if component.saved:
        terminal.kept(component.name, "the stack as it was is", component.saved)
    terminal.also_saved(component.name, component.also_saved)
    if component.untracked and component.result is not Result.UNCHANGED:
        names = ", ".join(component.untracked[:_SHOWN])
        more = len(component.untracked) - _SHOWN
        terminal.hint(
            f"{component.name}: left alone, git was not told of them (git add): {names}"
            + (f" and {more} more" if more > 0 else "")
        )
    for problem in component.problems:
        terminal.problem(problem)


def _detail(component: RefreshedComponent) -> str:
    return f"  {component.detail}" if component.detail else ""


def _edits(edits: Sequence[RoutedEdit]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for edit in edits:
        target: Line = Painted(edit.patch, Paint.STRONG) if edit.patch else Painted("?", Paint.BAD)
        why = edit.reason
        if not edit.patch and edit.candidates:
            why += f": {', '.join(edit.candidates)}"
        rows.append([_size(edit), _place(edit), target, why])
    return rows


def _place(edit: RoutedEdit) -> str:
    return f"{edit.path}:{edit.line}" if edit.line else edit.path


def _size(edit: RoutedEdit) -> str:
    return f"-{edit.removed} +{edit.added}" if edit.line else "file"


def _patches(component: RefreshedComponent) -> list[list[Line]]:
    """A line for each patch that changed; those that did not, or only in numbers, are counted."""
    rows: list[list[Line]] = []
    order = list(Revision)
    ranked = sorted(component.patches, key=lambda each: order.index(each.revision))
    for revision, group in groupby(ranked, key=lambda each: each.revision):
        patches = list(group)
        if revision.needs_review:
            rows += [[word(revision), _name(each, component)] for each in patches]
        elif revision is Revision.IDENTICAL:
            rows.append([word(revision), counted(len(patches), "patch", "patches")])
        else:
            rows.append([word(revision), ", ".join(each.name for each in patches)])
    return rows


def _name(patch: RefreshedPatch, component: RefreshedComponent) -> str:
    if patch.revision is not Revision.REMOVED:
        return patch.file
    if patch.name in component.emptied:
        return f"{patch.file}  changes nothing any more"
    if component.result is Result.REGENERATED:
        return f"{patch.file}  what comes before it contains it"
    if component.result is Result.CARRIED:
        return f"{patch.file}  the new pin contains it"
    return f"{patch.file}  its commit is gone"
