"""Which manifest and upstream a checkout is for: a note in it, as several may share a workspace.

The note only chooses words, and keeps one manifest from turning another's checkout into one of a
different upstream. A checkout without it is anybody's.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, to_builtins

from patchkit.atomic import replace_file
from patchkit.errors import SurroundingsError

_FILE = "made-for.json"


class Purpose(Struct, frozen=True):
    """A manifest by its name, an upstream by its key (`sources.identity.upstream_key`)."""

    manifest: str
    upstream: str

    def clashes(self, other: Purpose) -> bool:
        """Whether these are two manifests' checkouts of different upstreams.

        One manifest may change its mind about where a component comes from.
        """
        return self.manifest != other.manifest and self.upstream != other.upstream


def read_purpose(own_folder: Path) -> Purpose | None:
    """What a checkout was last made for; None if nobody noted it."""
    try:
        data = json.loads((own_folder / _FILE).read_text(encoding="utf-8"))
        return Purpose(str(data["manifest"]), str(data["upstream"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_purpose(own_folder: Path, purpose: Purpose | None) -> None:
    """Note what a checkout is made for; nothing is written if it says so already."""
    if purpose is None or read_purpose(own_folder) == purpose:
        return
    with suppress(SurroundingsError, OSError):  # a checkout is no worse without
        own_folder.mkdir(exist_ok=True)
        replace_file(own_folder / _FILE, json.dumps(to_builtins(purpose)).encode())
