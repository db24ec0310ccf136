"""Python code that rewrites the source of another package: which text it takes for which."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.extensions.python_guards.text_edits import UNKNOWN, Replacement, Rewrite
from patchkit.extensions.python_guards.value_flow import ReplacedText


def rewrites_of(found: Sequence[ReplacedText]) -> list[Rewrite]:
    """The rewrites that calls of `replace` come to. A function that others call with what it does
    not know counts only as they call it.
    """
    best: dict[object, tuple[int, Rewrite]] = {}
    # where ends of lines are replaced, no code is
    rewrites = [(each, _rewrite(each)) for each in found if str(each.given[0]).strip()]
    known = {each.call for each, rewrite in rewrites if not rewrite.problem}
    for each, rewrite in rewrites:
        key = each.call, rewrite.target, rewrite.script
        is_best = key not in best or each.depth < best[key][0]
        if is_best and not (rewrite.problem and each.call in known):
            best[key] = each.depth, rewrite
    return [rewrite for _, rewrite in best.values()]


def _rewrite(found: ReplacedText) -> Rewrite:
    old, new, count, *_ = found.given
    content = found.content
    script, problem = None, "which text it replaces is not plain to see"
    if isinstance(old, str) and UNKNOWN not in old:
        text = str(new) if isinstance(new, str | int) else UNKNOWN
        script, problem = Replacement(old, text, count if isinstance(count, int) else -1), ""
    if not content.target.strip(f"{UNKNOWN}/"):
        problem = "what it rewrites is not plain to see"
    return Rewrite(
        found.path, found.line, content.target, content.is_name, script,
        problem=problem, reason=found.reason,
    )  # fmt: skip
