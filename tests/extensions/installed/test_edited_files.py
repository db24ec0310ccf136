"""`refresh --from`: edits of packages and of copied folders come back into the patches."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.extensions.installed.sites import BASE, FIRST, ONE, PATCHES, WHEEL, Site
from tests.extensions.installed.wheels import digest, install
from tests.support.commands import Ran
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream

OTHER = "python/demo/other.py"


def take(site: Site, *words: str) -> Ran:
    """`patchkit refresh --from` that folder, which it leaves as it is."""
    before = site.files()
    ran = site.project.run("refresh", "--from", str(site.folder), *words)
    assert site.files() == before
    return ran


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def patch_of(site: Site, name: str) -> str:
    return site.project.files()[f"patches/demo/{name}"].decode()


def test_edits_of_an_installed_package_go_to_their_patches(site: Site) -> None:
    """Hunk by hunk; what belongs to none is asked about, and the hint works as it is printed."""
    site.install().ok()
    edit(site / "demo/core.py", "'five'", "'5'")
    edit(site / "demo/core.py", "'fifteen'", "'15'")
    edit(site / "demo/deep/new.py", "new = 1", "new = 2")
    before = site.project.files()

    take(site, "-n").ok().shows("would refresh", "one.patch", "two.patch")
    assert site.project.files() == before
    take(site).ok().shows("refreshed  demo")
    assert "+line = '5'" in patch_of(site, "one.patch")
    two = patch_of(site, "two.patch")
    assert ("+line = '15'" in two, "+new = 2" in two) == (True, True)
    take(site).ok().shows("unchanged  demo")
    site.project.run("undo").ok()
    assert site.project.files() == before

    edit(site / "demo/other.py", "'line 30'", "'thirty'")
    ran = take(site).ends(1, "belong to exactly one patch")
    typed = re.findall(r"patchkit (refresh .* --rest \S+)", ran.err)
    site.project.run(*shlex.split(typed[0])).ok()
    assert "+line = 'thirty'" in patch_of(site, "my-change.patch")
    assert "+line = '5'" in patch_of(site, "one.patch")
    site.project.run("check").ok()
    site.project.run("apply").ok()
    assert "thirty" in (site.project.checkout("demo") / OTHER).read_text()


def test_the_folder_can_be_patched_anew_and_taken_back(site: Site) -> None:
    """Its files are those of the new stack already, though the receipt is the old one's."""
    original = site.files()
    site.install().ok()
    edit(site / "demo/core.py", "'five'", "'5'")
    take(site).ok()
    site.install().ok()
    site.attest().ok()
    site.reverse().ok()
    assert site.files()["demo/core.py"] == original["demo/core.py"]


@pytest.mark.parametrize("copied", ["python", "python/demo"])
def test_a_copy_of_the_tree_or_of_the_package_needs_no_receipt(
    project: Project, upstream: Upstream, tmp_path: Path, copied: str
) -> None:
    """Its new files are left out, and named, but for those that are asked for."""
    project.component("demo", upstream, upstream.commit(BASE), PATCHES)
    project.run("apply").ok()
    site = Site(tmp_path / Path(copied).name, project)
    shutil.copytree(project.checkout("demo") / copied, site.folder)
    prefix = "" if copied.endswith("demo") else "demo/"
    edit(site / f"{prefix}core.py", "'five'", "'5'")
    (site / f"{prefix}other.py").unlink()  # perhaps it was never copied
    write_files(
        site.folder, {f"{prefix}mine.py": "mine = 1\n", f"{prefix}x/y.py": "", f"{prefix}a.pyc": ""}
    )

    ran = take(site, "-n").ok()
    assert f"{prefix}mine.py is new, and left out" in ran.err
    assert f"{prefix}x is new, and left out" in ran.err
    assert "pyc" not in ran.err
    take(site, "--add", f"{prefix}mine.py", "--rest", "mine").ok()
    assert "+line = '5'" in patch_of(site, "one.patch")
    mine = patch_of(site, "mine.patch")
    assert ("python/demo/mine.py" in mine, "other.py" in mine) == (True, False)
    checkout = project.checkout("demo")
    assert (checkout / "python/demo/mine.py").read_text() == "mine = 1\n"
    take(site, "--add", "nobody.py").ends(1, "nobody.py is no file in")


def test_a_wheels_file_that_is_gone_was_removed(site: Site) -> None:
    site.install().ok()
    (site / "demo/other.py").unlink()
    take(site, "--new", "without-other").ok()
    assert "deleted file mode" in patch_of(site, "without-other.patch")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"demo/other.py": "another = 1\n"},
            "demo/other.py of demo 1.1 is not the file of the pin",
        ),
        ({}, "without a patch: demo/core.py (one.patch), demo/gone.py (two.patch)"),
    ],
)
def test_what_pip_put_there_since_is_no_edit(
    site: Site, files: Mapping[str, str], said: str
) -> None:
    """Another version, or the pin's own without the patches; beside it an edit is not taken."""
    site.install().ok()
    shutil.rmtree(site.folder)
    install(site.folder, {**WHEEL, **files}, version="1.1")
    before = site.project.files()
    take(site).ends(1, said)
    edit(site / "demo/__init__.py", "", "mine = 1\n")
    take(site, "--new", "mine").ends(1, said)
    assert site.project.files() == before


def test_an_edit_of_a_file_without_its_patches_takes_no_patch_back(site: Site) -> None:
    install(site.folder, WHEEL)
    edit(site / "demo/core.py", "'line 30'", "'thirty'")
    take(site).ends(1, "without a patch: demo/core.py (one.patch)")


def test_a_file_that_may_differ_is_left_out(site: Site, upstream: Upstream) -> None:
    differing = [{"files": [OTHER], "reason": "made when the wheel is built"}]
    site.project.component("demo", upstream, upstream.commit(BASE), PATCHES, differing=differing)
    install(site.folder, {**WHEEL, "demo/other.py": "made = 1\n"}, version="1.0")
    site.install().ok()
    edit(site / "demo/core.py", "'five'", "'5'")
    take(site).ok()
    assert "+line = '5'" in patch_of(site, "one.patch")


def test_a_component_without_patches_gets_its_first_one(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    project.component("demo", upstream, upstream.commit(BASE))
    site = Site(tmp_path / "site-packages", project)
    install(site.folder, WHEEL)
    edit(site / "demo/core.py", "'line 30'", "'thirty'")
    take(site, "--new", "thirty", "--message", "Thirty").ok()
    assert "+line = 'thirty'" in patch_of(site, "thirty.patch")
    project.run("check").ok()


def test_what_is_nowhere_there_is_a_mistake(site: Site, tmp_path: Path) -> None:
    site.project.run("refresh", "--from", str(tmp_path / "none")).ends(2, "is not a folder")
    (tmp_path / "empty").mkdir()
    site.project.run("refresh", "--from", str(tmp_path / "empty")).ends(2, "no file of demo is in")
    site.project.run("refresh", "--from", str(site.folder), "--new", "a", "--rest", "b").ends(2)


@pytest.mark.slow
def test_a_wheel_that_pip_puts_there(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    """From a local folder; then another version over it."""
    site = Site(tmp_path / "site-packages", project)

    def put(version: str, files: Mapping[str, str]) -> None:
        info, tag = f"demo-{version}.dist-info", "py3-none-any"
        every = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        rows = [f"{path},{digest(text.encode())},{len(text)}\n" for path, text in every.items()]
        every[f"{info}/RECORD"] = "".join(rows) + f"{info}/RECORD,,\n"
        wheel = tmp_path / f"demo-{version}-{tag}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in every.items():
                archive.writestr(path, text)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--upgrade"]
        done = subprocess.run(
            [*pip, "--target", str(site.folder), str(wheel)], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()

    put("1.0", WHEEL)
    project.component("demo", upstream, upstream.commit(BASE), FIRST)
    site.install().ok()
    assert (site / "demo/core.py").read_text() == ONE
    edit(site / "demo/core.py", "'five'", "'5'")
    take(site).ok().shows("refreshed  demo")
    assert "+line = '5'" in patch_of(site, "one.patch")
    put("1.1", {**WHEEL, "demo/other.py": "other = 2\n"})
    take(site).ends(1, "demo/other.py of demo 1.1 is not the file of the pin")


def test_a_link_in_the_folder_is_no_file_of_it(site: Site, tmp_path: Path) -> None:
    """Nothing is read through it."""
    site.install().ok()
    (site / "demo/other.py").unlink()
    (tmp_path / "mine.py").write_text("mine = 1\n")
    (site / "demo/other.py").symlink_to(tmp_path / "mine.py")
    before = site.project.files()
    take(site, "--new", "linked").ends(1, "demo/other.py is a link")
    (site / "demo/other.py").unlink()
    (site / "demo/other.py").write_text(BASE["python/demo/other.py"])
    (site / "demo/new.py").symlink_to(tmp_path / "mine.py")
    take(site, "--add", "demo/new.py", "--new", "linked").ends(1, "demo/new.py is no file in")
    assert site.project.files() == before
