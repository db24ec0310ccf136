"""`python -m bench.carry.calibrate [FIT...] --test TEST... --mirrors DIR`: what a score is worth.

Reads case files of `bench.carry.mine`, one history each, and merges every file that both sides
changed. Printed is the table of `patchkit/carry/carried.py`: up to which score which share of files
was right, by lines and by bytes. Then how true it is, by bands: on histories that are not in the
fit, and on each one of the fit by a table of all others. Without FIT it is the table that the
engine has now that is tested.

A share is fitted by pool-adjacent-violators (Ayer and others, 1955): the monotone steps nearest to
what was right, each history weighted by the root of its size. Steps of few files, or nearly alike,
are joined; but none over the score from which on a merge is written, so that the fit says how right
it is and the rules whether it is one. A band is told with its 95 % interval (Wilson, 1927): it can
be judged within 5 points only if that is not much wider.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter, mul
from pathlib import Path
from typing import TypeAlias

from bench.carry.cases import Case, read_cases
from bench.carry.grading import Grade, grade, interval
from bench.carry.strategies import sides_of
from patchkit.carry.carried import LIKELY, Confidence, score_of, worth_of
from patchkit.model.merging.merge import merge_file

BANDS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 1.01)
# Of 200 files a share is known to 7 points, of few histories to less: what is nearer is one step.
_FEWEST = 200
_NEAR = 0.12


@dataclass(frozen=True)
class Scored:
    """A merged file of a history: its score, and whether the lines and the bytes were right."""

    history: str
    score: Confidence
    lines: bool
    same_bytes: bool


@dataclass(frozen=True)
class Step:
    """Scores from `least` to `most`, and the share of files that were right among them."""

    least: float
    most: float
    files: int
    weight: float
    share: float

    def joined(self, other: Step) -> Step:
        """This step and the next one as one."""
        weight = self.weight + other.weight
        share = (self.share * self.weight + other.share * other.weight) / weight
        return Step(self.least, other.most, self.files + other.files, weight, share)


#: (score, right, weight) of each file.
Points: TypeAlias = Sequence[tuple[float, bool, float]]
Steps: TypeAlias = Sequence[Step]
Tables: TypeAlias = Mapping[str, Steps]
_Number: TypeAlias = Callable[[Scored], tuple[float, bool]]


def _lines(each: Scored) -> tuple[float, bool]:
    return each.score.lines, each.lines


def _bytes(each: Scored) -> tuple[float, bool]:
    return each.score.same_bytes, each.same_bytes


_NUMBERS: dict[str, _Number] = {"lines": _lines, "bytes": _bytes}


def fit(points: Points) -> list[Step]:
    """The monotone steps through what was right, joined where they are too small or too near."""
    # Invariant: shares rise from step to step; two neighbours that do not are pooled.
    steps: list[Step] = []
    for score, some in groupby(sorted(points), key=itemgetter(0)):
        rights, weights = zip(*((right, weight) for _, right, weight in some), strict=True)
        weight = sum(weights)
        share = sum(map(mul, rights, weights)) / weight
        steps.append(Step(score, score, len(rights), weight, share))
        while len(steps) > 1 and steps[-2].share >= steps[-1].share:
            last = steps.pop()
            steps[-1] = steps[-1].joined(last)
    while len(steps) > 1 and (at := _weakest(steps)) is not None:
        steps[at : at + 2] = [steps[at].joined(steps[at + 1])]
    return steps


def _weakest(steps: Steps) -> int | None:
    """The first of two steps to join; None where all are large enough and apart."""
    gaps = [other.share - one.share for one, other in pairwise(steps)]
    small = min(range(len(steps)), key=lambda at: steps[at].files)
    if steps[small].files < _FEWEST:
        beside = [at for at in (small - 1, small) if 0 <= at < len(gaps)]
        return min(beside, key=gaps.__getitem__)
    nearest = min(range(len(gaps)), key=gaps.__getitem__)
    return nearest if gaps[nearest] < _NEAR else None


def said(steps: Steps, score: float) -> float:
    """The share that the steps give a score."""
    last = steps[-1].share if steps else 0.0
    return next((each.share for each in steps if score <= each.most), last)


def read_scored(path: Path, mirrors: Path) -> Iterator[Scored]:
    """The merged files of a case file; its name is that of the history."""
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as work:
        for case in read_cases(path, [mirrors], Path(work), "any"):
            if isinstance(case, Case):
                yield from _scored(path.stem, case)


def _scored(history: str, case: Case) -> Iterator[Scored]:
    for truth, base, upstream, patched in sides_of(case):
        if truth.again or len({base, upstream, patched}) < len(("base", "upstream", "patched")):
            continue
        merge = merge_file(truth.path, base, upstream, patched, patch_first=case.merges)
        if merge is None or merge.data is None or (merge.clean and not merge.doubts):
            continue
        given = grade(base, upstream, truth.data, merge.data)
        lines = given in (Grade.RIGHT, Grade.SPACING, Grade.ORDER)
        yield Scored(history, score_of(merge), lines, given is Grade.RIGHT)


def fitted(files: Sequence[Scored], number: _Number) -> list[Step]:
    """The steps of one number, each history weighted by the root of its size."""
    sizes = Counter(each.history for each in files)
    points = [(*number(each), sizes[each.history] ** -0.5) for each in files]
    if number is not _lines:
        return fit(points)
    below, above = ([p for p in points if (p[0] < LIKELY) is side] for side in (True, False))
    return [*fit(below), *fit(above)]


def tables_of(files: Sequence[Scored]) -> Tables:
    """The steps of both numbers.

    Where the lines' step is the lower one it is said of the bytes, too (`worth`): such files tell
    nothing of the bytes' own step, which is fitted to the others.
    """
    lines, first = fitted(files, _lines), fitted(files, _bytes)
    most = max((each.share for each in lines), default=0.0)
    asked = [
        each
        for each in files
        if said(lines, each.score.lines) >= min(most, said(first, each.score.same_bytes))
    ]
    return {"lines": lines, "bytes": fitted(asked, _bytes)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, print the table, check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fit", type=Path, nargs="*", help="case files, one history each")
    parser.add_argument("--test", type=Path, nargs="*", default=[], help="of other histories")
    parser.add_argument("--mirrors", type=Path, required=True, help="bare clones OWNER+NAME/repo")
    options = parser.parse_args(arguments)
    files, others = (
        [each for path in paths for each in read_scored(path, options.mirrors)]
        for paths in (options.fit, options.test)
    )
    tables = tables_of(files)
    rest = {
        history: tables_of([each for each in files if each.history != history])
        for history in {each.history for each in files}
    }
    for what, number in _NUMBERS.items():
        print(f"{what}: {len(files)} files of {len(rest)} histories")
        for step in tables[what]:
            print(f"    ({step.most:.2f}, {step.share:.2f}),  # {step.files} files")
        worths = ((worth(tables, e) if files else engines_worth(e), e) for e in others)
        _print_bands(f"{what}, other histories", [(w[what], number(e)[1]) for w, e in worths])
        told = [(worth(rest[each.history], each)[what], number(each)[1]) for each in files]
        _print_bands(f"{what}, each history by a table of the others", told)


def worth(tables: Tables, file: Scored) -> dict[str, float]:
    """What the steps say of a file: never more of its bytes than of its lines."""
    lines, same_bytes = (said(tables[what], number(file)[0]) for what, number in _NUMBERS.items())
    return {"lines": lines, "bytes": min(lines, same_bytes)}


def engines_worth(file: Scored) -> dict[str, float]:
    """The same by the steps that the engine has."""
    sure = worth_of(file.score)
    return {"lines": sure.lines, "bytes": sure.same_bytes}


def _print_bands(what: str, told: Iterable[tuple[float, bool]]) -> None:
    rows = list(told)
    print(f"{what}: {len(rows)} files\n  {'band':16}{'files':>8}{'said':>8}{'right':>8}  interval")
    for low, high in pairwise(BANDS):
        band = [each for each in rows if low <= each[0] < high]
        if band:
            right = sum(each for _, each in band)
            mean = sum(each for each, _ in band) / len(band)
            first, last = interval(right, len(band))
            name = f"{low:.0%} to {min(high, 1):.0%}"
            shares = f"{mean:8.0%}{right / len(band):8.0%}  {first:.0%} to {last:.0%}"
            print(f"  {name:16}{len(band):8}{shares}")


if __name__ == "__main__":
    main()
