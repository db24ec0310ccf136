"""Lists that a regular expression finds: of vcpkg's portfile, a conda recipe, CEF's patch.cfg, and
what `west patch` reads, Zephyr's patches.yml.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.extensions.builders.listed_pieces import (
    HashedList,
    LineList,
    ListedPatch,
    WordList,
    checked,
    chosen,
    cut,
)
from patchkit.manifest.values import LocalSeries
from patchkit.manifest.yaml_nodes import decode
from patchkit.model.series_file import KNOWN_LISTS, Series


class _Form(Struct, frozen=True):
    """Where a file has its list (group `list`), and in it each patch (group `name`).

    `begin` and `behind` are what stands around the name of a new one, IN for how far it is set in.
    Where the file has lists for several modules, `module` finds their names: TARGET is one.
    """

    part: str
    patch: str
    begin: str = ""
    behind: str = ""
    kind: type[LineList] = LineList
    folders: int | None = None  # go from the paths; None: what the manifest says
    ending: str = ""  # of the names, where it is not written
    module: str = ""


class WestPatches(HashedList, frozen=True):
    """`patches` of a patches.yml for one module: a block of fields for each patch."""

    hashed = re.compile(r"(?:\bsha256sum:[ \t]*[\"']?|\Z)([0-9a-f]*)")


#: A line of a patch's block but its first one; what goes before a field of the block.
_INNER = r"(?:(?P=in)[ \t]+\S.*(?:\n|\Z)|[ \t\r]*\n)"
_FIELD = rf"(?:.*\n{_INNER}*?(?P=in) (?P=gap))?"

# What only some builds have (a selector of conda's, a condition) is no part of the stack.
_FORMS = {
    "vcpkg": _Form(
        part=r"\bPATCHES(?P<list>(?:\s+(?:#.*|(?![A-Z0-9_]+\s)[^\s()#]+))*)",
        patch=r"#.*|(?P<whole>\"?(?P<name>[^\s\"]+\.(?:patch|diff))\"?)(?!\S)",
        kind=WordList,
        folders=1,
    ),
    "conda": _Form(
        part=r"^(?P<in>[ \t]*)patches:[ \t\r]*(?:#.*)?\n(?P<list>(?:[ \t]*(?:-[ \t].*|#.*)?\n)*)",
        patch=r"^(?P<whole>(?P<in>[ \t]*)-[ \t]+[\"']?(?P<name>[^\s#\"'][^#\"'\n]*?)[\"']?"
        r"[ \t\r]*(?:#(?![ \t]*\[).*)?\n)",
        begin="IN- ",
        behind="\n",
        folders=1,
    ),
    "cef": _Form(
        part=r"^patches[ \t]*=[ \t]*\[(?P<list>(?:(?!^\]).*\n)*)",
        patch=r"^(?P<whole>(?P<in>[ \t]*)\{[ \t\r]*\n"
        r"(?!(?:(?!(?P=in)\}).*\n)*?[ \t]*'(?:condition|path)')"
        r"(?:(?!(?P=in)\}).*\n)*?[ \t]*'name'[ \t]*:[ \t]*'(?P<name>[^'\n]+)'"
        r"(?:(?!(?P=in)\}).*\n)*?(?P=in)\},?[ \t\r]*\n)",
        begin="IN{\n  IN'name': '",
        behind="',\nIN},\n",
        ending=".patch",
    ),
    "west": _Form(
        part=r"^patches:[ \t\r]*(?:#.*)?\n(?P<list>(?:(?:[ \t-].*|#.*)(?:\n|\Z)|\r?\n)*)",
        module=r"^[ \t]*(?:-[ \t]+)?module:[ \t]+[\"']?([^\s\"'#]+)",
        patch=r"^(?P<whole>(?P<in>[ \t]*)-(?P<gap>[ \t]+)"
        rf"(?={_FIELD}module:[ \t]+[\"']?TARGET[\"']?[ \t\r]*(?:#.*)?(?:\n|\Z))"
        rf"{_FIELD}path:[ \t]+[\"']?(?P<name>[^\s\"'#]+)[\"']?.*(?:\n|\Z){_INNER}*)",
        begin="IN- path: ",
        behind="\nIN  sha256sum: \nIN  module: TARGET\nIN  author:\nIN  email:\nIN  date:\n",
        kind=WestPatches,
    ),
}


def read_form(data: bytes, entry: LocalSeries) -> Series:
    """What such a file lists; BadInputError with all that is wrong."""
    form, text = _FORMS[entry.kind], decode(data, Path(entry.path))
    parts = [*re.finditer(form.part, text, re.MULTILINE)]
    if len(parts) != 1:
        what = f"{len(parts)} lists of patches" if parts else "lists no patches"
        raise BadInputError(Problem(what, f"{entry.path}:1", KNOWN_LISTS))
    first, stop = parts[0].span("list")
    where = f"{entry.path}:{text.count(chr(10), 0, first) + 1}"
    modules = [*dict.fromkeys(re.findall(form.module, text, re.MULTILINE))] if form.module else []
    target = chosen(entry, modules, where, "module") if form.module else ""
    pattern = re.compile(form.patch.replace("TARGET", re.escape(target)), re.MULTILINE)
    found = [each for each in pattern.finditer(text, first, stop) if each["name"]]
    indent = (
        found[0].groupdict().get("in", "") if found else f"{parts[0].groupdict().get('in', '')}  "
    )
    end = "\r\n" if "\r\n" in text else "\n"
    empty = form.kind(
        where=where,
        begin=form.begin.replace("IN", indent).replace("\n", end),
        behind=form.behind.replace("IN", indent).replace("TARGET", target).replace("\n", end),
        ending=form.ending,
        folders=form.folders,
    )
    listed = (
        ListedPatch(
            *each.span("whole"), each["name"] + form.ending, each.start("name"), form.folders
        )
        for each in found
    )
    return checked(data, cut(text, listed, stop, empty), entry)
