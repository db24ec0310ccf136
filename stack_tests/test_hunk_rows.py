"""The rows about the published patches in the page of the stack: one per hunk, and its verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patchkit.manifest.load import load_manifest
from patchkit.model.mail import parse_patch
from stack_tests.conftest import ROOT
from stack_tests.test_shipped import local_patches
from tests.support.upstreams import NEEDS_UPSTREAMS

PAGE = ROOT / "docs/stacks/qwen3-vl-npu.md"
NAMES = ("slime", "sglang", "megatron", "megatron-bridge", "mindspeed")


def rows(name: str) -> list[tuple[str, str, str]]:
    """Number, place and verdict of the rows about one published patch."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition(f"### {name}.patch\n")
    table, _, _ = table.partition("\n### ")
    found = re.findall(r"^\| (\d+) \| (\S+) \| (.+) \|$", table, re.MULTILINE)
    return [(number, place, verdict) for number, place, verdict in found]


@pytest.mark.parametrize("name", NAMES)
class TestRows:
    def test_each_says_what_stands_for_the_hunk(self, name: str) -> None:
        assert rows(name)
        for _, _, verdict in rows(name):
            assert re.search(r"\bcovered by \[|\bnot needed\b|^missing: ", verdict), verdict

    def test_patches_named_are_those_of_the_stack(self, name: str) -> None:
        stack = load_manifest(ROOT / "manifests/qwen3-vl-npu.yaml")
        ours = {file for files in local_patches(stack).values() for file in files.values()}
        for _, _, verdict in rows(name):
            for target in re.findall(r"\]\(([^)]+)\)", verdict):
                assert (PAGE.parent / target).resolve() in ours, verdict


@pytest.mark.parametrize("name", NAMES)
class TestHunks:
    pytestmark = NEEDS_UPSTREAMS

    def test_every_hunk_has_its_row(self, published_slime: Path, name: str) -> None:
        file = published_slime / f"docker/npu_patch/{name}.patch"
        patch = parse_patch(file.read_bytes(), name=file.name)
        places = [
            f"{change.path}:{hunk.old_start}" for change in patch.changes for hunk in change.hunks
        ]
        expected = [(str(number), place) for number, place in enumerate(places, start=1)]
        assert [(number, place) for number, place, _ in rows(name)] == expected


def test_the_sums_are_right() -> None:
    text = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    [told] = re.findall(
        r"(\d+) are covered, (\d+) are not needed, (\d+) are missing, and of (\d+) parts", text
    )
    sums = dict.fromkeys(("covered", "not needed", "missing", "parts"), 0)
    for name in NAMES:
        for _, _, verdict in rows(name):
            kinds = [kind for kind in ("covered by [", "not needed", "missing") if kind in verdict]
            sums["parts" if len(kinds) > 1 else kinds[0].removesuffix(" by [")] += 1
    assert tuple(map(int, told)) == tuple(sums.values())
