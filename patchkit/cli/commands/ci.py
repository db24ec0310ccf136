"""`patchkit ci` and its forms: checks in CI, in one job or in many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patchkit.cli.command import JOBS, DryRunOption, JobsOption, StrictOption, command
from patchkit.cli.format_options import (
    Format,
    FormatOption,
    OutputOption,
    deliver,
    wanted,
    write_text,
)
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.disk.files import LARGEST_PATCH, read_given, read_plain
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, UsageError
from patchkit.ops.check_report import BrokenManifest, CheckReport, ComponentCheck
from patchkit.ops.ci import CiReport, MatrixReport, Share
from patchkit.ops.drift import DriftReport
from patchkit.report.json import read_envelope, read_result

if TYPE_CHECKING:
    from patchkit.report.markdown import IssuesReport


AllowDriftOption = Annotated[
    bool,
    typer.Option("--allow-drift", help="Report drift, but do not fail because of it."),
]


@command(
    "manifests components workspace store json quiet",
    examples={
        "patchkit ci --format github": "annotations for every manifest",
        "patchkit ci --allow-drift --strict": "a pull request: drift is no fault of it",
        "patchkit ci --format sarif -o patchkit.sarif": "for a code scanning page",
    },
    ok="every patch applies to its pin and to its tracked branch",
    finding="a patch does not, or the lock says otherwise",
    bad_input="a manifest, series, lock or patch cannot be read",
    environment="an upstream could not be fetched",
    result="patchkit.ops.ci:CiReport",
)
def ci(
    session: Session,
    *,
    strict: StrictOption = False,
    allow_drift: AllowDriftOption = False,
    jobs: JobsOption = JOBS,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> ExitCode:
    """Check and look for drift, with one exit code and one report.

    What `patchkit check` and `patchkit drift` say, in one go. Components that track no branch are
    checked only.
    """
    from patchkit.cli.commands.check import print_check
    from patchkit.cli.commands.drift import drifts_shown
    from patchkit.ops.check import check_manifests
    from patchkit.ops.ci import check_and_drift
    from patchkit.ops.drift import look_for_drift

    asked = wanted(form, output, json=session.terminal.json)
    chosen, broken = session.open_manifests()
    tracking = [(of, [one for one in some if one.track is not None]) for of, some in chosen]
    shown = asked.form is Format.TEXT and any(some for _, some in tracking)
    guarded = [f"{of.name}: {one.name}" for of, some in chosen for one in some if one.more]
    with (
        session.answers(guarded, _print_applies, shown=shown) as rows,
        drifts_shown(session, tracking, shown=shown) as drifts,
        session.progress() as progress,
    ):

        def checked(check: CheckReport) -> None:
            if drifts.shown:
                with session.terminal.above_bars():
                    print_check(session.terminal, check)
                    session.terminal.product()
                    session.terminal.flush()

        about = (session.store, progress)
        check = partial(
            check_manifests,
            chosen,
            *about,
            strict=strict,
            jobs=jobs,
            broken=broken,
            workspace=session.workspace,
            known=rows,
        )
        look = partial(look_for_drift, tracking, *about, every_commit=asked.form is Format.HTML)
        report = check_and_drift(
            check, look, drift_allowed=allow_drift, checked=checked, drifted=drifts
        )
    show = partial(print_ci, shown=drifts.shown)
    return deliver(session.terminal, "ci", report, asked, show, paths=session.manifest_paths)


def _print_applies(terminal: Terminal, check: ComponentCheck) -> None:
    """What is known of the patches, where the manifest says what else is to be looked at."""
    terminal.product(f"{check.manifest}: {check.name}  {check.verdict[1]}; looking at the rest")


def print_ci(
    terminal: Terminal, report: CiReport, brief: bool = False, *, shown: bool = False
) -> None:
    """What both say; in `brief` their problems and summaries.

    `shown`: the check, and what was found of each component, were printed when they were known.
    """
    from patchkit.cli.commands.check import print_check
    from patchkit.cli.commands.drift import print_drift

    if not shown:
        print_check(terminal, report.check, brief)
    if report.drift.components:
        if not (brief or shown):
            terminal.product()
        print_drift(terminal, report.drift, brief, allowed=report.drift_allowed, shown=shown)


# Results of other runs, read from the files that they wrote.


def read_shares(files: Iterable[Path]) -> tuple[Share, ...]:
    """The result in each file; BadInputError with all files that hold none."""
    shares: list[Share] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(files):
        try:
            shares.append(_share(path))
        except PatchkitError as error:
            problems += error.problems
    if problems:
        raise BadInputError(*problems)
    return tuple(shares)


def _share(path: Path) -> Share:
    name = str(path)
    command, found = read_envelope(read_given(path), name)
    match command:
        case "ci":
            report = read_result(CiReport, found, name)
            return Share(name, report.check, report.drift, report.drift_allowed)
        case "check":
            return Share(name, check=read_result(CheckReport, found, name))
        case "drift":
            return Share(name, drift=read_result(DriftReport, found, name))
        case "ci-matrix":
            jobs = read_result(MatrixReport, found, name).jobs
            return Share(name, expected=tuple(part for job in jobs for part in job.looks_at))
        case "error":
            return Share(name, failed=_failed(path, found))
    hint = "merge what `patchkit ci`, `check` or `drift` wrote"
    raise BadInputError(Problem(f"is a result of `patchkit {command}`", name, hint))


def _failed(path: Path, found: Mapping[str, Any]) -> BrokenManifest:
    """What a run that ended in an error says: it looked at nothing."""
    code = read_result(ExitCode, found.get("exit_code"), str(path))
    problems = read_result(tuple[Problem, ...], found.get("problems"), str(path))
    return BrokenManifest(path.stem, code, problems)


#: Both GitHub (256) and GitLab (200) take so many.
_MOST = 200


class MatrixForm(str, Enum):
    """Who reads the matrix."""

    TEXT = "text"
    GITHUB = "github"
    GITLAB = "gitlab"


FormOption = Annotated[
    MatrixForm,
    typer.Option(
        "--format",
        metavar="FORM",
        help="What to write: text, github (one line of JSON for a job's output), gitlab (a child "
        "pipeline).",
    ),
]
MostOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        metavar="N",
        help="At most N jobs: some share one, if need be.",
    ),
]
IncludeOption = Annotated[
    str,
    typer.Option(
        "--include",
        metavar="FILE",
        help="The template that GitLab's jobs extend: a path in the repository, or a URL.",
    ),
]


class JobsOf(str, Enum):
    """The command that the jobs of a matrix run."""

    CI = "ci"
    BUMP = "bump"


JobsOfOption = Annotated[
    JobsOf,
    typer.Option(
        "--only",
        metavar="COMMAND",
        help="What the jobs run: ci; bump, where only components that track a branch have one, and "
        "GitLab's extend .patchkit-bump in place of .patchkit.",
    ),
]


@command(
    "manifests components json quiet",
    examples={
        "patchkit ci --matrix": "which jobs there would be",
        'echo "jobs=$(patchkit ci --matrix --format github)" >> "$GITHUB_OUTPUT"': "on GitHub",
        "patchkit ci --matrix --format gitlab --include ci/gitlab.yml > jobs.yml": "on GitLab",
        "patchkit ci --matrix --only bump --format github": "what `patchkit bump` can move",
        "patchkit ci --matrix --json > jobs.json": "for `ci --merge`",
    },
    ok="printed",
    bad_input="a manifest cannot be read: no job would look at it",
    result="patchkit.ops.ci:MatrixReport",
)
def matrix(
    session: Session,
    *,
    form: FormOption = MatrixForm.TEXT,
    jobs: MostOption = _MOST,
    include: IncludeOption = "ci/gitlab.yml",
    only: JobsOfOption = JobsOf.CI,
) -> ExitCode:
    """Print the jobs of a CI matrix: manifests by components.

    Each has options for `patchkit ci` and a key for its cache, so that the runners of a CI system
    are the cluster; `patchkit ci --merge` joins their results. Nothing is fetched.
    """
    from patchkit.ops.ci import plan_jobs

    if jobs < 1:
        raise UsageError("--jobs must be 1 or more")
    chosen, broken = session.open_manifests()
    if only is JobsOf.BUMP:
        chosen = [(m, tuple(c for c in each if c.track is not None)) for m, each in chosen]
    report = plan_jobs(
        chosen,
        broken,
        folder=Path.cwd(),
        most=jobs,
        only=session.names,
        pins_apart=only is JobsOf.BUMP,
    )
    session.terminal.problems([problem for one in report.broken for problem in one.problems])
    if session.terminal.json or form is MatrixForm.TEXT:
        return session.report("ci --matrix", report, _render_jobs)
    from patchkit.report.ci_formats import github_matrix, gitlab_pipeline

    extends = ".patchkit-bump" if only is JobsOf.BUMP else ".patchkit"
    is_github = form is MatrixForm.GITHUB
    session.terminal.document(
        github_matrix(report) if is_github else gitlab_pipeline(report, include, extends)
    )
    return report.exit_code


def _render_jobs(terminal: Terminal, report: MatrixReport) -> None:
    terminal.table([(job.name, job.options) for job in report.jobs])


FilesArgument = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Results: what ci, check or drift wrote as JSON."),
]


@command(
    "json quiet",
    examples={
        "patchkit ci --merge results/*.json": "one report, one exit code",
        "patchkit ci --merge jobs.json results/*.json": "and no job may be missing",
        "patchkit ci --merge results/*.json --format html -o report.html": "as a page",
    },
    ok="every result is good",
    finding="one of them has a finding",
    bad_input="a file is not a patchkit result, or a result is an error of this kind",
    environment="a result is missing, or is an error of this kind",
    result="patchkit.ops.ci:CiReport",
)
def merge(
    session: Session,
    *,
    files: FilesArgument,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> ExitCode:
    """Merge the results of several jobs into one report.

    The jobs are those of `patchkit ci --matrix`, and write `patchkit ci -o FILE.json`. The report
    is what one `patchkit ci` over all would have written, in any form, with its exit code. Where
    what `patchkit ci --matrix --json` printed is among the files, no component of it may be without
    a result.
    """
    from patchkit.ops.ci import merge_reports

    asked = wanted(form, output, json=session.terminal.json)
    report = merge_reports(read_shares(files))
    return deliver(session.terminal, "ci", report, asked, print_ci, paths=_shipped())


def _shipped() -> Sequence[Path]:
    """The manifests of this folder's project, whose results were joined."""
    from patchkit.manifest.find import FOLDER, manifests_in

    folder = Path(FOLDER)
    return manifests_in(folder) if folder.is_dir() else ()


IntoOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="DIR", help="The folder of the issues, a file for each."
    ),
]


@command(
    "json quiet",
    examples={
        "patchkit ci --issues drift.json -o issues": "one text for each open cause",
        "patchkit ci --issues results/*.json -o issues --dry-run": "what would change",
        "patchkit ci --issues drift.json -o issues --json": "for a script that posts them",
    },
    ok="the folder says what is open, whatever that is",
    bad_input="a file is not a patchkit result, or not an issue that it wrote",
    environment="the folder cannot be written",
    result="patchkit.report.markdown:IssuesReport",
)
def issues(
    session: Session, *, files: FilesArgument, into: IntoOption, dry_run: DryRunOption = False
) -> ExitCode:
    """Write a text for each open cause; close what is fixed.

    A folder holds them. What one upstream commit broke, in however many patches and manifests, is
    one cause. Its id stays, so that a script can post each text once with a forge's command line,
    update it, and close it (docs/howto/watch-for-drift.md). A cause is closed only where the
    results looked at all that it is about; what failed for want of the network opens and closes
    nothing.
    """
    from patchkit.ops.ci import merge_reports
    from patchkit.report.findings import check_outcomes, drift_outcomes
    from patchkit.report.markdown import IssuesReport, is_issue_file, plan_issues

    report = merge_reports(read_shares(files))
    there = sorted(into.iterdir()) if into.is_dir() else []
    known = {path.name: _issue_text(path) for path in there if is_issue_file(path.name)}
    looks = {"check": check_outcomes(report.check), "drift": drift_outcomes(report.drift)}
    planned = plan_issues(looks, known)
    for each in planned:
        name = f"{each.issue.id}.md"
        if not dry_run and known.get(name) != each.text:
            write_text(into / name, each.text)
    result = IssuesReport(tuple(each.issue for each in planned))
    return session.report("ci --issues", result, _render_issues)


def _issue_text(path: Path) -> str:
    try:
        return read_plain(path, most=LARGEST_PATCH).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(Problem("cannot be read as an issue", str(path))) from error


def _render_issues(terminal: Terminal, report: IssuesReport) -> None:
    from patchkit.report.markdown import IssueChange, count_words

    changed = [each for each in report.issues if each.change is not IssueChange.UNCHANGED]
    terminal.table([(each.change.value, each.id, each.title) for each in changed])
    terminal.product(count_words(report.issues))
