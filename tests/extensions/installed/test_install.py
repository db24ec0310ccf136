"""`patchkit install` and `attest`: wheels patched where they are installed, and back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.disk.files import JOURNAL
from tests.extensions.installed.wheels import contents, digest, install, require_true
from tests.support.damage import nest_too_deep
from tests.support.golden import Golden
from tests.support.projects import Project, write_files
from tests.support.repos import Files, Upstream, executable, make_patch
from tests.support.stacked import lines as text_lines


def lines(changes: dict[int, str] | None = None) -> str:
    """Thirty lines of Python."""
    return "".join(f"line = {each!r}\n" for each in text_lines(changes or {}).splitlines())


BASE: dict[str, str] = {
    "python/demo/__init__.py": "",
    "python/demo/core.py": lines(),
    "python/demo/gone.py": "gone = 1\n",
    "python/demo/other.py": lines(),
    "python/pyproject.toml": '[project]\nname = "demo"\n',
}
WHEEL = {path.removeprefix("python/"): text for path, text in BASE.items() if path.endswith(".py")}
ONE: dict[str, str | None] = {"python/demo/core.py": lines({5: "five\n"})}
TWO: dict[str, str | None] = {
    "python/demo/core.py": lines({5: "five\n", 15: "fifteen\n"}),
    "python/demo/gone.py": None,
    "python/demo/deep/new.py": "new = 1\n",
    "python/pyproject.toml": '[project]\nname = "demo-npu"\n',
}


def _after(*changes: Files) -> Files:
    return {k: v for each in (BASE, *changes) for k, v in each.items()}


PATCHES = {
    "one.patch": make_patch(BASE, _after(ONE), subject="One"),
    "two.patch": make_patch(_after(ONE), _after(ONE, TWO), subject="Two"),
}


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A component whose packages are in python/, with two patches."""
    project.component("demo", upstream, upstream.commit(BASE), PATCHES)
    return project


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages with the wheel of the pin."""
    folder = tmp_path / "site-packages"
    install(folder, WHEEL, compiled=True)
    install(folder, {"elsewhere/__init__.py": "mine\n"}, name="elsewhere")
    return folder


def _record(site: Path) -> Path:
    return site / "demo-1.0.dist-info/RECORD"


def test_a_wheel_is_patched_attested_and_taken_back_byte_for_byte(
    demo: Project, site: Path, golden: Golden
) -> None:
    before = contents(site)
    golden("install", demo.run("install", str(site)))
    after = contents(site)
    assert after["demo/core.py"].decode() == TWO["python/demo/core.py"]
    assert (after["demo/deep/new.py"], "demo/gone.py" in after) == (b"new = 1\n", False)
    assert not list(site.glob("demo/__pycache__/core.*"))
    assert list(site.glob("demo/__pycache__/other.*"))
    require_true(_record(site))
    golden("attest-live", demo.run("check", "--only", "installed", str(site), "-m", "demo"))
    golden("attest-receipt", demo.run("check", "--only", "installed", str(site)))
    golden("install-reverse", demo.run("install", str(site), "--reverse"))
    assert contents(site) == before
    assert not (site / ".patchkit").exists()
    golden("attest-nothing", demo.run("check", "--only", "installed", str(site)))


def test_twice_touches_nothing_though_the_files_were_compiled_since(
    demo: Project, site: Path
) -> None:
    demo.run("install", str(site)).ok()
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(site)], check=True)
    before = contents(site)
    demo.run("install", str(site)).ok().shows("✓ unchanged  demo/demo  every patch is live already")
    assert contents(site) == before


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_record_keeps_its_form(demo: Project, tmp_path: Path, end: str) -> None:
    record = install(tmp_path / "site", WHEEL, end=end)
    record.write_bytes(record.read_bytes().removesuffix(end.encode()))
    before = contents(tmp_path / "site")
    demo.run("install", str(tmp_path / "site")).ok()
    require_true(record)
    assert record.read_bytes().count(end.encode()) == len(before) - 1
    demo.run("install", str(tmp_path / "site"), "--reverse").ok()
    assert contents(tmp_path / "site") == before


def test_a_dry_run_and_a_refusal_write_nothing(demo: Project, site: Path, golden: Golden) -> None:
    before = contents(site)
    demo.run("install", str(site), "--dry-run").ok().shows(
        "✓ applied  demo/demo  7 files changed, demo 1.0"
    )
    assert contents(site) == before
    (site / "demo/core.py").write_text("edited\n")
    golden("install-edited", demo.run("install", str(site)))
    assert contents(site) == {**before, "demo/core.py": b"edited\n"}


def test_another_version_of_the_wheel_is_refused(demo: Project, tmp_path: Path) -> None:
    install(tmp_path / "site", {**WHEEL, "demo/core.py": "another\n"}, version="2.0")
    demo.run("install", str(tmp_path / "site")).ends(
        1, "demo/core.py of demo 2.0 is not the file of the pin"
    )


def test_what_a_patch_adds_is_in_the_way(demo: Project, site: Path) -> None:
    write_files(site, {"demo/deep/new.py": "mine\n"})
    demo.run("install", str(site)).ends(1, "demo/deep/new.py is there already")
    assert (site / "demo/deep/new.py").read_text() == "mine\n"


def test_a_file_that_is_missing_is_refused(demo: Project, site: Path) -> None:
    (site / "demo/gone.py").unlink()
    demo.series("demo", {"one.patch": PATCHES["one.patch"]})
    demo.run("install", str(site)).ok()
    demo.run("install", str(site), "--reverse").ok()
    (site / "demo/core.py").unlink()
    demo.run("install", str(site)).ends(1, "demo/core.py is not there")


def test_a_wheel_that_has_a_patch_already(demo: Project, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    install(folder, {**WHEEL, "demo/core.py": str(ONE["python/demo/core.py"])})
    before = contents(folder)
    demo.run("check", "--only", "installed", str(folder), "-m", "demo").ends(1).shows(
        "1 of 2 patches",
        "no receipt",
        "✗ not live  two.patch  demo/core.py, demo/deep/new.py, demo/gone.py",
    )
    demo.run("install", str(folder)).ok()
    demo.run("check", "--only", "installed", str(folder), "-m", "demo").ok()
    demo.run("install", str(folder), "--reverse").ok()
    assert contents(folder) == before


def test_all_of_several_components_or_nothing(
    demo: Project, site: Path, upstream: Upstream
) -> None:
    pin = upstream.commit({"src/second/a.py": lines()}, branch="second", parents=())
    patch = make_patch({"src/second/a.py": lines()}, {"src/second/a.py": lines({3: "3\n"})})
    demo.component("second", upstream, pin, {"s.patch": patch})
    before = contents(site)
    demo.run("install", str(site)).ends(1).shows(
        "· held  demo/demo  could be done; another component cannot",
        "· absent  demo/second  not installed there",
    )
    assert contents(site) == before
    install(site, {"second/a.py": lines()}, name="second")
    demo.run("install", str(site)).ok()
    assert (site / "second/a.py").read_text() == lines({3: "3\n"})


def test_a_changed_series_is_put_in_the_place_of_the_old_one(demo: Project, site: Path) -> None:
    before = contents(site)
    demo.run("install", str(site)).ok()
    demo.series("demo", {"one.patch": PATCHES["one.patch"]})
    demo.run("install", str(site)).ok()
    found = contents(site)
    assert (found["demo/core.py"].decode(), "demo/gone.py" in found) == (
        ONE["python/demo/core.py"],
        True,
    )
    require_true(_record(site))
    demo.run("install", str(site), "--reverse").ok()
    assert contents(site) == before


def test_a_reinstalled_package_is_patched_again(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    shutil.rmtree(site / "demo")
    install(site, WHEEL)
    demo.run("check", "--only", "installed", str(site)).ends(1).shows(
        "not live  demo/demo  0 of 2 patches"
    )
    demo.run("install", str(site)).ok()
    demo.run("check", "--only", "installed", str(site), "-m", "demo").ok()
    require_true(_record(site))


def test_an_edit_since_is_not_overwritten(demo: Project, site: Path, golden: Golden) -> None:
    demo.run("install", str(site)).ok()
    (site / "demo/core.py").write_text("edited since\n")
    before = contents(site)
    golden("attest-edited", demo.run("check", "--only", "installed", str(site)))
    for argv in (("--reverse",), ()):
        demo.run("install", str(site), *argv).ends(1, "demo/core.py is not as patchkit left it")
    assert contents(site) == before


def _second_layer(demo: Project, upstream: Upstream) -> None:
    """Another manifest's patch of the same file, made for the pin."""
    change = {"python/demo/core.py": lines({25: "twenty-five\n"})}
    patch = make_patch(BASE, _after(change), subject="Upper")
    pin = str(upstream.resolve("refs/heads/main"))
    demo.write({"patches/upper/series": "upper.patch\n", "patches/upper/upper.patch": patch})
    entry = [{"series": "patches/upper/series"}]
    demo.component("demo", upstream, pin, entry, manifest="upper")


def test_two_layers_of_one_package(demo: Project, site: Path, upstream: Upstream) -> None:
    _second_layer(demo, upstream)
    before = contents(site)
    demo.run("install", "-m", "demo", str(site)).ok()
    demo.run("install", "-m", "upper", str(site)).ok().shows("together with demo/demo")
    both = lines({5: "five\n", 15: "fifteen\n", 25: "twenty-five\n"})
    assert (site / "demo/core.py").read_text() == both
    assert (
        demo.run("check", "--only", "installed", str(site)).out.count("? as its receipt says") == 2
    )
    for name in ("demo", "upper"):
        (
            demo.run("check", "--only", "installed", str(site), "-m", name)
            .ends(1)
            .shows("as its receipt says")
        )
    demo.run("install", "-m", "demo", str(site), "--reverse").ends(
        1, "demo/core.py was changed by upper/demo"
    )
    demo.run("install", "-m", "upper", str(site), "--reverse").ok()
    demo.run("install", "-m", "upper", str(site)).ok()
    demo.run("install", str(site), "--reverse").ok()
    assert contents(site) == before


def test_a_layer_that_does_not_fit_on_another(
    demo: Project, site: Path, upstream: Upstream
) -> None:
    _second_layer(demo, upstream)
    change = {"python/demo/core.py": lines({5: "FIVE\n"})}
    demo.write({"patches/upper/upper.patch": make_patch(BASE, _after(change))})
    demo.run("install", "-m", "demo", str(site)).ok()
    before = contents(site)
    demo.run("install", "-m", "upper", str(site)).ends(
        1, "upper.patch does not apply on top of demo/demo"
    )
    assert contents(site) == before


def test_an_editable_install_is_patched_where_it_runs(demo: Project, tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "site"
    write_files(source, BASE)
    install(folder, {"demo.pth": f"{source}/python\n"}, editable=source / "python")
    demo.run("install", str(folder)).ends(1, f"patch it there: `patchkit install {source}/python`")
    before = contents(source)
    demo.run("install", str(source / "python")).ok()
    assert b"demo-npu" in (source / "python/pyproject.toml").read_bytes()
    demo.run("install", str(source / "python"), "--reverse").ok()
    demo.run("install", str(source)).ok()
    assert (source / "python/demo/core.py").read_text() == TWO["python/demo/core.py"]
    demo.run("install", str(source), "--reverse").ok()
    assert contents(source) == before


SOURCES = {
    f"demo/{name}.sh": f"echo {name}\n" for name in ("become", "changed", "gone", "stays", "tamed")
}
_SCRIPTS = ("demo/gone.sh", "demo/stays.sh", "demo/tamed.sh")
SCRIPTS: Files = {p: executable(t) if p in _SCRIPTS else t for p, t in SOURCES.items()}
RUNNING: Files = {
    "demo/become.sh": executable("echo become\n"),
    "demo/changed.sh": executable("echo 2\n"),
    "demo/gone.sh": None,
    "demo/stays.sh": executable("echo 4\n"),
    "demo/tamed.sh": "echo tamed\n",
    "demo/added.sh": executable("echo six\n"),
}


def _modes(folder: Path) -> dict[str, bool]:
    return {path.name: os.access(path, os.X_OK) for path in folder.glob("demo/*.sh")}


@pytest.mark.parametrize("installer_keeps", [True, False])
def test_modes_are_given_and_taken_back(
    project: Project, upstream: Upstream, tmp_path: Path, *, installer_keeps: bool
) -> None:
    site, pin = tmp_path / "site", upstream.commit(SCRIPTS)
    project.component("demo", upstream, pin, {"run.patch": make_patch(SCRIPTS, RUNNING)})
    install(site, SOURCES)
    for name in ("gone", "stays", "tamed") * installer_keeps:
        (site / f"demo/{name}.sh").chmod(0o755)
    before, modes = contents(site), _modes(site)
    project.run("install", str(site)).ok()
    running = {"become.sh", "changed.sh", "added.sh", *(["stays.sh"] * installer_keeps)}
    assert {name for name, runs in _modes(site).items() if runs} == running
    assert "unchanged" in project.run("install", str(site)).ok().out
    (site / "demo/changed.sh").chmod(0o644)
    project.run("check", "--only", "installed", str(site)).ends(1).shows(
        "partly live  run.patch  demo/changed.sh"
    )
    project.run("install", str(site)).ok()
    assert {name for name, runs in _modes(site).items() if runs} == running
    project.run("check", "--only", "installed", str(site), "-m", "demo").ok()
    project.run("install", str(site), "--reverse").ok()
    assert (contents(site), _modes(site)) == (before, modes)


def test_a_patch_that_only_changes_modes(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    site, base = tmp_path / "site", {"demo/run.sh": "echo\n"}
    patch = make_patch({**base}, {"demo/run.sh": executable("echo\n")})
    project.component("demo", upstream, upstream.commit({**base}), {"run.patch": patch})
    install(site, base)
    project.run("install", str(site)).ok()
    assert _modes(site) == {"run.sh": True}
    assert (
        project.run("check", "--only", "installed", str(site), "-m", "demo")
        .ok()
        .out.count("1 of 1 patch")
        == 1
    )
    project.run("install", str(site), "--reverse").ok()
    assert _modes(site) == {"run.sh": False}
    project.run("check", "--only", "installed", str(site), "-m", "demo").ends(1).shows(
        "0 of 1 patch"
    )


def test_files_that_the_manifest_lets_differ(
    demo: Project, upstream: Upstream, tmp_path: Path, golden: Golden
) -> None:
    """With the reason, in the receipt and in what is said; none that was edited since."""
    site, own, reason = tmp_path / "site", "demo/core.py", "made when the wheel is built"
    text = lines({29: "made = when the wheel was built\n"})
    record = install(site, {**WHEEL, own: text})
    before = contents(site)
    pin = str(upstream.resolve("refs/heads/main"))
    for globs, code in (
        (["demo/other.py"], 1),
        (["demo/c*.py", "elsewhere"], 1),
        (["**/core.py"], 0),
    ):
        differing = [{"files": globs, "reason": reason}]
        demo.component("demo", upstream, pin, PATCHES, differing=differing)
        assert demo.run("install", str(site), "--dry-run").code == code
    demo.run("apply").ok()
    seen = demo.run("check", "--only", "installed", str(site), "-m", "demo", "--json")
    (found,) = seen.json["components"]
    assert (found["receipt"], found["neither"], found["reasons"]) == (False, [], {own: reason})
    assert {each["presence"] for each in found["patches"]} <= {"not live", "left out"}
    golden("install-accepted", demo.run("install", str(site)))
    patched = lines({5: "five\n", 15: "fifteen\n", 29: "made = when the wheel was built\n"})
    assert (site / own).read_text() == patched
    require_true(record)
    assert (
        f"accepted: {reason}"
        in demo.run("check", "--only", "installed", str(site), "-m", "demo").ok().out
    )
    assert "every patch is live" in demo.run("install", str(site)).ok().out
    demo.series("demo", {"one.patch": PATCHES["one.patch"]})
    demo.run("apply").ok()
    assert f"accepted: {reason}" in demo.run("install", str(site)).ok().out
    demo.run("install", str(site), "--reverse").ok()
    assert contents(site) == before
    (site / own).write_text(text + "edited = 1\n")
    demo.run("install", str(site)).ends(1, "was edited since demo 1.0 was installed")


def test_a_wheel_whose_file_is_the_pins_needs_no_reason(
    demo: Project, upstream: Upstream, site: Path
) -> None:
    pin = str(upstream.resolve("refs/heads/main"))
    differing = [{"files": ["**"], "reason": "might be"}]
    demo.component("demo", upstream, pin, PATCHES, differing=differing)
    assert "accepted" not in demo.run("install", str(site)).ok().out


def test_an_accepted_file_that_the_patch_does_not_fit(
    demo: Project, upstream: Upstream, tmp_path: Path
) -> None:
    differing = [{"files": ["**/core.py"], "reason": "made when the wheel is built"}]
    pin = str(upstream.resolve("refs/heads/main"))
    demo.component("demo", upstream, pin, PATCHES, differing=differing)
    install(tmp_path / "site", {**WHEEL, "demo/core.py": lines({5: "5 = 5\n"})})
    before = contents(tmp_path / "site")
    demo.run("install", str(tmp_path / "site")).ends(1, "one.patch does not apply")
    assert contents(tmp_path / "site") == before


def test_layout_of_the_manifest(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    base: Files = {"code/inner/a.py": lines(), "docs/a.md": "a\n"}
    change: Files = {"code/inner/a.py": lines({5: "five\n"}), "docs/a.md": "b\n"}
    patches = {"one.patch": make_patch(base, change)}
    layout = {"code/inner": "vendor/outer"}
    project.component("demo", upstream, upstream.commit(base), patches, layout=layout)
    write_files(tmp_path / "site", {"vendor/outer/a.py": lines()})
    project.run("install", str(tmp_path / "site")).ok().shows(
        "one.patch: docs/a.md is not installed, left out"
    )
    assert (tmp_path / "site/vendor/outer/a.py").read_text() == lines({5: "five\n"})
    shown = project.run("status", "--resolved", "--json").ok().json
    assert json.dumps(shown).count('"layout": {"code/inner": "vendor/outer"}') == 1


def test_links_are_refused(demo: Project, site: Path, tmp_path: Path) -> None:
    cached = tmp_path / "cache/core.py"
    write_files(tmp_path, {"cache/core.py": lines()})
    (site / "demo/core.py").unlink()
    (site / "demo/core.py").symlink_to(cached)
    demo.run("install", str(site)).ends(1, "demo/core.py is a link")
    assert cached.read_text() == lines()
    (site / "demo").rename(tmp_path / "moved")
    (site / "demo").symlink_to(tmp_path / "moved")
    assert demo.run("install", str(site)).code == 1


def test_a_hard_link_of_an_installer_keeps_its_bytes(
    demo: Project, site: Path, tmp_path: Path
) -> None:
    os.link(site / "demo/core.py", tmp_path / "in-the-cache.py")
    demo.run("install", str(site)).ok()
    assert (tmp_path / "in-the-cache.py").read_text() == lines()


def test_what_is_no_folder_of_packages(demo: Project, site: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {"demo.zip": "PK", "checkout/.git/HEAD": "", "empty/a": ""})
    for name, said, code in (
        ("demo.zip", "is a file, not a folder", 2),
        ("nowhere", "is not a folder", 2),
        ("checkout", "is a git checkout", 2),
        ("empty", "no file of demo is in", 1),
    ):
        demo.run("install", str(tmp_path / name)).ends(code, said)
    assert demo.run("install", "--reverse").code == 2
    assert demo.run("install", str(site), "--reverse").code == 2
    demo.run("install", str(tmp_path)).says(f"is it in {site}?")


def test_a_lock_that_says_otherwise(demo: Project, site: Path) -> None:
    demo.run("apply").ok()
    demo.series("demo", {"one.patch": PATCHES["one.patch"]})
    demo.run("install", str(site)).ends(1).shows("✗ differs  demo/demo  not the stack in the lock")
    demo.run("apply", "--accept").ok()
    demo.run("install", str(site)).ok()
    demo.run("check", "--only", "installed", str(site), "-m", "demo").ok()
    demo.series("demo", PATCHES)
    demo.run("apply", "--accept").ok()
    demo.run("check", "--only", "installed", str(site), "-m", "demo").ends(1).shows(
        "✗ not live  two.patch"
    )


@pytest.mark.slow
def test_attest_finds_a_python_and_an_image(demo: Project, site: Path, tmp_path: Path) -> None:
    demo.run("install", str(site)).ok()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert "✓ live" in demo.run("check", "--only", "installed", "-m", "demo", str(python)).ok().out
    image = tmp_path / "image/usr/lib/python3/dist-packages"
    shutil.copytree(site, image)
    ran = demo.run("check", "--only", "installed", str(tmp_path / "image"), "--image", "--json")
    assert [each["folder"] for each in ran.json["components"]] == [str(image)]
    nest_too_deep(tmp_path / "image")
    demo.run("check", "--only", "installed", str(tmp_path / "image"), "--image").ends(
        5, "File name too long"
    )
    python.write_text("#!/bin/sh\nexit 3\n")
    assert demo.run("check", "--only", "installed", str(python)).code == 5
    assert demo.run("check", "--only", "installed").code == 2
    assert demo.run("check", "--only", "installed", str(python), "--image").code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 9'),
        ('"path": "demo/core.py"', '"path": "../../core.py"'),
        ('"path": "demo/core.py"', '"path": "/etc/passwd"'),
        ('"data": "', '"data": "AAAA'),
        ("{", "["),
    ],
)
def test_a_damaged_receipt_is_not_believed(demo: Project, site: Path, old: str, new: str) -> None:
    demo.run("install", str(site)).ok()
    (receipt,) = (site / ".patchkit").iterdir()
    receipt.write_text(receipt.read_text().replace(old, new))
    before = contents(site)
    for argv in (("install", "--reverse"), ("install",), ("check", "--only", "installed")):
        demo.run(*argv, str(site)).ends(4, str(receipt))
    assert contents(site) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_tree(demo: Project, site: Path) -> None:
    (site / "demo").chmod(0o555)
    assert demo.run("install", str(site)).code == 5


def test_a_killed_one_is_told_and_finished(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    (site / JOURNAL).write_text('{"version": 2, "steps": []}')
    assert "killed in" in demo.run("check", "--only", "installed", str(site)).out
    demo.run("install", str(site)).ok()
    demo.run("check", "--only", "installed", str(site), "-m", "demo").ok()


def test_digest_is_what_pip_writes() -> None:
    assert digest(b"") == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
