"""A manifest comes from the cache only while every file that it was read from is what it was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from patchkit.errors import BadInputError
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import Manifest
from tests.support.projects import write_files

_PART = """\
version: 1
environment:
  variables: {A: "1"}
components:
  one:
    source: {git: https://example.com/one.git}
    pin: "1111111111111111111111111111111111111111"
    patches: [{series: patches/one/series}]
"""
_WHOLE = """\
version: 1
extends: [part.yaml]
components:
  two:
    source: {index: two}
    pin: {version: "1.0", sha256: %s}
    verify: [{run: "python -c pass"}]
""" % ("a" * 64)


@dataclass(frozen=True)
class Kept:
    """A manifest that extends another file of its project, and the cache."""

    path: Path
    cache: Path

    def read(self) -> Manifest:
        return read_manifest(self.path, self.cache)

    def entry(self) -> Path:
        """What is in the cache."""
        (found,) = (self.cache / "manifests").iterdir()
        return found


@pytest.fixture
def whole(tmp_path: Path) -> Kept:
    """One that was read before."""
    project = tmp_path / "project"
    write_files(project / "manifests", {"part.yaml": _PART, "whole.yaml": _WHOLE})
    (project / "patches" / "one").mkdir(parents=True)
    kept = Kept(project / "manifests" / "whole.yaml", tmp_path / "cache")
    assert kept.read() == load_manifest(kept.path)
    return kept


def test_what_is_kept_is_what_was_read(whole: Kept) -> None:
    before = whole.entry(), whole.entry().stat().st_mtime_ns
    assert whole.read() == load_manifest(whole.path)
    # not written again: it was believed
    assert (whole.entry(), whole.entry().stat().st_mtime_ns) == before


@pytest.mark.parametrize("name", ["whole.yaml", "part.yaml"])
def test_a_file_that_changed_is_read_again(whole: Kept, name: str) -> None:
    file = whole.path.with_name(name)
    file.write_text(file.read_text().replace("components:", "description: New\ncomponents:"))
    assert whole.read() == load_manifest(whole.path)


def test_a_mistake_is_told_although_an_older_text_was_right(whole: Kept) -> None:
    whole.path.write_text(_WHOLE.replace("pin:", "pni:"))
    with pytest.raises(BadInputError, match="pni"):
        whole.read()
    whole.path.write_text(_WHOLE)
    whole.path.with_name("part.yaml").unlink()
    with pytest.raises(BadInputError, match=r"part\.yaml"):
        whole.read()


@pytest.mark.parametrize("below", ["patches/one", "manifests/part.yaml"])
def test_a_link_that_leads_out_since_is_refused(whole: Kept, tmp_path: Path, below: str) -> None:
    inside = tmp_path / "project" / below
    inside.rename(tmp_path / "outside")
    inside.symlink_to(tmp_path / "outside")
    with pytest.raises(BadInputError, match=r"outside of the project|out of the project"):
        whole.read()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b"x" * 64 + b"\n{}"])
def test_damage_in_the_cache_is_as_good_as_nothing(whole: Kept, damage: bytes) -> None:
    whole.entry().write_bytes(damage)
    assert whole.read() == load_manifest(whole.path)


def test_the_shipped_manifests_come_back_whole(tmp_path: Path) -> None:
    for path in sorted((Path(__file__).parents[2] / "manifests").glob("*.yaml")):
        first = read_manifest(path, tmp_path)
        assert read_manifest(path, tmp_path) == first == load_manifest(path)
