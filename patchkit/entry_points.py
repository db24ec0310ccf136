"""What extensions bring: entry points of the packages that are installed, ours included, by name.

The files are read as they lie on the path; importlib.metadata takes 45 ms for the same.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from configparser import ConfigParser
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
    for folder in sys.path:
        for file in sorted(Path(folder or ".").glob("*-info/entry_points.txt")):
            text = file.read_text(encoding="utf-8", errors="replace")
            if f"[{group}]" in text:
                parser = ConfigParser(delimiters=("=",), interpolation=None)
                parser.optionxform = str  # type: ignore[assignment,method-assign]
                parser.read_string(text)
                found = {**dict(parser[group]), **found}
    return found


def load(place: str) -> Any:
    """The value of an entry point; imports its module. SurroundingsError where it is not there."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute.strip())
    except (ImportError, AttributeError) as error:
        hint = "install the package again that it is of, or uninstall it"
        raise SurroundingsError(f"an extension cannot be loaded: {error}", hint=hint) from error
