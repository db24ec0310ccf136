"""The patches beside a recipe or a spec, as `export` lays them out."""

from __future__ import annotations

from patchkit.errors import BadInputError, Problem
from patchkit.extensions.builders.recipe_lists import recipe_lines
from patchkit.extensions.builders.spec_lists import spec_lines
from patchkit.ops.transfer import Form


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
