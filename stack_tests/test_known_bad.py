"""Published patches that did not fit the pin they were published for: each is caught, and why.

From slime's history: commits that broke its own Docker build, and were mended later.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Ran, run_process
from tests.support.upstreams import NEEDS_UPSTREAMS, reaching_upstreams

SLIME = "https://github.com/THUDM/slime.git"
SGLANG = "https://github.com/sgl-project/sglang.git"
MEGATRON = "https://github.com/NVIDIA/Megatron-LM.git"
LATEST = "docker/patch/latest/"
B200 = "docker/patch/v0.5.2rc2-cu128-b200/"

#: component -> (upstream, pin of that day's Dockerfile, commit, path and sha256 of the patch)
CASES = {
    "renamed": (
        SLIME,
        "2418a7844abe4d490a1676dcf88fc3401adab362",
        "624b824a898ab0ec1fcb4d373004c7f3852bf515",
        "docker/npu_patch/slime.patch",
        "54578317c7816eaac33832dabc970e2aa2b6f482ec62194f5e7d7bd120f25dc6",
    ),
    "other-pin": (
        SGLANG,
        "5e2cda6158e670e64b926a9985d65826c537ac82",
        "ae5cc574254d5d9397fbb380c799fd6f08de35e6",
        LATEST + "sglang.patch",
        "4a4ba808e1ed4c69fd7cc56baaae36ee76039d37217dc83f3d347988933ace61",
    ),
    "other-pin-again": (
        SGLANG,
        "dce8b0606c06d3a191a24c7b8cbe8e238ab316c9",
        "170e68614c082c3fcd12370582499fef22632688",
        LATEST + "sglang.patch",
        "c6f982e7bbd9c8a320674d63a4734b79a984ba5683feed4c9b74390260332acf",
    ),
    "corrupt": (
        SGLANG,
        "dce8b0606c06d3a191a24c7b8cbe8e238ab316c9",
        "aeb0a29efb82584b1f5ecb3bffd884142cde2296",
        LATEST + "sglang.patch",
        "7023b9c0bee9ecef60538c5df93e8b26c5d571ff9d88aa2f772a0d3351214148",
    ),
    "corrupt-again": (
        MEGATRON,
        "a43b818bdeba00f4c23c44e1e87c72958611aad9",
        "149c348d4e0922ec7c55ac37abaece033d4a562b",
        LATEST + "megatron.patch",
        "797a8326893481786cd21f13e5e8fd6ce7c0542915352d3572db00ff4f80699a",
    ),
    "no-base-sglang": (
        SGLANG,
        "fa9c82d339626d293ea0286d92a776294300e834",
        "b7938c83f6eea589d327c2327a899656c800521c",
        B200 + "sglang.patch",
        "3a555c70cfc0aa4c40dcbf6950e4164cb5a2435aa9d174a3b192f2be08e80c94",
    ),
    "no-base-megatron": (
        MEGATRON,
        "a43b818bdeba00f4c23c44e1e87c72958611aad9",
        "b7938c83f6eea589d327c2327a899656c800521c",
        B200 + "megatron.patch",
        "d4d959f0ea18f0aa61485560fbdb30667965506c22ce81cacb5039957577c2de",
    ),
}

pytestmark = NEEDS_UPSTREAMS


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All cases as components of one manifest, checked."""
    folder = tmp_path_factory.mktemp("known-bad")
    lines = ["version: 1", "components:"]
    for name, (url, pin, commit, path, digest) in CASES.items():
        patch = f"{{git: '{SLIME}', commit: {commit}, path: {path}, sha256: {digest}}}"
        lines += [f"  {name}:", f"    source: {{git: '{url}'}}", f"    pin: {pin}"]
        lines += ["    patches:", f"      - {patch}"]
    write(folder / "known-bad.yaml", lines)
    argv = ("check", "-m", "known-bad.yaml", "--json", "--cache", str(folder / "cache"))
    ran = run_process(*argv, cwd=folder, environment=reaching_upstreams(), timeout=400)
    if ran.code == 5:
        pytest.skip(f"the upstreams cannot be reached: {ran.err.strip()}")
    return ran


def write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def component(checked: Ran, name: str) -> Any:
    [found] = [each for each in checked.json["components"] if each["name"] == name]
    return found


@pytest.mark.parametrize(
    ("name", "files", "others", "known"), [("other-pin", 8, 24, 25), ("other-pin-again", 1, 15, 36)]
)
def test_made_for_another_pin(checked: Ran, name: str, files: int, others: int, known: int) -> None:
    [patch] = component(checked, name)["patches"]
    explanation = patch["explanation"]
    assert patch["outcome"]["status"] == "conflicted"
    assert len(explanation["files"]) == files
    assert (len(explanation["origin"]["others"]), explanation["origin"]["known"]) == (others, known)


def test_renaming_that_went_over_the_context(checked: Ran) -> None:
    [patch] = component(checked, "renamed")["patches"]
    explanation = patch["explanation"]
    hunks = [
        (file["path"], h["number"], h["cause"])
        for file in explanation["files"]
        for h in file["hunks"]
    ]
    assert hunks == [
        ("slime/backends/megatron_utils/actor.py", 2, "changed"),
        ("slime/ray/rollout.py", 1, "changed"),
        ("slime/ray/train_actor.py", 1, "changed"),
        ("train.py", 1, "changed"),
    ]
    # nothing in the files changed: the patch itself did
    assert {file["preimage"] for file in explanation["files"]} == {"matches"}


@pytest.mark.parametrize(("name", "line"), [("corrupt", 211), ("corrupt-again", 5)])
def test_corrupt_counts(checked: Ran, name: str, line: int) -> None:
    found = component(checked, name)
    assert found["exit_code"] == 4
    [problem] = found["problems"]
    assert problem["where"].endswith(f".patch:{line}")
    assert f"hunk at line {line} declares" in problem["what"]


@pytest.mark.parametrize(("name", "others"), [("no-base-sglang", 5), ("no-base-megatron", 7)])
def test_fits_by_luck(checked: Ran, name: str, others: int) -> None:
    """Applies at offsets, to files that it was not made against."""
    [patch] = component(checked, name)["patches"]
    assert patch["outcome"]["status"] == "shifted"
    assert len(patch["origin"]["others"]) == others
    assert "another-base" in {finding["code"] for finding in patch["findings"]}


def test_worst_of_all_is_the_exit_code(checked: Ran) -> None:
    assert checked.code == 4
