"""What a list of patches says, or a folder in its place; no patch is read.

By itself, as `status` asks for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from patchkit import entry_points
from patchkit.disk.files import LARGEST_PATCH, Contents, files_in, read_plain
from patchkit.errors import BadInputError, Problem
from patchkit.manifest.values import LocalSeries, Location, Manifest, OrderedFolder
from patchkit.model.names import broken_name_rule, is_listed_name
from patchkit.model.series_file import Series, parse_series, series_of

#: Reads a list of a format, under which the entry points in `patchkit.lists` have it.
ReadList: TypeAlias = Callable[[bytes, LocalSeries], Series]


def parse_list(data: bytes, entry: LocalSeries) -> Series:
    """What a file lists, in the format that the manifest's entry names or its own name tells.

    BadInputError with every line that cannot be taken.
    """
    if entry.kind == "quilt":
        return parse_series(data, name=entry.path, target=entry.target)
    place = entry_points.named("patchkit.lists").get(entry.kind)
    if place is None:
        hint = "`patchkit version` lists the extensions that are installed"
        raise BadInputError(Problem(f"no extension reads {entry.kind}", f"{entry.path}:1", hint))
    read: ReadList = entry_points.load(place)
    return read(data, entry)


def read_series(manifest: Manifest, entry: LocalSeries, changed: Contents | None = None) -> Series:
    """What an entry lists; BadInputError with every line, or file of a folder, that is wrong.

    What `changed` has stands for the project's files of these paths, None for one that is gone.
    """
    if isinstance(entry, OrderedFolder):
        return series_of(_names_in(manifest.root, entry, changed or {}))
    series = parse_list(read_listed(manifest.root, entry.path, entry.where, changed), entry)
    if series.unusable:
        raise BadInputError(*series.unusable)
    return series


def patch_files(root: Path, entry: LocalSeries) -> list[Path]:
    """The files beside a series, or in its folder, that are patches by their names."""
    folder, deep = root / entry.folder, isinstance(entry, OrderedFolder) and entry.order == "path"
    folders = [folder]
    for inner in folders if deep else ():  # grows while it is walked
        folders += [
            path for path in files_in(inner, "*") if path.is_dir() and not path.is_symlink()
        ]
    return [
        path for inner in folders for end in ("*.patch", "*.diff") for path in files_in(inner, end)
    ]


def _names_in(root: Path, entry: OrderedFolder, changed: Contents) -> tuple[str, ...]:
    """The names of the patches of a folder, in its order."""
    folder, where = root / entry.folder, str(entry.where)
    if not folder.is_dir() and not changed:
        hint = "create it, or remove it from the list"
        raise BadInputError(Problem(f"{entry.path} is not there", where, hint))
    there = {path.relative_to(folder).as_posix() for path in patch_files(root, entry)}
    for path, data in changed.items():
        if path.is_relative_to(folder) and path.suffix in (".patch", ".diff"):
            name = path.relative_to(folder).as_posix()
            there = there - {name} if data is None else there | {name}
    problems = [
        Problem(f"{name!a} is not a valid patch name", where, broken_name_rule(name))
        for name in sorted(there)
        if not is_listed_name(name)
    ]
    if problems:
        raise BadInputError(*problems)
    from patchkit.model.ordered_folder import in_order  # noqa: PLC0415 (most lists are files)

    return in_order(there, entry.order, where=where)


def read_listed(root: Path, path: str, where: Location, changed: Contents | None = None) -> bytes:
    """A file of the project that `where` names; BadInputError if it cannot be read.

    What `changed` has stands for the project's files of these paths, None for one that is gone.
    """
    file = root / path
    try:
        if changed is None or file not in changed:
            return read_plain(file, most=LARGEST_PATCH, inside=root)
        if (data := changed[file]) is not None:
            return data
        raise FileNotFoundError
    except OSError as error:
        what = "is not there" if isinstance(error, FileNotFoundError) else str(error.strerror)
        hint = "create it, or remove it from the list"
        raise BadInputError(Problem(f"{path} {what}", str(where), hint)) from error
