"""`python -m bench.carry.calibrate CASES... --mirrors DIR...`: what each word was worth.

Every file that both sides changed is merged, and counted by what carried it, a bump, a pick, a
merge or rebase, a distribution's next release, and by the word that is said of it. Of files whose
change people kept it tells how many were the same to the byte, the same lines in another order, and
wrong, with the 95 % interval of the first (Wilson, 1927); then of all files, also where people
dropped or reworked the change. Where git's own merge is clean files are counted apart. No history
is asked, so that what upstream took is merged as well. `--half` takes half of the cases.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.carry.cases import Case, Kept, read_cases
from bench.carry.grading import Grade, grade, interval
from bench.carry.strategies import sides_of
from patchkit.carry.carried import certainty_of
from patchkit.model.merging.merge import merge_file
from patchkit.model.merging.scopes import misplaced
from patchkit.model.outcome import Certainty

_ALL = "all"
_PICKS = ("picks", "cherry")
_DISTRIBUTIONS = ("kept", "gone")
_BRANCHES = ("merges", "rebases", "reverts", "merge", "rebase")


def carrier(case: Case) -> str:
    """What carried a change."""
    if case.group in _PICKS:
        return "picks"
    if case.group in _BRANCHES:
        return "merges and rebases"
    return "distributions" if case.group in _DISTRIBUTIONS else "bumps"


def read_words(case: Case) -> Iterator[tuple[str, Kept, Grade]]:
    """(word, what people did with the change, how right the merge is) of the files of a case."""
    for truth, base, upstream, patched in sides_of(case):
        if truth.again or len({base, upstream, patched}) < len(("base", "upstream", "patched")):
            continue
        merge = merge_file(truth.path, base, upstream, patched, patch_first=case.merges)
        if merge is not None and merge.data is not None:
            certainty = certainty_of(merge)
            elsewhere = misplaced(
                *(base, patched, upstream, merge.data), path=truth.path, edits=merge.edits
            )
            if elsewhere:  # a merge of our own is only proposed then
                certainty = Certainty.LOOK if merge.clean else Certainty.DOUBTFUL
            word = certainty.value if certainty is not None else "nothing said"
            given = grade(base, upstream, truth.data, merge.data)
            yield (word if merge.three.conflicts else f"git clean, {word}"), truth.kept, given


def main(arguments: Sequence[str] | None = None) -> None:
    """Merge and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path, nargs="+", help="case files")
    parser.add_argument("--mirrors", type=Path, nargs="+", required=True, help="bare clones")
    parser.add_argument("--half", choices=("develop", "validate"), help="only half of the cases")
    options = parser.parse_args(arguments)
    found: defaultdict[tuple[str, str], list[tuple[Kept, Grade]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as work:
        for number, path in enumerate(options.cases):
            for case in read_cases(path, options.mirrors, Path(work, str(number)), "any"):
                if isinstance(case, str):
                    print(f"skipped: {case}")
                elif options.half in (None, case.half):
                    for word, kept, given in read_words(case):
                        for kind in (carrier(case), _ALL):
                            found[kind, word].append((kept, given))
    print("| carrier | word | kept | right | 95 % | order | wrong | all | right |")
    print("|---" * 9 + "|")
    for kind, word in sorted(found, key=_order):
        print(f"| {kind} | {word} | {_row(found[kind, word])} |")


def _order(key: tuple[str, str]) -> tuple[bool, str, bool, list[bool]]:
    kind, word = key
    ends = [word.endswith(each.value) for each in (*Certainty,)]
    return kind == _ALL, kind, word.startswith("git"), [not each for each in ends]


def _row(files: Sequence[tuple[Kept, Grade]]) -> str:
    kept = Counter(given for what, given in files if what is Kept.SAME)
    same, right = kept.total(), kept[Grade.RIGHT]
    low, high = interval(right, same) if same else (0.0, 1.0)
    order = kept[Grade.ORDER] + kept[Grade.SPACING]
    every = sum(given is Grade.RIGHT for _, given in files) / len(files)
    cells = same, f"{right / max(1, same):.1%}", f"{low:.0%}-{high:.0%}", order, kept[Grade.WRONG]
    return " | ".join(map(str, (*cells, len(files), f"{every:.1%}")))


if __name__ == "__main__":
    main()
