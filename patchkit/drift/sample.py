"""Versions of files that stand for others: a walk carries few of the thousands that it meets.

Carrying a change to one version of its file takes a tenth of a second, and most versions differ
where the patches have nothing to do. Invariant: a version is carried itself, or it lies between two
of the same run that were carried and came to the same. A run are versions that follow each other on
which the same hunks have their lines, before or after the patch, and which have the same paths; so
what was broken and then mended begins a new run. Inside a run the rest is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

from msgspec import Struct

from patchkit.model.objects import TreeEntry
from patchkit.model.outcome import Status
from patchkit.model.patch import FileChange

#: What stands at each path; None for nothing.
State: TypeAlias = Mapping[str, TreeEntry | None]
#: (patch, its change), both counted from 0.
ChangeNumber: TypeAlias = tuple[int, int]
#: Position of the line -> what its commit leaves at paths that it changes.
Touches: TypeAlias = dict[int, dict[str, TreeEntry | None]]
_AS_IT_IS = frozenset((Status.UNCHANGED, Status.SHIFTED, Status.EMPTY))
#: Runs of so few versions are carried whole: halving saves nothing there.
_SHORT = 6


class ChangeGroup(Struct, frozen=True):
    """Changes that may come to stand at the same `paths`, in the order of the series."""

    numbers: tuple[ChangeNumber, ...]  # (patch, file change) of each, both from 0
    changes: tuple[FileChange, ...]
    paths: frozenset[str]


class FileVersion(Struct, frozen=True):
    """What stands at a group's paths from a position of the line on."""

    position: int
    state: dict[str, TreeEntry | None]  # path -> entry, None for no file


#: What tells versions apart, one after the other: one never stands for another with another mark.
MarkVersions: TypeAlias = Callable[[ChangeGroup, Sequence[FileVersion]], Iterable[object]]
#: What becomes of a group's changes on a version, each on what those before it leave.
CarryGroup: TypeAlias = Callable[[ChangeGroup, FileVersion], object]


def grouped(
    rows: Sequence[tuple[ChangeNumber, FileChange, frozenset[str]]],
) -> tuple[ChangeGroup, ...]:
    """Changes with the paths at which they may come to stand, joined where they share some."""
    groups: list[ChangeGroup] = []
    for number, change, paths in rows:
        near = [each for each in groups if not paths.isdisjoint(each.paths)]
        groups = [each for each in groups if each not in near]
        pairs = [pair for each in near for pair in zip(each.numbers, each.changes, strict=True)]
        pairs.append((number, change))
        pairs.sort(key=lambda pair: pair[0])
        union = paths.union(*(each.paths for each in near))
        groups.append(ChangeGroup(tuple(n for n, _ in pairs), tuple(c for _, c in pairs), union))
    return tuple(groups)


def thin_out(
    touches: Touches,
    start: State,
    group: ChangeGroup,
    *,
    mark_all: MarkVersions,
    carry: CarryGroup | None,
) -> None:
    """Take out of `touches` the versions of a group's files for which an earlier one stands.

    Without `carry` all of one mark come to the same.
    """
    versions = list(_versions(touches, start, group.paths))
    marks = list(mark_all(group, versions))
    first = 0
    kept = {0}
    while first < len(versions):
        last = first
        while last + 1 < len(versions) and marks[last + 1] == marks[first]:
            last += 1
        kept.add(first)
        if carry is not None:
            kept.update(_news(versions, first, last, partial(carry, group)))
        first = last + 1
    _rewrite(touches, versions, kept)


def _versions(touches: Touches, start: State, paths: frozenset[str]) -> Iterator[FileVersion]:
    state = {path: start.get(path) for path in sorted(paths)}
    yield FileVersion(0, state)
    for position in sorted(touches):
        news = {path: e for path, e in touches[position].items() if path in paths}
        if news:
            state = {**state, **news}
            yield FileVersion(position, state)


def _news(
    versions: Sequence[FileVersion], first: int, last: int, carry: Callable[[FileVersion], object]
) -> Iterator[int]:
    """The versions of a run from which on something else becomes of the changes, by halving."""
    told = cache(lambda at: carry(versions[at]))
    whole = last - first < _SHORT
    todo = [(at, at + 1) for at in range(first, last)] if whole else [(first, last)]
    while todo:
        low, high = todo.pop()
        if told(low) == told(high):
            continue
        middle = (low + high) // 2
        if middle == low:
            yield high
        else:
            todo += [(low, middle), (middle, high)]


def _rewrite(touches: Touches, versions: Sequence[FileVersion], kept: Collection[int]) -> None:
    """Leave of the versions those `kept`; the state between them is that of the one before."""
    shown = versions[0].state
    for number, version in enumerate(versions[1:], 1):
        row = touches[version.position]
        for path in version.state:
            row.pop(path, None)
        if number in kept:
            row |= {path: e for path, e in version.state.items() if e != shown[path]}
            shown = version.state


def alike(status: Status, *, review: bool, paths: Collection[str]) -> tuple[object, ...]:
    """What of a verdict must be the same on two versions for those between them to have it."""
    return ("fits" if status in _AS_IT_IS else status.value, review, tuple(sorted(paths)))
