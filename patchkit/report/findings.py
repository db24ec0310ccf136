"""What a check or a drift came to, said once: an outcome for each patch, component and manifest,
with what was found. Whatever shows a report, in a terminal or as a file, is a writer of these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, Problem
from patchkit.explain.explanation import PatchExplanation, statements
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import short_id
from patchkit.model.outcome import Status
from patchkit.model.states import PATCH_STATES, state_of
from patchkit.model.text import counted
from patchkit.ops.check_report import COUNTED, BrokenManifest, ComponentCheck, PatchCheck

if TYPE_CHECKING:
    from patchkit.drift.drift_report import PatchDrift
    from patchkit.ops.check_report import CheckReport
    from patchkit.ops.ci import CiReport
    from patchkit.ops.drift import ComponentDrift, DriftReport

#: Names of outcomes that are no patch's.
COMPONENT, MANIFEST = "component", "manifest"


class Outcome(Struct, frozen=True):
    """What became of a patch, a component or a manifest, and what was found of it.

    `of` is "MANIFEST: COMPONENT", or the manifest; `state` a word of `model/states.py`, `words`
    say in a line what there is to know beyond it. `fails`: it is a reason for the exit code, unless
    there is an `excuse`. `explanation` is why the patch does not apply. `unreachable`: the network
    or git failed, so that nothing is known of it.
    """

    of: str
    name: str  # of the patch; COMPONENT, MANIFEST
    state: str
    words: str
    fails: bool = False
    findings: tuple[Finding, ...] = ()
    explanation: PatchExplanation | None = None
    excuse: str = ""
    unreachable: bool = False


#: Every rule that a report makes, with what it says in general.
RULES: Mapping[str, str] = {
    "does-not-apply": "A patch does not apply to its pin",
    "problem": "Something could not be examined",
    "broken-upstream": "A patch does not fit upstream any more",
    "absorbed-upstream": "Upstream has the whole patch already",
    "applies-perhaps-wrong": "A patch applies upstream, perhaps wrongly",
    "hunks-absorbed-upstream": "Upstream has some hunks of a patch already",
    "unseen": "Something that changes without a conflict could not be examined",
    "new-site-upstream": "Upstream has new code of the kind that patches take care of",
    "override-gone-upstream": "A function that another component replaces is gone upstream",
    "override-signature-upstream": "A function that another component replaces has other arguments",
    "override-body-upstream": "A function that another component replaces does something else",
    "contract-upstream": "Upstream broke a call between components",
}

#: What to do about those that say nothing of it themselves.
HELP: Mapping[str, str] = {
    "does-not-apply": "`patchkit check` shows the lines that were expected and found.",
    "broken-upstream": "`patchkit drift` shows the clash; `patchkit bump` carries what can be.",
    "absorbed-upstream": "`patchkit bump` takes the patch off the series when it moves the pin.",
    "applies-perhaps-wrong": "Read the function around the hunk as it is upstream now.",
    "hunks-absorbed-upstream": "`patchkit bump` leaves them out when it moves the pin.",
    "unseen": "`patchkit fetch` fetches what is missing.",
    "new-site-upstream": (
        "Cover it by a patch or a recipe, or accept it: `patchkit check --only sites`."
    ),
    "override-gone-upstream": (
        "`patchkit check --only overrides` lists all; the replacement does nothing then."
    ),
    "override-signature-upstream": (
        "`patchkit check --only overrides --diff` shows how it is called now."
    ),
    "override-body-upstream": "`patchkit check --only overrides --diff` shows what changed.",
}
#: Those that a patch's explanation belongs to.
CLASHES = ("does-not-apply", "broken-upstream")
#: So many findings of one commit are named, the rest is counted.
_NAMED = 8


def check_outcomes(report: CheckReport) -> Iterator[Outcome]:
    """The manifests that cannot be read; of each component its patches, then itself."""
    yield from map(_unread, report.broken)
    for component in report.components:
        of = f"{component.manifest}: {component.name}"
        for patch in component.patches:
            yield _checked(of, component, patch)
        state, words = component.verdict
        findings = (*_problems(component.problems), *_counted(component.findings))
        fails = any(each.severity is Severity.ERROR for each in findings)
        lost = component.exit_code is ExitCode.ENVIRONMENT
        yield Outcome(of, COMPONENT, state, words, fails, _of(of, findings), unreachable=lost)


def _checked(of: str, component: ComponentCheck, patch: PatchCheck) -> Outcome:
    words = {
        Status.CONFLICTED: "does not apply",
        Status.WAITING: f"waits for {', '.join(patch.outcome.waits_for)}",
    }.get(patch.status, "applies")
    findings = list(_counted(patch.findings))
    if patch.explanation is not None:
        files = patch.explanation.files
        line = next((each.hunks[0].line if each.hunks else each.line for each in files), 1)
        what = f"{patch.name} does not apply to {component.name} at {short_id(component.pin)}"
        where, hint = _patch_place(patch, line), "\n".join(patch.next_steps)
        lines = (patch.where,) if where == patch.listed else ()
        args = (Severity.ERROR, "does-not-apply", what, where, hint, lines)
        findings.insert(0, Finding(*args, about=patch.name))
    fails = any(each.severity is Severity.ERROR for each in findings)
    state = patch.status.value
    return Outcome(of, patch.name, state, words, fails, _of(of, findings), patch.explanation)


def drift_outcomes(report: DriftReport, excuse: str = "") -> Iterator[Outcome]:
    """What a drift came to, patch by patch; with an `excuse` what was found is no error."""
    yield from map(_unread, report.broken)
    for component in report.components:
        *patches, itself = component_drift(component)
        yield from (_excused(each, excuse) if excuse else each for each in patches)
        yield itself


def component_drift(component: ComponentDrift) -> Iterator[Outcome]:
    """Each patch, then the component itself."""
    of = f"{component.manifest}: {component.name}"
    for patch in component.patches:
        yield _drifted(of, component, patch)
    state, words = component.verdict
    if bad := sum(patch.needs_attention for patch in component.patches):
        words += f"; {bad} of {counted(len(component.patches), 'patch', 'patches')} to see to"
    findings = (*_problems(component.problems), *by_commit(component.findings))
    lost = component.exit_code is ExitCode.ENVIRONMENT
    fails = bool(component.problems)
    yield Outcome(of, COMPONENT, state, words, fails, _of(of, findings), unreachable=lost)


def _excused(outcome: Outcome, excuse: str) -> Outcome:
    lower = (
        replace(each, severity=Severity.WARNING) if each.severity is Severity.ERROR else each
        for each in outcome.findings
    )
    return replace(outcome, findings=tuple(lower), excuse=excuse)


def _drifted(of: str, component: ComponentDrift, patch: PatchDrift) -> Outcome:
    findings = [*_broken(component, patch), *_suspicions(patch)]
    findings = [replace(each, about=f"{patch.name}/{each.about}") for each in findings]
    fails = patch.needs_attention and patch.status is not Status.WAITING
    args = (of, patch.name, patch.status.value, patch.words, fails, _of(of, findings))
    return Outcome(*args, patch.explanation)


def _broken(component: ComponentDrift, patch: PatchDrift) -> Iterator[Finding]:
    where, forecast = _patch_place(patch, 1), patch.forecast
    carried = forecast.files if forecast is not None else ()
    to_see = tuple(f"{file.path}: {'; '.join(file.reasons)}" for file in carried if file.review)
    if patch.is_broken:
        faults = patch.intervals[-1].faults
        line = faults[0].line if faults else 1
        what = f"{patch.name} does not fit {component.ref}"
        severity = Severity(state_of(patch.status).level.value)
        lines = tuple(_broken_lines(patch))
        place = _patch_place(patch, line)
        yield Finding(severity, "broken-upstream", what, place, lines=lines, by=patch.since)
    elif patch.status is Status.ABSORBED:
        by = () if patch.absorbed_by is None else (f"by {patch.absorbed_by}",)
        what = f"{patch.name} is {forecast.perhaps if forecast is not None else ''}upstream"
        yield Finding(Severity.WARNING, "absorbed-upstream", what, where, lines=(*by, *to_see))
    elif to_see:
        what = f"{patch.name} applies to {component.ref}, perhaps wrongly"
        yield Finding(Severity.WARNING, "applies-perhaps-wrong", what, where, lines=to_see)


def _broken_lines(patch: PatchDrift) -> Iterator[str]:
    after = "" if patch.days is None else f", {counted(patch.days, 'day')} after the pin"
    if patch.since is None:
        yield "since the start of the branch"
    if patch.stopped_earlier:
        yield f"it stopped applying by {patch.broken_by}{after}"
    if patch.last_good is not None:
        yield f"last good: {patch.last_good}"
    for each in patch.breaks:
        if each.mended is not None:
            yield f"broken before by {each.by or 'the start of the branch'}"
            yield f"{'reverted' if each.reverted else 'mended'} by {each.mended}"
    if patch.forecast is not None:
        yield f"a bump {patch.forecast.words}"


def _suspicions(patch: PatchDrift) -> Iterator[Finding]:
    for each in patch.suspicions:
        what = f"{patch.name} applies, perhaps wrongly: {each.what}"
        about = f"{each.path}/{each.hunk}/{each.kind}"
        lines = (f"patch line {each.line} ({each.path})",)
        place, code = _patch_place(patch, each.line), "applies-perhaps-wrong"
        yield Finding(Severity.WARNING, code, what, place, "", lines, each.by, about)


def ci_outcomes(report: CiReport) -> Iterator[Outcome]:
    """Those of a check, then those of a drift: where that is allowed it fails nothing."""
    yield from check_outcomes(report.check)
    excuse = "drift is allowed" if report.drift_allowed else ""
    for each in drift_outcomes(report.drift, excuse):
        yield replace(each, of=f"{each.of} drift")


def summary(outcomes: Iterable[Outcome]) -> str:
    """What became of all, in a line."""
    listed = list(outcomes)
    whole = [each for each in listed if each.name == COMPONENT]
    states = Counter(each.state for each in listed if each.name not in (COMPONENT, MANIFEST))
    lost = sum(any(f.code == "problem" for f in each.findings) for each in whole)
    parts = [counted(len(whole), "component"), counted(states.total(), "patch", "patches")]
    ranked = [each for each in reversed(PATCH_STATES) if each.effort and states[each.word]]
    parts += [f"{states[each.word]} {each.word}" for each in ranked]
    parts += [f"{lost} not examined"] if lost else []
    return ", ".join(parts)


def by_commit(findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all of a kind that one upstream commit brought about."""
    ranked = sorted(findings, key=lambda each: each.cause if each.by is not None else each.code)
    for _, group in groupby(ranked, key=lambda each: (each.code, each.by)):
        first, *more = group
        if not more:
            yield first
            continue
        lines = [str(each) for each in (first, *more)[:_NAMED]]
        lines += [f"and {len(more) + 1 - _NAMED} more"] if len(more) >= _NAMED else []
        what = f"{RULES.get(first.code, first.code)}: {len(more) + 1} places"
        yield replace(first, what=what, where="", lines=tuple(lines), about=first.code)


def explained(outcomes: Iterable[Outcome]) -> list[Finding]:
    """All that was found, gravest first; with why a patch does not apply."""
    findings = [
        replace(
            finding,
            lines=(*finding.lines, *(each.text for each in statements(outcome.explanation))),
        )
        if outcome.explanation is not None and finding.code in CLASHES
        else finding
        for outcome in outcomes
        for finding in outcome.findings
    ]
    return sorted(findings, key=lambda each: list(Severity).index(each.severity))


def _unread(broken: BrokenManifest) -> Outcome:
    what = broken.problems[0].what if broken.problems else ""
    found = _of(broken.manifest, _problems(broken.problems))
    lost = broken.exit_code is ExitCode.ENVIRONMENT
    return Outcome(broken.manifest, MANIFEST, "failed", what, True, found, unreachable=lost)


def _problems(problems: Iterable[Problem]) -> Iterator[Finding]:
    for each in problems:
        yield Finding(Severity.ERROR, "problem", each.what, each.where, each.hint)


def _counted(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Those that every report counts and shows."""
    return (each for each in findings if each.severity in COUNTED)


def _of(of: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(each, of=of) for each in findings)


# Where a finding is shown: at a line of the project's files.


#: Manifest name -> its path, relative to where the project's files are.
Paths = Mapping[str, str]

_PLACE = re.compile(r"(?P<path>[^:\n]+):(?P<line>\d+)(?::\d+)?")
_OWN_FILE = re.compile(r"[^:\0\n]+\.(patch|yml|yaml|json)")


def _patch_place(patch: PatchCheck | PatchDrift, line: int) -> str:
    """A line of the patch's file, or the manifest's that names one of another repository."""
    return f"{patch.where}:{line}" if _OWN_FILE.fullmatch(patch.where) else patch.listed


def place_of(finding: Finding, paths: Paths) -> tuple[str, int]:
    """The file and line; those of the manifest for what is in no file of the project."""
    manifest = paths.get(finding.of.partition(": ")[0], "")
    place = _PLACE.fullmatch(finding.where)
    if place is None:
        return finding.where if _OWN_FILE.fullmatch(finding.where) else manifest, 1
    path, line = place["path"], int(place["line"])
    if path.rpartition("/")[2] == manifest.rpartition("/")[2]:
        return manifest, line
    return (manifest, 1) if path.startswith("/") else (path, line)


def find_causes(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """What was found, by what is to be mended, in the order in which that is first found.

    The keys stay the same for as long as the cause does, whatever lines or tips move.
    """
    groups: dict[str, list[Finding]] = {}
    for each in findings:
        digest = sha256(each.cause.encode("utf-8", "surrogateescape")).hexdigest()
        groups.setdefault(f"pk-{digest[:12]}", []).append(each)
    return groups
