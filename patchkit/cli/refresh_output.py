"""What refresh and new print: where each edit goes, and which patches a reviewer must read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import Problem
from patchkit.model.objects import lines_of
from patchkit.model.outcome import Attention, Certainty, FileResult, PatchResult, Status
from patchkit.model.revision import Revision
from patchkit.model.text import counted, listed
from patchkit.ops.refresh_report import (
    BumpedComponent,
    BumpReport,
    Halted,
    RefreshedComponent,
    RefreshedPatch,
    RefreshReport,
    RefreshResult,
)
from patchkit.refresh.assign import RoutedEdit

# What became of a patch that was carried, for people: each file that is worth a word, and why.


def _print_carried(terminal: Terminal, patch: PatchResult) -> None:
    """The line of a patch, and its files; of one that upstream has, the line alone."""
    note = Painted("  flagged", Paint.NOTICE) if patch.review else _fate(patch)
    terminal.product(["  ", word(patch.status), "  ", patch.name, note])
    for file in patch.files if patch.review or patch.status is not Status.ABSORBED else ():
        _print_carried_file(terminal, file)


def _fate(patch: PatchResult) -> Painted:
    """What became of a patch upstream; of one that is all there how many commits made it."""
    taken = patch.status is Status.ABSORBED and not patch.review
    commits = patch.absorbed_by if taken else ()
    by = counted(len(commits), "commit") if commits[1:] else "".join(commits)
    told = by and f"by {by}"
    if patch.fate is not None and patch.fate.word != "landed":
        told = patch.fate.words
    return Painted(told and f"  {told}", Paint.FAINT)


def _print_carried_file(terminal: Terminal, file: FileResult) -> None:
    """A file with its reasons; nothing for one that there is nothing to say about."""
    if not (file.reasons or file.review or file.status is Status.CONFLICTED):
        return
    sure = f", {file.certainty.value}" if file.certainty else ""
    place = f" -> {file.carried_to}" if file.carried_to else ""
    terminal.product(["    ", word(file.status), f"  {file.path}{place}{sure}"])
    for reason in file.reasons:
        terminal.product([" " * 8, Painted(reason, Paint.FAINT)])


# What bump and continue print: each component, by what a reviewer must look at, and conflicts.


#: Patches of which each file is listed, with the reasons.
_EXPLAINED = (
    Attention.RESOLVED,
    Attention.FLAGGED,
    Attention.CONTEXT,
    Attention.CONFLICTED,
    Attention.WAITING,
)


#: Patches whose files differ in line numbers alone.
_MOVED_ONLY = (Attention.SHIFTED, Attention.UNCHANGED)


#: What each word was worth on histories that its rules were not made for (docs/carry.md).
_WORTH = {
    Certainty.SURE: "of 73 such files whose change people kept 73 were right to the byte",
    Certainty.LOOK: "of 74 such files whose change people kept 56 were right to the byte, 16 in "
    "another order of lines, 2 wrong",
    Certainty.DOUBTFUL: "of 89 such files people kept the change in two, and put it as the merge "
    "has it in 21",
}


def _explain(terminal: Terminal, report: BumpReport) -> None:
    """What each word for certainty that was printed was worth."""
    files = [file for row in report.components for patch in row.patches for file in patch.files]
    said = {file.certainty for file in files}
    for certainty, worth in _WORTH.items():
        if certainty in said:
            terminal.say(f"{certainty.value}: {worth}")


def render_bump(
    *, diff: bool, shown: bool = False, explain: bool = False
) -> Callable[[Terminal, BumpReport], None]:
    """A renderer of the components and what is left to do; `diff`: with each patch's change.

    `shown`: the components were printed when they were known, by `render_bumped`; `explain`: with
    what the words for certainty were worth.
    """

    def render(terminal: Terminal, report: BumpReport) -> None:
        for row in report.components:
            if not shown:
                render_bumped(terminal, row, dry_run=report.dry_run, diff=diff)
            _warn(terminal, row)
            terminal.problems(row.problems)
        for name in report.untracked:
            terminal.product([word("skipped"), "  ", name, "  has no `track`"])
        if explain:
            _explain(terminal, report)
        for note in report.notes:
            terminal.warn(note)
        # one that came out of a conflict is in its checkout already
        moved = [row.name for row in report.components if row.moved and not row.arrived]
        if moved and report.dry_run:
            terminal.say("a dry run: nothing was written")
        elif moved:
            names = "".join(f" -c {name}" for name in moved)
            checkouts = "checkout" if len(moved) == 1 else "checkouts"
            terminal.hint(f"patchkit apply -m {report.manifest}{names}  moves the {checkouts}")

    return render


def render_bumped(terminal: Terminal, row: BumpedComponent, *, dry_run: bool, diff: bool) -> None:
    """What became of a component and its patches."""
    changes = {each.name: each.diff for each in row.changes} if diff else {}
    text = ("would bump" if dry_run else "bumped") if row.moved else ""
    pins = f"{row.old} -> {row.new}"
    if row.imported:
        text = "imported" if row.moved else ""
        pins = f"{listed(row.imported, _SHOWN)}: made for {row.old.short}, now for {row.new.short}"
    if row.result is RefreshResult.UNCHANGED:
        pins = f"is at {row.new} already"
    terminal.product([word(row.result, text), "  ", row.name, "  ", pins])
    for patch in row.patches:
        if patch.name in row.earlier:
            continue
        terminal.product(["  ", word(patch.attention or ""), "  ", patch.name, _fate(patch)])
        if patch.attention in _EXPLAINED:
            for file in patch.files:
                _print_carried_file(terminal, file)
        if patch.attention is Attention.FLAGGED and not patch.explained:
            terminal.product(["        ", Painted("its change differs now", Paint.FAINT)])
        if changes.get(patch.name) and patch.attention not in _MOVED_ONLY:
            terminal.diff(changes[patch.name])
    _render_notes(terminal, row)


def _render_notes(terminal: Terminal, row: BumpedComponent) -> None:
    if row.earlier:
        earlier = counted(len(row.earlier), "earlier patch", "earlier patches")
        terminal.product(["  ", Painted(f"· {earlier} as reported before", Paint.FAINT)])
    if row.halted is not None:
        print_halted(terminal, row.halted)
    if row.saved:
        terminal.kept(row.name, "what was done to the conflict is", row.saved)
    terminal.also_saved(row.name, row.also_saved)


def print_halted(terminal: Terminal, halted: Halted) -> None:
    """The conflict that a checkout holds: what the patch is for, where it is, what comes later."""
    terminal.product("")
    place = f"patch {halted.number} of {halted.total}: " * bool(halted.number)
    terminal.product([place, Painted(halted.patch, Paint.STRONG), f": {halted.subject}"])
    for line in lines_of(halted.reason):
        terminal.product(f"  {line}")
    for file in halted.files:
        how = "" if file.marked else "  no markers: git add or git rm it"
        terminal.product(["  in conflict: ", Painted(file.path, Paint.PLACE), how])
        for commit in file.upstream:
            terminal.product(f"    upstream: {commit}")
    if halted.unknown:
        terminal.product(["  upstream's commits are not named: ", halted.unknown])
    if halted.later:
        terminal.product(["  later patches on these files: ", ", ".join(halted.later)])


_SHOWN = 8

#: What a dry run says in place of a result.
_WOULD = {
    RefreshResult.REFRESHED: "would refresh",
    RefreshResult.CARRIED: "would carry",
    RefreshResult.REGENERATED: "would regenerate",
}


def render_refresh(*, diff: bool) -> Callable[[Terminal, RefreshReport], None]:
    """A renderer of the report; `diff`: with the change of each patch."""

    def render(terminal: Terminal, report: RefreshReport) -> None:
        for component in report.components:
            print_refreshed(terminal, component, diff=diff, dry_run=report.dry_run)
        for component in report.components:
            terminal.problems(component.problems)
        written = any(each.files for each in report.components)
        if report.dry_run and written:
            terminal.say("a dry run: nothing was written")

    return render


def _warn(terminal: Terminal, row: RefreshedComponent | BumpedComponent) -> None:
    """What was found, and the first notes: a move may break a hundred calls."""
    for finding in row.findings:
        terminal.warn(finding.problem)
    for note in row.notes[:_SHOWN]:
        terminal.warn(note)
    if (more := len(row.notes) - _SHOWN) > 0:
        what = f"{counted(more, 'more warning')} like these"
        terminal.warn(Problem(what, row.name, "--json has all"))


def print_refreshed(
    terminal: Terminal, component: RefreshedComponent, *, diff: bool, dry_run: bool
) -> None:
    """What became of a component, but for its problems."""
    text = _WOULD.get(component.result, "") if dry_run else ""
    detail = component.detail and f"  {component.detail}"
    terminal.product([word(component.result, text), "  ", component.name, detail])
    terminal.table(_edits(component.edits), indent=2)
    terminal.table(_patches(component), indent=2)
    if diff:
        for patch in component.patches:
            terminal.diff(patch.diff)
    for outcome in component.carried:
        if outcome.review or not outcome.status.applies:
            _print_carried(terminal, outcome)
    if component.halted is not None:
        print_halted(terminal, component.halted)
    _warn(terminal, component)
    if component.saved:
        terminal.kept(component.name, "the stack as it was is", component.saved)
    terminal.also_saved(component.name, component.also_saved)
    if component.untracked and component.result is not RefreshResult.UNCHANGED:
        names = listed(component.untracked, _SHOWN)
        terminal.hint(f"{component.name}: left alone: untracked (git add takes them up): {names}")


def _edits(edits: Sequence[RoutedEdit]) -> list[list[Line]]:
    """A line for the edits of a file that go to one patch for one reason."""
    rows: list[list[Line]] = []

    def alike(edit: RoutedEdit) -> tuple[object, ...]:
        return edit.path, edit.patch, edit.reason, edit.candidates, bool(edit.line)

    for _, group in groupby(edits, key=alike):
        edit, *others = group
        target: Line = Painted(edit.patch, Paint.STRONG) if edit.patch else Painted("?", Paint.BAD)
        why = edit.reason
        if not edit.patch and edit.candidates:
            why += f": {', '.join(edit.candidates)}"
        lines = ",".join(str(each.line) for each in (edit, *others))
        place = f"{edit.path}:{lines}" if edit.line else edit.path
        rows.append([_size([edit, *others]), place, target, why])
    return rows


def _size(edits: Sequence[RoutedEdit]) -> str:
    if not edits[0].line:
        return "file"
    return f"-{sum(each.removed for each in edits)} +{sum(each.added for each in edits)}"


def _patches(component: RefreshedComponent) -> list[list[Line]]:
    """A line for each patch that changed; those that did not, or only in numbers, are counted."""
    rows: list[list[Line]] = []
    order = list(Revision)
    ranked = sorted(component.patches, key=lambda each: order.index(each.revision))
    for revision, group in groupby(ranked, key=lambda each: each.revision):
        patches = list(group)
        if revision.needs_review:
            rows += [[word(revision), _name(each, component)] for each in patches]
        elif revision is Revision.UNCHANGED:
            rows.append([word(revision), counted(len(patches), "patch", "patches")])
        else:
            rows.append([word(revision), ", ".join(each.name for each in patches)])
    return rows


def _name(patch: RefreshedPatch, component: RefreshedComponent) -> str:
    if patch.revision is not Revision.REMOVED:
        return patch.file
    if patch.name in component.emptied:
        return f"{patch.file}  is empty now"
    if component.detail and component.result is RefreshResult.REFRESHED:
        return patch.file  # a verb on the series, which says so itself
    if component.result is RefreshResult.REGENERATED:
        return f"{patch.file}  an earlier patch contains it"
    if component.result is RefreshResult.CARRIED:
        return f"{patch.file}  the new pin contains it"
    return f"{patch.file}  its commit is gone"
