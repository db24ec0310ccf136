"""What the runs came to, in Markdown, with the reasons for those that may live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import yaml

from bench.figures import machine, put_between_marks, today
from bench.mutation.running import Run, Verdict

_REASONS = Path(__file__).parent / "reasons.yaml"


@dataclass(frozen=True)
class Reason:
    """Why a mutant may live: of this function, where `before` has become `after`."""

    function: str
    before: str
    after: str
    why: str

    def covers(self, verdict: Verdict) -> bool:
        """Whether this is the reason of that survivor."""
        mutant = verdict.mutant
        return (
            mutant.function == f"patchkit.{self.function}"
            and self.before in mutant.before
            and self.after in mutant.after
        )


@cache
def _reasons() -> tuple[Reason, ...]:
    return tuple(Reason(**each) for each in yaml.safe_load(_REASONS.read_text(encoding="utf-8")))


def unexplained(run: Run) -> Iterator[Verdict]:
    """Mutants that nothing noticed, and for which there is no reason."""
    for verdict in run.verdicts:
        if not verdict.is_noticed and _reason(verdict) is None:
            yield verdict


def _reason(verdict: Verdict) -> Reason | None:
    return next((reason for reason in _reasons() if reason.covers(verdict)), None)


def write_page(page: Path, runs: Sequence[Run]) -> None:
    """Replace the figures of a page."""
    put_between_marks(page, "mutation", figures(runs))


def figures(runs: Sequence[Run]) -> str:
    """A row per group, and below it how many reasons were needed."""
    needed = _needed(runs)
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))
    lines = [
        f"{today()}, seed {seeds}; mutmut {version('mutmut')}; {machine()}.",
        "",
        "| group | mutants | tried | noticed | explained | neither |",
        "|---|--:|--:|--:|--:|--:|",
        *(_row(run) for run in runs),
        "",
        "Explained ([bench/mutation/reasons.yaml](../bench/mutation/reasons.yaml)):"
        f" {needed.total()}, of {len(needed)} kinds.",
    ]
    return "\n".join(lines)


def _row(run: Run) -> str:
    noticed = sum(verdict.is_noticed for verdict in run.verdicts)
    neither = len(list(unexplained(run)))
    explained = len(run.verdicts) - noticed - neither
    return (
        f"| {run.group} | {run.available:,} | {len(run.verdicts):,} | {noticed:,}"
        f" | {explained} | {neither} |"
    )


def _needed(runs: Sequence[Run]) -> Counter[str]:
    return Counter(
        reason.why
        for run in runs
        for verdict in run.verdicts
        if not verdict.is_noticed and (reason := _reason(verdict))
    )
