"""Fixtures of the tests of checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.workspace import Checkout
from tests.support.repos import Upstream
from tests.workspace.bench import Bench


@pytest.fixture
def bench(upstream: Upstream, tmp_path: Path) -> Bench:
    """An upstream and the place of a checkout, in a workspace whose path has a space."""
    workspace = tmp_path / "work space"
    return Bench(upstream, Checkout(workspace, workspace / "demo", "demo"))
