"""`patchkit import` and `export`: patches into a series, and out of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit import entry_points
from patchkit.cli.catalog import forms_of
from patchkit.cli.command import DryRunOption, command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchkit.cli.terminal import Line
    from patchkit.manifest.values import Component
    from patchkit.ops.transfer import AdoptReport, ExportReport
    from patchkit.stack.damage import PatchRepair
    from patchkit.stack.importing import ImportSource


@command(
    "manifest component store json quiet",
    examples={
        "patchkit import ../fixes -m demo -c mbridge": "a folder of .patch files",
        "patchkit import debian/patches/series -m demo -c mbridge": "a quilt series",
        "patchkit import meta/recipes/mbridge_1.2.bb -m demo -c mbridge": "a recipe's SRC_URI",
        "patchkit import fixes.mbox -m demo -c mbridge": "mails, as git am takes them",
        "patchkit import fix.patch --3way -m demo -c mbridge": "made for another version",
        "patchkit import fix.patch --repair -m demo -c mbridge": "damaged on its way",
    },
    ok="the patches are in the series",
    finding="a patch does not apply; nothing was written without --force",
    halted="with --3way: the checkout holds a conflict",
    bad_input="a patch cannot be read",
    environment="the upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.transfer:AdoptReport",
)
def import_(
    session: Session,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A folder, a series, a recipe, a file."),
    ],
    *,
    strip: Annotated[
        int | None,
        typer.Option(
            "--strip",
            "-p",
            metavar="N",
            help="Leading folders off the paths. Default: the component's.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the patches even if one does not apply.")
    ] = False,
    three_way: Annotated[
        bool,
        typer.Option("--3way", help="Merge the patches from the commit that they were made for."),
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV",
            help="That commit, with --3way. Default: the one that has the files of the patches' "
            "index lines.",
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Mend damaged patches where the base leaves no doubt what they were, and show "
            "how; those of the series where they stand.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Adopt patches from elsewhere into a component's series.

    They come from a folder, a quilt series or a list of another name (.patches), a Yocto recipe
    (.bb, .bbappend), an RPM spec or a mailbox, such as `git format-patch` makes of commits. A
    folder without a list gives them in the order of the numbers that their names begin with.

    The patches are appended to the series, in their order, and are applied to the pinned base
    first: if one does not apply, nothing is written. Names that a series, recipe or spec gives are
    kept; others are made valid, without leading numbers. The files' bytes are kept. What a recipe
    or spec applies on some builds only is left out, and named.

    With --3way patches that were made for another commit are merged as by `patchkit bump`: a
    conflict waits in the checkout for `patchkit continue`, `skip` or `abort`; author, date and
    message stay. A patch that the series has already is merged where it stands.

    With --repair a last newline that is missing, counts of hunks, lost spaces, CRLF of a mail, and
    entities, indentation, non-breaking spaces and tabs of a web page are mended: where the blob ids
    of index lines tell that the result is right, or only one reading of the patch applies.
    """
    from patchkit.errors import UsageError
    from patchkit.ops.transfer import adopt_patches, merge_patches, repair_source

    if base is not None and not three_way:
        raise UsageError("--base goes with --3way")
    if force and three_way:
        raise UsageError("--3way writes nothing that does not apply: leave out --force")
    if repair and three_way:
        raise UsageError("--repair mends patches for the pin: leave out --3way")
    into = session.component
    found = _read(source, into, strip=strip, raw=repair)
    if repair:
        with session.progress() as progress:
            found = repair_source(session.manifest, into, found, session.store, progress)
    adopt = partial(merge_patches, base=base) if three_way else partial(adopt_patches, force=force)
    return take_in("import", session, found, adopt, dry_run=dry_run)


def take_in(
    command_name: str,
    session: Session,
    found: ImportSource,
    adopt: partial[AdoptReport],
    *,
    dry_run: bool,
) -> ExitCode:
    """Take patches into the component's series, and report it as that command's result."""
    import time

    from patchkit.ops.refresh_input import RefreshOptions

    with session.progress() as progress:
        report = adopt(
            session.manifest,
            session.component,
            found,
            store=session.store,
            workspace=session.workspace,
            progress=progress,
            options=RefreshOptions(int(time.time()), dry_run=dry_run),
        )
    return session.report(command_name, report, _render_import)


def _read(source: Path, component: Component, *, strip: int | None, raw: bool) -> ImportSource:
    from patchkit.errors import UsageError
    from patchkit.manifest.values import GitPin
    from patchkit.stack.importing import read_source

    if (source / ".git").exists():
        since = component.pin if isinstance(component.pin, GitPin) else "BASE"
        git = f"git -C {quote(str(source))} format-patch --stdout {since}..HEAD > commits.mbox"
        hint = f"{git}  writes those since {since}; import that file"
        raise UsageError(f"{source} is a repository: which of its commits?", hint=hint)
    return read_source(source, strip=component.strip if strip is None else strip, raw=raw)


def _print_repairs(terminal: Terminal, repairs: Sequence[PatchRepair]) -> None:
    from patchkit.cli.status_words import word

    for each in repairs:
        for diff in each.diffs:
            terminal.diff(diff)
        if each.problem is None:
            terminal.product([word("mended"), f"  {each.source}: {', '.join(each.mends)}"])


def _render_import(terminal: Terminal, report: AdoptReport) -> None:
    """Say what became of the patches."""
    from patchkit.cli.explanations import print_explanation
    from patchkit.cli.refresh_output import print_refreshed
    from patchkit.cli.status_words import verdict

    rows: list[list[Line]] = [
        [verdict(each.status), each.file, f"from {each.source}"] for each in report.patches
    ]
    _print_repairs(terminal, report.repairs)
    terminal.table(rows)
    if report.merged is not None:
        print_refreshed(terminal, report.merged, diff=False, dry_run=not report.written)
    for explanation in report.explanations:
        print_explanation(terminal, explanation)
    terminal.problems(report.problems)
    for note in report.notes:
        terminal.warn(note)
    if report.merged is not None:
        return
    if not (report.patches or report.repairs or report.problems):
        terminal.say(f"{report.component}: nothing new in this {report.kind}")
    elif report.written:
        how = (
            ""
            if report.exit_code or report.notes
            else "; `patchkit apply` puts them into the checkout"
        )
        terminal.say(f"{report.series} lists them{how}")
    elif report.exit_code is ExitCode.OK:
        terminal.say("a dry run: nothing was written")
    elif report.exit_code is ExitCode.BAD_INPUT or report.kind == "rewrites":
        terminal.say("nothing was written")
    else:
        terminal.say("nothing was written; --force writes it all the same")
        terminal.hint("the same with --3way merges what was made for another commit")


@command(
    "manifest component workspace store json quiet",
    examples={
        "patchkit export -c mbridge --format quilt -o debian/patches": "for quilt push -a",
        "patchkit export -c mbridge -o mbridge.mbox": "for git am",
        "patchkit export -c mbridge --format yocto -o meta-npu/mbridge": "a .bbappend and files/",
        "patchkit export -c mbridge --format runtime -o npu.py": "for images that stay",
        "patchkit export -c mbridge --patch fix-rope -o fix.mbox": "to send one upstream",
        "patchkit export -c mbridge --branch npu": "a branch with these commits, to push",
    },
    ok="the stack is written",
    bad_input="a patch does not apply, or cannot be written in that form",
    environment="the upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.transfer:ExportReport",
)
def export(
    session: Session,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR|FILE",
            help="A new folder, or a new file: FILE.mbox for a mailbox, FILE.py for `runtime`.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="In place of files: have this branch of the checkout be the stack, to be pushed.",
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORM",
            help="What goes into the folder: quilt (a series), yocto (a .bbappend with its files), "
            "rpm (lines of a spec). runtime is a Python module. Other forms stand below.",
        ),
    ] = "",
    author: Annotated[
        str,
        typer.Option(metavar="WHO", help="The author in mails of patches without one."),
    ] = "",
    patch: Annotated[
        str | None,
        typer.Option(
            "--patch",
            metavar="PATCH",
            help="Only this one with those that it needs, on what `track` names now: to be sent.",
        ),
    ] = None,
) -> ExitCode:
    """Write a stack for quilt or git am.

    All patches are written, those of other repositories too, as exact diffs against each other from
    the pinned base on, with paths from the root of the upstream; of a file of several mails each by
    itself. The text above each diff is the patch file's, to the byte. In a mailbox, a patch that is
    no mail gets From: and Subject: lines above it, and a line that would begin another mail a ">".
    Apply a mailbox with `git am --keep-cr`, so that line ends stay as they are.

    With --branch the commits have the same ids on every machine. A branch with other work on it is
    left alone.
    """
    from patchkit.errors import UsageError
    from patchkit.model.mailinfo import read_author
    from patchkit.ops.transfer import MBOX, QUILT, export_component

    if branch is not None and not (output or form or author or patch):
        return _export_branch(session, branch)
    if output is None or branch is not None:
        missing = "--output is missing: a new folder, or a new file for a mailbox"
        what = "--branch goes without files" if branch is not None else missing
        hint = (
            "`patchkit export --format quilt -o debian/patches`; or `patchkit export --branch npu`"
        )
        raise UsageError(f"export: {what}", hint=hint)
    form = form or output.suffix.removeprefix(".")
    known, brought = {QUILT.name: QUILT, MBOX.name: MBOX}, entry_points.named("patchkit.forms")
    if form in brought:
        known[form] = entry_points.load(brought[form])
    if form not in known:
        what = f"export: --format {form} is unknown" if form else "export: --format is missing"
        others = (name.split()[-1] for name in forms_of("export"))
        names = ", ".join([*known, *brought, *others])
        hint = f"it is one of {names}: `patchkit export --format quilt -o debian/patches`"
        raise UsageError(what, hint=hint)
    who = read_author(author, "") if author else None
    if author and (who is None or not who.email or form != MBOX.name):
        raise UsageError("--author needs 'NAME <ADDRESS>', and goes with -o FILE.mbox")
    with session.progress() as progress:
        report = export_component(
            session.manifest,
            session.component,
            known[form],
            output,
            author=who,
            patch=patch,
            store=session.store,
            progress=progress,
        )
    return session.report("export", report, _render_export)


def _export_branch(session: Session, branch: str) -> ExitCode:
    from patchkit.ops.published_branch import export_branch

    with session.progress() as progress:
        report = export_branch(
            session.manifest,
            session.component,
            branch,
            workspace=session.workspace,
            store=session.store,
            progress=progress,
        )
    return session.report("export", report, _render_export)


def _render_export(terminal: Terminal, report: ExportReport) -> None:
    from patchkit.cli.status_words import word

    count = len(report.patches)
    patches = counted(count, "patch", "patches")
    place = f"branch {report.branch} of {report.target}" if report.branch else str(report.target)
    terminal.product([word("exported"), "  ", report.component, f"  {patches} to ", place])
    terminal.say(f"on {report.base} they give the tree {report.tree}")
    if report.push:
        terminal.hint(f"{report.push}  publishes it")
    for name in report.skipped:
        terminal.warn(f"{name} changes no file and was left out")
    for name in report.unsendable:
        terminal.warn(f"{name}: git am does not take its From: (no address) or its Date:")
