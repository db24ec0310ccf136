"""How check and drift are written in each form; loaded only where one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchkit.cli.format_options import Format, Writers
from patchkit.cli.session import moment
from patchkit.model.states import Level
from patchkit.report.ci_formats import annotation_lines, junit_document, sarif_document
from patchkit.report.findings import (
    Case,
    CaseVerdict,
    Notice,
    check_cases,
    check_notices,
    drift_cases,
    drift_notices,
)
from patchkit.report.json import envelope
from patchkit.report.markdown import check_markdown, drift_markdown

if TYPE_CHECKING:
    from patchkit.ops.check_report import CheckReport
    from patchkit.ops.ci import CiReport
    from patchkit.ops.drift import DriftReport


def check_writers(paths: Sequence[Path]) -> Writers[CheckReport]:
    """The forms of a check; `paths` are the manifests that were asked for."""

    def notices(report: CheckReport) -> list[Notice]:
        return list(check_notices(report, named_paths(paths)))

    return {
        Format.JSON: lambda report: envelope("check", report, report.exit_code),
        Format.JUNIT: lambda report: junit_document(check_cases(report), "patchkit check"),
        Format.SARIF: lambda report: sarif_document(notices(report)),
        Format.GITHUB: lambda report: "\n".join(annotation_lines(notices(report))),
        Format.MARKDOWN: lambda report: check_markdown(report, notices(report)),
        Format.HTML: lambda report: _pages().check_page(report, notices(report), written_now()),
    }


def drift_writers(paths: Sequence[Path]) -> Writers[DriftReport]:
    """The forms of a drift; `paths` are the manifests that were asked for."""

    def notices(report: DriftReport) -> list[Notice]:
        return list(drift_notices(report, named_paths(paths)))

    return {
        Format.JSON: lambda report: envelope("drift", report, report.exit_code),
        Format.JUNIT: lambda report: junit_document(drift_cases(report), "patchkit drift"),
        Format.SARIF: lambda report: sarif_document(notices(report)),
        Format.GITHUB: lambda report: "\n".join(annotation_lines(notices(report))),
        Format.MARKDOWN: drift_markdown,
        Format.HTML: lambda report: _pages().drift_page(report, notices(report), written_now()),
    }


def ci_writers(paths: Sequence[Path]) -> Writers[CiReport]:
    """The forms of both in one; `paths` are the manifests that were asked for.

    Where drift is allowed it fails no test, and is no error beside a line.
    """

    def notices(report: CiReport) -> list[Notice]:
        named = named_paths(paths)
        drifted = list(drift_notices(report.drift, named))
        if report.drift_allowed:
            lower = {Level.ERROR: Level.WARNING}
            drifted = [
                each
                if each.rule == "problem"
                else replace(each, level=lower.get(each.level, each.level))
                for each in drifted
            ]
        return [*check_notices(report.check, named), *drifted]

    def cases(report: CiReport) -> list[Case]:
        drifted = (replace(c, suite=f"{c.suite} drift") for c in drift_cases(report.drift))
        if report.drift_allowed:
            failed = CaseVerdict.FAILED
            drifted = (
                replace(c, verdict=CaseVerdict.SKIPPED, message=f"drift is allowed: {c.message}")
                if c.verdict is failed
                else c
                for c in drifted
            )
        return [*check_cases(report.check), *drifted]

    def markdown(report: CiReport) -> str:
        found = check_notices(report.check, named_paths(paths))
        return f"{check_markdown(report.check, found)}\n\n{drift_markdown(report.drift)}"

    return {
        Format.JSON: lambda report: envelope("ci", report, report.exit_code),
        Format.JUNIT: lambda report: junit_document(cases(report), "patchkit ci"),
        Format.SARIF: lambda report: sarif_document(notices(report)),
        Format.GITHUB: lambda report: "\n".join(annotation_lines(notices(report))),
        Format.MARKDOWN: markdown,
        Format.HTML: lambda report: _pages().ci_page(report, notices(report), written_now()),
    }


def _pages() -> ModuleType:
    """The module that makes pages; other forms need not wait for its templates to load."""
    from patchkit.report import html_page

    return html_page


def written_now() -> str:
    """When a page is written, for its foot."""
    return f"{moment():%Y-%m-%d %H:%M} UTC"


def named_paths(paths: Sequence[Path]) -> dict[str, str]:
    """Manifest name -> its path as a CI system knows it; none for one outside of this folder."""
    inside = [path for path in paths if not path.is_absolute() and ".." not in path.parts]
    return {path.stem: path.as_posix() for path in inside}
