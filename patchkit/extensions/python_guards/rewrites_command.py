"""`patchkit import --rewrites`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from patchkit.cli.command import DryRunOption, command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode, UsageError

RunSedOption = Annotated[
    bool,
    typer.Option(
        "--run",
        help="Run the sed commands, with --sandbox, on copies of their files, as you and with your "
        "rights. Read them first.",
    ),
]


@command(
    "manifest component workspace store json quiet",
    group="Start",
    examples={
        "patchkit import --rewrites -m demo -c mbridge -n": "which patches would be made?",
        "patchkit import --rewrites -m demo -c mbridge --run": "and sed is asked what it does",
    },
    ok="the patches are in the series, or there is nothing to make one of",
    finding="a patch does not apply; nothing was written",
    bad_input="the manifest, a series or a patch cannot be read, or does not apply",
    environment="an upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.transfer:AdoptReport",
)
def import_rewrites(
    session: Session, *, run: RunSedOption = False, dry_run: DryRunOption = False
) -> ExitCode:
    """Make patches of what rewrites a component, or replaces in it.

    Of each command and replacement that `check` finds under `rewrites`, and that does something, a
    patch is made that does it. Only what is certain is written: without --run as sed's manual and
    Python say it, with --run as sed does it. A function that another component assigns over one
    (`overrides`) is put in its place if all its names mean the same there. What no patch is made
    of is said.
    """
    from patchkit.cli.commands.transfer import take_in
    from patchkit.extensions.python_guards.guard_keys import GuardKeys
    from patchkit.extensions.python_guards.rewrite_patches import rewrite_patches
    from patchkit.ops.transfer import adopt_patches

    into, others = session.component, session.manifest.components
    targets = [o.target for other in others for o in other.added(GuardKeys).overrides]
    if "rewrites" not in into.more and into.name not in targets:
        hint = "name the files that rewrite it under `rewrites` (docs/howto/overrides.md)"
        raise UsageError(f"nothing is said to rewrite {into.name}", hint=hint)
    with session.progress() as progress:
        found = rewrite_patches(session.manifest, into, session.store, progress, run=run)
    return take_in(
        "import --rewrites", session, found, partial(adopt_patches, force=False), dry_run=dry_run
    )
