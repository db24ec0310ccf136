"""Say in a few words why a carried file is what it is, and who upstream had to do with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from patchkit.carry.values import Past
from patchkit.model.merging.file import FileMerge
from patchkit.model.merging.regions import Region
from patchkit.model.merging.values import Doubt, Rule
from patchkit.model.outcome import FileOutcome
from patchkit.model.patch import FileChange

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
