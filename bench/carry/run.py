"""`python -m bench.carry.run CASES --mirrors DIR`: how often each way of carrying is right.

For each strategy and each language: what it carried, how much of that is right, right but for an
order that need not matter, or wrong, what it left in conflict, and the time. Of ours also how much
was flagged for review, and wrong without a flag.

`--subset each` is the table of docs/carry.md: every file whose change stayed the same, ours beside
the other programs, with a row for each set of cases. A set is all files of cases whose names begin
alike, up to a hyphen (git-merges.json, git-reverts.json), and one of the other subsets.

`--subset whole` grades all files of each patch, also those that the maintainers reworked or
dropped, and then the patch as a whole. `--calibration` tells how often what we are so sure of is
right, its lines and its bytes: by bands, and by the reasons that are given.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import TypeAlias

from bench.carry.cases import Case, Kept, read_cases
from bench.carry.grading import (
    ALL,
    Grade,
    Whole,
    grade,
    grade_whole,
    interval,
    language,
    languages,
)
from bench.carry.strategies import COMPARED, PROPOSALS, Answer, Strategy, strategies
from patchkit.model.diff_parse import split_lines
from patchkit.model.mail import parse_patch
from patchkit.model.outcome import FileResult, Status
from patchkit.model.patch import Hunk
from patchkit.model.tree import Tree

_STEPS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 1.01)
_EACH = ("bumps", "trivial", "hard", "easy")  # the subsets of files whose change stayed the same
_FEW = 10  # files: a share of less says nothing
# What differs from case to case in a reason: places, commits, names.
_PLACE = re.compile(r"^line \d+: |\s*\(.*\)|:.*$|\b\d+\b|'.*?'")


@dataclass(frozen=True)
class Graded:
    """One file of a case as a strategy has it; `outcome` is what ours says of it."""

    case: str
    path: str
    language: str
    kept: Kept
    again: bool
    grade: Grade
    outcome: FileResult | None
    taken: bool = False  # upstream has at least 90 % of the lines that the patch adds

    @property
    def called(self) -> bool:
        """Whether ours says that upstream has it: absorbed, or 90 % of the lines."""
        outcome = self.outcome
        if outcome is None:
            return False
        part = outcome.upstream
        return outcome.status is Status.ABSORBED or (
            part is not None and 0.9 * part.added <= part.known
        )

    @property
    def silent(self) -> bool:
        """Whether it is wrong and nobody is told."""
        return self.grade is Grade.WRONG and not (self.outcome is not None and self.outcome.review)


Rows: TypeAlias = Sequence[Graded]


@dataclass
class Tally:
    """The grades of a strategy: the files of each case."""

    patches: list[list[Graded]] = field(default_factory=list)
    pure: list[bool] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, case: Case, answer: Answer, seconds: float) -> None:
        """Grade one case."""
        self.seconds += seconds
        self.patches.append(list(_graded(case, answer)))
        self.pure.append(case.whole)

    @property
    def files(self) -> list[Graded]:
        """Each file once, however many cases have it."""
        return [each for patch in self.patches for each in patch if not each.again]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path, nargs="+", help="case files")
    parser.add_argument(
        "--mirrors",
        type=Path,
        nargs="+",
        required=True,
        help="folders of bare clones, OWNER+NAME/repo",
    )
    parser.add_argument(
        "--subset", default="", help="bumps, trivial; hard, easy; each; moved; any, whole"
    )
    parser.add_argument("--strategy", action="append", help="only this one; may be repeated")
    parser.add_argument("--half", choices=("develop", "validate"), help="only half of the cases")
    parser.add_argument("--every", type=int, default=1, help="only each so many-th case")
    parser.add_argument("--calibration", action="store_true", help="how right we are when so sure")
    parser.add_argument("--files", type=Path, help="write there what became of each file, as JSON")
    options = parser.parse_args(arguments)
    subset = options.subset or ("bumps" if "bump" in options.cases[0].name else "hard")
    names = options.strategy or ([PROPOSALS] if options.calibration else None)
    chosen = _chosen(names or (COMPARED if subset == "each" else None))
    sets: defaultdict[str, dict[str, Tally]] = defaultdict(
        lambda: {name: Tally() for name in chosen}
    )
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as work:
        read = product(options.cases, _EACH if subset == "each" else (subset,))
        for number, (path, one) in enumerate(read):
            name = f"{path.stem.partition('-')[0]}, {one}" if subset == "each" else subset
            cases = read_cases(path, options.mirrors, Path(work, str(number)), one)
            for case in _picked(cases, options.half, options.every):
                for strategy, tally in sets[name].items():
                    start = time.perf_counter()
                    answer = chosen[strategy](case)
                    tally.add(case, answer, time.perf_counter() - start)
    if options.files:
        options.files.write_text(json.dumps(list(_each_file(sets)), indent=0))
    if subset == "each":
        _print_sets(sets)
        return
    tallies = sets[subset]
    _print_files(tallies, whole=subset == "whole")
    (_print_whole if subset == "whole" else _print_pure)(tallies)
    if options.calibration:
        for name, tally in tallies.items():
            print_calibration(name, tally.files)


def _chosen(names: Sequence[str] | None) -> dict[str, Strategy]:
    chosen = {}
    for name, strategy in strategies().items():
        if (names and name not in names) or (not names and name == PROPOSALS):
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


def _graded(case: Case, answer: Answer) -> Iterator[Graded]:
    trees = Tree(case.reader, case.old_base.tree), Tree(case.reader, case.new_base.tree)
    made = parse_patch(case.patch, name="x").changes
    changes = {str(each.old_path): each.hunks for each in made}
    for truth in case.truths:
        entries = trees[0].entry(truth.source), trees[1].entry(truth.path)
        base, upstream = (case.reader.read(e.oid, "blob") if e else b"" for e in entries)
        if truth.path not in answer.files:
            given = Grade.CONFLICT
        else:
            given = grade(base, upstream, truth.data, answer.files[truth.path])
        outcome = answer.outcomes.get(truth.path)
        taken = has_most(base, upstream, changes.get(truth.source, ()))
        about = case.id, truth.path, language(truth.path), truth.kept, truth.again
        yield Graded(*about, given, outcome, taken)


def has_most(base: bytes, upstream: bytes, hunks: Sequence[Hunk]) -> bool:
    """Whether 90 % of the lines that hunks add are new upstream; white space does not count."""
    rows = [line[1:] for hunk in hunks for line in hunk.lines if line[:1] == b"+"]
    added = Counter(filter(None, map(_bare, rows)))
    old, new = (Counter(map(_bare, split_lines(text))) for text in (base, upstream))
    return 0 < 0.9 * added.total() <= (added & (new - old)).total()


def _bare(line: bytes) -> bytes:
    return b"".join(line.split())


# Tables: a row for each strategy and language.


def _print_sets(sets: Mapping[str, Mapping[str, Tally]]) -> None:
    """A row for each set and language: right, and wrong, of each strategy."""
    first, *others = next(iter(sets.values()), {"nothing": Tally()})
    _line("", "files", first, "order", "wrong", "unflagged", "conflict", *others)
    _line(*["---"] * (7 + len(others)))
    for name, tallies in sets.items():
        groups = languages(each.language for each in tallies[first].files)
        for group in groups if len(groups) > 2 else groups[:1]:
            shares: list[str] = []
            for strategy, tally in tallies.items():
                some = [each for each in tally.files if group in (ALL, each.language)]
                given = Counter(each.grade for each in some)
                right, wrong = (_share(given[g], len(some)) for g in (Grade.RIGHT, Grade.WRONG))
                if strategy == first:
                    order = _share(given[Grade.ORDER] + given[Grade.SPACING], len(some))
                    silent = _share(sum(each.silent for each in some), len(some))
                    conflict = _share(given[Grade.CONFLICT], len(some))
                    shares += [str(len(some)), right, order, wrong, silent, conflict]
                else:
                    shares.append(f"{right} ({wrong})")
            _line(name if group == ALL else f"- {group}", *shares)


def _line(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |")


def _each_file(sets: Mapping[str, Mapping[str, Tally]]) -> Iterator[dict[str, object]]:
    """Every file once: its grade by each strategy, and whether ours flags it."""
    for name, tallies in sets.items():
        for rows in zip(*(tally.files for tally in tallies.values()), strict=True):
            one = rows[0]
            grades = {way: row.grade.value for way, row in zip(tallies, rows, strict=True)}
            flagged = one.outcome is not None and one.outcome.review
            about = {"set": name, "case": one.case, "path": one.path, "language": one.language}
            yield {**about, "grades": grades, "flagged": flagged}


def _print_files(tallies: dict[str, Tally], *, whole: bool) -> None:
    """Per file; `whole`: by what the maintainers did with it."""
    _row("files", *("of", "carried", "right", "spacing", "order", "wrong", "unflagged", "conflict"))
    for name, tally in tallies.items():
        for kept in Kept if whole else (None,):
            rows = [each for each in tally.files if kept in (None, each.kept)]
            for group in languages(each.language for each in rows):
                some = [each for each in rows if group in (ALL, each.language)]
                counts = [sum(each.grade is g for each in some) for g in Grade]
                silent = sum(each.silent for each in some)
                shares = [len(some) - counts[-1], *counts[:4], silent, counts[-1]]
                label = f"{name}, {kept.value}" if kept is not None else name
                _row(f"{label}, {group}", len(some), *(_share(n, len(some)) for n in shares))
        print(f"{name}: {len(tally.patches)} patches, {tally.seconds:.1f} s")


def _print_pure(tallies: dict[str, Tally]) -> None:
    """Whole patches, of those that the maintainers kept as they were in every file."""
    _row("patches all of whose files stayed the same", "of", "right")
    for name, tally in tallies.items():
        found = [patch for patch, pure in zip(tally.patches, tally.pure, strict=True) if pure]
        for group, some in _patches(found):
            right = sum(all(each.grade is Grade.RIGHT for each in patch) for patch in some)
            _row(f"{name}, {group}", len(some), _share(right, len(some)))


def _print_whole(tallies: dict[str, Tally]) -> None:
    """All patches, by the most that the maintainers did to one of its files."""
    _row("whole patches", "of", *(each.value for each in Whole))
    for name, tally in tallies.items():
        for most in (None, *Kept):
            chosen = [p for p in tally.patches if p and most in (None, _most(p))]
            for group, some in _patches(chosen):
                given = [grade_whole((e.grade, e.silent) for e in patch) for patch in some]
                shares = (_share(given.count(each), len(given)) for each in Whole)
                done = "all" if most is None else f"at most {most.value}"
                _row(f"{name}, {done}, {group}", len(some), *shares)
        taken = [each for each in tally.files if each.taken]
        if any(each.outcome is not None for each in taken):
            said = sum(each.called for each in taken)
            print(f"{name}: of {len(taken)} files that upstream has to 90 % {said} are called so")


def _most(patch: Rows) -> Kept:
    return max((each.kept for each in patch), key=list(Kept).index)


def _patches(patches: list[list[Graded]]) -> Iterator[tuple[str, list[list[Graded]]]]:
    """The patches by language; one of several languages counts with all only."""
    own = [{each.language for each in patch} for patch in patches]
    for group in languages(each for names in own if len(names) == 1 for each in names):
        yield (
            group,
            [
                patch
                for patch, names in zip(patches, own, strict=True)
                if group == ALL or names == {group}
            ],
        )


def print_calibration(name: str, files: Iterable[Graded]) -> None:
    """How often what was said with some confidence was so, by bands and by reasons."""
    said = [e for e in files if e.outcome is not None and e.grade is not Grade.CONFLICT]
    for what, number, is_so in _NUMBERS:
        _row(f"{name}: {what}", "files", "said", "right", "off", "95 %")
        for group in languages(each.language for each in said):
            some = [each for each in said if group in (ALL, each.language)]
            for low, high in pairwise(_STEPS):
                band = [each for each in some if low <= number(each.outcome) < high]
                _said(f"{group}, {low:.0%} to {min(high, 1):.0%}", band, number, is_so)
    reasons: defaultdict[str, list[Graded]] = defaultdict(list)
    for each in said:
        given = dict.fromkeys(map(told, each.outcome.reasons if each.outcome else ()))
        for reason in given or ("no reason",):
            reasons[reason].append(each)
            if len(given) == 1:
                reasons[f"{reason}, and nothing else"].append(each)
    for what, number, is_so in _NUMBERS:
        _row(f"{name}: {what}, by reason", "files", "said", "right", "off", "95 %")
        for reason, some in sorted(reasons.items(), key=lambda item: item[0]):
            if len(some) >= _FEW:
                _said(reason, some, number, is_so)


def told(reason: str) -> str:
    """A reason without what differs from file to file."""
    return " ".join(_PLACE.sub("", reason).split())


_Number: TypeAlias = Callable[[FileResult | None], float]
_Is: TypeAlias = Callable[[Graded], bool]


def _lines(outcome: FileResult | None) -> float:
    return outcome.confidence if outcome is not None else 0.0


def _bytes(outcome: FileResult | None) -> float:
    return outcome.same_bytes if outcome is not None else 0.0


def _right_lines(each: Graded) -> bool:
    return each.grade in (Grade.RIGHT, Grade.SPACING, Grade.ORDER)


def _right_bytes(each: Graded) -> bool:
    return each.grade is Grade.RIGHT


_NUMBERS: tuple[tuple[str, _Number, _Is], ...] = (
    ("these lines", _lines, _right_lines),
    ("these bytes", _bytes, _right_bytes),
)


def _said(label: str, rows: Rows, number: _Number, is_so: _Is) -> None:
    if rows:
        said = sum(number(each.outcome) for each in rows) / len(rows)
        found = sum(map(is_so, rows))
        right = found / len(rows)
        least, most = interval(found, len(rows))
        told = f"{said:.0%}", f"{right:.0%}", f"{100 * (right - said):+.0f}"
        _row(f"  {label}", len(rows), *told, f"{least:.0%}-{most:.0%}")


def _share(number: int, total: int) -> str:
    return f"{number / max(1, total):.1%}"


def _row(label: str, *cells: object) -> None:
    print(f"{label:64}" + "".join(f"{cell!s:>12}" for cell in cells))


if __name__ == "__main__":
    main()
