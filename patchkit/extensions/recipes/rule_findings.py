"""What rules say of a stack, and of upstream's new code.

`check` and `drift` ask of every component, so most is loaded where there are rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from patchkit.errors import PatchkitError
from patchkit.extension import CheckedStack, CheckRun, Finder, WatchedLine
from patchkit.extensions.recipes.rule_keys import RuleStep, ScanKeys
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import TreeId


def sites(run: CheckRun) -> Finder:
    """Sites that a rule names and no patch covers, against the reviewed ones."""
    return partial(_sites, run)


def rules(run: CheckRun) -> Finder:
    """What rules of `verify` find, and should not, or do not find."""
    return partial(_rules, run.store.cache)


def _sites(run: CheckRun, checked: CheckedStack) -> Iterator[Finding]:
    manifest, component = checked.manifest, checked.component
    if not component.added(ScanKeys).residual.rules and not any(
        each.has_recipe for each in checked.generated
    ):
        return
    from patchkit.extensions.recipes.residual_sites import (  # noqa: PLC0415
        baseline_path,
        lint_rules,
        load_baseline,
        residual_findings,
        review_sites,
        scan_tree,
    )

    looked_for = lint_rules(
        manifest.root, component.added(ScanKeys).residual.rules, checked.generated
    )
    if not looked_for:
        return
    scan = scan_tree(run.store.cache, checked.source, checked.stack.tree, looked_for)
    name = baseline_path(component)
    review = review_sites(scan.sites, load_baseline(manifest.root, name), run.today)
    command = f"patchkit check --only sites {manifest.options(component.name)}"
    yield from (*scan.findings, *residual_findings(review, name, command))


def _rules(cache: Path, checked: CheckedStack) -> Iterator[Finding]:
    for step in checked.component.verify:
        tree = checked.tree_after(step.after)
        if isinstance(step, RuleStep) and tree is not None:  # else `check` says so
            yield from _step(step, checked, tree, cache)


def _step(step: RuleStep, checked: CheckedStack, tree: TreeId, cache: Path) -> Iterator[Finding]:
    from patchkit.extensions.recipes.recipe_file import load_recipe  # noqa: PLC0415
    from patchkit.extensions.recipes.residual_sites import as_expected  # noqa: PLC0415

    root = checked.manifest.root
    try:
        recipe = load_recipe(root / step.rules, step.rules, root=root)
        findings = as_expected(cache, TreeView(checked.source, tree), recipe.all_rules)
    except PatchkitError as error:
        for problem in error.problems:
            where = problem.where or str(step.where)
            yield Finding(Severity.ERROR, "verify-rules", problem.what, where, problem.hint)
        return
    for finding in findings:
        name = f"{step.name}: " if step.name else ""
        code = finding.code.replace("recipe-", "verify-rules-")
        yield replace(finding, code=code, what=name + finding.what)


class NewSites:
    """The sites that nobody has reviewed and no recipe takes care of; see patchkit/extension.py."""

    breaks = False

    def watches(self, manifest: Manifest, component: Component) -> bool:
        """Whether the manifest names rules."""
        del manifest
        return bool(component.added(ScanKeys).residual.rules)

    def find(self, line: WatchedLine) -> Iterable[Finding]:
        """The sites, by rule and file, with the commits that brought them."""
        from patchkit.extensions.recipes.new_sites import unseen_sites  # noqa: PLC0415

        return unseen_sites(line)
