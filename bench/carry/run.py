"""`python -m bench.carry.run CASES --mirrors DIR`: how often each way of carrying is right.

For each strategy: what it carried, how much of that is right, right but for an order that need not
matter, or wrong, what it left in conflict, and the time. Of ours also how much was flagged for
review, wrong without a flag, and, with --calibration, how often what it was so sure of was right:
its lines, and its bytes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from bench.carry.cases import Case, read_cases
from bench.carry.grading import Grade, grade
from bench.carry.strategies import Answer, Strategy, strategies
from patchkit.model.tree import Tree

_STEPS = (0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 1.01)
#: End of a band -> what was said of each file, and whether it was so.
Bands: TypeAlias = defaultdict[float, list[tuple[float, bool]]]


@dataclass
class Tally:
    """The grades of a strategy."""

    grades: Counter[Grade] = field(default_factory=Counter)
    whole: Counter[Grade] = field(default_factory=Counter)
    flagged: Counter[Grade] = field(default_factory=Counter)
    sure: Bands = field(default_factory=lambda: defaultdict(list))
    same: Bands = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0
    cases: int = 0

    def add(self, case: Case, answer: Answer, seconds: float) -> None:
        """Grade one case."""
        self.seconds += seconds
        self.cases += 1
        grades = []
        for path, given in _grades(case, answer):
            grades.append(given)
            self.grades[given] += 1
            outcome = answer.outcomes.get(path)
            if outcome is not None and given is not Grade.CONFLICT:
                self.flagged[given] += outcome.review
                right = given is Grade.RIGHT
                _note(self.sure, outcome.confidence, is_so=right or given is Grade.ORDER)
                _note(self.same, outcome.same_bytes, is_so=right)
        if case.whole:
            worst = max(grades, key=list(Grade).index)
            self.whole[worst] += 1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path, help="a case file")
    parser.add_argument("--mirrors", type=Path, required=True, help="bare clones OWNER+NAME/repo")
    parser.add_argument("--subset", default="", help="bumps, trivial; hard, easy; moved; any")
    parser.add_argument("--strategy", action="append", help="only this one; may be repeated")
    parser.add_argument("--half", choices=("develop", "validate"), help="only half of the cases")
    parser.add_argument("--every", type=int, default=1, help="only each so many-th case")
    parser.add_argument("--calibration", action="store_true", help="how right we are when so sure")
    options = parser.parse_args()
    chosen = _chosen(options.strategy)
    subset = options.subset or ("bumps" if "bump" in options.cases.name else "hard")
    tallies = {name: Tally() for name in chosen}
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as work:
        cases = read_cases(options.cases, options.mirrors.resolve(), Path(work), subset)
        for case in _picked(cases, options.half, options.every):
            for name, strategy in chosen.items():
                start = time.perf_counter()
                answer = strategy(case)
                tallies[name].add(case, answer, time.perf_counter() - start)
    _print(tallies)
    if options.calibration:
        _print_calibration(tallies)


def _chosen(names: list[str] | None) -> dict[str, Strategy]:
    chosen = {}
    for name, strategy in strategies().items():
        if names and name not in names:
            continue
        if isinstance(strategy, str):
            print(f"skipped: {name} ({strategy})")
        else:
            chosen[name] = strategy
    return chosen


def _picked(cases: Iterator[Case | str], half: str | None, every: int) -> Iterator[Case]:
    number = 0
    for case in cases:
        if isinstance(case, str):
            print(f"skipped: {case}")
        elif half in (None, case.half):
            number += 1
            if number % every == 0:
                yield case


def _grades(case: Case, answer: Answer) -> Iterator[tuple[str, Grade]]:
    trees = Tree(case.reader, case.old_base.tree), Tree(case.reader, case.new_base.tree)
    for truth in case.truths:
        entries = trees[0].entry(truth.source), trees[1].entry(truth.path)
        base, upstream = (case.reader.read(e.oid, "blob") if e else b"" for e in entries)
        yield truth.path, grade(base, upstream, truth.data, answer.files.get(truth.path))


def _print(tallies: dict[str, Tally]) -> None:
    head = ("strategy", "carried", "right", "order", "wrong", "unflagged", "conflict", "whole", "s")
    print(("{:20}" + "{:>10}" * (len(head) - 1)).format(*head))
    for name, tally in tallies.items():
        total = sum(tally.grades.values())
        counts = [tally.grades[each] for each in Grade]
        unflagged = tally.grades[Grade.WRONG] - tally.flagged[Grade.WRONG]
        shares = [total - counts[-1], *counts[:3], unflagged, counts[-1]]
        cells = [f"{share / max(1, total):.1%}" for share in shares]
        whole = tally.whole[Grade.RIGHT] / max(1, sum(tally.whole.values()))
        cells += [f"{whole:.1%}", f"{tally.seconds:.1f}"]
        print(("{:20}" + "{:>10}" * len(cells)).format(name, *cells))
    first = next(iter(tallies.values()))
    print(f"{sum(first.grades.values())} files of {first.cases} patches")


def _note(bands: Bands, said: float, *, is_so: bool) -> None:
    bands[next(each for each in _STEPS if said < each)].append((said, is_so))


def _print_calibration(tallies: dict[str, Tally]) -> None:
    for name, tally in tallies.items():
        for what, bands in (("these lines", tally.sure), ("these bytes", tally.same)):
            if bands:
                print(f"{name}, {what}: band, files, said, right")
            low = 0.0
            for high in _STEPS:
                rows = bands[high]
                if rows:
                    said, right = (sum(column) / len(rows) for column in zip(*rows, strict=True))
                    print(
                        f"  {low:.0%} to {min(high, 1):.0%}: {len(rows)}, {said:.0%}, {right:.0%}"
                    )
                low = high


if __name__ == "__main__":
    main()
