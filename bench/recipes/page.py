"""The figures as a page of docs/."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.recipes.published import Comparison
    from bench.recipes.trial import Trial

_HEAD = """\
# A recipe against eight months of Megatron-LM

<!-- Written by `python -m bench.recipes.run --megatron CLONE --slime CLONE --write FILE`. -->

`bench/recipes/jit-fuser-off.recipe.yml` takes `@jit_fuser` off every function below
`megatron/core` and `megatron/legacy`. It was run on {count} commits after the pin {pin}:
as many of each branch, evenly along first parents, the last one included (`main` never had the
pin; there it is counted from where the pin's branch left it). Beside it stands the fate of the
same change as text, in the patch that the recipe makes at the pin.

Each result is checked by other means than the recipe's: `ast.parse` takes every file that was
changed, a search for the words finds none in the scope, a second run changes nothing. *Beyond*
counts what a rule that only looks finds in the whole tree afterwards.
"""

_SHIPPED = """\
## What patchkit ships instead

Every function in the scope takes the decorator from `megatron/core/jit.py`, so
`patches/megatron-lm/jit-fuser-off-on-npu.patch` changes that one function: it covers functions
that upstream adds, and leaves CUDA as it is. What takes a `jit_fuser` from elsewhere it does not
cover, as no recipe with this scope does: that is for a rule that only looks to tell. A recipe is
the shipped form where there is no such place, as with `torch.compile` in SGLang.
"""


def page(trials: Sequence[Trial], comparison: Comparison | None, pin: str) -> str:
    """The whole page."""
    right = sum(not trial.wrong for trial in trials)
    applying = [trial for trial in trials if trial.text is not None]
    missing = sum(bool(trial.text) for trial in applying)
    parts = [
        _HEAD.format(count=len(trials), pin=pin[:12]),
        "| | recipe | as text |\n|---|---|---|\n"
        f"| applies | {right} of {len(trials)} | {len(applying)} of {len(trials)} |\n"
        f"| and leaves no site | {right} of {len(trials)} | {len(applying) - missing} of "
        f"{len(trials)} |\n",
    ]
    for branch in dict.fromkeys(trial.branch for trial in trials):
        parts += [f"## {branch}\n", "\n".join(_rows(branch, trials)) + "\n"]
    parts += ["## Beyond the scope\n", "\n".join(_beyond(trials)) + "\n"]
    if comparison is not None:
        parts += ["## The published patch\n", _published(comparison)]
    return "\n".join([*parts, _SHIPPED])


def _rows(branch: str, trials: Sequence[Trial]) -> Iterator[str]:
    yield "| commit | date | sites | files | recipe | as text | beyond |"
    yield "|---|---|---|---|---|---|---|"
    for trial in trials:
        if trial.branch == branch:
            text = "does not apply"
            if trial.text is not None:
                text = f"applies, misses {trial.text}" if trial.text else "applies"
            cells = (
                f"`{trial.commit[:12]}`",
                trial.date,
                trial.sites,
                trial.files,
                "; ".join(trial.wrong) or "right",
                text,
                len(trial.beyond),
            )
            yield f"| {' | '.join(map(str, cells))} |"


def _beyond(trials: Sequence[Trial]) -> Iterator[str]:
    """The places at the last commit of each branch."""
    for branch in dict.fromkeys(trial.branch for trial in trials):
        last = [trial for trial in trials if trial.branch == branch][-1]
        number = len(last.beyond) or "nothing"
        yield f"At `{last.commit[:12]}` of {branch}: {number}{':' if last.beyond else '.'}\n"
        yield from (f"- `{place}`" for place in last.beyond)


def _published(comparison: Comparison) -> str:
    return (
        "slime's NPU patch for Megatron-LM (docker/npu_patch/megatron.patch at 2432b3db) has "
        f"{comparison.hunks} hunks; {comparison.mechanical} of\nthem take "
        f"{comparison.decorators} decorators off. `bench/recipes/published.recipe.yml`, run after "
        f"the base patch as there, makes\n{comparison.same} of these {comparison.mechanical} "
        f"hunks in the same bytes, and {comparison.extra} others.\n"
    )
