"""`patchkit install` and `check --only installed`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import (
    DiffOption,
    DryRunOption,
    MessageOption,
    NewOption,
    PatchOption,
    RestOption,
    command,
)
from patchkit.cli.project import near
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode, UsageError
from patchkit.model.names import short_id
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.extensions.installed.layer import AttestedPatch
    from patchkit.extensions.installed.stacks_in_packages import (
        AttestedComponent,
        AttestReport,
        IntoComponent,
        IntoReport,
    )


@command(
    "manifest components store json quiet",
    examples={
        "patchkit install site-packages -m verl-npu-index -c sglang": "patch an installed package",
        "patchkit install site-packages --reverse": "and reverse it",
    },
    ok="the folder is at its stacks",
    finding="a patch does not apply, a stack is not the one in the lock, or a file "
    "is not what the stack is for",
    bad_input="the manifest, a series, a patch, the lock or a receipt cannot be read",
    environment="a fetch failed, the folder is locked, the disk is full",
    result="patchkit.extensions.installed.stacks_in_packages:IntoReport",
    group="From manifest to machine",
)
def install(
    session: Session,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A site-packages folder, one in an image, or a source tree without .git.",
        ),
    ],
    *,
    reverse: Annotated[
        bool,
        typer.Option("--reverse", help="Restore the files, from the receipts of the folder."),
    ] = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Put the stacks into installed packages.

    All of them are put there, or nothing. Only files that match the pin are patched; mode changes
    of a patch are applied, too. A receipt is left there: --reverse restores the files from it, byte
    for byte, and `patchkit check --only installed` reads it.
    """
    from patchkit.extensions.installed.stacks_in_packages import apply_into, reverse_into

    if reverse:
        manifest, names = session.asked
        report = reverse_into(folder, manifest=manifest, components=names, dry_run=dry_run)
    else:
        with session.progress() as progress:
            report = apply_into(
                session.manifest,
                session.components,
                folder,
                store=session.store,
                dry_run=dry_run,
                progress=progress,
            )
    return session.report("install", report, _render_into)


@command(
    "manifest components store json quiet",
    examples={
        "patchkit check --only installed /usr/bin/python3 -m demo": "is it in its packages?",
        "patchkit check --only installed venv/lib/python3.11/site-packages": "what was put here?",
        "patchkit check --only installed /mnt/rootfs --image -m demo": "is this image that "
        "manifest's?",
    },
    ok="every patch of the manifest that has files there is live",
    finding="a patch is not live, a file is neither, nothing was found, or it cannot "
    "be said: there is no manifest to compare with, or not enough is known of its stack",
    bad_input="a receipt is damaged, or the manifest, series or a patch cannot be read",
    environment="the Python does not answer, or a fetch failed",
    result="patchkit.extensions.installed.stacks_in_packages:AttestReport",
    group="From manifest to machine",
)
def attest(
    session: Session,
    *,
    place: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|PYTHON",
            help="A folder of installed packages, or a Python: all its folders of modules.",
        ),
    ],
    image: Annotated[
        bool, typer.Option("--image", help="DIR is the root of an unpacked image.")
    ] = False,
) -> ExitCode:
    """Check which patches are present in installed packages.

    With a manifest the files are compared with those of its stacks, by the blob ids in the lock:
    neither the cache nor git is needed. Where the lock is of an older patchkit, or of other
    patches, the stacks are built. Without a manifest there are only the receipts of `install`,
    which anybody may have written: the verdict is "as its receipt says", and the exit code is 1.
    One line for each component, for a log; below it what is missing.
    """
    from patchkit.extensions.installed.stacks_in_packages import (
        Expected,
        folders_of_image,
        folders_of_python,
    )
    from patchkit.extensions.installed.stacks_in_packages import attest as judge

    if place.is_dir():
        folders = folders_of_image(place) if image else (place,)
    elif image or not shutil.which(place):
        raise UsageError(f"{place} is not a folder{'' if image else ', nor a Python'}")
    else:
        folders = folders_of_python(place)
    expected = None
    with session.progress() as progress:
        if session.asked != (None, []):
            expected = Expected(session.manifest, session.components, session.store, progress)
        report = judge(folders, expected, image=place if image else None)
    return session.report("check --only installed", report, _render)


@command(
    "manifest component workspace store json quiet",
    examples={
        "patchkit refresh --from site-packages -m demo -n": "where would each edit go?",
        "patchkit refresh --from copied/demo -m demo -c demo --new fix-rope": "all make a patch",
    },
    ok="the patch files have the edits",
    finding="an edit does not belong to exactly one patch, a file is not the pin's "
    "nor edited, or a checkout was refused",
    bad_input="the manifest, the series or a patch cannot be read or rewritten",
    environment="an upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.refresh_report:RefreshReport",
    group="From manifest to machine",
)
def refresh_from(
    session: Session,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A site-packages folder, or a copy of a package or source tree."
        ),
    ],
    *,
    add: Annotated[
        list[str] | None,
        typer.Option("--add", metavar="FILE", help="Take this new file of DIR; once for each."),
    ] = None,
    patch: PatchOption = None,
    new: NewOption = None,
    rest: RestOption = None,
    message: MessageOption = "",
    diff: DiffOption = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Record edits in installed packages in the patch files.

    What was edited in DIR goes to the patches hunk by hunk, as the edits of a checkout do, and
    nothing in DIR is written. An edit is what differs from the pin with its patches, and from
    RECORD where a wheel lists it: what pip put there, another version among it, is no edit and is
    refused, as is a file without its patches. New files are named, and left out without --add.
    """
    import time

    from patchkit.cli.commands.refresh import request_of
    from patchkit.cli.refresh_output import render_refresh
    from patchkit.extensions.installed.edited_files import refresh_from_folder
    from patchkit.ops.refresh_input import RefreshOptions

    request = request_of(session, patch, new, rest, message)
    options = RefreshOptions(int(time.time()), request, dry_run=dry_run)
    with session.progress() as progress:
        report = refresh_from_folder(
            session.manifest,
            session.component,
            folder,
            added=add or (),
            store=session.store,
            workspace=session.workspace,
            options=options,
            progress=progress,
        )
    return session.report("refresh --from", report, render_refresh(diff=diff))


def _render(terminal: Terminal, report: AttestReport) -> None:
    for each in report.components:
        _print_component(terminal, each)
    for name in report.absent:
        terminal.product([word("absent"), f"  {name}  none of its files is installed"])
    for folder in report.interrupted:
        hint = "run it again: it finishes or undoes what it began"
        terminal.product([word("interrupted"), f"  an install was killed in {folder}; {hint}"])
    if not report.components and not report.absent:
        where = counted(len(report.folders), "folder")
        terminal.product([word("absent"), f"  no patchkit receipt in {where}"])


def _print_component(terminal: Terminal, each: AttestedComponent) -> None:
    live = sum(p.presence.value == "live" for p in each.patches)
    there = sum(p.presence.value != "left out" for p in each.patches)
    words = [f"{live} of {counted(there, 'patch', 'patches')}", f"base {short_id(each.base)}"]
    words += [f"lock {each.lock[:12]}"]
    words += [each.package] if each.package else []
    words += [] if each.receipt else ["no receipt"]
    name = Painted(f"{each.manifest}/{each.component}", Paint.STRONG)
    where = near(Path(each.folder))
    said = f"  {', '.join(words)}, in {where}" if each.base else f"  it cannot be said, in {where}"
    line: Line = [word(each.verdict), "  ", name, said]
    terminal.product(line)
    _print_patches(terminal, each.patches)
    _print_exceptions(terminal, each)
    for path in each.neither:
        terminal.product(f"  {path}: neither the patched nor the base file")
    for path in each.unrecorded:
        terminal.product(f"  {path}: hash differs from the wheel's RECORD")
    for problem in each.problems:
        terminal.problem(problem)


def _print_exceptions(terminal: Terminal, each: AttestedComponent | IntoComponent) -> None:
    for left in each.left_out:
        terminal.product(f"  {left.patch}: {left.path} is not installed, left out")
    for path, reason in each.reasons.items():
        terminal.product(f"  {path}: the wheel's own, not the pin's; accepted: {reason}")


def _print_patches(terminal: Terminal, patches: Iterable[AttestedPatch]) -> None:
    """The patches that are not simply live, but for those that are left out."""
    rows = [
        (word(each.presence), each.name, ", ".join(each.files))
        for each in patches
        if each.presence.value not in ("live", "left out")
    ]
    terminal.table([row if row[2] else row[:2] for row in rows], indent=2)


def _render_into(terminal: Terminal, report: IntoReport) -> None:
    for each in report.components:
        name = Painted(f"{each.manifest}/{each.component}", Paint.STRONG)
        terminal.product([word(each.result), "  ", name, f"  {_into_words(each)}"])
        _print_patches(terminal, each.patches)
        _print_exceptions(terminal, each)
        for problem in each.problems:
            terminal.problem(problem)
    if report.dry_run:
        terminal.say("a dry run: nothing was written")
    elif report.exit_code is not ExitCode.OK:
        terminal.say("nothing was written")


def _into_words(each: IntoComponent) -> str:
    words = {
        "applied": f"{counted(len(each.changed), 'file')} changed",
        "unchanged": "every patch is live already",
        "reversed": f"{counted(len(each.changed), 'file')} changed back",
        "reinstalled": "installed again or removed since: nothing to reverse, receipt removed",
        "absent": "not installed there",
        "refused": "a file is in the way",
        "conflicted": "does not apply on what another layer made",
        "differs": "not the stack in the lock",
        "held": "could be done; another component cannot",
    }
    said = [words[each.result.value]]
    said += [each.package] if each.package else []
    said += [f"together with {', '.join(each.shared_with)}"] if each.shared_with else []
    return ", ".join(said)
