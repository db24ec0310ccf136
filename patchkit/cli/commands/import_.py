"""`patchkit import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    CacheOption,
    DryRunOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    OneComponentOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.cli.styled_text import Line
    from patchkit.manifest.values import Component
    from patchkit.ops.adopt import AdoptReport
    from patchkit.stack.importing import ImportSource


@command(
    examples=[
        ("patchkit import ../fixes -m demo -c mbridge", "a folder of .patch files"),
        ("patchkit import debian/patches/series -m demo -c mbridge", "a quilt series"),
        ("patchkit import fixes.mbox -m demo -c mbridge", "mails, as git am takes them"),
        ("patchkit import ~/src/mbridge -m demo -c mbridge", "commits on the pin, and edits"),
        ("patchkit import ~/src/mbridge --git v1..topic -m demo -c mbridge", "a range of commits"),
    ],
    exits={
        ExitCode.OK: "the patches are in the series",
        ExitCode.FINDING: "a patch does not apply; nothing was written without --force",
        ExitCode.BAD_INPUT: "a patch cannot be read",
        ExitCode.ENVIRONMENT: "the upstream cannot be had, or the disk is full",
    },
    result="patchkit.ops.adopt:AdoptReport",
)
def import_(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A folder, a series, a file, or a repository.")
    ],
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    git: Annotated[
        str | None,
        typer.Option("--git", metavar="A..B", help="These commits of the repository SOURCE."),
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            "--order",
            metavar="FILE",
            help="A patch of the folder; give it once for each, in order. Default: by name, "
            "numbers by their value.",
        ),
    ] = None,
    strip: Annotated[
        int | None,
        typer.Option(
            "--strip",
            "-p",
            metavar="N",
            help="Leading folders off the paths. Default: the component's.",
        ),
    ] = None,
    message: Annotated[
        str,
        typer.Option("--message", metavar="TEXT", help="The message for uncommitted edits."),
    ] = "Local edits",
    force: Annotated[
        bool, typer.Option("--force", help="Write the patches although one does not apply.")
    ] = False,
    dry_run: DryRunOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Adopt patches from elsewhere into a component's series.

    They come from a folder, a quilt series, a mailbox, a range of commits or a checkout.

    The patches go behind those that the series has, in their order, and are applied to the pinned
    base first: if one does not apply, nothing is written. Names are made valid and unique, leading
    numbers go; the files' bytes are kept. Of a checkout, the commits since the pin are taken, then
    the uncommitted edits as one patch; new files count once git was told of them (git add).
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.adopt import AdoptOptions, adopt_patches
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    into = pick_component(chosen, component)
    found = _read(source, into, git=git, order=order, strip=strip, message=message)
    with showing_progress(terminal) as progress:
        report = adopt_patches(
            chosen,
            into,
            found,
            store=Store(cache_folder(cache), offline=offline),
            options=AdoptOptions(force, dry_run),
            progress=progress,
        )
    return terminal.report("import", report, report.exit_code, _render)


def _read(
    source: Path,
    component: Component,
    *,
    git: str | None,
    order: list[str] | None,
    strip: int | None,
    message: str,
) -> ImportSource:
    from patchkit.errors import UsageError
    from patchkit.gitcmd.process import user_identity
    from patchkit.manifest.values import GitPin
    from patchkit.stack.importing import is_worktree, read_commits, read_edits, read_source

    if git is not None:
        base, dots, tip = git.partition("..")
        if not dots or not base or tip.startswith("."):
            raise UsageError(f"{git} is no range", hint="--git A..B")
        return read_commits(source, base, tip or "HEAD")
    if is_worktree(source) and order is None:
        pin = component.pin.commit if isinstance(component.pin, GitPin) else None
        return read_edits(source, pin, message, user_identity(source))
    return read_source(source, order, strip=component.strip if strip is None else strip)


def _render(terminal: Terminal, report: AdoptReport) -> None:
    from patchkit.cli.explanations import print_explanation
    from patchkit.cli.status_words import verdict

    rows: list[list[Line]] = [
        [verdict(each.status), each.file, f"from {each.source}"] for each in report.patches
    ]
    terminal.table(rows)
    for explanation in report.explanations:
        print_explanation(terminal, explanation)
    for problem in report.problems:
        terminal.problem(problem)
    if not report.patches:
        terminal.say(f"{report.component}: nothing new in this {report.kind}")
    elif report.written:
        terminal.say(f"{report.series} lists them; patchkit apply puts them into the checkout")
    elif report.exit_code is not ExitCode.OK:
        terminal.hint("nothing was written; --force writes them all the same")
    else:
        terminal.say("a dry run: nothing was written")
