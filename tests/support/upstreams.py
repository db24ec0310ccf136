"""Tests on real upstreams: only where somebody asks for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_WHY = "set PATCHKIT_TEST_UPSTREAM=1 to fetch the git upstreams"
#: As it is at the start: tests are sealed from the environment, and a later one would not find it.
_ASKED_FOR = bool(os.environ.get("PATCHKIT_TEST_UPSTREAM"))
_OWN = Path.home() / ".gitconfig"
_GIT = os.environ.get("GIT_CONFIG_GLOBAL") or (str(_OWN) if _OWN.is_file() else os.devnull)

#: The `pytestmark` of a module whose tests fetch real upstreams.
NEEDS_UPSTREAMS = [
    pytest.mark.upstream,
    pytest.mark.skipif(not _ASKED_FOR, reason=_WHY),
]


def skip_without_upstreams() -> None:
    """Skip the test, or all that use the fixture, unless upstreams may be fetched."""
    if not _ASKED_FOR:
        pytest.skip(_WHY)


def reaching_upstreams() -> dict[str, str]:
    """The sealed environment, with the machine's own git configuration: it may name mirrors."""
    return {**os.environ, "GIT_CONFIG_GLOBAL": _GIT}
