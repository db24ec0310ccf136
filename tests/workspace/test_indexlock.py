"""git's lock on a checkout's index, held by patchkit; with hard links and without."""

from __future__ import annotations

import errno
import os

import pytest

from patchkit.errors import SurroundingsError
from patchkit.workspace.recover import hold_index, release_index
from tests.workspace.bench import Bench


@pytest.fixture(params=["links", "no links"], autouse=True)
def _file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "there are no hard links here")

    if request.param == "no links":
        monkeypatch.setattr(os, "link", link)


@pytest.fixture
def held(bench: Bench) -> Bench:
    """A checkout whose index patchkit holds."""
    (bench.path / ".git/patchkit").mkdir(parents=True)
    hold_index(bench.checkout)
    return bench


def _files(bench: Bench) -> list[str]:
    return sorted(path.name for path in (bench.path / ".git").rglob("*") if path.is_file())


def test_it_is_there_until_it_is_given_back(held: Bench) -> None:
    assert _files(held) == ["index.lock"]
    release_index(held.checkout)
    assert _files(held) == []
    release_index(held.checkout)


def test_one_that_a_killed_run_left_counts(held: Bench) -> None:
    before = (held.path / ".git/index.lock").read_bytes()
    hold_index(held.checkout)
    assert (held.path / ".git/index.lock").read_bytes() == before
    assert _files(held) == ["index.lock"]


@pytest.mark.parametrize("contents", [b"", b"DIRC"])
def test_gits_own_is_respected(held: Bench, contents: bytes) -> None:
    lock = held.path / ".git/index.lock"
    lock.write_bytes(contents)
    with pytest.raises(SurroundingsError, match="is locked by git") as error:
        hold_index(held.checkout)
    assert str(error.value.problems[0].hint).endswith(f"rm {lock}")
    release_index(held.checkout)
    assert lock.read_bytes() == contents
    assert _files(held) == ["index.lock"]
