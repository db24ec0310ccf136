"""`import --repair`, and the hints of `check` that lead to it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import Ran
from tests.support.projects import Project, reference, write_files
from tests.support.repos import Upstream, make_patch
from tests.support.stacked import NAMES, STATES, small_patches


@pytest.fixture
def patches() -> dict[str, bytes]:
    return small_patches()


def _demo(project: Project, upstream: Upstream, patches: dict[str, bytes]) -> None:
    project.component("demo", upstream, upstream.commit(STATES[0], "The base"), patches)


def _follow(project: Project, ran: Ran) -> Ran:
    """What the hint says, typed as it stands."""
    (typed,) = re.findall(r"patchkit (import --repair .*?)(?:  |\n)", ran.out + ran.err)
    return project.run(*shlex.split(typed))


#: What happens to the first patch on its way.
DAMAGES = [
    (b"@@ -2,8 ", b"@@ -2,9 "),
    (b"\n", b"\r\n"),
    (b"\n line", b"\nline"),
    (b"(?m)^(?=.)", b"  "),
    (b" ", "\N{NO-BREAK SPACE}".encode()),
    (b" line", "\N{NO-BREAK SPACE}line".encode()),
]


@pytest.mark.parametrize(("old", "new"), DAMAGES)
def test_the_hint_of_check_mends_the_file_of_the_series(
    project: Project, upstream: Upstream, old: bytes, new: bytes
) -> None:
    patches = small_patches()
    _demo(project, upstream, patches)
    project.prepare("apply").ok()
    file, whole = project.root / "patches/demo/one.patch", patches["one.patch"]
    file.write_bytes(re.sub(old, new, whole))
    assert file.read_bytes() != whole
    before = project.files()

    _follow(project, project.run("check")).ok().shows("mended")
    assert file.read_bytes() == whole
    project.run("check").ok()
    project.run("undo").ok()
    assert project.files() == before


def test_a_folder_with_damaged_patches_comes_in(
    project: Project, upstream: Upstream, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    """Each for the tree with those before it; the result is that of the whole ones."""
    _demo(project, upstream, {})
    damaged = [patches[NAMES[0]].rstrip(b"\n"), patches[NAMES[1]].replace(b"\n", b"\r\n")]
    names = ("1-one.patch", "2-two.patch", "3-three.patch")
    write_files(tmp_path / "raw", dict(zip(names, [*damaged, patches[NAMES[2]]], strict=True)))
    before = project.files()

    project.run("import", str(tmp_path / "raw")).ends(4, "import it with --repair")
    project.run("import", str(tmp_path / "raw"), "--repair", "-n").ok().shows("+++ last newline")
    assert project.files() == before
    report = project.run("import", str(tmp_path / "raw"), "--repair", "--json").ok().json
    assert [each["mends"] for each in report["repairs"]] == [["last newline"], ["line ends"]]
    assert all(each["diffs"][0].startswith("--- damaged\n") for each in report["repairs"])
    files = project.files()
    for name, data in zip(names, patches.values(), strict=True):
        assert files[f"patches/demo/{name}"] == data
    project.run("apply").ok()


def test_what_can_be_read_in_two_ways_is_shown_and_refused(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    _demo(project, upstream, {})
    text = make_patch({}, {"page": "<p>\N{NO-BREAK SPACE}</p>\n"})
    patch = tmp_path / "page.patch"
    patch.write_bytes(re.sub(rb"index .*\n", b"", text).rstrip(b"\n"))
    before = project.files()

    ran = project.run("import", str(patch), "--repair").ends(4, "2 ways that give different files")
    assert (ran.out.count("--- damaged"), project.files()) == (2, before)
    patch.write_bytes(text.rstrip(b"\n"))  # with the blob ids
    project.run("import", str(patch), "--repair").ok()
    assert project.files()["patches/demo/page.patch"] == text


def test_a_patch_edited_by_hand_is_not_what_its_index_lines_name(
    project: Project, upstream: Upstream, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    _demo(project, upstream, {})
    patch = tmp_path / "one.patch"
    edited = patches["one.patch"].replace(b"+six\n", b"")
    patch.write_bytes(edited)
    project.run("import", str(patch), "--repair").ends(4, "index lines name other contents")
    patch.write_bytes(re.sub(rb"index .*\n", b"", edited) + b"-- \n2.39.5\n")  # as the hint says
    project.run("import", str(patch), "--repair").ok().shows("counts of line")


def test_what_is_whole_or_no_patch_stays(
    project: Project, upstream: Upstream, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    _demo(project, upstream, patches)
    before = project.files()
    project.run("import", "--repair", "patches/demo/one.patch").ends(0, "nothing new")
    write_files(tmp_path, {"x.patch": "prose\n", "one.patch": patches["one.patch"]})
    project.run("import", "--repair", str(tmp_path / "x.patch")).ends(4, "holds no diff")
    assert project.files() == before
    project.run("import", "--repair", str(tmp_path / "one.patch"), "--3way").ends(2)


def test_a_damaged_patch_of_another_repository_is_mended_as_the_hint_says(
    project: Project, upstream: Upstream, patches: dict[str, bytes]
) -> None:
    damaged = patches["one.patch"].replace(b"\n", b"\r\n").rstrip(b"\n")
    entry = reference(upstream, "one.patch", damaged)
    pin = upstream.commit(STATES[0], "The base")
    project.component("demo", upstream, pin, [entry])
    ran = project.run("check").ends(4)
    (mends,) = re.findall(r"beside its sha256: `repair: \[(.*)\]`", ran.out + ran.err)
    project.component("demo", upstream, pin, [entry | {"repair": mends.split(", ")}])
    project.run("check").ok()
