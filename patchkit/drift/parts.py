"""Cut a series into parts: files that have nothing to do with the rest, whoever changes them.

What becomes of a part follows from what stands at its paths alone, so it need only be worked out
once for each state of these, however many commits have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from patchkit.model.patch import FileChange
from patchkit.recipes.values import Recipe
from patchkit.stack import SeriesPatch, patch_changes


class Part(Struct, frozen=True):
    """Some paths, and what each patch (by its place in the series) does to them."""

    paths: tuple[str, ...]
    patches: Mapping[int, SeriesPatch]


def split_series(
    patches: Sequence[SeriesPatch],
    together: Collection[int] = (),
    recipes: Mapping[int, Recipe] | None = None,
) -> tuple[Part, ...]:
    """The parts of a series; all that one of the patches in `together` does is in one part.

    A patch that is made from one of `recipes` belongs to each part that has a path in its scope,
    whatever its diff says.
    """
    owned = [(n, change) for n, patch in enumerate(patches) for change in patch_changes(patch)]
    groups = related([_paths(change) for _, change in owned])
    whole: dict[int, int] = {}
    for at, (number, _) in enumerate(owned):
        if number in together:
            groups.join(at, whole.setdefault(number, at))
    parts: dict[int, list[tuple[int, FileChange]]] = {}
    for at, each in enumerate(owned):
        parts.setdefault(groups.find(at), []).append(each)
    return tuple(_part(patches, members, recipes or {}) for members in parts.values())


def names_a_path_twice(changes: Sequence[FileChange]) -> bool:
    """Whether two changes of a patch are on one path: the engine takes such a patch as a whole."""
    paths = [path for change in changes for path in _paths(change)]
    return len(paths) != len(set(paths))


class Groups:
    """Numbers that are joined into groups."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def find(self, number: int) -> int:
        """The smallest number of the group."""
        while self._above[number] != number:
            self._above[number] = self._above[self._above[number]]
            number = self._above[number]
        return number

    def join(self, one: int, other: int) -> None:
        """Make one group of two."""
        low, high = sorted((self.find(one), self.find(other)))
        self._above[high] = low


def related(sets: Sequence[Collection[str]]) -> Groups:
    """Groups of path sets that share a path, or of which one's path is a folder of another's."""
    groups = Groups(len(sets))
    first: dict[str, int] = {}
    for number, paths in enumerate(sets):
        for path in paths:
            groups.join(number, first.setdefault(path, number))
    for number, paths in enumerate(sets):
        for path in paths:
            for folder in _folders(path):
                if folder in first:
                    groups.join(number, first[folder])
    return groups


def _folders(path: str) -> Iterator[str]:
    return accumulate(path.split("/")[:-1], "{}/{}".format)


def _part(
    patches: Sequence[SeriesPatch],
    members: Sequence[tuple[int, FileChange]],
    recipes: Mapping[int, Recipe],
) -> Part:
    paths = sorted({path for _, change in members for path in _paths(change)})
    inside = {n for n, recipe in recipes.items() if any(map(recipe.covers, paths))}
    numbers = sorted({number for number, _ in members} | inside)
    shares = {
        number: _share(patches[number], tuple(c for owner, c in members if owner == number))
        for number in numbers
    }
    return Part(tuple(paths), shares)


def _share(patch: SeriesPatch, changes: tuple[FileChange, ...]) -> SeriesPatch:
    """The patch with some of its changes only; their paths are the tree's."""
    file = replace(patch.file, changes=changes)
    return SeriesPatch(patch.name, file, strip=file.strip)


def _paths(change: FileChange) -> set[str]:
    return {path for path in (change.old_path, change.new_path) if path is not None}
