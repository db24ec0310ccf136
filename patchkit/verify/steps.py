"""The steps of a component's `verify`: what must be in the patched tree, and what must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError
from patchkit.explain.terrain import Overlay
from patchkit.manifest.values import RuleStep, RunStep, TextStep, VerifyStep
from patchkit.model.counting import counted
from patchkit.model.lint import Finding, Severity
from patchkit.recipes.engine import RecipeRun, run_recipe
from patchkit.recipes.load import load_recipe
from patchkit.recipes.scope import Scope
from patchkit.recipes.sites import Site
from patchkit.recipes.trees import read_matching, read_scope
from patchkit.stack import Stack

#: So many places are told, the rest is counted.
_NAMED = 3


class Verifying(Struct, frozen=True):
    """A stack to look at; `root` is the project's folder, `source` reads all of its objects."""

    root: Path
    stack: Stack
    source: Overlay

    def tree_after(self, patch: str) -> str | None:
        """The tree after a patch, "" for the last; None if the stack has no such patch."""
        if not patch:
            return self.stack.tree
        tree = self.stack.base.tree
        for outcome in self.stack.outcomes:
            tree = outcome.tree or tree
            if outcome.name == patch:
                return tree
        return None


def step_findings(verifying: Verifying, steps: Sequence[VerifyStep]) -> Iterator[Finding]:
    """What does not hold; commands are left out."""
    for step in steps:
        tree = verifying.tree_after(step.after)
        if tree is None:
            have = ", ".join(each.name for each in verifying.stack.outcomes) or "no patches"
            what = f"{title_of(step)}: {step.after} is not in the stack"
            where = str(step.where)
            yield Finding(Severity.ERROR, "verify-after", what, where, f"it has {have}")
        elif isinstance(step, TextStep):
            yield from _text(step, verifying.source, tree)
        elif isinstance(step, RuleStep):
            yield from _rules(step, verifying, tree)


def title_of(step: VerifyStep) -> str:
    """What messages call a step."""
    match step:
        case _ if step.name:
            return step.name
        case TextStep(text=text):
            return f"{'present' if step.wanted else 'absent'}: {text.partition(chr(10))[0]}"
        case RuleStep(rules=rules):
            return rules
        case RunStep(run=run):
            return run.strip().partition("\n")[0]


def _text(step: TextStep, source: Overlay, tree: str) -> Iterator[Finding]:
    files = read_matching(source, tree, Scope(step.files))
    where, title = str(step.where), title_of(step)
    if not files:
        what = f"{title}: no file is there that {' '.join(step.files)} names"
        hint = "has upstream moved them? Correct `files`"
        yield Finding(Severity.ERROR, "verify-files", what, where, hint)
        return
    places = list(_places(files, step.text.encode()))
    if step.wanted and not places:
        what = f"{title}: none of {counted(len(files), 'file')} has it"
        yield Finding(Severity.ERROR, "verify-present", what, where)
    elif places and not step.wanted:
        what = f"{title}: stands at {_listed(places)}"
        yield Finding(Severity.ERROR, "verify-absent", what, where)


def _places(files: Mapping[str, bytes], text: bytes) -> Iterator[str]:
    for path, data in files.items():
        plain = data.replace(b"\r\n", b"\n")
        position = plain.find(text)
        while position >= 0:
            yield f"{path}:{plain.count(chr(10).encode(), 0, position) + 1}"
            position = plain.find(text, position + len(text))


def _rules(step: RuleStep, verifying: Verifying, tree: str) -> Iterator[Finding]:
    try:
        recipe = load_recipe(verifying.root / step.rules, step.rules)
        run = run_recipe(recipe, read_scope(verifying.source, tree, recipe))
    except PatchkitError as error:
        for problem in error.problems:
            where = problem.where or str(step.where)
            yield Finding(Severity.ERROR, "verify-rules", problem.what, where, problem.hint)
        return
    for finding in run.findings:
        rule = finding.what.partition(":")[0]
        places = _listed([site.place for site in _counted(run, rule)])
        what = f"{finding.what}: {places}" if places else finding.what
        name = f"{step.name}: " if step.name else ""
        code = finding.code.replace("recipe-", "verify-rules-")
        hint = "if these are right, change `expect` or `allow` them" if places else finding.hint
        yield replace(finding, code=code, what=name + what, hint=hint)


def _counted(run: RecipeRun, rule: str) -> list[Site]:
    return [site for site in run.sites if site.rule == rule and site.allowed is None]


def _listed(places: Sequence[str]) -> str:
    more = len(places) - _NAMED
    shown = ", ".join(places[:_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
