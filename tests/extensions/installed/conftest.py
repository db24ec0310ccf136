"""Fixtures of the tests of installed packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.installed.sites import BASE, PATCHES, WHEEL, Site
from tests.extensions.installed.wheels import install
from tests.support.projects import Project
from tests.support.repos import Upstream


@pytest.fixture
def bare(project: Project, tmp_path: Path) -> Site:
    """A folder of packages without any, and a project without a component."""
    return Site(tmp_path / "site-packages", project)


@pytest.fixture
def site(bare: Site, upstream: Upstream) -> Site:
    """The wheel of the pin, compiled, and another one; two patches are in the manifest."""
    bare.project.component("demo", upstream, upstream.commit(BASE), PATCHES)
    install(bare.folder, WHEEL, compiled=True)
    install(bare.folder, {"elsewhere/__init__.py": "mine\n"}, name="elsewhere")
    return bare
