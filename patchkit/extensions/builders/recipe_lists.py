"""Patches in SRC_URI of a BitBake recipe (NAME_VERSION.bb, .bbappend, .inc).

BitBake is not run, so only what a line says by itself is taken: simple variables are put in, and
what an override has is left out with a note, as some builds do without it. Of a file that is
required or included, and stands in the project, variables are taken. One that has patches, too, is
a list of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath

from msgspec import field

from patchkit.disk.files import is_inside, read_given
from patchkit.errors import Problem
from patchkit.extensions.builders.listed_pieces import (
    COMPRESSED,
    ListedPatch,
    ListReading,
    WordList,
    checked,
    cut,
)
from patchkit.manifest.find import project_root
from patchkit.manifest.values import LocalSeries
from patchkit.manifest.yaml_nodes import decode
from patchkit.model.names import is_listed_name
from patchkit.model.series_file import Series
from patchkit.model.variables import expanded

_PATCH = (".patch", ".diff")
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?P<name>SRC_URI|[A-Za-z_][\w-]*)(?P<suffix>(?:[:_][\w.${}-]+)*)\s*"
    r"(?P<how>\?\?=|\?=|:=|\+=|=\+|\.=|=\.|=)[ \t]*(?P<quote>[\"'])"
    r"(?P<value>(?:\\\r?\n|[^\n])*?)(?P=quote)[ \t\r]*$"
    r"|^[ \t]*(?:require|include)[ \t]+(?P<file>\S+)",
    re.MULTILINE,
)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w-]*)\}")
_WORD = re.compile(r"[^\s\\]+")
#: Of a file's parameters those that say when it is applied.
_REVISIONS = frozenset(("maxrev", "minrev", "rev", "notrev", "mindate", "maxdate"))
_SOURCE = ("${S}", ".", "${UNPACKDIR}", "${WORKDIR}")


#: When BitBake puts words into the value; all others as they stand.
_RANKS = {"prepend": 0, "=+": 0, "=.": 0, "append": 2}


class _Recipe(ListReading, kw_only=True):
    """The words of SRC_URI so far, each with its rank."""

    words: list[tuple[int, re.Match[str]]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)  # of `SRC_URI:remove`
    stop: int = 0  # where the last value ends
    root: Path  # of the project
    seen: set[Path] = field(default_factory=set)  # files that are included so far

    def expand(self, text: str) -> str:
        return expanded(text, _VARIABLE, lambda found: self.values.get(found[1], found[0]))

    def read(self, text: str, by: re.Match[str] | None = None) -> None:
        """Take what a text assigns: the recipe's, or that of a file that the line `by` includes.

        Such a file may put no patch into SRC_URI, and nothing in the place of what is there.
        """
        for found in _ASSIGNMENT.finditer(text):
            name, line = found["name"], by or found
            inner = self.included(found["file"]) if found["file"] else None
            if inner is not None:
                self.read(inner, line)
            elif found["file"] or (by and name == "SRC_URI" and self.is_changed(found)):
                self.note(self.unusable, f"what {line['file']} has", line.start())
            elif name == "SRC_URI" and not by:
                self.add(found)
            elif not found["suffix"] and not (found["how"][0] == "?" and name in self.values):
                self.values[name] = found["value"]

    def included(self, name: str) -> str | None:
        """The text of a file of the project that was not read yet; None where there is no such."""
        here = Path(self.root, self.where).parent
        paths = (folder / self.expand(name) for folder in (here, *here.parents))
        for file in paths:
            if file.is_file() and is_inside(file, self.root) and file not in self.seen:
                self.seen.add(file)
                return decode(read_given(file), file)
        return None

    def is_changed(self, found: re.Match[str]) -> bool:
        """Whether an assignment elsewhere changes which patches there are, or when."""
        words = _WORD.finditer(found["value"])
        return bool(self.words) or any(self.patch(word, []) for word in words)

    def add(self, found: re.Match[str]) -> None:
        operation, *override = found["suffix"].replace("_", ":").split(":")[1:] or [""]
        if operation not in (*_RANKS, "remove", ""):
            operation, override = "", [operation, *override]
        words = [*_WORD.finditer(self.text, *found.span("value"))]
        how = operation or found["how"]
        rank = _RANKS.get(how, 1)
        plain = any(known == 1 for known, _ in self.words)
        if override:
            if any(self.patch(word, []) for word in words):
                what = f"patches that only {':'.join(override)} has"
                self.note(self.left_out, what, found.start())
            return
        self.stop = found.end("value")
        if how == "remove":
            self.removed |= {self.expand(word[0]) for word in words}
            return
        if how in ("=", ":="):
            self.words = [row for row in self.words if row[0] != 1]
        if how[0] != "?" or not plain:
            self.words += ((rank, word) for word in words)

    def patch(self, word: re.Match[str], notes: list[Problem]) -> ListedPatch | None:
        path, *parameters = self.expand(word[0]).split(";")
        scheme, _, name = path.rpartition("://")
        said = dict(each.partition("=")[::2] for each in parameters)
        plain = name.removesuffix(next(filter(name.endswith, COMPRESSED), ""))
        applied = said.get("apply", "yes" if plain.endswith(_PATCH) else "no")
        if not scheme or applied != "yes":
            return None
        level, folder = said.get("striplevel", said.get("pnum", "1")), said.get("patchdir", "${S}")
        odd = sorted(_REVISIONS & said.keys())
        why = ""
        if scheme != "file":
            why = "is fetched from elsewhere"
        elif "$" in name or not is_listed_name(name):
            why = "is not a known name"
        elif plain != name:
            why = "is compressed"
        elif odd or folder not in _SOURCE:
            why = f"has {', '.join(odd) or f'patchdir={folder}'}"
        elif not re.fullmatch(r"\d{1,2}", level):
            why = f"has striplevel={level}"
        if not why:
            return ListedPatch(*word.span(), name, word.start() + len("file://"), int(level))
        self.note(notes, f"{name} {why}", word.start())
        return None

    def patches(self) -> Iterator[ListedPatch]:
        for _, word in sorted(self.words, key=lambda row: row[0]):
            known = self.expand(word[0]) not in self.removed
            if known and (patch := self.patch(word, self.unusable)):
                yield patch


def read_recipe(data: bytes, entry: LocalSeries) -> Series:
    """The patches of a recipe, in the order in which BitBake applies them."""
    package, _, version = PurePosixPath(entry.path).stem.partition("_")
    base = package.removesuffix("-native").removeprefix("nativesdk-")
    known = {"PN": package, "BPN": base, "PV": version, "BP": f"{base}-{version}"}
    text, root = decode(data, Path(entry.path)), project_root(entry.where.file)
    recipe = _Recipe(where=entry.path, text=text, values=known, root=root)
    recipe.read(text)
    found = [*recipe.patches()]
    if any(one.start > other.start for one, other in pairwise(found)):
        recipe.note(recipe.unusable, "the order, which is not that of the lines", found[0].start)
    empty = recipe.noted(WordList(where=f"{entry.path}:1", begin="file://", folders=1))
    return checked(data, cut(recipe.text, found, recipe.stop, empty), entry)


def recipe_lines(names: list[str]) -> str:
    """A .bbappend for patches in `files/` beside it."""
    rows = "".join(
        f"    file://{name}{'' if name.endswith(_PATCH) else ';apply=yes'} \\\n" for name in names
    )
    return f'FILESEXTRAPATHS:prepend := "${{THISDIR}}/files:"\n\nSRC_URI += "\\\n{rows}"\n'
