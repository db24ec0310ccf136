"""What the page's script needs, as JSON inside of HTML.

Inside `<script>` a browser looks for `</script` and `<!--` before anything else, so no `<` may
stand there; the rest is ASCII, whatever upstream wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from patchkit.drift.values import Landed
from patchkit.model.harmless import clean
from patchkit.ops.drift import ComponentDrift
from patchkit.report.html.states import ORDER
from patchkit.report.html.timeline import Timeline, known_commits

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
        "page": _page(line),
        "ids": "".join(each.commit for each in line),
        "days": [each.day for each in line],
        "authors": [clean(name) for name in authors],
        "by": [authors[each.author] for each in line],
        "subjects": [clean(each.subject[:_LONGEST]) for each in line],
    }


def _page(line: Sequence[Landed]) -> str:
    """What a commit's id is put behind to get its address; empty if no page is known."""
    link = line[0].link if line else None
    return link.removesuffix(line[0].commit) if link is not None else ""
