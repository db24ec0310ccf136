"""`patchkit check --only machine`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.extensions.machine.topic import SettingsOption, Topic

if TYPE_CHECKING:
    from patchkit.cli.terminal import Line
    from patchkit.extensions.machine.compatibility import Diagnosis
    from patchkit.extensions.machine.diagnosis import DoctorReport


@command(
    "manifest workspace cache json quiet",
    examples={
        "patchkit check --only machine -m demo": "all: system, packages, variables, metadata",
        "patchkit check --only machine -m demo --python .venv/bin/python packages": (
            "another Python"
        ),
        "patchkit check --only machine -m demo --set @site.yaml": (
            "variables that only the site knows, too"
        ),
    },
    ok="nothing is wrong or missing, though something may be uncertain",
    finding="something is wrong or missing",
    bad_input="the manifest or a values file cannot be used",
    result="patchkit.extensions.machine.diagnosis:DoctorReport",
    group="From manifest to machine",
)
def doctor(
    session: Session,
    *,
    topics: Annotated[
        list[Topic] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Look only at this. Default: at all.",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            "--python",
            metavar="FILE",
            help="The Python that the stack runs in. Default: the python3 that is active.",
        ),
    ] = None,
    ascend: Annotated[
        Path | None,
        typer.Option(
            "--ascend",
            metavar="DIR",
            help="Where Ascend's software is installed. Default: /usr/local/Ascend; the CANN whose "
            "set_env.sh was sourced comes first.",
        ),
    ] = None,
    settings: SettingsOption = None,
) -> ExitCode:
    """Compare this machine with what a manifest asks for.

    Looks at Python, CANN, NNAL and the NPU driver; at the packages of a Python, wanted and known
    not to work; at the variables of this shell; and at what the components' own metadata asks for
    beside the manifest, with their patches applied. Says for each what to do. Runs nothing but that
    Python and npu-smi, changes nothing, and asks no network. Whether all of it can be installed
    together, `patchkit export --format machine --dry-run lock` asks the package index.
    """
    import os
    import shutil

    from patchkit.extensions.machine.ascend import DEFAULT_HOME, AscendHost
    from patchkit.extensions.machine.diagnosis import MachineView, examine
    from patchkit.extensions.machine.site_values import given_values

    program = shutil.which(python or "python3")
    view = MachineView(
        python=str(Path(program).absolute()) if program else (python or "python3"),
        workspace=session.workspace.absolute(),
        host=AscendHost(ascend or DEFAULT_HOME, os.environ, shutil.which("npu-smi")),
    )
    with session.progress() as progress:
        report = examine(
            session.manifest,
            view,
            session.store,
            progress,
            topics=topics or tuple(Topic),
            given=given_values(settings or ()),
        )
    return session.report("check --only machine", report, _render)


def _render(terminal: Terminal, report: DoctorReport) -> None:
    from patchkit.cli.status_words import word
    from patchkit.cli.terminal import columns
    from patchkit.extensions.machine.compatibility import FINDINGS

    for topic in Topic:
        found = [diagnosis for diagnosis in report.diagnoses if diagnosis.topic is topic]
        if found:
            place = f"  of {report.python}" if topic is Topic.PACKAGES else ""
            terminal.product(f"{topic.value}{place}")
        for line, diagnosis in zip(columns(map(_row, found), indent=2), found, strict=True):
            terminal.product(line)
            for more in _more(diagnosis):
                terminal.product(f"      {more}")
    if not report.diagnoses:
        what = f"{report.manifest} asks for nothing that does not fit"
        terminal.product([word("ok"), f": {what}"])
        return
    wrong = sum(diagnosis.verdict in FINDINGS for diagnosis in report.diagnoses)
    unknown = sum(diagnosis.verdict == "uncertain" for diagnosis in report.diagnoses)
    looked = f"{len(report.diagnoses)} compared"
    terminal.product()
    verdict = word("failed", "wrong") if wrong else word("ok")
    terminal.product([verdict, f": {looked}, {wrong} wrong or missing, {unknown} uncertain"])
    if any(
        diagnosis.topic is Topic.VARIABLES and diagnosis.advice for diagnosis in report.diagnoses
    ):
        terminal.hint(
            "all variables at once: `. env.sh`, made by "
            f"`patchkit export --format machine -m {report.manifest} env`"
        )


def _row(diagnosis: Diagnosis) -> tuple[Line, ...]:
    from patchkit.cli.status_words import word

    # what is missing is a finding here
    shown = word("wrong", "missing") if diagnosis.verdict == "missing" else word(diagnosis.verdict)
    same = diagnosis.verdict == "ok" and diagnosis.found == diagnosis.wanted
    wanted = "" if same or not diagnosis.wanted else f" (wanted {diagnosis.wanted})"
    return (shown, diagnosis.name, diagnosis.found + wanted)


def _more(diagnosis: Diagnosis) -> list[str]:
    told = (diagnosis.where, f"do: {diagnosis.advice}" if diagnosis.advice else "")
    return [] if diagnosis.verdict == "ok" else [line for line in told if line]
