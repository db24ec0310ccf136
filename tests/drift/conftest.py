"""Fixtures of the tests of drift."""

from __future__ import annotations

import pytest

from tests.drift.lines import BASE, OURS, Branch
from tests.support.projects import Project
from tests.support.repos import Upstream


@pytest.fixture
def branch(project: Project, upstream: Upstream) -> Branch:
    """Two files with numbered lines, and a patch on the sixth line of a.py."""
    pin = upstream.commit({"a.py": BASE, "b.py": BASE}, "Start")
    return Branch(project, upstream, pin, {"ours.patch": OURS})
