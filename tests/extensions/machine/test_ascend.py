"""The versions of Ascend's software, read from trees as its installers leave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.extensions.machine.ascend import AscendHost, InstalledSoftware

TOOLKIT_INFO = (
    "package_name=Ascend-cann-toolkit\nversion={}\ninnerversion=V100R001C23\narch=aarch64\n"
)
VERSION_CFG = (
    "# version: 1.0\nruntime_running_version=[7.5.0:1]\ntoolkit_running_version=[7.6.0.1.220:{}]\n"
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def host(home: Path, **environment: str) -> AscendHost:
    return AscendHost(home, environment)


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
    file = write(tmp_path / path, text.format(version))
    assert host(tmp_path).cann() == InstalledSoftware(version, str(file))


@pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
def test_the_cann_that_was_sourced_comes_first(tmp_path: Path, variable: str) -> None:
    write(tmp_path / "home/ascend-toolkit/latest/version.cfg", VERSION_CFG.format("8.1.RC1"))
    other = write(tmp_path / "opt/cann/version.cfg", VERSION_CFG.format("8.5.0"))
    found = host(tmp_path / "home", **{variable: str(tmp_path / "opt/cann")}).cann()
    assert found == InstalledSoftware("8.5.0", str(other))


def test_a_cann_that_says_no_version(tmp_path: Path) -> None:
    write(tmp_path / "cann/set_env.sh", "")
    write(tmp_path / "cann/version.cfg", "garbage\n")
    assert host(tmp_path).cann() == InstalledSoftware(None, str(tmp_path / "cann"))


def test_no_cann(tmp_path: Path) -> None:
    assert host(tmp_path).cann() is None
    assert host(tmp_path, ASCEND_HOME_PATH=str(tmp_path / "gone")).cann() is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nnal/ascend_nnal_install.info", "package_name=Ascend-cann-nnal\nversion=8.5.0\n"),
        ("nnal/atb/ascend_nnal_install.info", "version=8.5.0\n"),
        ("nnal/atb/latest/version.info", "    Ascend-cann-atb : 8.5.0\n    Platform : aarch64\n"),
    ],
)
def test_nnal(tmp_path: Path, path: str, text: str) -> None:
    file = write(tmp_path / path, text)
    assert host(tmp_path).nnal() == InstalledSoftware("8.5.0", str(file))


def test_nnal_elsewhere_and_nowhere(tmp_path: Path) -> None:
    file = write(tmp_path / "opt/atb/latest/version.info", "Ascend-cann-atb : 8.3.RC1\n")
    home = str(tmp_path / "opt/atb/latest/atb/cxx_abi_1")
    (tmp_path / "opt/atb/latest/atb/cxx_abi_1").mkdir(parents=True)
    assert host(tmp_path / "none", ATB_HOME_PATH=home).nnal() == InstalledSoftware(
        "8.3.RC1", str(file)
    )
    assert host(tmp_path / "none").nnal() is None


def npu_smi(folder: Path, text: str, code: int = 0) -> str:
    program = write(folder / "npu-smi", f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


TABLE = """\
+----------------------------------------------------------------------------+
| npu-smi 25.3.rc1                 Version: 25.3.rc1                           |
+---------------------------+---------------+--------------------------------+
| 0     910B3               | OK            | 93.1        36                 |"""


def test_the_driver_by_its_file(tmp_path: Path) -> None:
    file = write(tmp_path / "driver/version.info", "Version=25.3.rc1\nascendhal_version=7.35\n")
    program = npu_smi(tmp_path, TABLE.replace("25.3.rc1", "1.1"))
    assert AscendHost(tmp_path, {}, program).driver() == InstalledSoftware("25.3.rc1", str(file))


def test_the_driver_by_npu_smi(tmp_path: Path) -> None:
    found = AscendHost(tmp_path, {}, npu_smi(tmp_path, TABLE)).driver()
    assert found == InstalledSoftware("25.3.rc1", "npu-smi info")


def test_no_driver(tmp_path: Path) -> None:
    assert AscendHost(tmp_path, {}).driver() is None
    failing = npu_smi(tmp_path, "DrvMngGetConsoleLogLevel failed. (ret=4)", 1)
    assert AscendHost(tmp_path, {}, failing).driver() is None


def test_a_driver_that_says_no_version(tmp_path: Path) -> None:
    file = write(tmp_path / "driver/version.info", "nothing\n")
    assert AscendHost(tmp_path, {}).driver() == InstalledSoftware(None, str(file))
