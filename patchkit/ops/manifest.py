"""Look at manifests: what is wrong with them, and what they say once everything is resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, ExitCode, Problem
from patchkit.manifest.load import inspect_manifest
from patchkit.manifest.values import Component, LocalPatch, LocalSeries, Manifest
from patchkit.manifest.write import manifest_data, yaml_text
from patchkit.model.series_file import parse_series


class LintedManifest(Struct, frozen=True):
    """What was found in one manifest and the parts that it extends.

    `path` is the manifest, `components` how many it has (0 if it cannot be loaded). A problem keeps
    it from being used, a warning does not; each has `what`, `where` ("file:line") and a `hint`.
    """

    path: str
    components: int
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


class LintReport(Struct, frozen=True):
    """Every manifest that was looked at, in order; `strict`: warnings count as problems."""

    manifests: tuple[LintedManifest, ...]
    strict: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """BAD_INPUT for a problem, FINDING for warnings if strict."""
        if any(each.problems for each in self.manifests):
            return ExitCode.BAD_INPUT
        if self.strict and any(each.warnings for each in self.manifests):
            return ExitCode.FINDING
        return ExitCode.OK


class ShownManifest(Struct, frozen=True):
    """A manifest with its parts merged, local URLs absolute and defaults of folders filled in.

    `path` is its file, `files` all files that it is made of, `manifest` its contents in the keys of
    the format (docs/manifest.md).
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"text"})

    path: str
    files: tuple[str, ...]
    manifest: Mapping[str, object]
    text: str


def lint_manifests(paths: Iterable[Path], *, strict: bool = False) -> LintReport:
    """Everything that is wrong with the manifests and with the series that they name."""
    return LintReport(tuple(_lint(path) for path in paths), strict)


def show_manifest(path: Path) -> ShownManifest:
    """The manifest resolved; its text loads again to the same values from the same folder."""
    inspection = inspect_manifest(path)
    if inspection.manifest is None:
        raise BadInputError(*inspection.problems)
    data = manifest_data(inspection.manifest)
    return ShownManifest(str(path), tuple(map(str, inspection.files)), data, yaml_text(data))


def _lint(path: Path) -> LintedManifest:
    inspection = inspect_manifest(path)
    manifest = inspection.manifest
    if manifest is None:
        return LintedManifest(str(path), 0, inspection.problems, inspection.warnings)
    problems = tuple(
        problem
        for component in manifest.components
        for problem in _local_files(manifest, component)
    )
    return LintedManifest(str(path), len(manifest.components), problems, inspection.warnings)


def _local_files(manifest: Manifest, component: Component) -> Iterator[Problem]:
    """Series and patches of the project that are not there, and series that cannot be read."""
    names: dict[str, str] = {}
    for entry in component.patches:
        if isinstance(entry, LocalSeries):
            yield from _series(manifest, entry, names)
        else:
            if isinstance(entry, LocalPatch) and not (manifest.root / entry.path).is_file():
                yield Problem(f"{entry.path} does not exist", str(entry.where), _NOT_THERE)
            yield from _once(entry.patch_name, str(entry.where), names)


def _series(manifest: Manifest, entry: LocalSeries, names: dict[str, str]) -> Iterator[Problem]:
    file = manifest.root / entry.path
    try:
        series = parse_series(read_plain(file), name=entry.path)
    except FileNotFoundError:
        yield Problem(f"{entry.path} does not exist", str(entry.where), _NOT_THERE)
        return
    except OSError as error:
        yield Problem(f"{entry.path} cannot be read: {error.strerror}", str(entry.where))
        return
    except BadInputError as error:
        yield from error.problems
        return
    for patch in series.entries:
        where = f"{entry.path}:{patch.line}"
        if not (file.parent / patch.name).is_file():
            yield Problem(f"{patch.name} does not exist", where, "delete the line, or add the file")
        yield from _once(patch.name, where, names)


def _once(name: str, where: str, names: dict[str, str]) -> Iterator[Problem]:
    first = names.setdefault(name.casefold(), where)
    if first != where:
        yield Problem(f"{name} is the name of the patch at {first}, too", where, "rename one")


_NOT_THERE = "local paths start from the project's folder, the parent of manifests/"
