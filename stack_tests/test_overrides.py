"""What MindSpeed replaces in Megatron-LM is what docs/overrides-mindspeed.md says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from patchkit.errors import ExitCode
from tests.support.commands import run_process
from tests.support.upstreams import reaching_upstreams, skip_without_upstreams

ROOT = Path(__file__).parents[1]
#: core_v0.12.1, the release that MindSpeed fc63de5c is documented with.
DOCUMENTED = "a845aa7e12b3a117e24c2352b9e3e60bad2e3a17"
COUNTS = {"gone": 14, "declared": 4, "signature": 90, "body": 85, "new": 6, "same": 69}


@pytest.fixture(scope="session")
def since_documented(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `patchkit check --only overrides --base` says, as JSON."""
    skip_without_upstreams()
    folder = tmp_path_factory.mktemp("overrides")
    for name in ("manifests", "patches"):
        shutil.copytree(ROOT / name, folder / name)
    argv = (
        "check",
        "--only",
        "overrides",
        "-m",
        "qwen3-vl-npu",
        "-c",
        "mindspeed",
        "--base",
        DOCUMENTED,
        "--json",
        "--cache",
        str(folder / "cache"),
    )
    ran = run_process(*argv, cwd=folder, environment=reaching_upstreams(), timeout=300)
    if ran.code == ExitCode.ENVIRONMENT:
        pytest.skip(f"the upstreams cannot be reached: {ran.err.strip()}")
    return ran.json


@pytest.mark.upstream
def test_what_changed_between_two_releases(since_documented: Any) -> None:
    (found,) = since_documented["overrides"]
    assert found["counts"] == COUNTS
    assert found["findings"] == []


def test_the_page_says_the_same() -> None:
    page = (ROOT / "docs" / "overrides-mindspeed.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z][^|]*) \| (\d+) \|$", page, re.MULTILINE))
    said = {
        "gone": rows["gone since core_v0.12.1"],
        "declared": rows["at neither"],
        "signature": rows["called in another way"],
        "body": rows["called as before, other code"],
        "new": rows["not there at core_v0.12.1, there at 3714d81d"],
        "same": rows["the same"],
    }
    assert {verdict: int(count) for verdict, count in said.items()} == COUNTS
    assert int(rows["named in `megatron.*`"]) == sum(COUNTS.values())
