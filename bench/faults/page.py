"""Put the figures of a run into docs/faults.md, between its marks."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from bench.faults.running import Found
from bench.page import put_between_marks


def write_page(page: Path, found: Found) -> None:
    """Replace the figures of a page."""
    put_between_marks(page, "figures", figures(found))


def figures(found: Found) -> str:
    """What a run came to, in Markdown."""
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    when = datetime.now(timezone.utc).date().isoformat()
    machine = f"{platform.system()} {platform.release().split('-')[0]}, {os.cpu_count()} cores"
    calls = ", ".join(f"{name} {count}" for name, count in found.calls.most_common())
    broke = "; ".join(f"`{point}`" for point, _ in found.broken) or "none"
    return "\n\n".join(
        [
            f"{when}, seed {found.seed}: **{found.sum()} distinct points** of {found.available},"
            f" {len(found.broken)} broke a law. Python {platform.python_version()},"
            f" {git.strip()}, {machine}.",
            found.table(),
            f"Calls that were struck: {calls}. In {found.twice} of the kills the run that puts"
            " things right was killed, too.",
            f"Broken: {broke}.",
        ]
    )
