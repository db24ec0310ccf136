"""Ascend's software on this machine: CANN, NNAL and the driver, by the files that say its version.

Nothing here is run but npu-smi; a file that says no version is reported as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from patchkit.gitcmd.target_python import run_program


def ask_npu_smi(program: str) -> str | None:
    """What `npu-smi info` writes; None if it fails, as it does where no NPU is."""
    answer = run_program([program, "info"])
    return None if isinstance(answer, str) or answer.returncode else answer.stdout


#: Where installers put things unless told otherwise.
DEFAULT_HOME = Path("/usr/local/Ascend")

_INSTALLED = re.compile(r"^\s*version\s*=\s*([^\s]+)", re.MULTILINE | re.IGNORECASE)
# toolkit_running_version=[7.6.0.1.220:8.0.0]
_RUNNING = re.compile(r"^toolkit_running_version\s*=\s*\[[^\]:]*:([^\]\s]+)\]", re.MULTILINE)
# | npu-smi 25.3.rc1                 Version: 25.3.rc1                          |
_NPU_SMI = re.compile(r"npu-smi\s+v?([0-9][0-9A-Za-z.]*)", re.IGNORECASE)
# Ascend-cann-atb : 8.5.0
_ATB = re.compile(
    r"^\s*Ascend-cann-[a-z]+\s*:\s*(?:\S+\s+Version\s*:?\s*)?([0-9][0-9A-Za-z.]*)", re.M
)
_NNAL_FILES = (
    ("ascend_nnal_install.info", _INSTALLED),
    ("version.info", _INSTALLED),
    ("version.info", _ATB),
)


class InstalledSoftware(Struct, frozen=True):
    """Software that is there; `version` is None where nothing readable says which."""

    version: str | None
    where: str


class AscendHost(Struct, frozen=True):
    """Where to look: the folder that installers use, the shell's variables, npu-smi's path."""

    home: Path  # the folder that installers use
    environment: Mapping[str, str]  # the variables that are looked at
    npu_smi: str | None = None

    def cann(self) -> InstalledSoftware | None:
        """The CANN that is active, else the one that is installed."""
        active = self._named("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
        folders = [*active, self.home / "ascend-toolkit" / "latest", self.home / "cann"]
        for folder in filter(Path.is_dir, folders):
            infos = sorted(folder.glob("*-linux/ascend_toolkit_install.info"))
            files = [(info, _INSTALLED) for info in infos]
            files += [(folder / "version.cfg", _RUNNING), (folder / "version.info", _INSTALLED)]
            return _version_of(folder, files)
        return None

    def nnal(self) -> InstalledSoftware | None:
        """NNAL, by its transformer library."""
        root = self.home / "nnal"
        active = [
            each for path in self._named("ATB_HOME_PATH") for each in (path.parent.parent, path)
        ]
        folders = [*active, root / "atb" / "latest", root / "atb", root]
        there = [*filter(Path.is_dir, folders)]
        files = [(folder / name, pattern) for folder in there for name, pattern in _NNAL_FILES]
        return _version_of(there[0], files) if there else None

    def driver(self) -> InstalledSoftware | None:
        """The NPU driver, by its version file or by npu-smi."""
        file = self.home / "driver" / "version.info"
        found = _version_of(file, [(file, _INSTALLED)]) if file.is_file() else None
        if found is not None and found.version is not None:
            return found
        if self.npu_smi is None:
            return found
        answer = ask_npu_smi(self.npu_smi)
        match = _NPU_SMI.search(answer) if answer is not None else None
        return InstalledSoftware(match[1], "npu-smi info") if match else found

    def _named(self, *variables: str) -> list[Path]:
        """The folders that variables of the shell name."""
        return [Path(self.environment[each]) for each in variables if self.environment.get(each)]


def _version_of(place: Path, files: list[tuple[Path, re.Pattern[str]]]) -> InstalledSoftware:
    for file, pattern in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = pattern.search(text)
        if found:
            return InstalledSoftware(found[1], str(file))
    return InstalledSoftware(None, str(place))
