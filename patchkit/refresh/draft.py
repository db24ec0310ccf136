"""One component's refresh before anything is written: edits go to their patches, and the series
that results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError, Problem, UsageError
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff_parse import parse_diff
from patchkit.model.mail import subject_from
from patchkit.model.names import (
    broken_name_rule,
    is_listed_name,
    is_patch_name,
    new_name,
    pick_patch,
    slug,
)
from patchkit.model.objects import Base, TreeId
from patchkit.model.patch import FileChange, Identity
from patchkit.refresh.assign import EditedPiece, RoutedEdit, StackTrees, fold, read_changes
from patchkit.refresh.patch_plan import (
    Draft,
    NotReproducedError,
    PlanContext,
    SeriesFolder,
    StackSlot,
    commit_changes,
    plan_patches,
)
from patchkit.stack.build import Stack, StackCommit
from patchkit.stack.patch_files import CommitChange, canonical_diffs
from patchkit.stack.series import LoadedPatch

# Which commit of the stack is which patch of the series, and the order of the series that
# follows.
#
# The trailer that `apply` put into the message says it. Where a commit has lost it (a message
# typed again), the patch is found again if one that is missing does the same, has the same
# subject, or stood at the same place and touches the same files. What is left is a new patch,
# named for its subject.


class KnownPatch(Struct, frozen=True):
    """A patch of the series as it was applied: its diff in canonical form, "" unless it applied."""

    name: str  # its file's name in the series
    subject: str  # the first line of its message
    diff: bytes
    files: frozenset[str]  # paths that it changes


class CommitMatching(Struct, frozen=True):
    """`names[i]` is the patch of commit i, maybe a new one; `dropped` have none."""

    names: tuple[str, ...]
    dropped: tuple[str, ...]


class CommitContents(Struct, frozen=True):
    """What a commit without a name does."""

    diff: bytes  # in canonical form
    files: frozenset[str]  # paths that it changes


def match_commits(
    commits: Sequence[StackCommit],
    known: Sequence[KnownPatch],
    taken: Collection[str],
    look: Callable[[int], CommitContents],
) -> CommitMatching:
    """Name every commit; `taken` are names that no new patch may have, whatever the case.

    `look` is asked for what a commit does, only where its name is lost.
    """
    by_name = {patch.name: patch for patch in known}
    names = [commit.patch if commit.patch in by_name else None for commit in commits]
    for index, name in enumerate(names):
        if name in names[:index]:
            names[index] = None  # split: the first keeps the name
    _find_lost(names, commits, known, look)
    used = {name.casefold() for name in (*taken, *by_name)}
    final: list[str] = []
    for name, commit in zip(names, commits, strict=True):
        final.append(name if name is not None else new_name(commit.subject, used))
        used.add(final[-1].casefold())
    dropped = tuple(patch.name for patch in known if patch.name not in final)
    return CommitMatching(tuple(final), dropped)


def _find_lost(
    names: list[str | None],
    commits: Sequence[StackCommit],
    known: Sequence[KnownPatch],
    look: Callable[[int], CommitContents],
) -> None:
    """Fill in names that commits have lost."""
    lost = [index for index, name in enumerate(names) if name is None and not commits[index].patch]
    missing = [patch for patch in known if patch.name not in names]
    if not lost or not missing:
        return
    looks = {index: look(index) for index in lost}
    tests: tuple[Callable[[int, KnownPatch], bool], ...] = (
        lambda index, patch: bool(patch.diff) and looks[index].diff == patch.diff,
        lambda index, patch: commits[index].subject == patch.subject,
        lambda index, patch: (
            bool(looks[index].files & patch.files) and _same_place(names, known, index, patch)
        ),
    )
    for test in tests:
        for index in [each for each in lost if names[each] is None]:
            fits = [p for p in missing if p.name not in names and test(index, p)]
            rivals = [i for i in lost if names[i] is None and fits and test(i, fits[0])]
            if len(fits) == 1 and len(rivals) == 1:
                names[index] = fits[0].name


def _same_place(
    names: Sequence[str | None], known: Sequence[KnownPatch], index: int, patch: KnownPatch
) -> bool:
    """Whether the commit stands where the patch stood: same neighbours before and after."""
    order = [each.name for each in known]
    place = order.index(patch.name)
    return _neighbour(names, index - 1) == _neighbour(order, place - 1) and _neighbour(
        names, index + 1
    ) == _neighbour(order, place + 1)


def _neighbour(names: Sequence[str | None], index: int) -> str | None:
    return names[index] if 0 <= index < len(names) else ""


class Request(Struct, frozen=True):
    """What the user wants done with edits that belong to no patch for certain."""

    patch: str | None = None  # they go into this patch of the series
    new: str | None = None  # or into a new one of this name; not both
    message: str = ""  # the new patch's
    author: Identity | None = None  # the new patch's
    everything: bool = False  # all edits go into the new one
    canonical: bool = False  # every diff is written in canonical form, changed or not
    staged: bool = False  # only what is staged counts; what is not stays an edit


class RefreshStart(Struct, frozen=True):
    """What a draft starts from: the series as it is, and the checkout's commits and files."""

    repository: Repository
    reader: ObjectReader  # reads the checkout's objects
    base: Base
    patches: tuple[LoadedPatch, ...]  # in the order of the series
    stack: Stack
    commits: tuple[StackCommit, ...]
    worktree: TreeId  # tree of the checkout's files
    taken: frozenset[str]  # file names that a new patch must not get

    def setting(
        self, home: SeriesFolder, changes: Mapping[str, CommitChange], *, canonical: bool = False
    ) -> PlanContext:
        """What new patches are planned against; `changes` are what the patches do now."""
        return PlanContext(
            self.repository, self.reader, self.base, home, self.patches, changes, canonical
        )


class UndecidedEditsError(PatchkitError):
    """Edits that have no patch to go to, among `edits`."""

    def __init__(self, edits: tuple[RoutedEdit, ...]) -> None:
        super().__init__()
        self.edits = edits


def draft_refresh(start: RefreshStart, home: SeriesFolder, request: Request) -> Draft:
    """Think a refresh through; writes nothing but trial objects.

    Raises UndecidedEditsError, or another PatchkitError where the wish cannot be met.
    """
    changes = commit_changes(start.stack)
    matching = _match(start, changes)
    trees = (start.base.tree, *(commit.tree for commit in start.commits))
    pieces = read_changes(StackTrees(start.repository, start.reader, trees), start.worktree)
    fixed = {each.name for each in start.patches if each.path is None}
    names = start.taken.union(matching.names)
    home = replace(home, numbered_anew=request.canonical)
    new = free_name(replace(start, taken=names), request.new) if request.new is not None else ""
    if new and start.patches:
        new = home.name_of(new, start.patches, start.patches[-1])
    routed = [_route(each, matching, fixed, request, new) for each in pieces]
    rows = tuple(_row(piece, number, (*matching.names, new)) for piece, number in routed)
    if any(number is None for _, number in routed):
        raise UndecidedEditsError(rows)
    placed = [(number, piece) for piece, number in routed if number is not None]
    commits = zip(matching.names, start.commits, strict=True)
    words = [(name, commit.message, commit.author) for name, commit in commits]
    notes: tuple[Problem, ...] = ()
    if any(number > len(start.commits) for number, _ in placed):
        trees = (*trees, trees[-1])
        message = request.message.strip("\n") or subject_from(new)
        words.append((new, message, _author(request)))
    elif new and rows:
        hint = f"patchkit undo  and then  patchkit refresh --new {request.new}  takes all edits"
        notes = (Problem(f"{new} was not made: each edit is next to a patch's lines", "", hint),)
    after, objects = fold(start.reader, trees, placed, (*matching.names, new))
    write_objects(start.repository, objects)
    if after[-1] != start.worktree:
        raise NotReproducedError("the edits do not fit into the patches exactly")
    loaded = {each.name: each for each in start.patches}
    slots = [
        StackSlot(name, CommitChange(*ends, message, author), loaded.get(name))
        for (name, message, author), ends in zip(words, pairwise(after), strict=True)
    ]
    setting = start.setting(home, changes, canonical=request.canonical)
    draft = plan_patches(slots, start.patches, setting)
    return replace(draft, edits=rows, dropped=matching.dropped, notes=notes)


def _match(start: RefreshStart, changes: Mapping[str, CommitChange]) -> CommitMatching:
    named = {commit.patch for commit in start.commits}
    missing = [each for each in start.patches if each.name in changes and each.name not in named]
    pairs = [(changes[each.name].before, changes[each.name].after) for each in missing]
    diffs = dict(
        zip((m.name for m in missing), canonical_diffs(start.repository, pairs), strict=True)
    )
    known = [
        KnownPatch(
            each.name,
            changes[each.name].message.split("\n", 1)[0],
            diffs.get(each.name, b""),
            _paths(each.file.changes),
        )
        for each in start.patches
        if each.name in changes
    ]

    def look(index: int) -> CommitContents:
        commit = start.commits[index]
        before = start.commits[index - 1].tree if index else start.base.tree
        (diff,) = canonical_diffs(start.repository, [(before, commit.tree)])
        return CommitContents(diff, _paths(parse_diff(diff)))

    taken = {each.name for each in start.patches} | start.taken
    return match_commits(start.commits, known, taken, look)


def _paths(changes: Collection[FileChange]) -> frozenset[str]:
    return frozenset(change.path for change in changes)


def _route(
    piece: EditedPiece,
    matching: CommitMatching,
    fixed: Collection[str],
    request: Request,
    new: str,
) -> tuple[EditedPiece, int | None]:
    """The piece and the number of the commit that it goes to, None if that is not known."""
    last = len(matching.names) + 1
    if request.everything:
        return replace(piece, reason="as asked"), last
    if piece.owner is not None and piece.owner < last:
        name = matching.names[piece.owner - 1]
        if name not in fixed:
            return piece, piece.owner
        piece = replace(piece, owner=None, reason=f"{name} cannot be rewritten")
    if request.new is not None:
        return piece, last
    if request.patch is not None:
        return piece, _number_of(request.patch, matching, fixed)
    return piece, None


def _number_of(name: str, matching: CommitMatching, fixed: Collection[str]) -> int:
    wanted = pick_patch(name, matching.names)
    if wanted in fixed:
        raise UsageError(
            f"{wanted} belongs to another repository and cannot be rewritten",
            hint="patchkit refresh --new my-change  makes a patch of the edits",
        )
    return matching.names.index(wanted) + 1


def free_name(start: RefreshStart, given: str, old: str = "") -> str:
    """The name for a file that is to be made; UsageError if there can be none, or is one."""
    name = given if given.endswith(".patch") else f"{given}.patch"
    if not (is_patch_name(name.rpartition("/")[2]) and is_listed_name(name)):
        hint = f"{broken_name_rule(name)}; for example {slug(given)}.patch"
        raise UsageError(f"{name!a} is not a valid patch name", hint=hint)
    taken = {each.casefold() for each in (*start.taken, *(each.name for each in start.patches))}
    if name == old or name.casefold() in taken - {old.casefold()}:
        raise UsageError(f"{name} is there already", hint="choose another name")
    return name


def _author(request: Request) -> Identity:
    if request.author is None:
        raise UsageError("a new patch needs an author", hint="git config user.name and user.email")
    return request.author


def _row(piece: EditedPiece, number: int | None, names: Sequence[str]) -> RoutedEdit:
    edit = piece.edit
    return RoutedEdit(
        path=piece.path,
        line=piece.line,
        removed=edit.end - edit.start if edit is not None else 0,
        added=len(edit.lines) if edit is not None else 0,
        patch=names[number - 1] if number is not None else "",
        reason=piece.reason,
        candidates=tuple(names[each - 1] for each in piece.candidates),
    )
