"""`install` on wheels from the package index: patched, attested, taken back, compared."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.extensions.installed.wheels import contents, require_true
from tests.support.commands import run
from tests.support.projects import Project
from tests.support.repos import make_patch

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.index, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _shared(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_CACHE", str(shared_cache))


def _install(requirement: str, folder: Path) -> Path:
    """Download a wheel by pip as it is configured, and unpack it as pip would; its RECORD."""
    places = folder.parent / "wheels"
    options = ("--no-deps", "--only-binary", ":all:", "--quiet", "--dest", str(places))
    pip = [sys.executable, "-m", "pip", "download", *options, requirement]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"{requirement} is not to be had: {done.stderr.strip()[-200:]}")
    name = requirement.partition("=")[0].replace("-", "_")
    (wheel,) = places.glob(f"{name}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (record,) = folder.glob(f"{name}-*.dist-info/RECORD")
    return record


@pytest.mark.parametrize(
    ("requirement", "component", "patches"),
    [("sglang==0.5.9", "sglang", 2), ("megatron-core==0.16.0", "megatron-core", 3)],
)
def test_a_shipped_stack(tmp_path: Path, requirement: str, component: str, patches: int) -> None:
    site = tmp_path / "site"
    record = _install(requirement, site)
    before = contents(site)
    options = ("-m", str(ROOT / "manifests/verl-npu-index.yaml"), "-c", component)
    ran = run("install", *options, str(site))
    if ran.code == 5:
        pytest.skip(f"no package index: {ran.err}")
    ran.ok()
    require_true(record)
    for more in ((), options):
        (seen,) = run("check", "--only", "installed", str(site), *more, "--json").json["components"]
        assert seen["verdict"] == ("live" if more else "as its receipt says")
        live = [each for each in seen["patches"] if each["presence"] == "live"]
        assert (len(live), seen["package"].split()[0]) == (patches, component)
    run("install", str(site), "--reverse").ok()
    assert contents(site) == before
    seen = run("check", "--only", "installed", str(site), *options, "--json")
    assert (seen.code, seen.json["components"][0]["receipt"]) == (1, False)


_LARGE = pytest.mark.skipif(
    not os.environ.get("PATCHKIT_TEST_LARGE"), reason="PATCHKIT_TEST_LARGE=1 downloads gigabytes"
)


@pytest.mark.parametrize(
    ("requirement", "sha256", "path"),
    [
        (
            "verl==0.8.0",
            "814352ab55179dab0724091313e0367e866af667f6a749cc248b73699eb15a21",
            "verl/protocol.py",
        ),
        pytest.param(
            "vllm==0.13.0",
            "4ad43db45fef37114b550d03a4f423fb3fa3a31d8bc09ee810ef8b9cdcd4b5fe",
            "vllm/envs.py",
            marks=_LARGE,
        ),
    ],
)
def test_a_patch_of_ones_own(
    project: Project, tmp_path: Path, requirement: str, sha256: str, path: str
) -> None:
    site, (name, _, version) = tmp_path / "site", requirement.partition("==")
    record = _install(requirement, site)
    before = contents(site)
    text = before[path].decode()
    changed = {path: text + "\nNPU = True\n", f"{name}/npu.py": "here = True\n"}
    patch = make_patch({path: text}, changed, subject="Here")
    project.write({f"patches/{name}/series": "here.patch\n", f"patches/{name}/here.patch": patch})
    project.write(
        {
            "manifests/demo.yaml": f"version: 1\ncomponents:\n  {name}:\n"
            f"    source: {{index: {name}}}\n"
            f'    pin: {{version: "{version}", sha256: {sha256}}}\n'
            f"    patches: [{{series: patches/{name}/series}}]\n"
        }
    )
    ran = project.run("install", str(site))
    if ran.code == 5:
        pytest.skip(f"no package index: {ran.err}")
    ran.ok()
    require_true(record)
    project.run("check", "--only", "installed", str(site), "-m", "demo").ok()
    project.run("install", str(site), "--reverse").ok()
    assert contents(site) == before
