"""Carry one file of a patch: from its old and patched contents, and what upstream has now, to what
it will be.

The first of these that answers decides:

1. one side left the file as it was: the other side's is the result;
2. git's three-way merge, with our rules for the regions that it leaves in conflict; where it is
   clean and puts the hunks where they fit exactly, the patch counts as unchanged or shifted;
3. the one place at which the hunks stand exactly, if they stood at only one on the old base, too;
4. the code's new place, where upstream took the file apart or moved a part of it;
5. a resolution that the project keeps;
6. a conflict.

What a rule made is checked and weighed; one that is not sure enough is flagged for review, or with
`--careful` is a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from patchkit.carry.carried import (
    REGULAR,
    TYPE,
    Besides,
    CarriedFile,
    Change,
    Ground,
    Past,
    accepted,
    blob_of,
    conflict,
    judged,
    placed_well,
)
from patchkit.model.apply_changes import apply_changes
from patchkit.model.diff_parse import split_lines
from patchkit.model.hunks import place_hunks
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.confidence import confidence_of
from patchkit.model.merging.edits import Doubt, Rule
from patchkit.model.merging.markers import conflict_text
from patchkit.model.merging.merge import FileMerge, merge_file
from patchkit.model.merging.moved import MovedMerge, merge_moved, merge_split
from patchkit.model.merging.regions import Region
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.outcome import FileOutcome, Status
from patchkit.model.patch import FileChange, Kind
from patchkit.model.resolution import Resolution, conflict_key, other_result

# Reasons: in a few words why a carried file is what it is, and which upstream commit is behind it.


_TELLING = re.compile(rb"\w.*\w.*\w.*\w.*\w")
_SHOWN = 3

_DOUBTS = {
    Doubt.UPSTREAM_HAS_MOST: "most of the lines that it adds are new upstream, too",
    Doubt.UPSTREAM_HAS_A_HUNK: "all that one of its hunks adds is new upstream, at another place",
    Doubt.DOES_NOT_PARSE: "merged, the file would not parse any more",
    Doubt.DEFINED_TWICE: "merged, the file would define a name twice",
    Doubt.LINES_LOST: "merged, a line would be lost or doubled",
}


def merge_reasons(merge: FileMerge, past: Past, path: str) -> tuple[str, ...]:
    """What a reviewer should know of a merge; nothing of one that is clean and beyond doubt."""
    return tuple(dict.fromkeys(_reasons(merge, past, path)))


def absorbed_by(past: Past, change: FileChange, path: str) -> str:
    """The upstream commit that made the change of a file, as "ID subject"; "" if it is not known.

    That is the one that brought the most telling line which the patch adds, or took one away.
    """
    if change.new_path is None:
        return past.deleted_by(path)
    rows = [line for hunk in change.hunks for line in hunk.lines if _TELLING.search(line[1:])]
    come = max((line[1:] for line in rows if line[:1] == b"+"), key=len, default=b"")
    gone = max((line[1:] for line in rows if line[:1] == b"-"), key=len, default=b"")
    by = past.brought_by(path, come) if come else past.removed_by(path, gone) if gone else ""
    return by or next(iter(past.changed_by(path)), "")


def with_absorbing_commit(past: Past, change: FileChange, outcome: FileOutcome) -> FileOutcome:
    """The outcome of a file that upstream has already, with the commit that brought it there."""
    by = absorbed_by(past, change, outcome.carried_to or outcome.path)
    reasons = outcome.reasons or (f"upstream has the file as the patch makes it{_by(by)}",)
    return replace(outcome, reasons=reasons, absorbed_by=by)


def _reasons(merge: FileMerge, past: Past, path: str) -> Iterator[str]:
    for region, resolution in merge.steps:
        line = f"line {region.upstream_at + 1}"
        if resolution is None:
            yield f"{line}: both sides change the same lines{_by(_who(region, past, path))}"
        elif resolution.rule is Rule.CONTAINED:
            yield f"{line}: {resolution.detail}{_by(_who(region, past, path))}"
        elif resolution.rule is not Rule.CLEAN:
            rewritten = Doubt.REWRITTEN in resolution.doubts
            yield f"{line}: {resolution.detail}{', and rewrote them' if rewritten else ''}"
    for doubt in merge.doubts:
        if doubt in _DOUBTS:
            yield _DOUBTS[doubt]
    yield from names_reason(merge.names)
    if merge.unbound:
        yield f"nothing in the merged file defines {_listed(merge.unbound)}"


def names_reason(names: Sequence[str]) -> tuple[str, ...]:
    """What to say of names that are used and gone."""
    if not names:
        return ()
    return (f"names that it uses are gone from the file upstream: {_listed(names)}",)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def taken_away(region: Region) -> bytes:
    """The most telling of the lines that upstream has no more; b"" if there is none."""
    gone = [line for line in region.base if line not in region.upstream and _TELLING.search(line)]
    return max(gone, key=len, default=b"")


def _who(region: Region, past: Past, path: str) -> str:
    """The commit that brought the most telling line of upstream's side, or took one away."""
    new = [line for line in region.upstream if line not in region.base and _TELLING.search(line)]
    if new:
        return past.brought_by(path, max(new, key=len))
    gone = taken_away(region)
    return past.removed_by(path, gone) if gone else ""


def _by(commit: str) -> str:
    return f" ({commit})" if commit else ""


# Code that went to other files: upstream took the file apart, or moved the part that a patch
# changes. Taken only where every edit has exactly one place (`model/merging/moved.py`), and always
# flagged for review.


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


# How sure an exact place is that a three-way merge does not come to by itself.
_EXACT_ELSEWHERE = 0.7
_IN_RENAMED_FOLDER = 0.7


def carry_file(ground: Ground, change: FileChange, exact: FileOutcome) -> CarriedFile:
    """Carry one change; `exact` is what applying it as it is would come to."""
    before = ground.before.entry(change.old_path) if change.old_path is not None else None
    after = ground.after.entry(change.new_path) if change.new_path is not None else None
    carried = _carry(ground, change, exact, before, after)
    if carried.outcome.status is Status.ABSORBED:
        outcome = with_absorbing_commit(ground.past, change, carried.outcome)
        return replace(carried, outcome=outcome)
    if carried.carried:
        return carried
    here = ground.here.entry(carried.path)
    key = conflict_key(change, carried.path, before, here)
    if key in ground.remembered:
        return _as_remembered(ground, ground.remembered[key], carried, here)
    sides = (before, here, after)
    blobs = (blob_of(ground.old_blobs, entry) for entry in (before, after) if entry is not None)
    return replace(
        carried, key=key, sides=sides, blobs=tuple(each for each in blobs if each is not None)
    )


def _as_remembered(
    ground: Ground, resolution: Resolution, conflict: CarriedFile, here: TreeEntry | None
) -> CarriedFile:
    """The conflict resolved as before; BadInputError if that comes to something else now."""
    path, entry, blobs = conflict.path, here, tuple[GitObject, ...]()
    if resolution.changes:
        applied = apply_changes(ground.here, ground.blobs, resolution.changes)
        if applied.tree is None:
            raise other_result(resolution)
        entry, blobs = applied.tree.entry(path), applied.blobs
    touched = {each for c in resolution.changes for each in (c.old_path, c.new_path) if each}
    if entry != resolution.result or touched - {path}:
        raise other_result(resolution)
    status = Status.ABSORBED if entry == here else Status.MERGED
    reason = f"resolved as remembered in {resolution.where}"
    outcome = replace(
        conflict.outcome,
        status=status,
        clashes=(),
        confidence=1.0,
        reasons=(reason,),
        remembered=resolution.where,
    )
    blob = next((each for each in blobs if entry is not None and each.oid == entry.oid), None)
    return CarriedFile(outcome, path, entry, blob)


def _carry(
    ground: Ground,
    change: FileChange,
    exact: FileOutcome,
    before: TreeEntry | None,
    after: TreeEntry | None,
) -> CarriedFile:
    if before is None or change.kind is Kind.COPY:
        return _added(ground, change, exact, after)
    place, renamed = _locate(ground, change)
    here = ground.here.entry(place)
    if here is None:
        return _gone(ground, change, exact)
    if after is None:
        return _deleted(ground, exact, place, here, before)
    carried = _changed(Change(ground, change, exact, place, before, after, here))
    if renamed and carried.carried:
        reason = f"upstream renamed {change.old_path} to {place}"
        outcome = carried.outcome
        outcome = replace(outcome, reasons=(reason, *outcome.reasons), carried_to=carried.path)
        status = Status.MERGED if outcome.status.applies else outcome.status
        return replace(carried, outcome=replace(outcome, status=status))
    return carried


def _locate(ground: Ground, change: FileChange) -> tuple[str, bool]:
    """Where the file of the old base is, and whether upstream alone took it there."""
    old, new = str(change.old_path), change.new_path
    if ground.here.entry(old) is not None:
        return old, False
    renamed = ground.past.renamed(old)
    if new not in (None, old):
        there = ground.here.entry(str(new))
        known = (ground.before.entry(old), ground.after.entry(str(new)))
        if there is not None and (renamed == new or there in known):
            return str(new), False  # renamed by both sides alike
    return (renamed, True) if renamed is not None else (old, False)


def _added(
    ground: Ground, change: FileChange, exact: FileOutcome, after: TreeEntry | None
) -> CarriedFile:
    path = change.path
    if after is None:
        return conflict(exact, path, "the patch does not make it on the old base")
    here = ground.here.entry(path)
    if here == after:
        return CarriedFile(replace(exact, status=Status.ABSORBED, clashes=()), path, here)
    if here is not None or ground.here.leaf_above(path) is not None:
        return conflict(exact, path, "upstream has a file there already")
    folder, _, name = path.rpartition("/")
    moved = ground.past.folder_renamed(folder) if folder else None
    if moved is not None and ground.here.entry(f"{moved}/{name}") is None:
        reason = f"upstream renamed the folder {folder} to {moved}"
        status = replace(exact, status=Status.MERGED, clashes=(), carried_to=f"{moved}/{name}")
        outcome = judged(status, _IN_RENAMED_FOLDER, (reason,))
        return accepted(
            ground, CarriedFile(outcome, f"{moved}/{name}", after, blob_of(ground.old_blobs, after))
        )
    outcome = replace(exact, status=Status.UNCHANGED, clashes=())
    return CarriedFile(outcome, path, after, blob_of(ground.old_blobs, after))


def _gone(ground: Ground, change: FileChange, exact: FileOutcome) -> CarriedFile:
    path = str(change.old_path)
    commit = ground.past.deleted_by(path)
    by = f" ({commit})" if commit else ""
    if change.new_path is None:
        outcome = replace(
            exact, status=Status.ABSORBED, clashes=(), reasons=(f"upstream deleted it, too{by}",)
        )
        return CarriedFile(outcome, path)
    split = split_up(ground, change, exact)
    return split or conflict(exact, path, f"upstream deleted the file{by}")


def _deleted(
    ground: Ground, exact: FileOutcome, place: str, here: TreeEntry, before: TreeEntry
) -> CarriedFile:
    if here.oid == before.oid:
        return CarriedFile(replace(exact, status=Status.UNCHANGED, clashes=()), place)
    commits = ground.past.changed_by(place)
    by = f" ({commits[0]})" if commits else ""
    return conflict(exact, place, f"the patch deletes the file, upstream changed it{by}")


def _changed(it: Change) -> CarriedFile:
    mode = _mode(it)
    leaves = it.place if it.target != it.place else None
    if leaves is not None and it.ground.here.entry(it.target) is not None:
        return conflict(it.exact, it.target, "upstream has a file there already")
    if mode is None or (_kind_changes(it) and it.here not in (it.before, it.after)):
        return conflict(it.exact, it.place, "both sides change the file, one its kind")
    plain = replace(it.exact, clashes=())
    entry = TreeEntry(mode, it.after.oid)
    if it.before.oid in (it.here.oid, it.after.oid):
        oid = it.after.oid if it.here.oid == it.before.oid else it.here.oid
        entry = TreeEntry(mode, oid)
        nothing = entry == it.here and leaves is None
        status = Status.ABSORBED if nothing else Status.UNCHANGED
        # offsets that it has on the old base, too, are no news
        status = it.exact.status if it.exact.status is Status.SHIFTED and not nothing else status
        plain = judged(plain, 1.0, ()) if nothing else plain
        # what an earlier patch made here, the old stack does not have, and the other way round
        blob = blob_of(it.ground.blobs if oid == it.here.oid else it.ground.old_blobs, entry)
        carried = CarriedFile(replace(plain, status=status), it.target, entry, blob, leaves)
        return accepted(it.ground, carried)
    if it.here.oid == it.after.oid:
        status = Status.UNCHANGED if leaves is not None or mode != it.here.mode else Status.ABSORBED
        outcome = judged(replace(plain, status=status), 1.0, ())
        return CarriedFile(outcome, it.target, entry, None, leaves)
    if not all(each.mode & TYPE == REGULAR for each in (it.before, it.here, it.after)):
        return conflict(it.exact, it.place, "both sides change a link or a submodule")
    return _merged(it, mode, leaves)


def _kind_changes(it: Change) -> bool:
    """Whether the file becomes a link or submodule on some side, or stops being one."""
    return len({each.mode & TYPE for each in (it.before, it.here, it.after)}) > 1


def _mode(it: Change) -> int | None:
    """The three-way merge of the modes; None where both changed it, each to another one."""
    if it.here.mode == it.before.mode:
        return it.after.mode
    return it.here.mode if it.after.mode in (it.before.mode, it.here.mode) else None


def _merged(it: Change, mode: int, leaves: str | None) -> CarriedFile:
    before, here, after = it.texts
    merge = merge_file(it.target, before, here, after)
    if merge is None:
        return conflict(it.exact, it.place, "both sides change a binary file")
    placed = place_hunks(here, it.change.hunks)
    exact = placed.data
    marked = conflict_text(merge, it.ground.labels)
    if merge.data is None:
        return _by_place(it, merge, exact, mode, leaves)
    reasons = merge_reasons(merge, it.ground.past, it.place)
    confidence = confidence_of(merge)
    if merge.data == exact and merge.clean:
        status = Status.SHIFTED if any(placed.offsets) else Status.UNCHANGED
        outcome = replace(it.exact, status=status, offsets=placed.offsets, clashes=())
        if not merge.doubts:
            confidence = 1.0
    else:
        absorbed = merge.data == here and leaves is None and mode == it.here.mode
        status = Status.ABSORBED if absorbed else Status.MERGED
        outcome = replace(it.exact, status=status, clashes=())
        if exact is not None:
            reasons = (*reasons, "its lines also fit at another place")
    blob = make_object("blob", merge.data, it.here.oid)
    outcome = placed_well(it, judged(outcome, confidence, reasons), merge.data, merge.edits)
    carried = CarriedFile(outcome, it.target, TreeEntry(mode, blob.oid), blob, leaves, marked)
    return accepted(it.ground, carried)


def _by_place(
    it: Change, merge: FileMerge, exact: bytes | None, mode: int, leaves: str | None
) -> CarriedFile:
    """Where merging gives up: the exact lines elsewhere, if there is one such place only."""
    marked = conflict_text(merge, it.ground.labels)
    reasons = merge_reasons(merge, it.ground.past, it.place)
    here = it.texts[1]
    if exact is None or not _stands_once(it):
        there = moved_away(it, merge, mode, marked) if leaves is None else None
        if there is not None and there.carried:
            return there
        return replace(conflict(it.exact, it.place, *reasons), marked=marked)
    blob = make_object("blob", exact, it.here.oid)
    outcome = replace(it.exact, status=Status.SHIFTED, clashes=())
    outcome = judged(outcome, _EXACT_ELSEWHERE, ("its lines stand at one other place", *reasons))
    edits = diff_lines(split_lines(here), split_lines(exact))
    outcome = placed_well(it, outcome, exact, edits)
    carried = CarriedFile(outcome, it.target, TreeEntry(mode, blob.oid), blob, leaves, marked)
    return accepted(it.ground, carried)


def _stands_once(it: Change) -> bool:
    """Whether each hunk's lines stood at one place, and do: a twin of theirs is another place."""
    before, here = (b"\n" + text for text in it.texts[:2])
    wanted = [b"\n" + b"".join(hunk.preimage) for hunk in it.change.hunks]
    return all(before.count(lines) == here.count(lines) == 1 for lines in wanted)
