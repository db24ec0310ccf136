"""Explain the patches of a stack that do not apply: file by file, hunk by hunk, with where a file
may be now, which names were changed, and for which base the patch was made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec.structs import replace

from patchkit.explain.explanation import (
    Cause,
    FileExplanation,
    HunkExplanation,
    Mismatch,
    MovedPath,
    Origin,
    OtherBlob,
    PatchEdit,
    PatchExplanation,
    RenamedName,
)
from patchkit.gitcmd.commit_history import best_match, find_rename
from patchkit.gitcmd.first_parent import versions
from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.lint import numbered_lines
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Clash, FileResult, PatchResult, Reason, Status
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.revision import reverse_changes
from patchkit.model.similarity import (
    Difference,
    Pair,
    Rewording,
    SimilarLines,
    changed_names,
    differences,
    explains,
    find_exact,
    find_place,
    find_rewordings,
    pair_lines,
)
from patchkit.model.tree import ObjectSource
from patchkit.stack.build import SeriesPatch, Stack, patch_changes

# For which base a patch was made: what its `index` lines say against what the tree has, and which
# commit of its own repository changed it since.


#: path -> [(blob id as a patch's index line says, the patch's name)], of results
Results = Mapping[str, Sequence[tuple[str, str]]]

_SHORTEST_ID = 7  # hex digits; of fewer, ids of different blobs begin alike too easily


def find_origin(
    view: TreeView,
    changes: Iterable[FileChange],
    *,
    base: CommitId,
    history: Repository | None,
    results: Results | None = None,
) -> Origin:
    """Compare the preimage blobs; where some are others, look for the base that has them.

    `history` is searched back from `base` and from other pins in it. `results` are the blobs that
    other patches make: one of them may be missing before this one.
    """
    wanted = _wanted(changes)
    others = tuple(
        OtherBlob(path, blob, found)
        for path, blob in wanted.items()
        if not (found := _blob_at(view, path)).startswith(blob)
    )
    origin = Origin(len(wanted), others)
    if not others:
        return origin
    makers = [name for each in others for name in _makers(each, results or {})]
    origin = replace(origin, made_by=tuple(dict.fromkeys(makers)))
    return origin if history is None else _with_commit(origin, history, base, wanted)


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


def _wanted(changes: Iterable[FileChange]) -> dict[str, str]:
    return {
        change.old_path: change.old_blob
        for change in changes
        if change.old_path and change.old_blob and change.old_blob.strip("0")
        if len(change.old_blob) >= _SHORTEST_ID
    }


def _blob_at(view: TreeView, path: str) -> str:
    entry = view.tree.entry(path)
    return "" if entry is None else entry.oid


def _makers(other: OtherBlob, results: Results) -> list[str]:
    return [
        name
        for blob, name in results.get(other.path, ())
        if blob.startswith(other.expected) or other.expected.startswith(blob)
    ]


def _with_commit(
    origin: Origin, history: Repository, base: CommitId, wanted: Mapping[str, str]
) -> Origin:
    # other pins of the upstream; not every branch, that would take minutes in a whole clone
    pins = {CommitId(each) for each in history.refs("refs/patchkit/").values()}
    tips = [base, *sorted(pins - {base})][:4]
    match = best_match(history, tips, wanted)
    if match is None or match.matches <= origin.known - len(origin.others):
        return origin
    return replace(
        origin,
        commit=match.commit,
        commit_subject=match.subject,
        commit_matches=match.matches,
        alone=match.commit == base and match.matches == origin.known,
    )


# Which commit of its own repository changed a patch so that it fits no more.


# So many versions back somebody may have pinned one that fits.
_VERSIONS = 40


def find_edit(
    repository: Repository,
    commit: CommitId,
    path: str,
    fits: Callable[[bytes], bool],
    bring: Callable[[Iterable[str]], object],
) -> PatchEdit | None:
    """The commit before which the file at `path` fits; None if none is known.

    `bring` is asked for versions that are not here. The version at `commit` does not fit.
    """
    found = versions(repository, commit, path, _VERSIONS)
    entries = [each.touches[path] for each in found]
    blobs = [entry.oid for entry in entries if entry is not None]
    if len(blobs) < 2:
        return None
    bring(blobs)
    with ObjectReader(repository) as reader:
        contents = reader.read_present(blobs)
    for newer, older in pairwise(found):
        entry = older.touches[path]
        data = contents.get(entry.oid) if entry is not None else None
        if data is None:
            return None
        if fits(data):
            by = newer.commit
            digest = sha256(data).hexdigest()
            return PatchEdit(by.id, by.date, by.author, by.subject, older.commit.id, digest)
    return None


# Why one hunk has no place in its file: the nearest thing to it, and how that differs.


_WORD = re.compile(rb"\w")


def explain_hunk(
    view: TreeView,
    path: str,
    hunk: Hunk,
    number: int,
    *,
    clash: Clash | None = None,
    elsewhere: Callable[[], Sequence[str]] = tuple,
) -> HunkExplanation:
    """Look for the hunk's lines in the file `path`, then in those that `elsewhere` names.

    `clash` knows what stands at the recorded place, for want of a better one.
    """
    lines = view.lines(path)
    place_path, place = path, find_hunk(view, path, hunk)
    if place is None:
        place_path, place = _find_elsewhere(view, hunk, elsewhere(), path)
    if place is not None:
        differ = differences(hunk.preimage, view.lines(place_path), place)
    else:
        differ = _at_recorded_place(hunk, clash)
    added, present = count_present(hunk, view, place_path)
    return HunkExplanation(
        number=number,
        line=hunk.line,
        recorded=hunk.old_start,
        cause=_cause(hunk, lines, place, differ, moved=place_path != path),
        place_path=place_path,
        place=place,
        mismatches=_mismatches(differ, hunk),
        added=added,
        present=present,
    )


def find_hunk(view: TreeView, path: str, hunk: Hunk) -> SimilarLines | None:
    """The stretch of a file that is most like what the hunk expects."""
    lines = view.lines(path)
    return find_place(hunk.preimage, lines, near=hunk.old_start, index=view.index(path))


def is_contained(hunk: Hunk, lines: Sequence[bytes]) -> bool:
    """Whether what the hunk leaves behind stands in the file, and it is not only context."""
    at = find_exact(hunk.postimage, lines, near=hunk.new_start)
    return at is not None and hunk.preimage != hunk.postimage


def count_present(hunk: Hunk, view: TreeView, path: str) -> tuple[int, int]:
    """(added lines with words in them, how many of these the file has already)."""
    added = {line[1:].strip() for line in hunk.lines if line[:1] == b"+" and _WORD.search(line)}
    kept = {line.strip() for line in hunk.preimage}
    added -= kept
    have = {line.strip() for line in view.lines(path)} if added else set()
    return len(added), len(added & have)


def line_pairs(explanation: HunkExplanation) -> list[Pair]:
    """The lines that stand reworded in the file, each with its present form."""
    return [
        pair
        for mismatch in explanation.mismatches
        for _, pair in pair_lines(explanation.place_path, mismatch.expected, mismatch.found)
    ]


def apply_rewordings(
    explanation: HunkExplanation, rewordings: Sequence[Rewording]
) -> HunkExplanation:
    """The explanation with cause REWORDED where the renamings make up for all that differs."""
    if explanation.cause is not Cause.CHANGED or not rewordings:
        return explanation
    for mismatch in explanation.mismatches:
        pairs = pair_lines(explanation.place_path, mismatch.expected, mismatch.found)
        whole = len(pairs) == len(mismatch.expected) == len(mismatch.found)
        if not whole or not all(explains(pair, rewordings) for _, pair in pairs):
            return explanation
    return replace(explanation, cause=Cause.REWORDED)


def _find_elsewhere(
    view: TreeView, hunk: Hunk, paths: Sequence[str], default: str
) -> tuple[str, SimilarLines | None]:
    found = [(path, place) for path in paths if (place := find_hunk(view, path, hunk))]
    # half of a hunk's lines in a file of another name is a coincidence too often
    good = [(path, place) for path, place in found if place.similarity >= 0.7]
    return max(good, key=lambda each: each[1].similarity, default=(default, None))


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


def _cause(  # noqa: PLR0911 -- a decision list reads best flat
    hunk: Hunk,
    lines: Sequence[bytes],
    place: SimilarLines | None,
    differ: Sequence[Difference],
    *,
    moved: bool,
) -> Cause:
    if is_contained(hunk, lines):
        return Cause.CONTAINED
    if place is None:
        return Cause.GONE
    if moved:
        return Cause.MOVED
    if not differ:
        return Cause.ANCHORED if _misses_anchor(hunk, lines, place) else Cause.ORDER
    if all(each.line_ends_only for each in differ):
        return Cause.LINE_ENDS
    if all(each.whitespace_only for each in differ):
        return Cause.WHITESPACE
    return Cause.CHANGED


# Where a file that a patch names may be now: by its name, its contents, or git's history.


# Reading is what costs: so many files with the same name, and so many beside it, are looked at.
_NAMESAKES = 24
_NEIGHBOURS = 40
_SHOWN = 3
_HUNKS_COMPARED = 6

# A stem like `utils` tells nothing.
_SHORT = 5

#: Less of a patch's lines than this does not make a file a candidate.
LIKELY = 0.5


def find_moves(
    view: TreeView, change: FileChange, *, base: CommitId, history: Repository | None
) -> tuple[MovedPath, ...]:
    """Paths where the file `change.old_path` may be now, the likeliest first.

    With `history`, git's own rename detection is asked where it was renamed before `base`.
    """
    path = change.old_path
    if path is None:
        return ()
    moves = [_compare(view, change, each) for each in candidates(view, change)]
    likely = sorted(
        (move for move in moves if move.likeness >= LIKELY), key=lambda m: (-m.likeness, m.path)
    )
    renamed = find_rename(history, base, path) if history is not None else None
    if renamed is not None and view.tree.entry(renamed.path) is not None:
        move = _compare(view, change, renamed.path)
        likely = [
            MovedPath(move.path, move.likeness, f"renamed by {renamed.commit}"),
            *(each for each in likely if each.path != renamed.path),
        ]
    return tuple(likely[:_SHOWN])


def candidates(view: TreeView, change: FileChange) -> list[str]:
    """Paths worth a look: the same blob, then the same name, then neighbours of the same kind."""
    path = change.old_path or change.path
    folder, _, name = path.rpartition("/")
    stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix
    files = view.files()
    same_blob = [each for each, entry in files.items() if _is_blob(change, entry.oid)]
    namesakes = _nearest(path, (f for f in files if _name(f) == name), _NAMESAKES)
    telling = len(stem) > _SHORT
    beside = (
        f
        for f in files
        if f.endswith(suffix)
        and (f.rpartition("/")[0].startswith(folder) or (telling and stem in _name(f)))
    )
    found = [*same_blob, *namesakes, *_nearest(path, beside, _NEIGHBOURS)]
    return [each for each in dict.fromkeys(found) if each != path]


def _compare(view: TreeView, change: FileChange, path: str) -> MovedPath:
    entry = view.tree.entry(path)
    if entry is not None and _is_blob(change, entry.oid):
        return MovedPath(path, 1.0, "same contents")
    hunks = change.hunks[:_HUNKS_COMPARED]
    places = [find_hunk(view, path, hunk) for hunk in hunks]
    likeness = sum(place.similarity for place in places if place) / max(1, len(hunks))
    same = _name(path) == _name(change.path)
    return MovedPath(path, round(likeness, 3), "same name" if same else "similar contents")


def _is_blob(change: FileChange, oid: str) -> bool:
    blob = change.old_blob or ""
    return len(blob) >= 7 and oid.startswith(blob)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _nearest(path: str, others: Iterable[str], limit: int) -> list[str]:
    matcher = SequenceMatcher(None, b=path, autojunk=False)

    def unlike(other: str) -> float:
        matcher.set_seq1(other)
        return -matcher.quick_ratio()

    return sorted(others, key=unlike)[:limit]


# Renamings between a patch's words and the tree's, with what the tree says about them.


def renamed_names(
    view: TreeView, files: Sequence[FileExplanation], rewordings: Sequence[Rewording]
) -> tuple[RenamedName, ...]:
    """The renamings that explain hunks, most lines first; none where a hunk fails for more."""
    hunks = [hunk for file in files for hunk in file.hunks]
    if any(hunk.cause is not Cause.REWORDED for hunk in hunks):
        return ()
    names = [_renamed(view, each, hunks) for each in rewordings]
    return tuple(sorted((n for n in names if n.hunks), key=lambda n: (-n.hunks, -n.lines)))


def _renamed(view: TreeView, rewording: Rewording, hunks: Sequence[HunkExplanation]) -> RenamedName:
    change = (rewording.expected, rewording.found)
    explained = [h for h in hunks if any(change in changed_names(p) for p in line_pairs(h))]
    return RenamedName(
        expected=rewording.expected,
        found=rewording.found,
        lines=rewording.lines,
        hunks=len(explained),
        files=rewording.files,
        expected_exists=_exists(view, rewording.expected),
        found_exists=_exists(view, rewording.found),
    )


def _exists(view: TreeView, name: str) -> bool | None:
    """Whether the tree has a module or folder of that name, at its top or in a source folder."""
    path = "/" + name.replace(".", "/")
    if "/" not in path[1:]:
        return None
    return any(f"/{file}".find(f"{path}{end}") >= 0 for file in view.files() for end in "/.")


def explain_stack(
    source: ObjectSource,
    stack: Stack,
    patches: Sequence[SeriesPatch],
    *,
    history: Repository | None = None,
    results: Results | None = None,
) -> tuple[PatchExplanation, ...]:
    """An explanation for each patch of the stack that does not apply; none for a clean one.

    `history` is a repository with the base's history, as far as it is at hand; `results` see
    `find_origin`.
    """
    if stack.clean:
        return ()
    view = TreeView(Overlay(source, stack.objects), stack.tree)
    return tuple(
        explain_patch(
            view, patch, outcome, base=stack.base.commit, history=history, results=results
        )
        for patch, outcome in zip(patches, stack.outcomes, strict=True)
        if outcome.status is Status.CONFLICTED
    )


def explain_patch(
    view: TreeView,
    patch: SeriesPatch,
    outcome: PatchResult,
    *,
    base: CommitId,
    history: Repository | None = None,
    results: Results | None = None,
) -> PatchExplanation:
    """Why `patch`, with `outcome` on the tree of `view`, does not apply."""
    changes = patch_changes(patch)
    files = [
        _explain_file(view, change, file, base, history)
        for change, file in zip(changes, outcome.files, strict=True)
        if file.clashes
    ]
    hunks = [hunk for file in files for hunk in file.hunks]
    rewordings = find_rewordings([pair for hunk in hunks for pair in line_pairs(hunk)])
    files = [
        replace(file, hunks=tuple(apply_rewordings(hunk, rewordings) for hunk in file.hunks))
        for file in files
    ]
    return PatchExplanation(
        name=patch.name,
        contained=_undoes(view, changes),
        files_total=len(changes),
        files=tuple(files),
        renamed=renamed_names(view, files, rewordings),
        origin=find_origin(view, changes, base=base, history=history, results=results),
    )


def _explain_file(
    view: TreeView,
    change: FileChange,
    outcome: FileResult,
    base: CommitId,
    history: Repository | None,
) -> FileExplanation:
    first = outcome.clashes[0]
    moves = (
        find_moves(view, change, base=base, history=history)
        if first.reason is Reason.MISSING
        else ()
    )
    return FileExplanation(
        path=first.path,
        reason=first.reason,
        preimage=outcome.preimage,
        line=first.line,
        detail=first.detail,
        contained=_undoes(view, [change]),
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

    @cache
    def elsewhere() -> Sequence[str]:
        return candidates(view, change)

    return tuple(
        explain_hunk(
            view,
            path,
            change.hunks[clash.hunk - 1],
            clash.hunk,
            clash=clash,
            elsewhere=elsewhere,
        )
        for clash in clashes
        if clash.hunk
    )


def _undoes(view: TreeView, changes: Sequence[FileChange]) -> bool:
    """Whether the tree is as the changes leave it: all of them can be undone exactly."""
    undo = reverse_changes(changes)
    try:
        return apply_changes(view.tree, Blobs(view.source), undo).tree is not None
    except MissingObjectError:
        return False
