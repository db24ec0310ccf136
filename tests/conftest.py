"""Fixtures for all tests; every test runs sealed from the machine, in a folder of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.sealing import seal

# A run says the same twice; PATCHKIT_TEST_RANDOM=1 looks for what nobody has seen yet.
settings.register_profile(
    "patchkit",
    deadline=None,
    max_examples=60,
    database=None,
    derandomize="PATCHKIT_TEST_RANDOM" not in os.environ,
)
settings.load_profile("patchkit")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden")


#: How many tests had a folder.
_folders = count()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A folder of the same name for each test of a process, so that states are the same bytes; it
    gets the test's name at the end.
    """
    base = tmp_path_factory.getbasetemp()
    path = base / "test"
    path.mkdir()
    yield path
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path.rename(base / f"{next(_folders)}-{name}")


@pytest.fixture(autouse=True)
def _sealed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No home, configuration, identity, locale or terminal of the user; cwd is tmp_path."""
    keep_index = request.node.get_closest_marker("index") is not None
    seal(monkeypatch, tmp_path / "home", keep_index=keep_index)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for real upstreams, for all processes of a run: each is fetched once."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    return shared / "shared-cache"


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    """An empty upstream repository; fill it with `upstream.commit({...})`."""
    return Upstream.create(tmp_path / "upstream.git")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project folder; fill it with `project.component(...)`."""
    root = tmp_path / "project"
    root.mkdir()
    return Project(root)


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Compares a command's whole output with tests/golden/NAME.txt."""
    places = ((tmp_path / "home" / "cache", "CACHE"), (tmp_path / "project", "PROJECT"))
    return Golden(request.config.getoption("--update-golden"), (*places, (tmp_path, "TMP")))
