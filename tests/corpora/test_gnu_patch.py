"""GNU patch's own scripts, from a clone that PATCHKIT_TEST_GNU_PATCH names: verdicts as git's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bench.corpora.judging import BOTH, WE, as_git
from bench.corpora.suites import patch_scripts

CLONE = os.environ.get("PATCHKIT_TEST_GNU_PATCH", "")

pytestmark = [
    pytest.mark.skipif(not CLONE, reason="PATCHKIT_TEST_GNU_PATCH names no clone of GNU patch"),
    pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed"),
    pytest.mark.slow,
]

#: What git takes and GNU patch does not without fuzz: shorter context at an end, binary payloads.
KNOWN = {"asymmetric-hunks", "git-binary-diff"}


def test_every_script(tmp_path: Path) -> None:
    found = patch_scripts(CLONE, tmp_path, tell=str)
    assert found.sum(BOTH) >= 40
    assert [case.script for case, strip, _, _ in found.differ if not as_git(case, strip)] == []
    assert {case.script for case, _, outcome, _ in found.differ if outcome == WE} <= KNOWN
