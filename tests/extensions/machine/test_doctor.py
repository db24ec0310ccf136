"""doctor: this machine beside a manifest, with a real Python and CANN trees made for it."""

from __future__ import annotations

import os
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.commands import Ran
from tests.support.golden import Golden
from tests.support.projects import Project
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
            info = self._packages / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            )

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
        for name, text in files.items():
            (self.ascend / name).parent.mkdir(parents=True, exist_ok=True)
            (self.ascend / name).write_text(text)


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(tmp_path_factory.mktemp("blank"))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "host")


@pytest.fixture(autouse=True)
def _bare_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if "ASCEND" in each or each == "ATB_HOME_PATH"]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("MODEL", raising=False)


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A manifest with the environment above and one component without metadata."""
    project.component("core", upstream, upstream.commit({"core.py": "pass\n"}))
    add(project, environment=ENVIRONMENT, values={"model": {"description": "the checkpoint"}})
    return project


def add(project: Project, **keys: object) -> None:
    """Add keys to the manifest."""
    import yaml  # noqa: PLC0415

    path = project.root / "manifests" / "demo.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | keys, sort_keys=False))


def doctor(project: Project, host: Host, *words: str) -> Ran:
    place = ("--python", str(host.python), "--ascend", str(host.ascend))
    return project.run("check", "--only", "machine", *place, *words)


def told(ran: Ran) -> Ran:
    """What it said, wherever and with whichever Python the tests run."""
    version = ".".join(map(str, sys.version_info[:3]))
    return replace(ran, stdout=ran.stdout.replace(version.encode(), b"3.N.N"))


def verdicts(ran: Ran) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in ran.json["diagnoses"]}


def test_a_bare_machine(demo: Project, host: Host, golden: Golden) -> None:
    golden("doctor-bare", told(doctor(demo, host)))


def test_a_machine_as_it_should_be(
    demo: Project, host: Host, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.software()
    host.install(torch="2.8.0+cpu", torch_npu="2.8.0.post2", numpy="1.26.4")
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    monkeypatch.setenv("GREETING", "a b")
    monkeypatch.setenv("MODEL", "/data/model")
    monkeypatch.setenv("PYTHONPATH", f"/x:{demo.root}/workspace/core/src")
    demo.run("fetch").ok()
    ran = doctor(demo, host, "--set", "model=/data/model", "--workspace", "workspace")
    golden("doctor-well", told(ran))
    assert ran.code == 0


def test_what_is_wrong_is_told_with_what_to_do(demo: Project, host: Host, golden: Golden) -> None:
    host.software(cann="8.1.RC1", nnal="8.5.0", driver="25.2.0")
    host.install(torch="2.9.1", torch_npu="2.8.0", numpy="1.26.4", flash_attn="2.8.3")
    only = ("system", "packages")
    golden("doctor-wrong", told(doctor(demo, host, *only)))


def test_no_driver_is_uncertain_and_fails_nothing(demo: Project, host: Host) -> None:
    host.software()
    (host.ascend / "driver" / "version.info").unlink()
    ran = doctor(demo, host, "system", "--json").ok()
    assert verdicts(ran)["hdk"] == "uncertain"
    (hdk,) = [each for each in ran.json["diagnoses"] if each["name"] == "hdk"]
    assert hdk["found"].startswith("no NPU driver found: not an Ascend host")


def test_versions_that_nobody_can_read_are_uncertain(demo: Project, host: Host) -> None:
    host.software(cann="8.5.T63", nnal="")
    found = verdicts(doctor(demo, host, "system", "--json").ok())
    assert (found["cann"], found["nnal"]) == ("uncertain", "uncertain")


def test_a_python_that_is_not_there(demo: Project, host: Host, tmp_path: Path) -> None:
    ran = demo.run(
        "check", "--only", "machine", "--python", str(tmp_path / "none"), "packages", "--json"
    )
    assert verdicts(ran) == {"packages": "uncertain"}
    ran = demo.run("check", "--only", "machine", "--python", "/bin/false", "system", "--json")
    assert verdicts(ran)["python"] == "missing"
    assert ran.code == 1


def test_packages_of_that_python_and_not_of_where_we_stand(demo: Project, blank: Host) -> None:
    info = demo.root / "torch-2.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n")
    (demo.root / "json.py").write_text("raise SystemExit('imported from where we stand')\n")
    ran = doctor(demo, blank, "packages", "--json")
    assert verdicts(ran)["torch"] == "missing"


def test_a_python_named_from_here(demo: Project, host: Host) -> None:
    host.install(torch="2.8.0")
    near = os.path.relpath(host.python, demo.root)
    ran = demo.run("check", "--only", "machine", "--python", near, "packages", "--json")
    assert verdicts(ran)["torch"] == "ok"


def test_what_pip_check_says(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    venv.create(tmp_path / "python", with_pip=True, symlinks=True)
    host = Host(tmp_path)
    pin = upstream.commit({"core.py": "pass\n"})
    alone = [{"run": "pip install --no-deps -e ."}]
    project.component("core", upstream, pin, install=alone)
    own = {"versions": {"cann": "==8.5.0"}, "unsupported": {"timm": "no kernels"}}
    add(project, environment=own)
    host.install(numpy="1.26.0", decord2="3.4.0", core="1")
    assert verdicts(doctor(project, host, "packages", "--json").ok()) == {"pip check": "ok"}
    host.ask("decord2-3.4.0", "numpy>=1.26.4", "timm")
    host.ask("core-1", "numpy>=2")
    ran = doctor(project, host, "packages", "--json")
    found = {each["found"]: each["verdict"] for each in ran.json["diagnoses"]}
    assert (ran.code, found) == (
        1,
        {
            "core 1 has requirement numpy>=2, but you have numpy 1.26.0.": "note",
            "decord2 3.4.0 requires timm, which is not installed.": "note",
            "decord2 3.4.0 has requirement numpy>=1.26.4, but you have numpy 1.26.0.": "wrong",
        },
    )


def test_variables(demo: Project, blank: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8")
    monkeypatch.setenv("MODEL", "/somewhere")
    ran = doctor(demo, blank, "variables", "--json")
    assert verdicts(ran) == {
        "CUDA_DEVICE_MAX_CONNECTIONS": "wrong",
        "GREETING": "missing",
        "MODEL": "uncertain",
        "PYTHONPATH": "missing",
    }
    advice = {each["name"]: each["advice"] for each in ran.json["diagnoses"]}
    assert advice["GREETING"] == "export GREETING='a b'"
    folder = f"{demo.root}/workspace/core/src"
    assert advice["PYTHONPATH"] == f"export PYTHONPATH={folder}${{PYTHONPATH:+:$PYTHONPATH}}"
    given = doctor(demo, blank, "variables", "--json", "--set", "model=/other")
    assert verdicts(given)["MODEL"] == "wrong"
    demo.write({"site.yaml": "model: /somewhere\n"})
    given = doctor(demo, blank, "variables", "--json", "--set", "@site.yaml")
    assert verdicts(given)["MODEL"] == "ok"


def test_versions_of_the_manifest_that_do_not_belong_together(demo: Project, host: Host) -> None:
    add(demo, environment={"versions": {"cann": "==8.5.0", "torch-npu": "==2.8.0"}})
    demo.run("fetch").ok()
    assert verdicts(doctor(demo, host, "metadata", "--json").ok()) == {"torch-npu": "uncertain"}


SETUP = "[options]\ninstall_requires =\n    torch==2.9.1\n    flash-attn\n    numpy\n"
STEP = [{"run": "pip install -e ."}]


def test_a_component_that_asks_for_something_else(
    project: Project, upstream: Upstream, host: Host, golden: Golden
) -> None:
    project.component("core", upstream, upstream.commit({"setup.cfg": SETUP}), install=STEP)
    add(project, environment=ENVIRONMENT, values={"model": {"description": "the checkpoint"}})
    unfetched = doctor(project, host, "metadata", "--json")
    assert verdicts(unfetched) == {"core": "uncertain"}
    project.run("fetch", "--cache", "../other").ok()
    elsewhere = doctor(project, host, "metadata", "--json", "--cache", "../other")
    assert elsewhere.json["diagnoses"] != unfetched.json["diagnoses"]
    project.run("fetch").ok()
    golden("doctor-metadata", told(doctor(project, host, "metadata")))


def test_a_patch_can_settle_it(project: Project, upstream: Upstream, blank: Host) -> None:
    settled = SETUP.replace("    torch==2.9.1\n    flash-attn\n", "    torch>=2.8\n")
    patch = make_patch({"setup.cfg": SETUP}, {"setup.cfg": settled}, subject="Ask for less")
    pin = upstream.commit({"setup.cfg": SETUP})
    project.component("core", upstream, pin, {"less.patch": patch}, install=STEP)
    add(project, environment={"versions": {"torch": "==2.8.0"}, "unsupported": {"flash-attn": "x"}})
    project.run("fetch").ok()
    assert verdicts(doctor(project, blank, "metadata", "--json").ok()) == {}


def test_a_version_that_a_component_asks_for(
    project: Project, upstream: Upstream, host: Host
) -> None:
    own = {"versions": {"torch": "==2.7.0"}}
    project.component("core", upstream, upstream.commit({"core.py": "pass\n"}), environment=own)
    host.install(torch="2.8.0")
    ran = doctor(project, host, "packages", "--json")
    assert (ran.code, verdicts(ran)["torch"]) == (1, "wrong")


def test_a_package_that_a_component_cannot_bear(
    project: Project, upstream: Upstream, host: Host
) -> None:
    own = {"unsupported": {"flash-attn": "no kernels"}}
    project.component("core", upstream, upstream.commit({"core.py": "pass\n"}), environment=own)
    host.install(flash_attn="2.8.0")
    ran = doctor(project, host, "packages", "--json")
    assert (ran.code, verdicts(ran)["flash-attn"]) == (1, "wrong")
    assert "no kernels" in ran.out


@pytest.mark.parametrize(
    "steps",
    [
        [{"run": "pip install --no-deps -e ."}],
        [{"run": "make"}],
        [{"run": "pip install -e ."}, {"run": "pip uninstall -y flash_attn"}],
    ],
)
def test_what_the_steps_settle_is_a_note(
    project: Project, upstream: Upstream, blank: Host, steps: list[dict[str, str]]
) -> None:
    wish = "[options]\ninstall_requires = flash-attn\n"
    project.component("core", upstream, upstream.commit({"setup.cfg": wish}), install=steps)
    add(project, environment={"unsupported": {"flash-attn": "no kernels"}})
    project.run("fetch").ok()
    assert verdicts(doctor(project, blank, "metadata", "--json").ok()) == {"core": "note"}


def test_a_component_from_the_index_is_what_it_is_pinned_at(
    project: Project, upstream: Upstream, blank: Host
) -> None:
    wish = "[options]\npython_requires = <3.8\ninstall_requires = other==1.0\n"
    project.component("core", upstream, upstream.commit({"setup.cfg": wish}), install=STEP)
    path = project.root / "manifests" / "demo.yaml"
    text = path.read_text() + (
        "  other:\n    source: {index: other}\n"
        f"    pin: {{version: '1.1', sha256: '{'a' * 64}'}}\n"
        "environment: {versions: {python: '>=3.10'}}\n"
    )
    path.write_text(text)
    project.run("fetch", "--component", "core").ok()
    ran = doctor(project, blank, "metadata", "--json")
    wrong = [each["wanted"] for each in ran.json["diagnoses"] if each["verdict"] == "wrong"]
    assert wrong == ["Python <3.8", "other==1.0"]


def test_a_stack_that_does_not_apply_is_uncertain(
    project: Project, upstream: Upstream, blank: Host
) -> None:
    other = make_patch({"setup.cfg": "[other]\n"}, {"setup.cfg": "[another]\n"}, subject="No")
    for name, patch, why in (
        ("other", other, "other.patch does not apply"),
        ("corrupt", other.replace(b"@@ -1", b"@@ -1,9"), "hunk"),
    ):
        pin = upstream.commit({"setup.cfg": SETUP})
        project.component(name, upstream, pin, {f"{name}.patch": patch}, install=[{**STEP[0]}])
        project.run("fetch", "--component", name)
        ran = doctor(project, blank, "metadata", "--json").ok()
        assert verdicts(ran)[name] == "uncertain"
        assert why in ran.json["diagnoses"][-1]["found"]


def test_a_manifest_that_asks_for_nothing(
    project: Project, upstream: Upstream, blank: Host
) -> None:
    project.component("demo", upstream, upstream.commit({"a": "a\n"}))
    project.run("fetch").ok()
    ran = doctor(project, blank)
    assert (ran.code, ran.out.strip()) == (
        0,
        "✓ ok: demo has no requirements on the machine: nothing was compared",
    )


def test_words_that_are_no_topic(demo: Project) -> None:
    demo.run("check", "--only", "machine", "everything").ends(2, "everything")
