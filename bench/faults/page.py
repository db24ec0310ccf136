"""Put the figures of a run into docs/evidence.md, between its marks."""

from __future__ import annotations

from pathlib import Path

from bench.faults.editor import Edits
from bench.faults.running import Found
from bench.figures import machine, put_between_marks, today


def write_page(page: Path, found: Found) -> None:
    """Replace the figures of a page."""
    put_between_marks(page, "figures", figures(found))


def write_edits(page: Path, found: Edits) -> None:
    """Replace the figures of the editor."""
    put_between_marks(page, "editor", edit_figures(found))


def edit_figures(found: Edits) -> str:
    """What a run with the editor came to, in Markdown."""
    broke = "; ".join(f"`{moment}`" for moment, _ in found.broken) or "none"
    ended = ", ".join(f"{code}: {count}" for code, count in sorted(found.ended.items()))
    return "\n\n".join(
        [
            f"{today()}, seed {found.seed}: **{found.sum()} saves**, {len(found.broken)} broke a"
            f" law. {machine()}.",
            found.table(),
            f"Exit codes of the commands: {ended}. At {found.missed} further moments the file could"
            " not be saved: it was not there, git held its index, or the program was through.",
            f"Broken: {broke}.",
        ]
    )


def figures(found: Found) -> str:
    """What a run came to, in Markdown."""
    calls = ", ".join(f"{name} {count}" for name, count in found.calls.most_common())
    broke = "; ".join(f"`{point}`" for point, _ in found.broken) or "none"
    return "\n\n".join(
        [
            f"{today()}, seed {found.seed}: **{found.sum()} distinct points**"
            f" of {found.available},"
            f" {len(found.broken)} broke a law. {machine()}.",
            found.table(),
            f"Calls that were struck: {calls}. In {found.twice} of the kills the run that puts"
            " things right was killed, too.",
            f"Broken: {broke}.",
        ]
    )
