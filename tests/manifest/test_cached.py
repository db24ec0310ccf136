"""A manifest comes from the cache only while every file that it was read from is what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.errors import BadInputError
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import Manifest

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


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A manifest that extends another file of its project."""
    folder = tmp_path / "project" / "manifests"
    folder.mkdir(parents=True)
    (folder / "part.yaml").write_text(_PART)
    (folder / "whole.yaml").write_text(_WHOLE)
    (tmp_path / "project" / "patches" / "one").mkdir(parents=True)
    return folder / "whole.yaml"


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Path], Manifest]:
    """Read a manifest by the cache."""
    return lambda path: read_manifest(path, tmp_path / "cache")


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "manifests").iterdir())


def test_what_is_kept_is_what_was_read(
    whole: Path, read: Callable[[Path], Manifest], tmp_path: Path
) -> None:
    first = read(whole)
    assert first == load_manifest(whole)
    (entry,) = kept(tmp_path)
    stamp = entry.stat().st_mtime_ns
    assert read(whole) == first
    assert kept(tmp_path) == [entry]
    assert entry.stat().st_mtime_ns == stamp  # not written again: it was believed


@pytest.mark.parametrize("name", ["whole.yaml", "part.yaml"])
def test_a_file_that_changed_is_read_again(
    whole: Path, read: Callable[[Path], Manifest], name: str
) -> None:
    read(whole)
    file = whole.with_name(name)
    file.write_text(file.read_text().replace("components:", "description: New\ncomponents:"))
    assert read(whole) == load_manifest(whole)


def test_a_mistake_is_told_although_an_older_text_was_right(
    whole: Path, read: Callable[[Path], Manifest]
) -> None:
    read(whole)
    whole.write_text(_WHOLE.replace("pin:", "pni:"))
    with pytest.raises(BadInputError, match="pni"):
        read(whole)


def test_a_part_that_is_gone_is_missed(whole: Path, read: Callable[[Path], Manifest]) -> None:
    read(whole)
    whole.with_name("part.yaml").unlink()
    with pytest.raises(BadInputError, match=r"part\.yaml"):
        read(whole)


@pytest.mark.parametrize("below", ["patches/one", "manifests/part.yaml"])
def test_a_link_that_leads_out_since_is_refused(
    whole: Path, read: Callable[[Path], Manifest], tmp_path: Path, below: str
) -> None:
    read(whole)
    inside = whole.parent.parent / below
    inside.rename(tmp_path / "outside")
    inside.symlink_to(tmp_path / "outside")
    with pytest.raises(BadInputError, match=r"outside of the project|out of the project"):
        read(whole)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b"x" * 64 + b"\n{}"])
def test_damage_in_the_cache_is_as_good_as_nothing(
    whole: Path, read: Callable[[Path], Manifest], tmp_path: Path, damage: bytes
) -> None:
    first = read(whole)
    (entry,) = kept(tmp_path)
    entry.write_bytes(damage)
    assert read(whole) == first


def test_the_shipped_manifests_come_back_whole(tmp_path: Path) -> None:
    for path in sorted((Path(__file__).parents[2] / "manifests").glob("*.yaml")):
        first = read_manifest(path, tmp_path)
        assert read_manifest(path, tmp_path) == first == load_manifest(path)
