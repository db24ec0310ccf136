"""Write the files of a machine from a manifest, or tell which of them are not up to date."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import files_in, is_inside
from patchkit.disk.transaction import recover, write_set
from patchkit.errors import BadInputError, ExitCode, Problem, SurroundingsError, UsageError
from patchkit.extensions.machine.documents import (
    Condition,
    TargetFolders,
    condition,
    document_text,
    is_intact,
    is_marked,
    lacking_keys,
    patch_counts,
    plan_documents,
    replaced,
    templates_of,
    with_needed,
)
from patchkit.extensions.machine.lock import EnvironmentLock
from patchkit.extensions.machine.site_values import GivenValue, resolve_site
from patchkit.extensions.machine.topic import DocumentKind
from patchkit.manifest.find import absolute
from patchkit.manifest.values import Manifest, whole_environment

#: The site's values beside the files that are made of them.
VALUES_FILE = "values.yaml"
#: What is in the way of a file: it is somebody else's, wherever it leads.
_LINK = "a symbolic link"


class RenderRequest(Struct, frozen=True):
    """What is asked for; empty `kinds`: all that the manifest says enough for.

    `into` is a Markdown file with a place for the version table. `force` overwrites what somebody
    edited or wrote.
    """

    output: Path  # the folder for the files
    kinds: Sequence[DocumentKind] = ()
    given: Sequence[GivenValue] = ()  # site values, the last one of a name counts
    into: Path | None = None
    check: bool = False  # write nothing, say what is stale
    force: bool = False
    locks: Sequence[EnvironmentLock] = ()  # those that are asked for


class RenderedFile(Struct, frozen=True):
    """A file, how it stood to what the manifest says, and whether it was written.

    `condition` is fresh, stale (as patchkit made it, from something older), edited (changed by hand
    since), foreign (not made by patchkit), missing, or leftover (made from what the manifest no
    longer has). Of a stale file `detail` says what is stale if it is not the text.
    """

    path: str  # as it is written to
    condition: Condition
    written: bool = False
    detail: str = ""


class RenderReport(Struct, frozen=True):
    """Every file of a manifest; `check`: nothing was to be written.

    `manifest` is the manifest's path from the project's folder; `problems` are those of locks that
    cannot be made.
    """

    manifest: str
    check: bool
    files: tuple[RenderedFile, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """FINDING for a file that does not say what the manifest says, and was not written."""
        wrong = any(
            not file.written and file.condition is not Condition.FRESH for file in self.files
        )
        return ExitCode.FINDING if wrong or self.problems else ExitCode.OK


class _Wanted(Struct, frozen=True):
    """A file as it ought to be; None: gone. `there` is what it holds, None for nothing."""

    path: Path
    text: str | None  # its contents
    condition: Condition
    executable: bool = False  # its mode has x
    detail: str = ""  # what is stale, if not the text
    there: str | None = None


def render_manifest(manifest: Manifest, request: RenderRequest) -> RenderReport:
    """Make the files. On disk: all that have to change are replaced together.

    What somebody edited or wrote stays, unless forced. Raises UsageError for missing site values
    and for kinds that the manifest says nothing of, BadInputError for what cannot be rendered.
    """
    _require_inside(manifest, request.output)
    if not request.check:
        _finish(manifest.root, request)
    wanted = [*_documents(manifest, request)]
    wanted += [_page(manifest, request.into)] if request.into else []
    to_write = [file for file in wanted if _may_write(file, request)]
    _write(manifest.root, to_write)
    files = tuple(
        RenderedFile(file.path.as_posix(), file.condition, file in to_write, file.detail)
        for file in wanted
    )
    problems = tuple(lock.problem for lock in request.locks if lock.problem is not None)
    name = manifest.path.relative_to(manifest.root).as_posix()
    return RenderReport(name, request.check, files, problems)


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
    place = TargetFolders.of(manifest, request.output)
    templates = templates_of(manifest.root)
    names: set[str] = set()
    locks = [lock for lock in request.locks if lock.problem is None]
    texts = [
        (document, document_text(document, templates))
        for document in plan_documents(manifest, kinds, place, site, locks)
    ]
    for document, text in texts:
        names.add(document.name)
        yield _wanted(request.output / document.name, text, executable=document.executable)
    if not request.kinds and not request.into:
        yield from _leftovers(request.output, names, place)


def _wanted(path: Path, text: str, *, executable: bool) -> _Wanted:
    """A file beside what is there."""
    if path.is_symlink():
        return _Wanted(path, text, Condition.FOREIGN, executable, _LINK)
    there = _read(path)
    found = condition(there, text)
    if found is Condition.FRESH and executable and not os.access(path, os.X_OK):
        return _Wanted(path, text, Condition.STALE, executable, "not executable", there)
    return _Wanted(path, text, found, executable, there=there)


def _kinds(manifest: Manifest, request: RenderRequest) -> tuple[DocumentKind, ...]:
    lacking = lacking_keys(manifest)
    if not request.kinds:
        left = {DocumentKind.LOCK, *lacking}
        return () if request.into else tuple(kind for kind in DocumentKind if kind not in left)
    problems = [
        Problem(
            f"{manifest.path.name} has no `{lacking[kind]}:`",
            hint=f"{kind.value} is made from it; docs/manifest.md says what goes there",
        )
        for kind in request.kinds
        if kind in lacking
    ]
    if problems:
        raise UsageError(*problems)
    return with_needed(request.kinds)


def _leftovers(output: Path, names: set[str], place: TargetFolders) -> Iterator[_Wanted]:
    """Launch scripts that patchkit made from a launch of this manifest that is there no more."""
    for path in files_in(output, "launch-*.sh"):
        text = _read(path)
        ours = text is not None and f"from {place.manifest}. " in text and is_marked(text)
        if path.name not in names and text is not None and ours:
            found = Condition.LEFTOVER if is_intact(text) else Condition.EDITED
            yield _Wanted(path, None, found, detail="its launch is gone", there=text)


def _page(manifest: Manifest, path: Path) -> _Wanted:
    """A page, with the version table in its place."""
    name = manifest.path.relative_to(manifest.root).as_posix()
    environment, patches = whole_environment(manifest), patch_counts(manifest)
    given = {"manifest": manifest, "environment": environment, "patches": patches}
    text = templates_of(manifest.root).render("versions-table.md.j2", given)
    page = _read(path)
    if page is None:
        raise UsageError(f"{path} does not exist")
    new, found = replaced(page, name, text, str(path))
    return _Wanted(path, new, found, there=page)


def _may_write(wanted: _Wanted, request: RenderRequest) -> bool:
    theirs = wanted.condition in (Condition.EDITED, Condition.FOREIGN)
    write = wanted.condition is not Condition.FRESH and not request.check
    return write and (request.force or not theirs)


def _finish(root: Path, request: RenderRequest) -> None:
    """Finish what a kill interrupted outside of the project; in it, that is done already."""
    for folder in {request.output, request.into.parent if request.into else request.output}:
        if folder.is_dir() and _home(root, folder / VALUES_FILE) != root:
            recover(folder)


def _write(root: Path, wanted: Sequence[_Wanted]) -> None:
    """Write the files: those of the project as one set, others as one in each folder."""
    homes: dict[Path, list[_Wanted]] = {}
    for file in wanted:
        homes.setdefault(_home(root, file.path), []).append(file)
    for home, files in homes.items():
        try:
            home.mkdir(parents=True, exist_ok=True)
            for link in [file.path for file in files if file.detail == _LINK]:
                link.unlink()  # else what it leads to would be written
        except OSError as error:
            raise SurroundingsError(f"{home} cannot be written: {error.strerror}") from error
        write_set(
            home,
            {file.path: _bytes(file.text) for file in files},
            {file.path: _bytes(file.there) for file in files},
            executable={file.path: True for file in files if file.executable},
        )


def _home(root: Path, path: Path) -> Path:
    """The folder whose files change together with this one: the project's, or its own."""
    folder = Path(os.path.realpath(path.parent))
    return root if folder.is_relative_to(os.path.realpath(root)) else folder


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


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
