"""The drawings of an HTML report: a component's history, one row for each patch and one cell for
each commit; and how many patches were in which state from report to report.

A row is drawn as runs of one state, so that its size follows from what happened, not from how many
commits there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from msgspec import Struct

from patchkit.drift.drift_report import Interval, Landed, PatchDrift, TrendPoint
from patchkit.model.outcome import Status
from patchkit.ops.drift import ComponentDrift, needs_attention

# How many patches were in which state from report to report, as a small drawing.


# So many reports, the newest, are drawn.
_DRAWN = 60


class Band(Struct, frozen=True):
    """One state: `counts` for each report, `shape` as path data, `word` and `sample` its legend."""

    key: str
    word: str
    counts: tuple[int, ...]
    shape: str
    sample: str


class Trend(Struct, frozen=True):
    """A column for each report, `height` patches high, with the bands from the bottom up.

    Bands are of different widths, so that they are told apart without their colours.
    """

    points: tuple[TrendPoint, ...]
    height: int
    bands: tuple[Band, ...]
    words: str


def trend_of(points: Sequence[TrendPoint]) -> Trend | None:
    """The trend over reports; None where there is none to see."""
    drawn = tuple(points[-_DRAWN:])
    if len(drawn) < 2:
        return None
    totals = [
        each.fits + each.carried + each.absorbed + each.conflicts + each.waiting for each in drawn
    ]
    height = max(1, *totals)
    bands = tuple(band for band in _bands(drawn, height) if any(band.counts))
    return Trend(drawn, height, bands, "; ".join(_said(band) for band in bands))


def _bands(points: Sequence[TrendPoint], height: int) -> Iterator[Band]:
    below = [0] * len(points)
    for key, word, margin, counts in (
        ("conflicts", "conflict", 0.05, [each.conflicts for each in points]),
        ("empty", "waiting", 0.05, [each.waiting for each in points]),
        ("merges", "carried by a bump", 0.25, [each.carried for each in points]),
        ("absorbed", "absorbed", 0.4, [each.absorbed for each in points]),
    ):
        tops = [low + count for low, count in zip(below, counts, strict=True)]
        columns = (
            _column(at, margin, height - low, height - top)
            for at, (low, top) in enumerate(zip(below, tops, strict=True))
            if top > low
        )
        yield Band(key, word, tuple(counts), "".join(columns), _column(0, margin, 1, 0))
        below = tops


def _column(at: int, margin: float, low: int, top: int) -> str:
    return f"M{at + margin:g} {low}V{top}H{at + 1 - margin:g}V{low}Z"


def _said(band: Band) -> str:
    first, last = band.counts[0], band.counts[-1]
    return f"{band.word}: {last}" if first == last else f"{band.word}: {first}, now {last}"


# How the states of a patch look in a report: a word, a sign, and a shape that needs no colour.
#
# A row of a timeline is as wide as the window and as long as the history, so that a commit may be
# less than a pixel wide: no pattern survives that. Height does: the worse, the taller.


#: A row is so high; bands are counted from its top.
ROW = 20


class StateStyle(Struct, frozen=True):
    """`key` names the colour in the style sheet; `bands` are the filled parts of a row's height."""

    key: str
    word: str
    sign: str
    bands: tuple[tuple[int, int], ...]
    means: str


_APPLIES = StateStyle("applies", "unchanged", "✓", ((14, ROW),), "every hunk at its line")
_OFFSETS = StateStyle("offsets", "shifted", "≈", ((11, ROW),), "applies, at other lines")
_MERGES = StateStyle("merges", "merged", "~", ((7, ROW),), "a bump carries it by merging")
_ANEW = StateStyle("anew", "regenerated", "↻", ((4, 8), (11, ROW)), "its recipe regenerates it")
_ABSORBED = StateStyle("absorbed", "absorbed", "−", ((0, 4), (16, ROW)), "upstream has it")  # noqa: RUF001
_EMPTY = StateStyle("empty", "empty", "·", ((18, ROW),), "changes no file")
_CONFLICTS = StateStyle("conflicts", "conflicted", "✗", ((0, ROW),), "a hunk fails")
_WAITS = StateStyle(
    "empty",
    "waiting",
    "◦",
    ((2, 6), (9, 13), (16, ROW)),
    "fails as an earlier patch conflicts",
)
_SKIPPED = StateStyle("empty", "skipped", "·", ((18, ROW),), "an earlier patch does not apply")

_LOOKS = {
    Status.UNCHANGED: _APPLIES,
    Status.SHIFTED: _OFFSETS,
    Status.MERGED: _MERGES,
    Status.REGENERATED: _ANEW,
    Status.ABSORBED: _ABSORBED,
    Status.EMPTY: _EMPTY,
    Status.CONFLICTED: _CONFLICTS,
    Status.WAITING: _WAITS,
    Status.SKIPPED: _SKIPPED,
}

#: In the order of a legend, and of drawing: what must be seen comes last.
ORDER = (_EMPTY, _APPLIES, _OFFSETS, _ANEW, _MERGES, _ABSORBED, _WAITS, _CONFLICTS)


def look_of(status: Status) -> StateStyle:
    """How a state looks."""
    return _LOOKS[status]


def outline(look: StateStyle, first: float, last: float) -> str:
    """The shape of a state from `first` to `last` of a row, as SVG path data."""
    return "".join(f"M{first:g} {top}H{last:g}V{end}H{first:g}Z" for top, end in look.bands)


# So far apart, in hundredths of the width, labels of months do not touch: on a desk, on a phone.
_WIDE, _NARROW = 5.0, 17.0
_FILES = 3
# Months between two commits that are known are guessed, but for so many.
_GUESSED = 120
# A table of more runs than this nobody reads, and a browser takes long to show.
_LISTED = 3000


class Run(Struct, frozen=True):
    """Cells `first` to `last` in one state; `since` brought it, `files` are those that clash."""

    look: StateStyle
    first: int
    last: int
    since: Landed | None
    files: tuple[str, ...]

    @property
    def length(self) -> int:
        """How many cells."""
        return self.last - self.first + 1


class Track(Struct, frozen=True):
    """A patch's row: `shapes` is path data by the key of a state, `words` says the same."""

    name: str
    look: StateStyle
    attention: bool
    runs: tuple[Run, ...]
    shapes: tuple[tuple[str, str], ...]
    words: str

    @property
    def label(self) -> str:
        """The name where there is little room."""
        return self.name.removesuffix(".patch") or self.name


class Month(Struct, frozen=True):
    """Where a month begins: `at` is a cell, `left` that in hundredths of the width.

    `wide`: whether there is room for its label on a desk; `narrow` is its label on a phone, "" for
    no room.
    """

    label: str
    at: int
    left: float
    wide: bool
    narrow: str


class Timeline(Struct, frozen=True):
    """`cells` commits, the start included; `legend` has the states that occur."""

    cells: int
    months: tuple[Month, ...]
    tracks: tuple[Track, ...]
    legend: tuple[StateStyle, ...]

    @property
    def listed(self) -> int:
        """How many runs of a patch, the newest, its table has room for."""
        total = sum(len(track.runs) for track in self.tracks)
        return total if total <= _LISTED else max(2, _LISTED // len(self.tracks))

    @property
    def grid(self) -> str:
        """The lines between months, as path data."""
        return "".join(f"M{month.at} 0V20" for month in self.months if month.at)


def timeline_of(component: ComponentDrift) -> Timeline:
    """The timeline of a component that was looked at."""
    cells = component.commits + 1
    tracks = tuple(_track(patch) for patch in component.patches)
    seen = {run.look for track in tracks for run in track.runs}
    known = known_commits(component)
    legend = tuple(look for look in ORDER if look in seen)
    return Timeline(cells, tuple(_months(known, cells)), tracks, legend)


def known_commits(component: ComponentDrift) -> dict[int, Landed]:
    """The commits that the report tells of, by their cells: all, or those of changes."""
    known = dict(enumerate(component.line))
    for patch in component.patches:
        known |= {run.first: run.since for run in patch.intervals if run.since is not None}
    ends = {0: component.start, component.commits: component.tip}
    return known | {at: landed for at, landed in ends.items() if landed is not None}


def _track(patch: PatchDrift) -> Track:
    runs = tuple(map(_run, patch.intervals))
    shapes = [
        (look.key, "".join(outline(look, r.first, r.last + 1) for r in runs if r.look is look))
        for look in ORDER
    ]
    drawn = tuple(shape for shape in shapes if shape[1])
    attention = needs_attention(patch)
    return Track(patch.name, look_of(patch.status), attention, runs, drawn, _words(runs))


def _run(interval: Interval) -> Run:
    paths = dict.fromkeys(fault.path for fault in interval.faults)
    look = look_of(interval.status)
    return Run(look, interval.first, interval.last, interval.since, tuple(paths)[:_FILES])


def _words(runs: Sequence[Run]) -> str:
    """What a row shows, for who does not see it."""
    told = [f"{run.look.word} for {run.length}" for run in runs[-6:]]
    more = f"{len(runs) - 6} earlier states, " if len(runs) > 6 else ""
    return f"{more}{', then '.join(told)} commits"


def _months(known: Mapping[int, Landed], cells: int) -> list[Month]:
    begins = dict(_beginnings(known))
    lefts = {month: round(at * 100 / cells, 3) for month, (at, _) in begins.items()}
    wide, narrow = _roomy(lefts, _WIDE), _roomy(lefts, _NARROW)
    return [
        Month(
            about + _label(month, month == min(wide)),
            at,
            lefts[month],
            month in wide,
            about + _label(month, month == min(narrow)) if month in narrow else "",
        )
        for month, (at, about) in begins.items()
    ]


def _beginnings(known: Mapping[int, Landed]) -> Iterator[tuple[str, tuple[int, str]]]:
    """Where months begin, with "~" where that is between commits which are known.

    A commit that claims a date before those to its left is in their month, and none is believed
    that claims to be later than the last.
    """
    end = known[max(known)].date
    line = sorted(known.items())
    last_at, last = line[0][0], line[0][1].date
    yield last[:7], (last_at, "")
    for at, landed in line[1:]:
        if last < landed.date <= end:
            months = _months_after(last, landed.date) if landed.date[:7] > last[:7] else []
            if at == last_at + 1 or len(months) > _GUESSED:
                yield from ((month, (at, "")) for month in months[-1:])
            else:
                yield from ((m, (_between(m, last_at, last, at, landed.date), "~")) for m in months)
            last = landed.date
        last_at = at


def _months_after(first: str, last: str) -> list[str]:
    """The months that begin after the first date, up to the last."""
    numbers = range(_number(first) + 1, _number(last) + 1)
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in numbers]


def _number(moment: str) -> int:
    return int(moment[:4]) * 12 + int(moment[5:7]) - 1


def _between(month: str, first: int, since: str, last: int, until: str) -> int:
    """About where a month begins, if as much happened each day."""
    start, begins, end = (
        date.fromisoformat(each).toordinal() for each in (since[:10], f"{month}-01", until[:10])
    )
    return first + round((last - first) * (begins - start) / max(1, end - start))


def _roomy(lefts: Mapping[str, float], gap: float) -> set[str]:
    """The months whose labels have room; the first, which is no whole one, gives way."""
    chosen: list[str] = []
    for month, left in lefts.items():
        # a label with its year is longer
        long = len(chosen) == 1 or (bool(chosen) and chosen[-1].endswith("-01"))
        room = gap * 1.6 if long else gap
        if not chosen or left - lefts[chosen[-1]] >= room:
            chosen.append(month)
        elif len(chosen) == 1 and lefts[chosen[0]] == 0:
            chosen = [month]
    return set(chosen)


def _label(month: str, year: bool = False) -> str:
    begins = date.fromisoformat(f"{month}-01")
    return f"{begins:%b %Y}" if year or begins.month == 1 else f"{begins:%b}"
