"""`patchkit edit`, `drop`, `move`, `fold`, `split`, `import --vendor`: change a series in place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import DryRunOption, command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from patchkit.refresh.series_edits import SeriesEdit

_TAKES = "manifest component workspace store json quiet"
_edits = partial(
    command,
    ok="patch files, series, lock and checkout agree",
    finding="the patches do not allow it, or the checkout is in the way",
    bad_input="the manifest, the series or a patch cannot be read or rewritten",
    environment="an upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.refresh_report:RefreshReport",
)
_HOW = "The patch's name, the start of it, or its number in the series."

NumberedOption = Annotated[
    bool,
    typer.Option("--canonical", help="Number all files of an ordered folder anew."),
]
PatchArgument = Annotated[str, typer.Argument(metavar="PATCH", help=_HOW)]
PatchesArgument = Annotated[list[str], typer.Argument(metavar="PATCH", help=_HOW)]


@_edits(
    _TAKES,
    examples={
        "patchkit edit 3 --message 'Fix RoPE'": "the third patch of the series",
        "patchkit edit fix-rope --name rope-on-npu": "the file, and its line in the series",
    },
)
def edit(
    session: Session,
    patch: PatchArgument,
    *,
    message: Annotated[
        str | None, typer.Option("--message", metavar="TEXT", help="Its new message.")
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Its new name.")] = "",
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Change a patch's message, or its name.

    The first line is its subject, the text after an empty line its body. The diff, and any other
    text above it in the file, is kept byte for byte. With --name its line in the series keeps its
    comments and options. In an editor the message is changed in the patch file itself, which
    `apply` and `refresh` take up, or with `git commit --amend` in the checkout.
    """
    from patchkit.refresh.series_edits import SeriesEdit, edit_patch

    if message is None and not name:
        hint = "its message is the text above the diff in its file: edit that, and apply"
        raise UsageError("edit: --message TEXT or --name NAME is missing", hint=hint)
    wanted = SeriesEdit("edit", partial(edit_patch, given=patch, message=message, wish=name))
    return _change(session, [patch], wanted, dry_run=dry_run)


@_edits(
    _TAKES,
    examples={
        "patchkit drop fix-rope": "it leaves series and checkout",
        "patchkit drop 3 4 --dry-run": "do the others apply without them?",
    },
)
def drop(
    session: Session,
    patches: PatchesArgument,
    *,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Remove patches from the series.

    Those behind them are merged onto the files without them, where they do not apply as they are;
    hunks that need them stop it, and are named. The old stack is kept under a ref in the checkout,
    and `undo` restores the patches. In a series that does not apply, `drop`, `move` and `edit`
    change the files only: the checkout stays, and no patch that applies stops applying.
    """
    from patchkit.refresh.series_edits import SeriesEdit, drop_patches

    wanted = SeriesEdit("drop", partial(drop_patches, given=patches))
    return _change(session, patches, wanted, dry_run=dry_run)


@_edits(
    _TAKES,
    examples={
        "patchkit move fix-rope --to fuse-norm": "to the place of that patch",
        "patchkit move fix-rope --to 1": "to the beginning of the series",
    },
)
def move(
    session: Session,
    patch: PatchArgument,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="PATCH", help="The patch whose place it takes, or that place."
        ),
    ],
    numbered: NumberedOption = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Move a patch to another position in the series.

    Where patches overlap they are merged into their new order, as a bump merges them. Together they
    give the same files as before: nothing in the checkout changes. Hunks that need each other stop
    it, and are named: reorder the commits with `git rebase -i` in the checkout, and refresh.
    """
    from patchkit.refresh.series_edits import SeriesEdit, move_patch

    wanted = SeriesEdit("move", partial(move_patch, given=patch, to=to, numbered=numbered))
    return _change(session, [patch, to], wanted, dry_run=dry_run)


@_edits(
    _TAKES,
    examples={
        "patchkit fold fix-typo --to fix-rope": "one patch of two",
    },
)
def fold(
    session: Session,
    patches: PatchesArgument,
    *,
    into: Annotated[
        str, typer.Option("--to", metavar="PATCH", help="The patch that they become part of.")
    ],
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="Its message. Default: the same.")
    ] = "",
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Combine patches into another one.

    It keeps its name and its message; theirs are dropped. Patches in between are passed as `move`
    does it. No file in the checkout changes.
    """
    from patchkit.refresh.series_edits import SeriesEdit, fold_into

    wanted = SeriesEdit("fold", partial(fold_into, given=patches, to=into, message=message))
    return _change(session, [*patches, into], wanted, dry_run=dry_run)


@_edits(
    _TAKES,
    examples={
        "patchkit split fix-rope --new rope-tests --file tests/test_rope.py": "whole files",
        "patchkit split fix-rope --new rope-cache --file rope.py:2": "the second hunk of a file",
    },
)
def split(
    session: Session,
    patch: PatchArgument,
    *,
    new: Annotated[str, typer.Option("--new", metavar="NAME", help="The new patch's name.")],
    file: Annotated[
        list[str],
        typer.Option(
            "--file",
            metavar="PATH[:N]",
            help="A file whose changes move there, or its Nth hunk, counted from 1; repeatable.",
        ),
    ],
    message: Annotated[
        str,
        typer.Option(
            "--message", metavar="TEXT", help="The new patch's message. Default: from its name."
        ),
    ] = "",
    numbered: NumberedOption = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Move a part of a patch into a new one, directly after it.

    No file in the checkout changes. To choose line by line, take the patch's commit apart there
    with git, and refresh: each commit becomes a patch. `patchkit export --format quilt` writes each
    mail of a file of several as a file.
    """
    from patchkit.refresh.series_edits import SeriesEdit, SplitPart, split_patch

    part = SplitPart(new, message, tuple(file))
    draft = partial(split_patch, given=patch, wanted=part, numbered=numbered)
    wanted = SeriesEdit("split", draft)
    return _change(session, [patch], wanted, dry_run=dry_run)


@_edits(
    _TAKES,
    examples={
        "patchkit import --vendor -m slime-npu-official -c megatron-lm": "all of the component",
        "patchkit import --vendor npu-megatron.patch -c megatron-lm": "one of them",
    },
)
def vendor(
    session: Session,
    patches: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATCH", help="A patch by reference. Default: all."),
    ] = None,
    *,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Copy patches by reference into the series.

    A patch by reference belongs to another repository and is never rewritten. Once copied, it is
    a file of the component's series at the same position: a bump can carry it, and a conflict in it
    can be resolved. An `Origin` line in its message says where it came from.
    """
    from patchkit.refresh.series_edits import SeriesEdit, vendor_patches

    draft = partial(vendor_patches, manifest=session.manifest, given=patches or ())
    wanted = SeriesEdit("import --vendor", draft)
    return _change(session, patches or (), wanted, dry_run=dry_run)


def _change(
    session: Session,
    patches: Sequence[str],
    wanted: SeriesEdit,
    *,
    dry_run: bool,
) -> ExitCode:
    from patchkit.cli.commands.refresh import run_refresh
    from patchkit.ops.refresh_input import RefreshOptions

    options = RefreshOptions(when=int(time.time()), dry_run=dry_run, series_edit=wanted)
    component = session.component_with(*patches) if patches else session.component
    return run_refresh(session, wanted.verb, [component], options)
