"""A check, a drift, or both as one HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from patchkit import __version__
from patchkit.drift.drift_report import Landed, PatchDrift, forecast_words
from patchkit.errors import ExitCode
from patchkit.model.outcome import Status
from patchkit.model.text import clean, counted
from patchkit.ops.check_report import BrokenManifest, CheckReport, PatchCheck
from patchkit.ops.ci import CiReport
from patchkit.ops.drift import ComponentDrift, DriftReport, needs_attention
from patchkit.report.findings import MOVED_WORDS, Notice
from patchkit.report.html.charts import (
    ORDER,
    ROW,
    StateStyle,
    Timeline,
    Trend,
    known_commits,
    look_of,
    outline,
    timeline_of,
    trend_of,
)
from patchkit.report.html.clashes import ClashView, clash_of
from patchkit.templates.environments import digest_source, page_part, render_page

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
    places = {look: number for number, look in enumerate(ORDER)}
    runs = [
        [[run.first, places[run.look], *([list(run.files)] if run.files else [])] for run in t.runs]
        for t in timeline.tracks
    ]
    return {"length": timeline.cells, "runs": runs, **_commits(known_commits(component))}


def looks_data() -> list[list[str]]:
    """Word and sign of each state, in the order by which runs name them."""
    return [[look.word, look.sign, look.key] for look in ORDER]


def _commits(known: Mapping[int, Landed]) -> dict[str, object]:
    """Those that are known, in order, with their cells."""
    line = [landed for _, landed in sorted(known.items())]
    authors = {name: number for number, name in enumerate(sorted({each.author for each in line}))}
    return {
        "cells": sorted(known),
        "page": _embedding_page(line),
        "ids": "".join(each.commit for each in line),
        "days": [each.day for each in line],
        "authors": [clean(name) for name in authors],
        "by": [authors[each.author] for each in line],
        "subjects": [clean(each.subject[:_LONGEST]) for each in line],
    }


def _embedding_page(line: Sequence[Landed]) -> str:
    """What a commit's id is put behind to get its address; empty if no page is known."""
    link = line[0].link if line else None
    return link.removesuffix(line[0].commit) if link is not None else ""


_FITS = (Status.UNCHANGED, Status.SHIFTED, Status.EMPTY)
# Neither fitting nor conflicting: what a bump would do about them.
_BETWEEN = {
    "Carried by merging": Status.MERGED,
    "Made anew by their recipe": Status.REGENERATED,
    "Upstream already": Status.ABSORBED,
}


class PatchView(Struct, frozen=True):
    """A patch along a branch: `ahead` says what a bump would do, `since` what put it as it is."""

    drift: PatchDrift
    look: StateStyle
    since: Landed | None
    ahead: str
    clash: ClashView | None
    attention: bool


class ComponentView(Struct, frozen=True):
    """A component along its branch; no `timeline`: there are no patches to draw."""

    drift: ComponentDrift
    anchor: str
    timeline: Timeline | None
    patches: tuple[PatchView, ...]
    trend: Trend | None

    @property
    def attention(self) -> int:
        """How many patches need a look."""
        return sum(patch.attention for patch in self.patches)


class CheckView(Struct, frozen=True):
    """A patch that does not apply to its pin."""

    component: str
    patch: PatchCheck
    clash: ClashView


def drift_page(report: DriftReport, notices: Iterable[Notice], written: str) -> str:
    """The page of a drift; `written` says when, for its foot."""
    return _page("patchkit drift", report.exit_code, notices, written, drift=report)


def check_page(report: CheckReport, notices: Iterable[Notice], written: str) -> str:
    """The page of a check."""
    return _page("patchkit check", report.exit_code, notices, written, check=report)


def ci_page(report: CiReport, notices: Iterable[Notice], written: str) -> str:
    """The page of both in one."""
    code, check, drift = report.exit_code, report.check, report.drift
    return _page("patchkit ci", code, notices, written, check=check, drift=drift)


def _page(
    title: str,
    code: ExitCode,
    notices: Iterable[Notice],
    written: str,
    *,
    check: CheckReport | None = None,
    drift: DriftReport | None = None,
) -> str:
    components = _components(drift) if drift is not None else ()
    broken = _broken(check, drift)
    if check is not None and not check.components:
        check = None  # as where the jobs of a matrix looked for drift only
    style, script = page_part("page.css"), page_part("page.js")
    return render_page(
        "page.html.j2",
        title=title,
        passed=code is ExitCode.OK,
        verdict=tuple(
            _verdict(code, check, components, drift.unchanged if drift is not None else 0)
        ),
        check=check,
        failures=_failures(check) if check is not None else (),
        components=components,
        several=len({each.drift.manifest for each in components}) > 1,
        drift=drift,
        broken=broken,
        notices=tuple(notices),
        style=style,
        script=script,
        policy=Markup(f"style-src {digest_source(style)}; script-src {digest_source(script)}"),
        data=embedded(_data(components)),
        look_of=look_of,
        moved_words=MOVED_WORDS,
        outline=outline,
        row=ROW,
        written=written,
        version=__version__,
    )


def _components(report: DriftReport) -> tuple[ComponentView, ...]:
    return tuple(
        ComponentView(
            each,
            f"component-{number}",
            timeline_of(each) if each.tip is not None and each.patches else None,
            tuple(map(_patch, each.patches)),
            trend_of(each.trend),
        )
        for number, each in enumerate(report.components, 1)
    )


def _patch(drift: PatchDrift) -> PatchView:
    clash = clash_of(drift.explanation) if drift.explanation is not None else None
    ahead = forecast_words(drift.forecast) if drift.forecast is not None else ""
    return PatchView(
        drift, look_of(drift.status), drift.event, ahead, clash, needs_attention(drift)
    )


def _failures(check: CheckReport) -> tuple[CheckView, ...]:
    return tuple(
        CheckView(f"{component.manifest}: {component.name}", patch, clash_of(patch.explanation))
        for component in check.components
        for patch in component.patches
        if patch.explanation is not None
    )


def _broken(check: CheckReport | None, drift: DriftReport | None) -> tuple[BrokenManifest, ...]:
    """A manifest that cannot be read is told by both, once is enough."""
    told = (*(check.broken if check is not None else ()), *(drift.broken if drift else ()))
    return tuple({each.manifest: each for each in told}.values())


def _verdict(
    code: ExitCode, check: CheckReport | None, components: Sequence[ComponentView], unchanged: int
) -> Iterator[str]:
    """What there is to know, in sentences."""
    if check is not None:
        states = [patch.status for each in check.components for patch in each.patches]
        yield _share(states.count(Status.CONFLICTED), len(states), "apply to the pins")
    changed = [each for each in components if each.drift.since is not None]
    if changed or unchanged:
        total = len(changed) + unchanged
        yield f"{len(changed)} of {total} components changed since the last report."
    elif components:
        states = [patch.drift.status for each in components for patch in each.patches]
        fine = sum(states.count(each) for each in _FITS)
        yield _share(len(states) - fine, len(states), "fit the tracked branches")
        for words, status in _BETWEEN.items():
            if status in states:
                yield f"{words}: {states.count(status)}."
    lost = sum(bool(each.drift.problems) for each in components)
    if lost:
        yield f"{counted(lost, 'component')} could not be looked at."
    elif code not in (ExitCode.OK, ExitCode.FINDING):
        yield "Something could not be read: see below."
    elif check is None and not components and not unchanged:
        yield "There is nothing to look at."


def _share(bad: int, total: int, what: str) -> str:
    if total < 2:
        return f"The patch does {'not ' * bad}{what}." if total else "There are no patches."
    if not bad:
        return f"All {total} patches {what}."
    return f"{bad} of {total} patches {'does' if bad == 1 else 'do'} not {what}."


def _data(components: Sequence[ComponentView]) -> dict[str, object]:
    drawn = {
        each.anchor: timeline_data(each.drift, each.timeline)
        for each in components
        if each.timeline is not None
    }
    return {"looks": looks_data(), "components": drawn}
