"""Golden outputs: one file per case holds the command, its stdout, stderr and exit code.

What changes from run to run (paths, durations, stamps) is replaced by a word in capitals.
`pytest --update-golden` writes the files; read the difference before committing it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import Ran

FOLDER = Path(__file__).parent.parent / "golden"

_UNSTABLE = (
    (re.compile(r"\b\d{8}T\d{6,12}Z?\b"), "STAMP"),
    (re.compile(r"\b\d+(\.\d+)? m?s\b"), "DURATION"),
    (re.compile(r"\bwas [0-9a-f]{40}\b"), "was COMMIT"),  # of saved work, which has the time in it
)


@dataclass(frozen=True)
class Golden:
    """Compares a command with its golden file; `places` are (path, word in its place)."""

    update: bool
    places: tuple[tuple[Path, str], ...]

    def __call__(self, name: str, ran: Ran) -> None:
        """Compare; with --update-golden write the file instead."""
        path = FOLDER / f"{name}.txt"
        text = self._text(ran)
        assert "this is a bug in patchkit" not in text
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is missing: run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    def _text(self, ran: Ran) -> str:
        parts = [f"$ patchkit {' '.join(ran.argv)}\n", f"--- stdout\n{ran.out}"]
        parts += [f"--- stderr\n{ran.err}", f"--- exit {ran.code}\n"]
        text = "".join(part if part.endswith("\n") else part + "\n" for part in parts)
        for place, word in self.places:
            text = text.replace(str(place), word)
        for pattern, word in _UNSTABLE:
            text = pattern.sub(word, text)
        return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
