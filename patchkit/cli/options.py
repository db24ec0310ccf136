"""The options that several commands share, with one name, one help text and one default each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ManifestOption = Annotated[
    str | None,
    typer.Option(
        "--manifest",
        "-m",
        metavar="MANIFEST",
        help="The manifest: a path, or a name in manifests/ or $PATCHKIT_MANIFESTS. "
        "May be left out where there is only one.",
    ),
]
ManifestsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--manifest",
        "-m",
        metavar="MANIFEST",
        help="A manifest: a path, or a name in manifests/ or $PATCHKIT_MANIFESTS; may be given "
        "several times. Default: all of manifests/.",
    ),
]
ComponentsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--component",
        "-c",
        metavar="COMPONENT",
        help="Only this component; may be given several times. Default: all.",
    ),
]
OneComponentOption = Annotated[
    str | None,
    typer.Option(
        "--component",
        "-c",
        metavar="COMPONENT",
        help="The component. May be left out where the manifest has only one.",
    ),
]
WorkspaceOption = Annotated[
    Path,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        envvar="PATCHKIT_WORKSPACE",
        help="Where the checkouts are.",
    ),
]
WORKSPACE = Path("workspace")

CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        envvar="PATCHKIT_CACHE",
        help="Where upstreams are kept. Default: the platform's cache folder.",
    ),
]
OfflineOption = Annotated[
    bool, typer.Option("--offline", help="Use only what is cached; never ask the network.")
]
JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="How many components at once."),
]
JOBS = 4

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON (docs/reference/json.md).")
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Say nothing unless something is wrong."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Say what would be done, and change nothing.")
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Go on where local work is in the way; it is saved under a ref that is named.",
    ),
]
