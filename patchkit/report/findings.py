"""What a check or a drift found, in the terms that CI systems share: notices and cases.

A *notice* is one thing at one place, for people who read a diff or a security page; a *case* is one
patch that passed or failed, for those who read test results. The writers beside this module only
know these two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.drift_report import BrokenContract, HunkFault, MovedTarget, NewSite, PatchDrift
from patchkit.errors import Problem
from patchkit.explain.explanation import PatchExplanation
from patchkit.guards.overrides import TargetVerdict
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.names import short_id
from patchkit.model.outcome import Clash, Status
from patchkit.model.states import Level, state_of
from patchkit.model.text import counted
from patchkit.ops.check_report import CheckReport, ComponentCheck, PatchCheck
from patchkit.ops.drift import ComponentDrift, DriftReport, needs_attention

# What reports are made of: notices for places, cases for patches.


class Notice(Struct, frozen=True):
    """One thing that was found; `rule` is a stable word, `path` a file of the project ("": none).

    `subject` names what it is about in a way that stays the same from run to run. What one upstream
    commit did to several patches or components has one `cause`, and `by` in words who it was; both
    are "" where the subject alone is the cause. `of` is "MANIFEST: COMPONENT", or the manifest.
    """

    level: Level
    rule: str
    title: str  # in a few words
    message: str  # in full, one paragraph
    subject: str
    path: str = ""
    line: int = 1  # from 1; 0 for the file as a whole
    of: str = ""
    cause: str = ""
    by: str = ""


class RootCause(Struct, frozen=True):
    """One thing that went wrong, with everything that was found of it; the gravest is first.

    `id` stays the same for as long as the cause does, whatever lines or tips move.
    """

    id: str
    rule: str  # of its gravest notice
    level: Level
    title: str  # of its gravest notice
    of: tuple[str, ...]
    notices: tuple[Notice, ...]


def find_causes(notices: Iterable[Notice]) -> list[RootCause]:
    """One cause for each thing that is to be mended, in the order in which they are first found."""
    groups: dict[str, list[Notice]] = {}
    for each in notices:
        groups.setdefault(f"{each.rule}\0{each.cause or each.subject}", []).append(each)
    return [_cause(key, found) for key, found in groups.items()]


def _cause(key: str, notices: list[Notice]) -> RootCause:
    notices.sort(key=lambda each: list(Level).index(each.level))  # stable
    first = notices[0]
    of = tuple(dict.fromkeys(each.of for each in notices if each.of))
    title = first.title
    if first.rule not in RULES and first.path:  # its title does not name the file
        title = f"{PurePosixPath(first.path).name}: {title}"
    if len(notices) > 1 and first.by:
        title = f"{first.by}: {counted(len(notices), 'finding')} in {', '.join(of)}"
    digest = sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    return RootCause(f"pk-{digest[:12]}", first.rule, first.level, title, of, tuple(notices))


class CaseVerdict(str, Enum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


class Case(Struct, frozen=True):
    """One patch, or a component as a whole, below its `suite`."""

    suite: str
    name: str  # of the patch or component
    verdict: CaseVerdict  # passed, failed, error or skipped
    message: str = ""  # in one line
    details: str = ""  # in full, as lines


def landed_words(commit: Landed) -> str:
    """A commit in one line."""
    request = f" (#{commit.request})" if commit.request is not None else ""
    subject = f"{commit.subject}{request if request not in commit.subject else ''}"
    via = f", by way of merge {short_id(commit.via.commit)}" if commit.via is not None else ""
    return f"{short_id(commit.commit)} of {commit.day} by {commit.author}: {subject}{via}"


# What drifted without a conflict, told as few notices: one for each rule or kind and commit.


#: So many are named in one notice, the rest is counted.
_NAMED = 8

#: What upstream did to a function that is replaced.
MOVED_WORDS = {
    TargetVerdict.GONE: "is gone",
    TargetVerdict.SIGNATURE: "is called in another way",
    TargetVerdict.BODY: "does something else",
}

Found = TypeVar("Found", NewSite, MovedTarget, BrokenContract)


def silent_notices(component: ComponentDrift, path: str) -> Iterator[Notice]:
    """New sites and changed functions of one component; `path` is the manifest's."""
    subject = f"{component.manifest}/{component.name}"
    where = f"{component.ref} of {component.name}"
    for (rule, commit), sites in _by_commit(component.sites, lambda each: each.rule).items():
        title = f"{rule}: {counted(len(sites), 'new site')} in {component.name}"
        lines = [f"{each.place} in {each.within}".removesuffix(" in ") for each in sites]
        message = _message(f"{title} ({where})", sites[0].by, lines)
        about = f"{subject}/{rule}/{commit}"
        found = Notice(Level.WARNING, "new-site-upstream", title, message, about, path)
        yield _caused(found, sites[0].by, rule)
    by_kind = _by_commit(component.targets, lambda each: f"{each.component}/{each.verdict.value}")
    for (kind, commit), targets in by_kind.items():
        first = targets[0]
        many = counted(len(targets), "function")
        title = f"{first.component} replaces {many} that upstream has changed"
        if first.verdict is TargetVerdict.GONE:
            title = f"{first.component} replaces {many} that upstream has removed"
        message = _message(f"{title} ({where})", first.by, [each.name for each in targets])
        level = Level.NOTE if first.verdict is TargetVerdict.BODY else Level.WARNING
        rule = f"override-{first.verdict.value}-upstream"
        about = f"{subject}/{kind}/{commit}"
        yield _caused(Notice(level, rule, title, message, about, path), first.by, kind)
    broken = _by_commit(component.contracts, lambda each: each.place.component)
    for (caller, commit), contracts in broken.items():
        title = f"{counted(len(contracts), 'call')} of {caller} that upstream broke"
        lines = [f"{e.place.place}: {e.place.target} {e.place.what}" for e in contracts]
        message = _message(f"{title} ({where})", contracts[0].by, lines)
        about = f"{subject}/contract/{caller}/{commit}"
        found = Notice(Level.WARNING, "contract-upstream", title, message, about, path)
        yield _caused(found, contracts[0].by, caller)
    for each in component.unseen:
        title = f"not all of {component.name} could be looked at"
        yield Notice(Level.NOTE, "unseen", title, each, f"{subject}/unseen/{each}", path)


def _caused(notice: Notice, by: Landed | None, kind: str = "") -> Notice:
    """The notice with the commit that is its cause, where one is known."""
    if by is None:
        return notice
    return replace(notice, cause=f"{by.commit}/{kind}", by=landed_words(by))


def _by_commit(
    found: tuple[Found, ...], kind: Callable[[Found], str]
) -> dict[tuple[str, str], list[Found]]:
    groups: dict[tuple[str, str], list[Found]] = {}
    for each in found:
        commit = each.by.commit if each.by is not None else ""
        groups.setdefault((kind(each), commit), []).append(each)
    return groups


def _message(head: str, by: Landed | None, lines: list[str]) -> str:
    shown = [head, *([landed_words(by)] if by is not None else []), *lines[:_NAMED]]
    if len(lines) > _NAMED:
        shown.append(f"and {len(lines) - _NAMED} more")
    return "\n".join(shown)


#: Manifest name -> its path, relative to where the project's files are.
Paths = Mapping[str, str]

_PLACE = re.compile(r"(?P<path>[^:\n]+):(?P<line>\d+)(?::\d+)?")


#: Every rule, with what it says in general.
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
}


#: What to do about those that `patchkit check` alone does not explain.
HELP: Mapping[str, str] = {
    "does-not-apply": "`patchkit check` shows the lines that were expected and found.",
    "broken-upstream": "`patchkit drift` shows the clash; `patchkit bump` carries what can be.",
    "absorbed-upstream": "`patchkit bump` takes the patch off the series when it moves the pin.",
    "applies-perhaps-wrong": "Read the function around the hunk as it is upstream now.",
    "hunks-absorbed-upstream": "`patchkit bump` leaves them out when it moves the pin.",
    "unseen": "`patchkit fetch` fetches what is missing.",
    "new-site-upstream": "Cover it by a patch or a recipe, or accept it: `patchkit scan`.",
    "override-gone-upstream": "`patchkit overrides` lists all; the replacement does nothing then.",
    "override-signature-upstream": "`patchkit overrides --diff` shows how it is called now.",
    "override-body-upstream": "`patchkit overrides --diff` shows what changed.",
}


def check_notices(report: CheckReport, paths: Paths) -> Iterator[Notice]:
    """Everything that a check found and counts."""
    for broken in report.broken:
        fallback = paths.get(broken.manifest, "")
        yield from _of(broken.manifest, _problems(broken.manifest, broken.problems, fallback))
    for component in report.components:
        name = f"{component.manifest}: {component.name}"
        found = _checked(component, name, paths.get(component.manifest, ""))
        yield from _of(name, found)


def _checked(component: ComponentCheck, name: str, fallback: str) -> Iterator[Notice]:
    yield from _problems(name, component.problems, fallback)
    for patch in component.patches:
        if patch.explanation is not None:
            yield _not_applying(component, patch, patch.explanation, fallback)
    for finding in component.counted:
        yield _found(name, finding, fallback)


def _of(name: str, notices: Iterable[Notice]) -> Iterator[Notice]:
    return (replace(each, of=name) for each in notices)


def drift_notices(report: DriftReport, paths: Paths) -> Iterator[Notice]:
    """Every patch that upstream broke, or made superfluous; what was silent last."""
    for broken in report.broken:
        fallback = paths.get(broken.manifest, "")
        yield from _of(broken.manifest, _problems(broken.manifest, broken.problems, fallback))
    for component in report.components:
        fallback = paths.get(component.manifest, "")
        name = f"{component.manifest}: {component.name}"
        yield from _of(name, _problems(name, component.problems, fallback))
        for patch in component.patches:
            yield from _of(name, _drifted(component, patch, fallback))
    # last: GitHub shows ten of each level, and there may be hundreds of these
    for component in report.components:
        name = f"{component.manifest}: {component.name}"
        yield from _of(name, silent_notices(component, paths.get(component.manifest, "")))


def check_cases(report: CheckReport) -> Iterator[Case]:
    """One case for each patch; one for what could not be checked.

    A case fails by what makes the check fail.
    """
    for broken in report.broken:
        yield _error_case(broken.manifest, "manifest", broken.problems)
    for component in report.components:
        suite = f"{component.manifest}: {component.name}"
        if component.problems:
            yield _error_case(suite, "component", component.problems)
        for patch in component.patches:
            yield _check_case(suite, patch)
        errors = _errors(component.findings)
        if errors:
            details = "\n".join(map(str, errors))
            yield Case(suite, "component", CaseVerdict.FAILED, str(errors[0]), details)


def drift_cases(report: DriftReport) -> Iterator[Case]:
    """One case for each patch: does it fit the tip of what was looked along?"""
    for broken in report.broken:
        yield _error_case(broken.manifest, "manifest", broken.problems)
    for component in report.components:
        suite = f"{component.manifest}: {component.name}"
        if component.problems:
            yield _error_case(suite, "component", component.problems)
        elif component.tip is None:
            yield Case(suite, "component", CaseVerdict.SKIPPED, component.skipped)
        for patch in component.patches:
            fine = not needs_attention(patch)
            what = drift_words(patch)
            verdict = CaseVerdict.PASSED if fine else CaseVerdict.FAILED
            if patch.status is Status.WAITING:  # the one that it waits for is the finding
                verdict = CaseVerdict.SKIPPED
            yield Case(suite, patch.name, verdict, "" if fine else what, clash_words(patch.faults))


def drift_words(patch: PatchDrift) -> str:
    """What became of a patch, in one line."""
    if patch.is_broken:
        return _broken_words(patch)
    by = f" by {landed_words(patch.absorbed_by)}" if patch.absorbed_by else ""
    words = {
        Status.REGENERATED: "is regenerated by its recipe",
        Status.WAITING: f"waits for {', '.join(patch.waits_for)}",
        Status.ABSORBED: f"is upstream already{by}",
    }
    return f"{patch.name} {words.get(patch.status, 'fits')}"


def _broken_words(patch: PatchDrift) -> str:
    """Who brought a patch into its state; and who stopped it applying, if that was earlier."""
    bump = "" if patch.status is Status.CONFLICTED else f"; {state_of(patch.status).means}"
    if patch.since is None:
        return f"{patch.name} fits no commit of the branch{bump}"
    after = "" if patch.days is None else f", {patch.days} days after the pin"
    words = f"{patch.name} is broken by {landed_words(patch.since)}"
    if patch.stopped_earlier and patch.broken_by is not None:
        return f"{words}{bump}; it stopped applying by {landed_words(patch.broken_by)}{after}"
    return f"{words}{after}{bump}"


def clash_words(faults: Iterable[Clash | HunkFault]) -> str:
    """The hunks that clash, one a line."""
    return "\n".join(
        f"{fault.path}: hunk {fault.hunk} (patch line {fault.line}): {fault.reason.value}"
        for fault in faults
    )


def _drifted(component: ComponentDrift, patch: PatchDrift, fallback: str) -> Iterator[Notice]:
    subject = f"{component.manifest}/{component.name}/{patch.name}"
    path, first = _place_of(patch.where, patch.listed, fallback)
    where = f" ({component.ref} of {component.name})"
    if patch.is_broken:
        faults = patch.faults
        message = f"{drift_words(patch)}{where}\n{clash_words(faults)}".rstrip("\n")
        line = faults[0].line if faults and path == patch.where else first
        title = f"{patch.name} does not fit {component.ref}"
        level = state_of(patch.status).level
        notice = Notice(level, "broken-upstream", title, message, subject, path, line)
        yield _caused(notice, patch.since)
    elif patch.status is Status.ABSORBED:
        title = f"{patch.name} is upstream"
        message = drift_words(patch) + where
        yield Notice(Level.WARNING, "absorbed-upstream", title, message, subject, path, first)
    elif patch.forecast is not None and patch.forecast.review:
        title = f"{patch.name} applies, perhaps wrongly"
        rows = (each for each in patch.forecast.files if each.review)
        told = "\n".join(f"{each.path}: {'; '.join(each.reasons)}" for each in rows)
        message = f"{patch.name} applies{where}, and should be looked at\n{told}"
        yield Notice(Level.WARNING, "applies-perhaps-wrong", title, message, subject, path, first)
    for each in patch.suspicions:
        by = f"\n{landed_words(each.by)}" if each.by is not None else ""
        line = each.line if path == patch.where else first
        title = f"{patch.name} applies, perhaps wrongly"
        message = f"{patch.name}, patch line {each.line} ({each.path}): {each.what}{where}{by}"
        about = f"{subject}/{each.path}/{each.hunk}/{each.kind}"
        rule = "applies-perhaps-wrong"
        yield _caused(Notice(Level.WARNING, rule, title, message, about, path, line), each.by)
    if patch.absorbed and patch.status is not Status.ABSORBED:
        title = f"{len(patch.absorbed)} of {patch.hunks} hunks of {patch.name} are upstream"
        message = "\n".join(
            f"patch line {each.line} ({each.path}) by {landed_words(each.by) if each.by else '?'}"
            for each in patch.absorbed
        )
        rule = "hunks-absorbed-upstream"
        yield Notice(Level.NOTE, rule, title, f"{title}{where}\n{message}", subject, path, first)


def _not_applying(
    component: ComponentCheck, patch: PatchCheck, explanation: PatchExplanation, fallback: str
) -> Notice:
    path, line = _place_of(patch.where, patch.listed, fallback)
    files = explanation.files
    if files and path == patch.where:
        line = files[0].hunks[0].line if files[0].hunks else files[0].line
    title = f"{patch.name} does not apply"
    details = "\n".join(f"{file.path}: {file.reason.value}" for file in files)
    message = f"{title} to {component.name} at {component.pin}\n{details}".rstrip()
    subject = f"{component.manifest}/{component.name}/{patch.name}"
    return Notice(Level.ERROR, "does-not-apply", title, message, subject, path, line)


def _found(name: str, finding: Finding, fallback: str) -> Notice:
    place = _PLACE.fullmatch(finding.where)
    path = place["path"] if place else _own_file(finding.where)
    hint = f"\n{finding.hint}" if finding.hint else ""
    return Notice(
        Level(finding.severity.value),
        finding.code,
        finding.what.partition("\n")[0],
        f"{name}: {finding.what}{hint}",
        f"{name}/{finding.where}/{finding.what}",
        path or fallback,
        int(place["line"]) if place else 1,
    )


def _problems(name: str, problems: tuple[Problem, ...], fallback: str) -> Iterator[Notice]:
    for each in problems:
        place = _PLACE.fullmatch(each.where)
        path = place["path"] if place and not place["path"].startswith("/") else fallback
        line = int(place["line"]) if place else 1
        message = f"{each}\n{each.hint}" if each.hint else str(each)
        title = f"{name}: {each.what}".partition("\n")[0]
        yield Notice(Level.ERROR, "problem", title, message, f"{name}/{each}", path, line)


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity is Severity.ERROR]


def _check_case(suite: str, patch: PatchCheck) -> Case:
    match patch.status:
        case Status.CONFLICTED:
            details = clash_words(patch.outcome.clashes)
            return Case(suite, patch.name, CaseVerdict.FAILED, "does not apply", details)
        case Status.WAITING:
            waits = f"waits for {', '.join(patch.outcome.waits_for)}"
            return Case(suite, patch.name, CaseVerdict.SKIPPED, waits)
    errors = _errors(patch.findings)
    if errors:
        details = "\n".join(map(str, errors))
        return Case(suite, patch.name, CaseVerdict.FAILED, errors[0].what, details)
    return Case(suite, patch.name, CaseVerdict.PASSED)


def _error_case(suite: str, name: str, problems: tuple[Problem, ...]) -> Case:
    details = "\n".join(map(str, problems))
    return Case(suite, name, CaseVerdict.ERROR, problems[0].what if problems else "", details)


def _place_of(where: str, listed: str, fallback: str) -> tuple[str, int]:
    """The patch's file, or the manifest's line that names one of another repository."""
    own = _own_file(where)
    place = _PLACE.fullmatch(listed)
    if own or place is None:
        return own or fallback, 1
    same = place["path"].rpartition("/")[2] == fallback.rpartition("/")[2]
    if place["path"].startswith("/") and not same:
        return fallback, 1
    return fallback if same else place["path"], int(place["line"])


def _own_file(where: str) -> str:
    """`where` if it is a file of the project, "" if it is another repository's."""
    return where if re.fullmatch(r"[^:\0\n]+\.(patch|yml|yaml|json)", where) else ""
