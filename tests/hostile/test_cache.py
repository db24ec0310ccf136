"""A cache of which each file is damaged in turn: a word, a way out, and never a wrong checkout.

PATCHKIT_TEST_DAMAGE=1 damages it in all ways, not in two.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, tree_files
from tests.support.stacked import STATES, Stacked, published, small_patches

pytestmark = pytest.mark.slow

DAMAGE: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "turned round": lambda path: path.write_bytes(bytes(255 - each for each in path.read_bytes())),
    "taken away": lambda path: path.unlink(),
    "locked by a git that is gone": lambda path: path.with_name(f"{path.name}.lock").touch(),
}


HOW = DAMAGE if os.environ.get("PATCHKIT_TEST_DAMAGE") else ("cut in half", "turned round")


@pytest.mark.parametrize("how", HOW)
def test_each_file_of_the_cache(
    project: Project, upstream: Upstream, tmp_path: Path, how: str
) -> None:
    """A new checkout works at once, or once `fetch --verify` has been told to look."""
    Stacked.of(project, upstream, small_patches())
    project.component("demo", upstream, STATES[0], [published(tmp_path)])
    project.run("apply", "--accept").ok()
    right = tree_files(project.checkout("demo"), "HEAD")
    cache, kept = tmp_path / "home" / "cache", tmp_path / "kept"
    cache.rename(kept)
    found = [path.relative_to(kept) for path in kept.rglob("*") if path.is_file()]
    assert len(found) >= 8
    for name in found:
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(kept, cache, symlinks=True)
        (cache / name).chmod(0o644)
        DAMAGE[how](cache / name)
        where = ("--workspace", str(tmp_path / "work" / name))
        ran = project.run("apply", *where)
        if ran.code != 0:
            assert ran.code == 5, (name, ran.err)
            assert "bug" not in ran.err, (name, ran.err)
            assert not (tmp_path / "work" / name / "demo").exists()
            project.run("fetch", "--verify").ok()
            project.run("apply", *where).ok()
        assert tree_files(tmp_path / "work" / name / "demo", "HEAD") == right, name
