"""`patchkit sbom`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from patchkit.cli.command import OptionSpec, command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode

SbomFileOption = Annotated[
    Path | None,
    OptionSpec("--output", "-o", metavar="FILE", help="Write it to this file. Default: stdout."),
]
DiffsOption = Annotated[
    bool, OptionSpec("--diffs", help="Put the patches' bytes into it, for readers without them.")
]


@command(
    "manifest components store quiet",
    examples=[
        ("patchkit sbom -m demo -o demo.cdx.json", "what the stack is made of"),
        ("patchkit sbom -m demo -c mbridge --diffs", "one component, with its patches' text"),
    ],
    exits={
        ExitCode.OK: "written",
        ExitCode.FINDING: "the lock does not know these patches: nothing was written",
        ExitCode.BAD_INPUT: "a manifest, series, lock or patch cannot be read",
        ExitCode.ENVIRONMENT: "a patch of another repository cannot be had",
    },
)
def sbom(
    session: Session, *, output: SbomFileOption = None, diffs: DiffsOption = False
) -> ExitCode:
    """Write a stack's bill of materials (SBOM) with its patches.

    The form is CycloneDX 1.6 as JSON. A component with patches is no longer its upstream's release:
    that is its ancestor, and each patch is named with its kind (a backport or our own), its
    SHA-256, and the holes (CVE numbers) and bugs that its message says it resolves.

    It says what the lock says, so that a machine's scanner and the project agree; where the patches
    are others, nothing is written. The same files make the same bytes.
    """
    from patchkit.cli.format_options import write_text
    from patchkit.report.sbom import StackPart, sbom_document, unlocked
    from patchkit.stack.lockfile import Lock, load_lock
    from patchkit.stack.series import load_series

    manifest, terminal = session.manifest, session.terminal
    with session.progress() as progress:
        parts = [
            StackPart(each, load_series(manifest, each, session.store, progress).patches)
            for each in session.components
        ]
    lock = load_lock(manifest.lock_path)
    problems = unlocked(manifest, parts, lock)
    for problem in problems:
        terminal.problem(problem)
    if problems:
        return ExitCode.FINDING
    text = sbom_document(manifest, parts, lock or Lock({}), diffs=diffs)
    if output is None:
        terminal.document(text)
    else:
        write_text(output, text)
        terminal.say(f"{output} written")
    return ExitCode.OK
