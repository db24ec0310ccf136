"""Layers on one function: patches of several manifests, and replacements while the stack runs; who
changes the same thing, and which of them wins.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from patchkit.extensions.python_guards.bodies import blocks_of, first_line
from patchkit.extensions.python_guards.guard_keys import Overrides
from patchkit.extensions.python_guards.modules import Imported, Modules, read_namespace
from patchkit.extensions.python_guards.override_review import (
    NAMED,
    OverrideTarget,
    Survey,
    resolver_of,
    survey,
)
from patchkit.extensions.python_guards.replacements import (
    CallSite,
    Replacements,
    definition_of,
    source_of,
)
from patchkit.extensions.python_guards.resolve import Code, Resolver
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.gitcmd.trees import TreeView
from patchkit.model.diff_parse import split_lines
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import TreeId
from patchkit.model.outcome import PatchResult
from patchkit.model.syntax import FunctionNode, parse_python
from patchkit.model.text import listed
from patchkit.model.tree import ObjectSource
from patchkit.stack.build import Stack

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


def layered_beneath(
    declared: Overrides, calls: Replacements, own: TreeView, target: TreeView, stack: Stack
) -> tuple[LayeredTarget, ...]:
    """The same of a target of another manifest, of which no lock of this one says anything."""
    found = survey(declared, calls, resolver_of(declared, target), {})
    return layered_targets(declared, found, own, target, stack)


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
            what = f"replaced by {other}, too: {listed(both, NAMED)}; what is loaded last wins"
            places = f"{mine[both[0]][0].place} and {theirs.targets[both[0]][0].place}"
            hint = f"the first one: {places}"
            pair = f"{name} -> {declared.target}"
            yield Finding(Severity.NOTE, "override-twice", what, pair, hint)


# Series of different manifests on one upstream, one on top of the other.


class LayerStep(Struct, frozen=True):
    """One patch of several series on one base: `title` says whose it is, `tree` what it makes."""

    title: str
    tree: TreeId
    paths: frozenset[str]  # of the files that it changes


def layer_step(title: str, outcome: PatchResult) -> LayerStep:
    """A patch that applies, as a step; `title` is what goes before its name."""
    assert outcome.tree is not None
    paths = frozenset(each.path for each in outcome.files)
    return LayerStep(title + outcome.name, outcome.tree, paths)


class SharedPlace(Struct, frozen=True):
    """A function that patches of two layers change; blank lines and comments do not count."""

    path: str  # the upstream's
    line: int  # where it begins with all patches, from 1
    name: str  # with the classes around it
    below: tuple[str, ...]  # titles of the patches that change it, in order
    above: tuple[str, ...]  # the same of the layer on top


def shared_places(
    source: ObjectSource, base: TreeId, below: Sequence[LayerStep], above: Sequence[LayerStep]
) -> Iterator[SharedPlace]:
    """The functions that both layers change; `above` stands on `below`, and that on `base`.

    No patch can take away a line that one beneath it made, and apply to the pin as well: what both
    change runs. That both add an import, or a line to a list, is nothing to look at.
    """
    touched = [frozenset().union(*(each.paths for each in side)) for side in (below, above)]
    for path in sorted(touched[0] & touched[1]):
        trees = [base, *(each.tree for each in (*below, *above))]
        states = [_places(path, TreeView(source, tree).data(path) or b"") for tree in trees]
        middle = len(below)
        for name in sorted(states[-1].keys() | states[middle].keys()):
            lines = [each[name][1] if name in each else () for each in states]
            who = (
                _changing_steps(below, lines[: middle + 1]),
                _changing_steps(above, lines[middle:]),
            )
            if not all(who):
                continue
            line = next(each[name][0] for each in reversed(states) if name in each)
            yield SharedPlace(path, line, name, *who)


def _changing_steps(
    steps: Sequence[LayerStep], states: Sequence[Sequence[bytes]]
) -> tuple[str, ...]:
    pairs = zip(steps, states, states[1:], strict=False)  # one state more than steps
    return tuple(step.title for step, before, after in pairs if before != after)


def _places(path: str, data: bytes) -> Mapping[str, tuple[int, Sequence[bytes]]]:
    """Function -> its first line, and its lines without comments; nothing for other files."""
    lines = split_lines(data)
    owners = [""] * len(lines)  # "": in no function
    body = parse_python(data)[0].body if path.endswith((".py", ".pyi")) else []
    starts: dict[str, int] = {}
    for name, first, last in _functions(body, ""):
        starts.setdefault(name, first)
        owners[first - 1 : last] = [name] * (last - first + 1)
    found: dict[str, list[bytes]] = {}
    for owner, line in zip(owners, lines, strict=True):
        if owner and line.strip() and not line.lstrip().startswith(b"#"):
            found.setdefault(owner, []).append(line)
    return {name: (starts[name], tuple(each)) for name, each in found.items()}


def _functions(body: Iterable[ast.stmt], within: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, last line) of functions and methods; what is in one belongs to it."""
    for node in body:
        if isinstance(node, FunctionNode):
            yield within + node.name, first_line(node), node.end_lineno or node.lineno
        else:
            inner = f"{within}{node.name}." if isinstance(node, ast.ClassDef) else within
            for block in blocks_of(node):
                yield from _functions(block, inner)


def shared_findings(found: Iterable[SharedPlace], component: str) -> Iterator[Finding]:
    """One note for each function: both patches run, and only a person sees whether they fit."""
    for each in found:
        below, above = ", ".join(each.below), ", ".join(each.above)
        what = f"{each.name} is changed by {below} and by {above}: both run"
        where, hint = f"{component}: {each.path}:{each.line}", "see that they fit each other"
        yield Finding(Severity.NOTE, "layers-both", what, where, hint)


def no_layer_finding(
    title: str, outcome: PatchResult, below: Sequence[LayerStep], twin: str
) -> Finding:
    """A patch that applies to the pin, and not on top of the layers beneath.

    `twin` is the patch beneath with the same bytes, "" for none.
    """
    paths = {each.path for each in outcome.files if each.clashes}
    others = listed([each.title for each in below if each.paths & paths], NAMED)
    what = f"{title} does not apply on top of {others or 'the manifests beneath'}"
    hint = "remove from this patch what the lower one does; drop it if nothing is left"
    if twin:
        what = f"{title} is {twin} again, and does not apply on top of it"
        hint = (
            "one manifest is enough for it: take it off this series, or take the other off `upon`"
        )
    return Finding(Severity.ERROR, "layers-conflict", what, listed(sorted(paths), NAMED), hint)
