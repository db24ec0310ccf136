"""Python code that rewrites the source of another package: which text it takes for which."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.extensions.python_guards.text_edits import UNKNOWN, Replacement, Rewrite
from patchkit.extensions.python_guards.value_flow import ReplacedText
from patchkit.model.syntax import last_name


def rewrites_of(found: Sequence[ReplacedText]) -> list[Rewrite]:
    """The rewrites that calls of `replace` come to. A function that others call with what it does
    not know counts only as they call it.
    """
    best: dict[object, tuple[int, Rewrite]] = {}
    # where ends of lines are replaced, no code is
    rewrites = [(text, _rewrite(text)) for text in found if str(text.given[0]).strip()]
    known = {text.call for text, rewrite in rewrites if not rewrite.problem}
    for text, rewrite in rewrites:
        key = text.call, rewrite.target, rewrite.script
        is_best = key not in best or text.depth < best[key][0]
        if is_best and not (rewrite.problem and text.call in known):
            best[key] = text.depth, rewrite
    return [rewrite for _, rewrite in best.values()]


def _rewrite(found: ReplacedText) -> Rewrite:
    old, new, count, *_ = found.given
    content = found.content
    script, problem = None, "which text it replaces is not plain to see"
    if isinstance(old, str) and UNKNOWN not in old:
        text = str(new) if isinstance(new, str | int) else UNKNOWN
        times = count if isinstance(count, int) else -1
        script = Replacement(old, text, times, last_name(found.call.func) == "sub")
        problem = ""
    if not content.target.strip(f"{UNKNOWN}/"):
        problem = "what it rewrites is not plain to see"
    return Rewrite(
        found.path, found.line, content.target, content.is_name, script,
        problem=problem, reason=found.reason,
    )  # fmt: skip
