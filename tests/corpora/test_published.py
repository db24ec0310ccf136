"""Every patch set that slime published, at its recorded pin: git's verdict, git's tree.

PATCHKIT_TEST_SLIME, PATCHKIT_TEST_SGLANG, PATCHKIT_TEST_MEGATRON and PATCHKIT_TEST_MINDSPEED name
the clones; several with ":" between them. Takes a minute or two.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.corpora.applying import judge_published
from bench.corpora.published import Clone

_CLONES = {
    name: [Clone(path) for path in os.environ.get(f"PATCHKIT_TEST_{name.upper()}", "").split(":")]
    for name in ("slime", "sglang", "megatron", "mindspeed")
}

pytestmark = [
    pytest.mark.skipif(
        not all(clones[0].path for clones in _CLONES.values()),
        reason="PATCHKIT_TEST_SLIME, _SGLANG, _MEGATRON and _MINDSPEED name no clones",
    ),
    pytest.mark.slow,
]

#: Published broken, by slime's commit (measured before a line of ours was written).
BROKEN = {"ae5cc5742", "170e68614", "aeb0a29ef", "149c348d4", "c74877886", "624b824a8"}


def test_every_published_set(tmp_path: Path) -> None:
    upstreams = {name: clones[0] for name, clones in _CLONES.items()}
    every = [clone for clones in _CLONES.values() for clone in clones]
    found = judge_published(upstreams["slime"], upstreams, every, tmp_path, tell=str)
    assert found.differ == []
    assert found.total() >= 160
    assert {each.commit for each, _ in found.refused} >= BROKEN
