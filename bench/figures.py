"""What each harness writes into a page of docs/: the day, the machine, figures between marks."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from bench.measure import Cost, slope


def put_between_marks(page: Path, name: str, text: str) -> None:
    """Replace what is between `<!-- NAME -->` and `<!-- end of NAME -->` in a page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closing, tail = rest.partition(end)
    if not (mark and closing):
        raise SystemExit(f"{page}: there is no {begin} with its {end}")
    page.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")


def today() -> str:
    """The day in UTC, as YYYY-MM-DD."""
    return datetime.now(timezone.utc).date().isoformat()


def machine() -> str:
    """What the figures were taken on."""
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {git.strip()}"


def print_and_write(lines: Iterable[str], page: Path | None, name: str) -> None:
    """Print each line as it comes; in the end put them all into the page, if there is one."""
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    if page is not None:
        put_between_marks(page, name, "\n".join(kept))


def growth_rows(
    what: str, sizes: Sequence[int], costs: Mapping[str, Sequence[Cost]]
) -> Iterator[str]:
    """Rows of a table: what each command costs at each size, and how that grows."""
    for name, row in costs.items():
        for size, cost in zip(sizes, row, strict=True):
            figures = f"{cost.cpu:.2f} | {cost.wall:.2f} | {cost.peak:.0f}"
            yield f"| {name} | {size:,} {what} | {figures} |"
        if len(sizes) > 1:
            yield f"| {name}: growth | | {slope(sizes, [c.cpu for c in row]):.2f} | | |"


def numbers(text: str) -> list[int]:
    """The sizes of an option, as "1000,5000"."""
    return [int(each) for each in text.split(",")]
