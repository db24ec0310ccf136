"""A bump as Markdown: the body of its pull request, with a drafted commit message.

Sorted by what a reviewer must look at. Texts of others are escaped, as in `markdown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from patchkit.model.outcome import Attention, FileResult, PatchResult
from patchkit.model.text import escaped
from patchkit.ops.refresh_report import (
    BumpedComponent,
    BumpReport,
    NamedPin,
    RefreshResult,
)

_HEADINGS = {
    Attention.CONFLICTED: "In conflict",
    Attention.WAITING: "Waiting for one in conflict",
    Attention.SKIPPED: "Not tried, behind one in conflict",
    Attention.RESOLVED: "Resolved by hand",
    Attention.REVIEW: "To review: the change itself was merged, or is another one now",
    Attention.CONTEXT: "Same change, other lines around it",
    Attention.OFFSETS: "Same change, at other lines",
    Attention.REGENERATED: "Made anew by their recipes",
    Attention.ABSORBED: "Upstream now, taken off the series",
    Attention.LEFT_OUT: "Dropped by hand, taken off the series",
    Attention.UNCHANGED: "Unchanged",
}
_SHORT = {
    Attention.CONFLICTED: "In conflict",
    Attention.WAITING: "Waiting for another",
    Attention.SKIPPED: "Not tried",
    Attention.RESOLVED: "Resolved by hand",
    Attention.REVIEW: "Merged",
    Attention.CONTEXT: "Among other lines",
    Attention.OFFSETS: "At other lines",
    Attention.REGENERATED: "Made anew by recipes",
    Attention.ABSORBED: "Dropped, as upstream has them",
    Attention.LEFT_OUT: "Dropped",
    Attention.UNCHANGED: "Unchanged",
}
_NAMED = (
    Attention.CONFLICTED,
    Attention.RESOLVED,
    Attention.REVIEW,
    Attention.ABSORBED,
    Attention.LEFT_OUT,
)
_DETAILED = (Attention.CONFLICTED, Attention.RESOLVED, Attention.REVIEW)


def bump_markdown(report: BumpReport) -> str:
    """The whole text, without a final newline."""
    return "\n".join(_lines(report))


def _lines(report: BumpReport) -> Iterator[str]:
    several = len(report.components) + len(report.untracked) > 1
    if several:
        yield f"# {escaped(report.subject)}"
        yield ""
    for row in report.components:
        yield from _component(row)
        yield ""
    if report.untracked:
        yield f"No `track`, passed over: {escaped(', '.join(report.untracked))}"
        yield ""
    if report.notes:
        yield from (f"- {escaped(str(each))}" for each in report.notes)
        yield ""
    yield "Commit message:"
    yield ""
    yield from (f"    {line}".rstrip() for line in commit_message(report))


def _component(row: BumpedComponent) -> Iterator[str]:
    yield f"## {_title(row)}"
    yield ""
    yield f"- from {_pin(row.old)}"
    yield f"- to {_pin(row.new)}"
    if row.link:
        yield f"- [what changed upstream]({row.link})"
    for attention, group in groupby(row.patches, key=lambda each: each.attention):
        patches = list(group)
        yield ""
        yield f"### {_HEADINGS[attention]} ({len(patches)})"
        yield ""
        for patch in patches:
            yield from _patch(patch, detailed=attention in _DETAILED)
    if row.notes or row.problems:
        yield ""
        yield "### Left to do"
        yield ""
        yield from (f"- {escaped(str(each))}" for each in (*row.problems, *row.notes))


def _title(row: BumpedComponent) -> str:
    if row.result is RefreshResult.UNCHANGED:
        return f"{escaped(row.name)} is there already"
    return escaped(row.subject if row.moved else f"{row.name} stays where it is")


def commit_message(report: BumpReport) -> Iterator[str]:
    """The lines of a message for the commit that a bump is."""
    yield _plain(report.subject)
    moved = [each for each in report.components if each.moved]
    for row in moved or report.components:
        if len(moved) > 1:
            yield ""
            yield _plain(row.subject)
        groups = groupby(row.patches, key=lambda each: each.attention)
        lines = [_summed(attention, list(group)) for attention, group in groups]
        if lines and len(moved) <= 1:
            yield ""
        yield from lines


def _summed(attention: Attention, patches: Sequence[PatchResult]) -> str:
    names = ", ".join(_plain(each.name) for each in patches)
    told = f" ({names})" if attention in _NAMED else ""
    return f"{_SHORT[attention]}: {len(patches)}{told}"


def _patch(patch: PatchResult, *, detailed: bool) -> Iterator[str]:
    yield f"- [ ] {escaped(patch.name)}" if detailed else f"- {escaped(patch.name)}"
    if not detailed:
        return
    if not patch.explained and patch.attention is Attention.REVIEW:
        yield "  - its change is another one now"
    for file in patch.files:
        if file.review or file.reasons:
            yield f"  - {escaped(_file(file))}"
            yield from (f"    - {escaped(reason)}" for reason in file.reasons)


def _file(file: FileResult) -> str:
    place = f" -> {file.carried_to}" if file.carried_to else ""
    sure = f", {file.confidence:.0%} sure" if file.review else ""
    return f"{file.path}{place}: {file.status.value}{sure}"


def _pin(pin: NamedPin) -> str:
    name = f"{escaped(pin.name)}, " if pin.name else ""
    return f"{name}{escaped(pin.pin)}".removesuffix(", ")


def _plain(text: str) -> str:
    """One line that shows as it is in an indented block."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
