"""A component's patches as its manifest lists them, read, verified and parsed.

`load_series` goes through the entries in order: files of the project, a series file with the
patches beside it, files of other pinned repositories (from the store). It collects every problem
before it gives up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import Contents, files_in
from patchkit.disk.result_cache import (
    code_digest,
    memory_path,
    recall_packed,
    remember_packed,
)
from patchkit.errors import BadInputError, PatchkitError, Problem, SurroundingsError
from patchkit.manifest.values import (
    FOLDER_BESIDE,
    Component,
    LocalPatch,
    LocalSeries,
    Location,
    Manifest,
    PatchEntry,
    PinnedPatch,
)
from patchkit.model.diff_parse import split_lines
from patchkit.model.mail import mails_of, parse_patch
from patchkit.model.names import (
    RECIPE_ENDING,
    new_name,
    recipe_name,
)
from patchkit.model.patch import PatchFile
from patchkit.model.progress import Progress
from patchkit.model.series_file import Series
from patchkit.stack.build import SeriesPatch
from patchkit.stack.patch_lists import parse_list, read_listed, read_series
from patchkit.upstream.store import Store

T = TypeVar("T")

#: A series of so many patches is kept as it was parsed; for 1,000 that is an eighth of an apply.
_MANY = 20

_RECIPE = re.compile(r"^Recipe:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_MENTIONED = re.compile(rf"(?:{FOLDER_BESIDE})?([^\s#\"']+\.(?:patch|recipe\.yml))\b")


class LoadedPatch(Struct, frozen=True):
    """One patch of a component."""

    #: The name of its file.
    name: str
    #: The bytes of the file, mended where the manifest says so, and what they say.
    data: bytes
    file: PatchFile  # parsed
    #: The manifest's entry that brought it.
    origin: PatchEntry
    #: The file in the project; None for a patch of another repository.
    path: Path | None
    #: For messages: the path relative to the project's root, or what the manifest says.
    where: str
    #: How many leading folders go from its paths, after whatever its series says.
    strip: int
    #: The folder that its paths are below, "" for the root.
    subdirectory: str
    #: The patch before it that it is to be a part of, once it is carried; "" for none.
    into: str = ""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file's bytes, in hex."""
        return sha256(self.data).hexdigest()

    @property
    def has_recipe(self) -> bool:
        """Whether it names a recipe, or one that may make it stands beside it."""
        if self.path is None:
            return False
        named = named_recipe(self.file)
        return bool(named) or self.path.with_name(recipe_name(self.path.name)).is_file()

    def listed_at(self, root: Path) -> str:
        """The manifest's line, as path:line, that names a patch of another repository; else ""."""
        if self.path is not None:
            return ""
        return self.origin.where.below(root)

    @property
    def root(self) -> Path | None:
        """The project's root; None for a patch of another repository."""
        return self.path and self.path.parents[len(Path(self.where).parts) - 1]

    @property
    def series_patch(self) -> SeriesPatch:
        """What the stack is built from."""
        return SeriesPatch(self.name, self.file, self.strip, self.subdirectory)


class LoadedSeries(Struct, frozen=True):
    """A component's patches."""

    #: In the order in which they apply.
    patches: tuple[LoadedPatch, ...]
    #: Patches beside a series file that it neither lists nor names in a comment, and recipes from
    #: which no patch is made: paths relative to the project's root.
    unlisted: tuple[str, ...] = ()
    #: What is wrong with those that were left out, where that was asked for.
    problems: tuple[Problem, ...] = ()
    #: Those of them that cannot be parsed, each with the number of patches before it.
    damaged: tuple[tuple[int, LoadedPatch], ...] = ()

    @property
    def series_patches(self) -> tuple[SeriesPatch, ...]:
        """What the stack is built from."""
        return tuple(patch.series_patch for patch in self.patches)


def one_a_mail(patches: Sequence[LoadedPatch]) -> Iterator[LoadedPatch]:
    """The patches with each mail by itself: the first keeps the name, others get one not taken.

    All stay where they are read from.
    """
    used = {each.name.casefold() for each in patches}
    for loaded in patches:
        name = loaded.name
        for piece in mails_of(loaded.file, loaded.where):
            name = name or new_name(piece.subject, used)
            used.add(name)
            yield replace(loaded, name=name, data=piece.data, file=piece)
            name = ""


class ImportedPatch(Struct, frozen=True):
    """A patch that wants to be in a series: the name it would like, its bytes, where it is from.

    `listed`: a list gives it that name, which it keeps, and it may have no diff.
    """

    name: str
    data: bytes  # of the patch file to be
    where: str
    strip: int | None = None  # folders to take off its paths; None: as usual
    listed: bool = False
    into: str = ""  # the patch of the series that it changes, and becomes a part of


def named_recipe(file: PatchFile) -> str:
    """The recipe that a patch's message names, "" for none."""
    last = re.split(r"\n[ \t]*\n", file.message)[-1]
    found = _RECIPE.findall(last)
    return found[-1] if found else ""


def load_series(
    manifest: Manifest,
    component: Component,
    store: Store,
    progress: Progress,
    *,
    to_generate: bool = False,
    partly: bool = False,
    changed: Contents | None = None,
) -> LoadedSeries:
    """Read and parse the component's patches; fetches those of other repositories.

    With `to_generate` a patch that is not there yet, but whose recipe is, counts as an empty one.
    With `partly` patches that are wrong are left out, and what is wrong is returned. What `changed`
    has stands for the project's files of these paths, None for one that is gone.

    BadInputError has all problems of all patches (a file that is missing, a name that cannot be, a
    patch that cannot be parsed, a wrong hash); SurroundingsError if only the fetching failed.
    """
    about = [str(manifest.path.absolute()), component.name, code_digest("model")]
    memory = memory_path(store.cache, "series", about)
    known = recall_packed(memory, dict[str, PatchFile]) or {}
    loading = _Loading(manifest, component, store, progress, to_generate, changed or {}, known)
    patches = tuple(loading.patches())
    problems = loading.finish(partly)
    parsed = {_key(loaded.data, loaded.strip): loaded.file for loaded in patches}
    if len(parsed) >= _MANY and parsed.keys() != known.keys():
        remember_packed(memory, parsed)
    unlisted = _unlisted(manifest, component, loading.series)
    return LoadedSeries(patches, unlisted, problems, tuple(loading.damaged))


class _Loading(Struct):
    """The entries of one component on their way to patches; collects what is wrong."""

    _manifest: Manifest
    _component: Component
    _store: Store
    _progress: Progress
    _to_generate: bool
    _changed: Contents
    _known: Mapping[str, PatchFile]  # by `_key`: as they were parsed last
    _errors: list[PatchkitError] = []
    _sound: int = 0  # how many patches are in order so far
    damaged: list[tuple[int, LoadedPatch]] = []
    _names: dict[str, str] = {}
    #: Path -> the series that was read there.
    series: dict[str, Series] = {}

    def patches(self) -> Iterator[LoadedPatch]:
        """Every patch that is in order."""
        for entry in self._component.patches:
            if isinstance(entry, LocalSeries):
                yield from self._of_series(entry)
            elif isinstance(entry, LocalPatch):
                yield from self._local(entry, entry.path, entry.where, None)
            else:
                yield from self._pinned(entry)

    def finish(self, partly: bool) -> tuple[Problem, ...]:
        """With `partly` what was wrong; else that is raised, as is what could not be fetched."""
        problems = tuple(problem for error in self._errors for problem in error.problems)
        bad = [isinstance(error, BadInputError) for error in self._errors]
        if not all(bad) or (bad and not partly):
            raise (BadInputError if any(bad) else SurroundingsError)(*problems)
        return problems

    def _of_series(self, entry: LocalSeries) -> Iterator[LoadedPatch]:
        try:
            series = read_series(self._manifest, entry, self._changed)
        except BadInputError as error:
            self._errors.append(error)
            series = self._without_wrong_lines(entry, error)
        self.series[entry.path] = series
        for line in series.entries:
            path, place = entry.beside(line.name), entry.place(line.line)
            for loaded in self._local(entry, path, place, line.strip, name=line.name):
                if objection := series.objection(loaded.name, loaded.data):
                    self._errors.append(BadInputError(replace(objection, where=str(place))))
                yield loaded

    def _without_wrong_lines(self, entry: LocalSeries, error: BadInputError) -> Series:
        """What a series file lists in lines that can be read."""
        places = [each.where.rpartition(":") for each in error.problems]
        wrong = [int(line) for file, _, line in places if file == entry.path and line.isdigit()]
        if entry.kind == "quilt" and len(wrong) == len(places):
            rows = split_lines(self._read(entry.path, entry.where))
            for line in wrong:
                # what it names is no file that nobody lists
                rows[line - 1] = b"# " + rows[line - 1]
            with suppress(BadInputError):
                return parse_list(b"".join(rows), entry)
        return Series()  # it is no series

    def _local(
        self,
        entry: PatchEntry,
        path: str,
        where: Location,
        strip: int | None,
        *,
        name: str = "",
    ) -> Iterator[LoadedPatch]:
        """A patch file of the project; `name` is what a series calls it."""
        file = self._manifest.root / path
        try:
            data: bytes | None = self._read(path, where)
        except BadInputError as error:
            data = self._to_be_made(file, path, where, error)
        if data is not None:
            yield from self._parsed(
                entry,
                data,
                name=name or path.rpartition("/")[2],
                where=path,
                path=file,
                strip=strip,
            )

    def _to_be_made(
        self, file: Path, path: str, where: Location, error: BadInputError
    ) -> bytes | None:
        """What stands for a patch that cannot be read: nothing yet, where there is a recipe."""
        if file.exists() or not file.with_name(recipe_name(file.name)).is_file():
            self._errors.append(error)
        elif self._to_generate:
            return b""
        else:
            what = f"{path} is not made yet from the recipe beside it"
            problem = Problem(what, str(where), "patchkit refresh  makes it")
            self._errors.append(BadInputError(problem))
        return None

    def _pinned(self, entry: PinnedPatch) -> Iterator[LoadedPatch]:
        def read() -> bytes:
            from patchkit.model.repair import repaired  # noqa: PLC0415 (most patches are files)

            args = (self._manifest, self._component, entry, self._progress)
            return repaired(self._store.pinned_file(*args), entry.repair, str(entry.where))

        data = self._tried(read)
        if data is not None:
            place = f"{entry.component or entry.git}:{entry.path}"
            yield from self._parsed(
                entry, data, name=entry.patch_name, where=place, path=None, strip=entry.strip
            )

    def _parsed(
        self,
        entry: PatchEntry,
        data: bytes,
        *,
        name: str,
        where: str,
        path: Path | None,
        strip: int | None,
    ) -> Iterator[LoadedPatch]:
        strip = self._component.strip if strip is None else strip
        loaded = LoadedPatch(
            name=name,
            data=data,
            file=PatchFile(data, b"", b"", None, ()),
            origin=entry,
            path=path,
            where=where,
            strip=strip,
            subdirectory=self._component.subdirectory,
        )
        file = None
        try:
            file = self._known.get(_key(data, strip)) or parse_patch(data, name=where, strip=strip)
        except BadInputError as error:
            self._errors.append(error)
            self.damaged.append((self._sound, loaded))
        taken = self._names.setdefault(name.casefold(), where)
        if taken != where:
            hint = "give one of them another name"
            problem = Problem(f"{name} is the name of two patches: {taken} and this", where, hint)
            self._errors.append(BadInputError(problem))
        elif file is not None:
            self._sound += 1
            yield replace(loaded, file=file)

    def _read(self, path: str, where: Location) -> bytes:
        return read_listed(self._manifest.root, path, where, self._changed)

    def _tried(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except PatchkitError as error:
            self._errors.append(error)
            return None


def _key(data: bytes, strip: int) -> str:
    """What a parsed patch follows from: its bytes, and how many folders go from its paths."""
    return f"{strip} {sha256(data).hexdigest()}"


def _unlisted(
    manifest: Manifest, component: Component, series: Mapping[str, Series]
) -> tuple[str, ...]:
    """The files beside the component's series that neither an entry nor a comment names.

    They are patches, and recipes of patches that are neither listed nor there.
    """
    entries = [e for e in component.patches if isinstance(e, LocalSeries) and e.path in series]
    listed = {e.path for e in component.patches if isinstance(e, LocalPatch)}
    found: list[str] = []
    for entry in entries:
        folder = manifest.root / entry.folder
        listed |= {entry.beside(name) for name in _named(series[entry.path])}
        recipes = files_in(folder, f"*{RECIPE_ENDING}")
        names = [file.name for file in (*files_in(folder, "*.patch"), *recipes)]
        found += [
            entry.beside(name) for name in names if not _has_patch(entry, folder, name, listed)
        ]
    return tuple(path for path in found if path not in listed)


def _has_patch(entry: LocalSeries, folder: Path, name: str, listed: set[str]) -> bool:
    """Whether a file is a recipe whose patch is there, or listed."""
    patch = name.removesuffix(RECIPE_ENDING) + ".patch"
    made = name.endswith(RECIPE_ENDING)
    return made and ((folder / patch).exists() or entry.beside(patch) in listed)


def _named(series: Series) -> Iterator[str]:
    """The patches that a series lists, and those that a comment says something about."""
    for line in series.lines:
        yield from [line.name] if line.name else _MENTIONED.findall(line.text)
