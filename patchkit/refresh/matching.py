"""Which commit of the stack is which patch of the series.

The trailer that `apply` put into the message says it. Where a commit has lost it (a message typed
anew), the patch is found again if one that is missing does the same, has the same subject, or stood
at the same place and touches the same files. What is left is a new patch, named for its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from patchkit.model.names import new_name
from patchkit.stack import StackCommit


class Known(Struct, frozen=True):
    """A patch of the series as it was applied: its diff in canonical form, "" unless it applied."""

    name: str
    subject: str
    diff: bytes
    files: frozenset[str]


class Matching(Struct, frozen=True):
    """`names[i]` is the patch of commit i, in `added` if it is a new one; `dropped` have none."""

    names: tuple[str, ...]
    added: frozenset[str]
    dropped: tuple[str, ...]


class Look(Struct, frozen=True):
    """What a commit without a name does."""

    diff: bytes
    files: frozenset[str]


def match_commits(
    commits: Sequence[StackCommit],
    known: Sequence[Known],
    taken: Collection[str],
    look: Callable[[int], Look],
) -> Matching:
    """Name every commit; `taken` are names that no new patch may have, whatever the case.

    `look` is asked for what a commit does, only where its name is lost.
    """
    by_name = {patch.name: patch for patch in known}
    names: list[str | None] = [_named(commit, by_name) for commit in commits]
    for index, name in enumerate(names):
        if name in names[:index]:
            names[index] = None  # split: the first keeps the name
    _find_lost(names, commits, known, look)
    used = {name.casefold() for name in (*taken, *by_name)}
    final: list[str] = []
    for name, commit in zip(names, commits, strict=True):
        final.append(name if name is not None else new_name(commit.subject, used))
        used.add(final[-1].casefold())
    dropped = tuple(patch.name for patch in known if patch.name not in final)
    return Matching(tuple(final), frozenset(final) - by_name.keys(), dropped)


def _named(commit: StackCommit, by_name: Mapping[str, Known]) -> str | None:
    return commit.patch if commit.patch in by_name else None


def _find_lost(
    names: list[str | None],
    commits: Sequence[StackCommit],
    known: Sequence[Known],
    look: Callable[[int], Look],
) -> None:
    """Fill in names that commits have lost."""
    lost = [index for index, name in enumerate(names) if name is None and not commits[index].patch]
    missing = [patch for patch in known if patch.name not in names]
    if not lost or not missing:
        return
    looks = {index: look(index) for index in lost}
    tests: tuple[Callable[[int, Known], bool], ...] = (
        lambda index, patch: bool(patch.diff) and looks[index].diff == patch.diff,
        lambda index, patch: commits[index].subject == patch.subject,
        lambda index, patch: (
            bool(looks[index].files & patch.files) and _same_place(names, known, index, patch)
        ),
    )
    for test in tests:
        for index in [each for each in lost if names[each] is None]:
            fits = [p for p in missing if p.name not in names and test(index, p)]
            rivals = [i for i in lost if names[i] is None and fits and test(i, fits[0])]
            if len(fits) == 1 and len(rivals) == 1:
                names[index] = fits[0].name


def _same_place(
    names: Sequence[str | None], known: Sequence[Known], index: int, patch: Known
) -> bool:
    """Whether the commit stands where the patch stood: same neighbours before and after."""
    order = [each.name for each in known]
    place = order.index(patch.name)
    return _neighbour(names, index - 1) == _neighbour(order, place - 1) and _neighbour(
        names, index + 1
    ) == _neighbour(order, place + 1)


def _neighbour(names: Sequence[str | None], index: int) -> str | None:
    return names[index] if 0 <= index < len(names) else ""
