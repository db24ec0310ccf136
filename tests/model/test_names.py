from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from patchkit.errors import UsageError
from patchkit.model.names import (
    broken_name_rule,
    is_listed_name,
    is_patch_name,
    new_name,
    pick_patch,
    slug,
)
from tests.support.repos import Upstream, git_in


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
        "0004-Wait-for-the-end-of-the-container..patch",
        "0005-dots...in-a-name.patch",
        "fix~1.patch",
        "_private.patch",
    ],
)
def test_patch_names(name: str) -> None:
    assert is_patch_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".patch", "-a.patch", "a:b.patch", "a b.patch", "a/b.patch", "a.diff", "con.patch"),
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


@pytest.mark.parametrize(
    ("word", "name"),
    [
        *(("two.patch", "two.patch"), ("two", "two.patch"), ("3", "two-more.patch")),
        *(("on", "one.patch"), ("patches/demo/one.patch", "one.patch"), ("./two.p", "two.patch")),
    ],
)
def test_a_patch_is_meant_by_name_number_or_start(word: str, name: str) -> None:
    assert pick_patch(word, ["one.patch", "two.patch", "two-more.patch"]) == name


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("tw", "two.patch, two-more.patch"),
        ("tow", "did you mean two.patch?"),
        *((word, "the series has 1 one.patch, 2 two.patch, 3 two-more.patch") for word in "04"),
        ("patches/", "the series has 1 one.patch, 2 two.patch, 3 two-more.patch"),
    ],
)
def test_what_means_no_patch_is_answered_with_what_may(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"^{word}: ") as error:
        pick_patch(word, ["one.patch", "two.patch", "two-more.patch"])
    assert error.value.problems[0].hint == hint


@pytest.mark.parametrize("word", ["con", "NUL", "com1"])
def test_an_example_in_a_hint_is_a_name(word: str) -> None:
    assert is_patch_name(f"{slug(word)}.patch")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("con.patch", "Windows"),
        ("a/nul", "Windows"),
        ("a b.patch", "ASCII letters"),
        ("-a.patch", "the first a letter"),
        ("caf\u00e9.patch", "ASCII letters"),
        ("a.diff", ".patch"),
        ("a:b.patch", "without a colon"),
        (f"{'a' * 121}.patch", "at most 120 characters"),
    ],
)
def test_a_hint_states_the_rule_that_the_name_breaks(name: str, rule: str) -> None:
    assert rule in broken_name_rule(name)


@pytest.mark.slow
def test_whatever_git_format_patch_writes_is_a_name(tmp_path: Path) -> None:
    """Any subject, cut at any length: git writes letters, digits, dots, dashes, underscores."""
    upstream = Upstream.create(tmp_path / "repo")
    random = Random(1)
    alphabet = "ab..--__  ~+,@%()[]{}'\"!?/\\:;$&*<>|#\u00e9"
    for _ in range(60):
        subject = "".join(random.choices(alphabet, k=random.randrange(1, 90)))
        upstream.commit({"f": subject}, f"{subject} x")
    for most in ("64", "40", "24"):
        options = ("--always", f"--filename-max-length={most}", "-60", "-o", str(tmp_path / most))
        git_in(upstream.path, "format-patch", *options)
        names = [path.name for path in (tmp_path / most).iterdir()]
        assert len(names) == 60
        assert [name for name in names if not (is_patch_name(name) and is_listed_name(name))] == []
