"""A check, a drift, or both as one HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from patchkit import __version__
from patchkit.drift.drift_report import PatchDrift
from patchkit.errors import ExitCode
from patchkit.model.finding import Landed, Severity
from patchkit.model.states import PATCH_STATES, ROW, State, state_of
from patchkit.model.text import clean
from patchkit.ops.check_report import CheckReport
from patchkit.ops.ci import CiReport
from patchkit.ops.drift import ComponentDrift, DriftReport
from patchkit.report.clashes import clash_of
from patchkit.report.findings import (
    CLASHES,
    COMPONENT,
    MANIFEST,
    Outcome,
    check_outcomes,
    drift_outcomes,
    summary,
)
from patchkit.templates.environments import digest_source, page_part, render_page

# The drawing of an HTML report: a component's history, one row for each patch and one cell for
# each commit.
#
# A row is drawn as runs of one state, so that its size follows from what happened, not from how
# many commits there are.


def outline(look: State, first: float, last: float) -> str:
    """The shape of a state from `first` to `last` of a row, as SVG path data."""
    return "".join(f"M{first:g} {top}H{last:g}V{end}H{first:g}Z" for top, end in look.bands)


# So far apart, in hundredths of the width, labels of months do not touch. A phone has
# room for every third.
_ROOM = 8.0
_FILES = 3
# So many runs of a patch, the newest, are in the table.
_LISTED = 100


class Track(Struct, frozen=True):
    """A patch's row: `shapes` is path data by the key of a state, `words` says the same."""

    patch: PatchDrift
    shapes: tuple[tuple[str, str], ...]
    words: str


class Month(Struct, frozen=True):
    """Where a month begins: `at` is a cell, `left` that in hundredths of the width.

    `wide`: whether there is room for its label before one zooms in.
    """

    label: str
    at: int
    left: float
    wide: bool


class Timeline(Struct, frozen=True):
    """`cells` commits, the start included; `legend` has the states that occur."""

    cells: int
    months: tuple[Month, ...]
    tracks: tuple[Track, ...]
    legend: tuple[State, ...]

    @property
    def grid(self) -> str:
        """The lines between months, as path data."""
        return "".join(f"M{month.at} 0V20" for month in self.months if month.at)


def timeline_of(component: ComponentDrift) -> Timeline:
    """The timeline of a component that was looked at."""
    cells = component.commits + 1
    tracks = tuple(_track(patch) for patch in component.patches)
    seen = {state_of(run.status) for patch in component.patches for run in patch.intervals}
    known = known_commits(component)
    legend = tuple(look for look in PATCH_STATES if look in seen)
    return Timeline(cells, tuple(_months(known, cells)), tracks, legend)


def known_commits(component: ComponentDrift) -> dict[int, Landed]:
    """The commits that the report tells of, by their cells: all, or those of changes."""
    known = dict(enumerate(component.line))
    for patch in component.patches:
        known |= {run.first: run.since for run in patch.intervals if run.since is not None}
    ends = {0: component.start, component.commits: component.tip}
    return known | {at: landed for at, landed in ends.items() if landed is not None}


def _track(patch: PatchDrift) -> Track:
    shapes: dict[State, str] = {}
    for run in patch.intervals:
        look = state_of(run.status)
        shapes[look] = shapes.get(look, "") + outline(look, run.first, run.last + 1)
    drawn = tuple((look.key, shapes[look]) for look in PATCH_STATES if look in shapes)
    told = [f"{run.status.value} for {run.length}" for run in patch.intervals[-6:]]
    earlier = len(patch.intervals) - len(told)
    more = f"{earlier} earlier states, " if earlier else ""
    return Track(patch, drawn, f"{more}{', then '.join(told)} commits")


def _months(known: Mapping[int, Landed], cells: int) -> Iterator[Month]:
    """Where months begin, as far as commits are known.

    A commit that claims a date before those to its left is in their month, and none is believed
    that claims to be later than the last.
    """
    begins: dict[str, int] = {}
    last, end = "", known[max(known)].date
    for at, landed in sorted(known.items()):
        if last <= landed.date <= end:
            last = landed.date
            begins.setdefault(last[:7], at)
    lefts = {month: round(at * 100 / cells, 3) for month, at in begins.items()}
    roomy: list[str] = []
    for month in reversed(lefts):  # the first, which is no whole one, gives way
        if not roomy or lefts[roomy[-1]] - lefts[month] >= _ROOM:
            roomy.append(month)
    for month, at in begins.items():
        day = date.fromisoformat(f"{month}-01")
        year = day.month == 1 or month == roomy[-1]
        label = f"{day:%b %Y}" if year else f"{day:%b}"
        yield Month(label, at, lefts[month], month in roomy)


# What the page's script needs, as JSON inside of HTML.
#
# Inside `<script>` a browser looks for `</script` and `<!--` before anything else, so no `<` may
# stand there; the rest is ASCII, whatever upstream wrote.


_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
_LONGEST = 160


def embedded(data: object) -> Markup:
    """JSON text that may stand in a script element of type application/json."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.translate(_ESCAPES))


def timeline_data(component: ComponentDrift, timeline: Timeline) -> dict[str, object]:
    """Commits as columns, and for each patch its runs: first cell, state, files that clash."""
    places = {look: number for number, look in enumerate(PATCH_STATES)}
    runs = [
        [
            [r.first, places[state_of(r.status)], *([r.files[:_FILES]] if r.files else [])]
            for r in patch.intervals
        ]
        for patch in component.patches
    ]
    return {"length": timeline.cells, "runs": runs, **_commits(known_commits(component))}


def _commits(known: Mapping[int, Landed]) -> dict[str, object]:
    """Those that are known, in order, with their cells."""
    line = [landed for _, landed in sorted(known.items())]
    link = line[0].link if line else None
    return {
        "cells": sorted(known),
        # what a commit's id is put behind to get its address; empty if no page is known
        "page": link.removesuffix(line[0].commit) if link is not None else "",
        "ids": "".join(each.commit for each in line),
        "days": [each.day for each in line],
        "authors": [clean(each.author) for each in line],
        "subjects": [clean(each.subject[:_LONGEST]) for each in line],
    }


class ComponentView(Struct, frozen=True):
    """A component along its branch; no `timeline`: there are no patches to draw."""

    drift: ComponentDrift  # what the report says of it
    anchor: str  # of its heading on the page
    timeline: Timeline | None


def report_page(
    title: str,
    report: CheckReport | DriftReport | CiReport,
    outcomes: Iterable[Outcome],
    written: str,
) -> str:
    """The page of a check, of a drift, or of both in one; `written` says when, for its foot."""
    drift = report.drift if isinstance(report, CiReport) else report
    components = _components(drift) if isinstance(drift, DriftReport) else ()
    anchors = {f"{each.drift.manifest}: {each.drift.name}": each.anchor for each in components}
    listed = list(outcomes)
    whole = (each for each in listed if each.name in (COMPONENT, MANIFEST))
    findings = [(found, each.explanation) for each in listed for found in each.findings]
    findings.sort(key=lambda pair: list(Severity).index(pair[0].severity))
    style, script = page_part("page.css"), page_part("page.js")
    return render_page(
        "page.html.j2",
        title=title,
        passed=report.exit_code is ExitCode.OK,
        verdict=tuple(_verdict(report)),
        outcomes=[(each, anchors.get(each.of.removesuffix(" drift"))) for each in whole],
        components=components,
        findings=[
            (found, clash_of(why) if why is not None and found.code in CLASHES else ())
            for found, why in findings
        ],
        style=style,
        script=script,
        policy=Markup(f"style-src {digest_source(style)}; script-src {digest_source(script)}"),
        data=embedded(_data(components)),
        state_of=state_of,
        outline=outline,
        listed=_LISTED,
        row=ROW,
        written=written,
        version=__version__,
    )


def _verdict(report: CheckReport | DriftReport | CiReport) -> Iterator[str]:
    if isinstance(report, CiReport):
        yield from (f"check: {each}." for each in _verdict(report.check))
        yield from (f"drift: {each}." for each in _verdict(report.drift))
    elif isinstance(report, DriftReport):
        yield summary(drift_outcomes(report))
    else:
        yield summary(check_outcomes(report))


def _components(report: DriftReport) -> tuple[ComponentView, ...]:
    ranked = (replace(e, patches=tuple(sorted(e.patches, key=_rank))) for e in report.components)
    return tuple(
        ComponentView(
            each,
            f"component-{number}",
            timeline_of(each) if each.tip is not None and each.patches else None,
        )
        for number, each in enumerate(ranked, 1)
    )


def _rank(patch: PatchDrift) -> tuple[bool, int]:
    """The place of a patch on the page: first those that need work, the worst state before all."""
    return not patch.needs_work, -PATCH_STATES.index(state_of(patch.status))


def _data(components: Sequence[ComponentView]) -> dict[str, object]:
    drawn = {
        each.anchor: timeline_data(each.drift, each.timeline)
        for each in components
        if each.timeline is not None
    }
    # word and sign of each state, in the order by which runs name them
    looks = [[look.word, look.sign, look.key] for look in PATCH_STATES]
    return {"looks": looks, "components": drawn}
