"""What a person edited in a folder of installed packages, or in one that was copied out of a
container; told apart from what an installer put there since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import files_in
from patchkit.errors import Problem, UsageError
from patchkit.extensions.installed.layer import RECEIPTS
from patchkit.extensions.installed.placement import (
    FolderView,
    Whereabouts,
    blob_id,
    find_placement,
    stranger,
    with_contents,
)
from patchkit.extensions.installed.wheel_record import Distribution
from patchkit.gitcmd.object_reader import write_objects
from patchkit.manifest.globs import Scope
from patchkit.manifest.values import Component, Manifest
from patchkit.model.diff_parse import split_lines
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, GitObject
from patchkit.model.progress import Progress
from patchkit.model.text import listed
from patchkit.model.tree import Tree
from patchkit.ops.built_stack import BuiltStack, built_stack, require_clean
from patchkit.ops.refresh import refresh_components
from patchkit.ops.refresh_input import RefreshOptions
from patchkit.ops.refresh_report import RefreshReport
from patchkit.refresh.draft import RefreshStart, Request, draft_refresh
from patchkit.refresh.patch_plan import Draft, SeriesFolder
from patchkit.refresh.series_edits import CannotEditSeriesError, SeriesEdit
from patchkit.stack.build import StackFile, read_stack
from patchkit.upstream.store import Store

_NAMED = 3  # so many files of a kind
_NO_SOURCES = (RECEIPTS, "__pycache__", ".git")


class FolderEdits(Struct):
    """What a folder has beyond a stack.

    `files` are those that were edited, by their paths in the upstream's tree; None: removed.
    `notes` say what was left out. `problems` are files that no edits made what they are.
    """

    files: dict[str, bytes | None] = {}
    notes: list[Problem] = []
    problems: list[Problem] = []


def edits_in(view: FolderView, built: BuiltStack, added: Collection[str]) -> FolderEdits | None:
    """The edits in the folder; None where no file of the stack is there.

    A file is edited where it is in none of the stack's states, and not as RECORD has it, if a wheel
    lists it. A wheel's file that is not there was removed; another one may never have been there.
    Of new files those that are `added`, by their paths in the folder, are taken.
    """
    found, tip = FolderEdits(), built.tip.files()
    states = {file.path: file for file in built.stack.files}
    placement = _placement(view, built)
    if placement is None:
        return None
    found.problems += placement.problems
    differing = Scope(tuple(glob for each in built.component.differing for glob in each.files))
    behind = list[str]()
    for path in sorted({*tip, *states}):
        here, entry = placement.installed(path), tip.get(path)
        if here is None or (entry and entry.mode not in (FILE_MODE, EXECUTABLE_MODE)):
            continue
        data = view.read(here)
        own = [each for each in placement.wheels if data is not None and each.is_own(here, data)]
        owner = own[0] if own else placement.owner(here)
        if (None if data is None else blob_id(data)) == (entry and entry.oid):
            continue
        if data is None:
            if owner is not None and here in owner.rows:
                found.files[path] = None
        elif missing := _missing_patch(built, states.get(path), data, here, owner):
            behind.append(f"{here} ({missing})")
        elif differing.covers(path):
            found.notes.append(Problem(f"{here} is `differing` in the manifest, and left out"))
        elif view.is_link(here):
            found.problems.append(Problem(f"{here} is a link"))
        elif own:
            found.problems.append(stranger(owner, here, data))
        else:
            found.files[path] = data
    if behind:
        what = f"files there are without a patch: {listed(behind, _NAMED)}"
        found.problems.append(Problem(what, built.component.name))
    _take_new(view, placement, [*tip], added, found)
    return found


def _placement(view: FolderView, built: BuiltStack) -> Whereabouts | None:
    """Where the stack's files are, or the upstream's where it has none: as they are installed, or
    as in a copy of one of the folders that they are in.
    """
    files = built.stack.files or [
        StackFile(path, (), (entry,)) for path, entry in built.tip.files().items()
    ]
    if (found := find_placement(view, built.component, files)) is not None:
        return found
    return find_placement(view, built.component, files, _folders_of(each.path for each in files))


def _folders_of(paths: Iterable[str]) -> set[str]:
    """The folders that paths are in, and those above."""
    return {path[:at] for path in paths for at, char in enumerate(path) if char == "/"}


def _missing_patch(
    built: BuiltStack, file: StackFile | None, data: bytes, here: str, owner: Distribution | None
) -> str:
    """The first patch of a file that was never in `data`, however that was edited; "" for none.

    RECORD says which state of the file was put there, if it lists one; else it is the likest.
    """
    if file is None:
        return ""
    source, states = built.source, dict[int, bytes]()
    for number, entry in enumerate(file.entries):
        if entry is not None:
            states[number] = source.read(entry.oid, "blob")

    def likeness(number: int) -> tuple[bool, int, int]:
        state = states[number]
        return bool(owner and owner.is_own(here, state)), -_distance(state, data), number

    at = max(states, key=likeness)
    return file.patches[at] if at < len(file.patches) else ""


def _distance(one: bytes, other: bytes) -> int:
    """How many lines one of two files has and the other has not."""
    lines, others = Counter(split_lines(one)), Counter(split_lines(other))
    return (lines - others).total() + (others - lines).total()


def _take_new(
    view: FolderView,
    placement: Whereabouts,
    paths: Sequence[str],
    added: Collection[str],
    found: FolderEdits,
) -> None:
    """Take the new files that were asked for, and name the others in folders of the upstream's."""
    for here in added:
        path, data = placement.upstream(here), view.read(here)
        if path is None or data is None or view.is_link(here):
            found.problems.append(Problem(f"{here} is no file in {view.root}"))
        else:
            found.files[path] = data
    known = {place for path in paths if (place := placement.installed(path)) is not None}
    folders = _folders_of(known)
    known |= {path for wheel in view.wheels() for path in wheel.rows}
    for folder in sorted(folders | ({""} if not placement.wheels else set())):
        for file in files_in(view.root / folder, "*"):
            name = f"{folder}/{file.name}".lstrip("/")
            new = name not in known | folders | {*added} and not name.endswith(".pyc")
            if new and file.name not in _NO_SOURCES:
                hint = f"--add {name}  takes it"
                found.notes.append(Problem(f"{name} is new, and left out", "", hint))


def refresh_from_folder(
    manifest: Manifest,
    component: Component,
    folder: Path,
    *,
    added: Collection[str],
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> RefreshReport:
    """Bring the edits in a folder into a component's patch files, as `refresh_components` does.

    Nothing in the folder is written. UsageError if no file of the component is there,
    CannotEditSeriesError where files are there that nobody edited and that are not the stack's.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    with built_stack(manifest, component, store, progress) as built:
        require_clean(built, manifest)
        edits = edits_in(FolderView(folder), built, added)
    if edits is None:
        hint = "say under `layout` in the manifest which folder is installed as which"
        raise UsageError(f"no file of {component.name} is in {folder}", hint=hint)
    if edits.problems:
        raise CannotEditSeriesError(*edits.problems)
    source = str(folder)
    take = partial(_taken_up, source=source, files=edits.files, request=options.request)
    edit = SeriesEdit("refresh --from", take, source=source)
    options = replace(options, request=Request(), series_edit=edit)
    report = refresh_components(
        manifest,
        [component],
        store=store,
        workspace=workspace,
        options=options,
        progress=progress,
    )
    (done,) = report.components
    done = replace(done, notes=(*done.notes, *edits.notes))
    return replace(report, components=(done,))


def _taken_up(
    start: RefreshStart,
    folder: SeriesFolder,
    *,
    source: str,
    files: Mapping[str, bytes | None],
    request: Request,
) -> Draft:
    """The draft that takes up files as a refresh does those of a checkout, by their paths in the
    tree; None: removed. The stack applies.
    """
    objects: list[GitObject] = []
    worktree = with_contents(Tree(start.reader, start.stack.tree), files, objects)
    write_objects(start.repository, objects)
    base, tip = start.base.commit, start.stack.commit
    commits = read_stack(start.repository, base, tip)
    start = replace(start, worktree=worktree, commits=commits)
    return replace(draft_refresh(start, folder, request), detail=f"edits in {source}")
