"""Which commit of the stack is which patch of the series, and the order of the series that follows.

The trailer that `apply` put into the message says it. Where a commit has lost it (a message typed
anew), the patch is found again if one that is missing does the same, has the same subject, or stood
at the same place and touches the same files. What is left is a new patch, named for its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.values import Component, LocalPatch, LocalSeries, PatchEntry, PinnedPatch
from patchkit.model.names import new_name
from patchkit.stack.build import StackCommit
from patchkit.stack.series import LoadedPatch


class KnownPatch(Struct, frozen=True):
    """A patch of the series as it was applied: its diff in canonical form, "" unless it applied."""

    name: str
    subject: str
    diff: bytes
    files: frozenset[str]


class CommitMatching(Struct, frozen=True):
    """`names[i]` is the patch of commit i, in `added` if it is a new one; `dropped` have none."""

    names: tuple[str, ...]
    added: frozenset[str]
    dropped: tuple[str, ...]


class CommitContents(Struct, frozen=True):
    """What a commit without a name does."""

    diff: bytes
    files: frozenset[str]


def match_commits(
    commits: Sequence[StackCommit],
    known: Sequence[KnownPatch],
    taken: Collection[str],
    look: Callable[[int], CommitContents],
) -> CommitMatching:
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
    return CommitMatching(tuple(final), frozenset(final) - by_name.keys(), dropped)


def _named(commit: StackCommit, by_name: Mapping[str, KnownPatch]) -> str | None:
    return commit.patch if commit.patch in by_name else None


def _find_lost(
    names: list[str | None],
    commits: Sequence[StackCommit],
    known: Sequence[KnownPatch],
    look: Callable[[int], CommitContents],
) -> None:
    """Fill in names that commits have lost."""
    lost = [index for index, name in enumerate(names) if name is None and not commits[index].patch]
    missing = [patch for patch in known if patch.name not in names]
    if not lost or not missing:
        return
    looks = {index: look(index) for index in lost}
    tests: tuple[Callable[[int, KnownPatch], bool], ...] = (
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
    names: Sequence[str | None], known: Sequence[KnownPatch], index: int, patch: KnownPatch
) -> bool:
    """Whether the commit stands where the patch stood: same neighbours before and after."""
    order = [each.name for each in known]
    place = order.index(patch.name)
    return _neighbour(names, index - 1) == _neighbour(order, place - 1) and _neighbour(
        names, index + 1
    ) == _neighbour(order, place + 1)


def _neighbour(names: Sequence[str | None], index: int) -> str | None:
    return names[index] if 0 <= index < len(names) else ""


# The order of the commits against the entries of the manifest. Patches that the manifest lists one
# by one, or takes from other repositories, have their places there; only those of the series file
# may come, go and change places.


def arrange(
    component: Component, patches: Sequence[LoadedPatch], names: Sequence[str]
) -> tuple[str, ...]:
    """The patches that the series file lists if the stack's commits are `names`.

    `patches` are those of the manifest now. A component without a series gets it at its end.
    Raises BadInputError with everything that only an edit of the manifest could bring about.
    """
    order = _with_empty(patches, names)
    fixed = [each for each in patches if not isinstance(each.origin, LocalSeries)]
    problems = [_gone(each) for each in fixed if each.name not in order]
    kept = [name for name in order if name in {each.name for each in fixed}]
    wanted = [each.name for each in fixed if each.name in order]
    if kept != wanted:
        problems.append(
            Problem(
                f"{', '.join(kept)} stand in another order than in the manifest",
                str(component.where),
                "change the order of the entries in the manifest and run patchkit apply",
            )
        )
    elif not problems:
        problems += _misplaced(component, order, fixed)
    if problems:
        raise BadInputError(*problems)
    return tuple(name for name in order if name not in kept)


def _with_empty(patches: Sequence[LoadedPatch], names: Sequence[str]) -> list[str]:
    """The names with the patches that change no file, which have no commit, at their old places."""
    order = list(names)
    before: str | None = None
    for patch in patches:
        if not patch.file.changes and patch.name not in order:
            place = order.index(before) + 1 if before in order else 0
            order.insert(place, patch.name)
        before = patch.name
    return order


def _gone(patch: LoadedPatch) -> Problem:
    return Problem(
        f"{patch.name} has no commit in the stack any more",
        patch.where,
        "take its entry off the manifest, or bring the commit back (git reflog)",
    )


def _misplaced(
    component: Component, order: Sequence[str], fixed: Sequence[LoadedPatch]
) -> Iterator[Problem]:
    """Patches of the series that stand on the wrong side of the manifest's other entries."""
    names = [each.name for each in fixed]
    first = _entries_before_series(component.patches)
    lowest = order.index(names[first - 1]) if first else -1
    highest = order.index(names[first]) if first < len(names) else len(order)
    for place, name in enumerate(order):
        if name not in names and not lowest < place < highest:
            other = names[first - 1] if place < lowest else names[first]
            yield Problem(
                f"{name} stands on the wrong side of {other}",
                str(component.where),
                "the series is one entry of the manifest: move the commit, or the entry",
            )


def _entries_before_series(entries: Sequence[PatchEntry]) -> int:
    count = 0
    for entry in entries:
        if isinstance(entry, LocalSeries):
            return count
        assert isinstance(entry, LocalPatch | PinnedPatch)
        count += 1
    return count
