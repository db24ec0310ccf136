"""`patchkit drift`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.format_options import Format, FormatOption, OutputOption, Writers, deliver, wanted
from patchkit.cli.options import (
    CacheOption,
    ComponentsOption,
    JsonOption,
    ManifestsOption,
    OfflineOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.drift import DriftReport

ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REF",
        help="Look along this branch, tag, tag pattern or commit instead of the tracked branch.",
    ),
]
BisectOption = Annotated[
    bool,
    typer.Option(
        "--bisect",
        help="Try few commits only; a break that was mended meanwhile goes unseen.",
    ),
]
SinceLastOption = Annotated[
    bool,
    typer.Option("--since-last", help="Tell only what changed since the last report."),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Keep what was seen in this file instead of the cache, for --since-last and trends.",
    ),
]


@command(
    examples=[
        ("patchkit drift -m slime-npu-official -c megatron-lm", "along the tracked branch"),
        ("patchkit drift -m slime-npu-official -c megatron-lm --to main", "along another one"),
        ("patchkit drift --since-last", "only what changed since the last report"),
        ("patchkit drift --format html -o drift.html", "a page with timelines"),
    ],
    exits={
        ExitCode.OK: "every patch fits the newest commit; with --since-last: none fares worse",
        ExitCode.FINDING: "a patch does not fit the newest commit, or is superfluous there",
        ExitCode.BAD_INPUT: "a manifest, series or patch cannot be read; no branch is tracked",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.drift:DriftReport",
)
def drift(
    *,
    manifest: ManifestsOption = None,
    component: ComponentsOption = None,
    to: ToOption = None,
    bisect: BisectOption = False,
    since_last: SinceLastOption = False,
    record: RecordOption = None,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Say which upstream commit broke which patch, and when.

    Looks at every commit of the tracked branch beyond the pin, without a checkout: its history is
    fetched without files, of which only those that patches touch are brought. The verdict on each
    commit is the one that apply would give, and a break that was mended meanwhile is told apart.
    The next run looks at new commits only.

    What was seen is noted, in the cache unless --record names a file: --since-last tells what is
    not as the last report saw it, and fails only for what got worse.
    """
    from patchkit.cli.locate import all_manifest_paths, cache_folder, moment, open_manifests
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.drift import look_for_drift
    from patchkit.ops.since import RecordPlace, note_report
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    asked = wanted(form, output, json=json)
    paths = all_manifest_paths(manifest)
    chosen, broken = open_manifests(paths, component)
    store = Store(cache_folder(cache), offline=offline)
    with showing_progress(terminal) as progress:
        report = look_for_drift(
            chosen,
            store,
            progress,
            to=to,
            bisect=bisect,
            every_commit=asked.form is Format.HTML,
            broken=broken,
        )
    place = RecordPlace(record, store.cache / "reports")
    report = note_report(report, place, moment(), since_last=since_last)
    return deliver(terminal, report, asked, lambda: _writers(paths), _render)


def _writers(paths: Sequence[Path]) -> Writers[DriftReport]:
    from patchkit.cli.report_forms import drift_writers

    return drift_writers(paths)


def _render(terminal: Terminal, report: DriftReport) -> None:
    from patchkit.cli.drift_output import print_drift

    print_drift(terminal, report)
