"""A manifest's name: as a path, then in manifests/, then in the folders of $PATCHKIT_MANIFESTS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import UsageError
from patchkit.manifest.find import available_manifests, find_manifest, manifests_in
from tests.support.projects import write_files


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """
    here.yaml   manifests/both.yaml, manifests/old.yml   extra/both.yaml, extra/only.yaml
    """
    names = "here.yaml manifests/both.yaml manifests/old.yml extra/both.yaml extra/only.yaml"
    others = "extra/.hidden.yaml extra/note.txt manifests/profiles.yaml/in"
    write_files(tmp_path, dict.fromkeys(f"{names} {others}".split(), "version: 1\n"))
    return tmp_path


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


def test_a_path_is_taken_as_it_is_and_wins(places: Path) -> None:
    path = places / "extra" / "only.yaml"
    assert find_manifest(str(path), cwd=places / "manifests", search=[]) == path
    (places / "both.yaml").write_text("version: 1\n")
    assert find_manifest("both", cwd=Path(), search=[]) == Path("both.yaml")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bot", "did you mean both?"),
        ("manifests/onli.yaml", "did you mean only?"),
        ("zzz", "there are: both, old, only"),
        ("profiles", "there are: both, old, only"),  # a folder
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


def test_available_names_come_once_in_order_of_search(places: Path) -> None:
    assert available_manifests(cwd=Path(), search=[Path("extra")]) == ("both", "old", "only")
    assert available_manifests(cwd=Path(), search=[Path("nowhere")]) == ("both", "old")
    assert manifests_in(places / "here.yaml") == []


def test_finding_imports_no_yaml() -> None:
    """Completion runs at every press of a key."""
    code = "import sys, patchkit.manifest.find; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
