"""The patches beside a recipe or a spec, as `import` reads and `export` lays them out."""

from __future__ import annotations

from pathlib import Path

from patchkit.disk.files import read_given
from patchkit.errors import BadInputError, Problem, UsageError
from patchkit.extensions.builders.package_lists import (
    PatchList,
    read_recipe,
    read_spec,
    recipe_lines,
    spec_lines,
)
from patchkit.model.names import is_listed_name
from patchkit.ops.transfer import Form
from patchkit.stack.importing import ImportSource
from patchkit.stack.series import ImportedPatch


def import_recipe(source: Path) -> ImportSource:
    """What a recipe lists; BadInputError with each file that is not there."""

    def included(name: str) -> str | None:
        path = source.parent / name
        return _text(path) if is_listed_name(name) and path.is_file() else None

    return _listed_in(source, read_recipe(_text(source), source.name, included))


def import_spec(source: Path) -> ImportSource:
    """What a spec lists; BadInputError with each file that is not there."""
    return _listed_in(source, read_spec(_text(source), source.name))


def _text(path: Path) -> str:
    return read_given(path).decode("utf-8", "surrogateescape")


def _listed_in(source: Path, listed: PatchList) -> ImportSource:
    patches, missing = [], []
    for each in listed.patches:
        places = [source.parent / folder / each.name for folder in listed.folders]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            hint = f"looked for in {', '.join(listed.folders)}"
            missing.append(Problem(f"{each.name} is not there", each.where, hint))
        else:
            data = read_given(path)
            patches.append(ImportedPatch(each.name, data, each.where, each.strip, listed=True))
    if missing:
        raise BadInputError(*missing)
    if not patches and not listed.notes:
        raise UsageError(f"{source}: this {listed.kind} lists no patch")
    return ImportSource(listed.kind, tuple(patches), listed.notes)


def _recipe_folder(component: str, names: list[str]) -> tuple[list[str], str, str]:
    """A .bbappend, and the patches in files/."""
    return [f"files/{name}" for name in names], f"{component}_%.bbappend", recipe_lines(names)


def _spec_folder(component: str, names: list[str]) -> tuple[list[str], str, str]:
    """The patches, all in one folder, and the lines of a spec in patches.inc."""
    flat = [name.replace("/", "-") for name in names]
    if len({name.casefold() for name in flat}) < len(flat):
        what = "two patches would get one name without their folders"
        raise BadInputError(Problem(what, component, "`patchkit edit` gives one another name"))
    return flat, "patches.inc", spec_lines(flat)


YOCTO, RPM = Form("yocto", _recipe_folder), Form("rpm", _spec_folder)
