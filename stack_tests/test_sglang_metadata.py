"""Our metadata for SGLang asks for exactly what upstream's other metadata file asks for on NPUs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stack_tests.conftest import Stack

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or later reads TOML")

pytestmark = pytest.mark.index


def project(text: str) -> Any:
    return tomllib.loads(text)["project"]


def asked(text: str, *extras: str) -> set[str]:
    """What installing with these extras asks for, extras of the project itself followed."""
    metadata = project(text)
    wanted, seen, found = list(extras), set(), set(metadata["dependencies"])
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            found |= set(metadata["optional-dependencies"][name])
            wanted += re.findall(r"^sglang\[(.+)\]$", "\n".join(found), re.MULTILINE)
    return {each for each in found if not each.startswith("sglang[")}


def test_as_the_documents_do_by_hand_in_0_5_8(sglang_stack: Stack) -> None:
    other = sglang_stack.before("sglang", "pyproject_other.toml")
    ours = sglang_stack.after("sglang", "pyproject.toml")
    assert asked(ours, "srt_npu") == asked(other, "srt_npu")


def test_as_the_documents_do_by_hand_in_0_5_9(index_stack: Stack) -> None:
    other = index_stack.before("sglang", "pyproject_npu.toml")
    ours = index_stack.after("sglang", "pyproject.toml")
    assert asked(ours, "srt_npu") == asked(other, "srt_npu")


@pytest.mark.upstream
def test_as_the_documents_do_by_hand_in_0_5_15(next_stack: Stack) -> None:
    other = next_stack.before("sglang", "python/pyproject_npu.toml")
    ours = next_stack.after("sglang", "python/pyproject.toml")
    assert asked(ours, "srt_npu") == asked(other, "srt_npu")
    built = tomllib.loads(ours)
    assert built["build-system"] == tomllib.loads(other)["build-system"]
    assert "setuptools-rust" not in built["tool"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_built_is_the_same(sglang_stack: Stack, when: str) -> None:
    text = getattr(sglang_stack, when)("sglang", "pyproject.toml")
    cuda = {"torch==2.9.1", "sgl-kernel==0.3.21", "cuda-python==12.9"}
    assert bool(cuda & asked(text)) == (when == "before")
    assert project(text)["name"] == "sglang"
