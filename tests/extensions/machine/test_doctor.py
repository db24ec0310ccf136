"""doctor: this machine beside a manifest, with a real Python and CANN trees made for it."""

from __future__ import annotations

import os
import sys
import venv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import Ran
from tests.support.golden import Golden
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch

ENVIRONMENT = {
    "versions": {
        "python": ">=3.10",
        "cann": "==8.5.0",
        "nnal": "==8.5.0",
        "hdk": ">=25.3.RC1",
        "torch": "==2.8.0",
        "torch_npu": "==2.8.0.post2",
        "numpy": ">=1.26,<2",
    },
    "variables": {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "GREETING": "a b", "MODEL": "${model}"},
    "paths": {"PYTHONPATH": ["${workspace}/core/src"]},
    "unsupported": {"flash-attn": "no NPU kernels"},
}


class Host:
    """A machine: a Python of its own, and a folder as Ascend's installers leave it."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "python").exists():
            venv.create(folder / "python", with_pip=False, symlinks=True)
        self.python = folder / "python" / "bin" / "python"
        (self._packages,) = (folder / "python" / "lib").glob("python*/site-packages")
        self.ascend = folder / "Ascend"

    def install(self, **versions: str) -> None:
        """Packages, by the metadata that pip leaves."""
        for name, version in versions.items():
            text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            write_files(self._packages, {f"{name}-{version}.dist-info/METADATA": text})

    def ask(self, package: str, *needs: str) -> None:
        """What a package asks for."""
        with (self._packages / f"{package}.dist-info" / "METADATA").open("a") as stream:
            stream.writelines(f"Requires-Dist: {each}\n" for each in needs)

    def software(self, cann: str = "8.5.0", nnal: str = "8.5.0", driver: str = "25.5.0") -> None:
        """CANN, NNAL and the driver."""
        files = {
            "ascend-toolkit/latest/version.cfg": f"toolkit_running_version=[7.6:{cann}]\n",
            "nnal/ascend_nnal_install.info": f"version={nnal}\n",
            "driver/version.info": f"Version={driver}\n",
        }
        write_files(self.ascend, files)


WISH = "[options]\ninstall_requires =\n    torch==2.9.1\n    flash-attn\n    numpy\n"
STEP = {"run": "pip install -e ."}
WANTED = {"environment": ENVIRONMENT, "values": {"model": {"description": "the checkpoint"}}}


@dataclass
class Site:
    """A manifest, and a machine beside it."""

    project: Project
    upstream: Upstream
    host: Host

    def core(self, wish: str = "", *, patch: bytes | None = None, **keys: Any) -> None:
        """Add a component, from whose setup.cfg it is read what it asks for."""
        pin = self.upstream.commit({"setup.cfg": wish})
        patches = None if patch is None else {"own.patch": patch}
        self.project.component("core", self.upstream, pin, patches, **keys)

    def declare(self, **keys: object) -> None:
        """Add keys to the manifest."""
        path = self.project.root / "manifests" / "demo.yaml"
        data = yaml.safe_load(path.read_text()) | keys
        path.write_text(yaml.safe_dump(data, sort_keys=False))

    def fetched(self) -> Site:
        self.project.run("fetch", "-c", "core").ok()
        return self

    def doctor(self, *words: str) -> Ran:
        """What `check --only machine` says of it."""
        place = ("--python", str(self.host.python), "--ascend", str(self.host.ascend))
        return self.project.run("check", "--only", "machine", *place, *words)

    def told(self, *words: str) -> Ran:
        """What it said, wherever and with whichever Python the tests run."""
        ran, version = self.doctor(*words), ".".join(map(str, sys.version_info[:3]))
        return replace(ran, stdout=ran.stdout.replace(version.encode(), b"3.N.N"))

    def verdicts(self, *words: str, code: int = 0) -> dict[str, str]:
        ran = self.doctor(*words, "--json").ends(code)
        return {each["name"]: each["verdict"] for each in ran.json["diagnoses"]}


@pytest.fixture(scope="module")
def blank_host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(tmp_path_factory.mktemp("blank"))


@pytest.fixture
def blank(project: Project, upstream: Upstream, blank_host: Host) -> Site:
    """A machine that has nothing, which no test changes."""
    return Site(project, upstream, blank_host)


@pytest.fixture
def site(project: Project, upstream: Upstream, tmp_path: Path) -> Site:
    """A machine of its own, and a manifest with the environment above."""
    made = Site(project, upstream, Host(tmp_path / "host"))
    made.core()
    made.declare(**WANTED)
    return made


@pytest.fixture(autouse=True)
def _bare_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if "ASCEND" in each or each == "ATB_HOME_PATH"]:
        monkeypatch.delenv(name)
    for name in ("PYTHONPATH", "MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_a_bare_machine(site: Site, golden: Golden) -> None:
    golden("doctor-bare", site.told())


def test_a_machine_as_it_should_be(
    site: Site, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.host.software()
    site.host.install(torch="2.8.0+cpu", torch_npu="2.8.0.post2", numpy="1.26.4")
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    monkeypatch.setenv("GREETING", "a b")
    monkeypatch.setenv("MODEL", "/data/model")
    monkeypatch.setenv("PYTHONPATH", f"/x:{site.project.root}/workspace/core/src")
    words = ("--set", "model=/data/model", "--workspace", "workspace")
    golden("doctor-well", site.fetched().told(*words))


def test_what_is_wrong_is_told_with_what_to_do(site: Site, golden: Golden) -> None:
    site.host.software(cann="8.1.RC1", nnal="8.5.0", driver="25.2.0")
    site.host.install(torch="2.9.1", torch_npu="2.8.0", numpy="1.26.4", flash_attn="2.8.3")
    golden("doctor-wrong", site.told("system", "packages"))


def test_what_nobody_can_read_is_uncertain_and_fails_nothing(site: Site) -> None:
    site.host.software(cann="8.5.T63", nnal="")
    (site.host.ascend / "driver" / "version.info").unlink()
    found = site.verdicts("system")
    assert {found[name] for name in ("cann", "nnal", "hdk")} == {"uncertain"}
    site.doctor("system").shows("no NPU driver found: not an Ascend host")


def test_a_python_that_is_not_there(site: Site) -> None:
    site.host.python = Path("/nowhere/none")
    assert site.verdicts("packages") == {"packages": "uncertain"}
    site.host.python = Path("/bin/false")
    assert site.verdicts("system", code=1)["python"] == "missing"


def test_packages_of_that_python_and_not_of_where_we_stand(site: Site) -> None:
    metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n"
    ours = {"json.py": "raise SystemExit('imported from where we stand')\n"}
    site.project.write({**ours, "torch-2.8.0.dist-info/METADATA": metadata})
    assert site.verdicts("packages", code=1)["torch"] == "missing"


def test_a_python_named_from_here(site: Site) -> None:
    site.host.install(torch="2.8.0")
    site.host.python = Path(os.path.relpath(site.host.python, site.project.root))
    assert site.verdicts("packages", code=1)["torch"] == "ok"


def test_what_pip_check_says(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    venv.create(tmp_path / "python", with_pip=True, symlinks=True)
    site = Site(project, upstream, Host(tmp_path))
    site.core(install=[{"run": "pip install --no-deps -e ."}])
    own = {"versions": {"cann": "==8.5.0"}, "unsupported": {"timm": "no kernels"}}
    site.declare(environment=own)
    site.host.install(numpy="1.26.0", decord2="3.4.0", core="1")
    assert site.verdicts("packages") == {"pip check": "ok"}
    site.host.ask("decord2-3.4.0", "numpy>=1.26.4", "timm")
    site.host.ask("core-1", "numpy>=2")
    ran = site.doctor("packages", "--json").ends(1)
    assert {each["found"]: each["verdict"] for each in ran.json["diagnoses"]} == {
        "core 1 has requirement numpy>=2, but you have numpy 1.26.0.": "note",
        "decord2 3.4.0 requires timm, which is not installed.": "note",
        "decord2 3.4.0 has requirement numpy>=1.26.4, but you have numpy 1.26.0.": "wrong",
    }


def test_variables(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8")
    monkeypatch.setenv("MODEL", "/somewhere")
    found = site.doctor("variables", "--json").json["diagnoses"]
    assert {each["name"]: each["verdict"] for each in found} == {
        "CUDA_DEVICE_MAX_CONNECTIONS": "wrong",
        "GREETING": "missing",
        "MODEL": "uncertain",
        "PYTHONPATH": "missing",
    }
    advice = {each["name"]: each["advice"] for each in found}
    assert advice["GREETING"] == "export GREETING='a b'"
    folder = f"{site.project.root}/workspace/core/src"
    assert advice["PYTHONPATH"] == f"export PYTHONPATH={folder}${{PYTHONPATH:+:$PYTHONPATH}}"
    assert site.verdicts("variables", "--set", "model=/other", code=1)["MODEL"] == "wrong"
    site.project.write({"site.yaml": "model: /somewhere\n"})
    assert site.verdicts("variables", "--set", "@site.yaml", code=1)["MODEL"] == "ok"


def test_versions_of_the_manifest_that_do_not_belong_together(site: Site) -> None:
    site.declare(environment={"versions": {"cann": "==8.5.0", "torch-npu": "==2.8.0"}})
    assert site.fetched().verdicts("metadata") == {"torch-npu": "uncertain"}


def test_a_component_that_asks_for_something_else(site: Site, golden: Golden) -> None:
    site.core(WISH, install=[STEP])
    site.declare(**WANTED)
    unfetched = site.doctor("metadata", "--json").json["diagnoses"]
    assert [each["verdict"] for each in unfetched] == ["uncertain"]
    site.project.run("fetch", "--cache", "../other").ok()
    elsewhere = site.doctor("metadata", "--json", "--cache", "../other")
    assert elsewhere.json["diagnoses"] != unfetched
    golden("doctor-metadata", site.fetched().told("metadata"))


def test_a_patch_can_settle_it(blank: Site) -> None:
    settled = WISH.replace("    torch==2.9.1\n    flash-attn\n", "    torch>=2.8\n")
    patch = make_patch({"setup.cfg": WISH}, {"setup.cfg": settled}, subject="Ask for less")
    blank.core(WISH, patch=patch, install=[STEP])
    own = {"versions": {"torch": "==2.8.0"}, "unsupported": {"flash-attn": "x"}}
    blank.declare(environment=own)
    assert blank.fetched().verdicts("metadata") == {}


def test_what_a_component_asks_for_or_cannot_bear(site: Site) -> None:
    own = {"versions": {"torch": "==2.7.0"}, "unsupported": {"flash-attn": "its own reason"}}
    site.core(environment=own)
    site.host.install(torch="2.8.0", flash_attn="2.8.0")
    found = site.verdicts("packages", code=1)
    assert (found["torch"], found["flash-attn"]) == ("wrong", "wrong")
    site.doctor("packages").shows("its own reason")


def test_what_pip_does_not_follow_is_a_note(blank: Site) -> None:
    wish = "[options]\ninstall_requires =\n    flash-attn\n    torch==2.9.1\n"
    blank.core(wish, install=[{"run": "pip install --no-deps -e ."}])
    own = {"versions": {"torch": "==2.8.0"}, "unsupported": {"flash-attn": "no kernels"}}
    blank.declare(environment=own)
    ran = blank.fetched().doctor("metadata", "--json").ok()
    told = [(each["wanted"], each["verdict"]) for each in ran.json["diagnoses"]]
    assert told == [("flash-attn", "note"), ("torch==2.9.1", "note")]


@pytest.mark.parametrize(
    ("python", "wrong"),
    [
        (">=3.9", "the pin of other asks for other 1.1"),
        ("<3.10", "no Python is all of python<3.10 (demo.yaml), python>=3.10 (core's setup.cfg)"),
    ],
)
def test_a_component_from_the_index_is_what_it_is_pinned_at(
    blank: Site, python: str, wrong: str
) -> None:
    wish = "[options]\npython_requires = >=3.10\ninstall_requires = other==1.0\n"
    blank.core(wish, install=[STEP])
    path = blank.project.root / "manifests" / "demo.yaml"
    other = f"other: {{source: {{index: other}}, pin: {{version: '1.1', sha256: '{'a' * 64}'}}}}"
    path.write_text(path.read_text().replace("components:\n", f"components:\n  {other}\n"))
    blank.declare(environment={"versions": {"python": python}})
    ran = blank.fetched().doctor("metadata", "--json")
    found = [each["found"] for each in ran.json["diagnoses"] if each["verdict"] == "wrong"]
    assert found == [wrong]


def test_a_stack_that_does_not_apply_is_uncertain(blank: Site) -> None:
    other = make_patch({"setup.cfg": "[other]\n"}, {"setup.cfg": "[another]\n"}, subject="No")
    corrupt = other.replace(b"@@ -1", b"@@ -1,9")
    for patch, why in ((other, "own.patch does not apply"), (corrupt, "hunk")):
        blank.core(WISH, patch=patch, install=[STEP])
        blank.project.run("fetch")
        assert {*blank.verdicts("metadata").values()} == {"uncertain"}
        blank.doctor("metadata").shows(why)


def test_a_manifest_that_asks_for_nothing(blank: Site) -> None:
    blank.core()
    ran = blank.fetched().doctor().ok()
    what = "✓ ok: demo asks for nothing that does not fit\n"
    assert ran.out == what


def test_words_that_are_no_topic(site: Site) -> None:
    site.doctor("everything").ends(2, "everything")
