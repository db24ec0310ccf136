"""`patchkit bump`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import (
    CarefulOption,
    DiffOption,
    DryRunOption,
    MergersOption,
    PartialOption,
    command,
)
from patchkit.cli.session import Session
from patchkit.errors import ExitCode, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchkit.cli.terminal import Terminal
    from patchkit.manifest.values import Component
    from patchkit.ops.refresh_report import BumpedComponent, BumpReport


#: How the files of reviews may end: a page, the text of a pull request.
_PAGE, _TEXT = ".html", ".md"

ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REF",
        help="A tag, a branch, a pattern of tags (the newest), a commit id, a version of the "
        "package index; or `latest`: what the manifest's `track` names. Of an archive its URL, or "
        "the version that is to stand in it.",
    ),
]
Sha256Option = Annotated[
    str | None,
    typer.Option("--sha256", metavar="DIGITS", help="The SHA-256 of the archive to move to."),
]
AddOption = Annotated[
    str | None,
    typer.Option(
        "--add",
        metavar="REF",
        help="Add a pin to a component that has several: a copy of the nearest, moved to REF.",
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Every component that has a `track`, each to that.")
]
ReviewsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write there, for a reviewer: old patch beside new one, what upstream did, what a "
        "check says. As it ends, a page (.html) or the text of a pull request (.md); may be given "
        "several times. Alone: of the last finished bump.",
    ),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Say how right files were that are sure, or to look at.")
]


@command(
    "manifest components workspace store json quiet",
    examples={
        "patchkit bump megatron-lm --to latest --dry-run": "what would become of the patches?",
        "patchkit bump megatron-lm --to core_v0.16.0": "pin, patches and lock in one go",
        "patchkit bump slime --to latest -o body.md": "with a pull request's text",
        "patchkit bump --all --dry-run": "every component, to what it tracks",
        "patchkit bump zlib --to 1.3.1 --sha256 9a93b2...": "an archive, by the version in its URL",
        "patchkit bump -o page.html": "a page to review the last bump by",
    },
    ok="the pin is moved and every patch carried, or it was there already",
    finding="the checkout has edits, the change would break another stack, "
    "--skip-conflicts left patches out, or there is no finished bump to review",
    halted="a patch does not fit the new pin; the project was not changed",
    bad_input="a file cannot be read, or the pin is that of other manifests, too",
    environment="an upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.refresh_report:BumpReport",
)
def bump(
    session: Session,
    *,
    every: AllOption = False,
    to: ToOption = None,
    add: AddOption = None,
    sha256: Sha256Option = None,
    careful: CarefulOption = False,
    run: MergersOption = False,
    partial: PartialOption = False,
    reviews: ReviewsOption = None,
    diff: DiffOption = False,
    explain: ExplainOption = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Move a component's pin, or all, and carry the patches there.

    The new commit is looked up and fetched, the patches are carried to it as `refresh` does after
    an edit by hand, and pin, patches and lock are written together; of the manifest only the pin's
    characters change. A checkout without edits goes to the new stack; one with edits is refused. If
    one patch does not fit, nothing is written, and the conflict goes into a checkout at its stack:
    `patchkit continue`, `skip` and `abort` go on from there. With `--skip-conflicts` the rest is
    carried all the same, and what does not fit leaves the series (`patchkit undo` brings it back;
    so there must be a checkout). Several components move one after the other, each whole or not at
    all, and no conflict goes into a checkout. `--output` writes for whoever reviews the bump;
    without `--to` and `--all` it is about the last one that was finished, and nothing is moved.
    """
    import time

    from patchkit.cli.refresh_output import render_bump, render_bumped
    from patchkit.ops.bump import WantedPin, bump_components
    from patchkit.ops.refresh_input import RefreshOptions

    files = _of_known_forms(reviews or ())
    if files and not (to or every or add):
        return _write_reviews(session, _last(session), files).exit_code
    picked = _picked(session, every=every) if add is None else [_nearest(session, add)]
    wanted = _wanted(add or to, several=every or len(picked) > 1)

    def show(terminal: Terminal, row: BumpedComponent) -> None:
        render_bumped(terminal, row, dry_run=dry_run, diff=diff)

    moving = [one.name for one in picked if one.track is not None]
    shown = session.answers(moving, show, shown=len(picked) > 1)
    with shown as known, session.progress() as progress:
        report = bump_components(
            session.manifest,
            [each.name for each in picked],
            WantedPin(wanted, sha256, add=add is not None),
            store=session.store,
            workspace=session.workspace,
            options=RefreshOptions(
                when=int(time.time()),
                began=time.time_ns(),
                careful=careful,
                run=run,
                partial=partial,
                dry_run=dry_run,
            ),
            progress=progress,
            known=known,
        )
    if files:
        _write_reviews(session, report, files)
    render = render_bump(diff=diff, shown=known.shown, explain=explain)
    return session.report("bump", report, render)


def _of_known_forms(files: Sequence[Path]) -> Sequence[Path]:
    """The files, each of which says by its ending how it is written; UsageError where one does not,
    before anything is done.
    """
    from patchkit.errors import UsageError

    for file in files:
        if file.suffix not in (_PAGE, _TEXT):
            what = f"--output {file} ends neither in {_PAGE} nor in {_TEXT}"
            raise UsageError(what, hint="a page for a reviewer, or the text of a pull request")
    return files


def _write_reviews(session: Session, report: BumpReport, files: Sequence[Path]) -> BumpReport:
    """Write the reviews of a bump; the report that they are about."""
    from patchkit.cli.format_options import write_text, written_now
    from patchkit.cli.project import load
    from patchkit.ops.bump_review import review_bump
    from patchkit.report.markdown import review_markdown

    report = _reviewed(session, report)
    manifest = load(session.manifest_path)
    with session.progress() as progress:
        found = review_bump(manifest, report, store=session.store, progress=progress)
    for review in found.components:
        told = any(review.unknown in note.what for note in review.report.notes)
        if review.unknown and not told:
            what = f"the review names no upstream commits: {review.unknown}"
            session.terminal.warn(Problem(what, review.report.name))
    for file in files:
        if file.suffix == _TEXT:
            text = review_markdown(found)
        else:
            from patchkit.report.review_page import review_page

            text = review_page(found, written_now())
        write_text(file, text)
        session.terminal.say(f"wrote {file}")
    return report


def _last(session: Session) -> BumpReport:
    from patchkit.ops.bump_review import last_bump

    rows = session.components if session.names else session.manifest.components
    return last_bump(session.manifest, [each.name for each in rows], session.workspace)


def _reviewed(session: Session, report: BumpReport) -> BumpReport:
    """What a review is about: of a bump that finds its work done, the one that did it.

    So a bump that was stopped while it wrote its page writes it when it is run again.
    """
    from patchkit.ops.bump_review import NoBumpError

    if any(each.result.value != "unchanged" for each in report.components):
        return report
    try:
        return _last(session)
    except NoBumpError:
        return report


def _picked(session: Session, *, every: bool) -> Sequence[Component]:
    """The components that are named, with --all every one, else the only one there is."""
    from patchkit.errors import UsageError

    manifest = session.manifest
    if every and session.names:
        raise UsageError("--all leaves no component to name")
    if every:
        return manifest.components
    return session.components if session.names else [session.component]


def _nearest(session: Session, add: str) -> Component:
    """The pin as a copy of which a new one starts."""
    from patchkit.errors import UsageError
    from patchkit.ops.new_pin import nearest_pin

    if len({picked.family for picked in session.components}) > 1:
        raise UsageError("--add is for one component", hint="name it with -c")
    with session.progress() as progress:
        nearest = nearest_pin(session.components, add, session.store, progress)
    session.terminal.say(f"starts as a copy of {nearest.name}")
    return nearest


def _wanted(to: str | None, *, several: bool) -> str:
    """What --to says; without it, what the manifest tracks of each of several components."""
    from patchkit.errors import UsageError
    from patchkit.upstream.git import LATEST

    if to not in (None, LATEST) and several:
        hint = "name it, or move each to what it tracks: --to latest"
        raise UsageError(f"--to {to} is for one component", hint=hint)
    if to is None and not several:
        hint = "a tag, branch or commit; `--to latest` is what the manifest's `track` names"
        raise UsageError("bump: --to REF is missing", hint=hint)
    return to or LATEST
