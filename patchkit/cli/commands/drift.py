"""`patchkit drift`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import LineOption, command
from patchkit.cli.explanations import print_findings, print_matrices
from patchkit.cli.format_options import Format, FormatOption, OutputOption, deliver, wanted
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Piece, Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.report.findings import component_drift, drift_outcomes, summary

if TYPE_CHECKING:
    from patchkit.drift.record import Since, StateChange
    from patchkit.ops.drift import ComponentDrift, DriftReport


SinceLastOption = Annotated[
    bool,
    typer.Option("--since-last", help="Report only what changed since the last report."),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Keep what was seen in this file instead of the cache, for --since-last.",
    ),
]


@command(
    "manifests components store json quiet",
    examples=[
        ("patchkit drift -m slime-npu-official -c megatron-lm", "along the tracked branch"),
        ("patchkit drift -m slime-npu-official -c megatron-lm --to main", "along another one"),
        ("patchkit drift --since-last", "only what changed since the last report"),
        ("patchkit drift --format html -o drift.html", "a page with timelines"),
    ],
    exits={
        ExitCode.OK: "every patch fits the newest commit; with --since-last: none got worse",
        ExitCode.FINDING: "a patch does not fit the newest commit, or is upstream there",
        ExitCode.BAD_INPUT: "a manifest, series or patch cannot be read; no branch is tracked",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.drift:DriftReport",
)
def drift(
    session: Session,
    *,
    to: LineOption = None,
    since_last: SinceLastOption = False,
    record: RecordOption = None,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> ExitCode:
    """Say which upstream commit broke which patch, and when.

    Judges every commit of the tracked branch after the pin, without a checkout: its history is
    fetched without files, then only the files that patches touch. The verdict on each commit is the
    one that apply would give, and a break that was fixed later is reported as such. The next run
    looks at new commits only.

    What was seen is noted, in the cache unless --record names a file: --since-last reports what
    changed since the last report, and fails only for what got worse.
    """
    from patchkit.cli.session import moment
    from patchkit.ops.drift import RecordPlace, look_for_drift, note_report

    asked = wanted(form, output, json=session.terminal.json)
    chosen, broken = session.open_manifests()
    with session.progress() as progress:
        report = look_for_drift(
            chosen,
            session.store,
            progress,
            to=to,
            every_commit=asked.form is Format.HTML,
            broken=broken,
        )
    place = RecordPlace(record, session.store.cache / "reports")
    report = note_report(report, place, moment(), since_last=since_last)
    paths = session.manifest_paths
    return deliver(session.terminal, "drift", report, asked, print_drift, paths=paths)


#: How many notes of one kind a terminal shows; --json has all.
_SHOWN = 6


def print_changes(terminal: Terminal, component: ComponentDrift, since: Since) -> None:
    """A line for each change, below a line that names the component."""
    if not since.at:
        terminal.product("  the first report on it: all that does not fit is new")
    elif since.pin != component.pin:
        terminal.product(f"  the pin was {short_id(since.pin)} and is {short_id(component.pin)}")
    words = {patch.name: patch.words for patch in component.patches}
    rows: list[tuple[Line, Line, Line]] = []
    for change in since.changes:
        before = [_before(change)] if since.at else []
        told = "; ".join([*before, *filter(None, [words.get(change.patch)])])
        rows.append((word(change.status or "dropped"), change.patch, told))
    terminal.table(rows, indent=2)
    _print_notes(terminal, "new", since.new)
    _print_notes(terminal, "settled", since.settled)


def _print_notes(terminal: Terminal, kind: str, notes: Sequence[str]) -> None:
    for note in notes[:_SHOWN]:
        terminal.product(["  ", word(kind), f"  {note}"])
    if len(notes) > _SHOWN:
        terminal.product(["  ", word(kind), f"  {len(notes) - _SHOWN} more"])


def _before(change: StateChange) -> str:
    if change.status is None:
        return "is no longer in the series"
    if change.again:
        return "by another commit than before"
    return f"was {change.was.value}" if change.was is not None else "is new in the series"


def print_drift(
    terminal: Terminal, report: DriftReport, brief: bool = False, *, allowed: bool = False
) -> None:
    """The whole report, in `brief` its problems and a summary; `allowed`: drift fails nothing."""
    for component in () if brief else report.components:
        _print_component(terminal, component)
    print_matrices(terminal, () if brief else report.versions)
    for problem in report.all_problems:
        terminal.problem(problem)
    said = summary(drift_outcomes(report), report.unchanged)
    good = report.exit_code is ExitCode.OK
    sign = word("ok" if good else "failed")
    if allowed and report.exit_code is ExitCode.FINDING:
        sign = word("warning", "drift allowed")
    terminal.product([sign, f": {said}"])


def _print_component(terminal: Terminal, component: ComponentDrift) -> None:
    state, words = component.verdict
    name = Painted(f"{component.manifest}: {component.name}", Paint.STRONG)
    sign: Sequence[Piece] = [word(state), "  "] if component.tip is None else []
    terminal.product([*sign, name, f"  {words}"])
    *patches, itself = component_drift(component)
    if component.since is not None:
        print_changes(terminal, component, component.since)
    else:
        rows = [(word(patch.state), patch.name, patch.words) for patch in patches]
        terminal.table(rows, indent=2)
    print_findings(terminal, [*patches, itself], named=False)
    terminal.product()
