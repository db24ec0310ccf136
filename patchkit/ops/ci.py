"""What a CI job asks: do the patches apply to their pins, and how long will they?"""

from __future__ import annotations

from msgspec import Struct

from patchkit.errors import ExitCode, worst
from patchkit.ops.check_report import CheckReport
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
