"""A job matrix in the forms that GitHub and GitLab take."""

from __future__ import annotations

import json

from patchkit.ops.matrix import Job, MatrixReport

#: The job of GitLab's template whose results are joined.
CHECKING = ".patchkit"


def github_matrix(report: MatrixReport) -> str:
    """For `strategy: matrix: ${{ fromJSON(...) }}`, in one line, as job outputs have to be."""
    rows = [
        {
            "name": job.name,
            "manifest": job.manifest,
            "component": job.component,
            "options": job.options,
            "cache": job.cache,
            "cache-like": job.cache_like,
        }
        for job in report.jobs
    ]
    return json.dumps({"include": rows}, separators=(",", ":"))


def gitlab_pipeline(report: MatrixReport, include: str, extends: str) -> str:
    """A child pipeline: one job of the `include`d template, extended many times.

    After the jobs that check, the template's own job joins what they wrote.
    """
    where = "remote" if "://" in include else "local"
    lines = ["include:", f"  - {where}: {json.dumps(include)}", "patchkit:"]
    lines += [f"  extends: {json.dumps(extends)}", "  parallel:", "    matrix:"]
    lines += [row for job in report.jobs for row in _gitlab_rows(job)]
    if extends == CHECKING:
        lines += ["report:", f"  extends: {json.dumps(f'{CHECKING}-report')}"]
        lines += ["  needs: [patchkit]", "  when: always"]
    return "\n".join(lines)


def _gitlab_rows(job: Job) -> list[str]:
    values = {
        "PATCHKIT_JOB": job.name,
        "PATCHKIT_MANIFEST": job.manifest,
        "PATCHKIT_COMPONENT": job.component,
        "PATCHKIT_SELECTION": job.options,
        "PATCHKIT_CACHE_KEY": job.cache,
        "PATCHKIT_CACHE_LIKE": job.cache_like,
    }
    first, *rest = (f"{name}: {json.dumps(value)}" for name, value in values.items())
    return [f"      - {first}", *(f"        {each}" for each in rest)]
