"""A job matrix in the forms that GitHub and GitLab take."""

from __future__ import annotations

import json

from patchkit.ops.matrix import Job, MatrixReport


def github_matrix(report: MatrixReport) -> str:
    """For `strategy: matrix: ${{ fromJSON(...) }}`, in one line, as job outputs have to be."""
    rows = [
        {"name": job.name, "options": job.options, "cache": job.cache, "cache-like": job.cache_like}
        for job in report.jobs
    ]
    return json.dumps({"include": rows}, separators=(",", ":"))


def gitlab_pipeline(report: MatrixReport, include: str) -> str:
    """A child pipeline: one job that extends `.patchkit` of the `include`d template, many times."""
    where = "remote" if "://" in include else "local"
    lines = ["include:", f"  - {where}: {json.dumps(include)}", "patchkit:"]
    lines += ["  extends: .patchkit", "  parallel:", "    matrix:"]
    return "\n".join([*lines, *(row for job in report.jobs for row in _gitlab_rows(job))])


def _gitlab_rows(job: Job) -> list[str]:
    values = {
        "PATCHKIT_JOB": job.name,
        "PATCHKIT_SELECTION": job.options,
        "PATCHKIT_CACHE_KEY": job.cache,
        "PATCHKIT_CACHE_LIKE": job.cache_like,
    }
    first, *rest = (f"{name}: {json.dumps(value)}" for name, value in values.items())
    return [f"      - {first}", *(f"        {each}" for each in rest)]
