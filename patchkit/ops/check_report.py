"""What a check finds, as values; `patchkit check --json` prints them."""

from __future__ import annotations

from msgspec import Struct

from patchkit.errors import ExitCode, Problem, worst
from patchkit.explain.values import Origin, PatchExplanation
from patchkit.model.lint import Finding
from patchkit.model.outcome import PatchOutcome, Status
from patchkit.ops.sharing import SharedPatch


class PatchCheck(Struct, frozen=True):
    """One patch: `where` its file is, what became of it, and why if it does not apply.

    `origin` says for which base it was made, where that is another one; `next_steps` what to do if
    it does not apply, the best first; `findings` are lint's. `listed` is the manifest's line that
    names a patch of another repository, "" for one of the project's own.
    """

    name: str
    where: str
    outcome: PatchOutcome
    origin: Origin | None = None
    explanation: PatchExplanation | None = None
    next_steps: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    listed: str = ""

    @property
    def status(self) -> Status:
        """The verdict."""
        return self.outcome.status


class ComponentCheck(Struct, frozen=True):
    """One component of one manifest.

    `pin` is the manifest's, `base` the commit that it is; `tree` is what the stack comes to, None
    if it does not. `findings` are those on the component as a whole, `problems` what kept it from
    being checked.
    """

    manifest: str
    name: str
    pin: str
    exit_code: ExitCode
    base: str | None = None
    tree: str | None = None
    patches: tuple[PatchCheck, ...] = ()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The component's findings and those of its patches."""
        return (*self.findings, *(f for patch in self.patches for f in patch.findings))


class BrokenManifest(Struct, frozen=True):
    """A manifest that could not be read, and all that is wrong with it."""

    manifest: str
    exit_code: ExitCode
    problems: tuple[Problem, ...]


class CheckReport(Struct, frozen=True):
    """Every component of every manifest, and the patches that several of them share.

    `strict`: whether warnings and style count as findings.
    """

    strict: bool
    components: tuple[ComponentCheck, ...]
    shared: tuple[SharedPatch, ...]
    broken: tuple[BrokenManifest, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all."""
        codes = [each.exit_code for each in self.components]
        return worst([*codes, *(each.exit_code for each in self.broken)])
