"""What each harness writes into a page of docs/: the day, the machine, figures between marks."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path


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
