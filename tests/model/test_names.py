from __future__ import annotations

import pytest

from patchkit.model.names import is_patch_name, new_name, slug


@pytest.mark.parametrize(
    "name",
    [
        "a.patch",
        "0001-Fix-rope.patch",
        # git format-patch cuts a long subject at 52 characters, wherever that is
        "0001-docs-minimax-m3-add-high-concurrency-throughput-tip-.patch",
        "0001-unify-and-bump-_WIN32_WINNT-definition-to-Windows-8..patch",
        "0002-Restore-index_.patch",
        "0003-Use-g++.patch",
    ],
)
def test_patch_names(name: str) -> None:
    assert is_patch_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".patch", "-a.patch", "a..b.patch", "a b.patch", "a/b.patch", "a.diff", "con.patch"),
        *("caf\u00e9.patch", "a\n.patch", f"{'a' * 121}.patch"),
    ],
)
def test_no_patch_names(name: str) -> None:
    assert not is_patch_name(name)


def test_a_new_name_is_one() -> None:
    assert slug("[PATCH v2] Fix: the rope's length, in all the places that anybody looks at") == (
        "fix-the-rope-s-length-in-all-the-places-that-anybody"
    )
    assert slug("a" * 51 + " word") == "a" * 51
    assert new_name("Fix it", {"fix-it.patch", "fix-it-2.patch"}) == "fix-it-3.patch"
    assert is_patch_name(new_name("???", set()))
