"""The order of a stack against the entries of its manifest: what the series file must say.

Patches that the manifest lists one by one, or takes from other repositories, have their places
there; only those of the series file may come, go and change places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.values import Component, LocalPatch, LocalSeries, PatchEntry, PinnedPatch
from patchkit.series import LoadedPatch


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
