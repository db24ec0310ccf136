"""Layers on one function: patches, and replacements while the stack runs; which of them wins."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from patchkit.extensions.python_guards.bodies import walk
from patchkit.extensions.python_guards.guard_keys import Overrides
from patchkit.extensions.python_guards.modules import (
    Imported,
    Modules,
    imported_names,
    read_namespace,
)
from patchkit.extensions.python_guards.override_review import (
    OverrideTarget,
    Survey,
    resolver_of,
)
from patchkit.extensions.python_guards.replacements import (
    CallSite,
    definition_of,
    source_of,
)
from patchkit.extensions.python_guards.resolve import Code, Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Severity
from patchkit.model.outcome import PatchResult
from patchkit.stack.build import Stack


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
    declared: Overrides, found: Survey, own: TreeView, target: TreeView, stack: Stack
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
    resolvers = [resolver_of(declared, TreeView(target.source, stack.base.tree))]
    steps = [each for each in stack.outcomes if each.tree is not None]
    trees = (TreeView(target.source, each.tree) for each in steps if each.tree is not None)
    resolvers += [resolver_of(declared, tree) for tree in trees]
    replacing = Resolver(Modules(own.files(), own.data))
    return tuple(
        LayeredTarget(
            each.name,
            each.now.place,
            patches,
            each.calls,
            _why_it_stays(each, own, replacing, resolvers),
            each.verdict is TargetVerdict.SAME,
        )
        for each in there
        if (patches := _changing(each, steps, resolvers))
    )


def _why_it_stays(
    target: OverrideTarget, source: TreeView, replacing: Resolver, resolvers: Sequence[Resolver]
) -> str:
    if all(_WRAPS.search(_call(source, site)) for site in target.calls):
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
    nodes = walk(module.syntax)  # imported in the function around the call, as a rule
    imports = [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom)]
    brought = {name: each for node in imports for name, each in imported_names(node)}
    place = brought.get(given[1], Imported(module.name, given[1], 0))
    return _inherits(replacing, f"{module.absolute(place)}.{place.name}", target, changed)


def _inherits(resolver: Resolver, name: str, target: str, changed: Collection[str]) -> bool:
    (found, *more) = resolver.resolve(name)
    if more or not isinstance(found, Code) or not isinstance(found.node, ast.ClassDef):
        return False
    foreign: list[str] = []
    line = [found, *resolver.bases(found, foreign)]
    nodes = [each.node for each in line if isinstance(each.node, ast.ClassDef)]
    own = {name for node in nodes for name in read_namespace(node.body).names}
    return target in foreign and own.isdisjoint(changed)


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
        hint = f"see {site}: where it is active, the patch has no effect; patch {component} instead"
        severity = Severity.NOTE if each.reviewed else Severity.WARNING
        yield Finding(severity, "override-patched", what, f"{target}: {each.place}", hint)
