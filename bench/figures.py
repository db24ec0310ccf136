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


def sums_table(names: Sequence[str], sums: Sequence[int], scenes: int) -> str:
    """A table in Markdown of how often each way was tried, over so many scenes."""
    cells = [["", *names, "sum"], ["---"] * (len(names) + 2)]
    cells.append([f"{scenes} scenes", *map(str, sums), str(sum(sums))])
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def growth_rows(
    what: str, sizes: Sequence[int], costs: Mapping[str, Sequence[Cost]]
) -> Iterator[str]:
    """Rows of a table: what each command costs at the last size, and how that grows with it."""
    for name, row in costs.items():
        figures = f"{row[-1].cpu:.2f} | {row[-1].wall:.2f} | {row[-1].peak:.0f}"
        growth = f"{slope(sizes, [c.cpu for c in row]):.2f}" if len(sizes) > 1 else ""
        yield f"| {name} | {sizes[-1]:,} {what} | {figures} | {growth} |"


def numbers(text: str) -> list[int]:
    """The sizes of an option, as "1000,5000"."""
    return [int(each) for each in text.split(",")]
