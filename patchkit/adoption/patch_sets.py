"""Where a carrier has its patches, and what says their order: a list, numbers, names, a mirror."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.adoption.carrier import Carrier, folder_of, folders_up
from patchkit.stack.importing import by_number, list_at

_ENDINGS = (".patch", ".diff")
#: How names of files end that list patches.
_LISTS = (
    *("/series", "/.patches", "/series.conf", "/source.json", "/conandata.yml", "/patch.cfg"),
    *("/zephyr/patches.yml", "/portfile.cmake", "/meta.yaml", ".bb", ".bbappend", ".inc", ".spec"),
)
#: Of Conan's lists, each below its version; of west's patches, each with its module.
_VERSIONS = re.compile(r"^ +[\"']?(\d[^\s\"':]*)[\"']?:[ \t\r]*$", re.MULTILINE)
_MODULES = re.compile(r"^[ -]*module: *[\"']?([^\s\"'#]+)", re.MULTILINE)
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
    def target(self) -> str:
        """The version that the patches are for, "" where nothing says one."""
        return self.entry.get("target", "")

    @property
    def path(self) -> str:
        """What the entry names: a list, a folder, or a patch."""
        return next(self.entry[key] for key in ("series", "folder", "patch") if key in self.entry)


def patch_sets(carrier: Carrier, folder: str = "", known: Collection[str] = ()) -> list[PatchSet]:
    """All of them in a folder and below: first what lists say, then mirrors, then single folders.

    `known` are lists, folders and patches that a manifest has already.
    """
    files = [path for path in carrier.files if folder in folders_up(folder_of(path))]
    found = [*_listed(carrier, files)]
    # what a list leaves out beside what it names is off
    listed = {folder_of(path) for patches in found for path in patches.patches}
    files = [path for path in files if folder_of(path) not in listed]
    for search in (_mirrors, _folders):
        taken = {*known, *(path for patches in found for path in patches.patches)}
        left = [path for path in files if path.endswith(_ENDINGS) and path not in taken]
        found += search(carrier, left)
    new = (patches for patches in found if patches.path not in known)
    return sorted(new, key=lambda patches: (patches.folder, patches.patches))


def _listed(carrier: Carrier, files: Sequence[str]) -> Iterator[PatchSet]:
    """Those that a list beside or above them names."""
    for path in files:
        for target in _targets(carrier, path) if f"/{path}".endswith(_LISTS) else ():
            listed = list_at(carrier.root / path, target=target, root=carrier.root)
            if listed is None or not listed[1].names or listed[1].unusable:
                continue
            entry, series = listed
            folder = Path(entry.folder).relative_to(carrier.root).as_posix()
            said = {"series": path} | ({"target": target} if target else {})
            said |= {"within": folder} if entry.within is not None else {}
            patches = tuple(Path(folder, name).as_posix() for name in series.names)
            yield PatchSet(said, folder_of(path), patches, "it lists them")


def _targets(carrier: Carrier, path: str) -> list[str]:
    """The versions or modules for which a file has patches; [""] for one that tells none apart."""
    _, _, lists = f"\n{carrier.text(path)}".partition("\npatches:")
    if path.endswith("patches.yml"):
        return [*dict.fromkeys(_MODULES.findall(lists))]
    return _VERSIONS.findall(lists if path.endswith("conandata.yml") else "") or [""]


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
        is_numbered = by_number([path.rpartition("/")[2] for path in paths])
        order = "number" if is_numbered else "name"
        why = "their numbers say the order" if order == "number" else "in the order of their names"
        yield PatchSet({"folder": folder, "order": order}, folder, tuple(paths), why)
