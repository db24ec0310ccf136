"""A bump as one HTML page: what a reviewer reads before the pull request is merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from patchkit import __version__
from patchkit.errors import ExitCode
from patchkit.model.finding import Finding
from patchkit.model.outcome import Attention
from patchkit.model.states import State, state_of
from patchkit.model.text import clean, shown
from patchkit.ops.bump_review import BumpReview, ComponentReview, PatchReview, UpstreamChange
from patchkit.ops.refresh_report import RefreshResult
from patchkit.report.clashes import Row, rows_beside
from patchkit.report.markdown import (
    DETAILED,
    FOLDED,
    HEADINGS,
    check_of,
    interdiff_rows,
    left_to_do,
    problem_rows,
    upstream_rows,
)
from patchkit.templates.environments import digest_source, page_part, render_page

#: So many rows of a difference are shown; the patch files have the rest.
_ROWS = 400


class ReviewedPatch(Struct, frozen=True):
    """A patch: `rows` are the old patch beside the new one, `left_out` how many are not shown."""

    review: PatchReview  # what the page says of it
    anchor: str  # of its heading on the page
    state: State  # what it asks of a reviewer
    rows: tuple[Row, ...]
    left_out: int
    upstream: tuple[tuple[UpstreamChange, tuple[str, ...]], ...]  # with the rows of its diff


class ReviewedGroup(Struct, frozen=True):
    """The patches of which a reviewer is asked the same."""

    heading: str  # what is asked
    folded: bool  # its patches are shown on demand
    open: bool  # the group itself is unfolded at first
    patches: tuple[ReviewedPatch, ...]


class ReviewedComponent(Struct, frozen=True):
    """A component of a bump; `left` is what is still to do, `checked` what a check found."""

    review: ComponentReview  # what the page says of it
    anchor: str  # of its heading on the page
    groups: tuple[ReviewedGroup, ...]  # most to do first
    left: tuple[str, ...]
    checked: str
    findings: tuple[Finding, ...]


def review_page(review: BumpReview, written: str) -> str:
    """The page; `written` says when, for its foot."""
    report = review.report
    components = tuple(
        _component(each, f"component-{number}", report.manifest)
        for number, each in enumerate(review.components, 1)
    )
    style = Markup(page_part("page.css") + page_part("review.css"))
    passed = report.exit_code is ExitCode.OK and not any(each.left for each in components)
    states = [each.result.attention for row in review.components for each in row.patches]
    # a page with something to review on it is not ticked off
    first = next((each for each in DETAILED if each in states), Attention.UNCHANGED)
    state = state_of(first if passed else Attention.CONFLICTED)
    return render_page(
        "review.html.j2",
        title="patchkit bump",
        subject=report.subject,
        dry_run=report.dry_run,
        state=state,
        counts=tuple(_counts(review, states)),
        components=components,
        untracked=report.untracked,
        notes=tuple(problem_rows(report.notes)),
        style=style,
        policy=Markup(f"style-src {digest_source(style)}"),
        written=written,
        version=__version__,
    )


def _component(review: ComponentReview, anchor: str, manifest: str) -> ReviewedComponent:
    views = [_patch(each, f"{anchor}-{number}") for number, each in enumerate(review.patches, 1)]
    groups = []
    for attention in Attention:
        group = tuple(each for each in views if each.review.result.attention is attention)
        if group:
            opened = attention in DETAILED
            groups.append(ReviewedGroup(HEADINGS[attention], attention in FOLDED, opened, group))
    checked, findings = check_of(review)
    left = tuple(left_to_do(review, manifest))
    return ReviewedComponent(review, anchor, tuple(groups), left, checked, tuple(findings))


def _patch(review: PatchReview, anchor: str) -> ReviewedPatch:
    attention = review.result.attention or Attention.UNCHANGED
    rows = tuple(beside(review.change)) if attention not in FOLDED else ()
    upstream = tuple(
        (each, tuple(map(clean, upstream_rows(each.hunks)))) for each in review.upstream
    )
    left_out = max(0, len(rows) - _ROWS)
    return ReviewedPatch(review, anchor, state_of(attention), rows[:_ROWS], left_out, upstream)


def beside(change: bytes) -> Iterator[Row]:
    """The rows of a diff of two patch files: lines of the old one beside those of the new one.

    Lines that go and lines that come in their place are paired in order.
    """
    gone: list[tuple[int, str]] = []
    come: list[tuple[int, str]] = []
    gap = False
    for raw in [*interdiff_rows(change), b""]:
        line = (0, clean(shown(raw[1:])))
        if raw[:1] in (b"-", b"+"):
            (gone if raw[:1] == b"-" else come).append(line)
            continue
        rows = [*rows_beside(gone, come, gap=gap)]
        gap = gap and not rows
        gone, come = [], []
        if raw:
            rows += rows_beside([line], [line], gap=gap)
        gap = not raw
        yield from rows


def _counts(review: BumpReview, states: Sequence[Attention | None]) -> Iterator[str]:
    """How many patches there are of each kind, most urgent first."""
    stays = all(each.result is RefreshResult.UNCHANGED for each in review.report.components)
    if not states and stays:
        yield "Nothing was moved, and no bump to this pin is recorded."
    elif not states:
        yield "No patch is carried."
    for attention in Attention:
        if attention in states:
            yield f"{HEADINGS[attention]}: {states.count(attention)}."
