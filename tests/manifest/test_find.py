"""A manifest's name: as a path, then in manifests/, then in the folders of $PATCHKIT_MANIFESTS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import UsageError
from patchkit.manifest.find import available_manifests, find_manifest, manifests_in


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """
    here.yaml   manifests/both.yaml, manifests/old.yml   extra/both.yaml, extra/only.yaml
    """
    for name in ("here.yaml", "manifests/both.yaml", "manifests/old.yml"):
        _write(tmp_path / name)
    for name in ("extra/both.yaml", "extra/only.yaml", "extra/.hidden.yaml", "extra/note.txt"):
        _write(tmp_path / name)
    (tmp_path / "manifests" / "profiles.yaml").mkdir()
    return tmp_path


def _write(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("version: 1\n")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("here.yaml", "here.yaml"),
        ("here", "here.yaml"),
        ("manifests/both.yaml", "manifests/both.yaml"),
        ("manifests/both", "manifests/both.yaml"),
        ("both", "manifests/both.yaml"),
        ("both.yaml", "manifests/both.yaml"),
        ("old", "manifests/old.yml"),
        ("only", "extra/only.yaml"),
        ("./here", "here.yaml"),
    ],
)
def test_a_name_is_found(places: Path, name: str, found: str) -> None:
    assert find_manifest(name, cwd=Path(), search=[Path("extra")]) == Path(found)
    assert find_manifest(name, cwd=places, search=[places / "extra"]) == places / found


def test_an_absolute_path_is_taken_as_it_is(places: Path) -> None:
    path = places / "extra" / "only.yaml"
    assert find_manifest(str(path), cwd=places / "manifests", search=[]) == path


def test_a_path_wins_over_manifests(places: Path) -> None:
    (places / "both.yaml").write_text("version: 1\n")
    assert find_manifest("both", cwd=Path(), search=[]) == Path("both.yaml")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bot", "did you mean both?"),
        ("manifests/onli.yaml", "did you mean only?"),
        ("zzz", "there are: both, old, only"),
    ],
)
def test_a_near_miss_suggests_names(places: Path, name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_manifest(name, cwd=Path(), search=[Path("extra")])
    (problem,) = caught.value.problems
    assert str(problem) == f"{name}: no such manifest"
    assert problem.hint == hint


def test_where_there_is_none_init_is_the_way() -> None:
    with pytest.raises(UsageError) as caught:
        find_manifest("demo", cwd=Path(), search=[])
    assert "patchkit init" in caught.value.problems[0].hint


def test_a_folder_is_no_manifest(places: Path) -> None:
    with pytest.raises(UsageError):
        find_manifest("profiles", cwd=Path(), search=[])


def test_available_names_come_once_in_order_of_search(places: Path) -> None:
    assert available_manifests(cwd=Path(), search=[Path("extra")]) == ("both", "old", "only")
    assert available_manifests(cwd=Path(), search=[Path("nowhere")]) == ("both", "old")


def test_what_cannot_be_listed_holds_nothing(places: Path) -> None:
    assert manifests_in(places / "here.yaml") == []


def test_finding_imports_no_yaml() -> None:
    """Completion runs at every press of a key."""
    code = "import sys, patchkit.manifest.find; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
