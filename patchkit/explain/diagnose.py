"""Explain the patches of a stack that do not apply: file by file, hunk by hunk, with where a file
may be now, and for which base the patch was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

from msgspec.structs import replace

from patchkit.explain.explanation import (
    Cause,
    FileExplanation,
    HunkExplanation,
    Mismatch,
    MovedPath,
    Origin,
    OtherBlob,
    PatchExplanation,
)
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.lint import numbered_lines
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Clash, FileResult, PatchResult, Reason, Status
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.revision import reverse_changes
from patchkit.model.similarity import (
    Difference,
    SimilarLines,
    differences,
    find_exact,
    find_place,
    without_blanks,
    without_end,
)
from patchkit.model.tree import ObjectSource
from patchkit.stack.build import SeriesPatch, Stack, patch_changes

# For which base a patch was made: what its `index` lines say against what the tree has.


#: path -> [(blob id as a patch's index line says, the patch's name)], of results
Results = Mapping[str, Sequence[tuple[str, str]]]

_SHORTEST_ID = 7  # hex digits; of fewer, ids of different blobs begin alike too easily


def find_origin(
    view: TreeView,
    changes: Iterable[FileChange],
    *,
    results: Results | None = None,
) -> Origin:
    """Compare the preimage blobs; where some are others, look for a patch that makes them.

    `results` are the blobs that other patches make: one of them may be missing before this one. No
    history is asked: how much of it is here must not show in what is said.
    """
    wanted = dict(preimages(changes))
    others = tuple(
        OtherBlob(path, blob, found)
        for path, blob in wanted.items()
        if not (found := _blob_at(view, path)).startswith(blob)
    )
    makers = [
        name
        for each in others
        for blob, name in (results or {}).get(each.path, ())
        if blob.startswith(each.expected) or each.expected.startswith(blob)
    ]
    return Origin(len(wanted), others, made_by=tuple(dict.fromkeys(makers)))


def results_of(
    patches: Iterable[tuple[str, Iterable[FileChange]]],
) -> dict[str, list[tuple[str, str]]]:
    """The blobs that patches (name, changes) make, for `find_origin`."""
    results: dict[str, list[tuple[str, str]]] = {}
    for name, changes in patches:
        for change in changes:
            blob = change.new_blob or ""
            if change.new_path and len(blob) >= _SHORTEST_ID and blob.strip("0"):
                results.setdefault(change.new_path, []).append((blob, name))
    return results


def preimages(changes: Iterable[FileChange]) -> Iterator[tuple[str, str]]:
    """(path, blob id, maybe abbreviated) of the files that changes were made against.

    A file that an earlier change makes is not in the base.
    """
    made: set[str] = set()
    for change in changes:
        path, blob = change.old_path, change.old_blob or ""
        if path and path not in made and len(blob) >= _SHORTEST_ID and blob.strip("0"):
            yield path, blob
        made |= {change.new_path or "", path or ""}


def _blob_at(view: TreeView, path: str) -> str:
    entry = view.tree.entry(path)
    return "" if entry is None else entry.oid


# Why one hunk has no place in its file: the nearest thing to it, and how that differs.


def explain_hunk(
    view: TreeView,
    path: str,
    hunk: Hunk,
    number: int,
    *,
    clash: Clash | None = None,
) -> HunkExplanation:
    """Look for the hunk's lines in the file `path`.

    `clash` knows what stands at the recorded place, for want of a better one.
    """
    lines, place = view.lines(path), find_hunk(view, path, hunk)
    if place is not None:
        differ = differences(hunk.preimage, lines, place)
    else:
        differ = _at_recorded_place(hunk, clash)
    return HunkExplanation(
        number=number,
        line=hunk.line,
        recorded=hunk.old_start,
        cause=_cause(hunk, lines, place, differ),
        place_path=path,
        place=place,
        mismatches=_mismatches(differ, hunk),
    )


def find_hunk(view: TreeView, path: str, hunk: Hunk) -> SimilarLines | None:
    """The stretch of a file that is most like what the hunk expects."""
    lines = view.lines(path)
    return find_place(hunk.preimage, lines, near=hunk.old_start, index=view.index(path))


def is_contained(hunk: Hunk, lines: Sequence[bytes]) -> bool:
    """Whether what the hunk leaves behind stands in the file, and it is not only context."""
    at = find_exact(hunk.postimage, lines, near=hunk.new_start)
    return at is not None and hunk.preimage != hunk.postimage


def _at_recorded_place(hunk: Hunk, clash: Clash | None) -> tuple[Difference, ...]:
    if clash is None:
        return ()
    return (Difference(tuple(hunk.preimage), clash.found, 0, clash.found_at),)


def _mismatches(differ: Sequence[Difference], hunk: Hunk) -> tuple[Mismatch, ...]:
    numbers = [number for number, line in numbered_lines(hunk) if line[:1] != b"+"]
    return tuple(
        Mismatch(
            each.expected,
            tuple(numbers[each.expected_at : each.expected_at + len(each.expected)]),
            each.found,
            each.found_at,
        )
        for each in differ
    )


def _misses_anchor(hunk: Hunk, lines: Sequence[bytes], place: SimilarLines) -> bool:
    """Whether git wants the hunk at an end of the file, and its lines stand elsewhere."""
    at_start = hunk.old_start <= 1 and place.start != 1
    at_end = hunk.lines[-1][:1] != b" " and place.end != len(lines) + 1
    return at_start or at_end


def _cause(
    hunk: Hunk,
    lines: Sequence[bytes],
    place: SimilarLines | None,
    differ: Sequence[Difference],
) -> Cause:
    if is_contained(hunk, lines):
        return Cause.CONTAINED
    if place is None:
        return Cause.GONE
    if not differ:
        return Cause.ANCHORED if _misses_anchor(hunk, lines, place) else Cause.ORDER
    if all(difference.is_only_in(without_end) for difference in differ):
        return Cause.LINE_ENDS
    if all(difference.is_only_in(without_blanks) for difference in differ):
        return Cause.WHITESPACE
    return Cause.CHANGED


# Where a file that a patch names may be now: by its name, its contents, or git's history.


#: The commit that renamed a file that is gone, and where the file is then; None where not known.
FindRename: TypeAlias = Callable[[str], tuple[CommitId, str] | None]


def no_rename(_path: str) -> None:
    """Nothing is known of renames."""


# Reading is what costs: so many files with the same name are looked at.
_NAMESAKES = 24
_SHOWN = 3
_HUNKS_COMPARED = 6

_SAME_CONTENTS = "same contents"

#: Less of a patch's lines than this does not make a file a candidate.
LIKELY = 0.5


def find_moves(
    view: TreeView, change: FileChange, renamed: FindRename = no_rename
) -> tuple[MovedPath, ...]:
    """Paths where the file `change.old_path` may be now, the likeliest first."""
    path = change.old_path
    if path is None:
        return ()
    moves = [_compare(view, change, each) for each in candidates(view, change)]
    likely = sorted(
        (move for move in moves if move.likeness >= LIKELY), key=lambda m: (-m.likeness, m.path)
    )
    if (found := renamed(path)) is not None:
        commit, home = found
        move = _compare(view, change, home)
        likely = [
            MovedPath(home, move.likeness, f"renamed by {commit}"),
            *(each for each in likely if each.path != home),
        ]
    return tuple(likely[:_SHOWN])


def candidates(view: TreeView, change: FileChange) -> list[str]:
    """Paths worth a look: the same blob, then the same name, the nearest first."""
    path = change.old_path or change.path
    files = view.files()
    same_blob = [each for each, entry in files.items() if _is_blob(change, entry.oid)]
    namesakes = [each for each in files if _name(each) == _name(path)]
    matcher = SequenceMatcher(None, b=path, autojunk=False)

    def unlike(other: str) -> float:
        matcher.set_seq1(other)
        return -matcher.quick_ratio()

    found = [*same_blob, *sorted(namesakes, key=unlike)[:_NAMESAKES]]
    return [each for each in dict.fromkeys(found) if each != path]


def _compare(view: TreeView, change: FileChange, path: str) -> MovedPath:
    entry = view.tree.entry(path)
    if entry is not None and _is_blob(change, entry.oid):
        return MovedPath(path, 1.0, _SAME_CONTENTS)
    hunks = change.hunks[:_HUNKS_COMPARED]
    places = [find_hunk(view, path, hunk) for hunk in hunks]
    likeness = sum(place.similarity for place in places if place) / max(1, len(hunks))
    return MovedPath(path, round(likeness, 3), "same name")


def _is_blob(change: FileChange, oid: str) -> bool:
    blob = change.old_blob or ""
    return len(blob) >= 7 and oid.startswith(blob)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


# The patches of a stack, one after the other.


def explain_stack(
    source: ObjectSource,
    stack: Stack,
    patches: Sequence[SeriesPatch],
    *,
    results: Results | None = None,
) -> tuple[Stack, tuple[PatchExplanation, ...]]:
    """The stack with what only waits told apart, and why each other patch of it does not apply.

    `results` see `find_origin`.
    """
    if stack.clean:
        return stack, ()
    objects = Overlay(source, stack.objects)
    at_base = TreeView(objects, stack.base.tree)
    stack = with_waiting(objects, stack, patches)
    return stack, tuple(
        explain_patch(
            view,
            patch,
            outcome,
            stack.base.commit,
            at_base=at_base,
            results=results,
        )
        for view, patch, outcome in _met(objects, stack, patches)
        if outcome.status is Status.CONFLICTED
    )


def _met(
    source: ObjectSource, stack: Stack, patches: Sequence[SeriesPatch]
) -> Iterator[tuple[TreeView, SeriesPatch, PatchResult]]:
    """Each patch with the tree that it met, and what came of it."""
    view = TreeView(source, stack.base.tree)
    for patch, outcome in zip(patches, stack.outcomes, strict=True):
        yield view, patch, outcome
        if outcome.tree is not None:
            view = TreeView(source, outcome.tree)


def with_waiting(source: ObjectSource, stack: Stack, patches: Sequence[SeriesPatch]) -> Stack:
    """The stack with those patches as waiting that only fail for want of earlier ones that fail.

    That is where what each of their hunks lacks is what those bring, and what is there in its place
    what those take out.
    """
    outcomes = list(stack.outcomes)
    failed: list[tuple[str, FileChange]] = []
    for number, (view, patch, outcome) in enumerate(_met(source, stack, patches)):
        if outcome.status is Status.CONFLICTED:
            changes = patch_changes(patch)
            files = tuple(
                replace(file, waits_for=_lacked(view, change, file, failed))
                for change, file in zip(changes, outcome.files, strict=True)
            )
            if all(file.waits_for for file in files if file.clashes):
                outcomes[number] = replace(outcome, status=Status.WAITING, files=files)
            failed += [(patch.name, change) for change in changes]
    return replace(stack, outcomes=tuple(outcomes))


def _lacked(
    view: TreeView, change: FileChange, file: FileResult, failed: Sequence[tuple[str, FileChange]]
) -> tuple[str, ...]:
    """The patches for want of which a file change fails; none where it fails for more."""
    path = change.old_path or change.path
    there = [(name, each) for name, each in failed if path in (each.old_path, each.new_path)]
    names = tuple(dict.fromkeys(name for name, _ in there))
    rows = [row for _, each in there for hunk in each.hunks for row in hunk.lines]
    brought, taken = ({row[1:] for row in rows if row[:1] == mark} for mark in (b"+", b"-"))
    moved = any(each.old_path != each.new_path for _, each in there)

    def is_lacked(clash: Clash) -> bool:
        if not clash.hunk:
            return moved
        hunk = change.hunks[clash.hunk - 1]
        place = find_hunk(view, path, hunk)
        if place is None:
            lacks, found = set(hunk.preimage) - set(view.lines(path)), set[bytes]()
        else:
            differ = differences(hunk.preimage, view.lines(path), place)
            lacks = {line for each in differ for line in each.expected}
            found = {line for each in differ for line in each.found}
        return bool(lacks or found) and lacks <= brought and found <= taken

    return names if file.clashes and all(map(is_lacked, file.clashes)) else ()


def explain_patch(
    view: TreeView,
    patch: SeriesPatch,
    outcome: PatchResult,
    base: CommitId,
    *,
    at_base: TreeView | None = None,
    renamed: FindRename = no_rename,
    results: Results | None = None,
) -> PatchExplanation:
    """Why `patch`, with `outcome` on the tree of `view`, does not apply.

    `at_base` is the tree without the patches before it, if there are any.
    """
    changes, at_base = patch_changes(patch), at_base or view
    origin = find_origin(view, changes, results=results)
    if origin.others and not find_origin(at_base, changes).others:
        origin = replace(origin, commit=base)
    files = [
        _explain_file(view, change, file, renamed)
        for change, file in zip(changes, outcome.files, strict=True)
        if file.clashes
    ]
    return PatchExplanation(
        name=patch.name,
        contained=undoes(view, changes),
        upstream=undoes(at_base, changes),
        strip=_strip_of(files, patch),
        files=tuple(files),
        origin=origin,
    )


def _strip_of(files: Sequence[FileExplanation], patch: SeriesPatch) -> int | None:
    """How many folders to take off the paths, where all files are there under paths with one more
    or one less, to the byte; None where that is not so.
    """
    levels = {_level(each.path, each.moves) for each in files}
    level = levels.pop() if len(levels) == 1 else 0
    return patch.strip + level if level and not patch.subdirectory else None


def _level(path: str, moves: Sequence[MovedPath]) -> int:
    """1 for a file whose path has a folder too many, -1 for one whose path lacks one; else 0."""
    same = [each.path for each in moves if each.how == _SAME_CONTENTS]
    if path.partition("/")[2] in same:
        return 1
    return -1 if path in [each.partition("/")[2] for each in same] else 0


def _explain_file(
    view: TreeView,
    change: FileChange,
    outcome: FileResult,
    renamed: FindRename,
) -> FileExplanation:
    first = outcome.clashes[0]
    moves = find_moves(view, change, renamed) if first.reason is Reason.MISSING else ()
    return FileExplanation(
        path=first.path,
        reason=first.reason,
        preimage=outcome.preimage,
        line=first.line,
        detail=first.detail,
        contained=undoes(view, [change]),
        hunks_total=len(change.hunks),
        hunks=_explain_hunks(view, change, outcome.clashes, moves),
        moves=moves,
    )


def _explain_hunks(
    view: TreeView, change: FileChange, clashes: Sequence[Clash], moves: Sequence[MovedPath]
) -> tuple[HunkExplanation, ...]:
    if clashes[0].reason is Reason.MISSING:
        # the file is gone: how its hunks fit the likeliest place where it may be now
        path = moves[0].path if moves else None
        chosen = list(enumerate(change.hunks, 1)) if path else []
        return tuple(explain_hunk(view, path or "", h, n) for n, h in chosen)
    path = change.old_path or change.path

    return tuple(
        explain_hunk(
            view,
            path,
            change.hunks[clash.hunk - 1],
            clash.hunk,
            clash=clash,
        )
        for clash in clashes
        if clash.hunk
    )


def undoes(view: TreeView, changes: Sequence[FileChange]) -> bool:
    """Whether the tree is as the changes leave it: all of them can be undone exactly."""
    undo = reverse_changes(changes)
    try:
        return apply_changes(view.tree, Blobs(view.source), undo).tree is not None
    except MissingObjectError:
        return False
