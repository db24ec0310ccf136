"""`patchkit refresh`: edits in a checkout become patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import (
    CarefulOption,
    DiffOption,
    DryRunOption,
    MergersOption,
    MessageOption,
    NewOption,
    PartialOption,
    PatchOption,
    RestOption,
    command,
)
from patchkit.cli.session import Session
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from patchkit.manifest.values import Component
    from patchkit.ops.refresh_input import RefreshOptions
    from patchkit.ops.refresh_report import RefreshReport
    from patchkit.refresh.draft import Request

StagedOption = Annotated[
    bool,
    typer.Option("--staged", help="With --new: only what is staged; the rest stays uncommitted."),
]
CanonicalOption = Annotated[
    bool,
    typer.Option(
        "--canonical",
        help="Rewrite every diff in patchkit's form, with today's line numbers and blob ids; "
        "number all files of an ordered folder anew.",
    ),
]
AllPinsOption = Annotated[
    bool,
    typer.Option(
        "--all-pins", help="Carry the edits to the patches at the component's other pins, too."
    ),
]


@command(
    "manifest components workspace store json quiet",
    examples={
        "patchkit refresh -m qwen3-vl-npu --dry-run": "where would each edit go?",
        "patchkit refresh -m qwen3-vl-npu -c megatron-lm": "rewrite its patch files",
        "patchkit refresh -m qwen3-vl-npu --canonical": "every diff in patchkit's own form",
        "patchkit refresh --new fix-rope --message 'Fix RoPE'": "all edits make a new patch",
        "patchkit refresh --rest fix-rope": "those that belong to no patch do",
    },
    ok="the patch files match the checkouts",
    finding="an edit does not belong to exactly one patch, there is nothing for "
    "a new one, or a checkout was refused",
    halted="a patch does not fit the changed pin; nothing was written",
    bad_input="the manifest, the series or a patch cannot be read or rewritten",
    environment="an upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.refresh_report:RefreshReport",
)
def refresh(
    session: Session,
    *,
    patch: PatchOption = None,
    new: NewOption = None,
    rest: RestOption = None,
    message: MessageOption = "",
    staged: StagedOption = False,
    canonical: CanonicalOption = False,
    all_pins: AllPinsOption = False,
    diff: DiffOption = False,
    careful: CarefulOption = False,
    run: MergersOption = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Record edits in the checkouts in the patch files.

    Commits that you amended, moved, dropped or added become the series. Uncommitted edits go into
    the patch that last touched those lines, hunk by hunk; an edit next to no patch's lines, or next
    to those of two, is not guessed: name its patch with --patch or --rest. New files count once
    they are added (git add).

    With --new no edit goes into an older patch: all make a new one, or with --staged those that
    `git add` (or `git add -p`, for single hunks) put into git's index. A component without a series
    gets one. The patch has a Date: line only where GIT_AUTHOR_DATE or SOURCE_DATE_EPOCH
    gives one: the same edits make the same file on every machine.

    The text above the diff in a patch file is kept byte for byte, and a patch with the same change
    is not rewritten. The new series is applied before anything is replaced, and must give exactly
    the files of the checkout; then all files are replaced together. After a pin was changed in the
    manifest, the patches are regenerated for it where they fit, once edits are in them.

    With --all-pins, what changed in the patches of one pin of a component (`pins:`) is carried to
    those of the same name, subject or change at its other pins, as an import carries patches: a
    conflict waits in the checkout there. One `undo` takes all of it back.

    Where the patches are not those that were applied, by a pull or by hand, the checkout goes to
    them first, and its edits are merged in; where they conflict, that waits in the checkout.
    """
    import time

    from msgspec.structs import replace

    from patchkit.errors import UsageError
    from patchkit.ops.refresh_input import RefreshOptions

    if staged and new is None:
        raise UsageError("--staged is for a new patch", hint="name it with --new")
    request = request_of(session, patch, new, rest, message)
    everything = new is not None
    components = [session.component] if everything or all_pins else session.components
    options = RefreshOptions(
        when=int(time.time()),
        request=replace(request, canonical=canonical, staged=staged),
        careful=careful,
        run=run,
        dry_run=dry_run,
        began=time.time_ns(),
        stop=not everything,
    )
    if not all_pins:
        return run_refresh(session, "refresh", components, options, diff=diff)
    from patchkit.ops.all_pins import refresh_all_pins

    return run_refresh(session, "refresh", components, options, diff=diff, work=refresh_all_pins)


@command(
    "manifest component workspace store json quiet",
    examples={
        "patchkit refresh --from-branch -m demo -c sglang --dry-run": "what is new there?",
        "patchkit refresh --from-branch -m demo -c sglang": "its commits as patch files",
    },
    ok="the series has what the branch has",
    finding="a patch that the branch does not have is in the way, or a checkout was refused",
    bad_input="the branch is not there, or not on the pin",
    environment="the branch cannot be fetched, or the disk is full",
    result="patchkit.ops.refresh_report:RefreshReport",
)
def from_branch(
    session: Session,
    *,
    partial: PartialOption = False,
    diff: DiffOption = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Take a branch's own commits into the series that follows it.

    The series names it: `branch: NAME`, and `of: URL` for a fork's. Its own commits are those that
    neither the pin nor what `track` names has. Each is a patch, in their order; one that the series
    has, or had before it was rewritten there, as git's range-diff pairs them, keeps its file's
    name, and where it does the same its bytes. New ones are named for their subjects. A patch that
    the branch does not have stays behind them, and is named, as is what upstream has.

    Merges of upstream are understood: the commits before one are carried onto what it merged, and
    what the merge changed itself is a patch of its own. The lock has the branch's commit.
    """
    import time

    from patchkit.cli.refresh_output import render_refresh
    from patchkit.ops.refresh_input import RefreshOptions
    from patchkit.ops.transfer import refresh_from_branch

    with session.progress() as progress:
        report = refresh_from_branch(
            session.manifest,
            session.component,
            store=session.store,
            workspace=session.workspace,
            options=RefreshOptions(int(time.time()), partial=partial, dry_run=dry_run),
            progress=progress,
        )
    return session.report("refresh --from-branch", report, render_refresh(diff=diff))


def request_of(
    session: Session, patch: str | None, new: str | None, rest: str | None, message: str
) -> Request:
    """Where edits go by the options; UsageError for some that do not go together."""
    from patchkit.errors import UsageError
    from patchkit.gitcmd.author import user_identity
    from patchkit.refresh.draft import Request

    if (patch, new, rest).count(None) < 2:
        raise UsageError("--patch, --new and --rest exclude each other")
    name = rest if new is None else new
    if message and name is None:
        raise UsageError("--message is for a new patch", hint="name it with --new")
    if patch is not None:
        session.check_patch(patch)
    author = user_identity(session.manifest.root) if name is not None else None
    return Request(patch, name, message, author, everything=new is not None)


def run_refresh(
    session: Session,
    word: str,
    components: Sequence[Component],
    options: RefreshOptions,
    *,
    diff: bool = False,
    work: Callable[..., RefreshReport] | None = None,
) -> ExitCode:
    """Refresh components, or change their series, and report that as the command `word`.

    `work` is what does it in the place of `refresh_components`.
    """
    from patchkit.cli.refresh_output import render_refresh
    from patchkit.ops.refresh import refresh_components

    with session.progress() as progress:
        report = (work or refresh_components)(
            session.manifest,
            components,
            store=session.store,
            workspace=session.workspace,
            options=options,
            progress=progress,
        )
    return session.report(word, report, render_refresh(diff=diff))
