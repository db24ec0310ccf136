"""What is kept in the cache: given back whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.disk.result_cache import code_digest, memory_path, recall_as, remember


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    path = memory_path(tmp_path, "scans", ["tree", "rules"])
    assert recall_as(path, dict) is None
    remember(path, {"sites": [1, "\udc80", None]})
    assert recall_as(path, dict) == {"sites": [1, "\udc80", None]}
    assert memory_path(tmp_path, "scans", ["tree", "other rules"]) != path


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other", "folder"])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    path = memory_path(tmp_path, "scans", [1])
    remember(path, {"sites": ["a"]})
    data = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        damaged = {"cut": data[:-3], "changed": data.replace(b'"a"', b'"b"')}
        path.write_bytes(damaged.get(damage, b"" if damage == "empty" else b"[]\n[]"))
    assert recall_as(path, dict) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "scans").write_text("a file where the folder should be")
    remember(memory_path(tmp_path, "scans", [1]), {})


def test_code_that_is_not_there_has_no_digest() -> None:
    assert code_digest("model") != code_digest("model", "model/names") != code_digest("model/names")
    with pytest.raises(OSError, match="model/nams"):
        code_digest("model/nams")
