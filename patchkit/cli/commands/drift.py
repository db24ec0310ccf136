"""`patchkit drift`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from patchkit.cli.command import LineOption, command
from patchkit.cli.explanations import print_findings, print_matrices
from patchkit.cli.format_options import Format, FormatOption, OutputOption, deliver, wanted
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Paint, Painted, Piece, Terminal
from patchkit.errors import ExitCode
from patchkit.report.findings import component_drift, drift_outcomes, summary

if TYPE_CHECKING:
    from patchkit.cli.display import Answers
    from patchkit.ops.check_report import Chosen
    from patchkit.ops.drift import ComponentDrift, DriftReport


@command(
    "manifests components store json quiet",
    examples={
        "patchkit drift -m slime-npu-official -c megatron-lm": "along the tracked branch",
        "patchkit drift -m slime-npu-official -c megatron-lm --to main": "along another one",
        "patchkit drift --format html -o drift.html": "a page with timelines",
    },
    ok="every patch fits the newest commit",
    finding="a patch does not fit the newest commit, or is upstream there",
    bad_input="a manifest, series or patch cannot be read; no branch is tracked",
    environment="an upstream could not be fetched",
    result="patchkit.ops.drift:DriftReport",
)
def drift(
    session: Session,
    *,
    to: LineOption = None,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> ExitCode:
    """Say which upstream commit broke which patch, and when.

    Judges every commit of the tracked branch after the pin, without a checkout: its history is
    fetched without files, then only the files that patches touch. The verdict on each commit is the
    one that apply would give, and a break that was fixed later is reported as such. The next run
    looks at new commits only, and `patchkit ci --issues` tells what is new.
    """
    from patchkit.ops.drift import look_for_drift

    asked = wanted(form, output, json=session.terminal.json)
    chosen, broken = session.open_manifests()
    shown = drifts_shown(session, chosen, shown=asked.form is Format.TEXT)
    with shown as known, session.progress() as progress:
        report = look_for_drift(
            chosen,
            session.store,
            progress,
            to=to,
            every_commit=asked.form is Format.HTML,
            broken=broken,
            known=known,
        )
    show = partial(print_drift, shown=known.shown)
    return deliver(session.terminal, "drift", report, asked, show, paths=session.manifest_paths)


def drifts_shown(
    session: Session, chosen: Chosen, *, shown: bool
) -> AbstractContextManager[Answers[ComponentDrift]]:
    """Prints what is found of each component as soon as it is known."""
    names = [f"{manifest.name}: {one.name}" for manifest, some in chosen for one in some]
    return session.answers(names, _print_component, shown=shown)


def print_drift(
    terminal: Terminal,
    report: DriftReport,
    brief: bool = False,
    *,
    allowed: bool = False,
    shown: bool = False,
) -> None:
    """The whole report, in `brief` its problems and a summary; `allowed`: drift fails nothing;
    `shown`: the components were printed when they were known.
    """
    for component in () if brief or shown else report.components:
        _print_component(terminal, component)
    print_matrices(terminal, () if brief else report.versions)
    terminal.problems(report.all_problems)
    said = summary(drift_outcomes(report))
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
    rows = [(word(patch.state), patch.name, patch.words) for patch in patches]
    terminal.table(rows, indent=2)
    print_findings(terminal, [*patches, itself], named=False)
    terminal.product()
