"""Targets as they are now against what was reviewed: gone, changed, never looked at."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.trees import TreeView
from patchkit.guards.overrides.replacements import (
    CallSite,
    Definition,
    Replacements,
    definition_of,
    find_replacements,
    source_of,
)
from patchkit.manifest.values import AbsentTarget, Overrides
from patchkit.model.lint import Finding, Severity
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import PatchResult
from patchkit.model.tree import ObjectSource
from patchkit.python.modules import Imported, Modules, read_namespace
from patchkit.python.resolve import Code, Resolver
from patchkit.recipes.generate import read_scope
from patchkit.recipes.recipe_file import load_recipe
from patchkit.stack.build import Stack
from patchkit.stack.lockfile import Reviewed, ReviewedTarget


class TargetVerdict(str, Enum):
    """What became of a target since it was reviewed, from worst to best."""

    GONE = "gone"  # it was there when it was reviewed
    NOT_THERE = "not there"  # nobody ever saw it, and no reason is given
    SIGNATURE = "signature"  # it is called in another way, or is another kind of thing
    BODY = "body"  # it is called as before and does something else
    NEW = "new"  # it is there, and nobody has looked at it yet
    DECLARED = "declared"  # it is not there, and the manifest says why
    SAME = "same"

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look."""
        return self not in (TargetVerdict.DECLARED, TargetVerdict.SAME)


class OverrideTarget(Struct, frozen=True):
    """A name that is replaced: the calls that name it, what it is now and what was reviewed.

    `reason` is the manifest's for one that need not be there.
    """

    name: str
    verdict: TargetVerdict  # how it is now, beside what was reviewed
    calls: tuple[CallSite, ...]
    now: Definition
    reviewed: ReviewedTarget | None = None
    reason: str = ""


def review_targets(
    calls: Mapping[str, tuple[CallSite, ...]],
    standings: Mapping[str, Definition],
    reviewed: Reviewed,
    absent: Sequence[AbsentTarget] = (),
    *,
    comparing: bool = False,
) -> tuple[OverrideTarget, ...]:
    """Judge every target; the names of `calls` and `standings` are the same.

    `comparing`: `reviewed` is another commit of the target, and what it has and this one has not is
    gone, whatever is declared.
    """
    targets: list[OverrideTarget] = []
    for name, sites in sorted(calls.items()):
        before = reviewed.get(name)
        reason = "" if comparing and before else _reason(name, absent)
        targets.append(_target(name, sites, standings[name], before, reason))
    return tuple(targets)


def unused_reasons(
    targets: Iterable[OverrideTarget], absent: Sequence[AbsentTarget]
) -> Iterator[AbsentTarget]:
    """Declarations that no target needs: all that they name is there, or nothing names it."""
    missing = [each.name for each in targets if not each.now.kind.is_there]
    for declared in absent:
        if not any(fnmatchcase(name, declared.name) for name in missing):
            yield declared


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


def _target(
    name: str,
    calls: tuple[CallSite, ...],
    now: Definition,
    before: ReviewedTarget | None,
    reason: str,
) -> OverrideTarget:
    if not now.kind.is_there:
        if reason:
            return OverrideTarget(name, TargetVerdict.DECLARED, calls, now, before, reason)
        verdict = TargetVerdict.GONE if before else TargetVerdict.NOT_THERE
        return OverrideTarget(name, verdict, calls, now, before)
    if before is None:
        verdict = TargetVerdict.NEW
    elif (before.kind, before.signature) != (now.kind.value, now.signature):
        verdict = TargetVerdict.SIGNATURE
    else:
        verdict = TargetVerdict.SAME if before.body == now.body else TargetVerdict.BODY
    return OverrideTarget(name, verdict, calls, now, before)


def _reason(name: str, absent: Sequence[AbsentTarget]) -> str:
    return next((each.reason for each in absent if fnmatchcase(name, each.name)), "")


# Overrides of one component in another, on their git trees: no checkout, nothing is run.


class TreeAt(Struct, frozen=True):
    """A tree and where its objects are read; `commit` is the base commit it belongs to."""

    source: ObjectSource  # reads its objects
    tree: TreeId
    commit: CommitId


class Survey(Struct, frozen=True):
    """Every target of one declaration, judged.

    `uncertain` are calls whose argument is not plain to see, `elsewhere` how many names are in no
    package of the target, `unused` declarations of absent targets that nothing needs.
    """

    targets: tuple[OverrideTarget, ...]
    uncertain: tuple[CallSite, ...]
    elsewhere: int
    unused: tuple[AbsentTarget, ...]


def read_replacements(declared: Overrides, root: Path, own: TreeAt) -> Replacements:
    """What the calls in the replacing component's tree name; `root` is the project's folder."""
    recipe = load_recipe(root / declared.rule, declared.rule)
    editing = [rule for rule in recipe.all_rules if rule.edits]
    if editing:
        hint = "it is only to find the calls: delete fix, remove or replace"
        raise BadInputError(
            *(Problem(f"{rule.id} would edit", str(rule.where), hint) for rule in editing)
        )
    files = read_scope(own.source, own.tree, recipe)
    view = TreeView(own.source, own.tree)
    return find_replacements(recipe, Modules(view.files(), view.data), files)


def resolver_of(declared: Overrides, target: TreeAt) -> Resolver:
    """What resolves names in the target's tree."""
    view = TreeView(target.source, target.tree)
    return Resolver(Modules(view.files(), view.data, declared.root))


def survey(
    declared: Overrides,
    calls: Replacements,
    resolver: Resolver,
    reviewed: Reviewed,
    *,
    comparing: bool = False,
) -> Survey:
    """Judge what the calls name in the target against what was reviewed; see review_targets."""
    named = calls.below(declared.packages)
    found = standings(resolver, named)
    targets = review_targets(named, found, reviewed, declared.absent, comparing=comparing)
    unused = tuple(unused_reasons(targets, declared.absent))
    return Survey(targets, calls.uncertain, len(calls.targets) - len(named), unused)


def as_it_was(resolver: Resolver, names: Sequence[str], commit: CommitId) -> Reviewed:
    """What a review of another tree of the target would have recorded."""
    found = standings(resolver, dict.fromkeys(names))
    return {n: as_reviewed(each, commit) for n, each in found.items() if each.kind.is_there}


def standings(resolver: Resolver, names: Mapping[str, object]) -> dict[str, Definition]:
    """What each name stands for."""
    return {name: definition_of(resolver, name) for name in names}


# What `patchkit check` says about overrides: one finding for all targets of a kind.


#: So many names are named, the rest is counted.
_NAMED = 3

_TOLD = {
    TargetVerdict.GONE: (Severity.ERROR, "gone", "not there any more"),
    TargetVerdict.NOT_THERE: (Severity.ERROR, "not-there", "not there, and no reason is given"),
    TargetVerdict.SIGNATURE: (
        Severity.ERROR,
        "signature",
        "called in another way than when reviewed",
    ),
    TargetVerdict.BODY: (Severity.WARNING, "body", "not the code that was reviewed"),
    TargetVerdict.NEW: (Severity.WARNING, "new", "not reviewed yet"),
}


def override_findings(found: Survey, pair: str, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `pair` names the components, `command` shows the details."""
    look = f"`{command}` lists them"
    for verdict, (severity, code, what) in _TOLD.items():
        targets = [each for each in found.targets if each.verdict is verdict]
        if targets:
            are = "is" if len(targets) == 1 else "are"
            text = f"{len(targets)} of {len(found.targets)} targets {are} {what}: {_names(targets)}"
            then = "declare" if severity is Severity.ERROR and "there" in what else "accept"
            ways = {
                "accept": f"{look}, with `--accept` they count as reviewed",
                "declare": f"{look}; if one need not be there, say why under `absent:`",
            }
            yield Finding(severity, f"override-{code}", text, pair, ways[then])
    for site in found.uncertain:
        what = f"{site.text}: which name this replaces is not plain to see"
        hint = "look at it by hand; narrow the rule, or allow the site there with a reason"
        yield Finding(Severity.WARNING, "override-uncertain", what, site.place, hint)
    for declared in found.unused:
        what = f"{declared.name} is declared absent, and no target that it names is"
        where = str(declared.where)
        yield Finding(Severity.WARNING, "override-unused", what, where, "delete the declaration")


def _names(targets: Sequence[OverrideTarget]) -> str:
    shown = ", ".join(each.name for each in targets[:_NAMED])
    more = len(targets) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


# Two layers on one function: patches of the target edit it, and a replacement takes its place.


class LayeredTarget(Struct, frozen=True):
    """A target that patches change and that is replaced while the stack runs.

    `place` is its definition, `patches` those that change its code, in order, `calls` what replaces
    it. `stays` says why what the patches do runs all the same, "" where it does not: all of these
    wrap the function, by their names, or inherit from the class and leave it what the patches
    change. `reviewed`: the lock has it, as it is with the patches.
    """

    name: str
    place: str
    patches: tuple[str, ...]
    calls: tuple[CallSite, ...]
    stays: str
    reviewed: bool


#: What a replacement is called that calls the function that it stands for.
_WRAPS = re.compile(r"(?i)(?:wrapper|decorator|wrap|decorate)\b")
#: What a call puts in the place, behind the target's name.
_PUT = re.compile(r"\s*[,=]\s*([A-Za-z_]\w*)\s*(?:,|#.*|\Z)")
_ASSIGNED = re.compile(r"\s*=(?!=)")


def layered_targets(
    declared: Overrides, found: Survey, own: TreeAt, target: TreeAt, stack: Stack
) -> tuple[LayeredTarget, ...]:
    """The targets whose code a patch of the target's `stack` changes.

    A target is compared as `definitions` compares: comments, layout and docstrings do not count. So
    a patch elsewhere in the same file is none. Only files that a patch touches are read.
    """
    touched = {file.path for outcome in stack.outcomes for file in outcome.files}
    there = [
        each
        for each in found.targets
        if each.now.kind.is_there and each.now.place.rpartition(":")[0] in touched
    ]
    if not there:
        return ()
    resolvers = [resolver_of(declared, replace(target, tree=stack.base.tree))]
    steps = [each for each in stack.outcomes if each.tree is not None]
    resolvers += [resolver_of(declared, replace(target, tree=each.tree)) for each in steps]
    source = TreeView(own.source, own.tree)
    replacing = Resolver(Modules(source.files(), source.data))
    return tuple(
        LayeredTarget(
            each.name,
            each.now.place,
            patches,
            each.calls,
            _why_it_stays(each, source, replacing, resolvers),
            each.verdict is TargetVerdict.SAME,
        )
        for each in there
        if (patches := _changing(each, steps, resolvers))
    )


def _why_it_stays(
    target: OverrideTarget, source: TreeView, replacing: Resolver, resolvers: Sequence[Resolver]
) -> str:
    if all(_wraps(source, site) for site in target.calls):
        return "wrapped"
    changed = _changed_members(target, resolvers[0], resolvers[-1])
    kept = (_leaves(source, replacing, site, target.name, changed) for site in target.calls)
    return "extended" if changed and all(kept) else ""


def _changed_members(target: OverrideTarget, before: Resolver, after: Resolver) -> set[str]:
    """What of a class the patches change, by its names; nothing for what is no class."""
    names: set[str] = set()
    for resolver in (before, after):
        for each in source_of(resolver, target.name):
            if isinstance(each.node, ast.ClassDef):
                names.update(read_namespace(each.node.body).names)
    old, new = ({n: definition_of(r, f"{target.name}.{n}") for n in names} for r in (before, after))
    return {n for n in names if (old[n].body, old[n].signature) != (new[n].body, new[n].signature)}


def _leaves(
    source: TreeView, replacing: Resolver, site: CallSite, target: str, changed: Collection[str]
) -> bool:
    """Whether a call puts a class in the place that inherits from the target, and that neither it
    nor a class between has what the patches change.
    """
    module = replacing.modules.at(site.path)
    given = _PUT.match(_call(source, site))
    if module is None or given is None:
        return False
    name = given[1]
    for node in ast.walk(module.syntax):  # imported in the function around the call, as a rule
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if name in (alias.asname, alias.name):
                assert isinstance(node, ast.ImportFrom)
                place = Imported(node.module or "", alias.name, node.level)
                return _inherits(
                    replacing, f"{module.absolute(place)}.{alias.name}", target, changed
                )
    return _inherits(replacing, f"{module.name}.{name}", target, changed)


def _inherits(resolver: Resolver, name: str, target: str, changed: Collection[str]) -> bool:
    (found, *more) = resolver.resolve(name)
    if more or not isinstance(found, Code) or not isinstance(found.node, ast.ClassDef):
        return False
    foreign: list[str] = []
    line = [found, *resolver.bases(found, foreign)]
    own = {n for c in line if isinstance(c.node, ast.ClassDef) for n in _members(c.node)}
    return target in foreign and own.isdisjoint(changed)


def _members(node: ast.ClassDef) -> Collection[str]:
    return read_namespace(node.body).names.keys()


def _changing(
    target: OverrideTarget, steps: Sequence[PatchResult], resolvers: Sequence[Resolver]
) -> tuple[str, ...]:
    path = target.now.place.rpartition(":")[0]
    found: list[str] = []
    last = definition_of(resolvers[0], target.name)
    for outcome, resolver in zip(steps, resolvers[1:], strict=True):
        if any(file.path == path for file in outcome.files):
            now = definition_of(resolver, target.name)
            if (now.body, now.signature) != (last.body, last.signature):
                found.append(outcome.name)
            last = now
    return tuple(found)


def _wraps(source: TreeView, site: CallSite) -> bool:
    """Whether what a call puts in the place is called as what wraps is."""
    call = _call(source, site)
    return _WRAPS.search(call) is not None


def _call(source: TreeView, site: CallSite) -> str:
    """What follows the target's name: the arguments of a call up to its end, or what an assignment
    gives, in five lines at most.
    """
    text = b"".join(source.lines(site.path)[site.line - 1 : site.line + 4])
    call = text.decode("utf-8", "replace").partition(site.text)[2]
    assigned = _ASSIGNED.match(call) is not None
    depth, end = 0, len(call)
    for at, character in enumerate(call):
        depth += (character == "(") - (character == ")")
        if depth < 0 or (assigned and depth == 0 and character == "\n"):
            end = at
            break
    return call[:end]


def layered_findings(
    found: Sequence[LayeredTarget], component: str, target: str
) -> Iterator[Finding]:
    """One finding for each function with two layers; which one wins."""
    for each in found:
        names, site = ", ".join(each.patches), each.calls[0].place
        if each.stays:
            what = f"{each.name} is changed by {names} and {each.stays} by {component}: both run"
            hint = f"what {'wraps' if each.stays == 'wrapped' else 'inherits from'} it: {site}"
            yield Finding(Severity.NOTE, "override-wrapped", what, each.place, hint)
            continue
        what = f"{each.name} is changed by {names} and replaced by {component}, which wins"
        hint = f"see {site}: where it is on, the patch does nothing; patch {component} instead"
        severity = Severity.NOTE if each.reviewed else Severity.WARNING
        yield Finding(severity, "override-patched", what, f"{target}: {each.place}", hint)


def twice_replaced(
    first: tuple[str, Replacements], others: Sequence[tuple[str, Replacements]], declared: Overrides
) -> Iterator[Finding]:
    """What other components replace, too: one finding for each of them.

    A note: one that builds on the other (MindSpeed-LLM on MindSpeed) does so on purpose.
    """
    name, calls = first
    mine = calls.below(declared.packages)
    for other, theirs in others:
        both = sorted(mine.keys() & theirs.targets.keys())
        if both:
            more = f" and {len(both) - _NAMED} more" if len(both) > _NAMED else ""
            what = (
                f"replaced by {other}, too: {', '.join(both[:_NAMED])}{more}; "
                "what is loaded last wins"
            )
            places = f"{mine[both[0]][0].place} and {theirs.targets[both[0]][0].place}"
            hint = f"the first one: {places}"
            pair = f"{name} -> {declared.target}"
            yield Finding(Severity.NOTE, "override-twice", what, pair, hint)
