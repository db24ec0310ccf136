"""Where a carrier has its patches, and what says their order: a list, numbers, names, a mirror."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from patchkit.adoption.carrier import Carrier, folder_of
from patchkit.manifest.values import LocalSeries, Location
from patchkit.stack.importing import NUMBERED, list_at

_ENDINGS = (".patch", ".diff")
#: Names of files that list patches, the first of several in a folder.
_LISTS = ("series", ".patches", "series.conf", "source.json", "conandata.yml")
_CHANGED = re.compile(r"^\+\+\+ (?:[^/\s]+/)?([^\s]+)", re.MULTILINE)


class PatchSet(Struct, frozen=True):
    """Patches that belong together: `entry` is what a manifest says of them, `why` how their order
    is known.
    """

    entry: Mapping[str, str]  # by the manifest's keys
    folder: str  # that they are in or below, "" for the carrier's own
    patches: tuple[str, ...]  # their paths
    why: str

    @property
    def path(self) -> str:
        """What the entry names: a list, a folder, or a patch."""
        return next(self.entry[key] for key in ("series", "folder", "patch") if key in self.entry)


def patch_sets(carrier: Carrier, known: Collection[str] = ()) -> list[PatchSet]:
    """All of them, by their folders: first what lists say, then mirrors, then single folders.

    `known` are lists, folders and patches that a manifest has already.
    """
    left = [path for path in carrier.files if path.endswith(_ENDINGS) and path not in known]
    found: list[PatchSet] = []
    for search in (_listed, _mirrors, _folders):
        found += search(carrier, left)
        taken = {path for patches in found for path in patches.patches}
        left = [path for path in left if path not in taken]
    new = (patches for patches in found if patches.path not in known)
    return sorted(new, key=lambda patches: (patches.folder, patches.patches))


def _listed(carrier: Carrier, _left: Sequence[str]) -> Iterator[PatchSet]:
    """Those that a list beside or above them names."""
    lists = [path for path in carrier.files if path.rpartition("/")[2] in _LISTS]
    for path in lists:
        series = list_at(carrier.root / path)
        if series is not None and series.names:
            folder = LocalSeries(path, Location(carrier.root, 1)).folder
            patches = tuple(f"{folder}/{name}".lstrip("/") for name in series.names)
            yield PatchSet({"series": path}, folder_of(path), patches, "it lists them")


def _mirrors(carrier: Carrier, left: Sequence[str]) -> Iterator[PatchSet]:
    """Trees of folders in which each patch stands where the file is that it changes."""
    trees: dict[str, list[str]] = {}
    for path in left:
        changed = _CHANGED.search(carrier.text(path))
        stem = path.rpartition(".")[0]
        if changed and f"/{stem}".endswith(f"/{changed[1]}"):
            trees.setdefault(stem[: -len(changed[1])].rstrip("/"), []).append(path)
    for folder, paths in trees.items():
        if len({folder_of(path) for path in paths}) > 1:
            why = "each stands where the file is that it changes"
            yield PatchSet({"folder": folder, "order": "path"}, folder, tuple(paths), why)


def _folders(_carrier: Carrier, left: Sequence[str]) -> Iterator[PatchSet]:
    """The others, by their folders."""
    folders: dict[str, list[str]] = {}
    for path in left:
        folders.setdefault(folder_of(path), []).append(path)
    for folder, paths in folders.items():
        numbers = [NUMBERED.match(path.rpartition("/")[2]) for path in paths]
        distinct = {int(number[1]) for number in numbers if number}
        order = "number" if len(distinct) == len(paths) else "name"
        why = "their numbers say the order" if order == "number" else "in the order of their names"
        yield PatchSet({"folder": folder, "order": order}, folder, tuple(paths), why)
