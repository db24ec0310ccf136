"""The versions of Ascend's software, read from trees as its installers leave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.extensions.machine.ascend import AscendHost, InstalledSoftware
from tests.support.projects import write_files

TOOLKIT_INFO = (
    "package_name=Ascend-cann-toolkit\nversion={}\ninnerversion=V100R001C23\narch=aarch64\n"
)
VERSION_CFG = (
    "# version: 1.0\nruntime_running_version=[7.5.0:1]\ntoolkit_running_version=[7.6.0.1.220:{}]\n"
)


def host(home: Path, npu_smi: str = "npu-smi", **environment: str) -> AscendHost:
    return AscendHost(home, environment, npu_smi)


def write(path: Path, text: str) -> InstalledSoftware:
    """A file that says version 8.5.0."""
    write_files(path.parent, {path.name: text})
    return InstalledSoftware("8.5.0", str(path))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cann/aarch64-linux/ascend_toolkit_install.info", TOOLKIT_INFO),
        ("ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info", TOOLKIT_INFO),
        ("ascend-toolkit/latest/version.cfg", VERSION_CFG),
        ("ascend-toolkit/latest/version.info", "Version={}\n"),
    ],
)
@pytest.mark.parametrize("version", ["8.5.0", "8.1.RC1"])
def test_cann(tmp_path: Path, path: str, text: str, version: str) -> None:
    write_files(tmp_path, {path: text.format(version)})
    assert host(tmp_path).cann() == InstalledSoftware(version, str(tmp_path / path))


@pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
def test_the_cann_that_was_sourced_comes_first(tmp_path: Path, variable: str) -> None:
    write(tmp_path / "home/ascend-toolkit/latest/version.cfg", VERSION_CFG.format("8.1.RC1"))
    other = write(tmp_path / "opt/cann/version.cfg", VERSION_CFG.format("8.5.0"))
    assert host(tmp_path / "home", **{variable: str(tmp_path / "opt/cann")}).cann() == other


def test_no_cann_and_one_that_says_no_version(tmp_path: Path) -> None:
    assert host(tmp_path).cann() is None
    assert host(tmp_path, ASCEND_HOME_PATH=str(tmp_path / "gone")).cann() is None
    write_files(tmp_path / "cann", {"set_env.sh": "", "version.cfg": "garbage\n"})
    assert host(tmp_path).cann() == InstalledSoftware(None, str(tmp_path / "cann"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nnal/ascend_nnal_install.info", "package_name=Ascend-cann-nnal\nversion=8.5.0\n"),
        ("nnal/atb/ascend_nnal_install.info", "version=8.5.0\n"),
        ("nnal/atb/latest/version.info", "    Ascend-cann-atb : 8.5.0\n    Platform : aarch64\n"),
    ],
)
def test_nnal(tmp_path: Path, path: str, text: str) -> None:
    assert host(tmp_path).nnal() is None
    assert write(tmp_path / path, text) == host(tmp_path).nnal()


def test_nnal_elsewhere(tmp_path: Path) -> None:
    there = write(tmp_path / "opt/version.info", "Ascend-cann-atb : 8.5.0\n")
    home = tmp_path / "opt/atb/cxx_abi_1"
    home.mkdir(parents=True)
    assert host(tmp_path / "none", ATB_HOME_PATH=str(home)).nnal() == there


def npu_smi(folder: Path, text: str, code: int = 0) -> str:
    program = folder / "npu-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


TABLE = """\
+----------------------------------------------------------------------------+
| npu-smi 25.3.rc1                 Version: 25.3.rc1                           |
+---------------------------+---------------+--------------------------------+
| 0     910B3               | OK            | 93.1        36                 |"""


def test_the_driver_by_its_file_or_by_npu_smi(tmp_path: Path) -> None:
    assert host(tmp_path).driver() is None
    failing = npu_smi(tmp_path, "DrvMngGetConsoleLogLevel failed. (ret=4)", 1)
    assert host(tmp_path, failing).driver() is None
    program = npu_smi(tmp_path, TABLE)
    assert host(tmp_path, program).driver() == InstalledSoftware("25.3.rc1", "npu-smi info")
    file = tmp_path / "driver/version.info"
    for text, version in (
        ("Version=8.5.0\nascendhal_version=7.35\n", "8.5.0"),
        ("nothing\n", None),
    ):
        write(file, text)
        found = host(tmp_path, program if version else "npu-smi").driver()
        assert found == InstalledSoftware(version, str(file))
