"""`patchkit matrix`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import ComponentsOption, JsonOption, ManifestsOption, QuietOption
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from patchkit.ops.matrix import MatrixReport

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
    typer.Option("--jobs", metavar="N", help="So many jobs at most: else manifests share one."),
]
IncludeOption = Annotated[
    str,
    typer.Option(
        "--include",
        metavar="FILE",
        help="The template that GitLab's jobs extend: a path in the repository, or a URL.",
    ),
]

ExtendsOption = Annotated[
    str,
    typer.Option("--extends", metavar="JOB", help="Which of the template's jobs they extend."),
]
TrackingOption = Annotated[
    bool, typer.Option("--tracking", help="Only components that track a branch.")
]


@command(
    examples=[
        ("patchkit matrix", "which jobs there would be"),
        ('echo "jobs=$(patchkit matrix --format github)" >> "$GITHUB_OUTPUT"', "on GitHub"),
        ("patchkit matrix --format gitlab --include ci/gitlab.yml > jobs.yml", "on GitLab"),
        ("patchkit matrix --tracking --format github", "what `patchkit bump` can move"),
        ("patchkit matrix --json > jobs.json", "for `patchkit report merge --expect jobs.json`"),
    ],
    exits={
        ExitCode.OK: "printed",
        ExitCode.BAD_INPUT: "a manifest cannot be read: no job would look at it",
    },
    result="patchkit.ops.matrix:MatrixReport",
)
def matrix(
    *,
    manifest: ManifestsOption = None,
    component: ComponentsOption = None,
    form: FormOption = MatrixForm.TEXT,
    jobs: MostOption = _MOST,
    include: IncludeOption = "ci/gitlab.yml",
    extends: ExtendsOption = ".patchkit",
    tracking: TrackingOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Print the jobs of a CI matrix: manifests by components.

    Each has options for `patchkit ci` and a key for its cache, so that the runners of a CI system
    are the cluster; `patchkit report merge` joins their results. Nothing is fetched.
    """
    from patchkit.cli.locate import all_manifest_paths, open_manifests
    from patchkit.ops.matrix import plan_jobs

    terminal = Terminal(quiet=quiet, json=json)
    if jobs < 1:
        raise UsageError("--jobs must be 1 or more")
    chosen, broken = open_manifests(all_manifest_paths(manifest), component)
    if tracking:
        chosen = [(m, tuple(c for c in each if c.track is not None)) for m, each in chosen]
    report = plan_jobs(chosen, broken, folder=Path.cwd(), most=jobs, only=component or ())
    for problem in (each for one in report.broken for each in one.problems):
        terminal.problem(problem)
    if json or form is MatrixForm.TEXT:
        return terminal.report("matrix", report, report.exit_code, _render)
    from patchkit.report.ci_matrix import github_matrix, gitlab_pipeline

    is_github = form is MatrixForm.GITHUB
    terminal.document(
        github_matrix(report) if is_github else gitlab_pipeline(report, include, extends)
    )
    return report.exit_code


def _render(terminal: Terminal, report: MatrixReport) -> None:
    terminal.folded([(job.name, job.options) for job in report.jobs])
