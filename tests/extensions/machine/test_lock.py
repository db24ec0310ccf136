"""Locks: one solution of all that a stack asks for, from a small index of wheels made here."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import venv
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from patchkit.extensions.machine.wishes import Wishes, wished
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="a lock is made with Python 3.11"),
]
LOCK = f"rendered/demo/requirements-{platform.machine()}.txt"
SETUP = "from setuptools import setup\nsetup(name='core', version='1', install_requires={})\n"


def wheel(index: Path, name: str, version: str, *needs: str) -> None:
    """Add a wheel with one empty module, and what it asks for, to an index (PEP 503)."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    told = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    files = {
        f"{module}.py": "",
        f"{info}/METADATA": "".join([*told, *(f"Requires-Dist: {each}\n" for each in needs)]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    digest = sha256(file.read_bytes()).hexdigest()
    with (folder / "index.html").open("a") as page:
        page.write(f'<a href="{file.name}#sha256={digest}">{file.name}</a>\n')


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index in a folder, and no other."""
    folder = tmp_path / "index"
    for name, version, *needs in (
        ("numpy", "1.26.0"),
        ("numpy", "1.26.4"),
        ("decord2", "3.4.0", "numpy>=1.26.4", "timm"),
        ("timm", "1.0"),
    ):
        wheel(folder, name, version, *needs)
    for variable in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", folder.as_uri())
    return folder


@pytest.fixture
def _resolver() -> None:
    if shutil.which("uv", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("uv is not installed")


def stack(project: Project, upstream: Upstream, numpy: str, needs: str = "['decord2']") -> None:
    """A component that asks for something, beside a manifest that names a numpy."""
    pin = upstream.commit({"setup.py": SETUP.format(needs), "core.py": ""})
    project.component("core", upstream, pin, install=[{"run": "pip install -e ."}])
    path = project.root / "manifests" / "demo.yaml"
    python = ".".join(platform.python_version_tuple()[:2])
    more = {
        "versions": {"python": f"=={python}.*", "numpy": numpy},
        "unsupported": {"timm": "no kernels"},
    }
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"environment": more}))
    project.run("fetch").ok()


def lock(project: Project, *words: str) -> Ran:
    return project.run("export", "--format", "machine", *words, "lock")


@pytest.mark.usefixtures("index", "_resolver")
def test_one_solution_with_hashes(project: Project, upstream: Upstream) -> None:
    stack(project, upstream, ">=1.26")
    lock(project).ok()
    text = (project.root / LOCK).read_text()
    pinned = [line.split()[0] for line in text.splitlines() if "==" in line]
    assert pinned == ["decord2==3.4.0", "numpy==1.26.4"]  # timm does not work here
    assert text.count("--hash=sha256:") == 2
    checked = project.run("check", "--only", "machine", "metadata").ok()
    assert "wrong" not in checked.out.partition("compared")[0]
    this = ".".join(platform.python_version_tuple()[:2])
    assert f"\n# Python {this}\n" in text
    (project.root / LOCK).write_text(text.replace(f"# Python {this}\n", "# Python 2.7\n"))
    checked = project.run("check", "--only", "machine", "metadata")
    assert (checked.code, f"is for Python 2.7 (wanted =={this}.*)" in checked.out) == (1, True)
    (project.root / LOCK).write_text(text)
    stack(project, upstream, "==1.26.0")
    checked = project.run("check", "--only", "machine", "metadata")
    assert (
        "requirements-" in checked.out
        and "asks for numpy 1.26.4 (wanted numpy==1.26.0)" in checked.out
    )


@pytest.mark.usefixtures("index", "_resolver")
def test_what_has_no_solution_names_both_requirements(project: Project, upstream: Upstream) -> None:
    stack(project, upstream, "==1.26.0")
    failed = lock(project, "--dry-run")
    assert failed.code == 1
    assert "numpy>=1.26.4" in failed.err
    assert "numpy==1.26.0 is asked for by demo.yaml" in failed.err
    assert "decord2 is asked for by core's setup.py" in failed.err
    assert not (project.root / LOCK).exists()


def test_the_python_is_this_one_where_it_may_be() -> None:
    this = ".".join(platform.python_version_tuple()[:2])
    for python, wanted in ((">=3.10", this), ("==3.9.*", "3.9")):
        asked = tuple(wished([f"python{python}"], "demo.yaml"))
        assert Wishes(asked, (), (), (), (), ()).python() == wanted


#: A build without setuptools, which is in no index here.
BACKEND = """\
from pathlib import Path

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = Path(folder, "core-1.dist-info")
    info.mkdir()
    told = "Metadata-Version: 2.1\\nName: core\\nVersion: 1\\nRequires-Dist: decord2\\n"
    info.joinpath("METADATA").write_text(told)
    return info.name
"""


@pytest.mark.usefixtures("index", "_resolver")
def test_what_a_build_tells_is_locked(project: Project, upstream: Upstream) -> None:
    """The component has the name of its package, and is itself none of the index's."""
    system = "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n"
    upstream.commit({"pyproject.toml": system, "own.py": BACKEND})
    stack(project, upstream, ">=1.26", "open('needs').readlines()")
    lock(project, "--build-metadata").ok()
    text = (project.root / LOCK).read_text()
    pinned = [line.split()[0] for line in text.splitlines() if "==" in line]
    assert pinned == ["decord2==3.4.0", "numpy==1.26.4"]


@pytest.mark.usefixtures("_resolver")
def test_code_runs_only_where_it_is_said(project: Project, upstream: Upstream, index: Path) -> None:
    wheel(index, "setuptools", "80.0")
    ran = project.root.parent / "ran"
    computed = f"open({str(ran)!r}, 'w').write('x') and ['numpy']"
    stack(project, upstream, ">=1.26", computed)
    lock(project).ends(4, "core: setup.py: its requirements are computed by code")
    assert not ran.exists()
    assert lock(project, "--build-metadata").code == 1  # an empty setuptools builds nothing


def test_without_uv_there_is_no_lock(
    project: Project, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    stack(project, upstream, ">=1.26")
    ran = lock(project)
    assert ran.code == 5
    assert ran.err.startswith("error: uv is missing, which makes locks")
    assert "hint: pip install 'patchkit-cli[machine]'" in ran.err


@pytest.mark.usefixtures("_resolver")
def test_each_architecture_by_its_index(
    project: Project, upstream: Upstream, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(index, "torch", "2.8.0")
    on = "torch=={}; platform_machine == '{}'"
    needs = (on.format("2.8.0", "aarch64"), on.format("2.8.0+cpu", "x86_64"))
    wheel(index, "torch-npu", "2.8.0", *needs)
    builds = index.parent / "builds"
    wheel(builds, "torch", "2.8.0+cpu")  # for both architectures, as on PyTorch's own index
    stack(project, upstream, ">=1.26", "['torch-npu']")
    path = project.root / "manifests" / "demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["values"] = {"cpu_index": {"description": "builds for CPUs", "default": ""}}
    data["environment"]["variables"] = {"PIP_EXTRA_INDEX_URL": "${cpu_index}"}
    path.write_text(yaml.safe_dump(data))
    refused = lock(project)
    assert (refused.code, "2.8.0+cpu" in refused.err) == (1, True)
    assert "hint: --set cpu_index=..." in refused.err
    aarch64 = project.root / "rendered/demo/requirements-aarch64.txt"
    assert "torch==2.8.0 " in aarch64.read_text()
    lock(project, "--set", f"cpu_index={builds.as_uri()}").ok()
    assert "torch==2.8.0 " in aarch64.read_text()
    assert "torch==2.8.0+cpu " in aarch64.with_name("requirements-x86_64.txt").read_text()


@pytest.mark.usefixtures("_resolver")
def test_what_steps_install_alone_or_from_elsewhere(
    project: Project, upstream: Upstream, index: Path
) -> None:
    """Whatever others ask for is not followed; and what comes from a repository is not replaced."""
    wheel(index, "einops", "1.0", "six")
    wheel(index, "six", "1.0")
    stack(project, upstream, ">=1.26", "['decord2', 'numpy>=1.26.4', 'einops']")
    path = project.root / "manifests" / "demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["components"]["core"]["install"] += [
        {"run": "pip install --no-deps numpy==1.26.0"},
        {"run": "pip install git+https://host/team/einops.git@0f00"},
    ]
    path.write_text(yaml.safe_dump(data))
    lock(project).ok()
    text = (project.root / LOCK).read_text()
    pinned = [line.split()[0] for line in text.splitlines() if "==" in line]
    assert pinned == ["decord2==3.4.0", "numpy==1.26.0", "six==1.0"]
    project.run("check", "--only", "machine", "metadata").ok()


@pytest.mark.usefixtures("_resolver")
def test_an_installation_from_a_lock_solves_nothing(
    project: Project, upstream: Upstream, index: Path, tmp_path: Path
) -> None:
    stack(project, upstream, ">=1.26")
    lock(project).ok()
    wheel(index, "numpy", "1.26.5")  # is newer, and not in the lock
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    words = ["-m", "pip", "install", "--no-deps", "--require-hashes", "--requirement"]
    subprocess.run([python, *words, project.root / LOCK], check=True, capture_output=True)
    subprocess.run([python, "-c", "import decord2, numpy"], check=True)
    place = ("--python", str(python), "packages", "--json")
    ran = project.run("check", "--only", "machine", *place).ok()
    assert [(each["name"], each["verdict"]) for each in ran.json["diagnoses"]] == [
        ("numpy", "ok"),
        ("pip check", "note"),  # timm is not there
    ]
