"""`patchkit ci`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.format_options import Format, FormatOption, OutputOption, Writers, deliver, wanted
from patchkit.cli.options import (
    JOBS,
    CacheOption,
    ComponentsOption,
    JobsOption,
    JsonOption,
    ManifestsOption,
    OfflineOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from patchkit.ops.ci import CiReport

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Let warnings and questions of form fail the check.")
]
AllowDriftOption = Annotated[
    bool,
    typer.Option("--allow-drift", help="Tell what the tracked branches broke, and fail nothing."),
]


@command(
    examples=[
        ("patchkit ci --format github", "annotations for every manifest"),
        ("patchkit ci --allow-drift --strict", "a pull request: drift is no fault of it"),
        ("patchkit ci --format sarif -o patchkit.sarif", "for a code scanning page"),
    ],
    exits={
        ExitCode.OK: "every patch applies to its pin and to its tracked branch",
        ExitCode.FINDING: "a patch does not, or the lock says otherwise",
        ExitCode.BAD_INPUT: "a manifest, series, lock or patch cannot be read",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.ci:CiReport",
)
def ci(
    *,
    manifest: ManifestsOption = None,
    component: ComponentsOption = None,
    strict: StrictOption = False,
    allow_drift: AllowDriftOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    jobs: JobsOption = JOBS,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Check and look for drift, with one exit code and one report.

    What `patchkit check` and `patchkit drift` say, in one go. Components that track no branch are
    checked only.
    """
    from patchkit.cli.locate import all_manifest_paths, cache_folder, open_manifests
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.check import check_manifests
    from patchkit.ops.ci import CiReport
    from patchkit.ops.drift import look_for_drift
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    asked = wanted(form, output, json=json)
    paths = all_manifest_paths(manifest)
    chosen, broken = open_manifests(paths, component)
    store = Store(cache_folder(cache), offline=offline)
    tracking = [(each, [c for c in some if c.track is not None]) for each, some in chosen]
    with showing_progress(terminal) as progress:
        checked = check_manifests(chosen, store, progress, strict=strict, jobs=jobs, broken=broken)
        drifted = look_for_drift(
            tracking,
            store,
            progress,
            every_commit=asked.form is Format.HTML,
        )
    report = CiReport(checked, drifted, allow_drift)
    return deliver(terminal, report, asked, lambda: _writers(paths), print_ci)


def _writers(paths: Sequence[Path]) -> Writers[CiReport]:
    from patchkit.cli.report_forms import ci_writers

    return ci_writers(paths)


def print_ci(terminal: Terminal, report: CiReport) -> None:
    """What both say."""
    from patchkit.cli.commands.check import print_check
    from patchkit.cli.drift_output import print_drift

    print_check(terminal, report.check)
    if report.drift.components:
        terminal.product()
        print_drift(terminal, report.drift, allowed=report.drift_allowed)
