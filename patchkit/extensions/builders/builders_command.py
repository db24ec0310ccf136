"""`patchkit export --format yocto` and `--format rpm`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode

FolderOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder, or an empty one.")
]
_TAKES = "manifest component store json quiet"
_EXITS = {
    ExitCode.OK: "the stack is written",
    ExitCode.BAD_INPUT: "a patch does not apply, or cannot be written in that form",
    ExitCode.ENVIRONMENT: "the upstream cannot be fetched, or the disk is full",
}
_RESULT = "patchkit.ops.transfer:ExportReport"


@command(
    _TAKES,
    examples=[
        ("patchkit export --format yocto -c mbridge -o meta-npu/mbridge", "a .bbappend and files/"),
    ],
    exits=_EXITS,
    result=_RESULT,
    group="Work with stacks",
)
def yocto(session: Session, *, output: FolderOption) -> ExitCode:
    """Write a stack for Yocto: a .bbappend with its files.

    The diffs are those that `patchkit export --format quilt` writes.
    """
    from patchkit.cli.commands.transfer import export_as
    from patchkit.extensions.builders.package_folders import YOCTO

    return export_as("export --format yocto", session, YOCTO, output)


@command(
    _TAKES,
    examples=[
        ("patchkit export --format rpm -c mbridge -o rpm/sources", "patches and patches.inc"),
    ],
    exits=_EXITS,
    result=_RESULT,
    group="Work with stacks",
)
def rpm(session: Session, *, output: FolderOption) -> ExitCode:
    """Write a stack for RPM: the patches, and lines of a spec.

    The diffs are those that `patchkit export --format quilt` writes.
    """
    from patchkit.cli.commands.transfer import export_as
    from patchkit.extensions.builders.package_folders import RPM

    return export_as("export --format rpm", session, RPM, output)
