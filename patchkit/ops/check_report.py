"""What a check finds, as values; `patchkit check --json` prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, OfComponents, Problem
from patchkit.explain.explanation import Origin, PatchExplanation
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.text import counted
from patchkit.ops.version_matrix import VersionMatrix

#: Manifests, each with those of its components that were asked for.
Chosen: TypeAlias = Sequence[tuple[Manifest, Sequence[Component]]]


class PatchCheck(Struct, frozen=True):
    """One patch: `where` its file is, what became of it, and why if it does not apply.

    `origin` says which files it was made for, where it applies on others, by its own lines alone;
    `next_steps` what to do if it does not apply, the best first; `findings` are lint's. `listed` is
    the manifest's line that names a patch of another repository, "" for one of the project's own.
    """

    name: str
    where: str
    outcome: PatchResult  # what became of it
    origin: Origin | None = None
    explanation: PatchExplanation | None = None  # None if it applies
    next_steps: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    listed: str = ""

    @property
    def status(self) -> Status:
        """The verdict."""
        return self.outcome.status


#: What reports count, worst first.
COUNTED = (Severity.ERROR, Severity.WARNING)


class ComponentCheck(Struct, frozen=True):
    """One component of one manifest.

    `pin` is the manifest's, `base` the commit that it is; `tree` is what the stack comes to, None
    if it does not. `findings` are those on the component as a whole, `problems` what kept it, or
    patches that are not in `patches`, from being checked.
    """

    manifest: str
    name: str  # in the manifest
    pin: str
    exit_code: ExitCode
    base: CommitId | None = None
    tree: TreeId | None = None
    patches: tuple[PatchCheck, ...] = ()  # in the order of the series
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The component's findings and those of its patches."""
        return (*self.findings, *(f for patch in self.patches for f in patch.findings))

    @property
    def counted(self) -> tuple[Finding, ...]:
        """Those that every report counts and shows: errors and warnings."""
        return tuple(each for each in self.all_findings if each.severity in COUNTED)

    @property
    def counts(self) -> tuple[str, ...]:
        """How many count, in words: "1 error", "2 warnings"; none for none."""
        numbers = Counter(each.severity.value for each in self.counted)
        return tuple(counted(number, word) for word, number in sorted(numbers.items()))

    @property
    def verdict(self) -> tuple[str, str]:
        """The state of the component, and what there is to say of it in a line."""
        if self.problems:
            whole = " as a whole" if self.patches else ""
            return "failed", f"could not be checked{whole}, see below"
        states = [patch.status for patch in self.patches]
        failed = [patch.name for patch in self.patches if patch.status is Status.CONFLICTED]
        if failed:
            waiting = states.count(Status.WAITING)
            what = f"{failed[0]} does not apply"
            if len(failed) > 1:
                what = f"{len(failed)} patches do not apply"
            return "conflicted", what + (f", {waiting} waiting" if waiting else "")
        codes = Counter(finding.code for finding in self.findings)
        left, shifted = codes["verify-not-run"], states.count(Status.SHIFTED)
        notes = [
            *(["the lock differs"] if codes["lock"] else []),
            counted(len(states), "patch applies", "patches apply") if states else "no patches",
            *([f"{shifted} at an offset"] if shifted else []),
            *self.counts,
            *(["a conflict waits in its checkout"] if codes["waiting"] else []),
            *([f"{counted(left, 'command', 'commands')} not run"] if left else []),
        ]
        severities = [finding.severity for finding in self.counted]
        worst = min(severities, key=list(Severity).index, default=None)
        return worst.value if worst is not None else "ok", ", ".join(notes)


def taken_strictly(check: ComponentCheck) -> ComponentCheck:
    """The check with its warnings, and what is style, as errors."""
    patches = (replace(each, findings=_as_errors(each.findings)) for each in check.patches)
    return replace(check, findings=_as_errors(check.findings), patches=tuple(patches))


def _as_errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(
        each if each.severity is Severity.NOTE else replace(each, severity=Severity.ERROR)
        for each in findings
    )


class BrokenManifest(Struct, frozen=True):
    """A manifest that could not be read, and all that is wrong with it."""

    manifest: str
    exit_code: ExitCode
    problems: tuple[Problem, ...]


class CheckReport(OfComponents, Struct, frozen=True):
    """Every component of every manifest.

    `strict`: whether warnings and style were made errors.
    """

    strict: bool
    components: tuple[ComponentCheck, ...]
    broken: tuple[BrokenManifest, ...]  # manifests that could not be read
    retired: tuple[Problem, ...] = ()  # manifests that say so of themselves
    versions: tuple[VersionMatrix, ...] = ()  # components that were looked at at several pins
