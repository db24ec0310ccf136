"""How check and drift are written in each form; loaded only where one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchkit.cli.format_options import Format, Writers
from patchkit.cli.session import moment
from patchkit.report.ci_formats import annotation_lines, cases_of, junit_document, sarif_document
from patchkit.report.findings import (
    Outcome,
    check_outcomes,
    ci_outcomes,
    drift_outcomes,
    explained,
)
from patchkit.report.json import envelope
from patchkit.report.markdown import outcomes_markdown

if TYPE_CHECKING:
    from patchkit.ops.check_report import CheckReport
    from patchkit.ops.ci import CiReport
    from patchkit.ops.drift import DriftReport


def check_writers(paths: Sequence[Path]) -> Writers[CheckReport]:
    """The forms of a check; `paths` are the manifests that were asked for."""
    return _writers("check", check_outcomes, paths)


def drift_writers(paths: Sequence[Path]) -> Writers[DriftReport]:
    """The forms of a drift; `paths` are the manifests that were asked for."""
    return _writers("drift", drift_outcomes, paths)


def ci_writers(paths: Sequence[Path], command: str = "ci") -> Writers[CiReport]:
    """The forms of both in one; `paths` are the manifests that were asked for."""
    return _writers(command, ci_outcomes, paths)


def _writers(
    command: str, outcomes: Callable[[Any], Iterable[Outcome]], paths: Sequence[Path]
) -> Writers[Any]:
    named = named_paths(paths)
    name = f"patchkit {command}"

    def html(report: Any) -> str:
        # other forms need not wait for its templates to load
        from patchkit.report.html_page import report_page

        return report_page(name, report, outcomes(report), written_now())

    def github(report: Any) -> str:
        return "\n".join(annotation_lines(explained(outcomes(report)), named))

    return {
        Format.JSON: lambda report: envelope(command, report, report.exit_code),
        Format.JUNIT: lambda report: junit_document(cases_of(outcomes(report)), name),
        Format.SARIF: lambda report: sarif_document(explained(outcomes(report)), named),
        Format.GITHUB: github,
        Format.MARKDOWN: lambda report: outcomes_markdown(
            command, report.exit_code, outcomes(report)
        ),
        Format.HTML: html,
    }


def written_now() -> str:
    """When a page is written, for its foot."""
    return f"{moment():%Y-%m-%d %H:%M} UTC"


def named_paths(paths: Sequence[Path]) -> dict[str, str]:
    """Manifest name -> its path as a CI system knows it; none for one outside of this folder."""
    inside = [path for path in paths if not path.is_absolute() and ".." not in path.parts]
    return {path.stem: path.as_posix() for path in inside}
