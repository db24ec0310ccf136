"""The published patches of the slime stack, on the real upstreams: the verdicts that are known."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from stack_tests.conftest import ROOT
from tests.support.commands import Ran, run_process
from tests.support.upstreams import NEEDS_UPSTREAMS, reaching_upstreams

NPU_PATCHES = "2432b3db2c0c9cfd9004c46e14cf2d60860440b6"
SLIME_PATCH = "c2f071d42aa96d8a99b6bf131f80d99afca19d22d04672993333c45c63229c9e"
DEAD = "624b824a898ab0ec1fcb4d373004c7f3852bf515"
DEAD_SLIME_PATCH = "54578317c7816eaac33832dabc970e2aa2b6f482ec62194f5e7d7bd120f25dc6"

#: What `git apply` gives in the published order (Megatron-Bridge: at our pin).
NPU_TREES = {
    "slime": "649ed5981125386176cb3422d844df43b3fa0399",
    "sglang": "e989c47eb7ed8661a075d70d6624e40c179dac8d",
    "sgl-kernel-npu": "c77eee1165ffe6e9c3d316637713c1f459779b83",
    "megatron-lm": "d2154ae36c06e73fda026933077c7ca67054d35c",
    "megatron-bridge": "58bea4779753f11755a1a4253ac497005e7d4d3c",
    "mindspeed": "8b0f51b3eb83fa3c44efe068b9c4c51844d018f5",
}
CUDA_TREES = {
    "sglang": "bb8480427c492c4d85d0765fab121f3133829940",
    "megatron-lm": "c57c68270f2ca133d27cfb25af9e6f065fdc7e8a",
    "slime": "e2a9376c07aa48d9ae728be08df407dff8541352",
}
#: MindSpeed: with the newline that its patch lacks.
MILES_TREES = {
    "sgl-kernel-npu": "ee105a2e5cd22a824a85777724773983142353e7",
    "megatron-lm": "282a0916c3968313fcdc020ef6228a60a599d7d7",
    "megatron-bridge": "f3e8aa6ce7c248e0442951a824171ff88047344e",
    "mindspeed": "c3cf402f0f2f18897fbba1e99b48e674a15bab07",
    "miles": "782f24ee3826af7d17705a358e2b693dd80e2427",
}

pytestmark = NEEDS_UPSTREAMS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one cache for this module."""
    folder = tmp_path_factory.mktemp("published")
    for name in ("manifests", "patches"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """The user's own environment: mirrors and proxies are in there."""
    return reaching_upstreams()


def patchkit(folder: Path, surroundings: dict[str, str], *argv: str) -> Ran:
    """Run patchkit on a manifest of the copy."""
    argv = (*argv, "--cache", str(folder / "cache"), "--json")
    return run_process(*argv, cwd=folder, environment=surroundings, timeout=300)


def variant(folder: Path, name: str, *replacements: tuple[str, str]) -> str:
    """A manifest beside the official one, with these texts replaced."""
    text = (folder / "manifests/slime-npu-official.yaml").read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    (folder / f"manifests/{name}.yaml").write_text(text)
    return name


def patches_of(report: Any, component: str) -> dict[str, Any]:
    """Patch name -> what check says about it."""
    [found] = [each for each in report["components"] if each["name"] == component]
    return {patch["name"]: patch for patch in found["patches"]}


@pytest.mark.parametrize(
    ("manifest", "trees"),
    [
        ("slime-npu-official", NPU_TREES),
        ("slime-0.3.1", CUDA_TREES),
        ("miles-npu", MILES_TREES),
    ],
)
def test_trees_are_those_of_git_apply(
    folder: Path, surroundings: dict[str, str], manifest: str, trees: dict[str, str]
) -> None:
    argv = ("apply", "--manifest", manifest, "--workspace", str(folder / manifest))
    ran = patchkit(folder, surroundings, *argv)
    assert ran.code == 0, ran.err
    assert {each["name"]: each["tree"] for each in ran.json["components"]} == trees


def test_calls_that_do_not_fit_have_their_reasons(
    folder: Path, surroundings: dict[str, str]
) -> None:
    text = (folder / "manifests/slime-0.3.1.yaml").read_text()
    begin = text.index("      absent:\n")
    end = text.index("    install:", begin)
    (folder / "manifests/unreasoned.yaml").write_text(text[:begin] + text[end:])
    assert patchkit(folder, surroundings, "check", "--manifest", "slime-0.3.1").code == 0
    ran = patchkit(folder, surroundings, "check", "--manifest", "unreasoned")
    found = {each["name"]: each["findings"] for each in ran.json["components"]}
    words = "launch_server_process", "_get_main_grad_attr"
    assert sorted(word for each in found["slime"] for word in words if word in each["what"]) == [
        "_get_main_grad_attr",
        "launch_server_process",
    ]


def test_our_patches_fit_their_pins_exactly(folder: Path, surroundings: dict[str, str]) -> None:
    ran = patchkit(folder, surroundings, "check", "--manifest", "qwen3-vl-npu")
    assert ran.code == 0, ran.out
    for component in ("slime", "sglang", "megatron-lm", "megatron-bridge", "mindspeed", "mbridge"):
        for patch in patches_of(ran.json, component).values():
            assert patch["outcome"]["status"] == "unchanged"
            assert patch["findings"] == [] or patch["name"].startswith("base-")


def test_the_dead_patch_is_found_out(folder: Path, surroundings: dict[str, str]) -> None:
    dead = variant(folder, "dead", (NPU_PATCHES, DEAD), (SLIME_PATCH, DEAD_SLIME_PATCH))
    ran = patchkit(folder, surroundings, "check", "--manifest", dead)
    assert ran.code == 1
    patch = patches_of(ran.json, "slime")["slime.patch"]
    assert patch["outcome"]["status"] == "conflicted"
    found = {each["name"]: each["findings"] for each in ran.json["components"]}
    assert {each["code"] for each in found["megatron-bridge"]} == {"contracts-unseen"}
    text = patchkit_text(folder, surroundings, "check", "--manifest", dead)
    assert "slime.patch" in text
    for clash in (c for f in patch["outcome"]["files"] for c in f["clashes"]):
        assert clash["path"] in text


MBRIDGE = """\
version: 1
components:
  mbridge:
    source: {{git: "https://github.com/ISEEKYAN/mbridge.git"}}
    pin: {pin}
    track: main
    patches: [{{series: patches/mbridge/series}}]
"""


@pytest.mark.parametrize(
    ("pin", "code", "status"),
    [
        ("0cd4ae23f2425da77a80cb3f517828452fa8e984", 0, "unchanged"),  # v0.15.1, as on the index
        ("db44c62a1f4065db13eff7db1ee3cfe3b83a631c", 0, "shifted"),
        ("2334188c836d656ffdd92f37f962bc3d88c96cca", 1, "conflicted"),
    ],
)
def test_what_sed_does_to_mbridge_is_over(
    folder: Path, surroundings: dict[str, str], pin: str, code: int, status: str
) -> None:
    """The Dockerfile's sed looks at lines 34 and 51, which only the release has."""
    (folder / "manifests/mbridge.yaml").write_text(MBRIDGE.format(pin=pin))
    ran = patchkit(folder, surroundings, "check", "--manifest", "mbridge")
    [patch] = patches_of(ran.json, "mbridge").values()
    assert (ran.code, patch["outcome"]["status"]) == (code, status)


def test_drift_names_who_made_the_sed_needless(folder: Path, surroundings: dict[str, str]) -> None:
    pin = "0cd4ae23f2425da77a80cb3f517828452fa8e984"
    (folder / "manifests/mbridge.yaml").write_text(MBRIDGE.format(pin=pin))
    ran = patchkit(folder, surroundings, "drift", "--manifest", "mbridge")
    [patch] = patches_of(ran.json, "mbridge").values()
    assert ran.code == 1
    assert patch["since"]["commit"].startswith("2334188c83")


def test_a_missing_base_patch_is_seen_by_the_blobs(
    folder: Path, surroundings: dict[str, str]
) -> None:
    text = (folder / "manifests/slime-npu-official.yaml").read_text()
    start = text.index("      - component: slime\n        path: docker/patch/v0.5.7/megatron.patch")
    base = text[start : text.index("      - git:", start)]
    ran = patchkit(
        folder, surroundings, "check", "--manifest", variant(folder, "no-base", (base, ""))
    )
    patch = patches_of(ran.json, "megatron-lm")["npu-megatron.patch"]
    assert patch["outcome"]["status"] == "shifted"
    others = {each["path"] for each in patch["origin"]["others"]}
    assert len(others) == 2, others


def patchkit_text(folder: Path, surroundings: dict[str, str], *argv: str) -> str:
    """What a person reads."""
    argv = (*argv, "--cache", str(folder / "cache"))
    return run_process(*argv, cwd=folder, environment=surroundings, timeout=300).out
