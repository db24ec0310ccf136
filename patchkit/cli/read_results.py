"""Results of other runs, read from the files that they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchkit.disk.files import LARGEST_PATCH, read_plain
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem
from patchkit.ops.check_report import BrokenManifest, CheckReport
from patchkit.ops.ci import CiReport, Share
from patchkit.ops.drift import DriftReport
from patchkit.ops.matrix import MatrixReport
from patchkit.report.json import exit_code_of, read_envelope, read_result


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


def read_expected(path: Path) -> Sequence[str]:
    """The components that the jobs of a matrix look at."""
    command, found = read_envelope(_bytes(path), str(path))
    if command != "matrix":
        hint = "give what `patchkit matrix --json` printed"
        raise BadInputError(Problem("is no matrix", str(path), hint))
    report = read_result(MatrixReport, found, str(path))
    return [each for job in report.jobs for each in job.looks_at]


def _share(path: Path) -> Share:
    name = str(path)
    command, found = read_envelope(_bytes(path), name)
    match command:
        case "ci" | "report-merge":
            report = read_result(CiReport, found, name)
            return Share(name, report.check, report.drift, report.drift_allowed)
        case "check":
            return Share(name, check=read_result(CheckReport, found, name))
        case "drift":
            return Share(name, drift=read_result(DriftReport, found, name))
        case "error":
            return Share(name, failed=_failed(path, found))
    hint = "merge what `patchkit ci`, `check` or `drift` wrote"
    raise BadInputError(Problem(f"is a result of `patchkit {command}`", name, hint))


def _failed(path: Path, found: Mapping[str, Any]) -> BrokenManifest:
    """What a run that ended in an error says: it looked at nothing."""
    code = exit_code_of(found, str(path))
    problems = read_result(tuple[Problem, ...], found.get("problems"), str(path))
    return BrokenManifest(path.stem, ExitCode(code), problems)


def _bytes(path: Path) -> bytes:
    try:
        return read_plain(path, most=LARGEST_PATCH)
    except OSError as error:
        raise BadInputError(Problem(str(error.strerror), str(path))) from error
