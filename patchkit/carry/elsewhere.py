"""Follow code to other files: upstream took the file apart, or moved the part that a patch changes.

Only where every edit has one place, and flagged always: `model/merging/split.py` says when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from patchkit.carry.ground import REGULAR, TYPE, Change, Ground, accepted, judged
from patchkit.carry.reasons import merge_reasons, names_reason, taken_away
from patchkit.carry.values import Besides, CarriedFile
from patchkit.model.merging.confidence import confidence_of
from patchkit.model.merging.file import FileMerge, merge_file
from patchkit.model.merging.split import MovedMerge, merge_moved, merge_split
from patchkit.model.objects import TreeEntry, make_object
from patchkit.model.outcome import FileOutcome, Status
from patchkit.model.patch import FileChange

_SPLIT = 0.6
_NAMES_GONE = 0.6
# A commit that writes more files is no move of a piece of code.
_MOST_HOMES = 60


def split_up(ground: Ground, change: FileChange, exact: FileOutcome) -> CarriedFile | None:
    """The change in the files that upstream made of the one that it took away, if it is sure."""
    entries = [
        tree.entry(str(path))
        for tree, path in ((ground.before, change.old_path), (ground.after, change.new_path))
    ]
    before, after = entries
    if before is None or after is None or change.old_path != change.new_path:
        return None
    if before.mode != after.mode or before.mode & TYPE != REGULAR:
        return None
    commit = ground.past.deleted_by(change.path)
    homes = dict(_files(ground, ground.past.written_by(commit, change.path)))
    texts = [ground.old_blobs.contents(entry.oid) for entry in (before, after)]
    candidates = {path: ground.blobs.contents(entry.oid) for path, entry in homes.items()}
    merge = merge_split(texts[0], texts[1], candidates)
    if merge is None:
        return None
    made = _made(homes, merge.files)
    by = f" ({commit})" if commit else ""
    reason = f"upstream took the file apart{by}; its code is in {', '.join(merge.files)} now"
    gone = names_reason(merge.names)
    confidence = _SPLIT * (_NAMES_GONE if gone else 1)
    status = replace(exact, status=Status.MERGED, clashes=(), carried_to=made[0].path)
    outcome = judged(status, round(confidence, 2), (reason, *gone))
    first, *more = made
    carried = CarriedFile(
        outcome,
        first.path,
        first.entry,
        first.blob,
        sides=(before, None, after),
        blobs=tuple(make_object("blob", text) for text in texts),
        split=True,
        besides=tuple(more),
    )
    return accepted(ground, carried)


def moved_away(it: Change, merge: FileMerge, mode: int, marked: bytes) -> CarriedFile | None:
    """The edits that conflict where upstream moved their code, the others here, if it is sure."""
    was = str(it.change.old_path)
    if it.target != it.place or it.change.new_path != was:
        return None
    ground, past = it.ground, it.ground.past
    # a renamed file lost them when it went, or since
    where = list(dict.fromkeys((it.place, was)))
    lines = [taken_away(region) for region in merge.conflicts]
    found = [_first(past.removed_by(path, line) for path in where if line) for line in lines]
    if not all(found):
        return None
    commits = dict.fromkeys(found)
    paths = {path for commit in commits for path in past.written_by(commit, it.place)}
    if len(paths) > _MOST_HOMES:
        return None
    homes = dict(_files(ground, paths - {it.place}))
    homes.pop(it.place, None)
    moved = merge_moved(merge.three, merge.conflicts, {p: _now(ground, p, homes) for p in homes})
    rest = merge_file(it.target, *it.texts[:2], moved.rest) if moved is not None else None
    if moved is None or rest is None or rest.data is None:
        return None
    reason = f"upstream moved the code to {', '.join(moved.files)} ({'; '.join(commits)})"
    carried = _carried_on(it, moved, rest, mode, reason)
    besides = tuple(_made(homes, moved.files))
    return accepted(ground, replace(carried, marked=marked, besides=besides))


def _carried_on(
    it: Change, moved: MovedMerge, rest: FileMerge, mode: int, reason: str
) -> CarriedFile:
    gone = names_reason(moved.names)
    sure = min(_SPLIT, confidence_of(rest)) * (_NAMES_GONE if gone else 1)
    reasons = (reason, *gone, *merge_reasons(rest, it.ground.past, it.place))
    outcome = replace(it.exact, status=Status.MERGED, clashes=())
    blob = make_object("blob", rest.data or b"")
    return CarriedFile(
        judged(outcome, round(sure, 2), reasons),
        it.target,
        TreeEntry(mode, blob.oid),
        blob,
        sides=(it.before, it.here, it.after),
        blobs=tuple(make_object("blob", text) for text in (it.texts[0], it.texts[2])),
        split=True,
    )


def _first(told: Iterable[str]) -> str:
    return next((each for each in told if each), "")


def _files(ground: Ground, paths: Iterable[str]) -> Iterator[tuple[str, TreeEntry]]:
    """The plain files of the new base that have these paths, or had them and were renamed."""
    for path in sorted(paths):
        place = path if ground.here.entry(path) is not None else ground.past.renamed(path)
        entry = ground.here.entry(place) if place is not None else None
        if place is not None and entry is not None and entry.mode & TYPE == REGULAR:
            yield place, entry


def _now(ground: Ground, path: str, homes: dict[str, TreeEntry]) -> tuple[bytes, bytes]:
    """What a file was on the old base, and what it is now."""
    old = ground.before.entry(path)
    plain = old is not None and old.mode & TYPE == REGULAR
    before = ground.old_blobs.contents(old.oid) if old is not None and plain else b""
    return before, ground.blobs.contents(homes[path].oid)


def _made(homes: Mapping[str, TreeEntry], files: Mapping[str, bytes]) -> list[Besides]:
    blobs = ((path, make_object("blob", data)) for path, data in files.items())
    return [Besides(path, TreeEntry(homes[path].mode, blob.oid), blob) for path, blob in blobs]
