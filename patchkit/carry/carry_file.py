"""Carry one file of a patch: from its old and patched contents, and what upstream has now, to what
it will be. `_decide` is the whole decision, `_merge_texts` that of contents that both sides change.

What a rule made is checked and weighed; one that is not sure enough is flagged for review, or with
`--no-fuzz` is a conflict. A conflict that a resolution of the project settles is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import ge, le
from stat import S_IFMT, S_ISREG
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchkit.carry.carried import (
    CarriedFile,
    CarryContext,
    FileSides,
    PatchSide,
    UpstreamSide,
    accepted,
    blob_of,
    certainty_of,
    conflict,
    doubted,
    doubted_as,
    has_lines,
    in_other_scopes,
)
from patchkit.model.apply_changes import apply_changes
from patchkit.model.diff_parse import split_lines
from patchkit.model.evidence import count_of, evidence
from patchkit.model.hunks import Placement, place_hunks
from patchkit.model.merging.checks import doubled_hunk
from patchkit.model.merging.regions import Doubt, Region, Rule, conflict_text
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.outcome import Certainty, FileResult, Status, judged
from patchkit.model.patch import FileChange, Kind
from patchkit.model.resolution import Resolution, conflict_key, other_result
from patchkit.model.syntax import language_of

if TYPE_CHECKING:
    from patchkit.model.merging.merge import FileMerge


def carry_change(context: CarryContext, change: FileChange, before: FileResult) -> CarriedFile:
    """Carry one change alone; `before` is what it comes to on the old base."""
    exact = apply_changes(context.here, context.blobs, (change,)).files[0]
    return carry_file(context, change, doubted_as(exact, before))


def carry_file(context: CarryContext, change: FileChange, exact: FileResult) -> CarriedFile:
    """Carry one change; `exact` is what applying it as it is would come to."""
    before = context.before.entry(change.old_path) if change.old_path is not None else None
    after = context.after.entry(change.new_path) if change.new_path is not None else None
    it = _sides(context, change, exact, before, after)
    carried = _decide(it)
    if carried.outcome.status is Status.ABSORBED:
        return replace(carried, outcome=_with_absorbing_commit(it, carried.outcome))
    if carried.carried:
        return carried
    here = context.here.entry(carried.path)
    key = conflict_key(change, carried.path, before, here)
    if key in context.remembered:
        return _as_remembered(context, context.remembered[key], carried, here)
    if context.merger is not None and not context.careful:
        # imported here: most carries have none
        from patchkit.carry.external import merged_externally  # noqa: PLC0415

        carried = merged_externally(it, carried, context.merger)
    sides = (before, here, after)
    blobs = (blob_of(context.old_blobs, entry) for entry in (before, after) if entry is not None)
    return replace(
        carried, key=key, sides=sides, blobs=tuple(each for each in blobs if each is not None)
    )


# The table of a three-way merge of one file; its cases are those of git's technical/trivial-merge.
# Invariant: each pair of sides meets one row, the first that it fits. Where one side left the file
# as it was, the other's is the result; where both came to the same, nothing is left to do; only
# contents that both changed are merged; what no rule is sure of is a conflict, never a guess.
def _decide(it: FileSides) -> CarriedFile:  # noqa: PLR0911  one table
    """What the file comes to, by what the patch does to it and what upstream has of it."""
    match it.does, it.has:
        case PatchSide.ADDS, UpstreamSide.NOTHING:
            return _in_renamed_folder(it) or _added(it)
        case PatchSide.ADDS, UpstreamSide.PATCHED:
            return _absorbed(it)
        case PatchSide.ADDS, _:
            return conflict(it.exact, it.place, "upstream has a file there already")
        case PatchSide.DELETES, UpstreamSide.NOTHING:
            return _absorbed(it, _absence(it))
        case PatchSide.DELETES, UpstreamSide.OLD if it.here == it.before:
            outcome = replace(it.exact, status=Status.UNCHANGED, clashes=())
            return _followed(it, CarriedFile(outcome, it.place))
        case PatchSide.DELETES, _:
            return _changed_since(it)
        case _, UpstreamSide.NOTHING:
            return conflict(it.exact, it.place, _absence(it))
        case PatchSide.MOVES, _:
            return _blocked(it) or _followed(it, _one_sided(it, it.entries[1].oid))
        case _, UpstreamSide.OLD:
            return _blocked(it) or _followed(it, _one_sided(it, it.entries[2].oid))
        case _, UpstreamSide.PATCHED:
            return _blocked(it) or _followed(it, _made_by_both(it))
        case _:
            return _blocked(it) or _followed(it, _merge_texts(it))


def _merge_texts(it: FileSides) -> CarriedFile:
    """Contents that both sides changed: git's merge, or ours where it conflicts, if all is well."""
    plain = _are_plain(it)
    merge = _merged(it.target, it.texts, patch_first=it.context.patch_first) if plain else None
    if merge is None:
        what = "binary file" if plain else "link or a submodule"
        return conflict(it.exact, it.place, f"both sides change a {what}")
    return _three_way(it, merge) or _in_conflict(it, merge)


def _merged(path: str, texts: Sequence[bytes], *, patch_first: bool) -> FileMerge | None:
    # loaded where a file needs it: in most bumps no file was changed by both sides
    from patchkit.model.merging.merge import merge_file  # noqa: PLC0415

    base, upstream, patch = texts
    merge = merge_file(path, base, upstream, patch, patch_first=patch_first)
    if merge is None or not merge.data or not _repeats_a_key(path, merge.data, upstream, patch):
        return merge
    return replace(merge, doubts=(*merge.doubts, Doubt.DEFINED_TWICE))


def _repeats_a_key(path: str, merged: bytes, *sides: bytes) -> bool:
    """Whether a mapping of a YAML file has a key twice, as on neither side."""
    if language_of(path) != "YAML":
        return False
    from patchkit.manifest.yaml_nodes import repeated_keys  # noqa: PLC0415

    repeated = repeated_keys(merged)
    return bool(repeated) and any(
        count > max(repeated_keys(side)[key] for side in sides) for key, count in repeated.items()
    )


def _sides(
    context: CarryContext,
    change: FileChange,
    exact: FileResult,
    before: TreeEntry | None,
    after: TreeEntry | None,
) -> FileSides:
    if before is None or change.kind is Kind.COPY:
        here = context.here.entry(change.path)
        return FileSides(context, change, exact, change.path, False, None, after, here)
    place, renamed = _locate(context, change)
    here = context.here.entry(place)
    if here is None:
        place, renamed = str(change.old_path), False
    return FileSides(context, change, exact, place, renamed, before, after, here)


def _locate(context: CarryContext, change: FileChange) -> tuple[str, bool]:
    """Where the file of the old base is, and whether upstream alone took it there."""
    old, new = str(change.old_path), change.new_path
    if context.here.entry(old) is not None:
        return old, False
    renamed = context.past.renamed(old)
    if new not in (None, old):
        there = context.here.entry(str(new))
        known = (context.before.entry(old), context.after.entry(str(new)))
        if there is not None and (renamed == new or there in known):
            return str(new), False  # renamed by both sides alike
    return (renamed, True) if renamed is not None else (old, False)


def _added(it: FileSides) -> CarriedFile:
    if it.after is None:
        return conflict(it.exact, it.place, "the patch does not create it on the old base")
    outcome = replace(it.exact, status=Status.UNCHANGED, clashes=())
    return CarriedFile(outcome, it.place, it.after, blob_of(it.context.old_blobs, it.after))


def _in_renamed_folder(it: FileSides) -> CarriedFile | None:
    """A new file in the folder that upstream made of the patch's one."""
    folder, _, name = it.place.rpartition("/")
    moved = it.context.past.folder_renamed(folder) if folder else None
    path = f"{moved}/{name}"
    if moved is None or it.after is None or it.context.here.entry(path) is not None:
        return None
    reason = f"upstream renamed the folder {folder} to {moved}"
    status = replace(it.exact, status=Status.MERGED, clashes=(), carried_to=path)
    outcome = judged(status, Certainty.LOOK, (reason,))
    blob = blob_of(it.context.old_blobs, it.after)
    return accepted(it.context, CarriedFile(outcome, path, it.after, blob))


def _absorbed(it: FileSides, *reasons: str) -> CarriedFile:
    reasons = reasons or it.exact.reasons
    outcome = replace(it.exact, status=Status.ABSORBED, clashes=(), reasons=reasons)
    return CarriedFile(outcome, it.place, it.here)


def _absence(it: FileSides) -> str:
    """Why upstream does not have the file."""
    past = it.context.past
    if past.goes_back:
        return "the file does not exist there yet"
    return f"upstream deleted the file{_by(past.deleted_by(str(it.change.old_path)))}"


def _changed_since(it: FileSides) -> CarriedFile:
    commits = it.context.past.changed_by(it.place)
    by = _by(commits[0]) if commits else ""
    return conflict(it.exact, it.place, f"the patch deletes the file, upstream changed it{by}")


def _blocked(it: FileSides) -> CarriedFile | None:
    """A conflict of paths, modes or kinds of file, whatever is in it."""
    if it.leaves is not None and it.context.here.entry(it.target) is not None:
        return conflict(it.exact, it.target, "upstream has a file there already")
    before, here, after = it.entries
    kinds = {S_IFMT(entry.mode) for entry in it.entries}
    if it.mode is None or (len(kinds) > 1 and here not in (before, after)):
        return conflict(it.exact, it.place, "both sides change the file, one its kind")
    return None


def _followed(it: FileSides, carried: CarriedFile) -> CarriedFile:
    """The result, with a word of the path to which upstream renamed the file.

    For review where the patch renames it, too, or deletes it: it may be wanted there.
    """
    if not (it.renamed and carried.carried):
        return carried
    outcome = carried.outcome
    status = Status.MERGED if outcome.status.applies else outcome.status
    by = _by(it.context.past.deleted_by(str(it.change.old_path)))
    reasons = (f"upstream renamed {it.change.old_path} to {it.place}{by}", *outcome.reasons)
    if it.leaves is not None or it.after is None:
        outcome = doubted(outcome, reasons)
    outcome = replace(outcome, reasons=reasons, carried_to=carried.path, status=status)
    return accepted(it.context, replace(carried, outcome=outcome))


def _one_sided(it: FileSides, oid: str) -> CarriedFile:
    """The contents that one side only changed, with the merged mode."""
    entry = TreeEntry(it.mode or 0, oid)
    nothing = entry == it.here and it.leaves is None
    plain = replace(it.exact, clashes=())
    if nothing:
        outcome = judged(replace(plain, status=Status.ABSORBED), None, ())
    else:
        # offsets that it has on the old base, too, are no news
        shifted = it.exact.status is Status.SHIFTED
        outcome = replace(plain, status=Status.SHIFTED if shifted else Status.UNCHANGED)
    # what an earlier patch made here, the old stack does not have, and the other way round
    blobs = it.context.blobs if oid == it.entries[1].oid else it.context.old_blobs
    carried = CarriedFile(outcome, it.target, entry, blob_of(blobs, entry), it.leaves)
    return accepted(it.context, carried)


def _made_by_both(it: FileSides) -> CarriedFile:
    """Contents that upstream has, too; the patch may still change the mode or the path."""
    here = it.entries[1]
    entry = TreeEntry(it.mode or 0, here.oid)
    left = it.leaves is not None or entry.mode != here.mode
    status = Status.UNCHANGED if left else Status.ABSORBED
    outcome = judged(replace(it.exact, clashes=(), status=status), None, ())
    return CarriedFile(outcome, it.target, entry, None, it.leaves)


def _are_plain(it: FileSides) -> bool:
    return all(S_ISREG(entry.mode) for entry in it.entries)


def _three_way(it: FileSides, merge: FileMerge) -> CarriedFile | None:
    """git's merge, or ours; where the hunks come to the same it is unchanged or shifted."""
    if merge.data is None:
        return None
    here, mode = it.texts[1], it.mode or 0
    placed = place_hunks(here, it.change.hunks)
    reasons = merge_reasons(merge, it)
    if merge.data == placed.data and merge.clean:
        status = Status.SHIFTED if any(placed.offsets) else Status.UNCHANGED
        outcome = replace(it.exact, status=status, offsets=placed.offsets, clashes=())
    else:
        absorbed = merge.data == here and it.leaves is None and mode == it.entries[1].mode
        status = Status.ABSORBED if absorbed else Status.MERGED
        outcome = replace(it.exact, status=status, clashes=())
        if placed.data is not None:
            also = f"its lines also fit at {_place_of(it, placed)}: see which place is meant"
            reasons = (*reasons, also)
    wrong = in_other_scopes(it, merge.data, merge.edits)
    outcome = doubted(judged(outcome, certainty_of(merge), reasons), (*wrong, *it.exact.reasons))
    # git's own merge is what everybody would have: it is written, and flagged
    likely = merge.clean or not (wrong or outcome.certainty is Certainty.DOUBTFUL)
    if not likely and it.context.take_proposals:
        outcome = replace(outcome, reasons=(_TAKEN, *outcome.reasons))
    carried = _with_text(it, merge, outcome, merge.data)
    return accepted(it.context, carried) if likely else _proposed(it, carried)


_TAKEN = "the proposed merge was taken"


def _proposed(it: FileSides, carried: CarriedFile) -> CarriedFile:
    """A conflict with the merge as a proposal, which is likelier wrong than right, or known to be
    in another place; the merge itself where proposals are taken.
    """
    if it.context.take_proposals:
        return accepted(it.context, carried)
    outcome = carried.outcome
    found = conflict(it.exact, it.place, *outcome.reasons, "a merge is proposed: doubtful")
    return replace(found, marked=carried.marked, proposal=carried.blob)


def _place_of(it: FileSides, placed: Placement) -> str:
    """Where the patch's hunks fit, by the first one."""
    made = it.change.hunks[0].old_start
    return f"line {made + placed.offsets[0]} ({made} in the patch)"


def _with_text(it: FileSides, merge: FileMerge, outcome: FileResult, data: bytes) -> CarriedFile:
    blob = make_object("blob", data)
    entry = TreeEntry(it.mode or 0, blob.oid)
    marked = conflict_text(merge.three, it.context.labels)
    return CarriedFile(outcome, it.target, entry, blob, it.leaves, marked)


def _in_conflict(it: FileSides, merge: FileMerge) -> CarriedFile:
    reasons = merge_reasons(merge, it)
    marked = conflict_text(merge.three, it.context.labels)
    return replace(conflict(it.exact, it.place, *reasons), marked=marked)


def _as_remembered(
    context: CarryContext, resolution: Resolution, conflict: CarriedFile, here: TreeEntry | None
) -> CarriedFile:
    """The conflict resolved as before; BadInputError if that comes to something else now."""
    path, entry, blobs = conflict.path, here, tuple[GitObject, ...]()
    if resolution.changes:
        applied = apply_changes(context.here, context.blobs, resolution.changes)
        if applied.tree is None:
            raise other_result(resolution)
        entry, blobs = applied.tree.entry(path), applied.blobs
    touched = {each for c in resolution.changes for each in (c.old_path, c.new_path) if each}
    if entry != resolution.result or touched - {path}:
        raise other_result(resolution)
    status = Status.ABSORBED if entry == here else Status.MERGED
    by = f"merged by {resolution.by}, as" if resolution.by else "resolved as"
    reason = f"{by} remembered in {resolution.where}"
    outcome = replace(
        conflict.outcome,
        status=status,
        clashes=(),
        remembered=resolution.where,
        merged_by=resolution.by,
    )
    outcome = judged(outcome, Certainty.DOUBTFUL if resolution.by else None, (reason,))
    blob = next((each for each in blobs if entry is not None and each.oid == entry.oid), None)
    return CarriedFile(outcome, path, entry, blob)


# Reasons: in a few words why a carried file is what it is, and which upstream commit is behind it.


_SHOWN = 3

_SEE = "see if it is wanted"
_DOUBTS = {
    Doubt.UPSTREAM_HAS_MOST: f"most of what it adds is new upstream: {_SEE}",
    Doubt.DOES_NOT_PARSE: "merged, the file would not parse any more",
    Doubt.DEFINED_TWICE: "merged, the file would define a name twice",
    Doubt.LINES_LOST: "merged, a line would be lost or doubled",
    Doubt.UNCHECKED: "merged, the file could not be checked",
}


_TO_DO: Mapping[Rule | None, str] = {
    None: "",
    Rule.BESIDE: ": see that both hold",
    Rule.BOTH_INSERT: ": see which comes first",
    Rule.CONTAINED: ": see that upstream does what it was for",
    Rule.MOVED: ": see that it belongs there",
    Rule.WORDS: ": see that the lines mean what both want",
}


def merge_reasons(merge: FileMerge, it: FileSides) -> tuple[str, ...]:
    """What a reviewer should know of a merge; nothing of one that is clean and beyond doubt."""
    return tuple(dict.fromkeys(_reasons(merge, it))) if it.context.explains else ()


def _with_absorbing_commit(it: FileSides, outcome: FileResult) -> FileResult:
    """The outcome of a file that upstream has already, with the commit that brought it there.

    What is not the same by git's merge is so by its lines: without evidence they name no commit.
    """
    lines = (line[1:] for hunk in it.change.hunks for line in hunk.lines if line[:1] in b"+-")
    known = not outcome.review or evidence(lines, *it.texts[:2])
    by = it.context.past.since(_places(it), partial(_has_all, it)) if known else ""
    reasons = outcome.reasons or (f"upstream has the file as the patch makes it{_by(by)}",)
    return replace(outcome, reasons=reasons, absorbed_by=by)


def _has_all(it: FileSides, there: bytes | None) -> bool:
    """Whether nothing of the patch is left to do on a version of upstream's file."""
    old, patched = (
        it.context.old_blobs.contents(entry.oid) if entry is not None else None
        for entry in (it.before, it.after)
    )
    if there == patched or old is None or patched is None or there is None:
        return there == patched
    merge = _merged(it.target, (old, there, patched), patch_first=it.context.patch_first)
    return merge is not None and merge.data == there


def _reasons(merge: FileMerge, it: FileSides) -> Iterator[str]:
    places: dict[str, list[str]] = {}  # what is said, of which lines
    for region, resolution in merge.steps:
        rule = None if resolution is None else resolution.rule
        if rule is Rule.CLEAN:
            continue
        detail = resolution.detail if resolution is not None else "both sides change the same lines"
        is_open = rule is Rule.BESIDE and resolution is not None and resolution.open_place
        to_do = _TO_DO[Rule.MOVED if is_open else rule]
        said = f"{detail}{_by(_who(region, it))}{to_do}"
        place = str(region.upstream_at + 1) if rule is None else _lines_of(region)
        places.setdefault(said, []).append(place)
    for said, lines in places.items():
        several = len(lines) > 1 or "-" in lines[0].split()[0]
        yield f"line{'s' if several else ''} {', '.join(lines)}: {said}"
    for doubt in merge.doubts:
        if doubt in _DOUBTS:
            yield _DOUBTS[doubt]
        if doubt is Doubt.UPSTREAM_HAS_A_HUNK:
            told = max(doubled_hunk(merge.three), key=len)
            at = [line.strip() for line in merge.three.upstream].index(told) + 1
            what, by = told.decode("utf-8", "replace"), _by(_since(it, [told], ge))
            yield f"a hunk adds `{what}`, as line {at} upstream does{by}: {_SEE}"
    gone = "upstream's file does not use", "see that it is there by that name"
    unbound = "nothing in the merged file defines", "define it"
    names = [(name, *gone) for name in merge.names[:_SHOWN]]
    base, upstream = {*merge.three.base}, {*merge.three.upstream}
    for name, what, to_do in (*names, *((name, *unbound) for name in merge.unbound[:_SHOWN])):
        word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
        merged = merge.three.patch if merge.data is None else split_lines(merge.data)
        used = [(n, line) for n, line in enumerate(merged, 1) if word.search(line)]
        # in the patch's own lines first, else in those that upstream brought
        _, _, at = min(((line in upstream, line in base, n) for n, line in used), default=(0, 0, 0))
        lost = [line for line in base - upstream if word.search(line)]
        by = _behind(it, partial(_lacks, word)) or _since(it, evidence(lost, *it.texts[:2]), le)
        yield f"line {at} uses `{name}`, which {what}{_by(by)}: {to_do}"


def _lacks(word: re.Pattern[bytes], data: bytes | None) -> bool:
    return not word.search(data or b"")


def _lines_of(region: Region) -> str:
    """The lines of a region in upstream's file, and in the file as the patch makes it."""
    first = region.patch_edits[0]
    own = first.new_start - first.start + region.start
    spans = (
        f"{at + 1}-{at + count}" if count > 1 else f"{at + 1}"
        for at, count in ((region.upstream_at, len(region.upstream)), (own, len(region.patch)))
    )
    return "{} ({} as patched)".format(*spans)


_NEAR = (0, 1, 3)  # lines above and below a place that are asked for until it is no other


def _who(region: Region, it: FileSides) -> str:
    """The commit that forced this: what brought upstream's lines here, or took the patch's away.

    Where no line tells, what made the lines here, with those next to them, as they are.
    """
    new = evidence((line for line in region.upstream if line not in region.base), *it.texts[:2])
    gone = evidence((line for line in region.base if line not in region.upstream), *it.texts[:2])
    start, end = region.upstream_at, region.upstream_at + len(region.upstream)
    lines = split_lines(it.texts[1])
    around = (b"".join(lines[max(0, start - near) : end + near]) for near in _NEAR)
    here = (place for place in around if it.texts[1].count(place) == 1)
    made = (_behind(it, partial(has_lines, place)) for place in here)
    return _since(it, new, ge) or _since(it, gone, le) or next(filter(None, made), "")


def _places(it: FileSides) -> list[str]:
    """Where upstream had the file, the newest first."""
    return [each for each in (it.place, it.change.new_path, it.change.old_path) if each]


def _since(it: FileSides, lines: Sequence[bytes], compare: Callable[[int, int], bool]) -> str:
    """The commit since which the first line's count in upstream's file compares so with today's."""
    if not lines:
        return ""
    now = count_of(lines[0], it.texts[1])
    return _behind(it, lambda data: compare(count_of(lines[0], data or b""), now))


def _behind(it: FileSides, holds: Callable[[bytes | None], bool]) -> str:
    """The commit since which something holds upstream, or for want of which it does."""
    past, places = it.context.past, _places(it)
    return past.since(places, holds) or past.lacks(places, holds)


def _by(commit: str) -> str:
    return f" ({commit})" if commit else ""
