"""What extensions bring: entry points of the packages that are installed, ours included, by name.

The files are read as they lie on the path; importlib.metadata takes 45 ms for the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from patchkit.errors import SurroundingsError


@cache
def named(group: str) -> Mapping[str, str]:
    """Name -> "module:attribute" of a group's entry points. Of two with one name, the first on the
    path counts.
    """
    found: dict[str, str] = {}
    for text in texts():
        for name, place in _lines(text, group):
            found.setdefault(name, place)
    return found


def load(place: str) -> Any:
    """What stands at "module:attribute"; SurroundingsError where it cannot be loaded."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # whatever the code of others raises
        hint = "install the package again that it is of, or uninstall it"
        raise SurroundingsError(f"an extension cannot be loaded: {error}", hint=hint) from error


@cache
def texts() -> tuple[str, ...]:
    """The files of all packages; of one that is installed twice, the first on the path."""
    files: dict[str, Path] = {}
    for folder in sys.path:
        for file in sorted(Path(folder or ".").glob("*-info/entry_points.txt")):
            files.setdefault(file.parent.name.partition("-")[0], file)
    return tuple(file.read_text(encoding="utf-8", errors="replace") for file in files.values())


def _lines(text: str, group: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.split("\n"):
        name, equals, place = line.partition("=")
        if line.startswith("["):
            section = line.strip(" []\r")
        elif section == group and equals and not line.startswith(("#", ";")):
            yield name.strip(), place.strip()
