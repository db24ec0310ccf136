"""Fixtures for all tests; every test runs sealed from the machine, in a folder of its own."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import core, settings
from hypothesis import strategies as st

from tests.support.golden import Golden
from tests.support.laws import SEED, share, told
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.sealing import seal
from tests.support.served import served_command

# A run says the same twice; PATCHKIT_TEST_RANDOM=1 looks for what nobody has seen yet.
settings.register_profile(
    "patchkit",
    deadline=None,
    max_examples=share(60),
    database=None,
    derandomize=not {"PATCHKIT_TEST_RANDOM", "PATCHKIT_TEST_SEED"} & os.environ.keys(),
)
settings.load_profile("patchkit")
# What a shell starts in the background ignores ^C, and so would all that tests of ^C start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if "PATCHKIT_TEST_SEED" in os.environ:
    core.global_force_seed = SEED  # type: ignore[assignment]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(told())


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each process begin to import at another module: to compile them takes twice as long as
    all else until the first test, and what one process has compiled the others only read.
    """
    gc.disable()  # all that is made now stays
    if session.config.getoption("numprocesses", None):
        st.text().validate()  # the tables of Unicode: 1.7 s, and in a file from then on
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    folders = [Path(each) for each in session.config.args] if processes > 1 else []
    files = sorted(path for each in folders for path in each.absolute().rglob("test_*.py"))
    first = len(files) * number // processes
    for path in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):  # who collects it says it
            import_module(".".join(path.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each process its share of the slow tests, and those first: the short ones at the end
    even out who is done when. A module's tests stay together, as they begin in the same states.
    """
    kinds = [[each for each in items if _turn(each) == turn] for turn in range(3)]
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = [
        each
        for number in range(processes)
        for kind in kinds
        for each in kind[len(kind) * number // processes : len(kind) * (number + 1) // processes]
    ]


def _turn(item: pytest.Item) -> int:
    """0: may take a minute (a simulated machine, real packages); 1: slow; 2: short."""
    names = {mark.name for mark in item.iter_markers()}
    return 2 if "slow" not in names else 0 if names & {"simulate", "index"} else 1


if "PYTEST_XDIST_WORKER" in os.environ:

    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Tell the process that asked for it what came of a test, and not that it began, was set
        up and taken down: four messages of five.
        """
        for each in runtestprotocol(item, log=False, nextitem=nextitem):
            if each.when == "call" or not each.passed:
                item.ihook.pytest_runtest_logreport(report=each)
        return True


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end: Python need not look through them for cycles."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 20, 100)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what tests left, half a gigabyte, unless somebody has to look at it."""
    factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    if session.testsfailed == 0 and "PYTEST_XDIST_WORKER" in os.environ:
        folders = [each for each in factory.getbasetemp().iterdir() if each.is_dir()]
        subprocess.run(["rm", "-rf", *folders], stderr=subprocess.DEVNULL, check=False)


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
    seal(tmp_path / "home", keep_index=keep_index)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def served_patchkit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The text of a program that is patchkit, for scripts: it starts in a tenth of the time."""
    with served_command(tmp_path_factory.mktemp("served") / "asked") as text:
        yield text


@pytest.fixture
def patchkit_file(served_patchkit: str, tmp_path: Path) -> Path:
    """That program as a file, where only what it does is asked, and not how it starts."""
    path = tmp_path / "patchkit"
    path.write_text(served_patchkit)
    path.chmod(0o755)
    return path


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
