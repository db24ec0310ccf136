"""Mergers beside our own: a program that is asked for a file in conflict, and what of it is taken.

Whoever answers, the result passes the checks of our own merges, and more: nothing outside the
places in conflict is lost, nothing is there twice. It is always flagged, with the merger's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from patchkit.carry.carried import (
    CarriedFile,
    FileSides,
    MergerAnswer,
    MergeRequest,
    doubted,
    in_other_scopes,
)
from patchkit.errors import advice
from patchkit.model.diff_parse import is_binary, split_lines
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.checks import file_doubts, names_gone, names_unbound
from patchkit.model.merging.regions import Doubt, ThreeWay, compare_three, leftover_markers
from patchkit.model.objects import TreeEntry, make_object
from patchkit.model.outcome import Certainty, Status, judged

_WORD = re.compile(rb"\w")
_SHOWN = 60  # characters of a line
_FORBIDDEN = {
    Doubt.DOES_NOT_PARSE: "does not parse",
    Doubt.DEFINED_TWICE: "defines a name twice",
    Doubt.UNCHECKED: "could not be checked",
}


def merged_externally(
    it: FileSides, conflict: CarriedFile, merger: Callable[[MergeRequest], MergerAnswer | None]
) -> CarriedFile:
    """The file as the merger has it, flagged; else the conflict, with a word why not.

    Only contents are asked for that both sides changed: a conflict of these has markers.
    """
    if conflict.marked is None:
        return conflict
    request = MergeRequest(
        it.place,
        *it.texts,
        conflict.marked,
        conflict.outcome.reasons,
        it.context.past.changed_by(it.place),
    )
    answer = merger(request)
    if answer is None:
        return conflict
    problem = answer.problem or refused(request, answer.data or b"")
    if problem:
        outcome = conflict.outcome
        said = f"{answer.name}: {problem}"
        return replace(conflict, outcome=replace(outcome, reasons=(*outcome.reasons, said)))
    return _taken(it, conflict, answer.name, answer.data or b"", _three(request))


def _taken(
    it: FileSides, conflict: CarriedFile, name: str, data: bytes, three: ThreeWay
) -> CarriedFile:
    reasons = [f"merged by {name}", *conflict.outcome.reasons]
    for what, names in (
        ("gone from the file upstream", advice(names_gone, it.target, three)),
        (
            "defined by nothing in the merged file",
            advice(names_unbound, it.target, three, data),
        ),
    ):
        if names != ():
            known = "not known, the check failed" if names is None else ", ".join(names)
            reasons.append(f"names that are {what}: {known}")
    outcome = replace(it.exact, status=Status.MERGED, clashes=(), merged_by=name)
    edits = diff_lines(three.upstream, split_lines(data))
    said = (*in_other_scopes(it, data, edits), *it.exact.reasons)
    outcome = doubted(judged(outcome, Certainty.DOUBTFUL, tuple(reasons)), said)
    blob = make_object("blob", data)
    return CarriedFile(
        outcome,
        it.target,
        TreeEntry(it.mode or it.entries[1].mode, blob.oid),
        blob,
        it.leaves,
        marked=conflict.marked,
    )


def _three(request: MergeRequest) -> ThreeWay:
    base, upstream, patched = request.base, request.upstream, request.patched
    return compare_three(split_lines(base), split_lines(upstream), split_lines(patched))


def refused(request: MergeRequest, data: bytes) -> str:
    """Why a result is not taken; "" if nothing speaks against it."""
    sides = request.base, request.upstream, request.patched
    if data == request.upstream:
        return "gave upstream's file: the change would be lost"
    if is_binary(data):
        return "gave a binary file"
    if markers := leftover_markers(request.marked, sides, data):
        return f"left conflict markers, at line {markers[0]}"
    doubts = advice(file_doubts, request.path, sides[1:], data)
    for doubt in (Doubt.UNCHECKED,) if doubts is None else doubts:
        if doubt in _FORBIDDEN:
            return f"gave a file that {_FORBIDDEN[doubt]}"
    lost, doubled = _lost_and_doubled(_three(request), split_lines(data))
    for what, lines in (("lost a line outside of the conflict", lost), ("doubled a line", doubled)):
        if lines:
            return f"{what}: {lines[0].decode('utf-8', 'replace')[:_SHOWN]}"
    return ""


def _lost_and_doubled(three: ThreeWay, result: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Lines that are there too seldom, or too often, white space around them apart.

    Invariant: what is settled without the merger stays, so each line is there at least as often as
    outside of the conflicts. In a conflict a line may be as often as in a side, or as upstream
    has it with what the patch adds; a line that no side knows is the merger's own.
    """
    settled = three.assemble([region.settled or () for region in three.regions])
    least = counted_lines(split_lines(settled))
    most = Counter(least)
    for region in three.conflicts:
        base, upstream, patch = map(counted_lines, (region.base, region.upstream, region.patch))
        most += (upstream + (patch - base)) | patch
    found = counted_lines(result)
    known = counted_lines(three.base) | counted_lines(three.upstream) | counted_lines(three.patch)
    lost = [line for line, count in least.items() if found[line] < count]
    return lost, [line for line, n in found.items() if line in known and n > most[line]]


def counted_lines(lines: Sequence[bytes]) -> Counter[bytes]:
    """How often each line is there that has a word; brackets and blanks are anywhere."""
    return Counter(line.strip() for line in lines if _WORD.search(line))
