"""A folder whose files' names say in which order its patches apply.

Names are compared as `LC_ALL=C` sorts them, so that `git am FOLDER/*` and scripts that go through
the folder take the patches as they are taken here; or by the number that each begins with. A new
patch, or one that moves, gets a number that puts it into its place: all others keep theirs.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import Any

from patchkit.errors import BadInputError, Problem

#: `0007-fix.patch`: a number, and what parts it from the words.
_NUMBERED = re.compile(r"\A(\d{1,9})([-_. ]+)(?=[A-Za-z0-9_])")
#: How a first patch is numbered, as by `git format-patch`.
_FIRST = "0001-a"


def in_order(names: Collection[str], order: str, *, where: str) -> tuple[str, ...]:
    """Names of patches in the order that the manifest declares: by number, or by name or path.

    BadInputError with every name that has no number where that is asked for; `where` declares it.
    """
    bare = sorted(name for name in names if order == "number" and not _NUMBERED.match(name))
    if bare:
        hint = "give it one, or declare order: name"
        raise BadInputError(*(Problem(f"{n} begins with no number", where, hint) for n in bare))
    return tuple(sorted(names, key=lambda name: _rank(name, order)))


def are_numbered(names: Collection[str]) -> bool:
    """Whether a new patch beside these gets a number, too."""
    return all(_NUMBERED.match(name) for name in names)


def new_names(
    wanted: Sequence[str], known: Collection[str], order: str, *, anew: bool = False
) -> dict[str, str]:
    """What patches are to be called so that a folder gives them in the order `wanted`.

    `known` are in the folder, and numbered: as many of them as stand in order already keep their
    names. With `anew` all numbers are written again. BadInputError where none is free between two
    that stay.
    """
    numbers = {name: int(found[1]) for name in wanted if (found := _NUMBERED.match(name))}
    step = gcd(*numbers.values()) or 1
    like = next(iter(numbers), _FIRST)
    called: dict[str, str] = {}
    if anew:
        first = min(numbers.values(), default=step)
        called = {n: _called(n, first + step * at, like) for at, n in enumerate(wanted)}
    kept = [] if anew else _in_order_already([*numbers], order)
    for run, before, behind in () if anew else _gaps(wanted, kept):
        low = numbers.get(before, 0)
        high = numbers[behind] if behind else low + step * (len(run) + 1)
        if high - low <= len(run):
            raise _no_place(run[0], f" between {before or 'the start'} and {behind}")
        for at, name in enumerate(run, 1):
            number = low + (high - low) * at // (len(run) + 1)
            called[name] = _called(name, number, before or like)
    names = [called.get(name, name) for name in wanted]
    for one, other in pairwise(names):
        if _rank(one, order) >= _rank(other, order):
            raise _no_place(other, f" behind {one}")
    return {old: new for old, new in called.items() if old != new}


def _rank(name: str, order: str) -> Any:
    """What names are compared by."""
    found = _NUMBERED.match(name) if order == "number" else None
    return (int(found[1]), name) if found else name


def _called(name: str, number: int, like: str) -> str:
    """The name with another number, as wide and set apart as that of another name."""
    found = _NUMBERED.match(like)
    assert found is not None
    return f"{number:0{len(found[1])}d}{found[2]}{_NUMBERED.sub('', name, count=1)}"


def _in_order_already(names: Sequence[str], order: str) -> set[str]:
    """As many of the names as stand in their order, by patience sorting.

    Invariant: `chains[n]` ends in the least name that a chain of n + 1 names in order can end in.
    """
    ranks: list[Any] = []
    chains: list[tuple[str, ...]] = []
    for name in names:
        rank = _rank(name, order)
        at = bisect_left(ranks, rank)
        ranks[at : at + 1] = [rank]
        chains[at : at + 1] = [(*(chains[at - 1] if at else ()), name)]
    return set(chains[-1]) if chains else set()


def _gaps(wanted: Sequence[str], kept: Collection[str]) -> Iterator[tuple[list[str], str, str]]:
    """Names that get a number, each run with the names that stay before and behind it, or ""."""
    before, run = "", list[str]()
    for name in (*wanted, ""):
        if name and name not in kept:
            run.append(name)
            continue
        if run:
            yield run, before, name
        before, run = name, []


def _no_place(name: str, where: str) -> BadInputError:
    hint = "--canonical of refresh, move and split writes all numbers anew"
    return BadInputError(Problem(f"no number is free for {name}{where}", hint=hint))
