"""Write the files of a machine from a manifest, or tell which of them are not up to date."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.atomic import replace_file
from patchkit.errors import BadInputError, ExitCode, Problem, SurroundingsError, UsageError
from patchkit.manifest.environments import whole_environment
from patchkit.manifest.find import absolute
from patchkit.manifest.rules import is_inside
from patchkit.manifest.site_values import GivenValue, read_values, resolve_site
from patchkit.manifest.values import Manifest
from patchkit.rendering.blocks import replaced
from patchkit.rendering.documents import Kind, Place, kinds_of, plan_documents, with_needed
from patchkit.rendering.marking import Condition, condition, is_intact, is_marked
from patchkit.rendering.text import document_text, templates_of
from patchkit.rendering.versions import version_table

#: The site's values beside the files that are made of them.
VALUES_FILE = "values.yaml"


class RenderRequest(Struct, frozen=True):
    """What is asked for; empty `kinds`: all that the manifest says enough for.

    `into` are Markdown files with a place for the version table. `force` writes over what somebody
    edited or wrote.
    """

    output: Path
    kinds: Sequence[Kind] = ()
    given: Sequence[GivenValue] = ()
    into: Sequence[Path] = ()
    check: bool = False
    force: bool = False


class RenderedFile(Struct, frozen=True):
    """A file, how it stood to what the manifest says, and whether it was written.

    `condition` is fresh, stale (as patchkit made it, from something older), edited (changed by hand
    since), foreign (not made by patchkit), missing, or leftover (made from what the manifest no
    longer has). Of a stale file `detail` says what is stale if it is not the text.
    """

    path: str
    condition: Condition
    written: bool = False
    detail: str = ""


class RenderReport(Struct, frozen=True):
    """Every file of a manifest; `check`: nothing was to be written.

    `manifest` is the manifest's path from the project's folder.
    """

    manifest: str
    check: bool
    files: tuple[RenderedFile, ...]

    @property
    def exit_code(self) -> ExitCode:
        """FINDING for a file that does not say what the manifest says, and was not written."""
        wrong = any(
            not each.written and each.condition is not Condition.FRESH for each in self.files
        )
        return ExitCode.FINDING if wrong else ExitCode.OK


class _Wanted(Struct, frozen=True):
    """A file as it ought to be; None: gone."""

    path: Path
    text: str | None
    condition: Condition
    executable: bool = False
    detail: str = ""


def render_manifest(manifest: Manifest, request: RenderRequest) -> RenderReport:
    """Make the files. On disk: each is replaced as a whole, and only if it has to change.

    What somebody edited or wrote stays, unless forced. Raises UsageError for missing site values
    and for kinds that the manifest says nothing of, BadInputError for what cannot be rendered.
    """
    _require_inside(manifest, request.output)
    wanted = [*_documents(manifest, request), *_pages(manifest, request)]
    files = tuple(_settle(each, request) for each in wanted)
    return RenderReport(manifest.path.relative_to(manifest.root).as_posix(), request.check, files)


def values_at(output: Path) -> tuple[GivenValue, ...]:
    """The site values that stand beside the files, if any."""
    path = output / VALUES_FILE
    return read_values(path) if path.is_file() else ()


def _require_inside(manifest: Manifest, output: Path) -> None:
    """Refuse a folder of the project that a symbolic link leads out of."""
    root = manifest.root
    if absolute(output).is_relative_to(root) and not is_inside(output, root):
        raise BadInputError(
            Problem(
                f"{output.as_posix()} leads out of the project",
                hint="a symbolic link on the way; name the place itself with --output",
            )
        )


def _documents(manifest: Manifest, request: RenderRequest) -> Iterator[_Wanted]:
    kinds = _kinds(manifest, request)
    site = resolve_site(manifest, request.given)
    place = Place.of(manifest, request.output)
    templates = templates_of(manifest.root)
    names: set[str] = set()
    texts = [
        (document, document_text(document, templates))
        for document in plan_documents(manifest, kinds, place, site)
    ]
    for document, text in texts:
        names.add(document.name)
        yield _wanted(request.output / document.name, text, executable=document.executable)
    if not request.kinds and not request.into:
        yield from _leftovers(request.output, names, place)


def _wanted(path: Path, text: str, *, executable: bool) -> _Wanted:
    """A file beside what is there; a link is somebody else's, wherever it leads."""
    if path.is_symlink():
        return _Wanted(path, text, Condition.FOREIGN, executable, "a symbolic link")
    found = condition(_read(path), text)
    if found is Condition.FRESH and executable and not os.access(path, os.X_OK):
        return _Wanted(path, text, Condition.STALE, executable, "not executable")
    return _Wanted(path, text, found, executable)


def _kinds(manifest: Manifest, request: RenderRequest) -> tuple[Kind, ...]:
    possible = kinds_of(manifest)
    if request.into and not request.kinds:
        return ()
    if not request.kinds:
        return possible
    lacking = {Kind.DOCKERFILE: "image", Kind.LAUNCH: "launch"}
    problems = [
        Problem(
            f"{manifest.path.name} has no `{lacking[kind]}:`",
            hint=f"{kind.value} is made from it; docs/manifest.md says what goes there",
        )
        for kind in request.kinds
        if kind not in possible
    ]
    if problems:
        raise UsageError(*problems)
    return with_needed(request.kinds)


def _leftovers(output: Path, names: set[str], place: Place) -> Iterator[_Wanted]:
    """Launch scripts that patchkit made from a launch of this manifest that is there no more."""
    for path in sorted(output.glob("launch-*.sh")):
        text = _read(path)
        ours = text is not None and f"from {place.manifest}. " in text and is_marked(text)
        if path.name not in names and text is not None and ours:
            found = Condition.LEFTOVER if is_intact(text) else Condition.EDITED
            yield _Wanted(path, None, found, detail="its launch is gone")


def _pages(manifest: Manifest, request: RenderRequest) -> Iterator[_Wanted]:
    if not request.into:
        return
    name = manifest.path.relative_to(manifest.root).as_posix()
    table = version_table(manifest, whole_environment(manifest))
    text = templates_of(manifest.root).render("versions-table.md.j2", {"table": table})
    for path in request.into:
        page = _read(path)
        if page is None:
            raise UsageError(f"{path} does not exist")
        new, found = replaced(page, name, text, str(path))
        yield _Wanted(path, new, found)


def _settle(wanted: _Wanted, request: RenderRequest) -> RenderedFile:
    """Write what may be written."""
    theirs = wanted.condition in (Condition.EDITED, Condition.FOREIGN)
    write = wanted.condition is not Condition.FRESH and not request.check
    if write and (request.force or not theirs):
        _write(wanted)
        return RenderedFile(_shown(wanted.path), wanted.condition, True, wanted.detail)
    return RenderedFile(_shown(wanted.path), wanted.condition, False, wanted.detail)


def _write(wanted: _Wanted) -> None:
    path = wanted.path
    try:
        if wanted.text is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if wanted.detail == "a symbolic link":
            path.unlink()
        replace_file(path, wanted.text.encode())
        if wanted.executable:
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o444) >> 2)  # who may read it may run it
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be written: {error.strerror}") from error


def _read(path: Path) -> str | None:
    """A file's text; None if there is no file."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadInputError(Problem("not UTF-8", str(path))) from error
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be read: {error.strerror}") from error


def _shown(path: Path) -> str:
    return path.as_posix()
