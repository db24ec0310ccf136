"""`patchkit carry`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import CarefulOption, DiffOption, command
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.outcome import Status
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.ops.carry import PlainCarryReport


@command(
    "json quiet",
    examples=[
        (
            "patchkit carry --git up.git --base v1 --to v2 --patch fix.patch",
            "would it carry, and with what confidence?",
        ),
        (
            "patchkit carry --git . --base v1 --to v2 --patch series -o new",
            "write the carried patches",
        ),
    ],
    exits={
        ExitCode.OK: "every patch is carried, or upstream has it",
        ExitCode.HALTED: "a patch is in conflict; the others are carried",
        ExitCode.BAD_INPUT: "a patch or the series cannot be read",
    },
    result="patchkit.ops.carry:PlainCarryReport",
)
def carry(
    session: Session,
    *,
    repo: Annotated[
        Path, typer.Option("--git", metavar="DIR", help="A git repository, bare or not.")
    ],
    old_base: Annotated[
        str,
        typer.Option("--base", metavar="REV", help="The commit that the patches apply to."),
    ],
    new_base: Annotated[
        str, typer.Option("--to", metavar="REV", help="The commit to carry them to.")
    ],
    patch: Annotated[
        list[Path],
        typer.Option(
            "--patch",
            metavar="FILE",
            help="A patch, or what `import` takes several from: a series, a folder, a mailbox; "
            "may be given several times, in order.",
        ),
    ],
    strip: Annotated[
        int, typer.Option("--strip", "-p", metavar="N", help="Leading folders off the paths.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write carried patches, conflicts and the resulting files there.",
        ),
    ] = None,
    careful: CarefulOption = False,
    merger: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="GLOB=COMMAND",
            help="A command to ask for such files in conflict; may be given several times.",
        ),
    ] = None,
    diff: DiffOption = False,
    first: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="SIDE",
            help="Whose lines come first where both insert: upstream, patch or auto.",
        ),
    ] = "auto",
) -> ExitCode:
    """Carry patches from one commit of a repository to another.

    Works on any repository, without a manifest, and changes nothing in it. Each file is
    reported with how it was merged and with what confidence; what is flagged is applied, and should
    be reviewed: --diff shows the change.
    """
    from patchkit.errors import UsageError
    from patchkit.ops.carry import CarryWish, Precedence, carry_patches
    from patchkit.ops.mergers import given_merger

    sides = tuple(each.value for each in Precedence)
    if first not in sides:
        raise UsageError(f"--order {first}: no such side", hint=f"one of {', '.join(sides)}")
    wish = CarryWish(
        old_base,
        new_base,
        tuple(patch),
        strip,
        out,
        careful=careful,
        first=Precedence(first),
        mergers=tuple(map(given_merger, merger or ())),
        diff=diff,
    )
    report = carry_patches(repo, wish)
    return session.report("carry", report, _render)


def _render(terminal: Terminal, report: PlainCarryReport) -> None:
    from patchkit.cli.refresh_output import print_carried

    terminal.say(f"{short_id(report.old_base)} -> {short_id(report.new_base)}")
    for patch in report.patches:
        print_carried(terminal, patch, offsets=True)
        if change := report.changes.get(patch.name):
            terminal.diff(change)
    review = sum(patch.review for patch in report.patches)
    failed = sum(patch.status is Status.CONFLICTED for patch in report.patches)
    terminal.product()
    parts = [counted(len(report.patches), "patch", "patches")]
    parts += [f"{review} to review"] if review else []
    parts += [f"{failed} in conflict"] if failed else []
    good = report.exit_code is ExitCode.OK
    terminal.product([word("ok" if good else "failed"), ": ", ", ".join(parts)])
