"""What bump and continue print: each component, by what a reviewer must look at, and conflicts."""

from __future__ import annotations

from patchkit.cli.carried_output import print_carried_file, wrapped
from patchkit.cli.terminal import Terminal
from patchkit.cli.text import Paint, Painted
from patchkit.cli.words import word
from patchkit.errors import Problem
from patchkit.model.objects import lines_of
from patchkit.ops.bump_report import Attention, BumpedComponent, BumpReport
from patchkit.ops.refresh_report import Halted, Result

#: Patches of which each file is told, with the reasons.
_EXPLAINED = (
    Attention.RESOLVED,
    Attention.REVIEW,
    Attention.CONFLICTED,
    Attention.WAITING,
    Attention.ABSORBED,
)


def render_bump(terminal: Terminal, report: BumpReport) -> None:
    """Each component, and what is left to do."""
    for row in report.components:
        _render_component(terminal, row, dry_run=report.dry_run)
    for name in report.untracked:
        terminal.product([word("skipped"), "  ", name, "  has no `track`"])
    for note in report.notes:
        terminal.warn(note)
    # one that came out of a conflict is in its checkout already
    moved = [each.name for each in report.components if each.moved and not each.arrived]
    if moved and report.dry_run:
        terminal.say("a dry run: nothing was written")
    elif moved:
        names = "".join(f" -c {name}" for name in moved)
        checkouts = "checkout" if len(moved) == 1 else "checkouts"
        terminal.hint(f"patchkit apply -m {report.manifest}{names}  moves the {checkouts}")


def _render_component(terminal: Terminal, row: BumpedComponent, *, dry_run: bool) -> None:
    text = ("would bump" if dry_run else "bumped") if row.moved else ""
    pins = f"{row.old} -> {row.new}"
    if row.result is Result.UNCHANGED:
        pins = f"is at {row.new} already"
    terminal.product([word(row.result, text), "  ", row.name, "  ", pins])
    for patch in row.patches:
        terminal.product(["  ", word(patch.attention), "  ", patch.name])
        if patch.attention in _EXPLAINED:
            for file in patch.files:
                print_carried_file(terminal, file)
        if patch.attention is Attention.REVIEW and not patch.told:
            terminal.product(["        ", Painted("its change is another one now", Paint.FAINT)])
    if row.halted is not None:
        print_halted(terminal, row.halted)
    if row.saved:
        terminal.kept(row.name, "what was done to the conflict is", row.saved)
    terminal.also_saved(row.name, row.also_saved)
    for finding in row.findings:
        terminal.warn(Problem(finding.what, finding.where, finding.hint))
    for note in row.notes:
        terminal.warn(note)
    for problem in row.problems:
        terminal.problem(problem)


def print_halted(terminal: Terminal, halted: Halted) -> None:
    """The conflict that a checkout holds: what the patch is for, where it is, what comes later."""
    terminal.product("")
    terminal.product([Painted(halted.patch, Paint.STRONG), f": {halted.subject}"])
    for line in lines_of(halted.reason):
        terminal.product(["  ", line])
    for file in halted.files:
        how = "" if file.marked else "  no markers: git add or git rm it"
        terminal.product(["  in conflict: ", Painted(file.path, Paint.PLACE), how])
        for commit in file.upstream:
            for indent, line in wrapped(f"upstream: {commit}", 4):
                terminal.product([indent, line])
    if halted.unknown:
        terminal.product(["  upstream's commits are not named: ", halted.unknown])
    if halted.later:
        terminal.product(["  later patches on these files: ", ", ".join(halted.later)])
