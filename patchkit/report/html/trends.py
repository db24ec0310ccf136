"""How many patches were in which state from report to report, as a small drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from patchkit.drift.values import TrendPoint

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
