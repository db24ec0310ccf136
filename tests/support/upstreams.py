"""Tests on real upstreams: only where somebody asks for them."""

from __future__ import annotations

import os

import pytest

_WHY = "set PATCHKIT_TEST_UPSTREAM=1 to fetch the git upstreams"

#: The `pytestmark` of a module whose tests fetch real upstreams.
NEEDS_UPSTREAMS = [
    pytest.mark.upstream,
    pytest.mark.skipif(not os.environ.get("PATCHKIT_TEST_UPSTREAM"), reason=_WHY),
]


def skip_without_upstreams() -> None:
    """Skip the test, or all that use the fixture, unless upstreams may be fetched."""
    if not os.environ.get("PATCHKIT_TEST_UPSTREAM"):
        pytest.skip(_WHY)
