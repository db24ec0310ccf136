"""What a CI job asks: do the patches apply to their pins, and how long will they? And the results
of several jobs, joined into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from patchkit.errors import BadInputError, ExitCode, Problem, worst
from patchkit.ops.check_report import (
    BrokenManifest,
    CheckReport,
    ComponentCheck,
    SharedPatch,
    find_shared,
)
from patchkit.ops.drift import DriftReport


class CiReport(Struct, frozen=True):
    """A check and a drift of the same manifests.

    With `drift_allowed` what the tracked branches did is told, and fails nothing.
    """

    check: CheckReport
    drift: DriftReport
    drift_allowed: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """The worst of both."""
        drift = self.drift.exit_code
        if self.drift_allowed and drift is ExitCode.FINDING:
            drift = ExitCode.OK
        return worst([self.check.exit_code, drift])


# Joining the results of the jobs of a CI matrix: one report, one exit code, no job missing.


class Share(Struct, frozen=True):
    """One run's result, by the name of its file; a run that ended in an error has none."""

    name: str
    check: CheckReport | None = None
    drift: DriftReport | None = None
    drift_allowed: bool = False
    failed: BrokenManifest | None = None


def merge_reports(shares: Sequence[Share], expected: Iterable[str] = ()) -> CiReport:
    """One report of all shares; what is `expected` and in none of them is a problem of its own.

    `expected` are components as "MANIFEST: COMPONENT" (see matrix.Job).
    Drift fails nothing only where every share that looked for it says so. BadInputError for a
    component that two shares looked at.
    """
    checks = [share.check for share in shares if share.check is not None]
    drifts = [share.drift for share in shares if share.drift is not None]
    _require_once(shares)
    read = [share.check or share.drift for share in shares]
    # every job that could not read a manifest says the same of it
    broken = dict.fromkeys(each for found in read if found is not None for each in found.broken)
    failed = [share.failed for share in shares if share.failed is not None]
    missing = _missing(shares, expected)
    check = CheckReport(
        strict=any(each.strict for each in checks),
        components=(*(c for each in checks for c in each.components), *missing),
        shared=_shared(checks),
        broken=(*broken, *failed),
    )
    drift = DriftReport(
        components=tuple(c for each in drifts for c in each.components),
        unchanged=sum(each.unchanged for each in drifts),
    )
    allowed = [share.drift_allowed for share in shares if share.drift is not None]
    return CiReport(check, drift, bool(allowed) and all(allowed))


def _require_once(shares: Sequence[Share]) -> None:
    problems = []
    for kind in ("check", "drift"):
        seen: Counter[tuple[str, str]] = Counter()
        for share in shares:
            found = share.check if kind == "check" else share.drift
            for each in found.components if found is not None else ():
                key = (each.manifest, each.name)
                seen[key] += 1
                if seen[key] == 2:
                    what = f"{each.manifest}: {each.name} is in another file, too"
                    problems.append(Problem(what, share.name, "give each job's result once"))
    if problems:
        raise BadInputError(*problems)


def _shared(checks: Sequence[CheckReport]) -> tuple[SharedPatch, ...]:
    """The patches that are used at several pins, whichever job saw which use."""
    uses = [use for each in checks for shared in each.shared for use in shared.uses]
    return find_shared(uses)


def _missing(shares: Sequence[Share], expected: Iterable[str]) -> Iterator[ComponentCheck]:
    """What no share looked at: a job that died leaves no result, and must not pass for good."""
    read = [found for share in shares for found in (share.check, share.drift) if found is not None]
    seen = {f"{each.manifest}: {each.name}" for found in read for each in found.components}
    unread = {each.manifest for found in read for each in found.broken}
    for each in dict.fromkeys(expected):
        manifest, _, component = each.partition(": ")
        if each not in seen and manifest not in unread:
            hint = "its job did not come to an end: see its log"
            problem = Problem("no file has a result for it", each, hint)
            environment = ExitCode.ENVIRONMENT
            yield ComponentCheck(manifest, component, "", environment, problems=(problem,))
