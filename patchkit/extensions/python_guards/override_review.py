"""Targets as they are now against what was reviewed: gone, changed, never looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.extension import captures
from patchkit.extensions.python_guards.guard_keys import Overrides
from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.replacements import (
    VARIABLE,
    CallSite,
    Definition,
    Replacements,
    definition_of,
    find_replacements,
)
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import CommitId
from patchkit.model.text import counted, listed
from patchkit.stack.lockfile import Reviewed, ReviewedTarget

#: The rules that patchkit brings, beside this module.
_KNOWN_RULES = "replacements.rules.yml"


class OverrideTarget(Struct, frozen=True):
    """A name that is replaced: the calls that name it, what it is now and what was reviewed.

    `reason` is the manifest's for one that need not be there; `diff` how its code changed since it
    was reviewed, if that was asked for.
    """

    name: str
    verdict: TargetVerdict  # how it is now, beside what was reviewed
    calls: tuple[CallSite, ...]
    now: Definition
    reviewed: ReviewedTarget | None = None
    reason: str = ""
    diff: tuple[str, ...] = ()  # unified


def verdict_on(now: Definition, before: ReviewedTarget | None) -> TargetVerdict:
    """What became of a target, whatever the manifest says of it."""
    if not now.kind.is_there:
        return TargetVerdict.GONE if before else TargetVerdict.NOT_THERE
    if before is None:
        return TargetVerdict.NEW
    if (before.kind, before.signature) != (now.kind.value, now.signature):
        return TargetVerdict.SIGNATURE
    return TargetVerdict.SAME if before.body == now.body else TargetVerdict.BODY


def accepted(
    targets: Iterable[OverrideTarget], chosen: Sequence[str], commit: CommitId
) -> Reviewed:
    """What the lock has to say once the targets that the globs name were looked at; () for all.

    What is not there cannot be accepted, only declared in the manifest, with the reason: until then
    it stays in the record, and so is reported as gone.
    """
    found: dict[str, ReviewedTarget] = {}
    for target in targets:
        same = target.verdict is TargetVerdict.SAME or not is_chosen(target.name, chosen)
        if target.now.kind.is_there and not same:
            found[target.name] = as_reviewed(target.now, commit)
        elif target.reviewed is not None and target.verdict is not TargetVerdict.DECLARED:
            found[target.name] = target.reviewed
    return found


def as_reviewed(now: Definition, commit: CommitId) -> ReviewedTarget:
    """A target as it stands, to be recorded."""
    return ReviewedTarget(commit, now.kind.value, now.signature, now.body)


def is_chosen(name: str, globs: Sequence[str]) -> bool:
    """Whether one of the globs names it; without globs all are meant."""
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def count_verdicts(targets: Iterable[OverrideTarget]) -> dict[TargetVerdict, int]:
    """How many targets have each verdict, the worst first; none that nobody has."""
    counted = Counter(each.verdict for each in targets)
    return {verdict: counted[verdict] for verdict in TargetVerdict if counted[verdict]}


# Overrides of one component in another, on their git trees: no checkout, nothing is run.


class Survey(Struct, frozen=True):
    """Every target of one declaration, judged.

    `findings` say what rules do not find, which calls cannot be followed, and what is declared
    absent for nothing.
    """

    targets: tuple[OverrideTarget, ...]
    findings: tuple[Finding, ...]


def read_replacements(declared: Overrides, root: Path, own: TreeView) -> Replacements:
    """What the calls in the replacing component's tree name; `root` is the project's folder."""
    place = (root, declared.rule) if declared.rule else (Path(__file__).parent, _KNOWN_RULES)
    found = captures(*place, VARIABLE, own)
    return find_replacements(found, Modules(own.files(), own.data))


def resolver_of(declared: Overrides, target: TreeView) -> Resolver:
    """What resolves names in the target's tree."""
    return Resolver(Modules(target.files(), target.data, declared.root))


def survey(
    declared: Overrides,
    calls: Replacements,
    resolver: Resolver,
    reviewed: Reviewed,
) -> Survey:
    """Judge what the calls name in the target against what was reviewed."""
    targets: list[OverrideTarget] = []
    named = calls.below(declared.packages)
    for name, now in standings(resolver, sorted(named)).items():
        before, reason = reviewed.get(name), ""
        verdict = verdict_on(now, before)
        if not now.kind.is_there:
            reason = next((e.reason for e in declared.absent if fnmatchcase(name, e.name)), "")
            if verdict is TargetVerdict.NOT_THERE and not reason:
                is_made = now.why.endswith("in __getattr__")  # then nobody can tell
                reason = now.why if is_made else _meant_absence(name, calls, resolver)
            verdict = TargetVerdict.DECLARED if reason else verdict
        targets.append(OverrideTarget(name, verdict, named[name], now, before, reason))
    return Survey(tuple(targets), tuple(_survey_findings(declared, calls, targets)))


def _meant_absence(name: str, calls: Replacements, resolver: Resolver) -> str:
    """Why a name that nobody ever saw need not be there, "" where nothing says so."""
    owner, _, own = name.rpartition(".")
    top = resolver.modules.module(name.partition(".")[0])
    part = ".".join(name.split(".")[:2])
    if top is not None and not top.path and resolver.modules.module(part) is None:
        return f"{part} is another upstream's"  # several share a folder without __init__.py
    is_there = definition_of(resolver, owner).kind.is_there
    return f"who sets {own} reads it, too" if is_there and name in calls.added else ""


def _survey_findings(
    declared: Overrides, calls: Replacements, targets: Sequence[OverrideTarget]
) -> Iterator[Finding]:
    for each in calls.findings:
        yield replace(each, code=each.code.replace("recipe", "override"))
    if not (calls.targets or calls.uncertain or declared.rule):
        what = "no rule that patchkit brings finds something that is replaced"
        hint = "write one, and name it by `rule` (docs/howto/overrides.md)"
        yield Finding(Severity.ERROR, "override-rules", what, str(declared.where), hint)
    if calls.targets and not targets:
        names = counted(len(calls.targets), "name")
        what = f"{names} replaced, none of them in {listed(declared.packages, NAMED)}"
        hint, where = "has upstream renamed the package? Correct `packages`", str(declared.where)
        yield Finding(Severity.ERROR, "override-packages", what, where, hint)
    for site in calls.uncertain:
        what = f"{site.text}: which name this replaces is not plain to see"
        hint = "look at it by hand; narrow the rule, or allow the site there with a reason"
        yield Finding(Severity.WARNING, "override-uncertain", what, site.place, hint)
    missing = [each.name for each in targets if not each.now.kind.is_there]
    for absent in declared.absent:
        if not any(fnmatchcase(name, absent.name) for name in missing):
            what = f"{absent.name} is declared absent, and no target that it names is"
            where, hint = str(absent.where), "delete the declaration"
            yield Finding(Severity.WARNING, "override-unused", what, where, hint)


def as_it_was(found: Mapping[str, Definition], commit: CommitId) -> Reviewed:
    """What a review of another tree of the target would have recorded, by its `standings`."""
    return {n: as_reviewed(each, commit) for n, each in found.items() if each.kind.is_there}


def standings(resolver: Resolver, names: Iterable[str]) -> dict[str, Definition]:
    """What each name stands for; no node of a function that `resolver` gave may be held."""
    found: dict[str, Definition] = {}
    for name in names:
        found[name] = definition_of(resolver, name)
        resolver.modules.rest()
    return found


# What `patchkit check` says about overrides: one finding for all targets of a kind.


#: So many names are named, the rest is counted.
NAMED = 3

_TOLD = {
    TargetVerdict.GONE: (Severity.ERROR, "gone", "gone"),
    TargetVerdict.NOT_THERE: (Severity.ERROR, "not-there", "missing without a reason"),
    TargetVerdict.SIGNATURE: (
        Severity.ERROR,
        "signature",
        "called with another signature than when reviewed",
    ),
    TargetVerdict.BODY: (Severity.WARNING, "body", "changed since the review"),
    TargetVerdict.NEW: (Severity.WARNING, "new", "not reviewed yet"),
}

#: What is not in the target: fixed by a reason, not by a review.
_ABSENT = (TargetVerdict.GONE, TargetVerdict.NOT_THERE)


def override_findings(found: Survey, pair: str, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `pair` names the components, `command` shows the details."""
    yield from found.findings
    look = f"`{command}` lists them"
    for verdict, (severity, code, what) in _TOLD.items():
        targets = [each for each in found.targets if each.verdict is verdict]
        if targets:
            are = "is" if len(targets) == 1 else "are"
            names = listed([each.name for each in targets], NAMED)
            text = f"{len(targets)} of {len(found.targets)} targets {are} {what}: {names}"
            then = "declare" if verdict in _ABSENT else "accept"
            ways = {
                "accept": f"{look}; `--accept` records them as reviewed",
                "declare": f"{look}; if one may be absent, give the reason under `absent:`",
            }
            yield Finding(severity, f"override-{code}", text, pair, ways[then])
