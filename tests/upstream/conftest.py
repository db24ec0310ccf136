"""Fixtures of the tests of upstreams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchkit.upstream.store import Store
from tests.support.servers import HttpServer, http_server


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty cache."""
    return Store(tmp_path / "cache")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A running server without a page."""
    with http_server() as running:
        yield running
