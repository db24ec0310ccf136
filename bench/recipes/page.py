"""The figures, as docs/evidence.md has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.recipes.published import Comparison
    from bench.recipes.trial import Trial


def page(trials: Sequence[Trial], comparison: Comparison | None) -> str:
    """The figures: how often it was right, beside the same change as text."""
    right = sum(not trial.wrong for trial in trials)
    applying = [trial for trial in trials if trial.text is not None]
    missing = sum(bool(trial.text) for trial in applying)
    parts = [
        "| | recipe | as text |\n|---|---|---|\n"
        f"| applies | {right} of {len(trials)} | {len(applying)} of {len(trials)} |\n"
        f"| and leaves no site | {right} of {len(trials)} | {len(applying) - missing} of "
        f"{len(trials)} |",
        f"Beyond the scope a rule that only looks finds {', '.join(_beyond(trials))}.",
    ]
    if comparison is not None:
        parts.append(_published(comparison))
    return "\n\n".join(parts)


def _beyond(trials: Sequence[Trial]) -> Iterator[str]:
    """How many places, at the last commit of each branch."""
    for branch in dict.fromkeys(trial.branch for trial in trials):
        last = [trial for trial in trials if trial.branch == branch][-1]
        number = f"{len(last.beyond)} places" if last.beyond else "nothing"
        yield f"{number} at `{last.commit[:12]}` of {branch}"


def _published(comparison: Comparison) -> str:
    return (
        "slime's NPU patch for Megatron-LM (docker/npu_patch/megatron.patch at 2432b3db) has "
        f"{comparison.hunks} hunks; {comparison.mechanical} of\nthem take "
        f"{comparison.decorators} decorators off. `bench/recipes/published.recipe.yml`, run after "
        f"the base patch as there, makes\n{comparison.same} of these {comparison.mechanical} "
        f"hunks in the same bytes, and {comparison.extra} others."
    )
