"""Versions and pairs of them, those of packages and those of Ascend's software."""

from __future__ import annotations

import pytest
from packaging.version import Version

from patchkit.extensions.machine.compatibility import TORCH_NPU_CANN, diagnose_profile
from patchkit.upstream.requirements import exact, satisfies


@pytest.mark.parametrize(
    ("version", "specifier", "verdict"),
    [
        ("8.5.0", "==8.5.0", True),
        ("8.1.rc1", "==8.1.RC1", True),
        ("8.1.RC1", "==8.1.0", False),
        ("25.3.rc1", ">=25.3.RC1", True),
        ("25.5.0", ">=25.3.RC1", True),
        ("25.2.1", ">=25.3.RC1", False),
        ("2.8.0+cpu", "==2.8.0", True),
        ("2.8.0.post2", "==2.8.0", False),
        ("3.11.7", ">=3.11,<3.12", True),
        ("8.3.RC1.alpha003", "==8.3.RC1", None),
        ("8.0.T63", "==8.0.0", None),
    ],
)
def test_satisfies(version: str, specifier: str, verdict: bool | None) -> None:
    assert satisfies(version, specifier) is verdict


@pytest.mark.parametrize(
    ("specifier", "version"),
    [("==2.8.0", "2.8.0"), ("==2.8.*", None), (">=2.8", None), ("==2.8.0,<3", None), ("x", None)],
)
def test_exact(specifier: str, version: str | None) -> None:
    assert exact(specifier) == version


def pairs(**versions: str) -> list[tuple[str, str, str]]:
    pinned = {name.replace("_", "-"): f"=={each}" for name, each in versions.items()}
    found = diagnose_profile(pinned, "")
    return [(each.name, each.verdict.value, each.found.partition(" (")[0]) for each in found]


def test_torch_npu_beside_cann() -> None:
    told = [("torch-npu", "uncertain", "made for another CANN; for 8.5.0 it is 2.8.0.post2")]
    assert pairs(torch_npu="2.8.0.post2", cann="8.5.0") == []
    assert pairs(torch_npu="2.8.0", cann="8.5.0") == told
    assert pairs(torch_npu="2.8.0", cann="8.3.rc1") == []
    assert pairs(torch_npu="2.5.1", cann="8.1.RC1") == []
    assert pairs(torch_npu="1.11.0", cann="8.5.0") == []


def test_only_exact_versions_are_compared() -> None:
    assert list(diagnose_profile({"torch-npu": ">=2.8.0", "cann": "==8.5.0"}, "")) == []


def test_the_tables_rows_are_versions_in_order() -> None:
    npu = [Version(each) for each in TORCH_NPU_CANN]
    assert npu == sorted(npu)
    assert all(Version(cann) for cann in TORCH_NPU_CANN.values())
