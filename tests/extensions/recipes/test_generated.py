"""Generated patches in refresh and check: made on the tree at their place, for any base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.recipes.kitchen import DROP, made_patch, recipe_text
from tests.support.commands import Ran
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

CODE = (
    "# one\n# two\n# three\nimport os\n\n\n"
    "@fuser\ndef f(x):\n    return x\n\n\n@fuser\ndef g(x):\n    return x + 1\n"
)
BASE: Files = {"src/a.py": CODE, "src/b.py": "@fuser\ndef h(): pass\n", "doc.md": "@fuser\n"}
BODY = "Because it has to be.\n\nUpstream-Status: Pending"
FIRST = make_patch(
    BASE, {"src/a.py": CODE.replace("import os", "import os\nimport sys")}, subject="S", body=BODY
)
RECIPE = "patches/demo/drop-fuser.recipe.yml"
PATCH = "patches/demo/drop-fuser.patch"


class Kitchen:
    """A project with first.patch and drop-fuser.patch, the second from a recipe."""

    def __init__(self, project: Project, upstream: Upstream) -> None:
        self.project, self.upstream = project, upstream
        self.pin(upstream.commit(BASE, "base"))
        self.recipe({**DROP, "expect": 3})
        self.run("refresh").ok()

    def pin(self, commit: str) -> None:
        known = self.project.files("patches")
        names = {"first.patch": known.get("patches/demo/first.patch", FIRST)}
        names["drop-fuser.patch"] = known.get(PATCH, b"")
        self.project.component("demo", self.upstream, commit, names)
        if PATCH not in known:
            (self.project.root / PATCH).unlink()

    def recipe(self, *rules: dict[str, Any]) -> None:
        self.project.write({RECIPE: recipe_text(*rules)})

    def run(self, *argv: str) -> Ran:
        return self.project.run(*argv)

    def checked(self) -> Ran:
        """`check`, component after component."""
        return self.run("check", "--jobs", "1")

    def applied(self, path: str = "src/a.py") -> Path:
        """A file of the checkout, once the stack is applied."""
        self.project.prepare("apply").ok()
        return self.project.checkout("demo") / path

    @property
    def patch(self) -> bytes:
        return (self.project.root / PATCH).read_bytes()

    def codes(self) -> list[str]:
        (component,) = self.run("check", "--json").json["components"]
        found = [f for each in component["patches"] for f in each["findings"]]
        return [each["code"] for each in found if each["code"].startswith("recipe")]


@pytest.fixture
def kitchen(project: Project, upstream: Upstream) -> Kitchen:
    return Kitchen(project, upstream)


def test_the_first_refresh_makes_an_ordinary_patch(kitchen: Kitchen) -> None:
    head, _, diff = kitchen.patch.partition(b"diff --git")
    assert head.decode() == (
        "From: Ursula User <user@example.com>\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n"
        "Subject: Run uncompiled\n\nBecause it has to be.\n\n"
        "Upstream-Status: Pending\nRecipe: drop-fuser.recipe.yml\n\n"
    )
    assert diff.count(b"\n-@fuser\n") == 3
    kitchen.run("check", "--strict").ok()
    before = kitchen.patch
    text = kitchen.applied().read_text()
    assert ("@fuser" in text, "import sys" in text) == (False, True)  # the patch before it is there
    kitchen.run("refresh").ok().shows("unchanged")
    assert kitchen.patch == before


def test_a_first_patch_is_laid_out_for_its_component(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit(BASE, "base")
    project.component("demo", upstream, pin, {"drop-fuser.patch": b""}, strip=2)
    patch = made_patch(project, recipe_text({**DROP, "expect": 3}))
    assert b"diff --git a/demo/src/a.py b/demo/src/a.py" in patch
    project.run("check", "--strict").ok()


def test_before_it_is_made_nothing_is_applied_and_it_has_an_author(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    kitchen.run("refresh").ok()  # it is made already
    (kitchen.project.root / PATCH).unlink()
    with kitchen.project.untouched():
        kitchen.run("refresh").ends(5, "git has no author identity")
    said = ("is not made yet from the recipe beside it", "patchkit refresh  makes it")
    kitchen.run("apply").ends(4, *said)


@pytest.mark.slow
def test_a_moved_pin(kitchen: Kitchen, golden: Golden) -> None:
    file = kitchen.applied()
    more = CODE.replace("def g(x):", "def new(x):") + "\n\n@fuser\ndef newest(): pass\n"
    kitchen.pin(kitchen.upstream.commit({"src/a.py": "# licence\n" + more}, "moves on"))
    kitchen.recipe({**DROP, "expect": 4})
    kitchen.run("check").ends(1)
    golden("refresh-regenerated", kitchen.run("refresh"))
    assert kitchen.patch.count(b"\n-@fuser\n") == 4
    kitchen.run("check", "--strict").ok()
    kitchen.applied()
    assert "@fuser" not in file.read_text()
    kitchen.run("refresh").ok().shows("unchanged")


def test_a_pin_that_the_patch_fits_but_misses_a_site(kitchen: Kitchen, golden: Golden) -> None:
    kitchen.pin(kitchen.upstream.commit({"src/new.py": "@fuser\ndef missed(): pass\n"}, "one more"))
    golden("check-recipe-stale", kitchen.checked())
    # written, and the count is to be looked at
    kitchen.run("refresh").ends(1, "matches 4 sites, not 3")
    assert b"src/new.py" in kitchen.patch
    assert kitchen.codes() == ["recipe-count"]
    kitchen.recipe({**DROP, "expect": 4})
    kitchen.run("check", "--strict").ok()


def test_a_changed_recipe_regenerates_and_keeps_the_header(kitchen: Kitchen) -> None:
    own = b"From: Me <me@x>\nSubject: Mine\n\nMy reason.\n\nRecipe: drop-fuser.recipe.yml\n\n"
    kitchen.project.write({PATCH: own + kitchen.patch[kitchen.patch.index(b"diff --git") :]})
    file = kitchen.applied("src/b.py")
    kitchen.recipe({**DROP, "files": ["src/a.py"]})
    assert kitchen.codes() == ["recipe-stale"]
    kitchen.run("refresh", "--dry-run").ok().shows("would")
    assert kitchen.codes() == ["recipe-stale"]
    kitchen.run("refresh").ok().shows("regenerated")
    assert kitchen.patch.startswith(own + b"diff --git a/src/a.py")
    assert b"src/b.py" not in kitchen.patch
    assert kitchen.codes() == []
    kitchen.applied()
    assert "@fuser" in file.read_text()


def test_a_dead_rule(kitchen: Kitchen) -> None:
    gone = {"id": "gone", "rule": {"pattern": "vanished($A)"}, "fix": "found($A)"}
    kitchen.recipe({**DROP, "expect": 3}, gone)
    ran = kitchen.checked().ends(1)
    assert kitchen.codes() == ["recipe-dead-rule"]
    assert "gone: matches nothing" in ran.out + ran.err


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"id": "x", "rule": {"pattern": "x + 1"}, "fix": "(x + 1)"}, "recipe-not-idempotent"),
        ({"id": "x", "rule": {"pattern": "x + 1"}, "fix": "x + "}, "recipe-does-not-parse"),
    ],
)
def test_what_must_not_be_written_is_not(kitchen: Kitchen, rule: dict[str, Any], code: str) -> None:
    before = kitchen.project.files("")
    kitchen.recipe({**DROP, "expect": 3}, rule)
    after = kitchen.project.files("")
    assert kitchen.codes() == [code]
    kitchen.run("refresh").ends(3, "src/a.py")
    left = kitchen.project.files("")
    left.pop("workspace/.patchkit/demo.lock.json.lock")  # whoever writes holds it
    assert {**before, RECIPE: after[RECIPE]} == left


def test_a_recipe_that_changes_nothing_any_more(kitchen: Kitchen) -> None:
    plain = {path: str(text).replace("@fuser\n", "") for path, text in BASE.items()}
    kitchen.pin(kitchen.upstream.commit(plain, "upstream dropped it"))
    before = kitchen.patch
    kitchen.run("refresh").ends(3, "its recipe changes nothing here", "drop-fuser: matches nothing")
    assert kitchen.patch == before


def test_an_edit_in_a_generated_patch_is_refused(kitchen: Kitchen) -> None:
    path = kitchen.applied()
    path.write_text(path.read_text().replace("def f(x)", "def f(y)"))
    before = kitchen.patch
    said = "is made from a recipe: edits in it would be lost"
    kitchen.run("refresh", "--patch", "drop-fuser").ends(1, said)
    assert kitchen.patch == before
    kitchen.run("refresh", "--patch", "first").ok()
    assert b"+def f(y)" in kitchen.project.files()["patches/demo/first.patch"]
    kitchen.run("check").ok()


def test_an_edit_before_it_that_makes_a_new_site(kitchen: Kitchen) -> None:
    path = kitchen.applied()
    path.write_text(path.read_text().replace("import sys\n", "import sys\n@fuser\ndef i(): ...\n"))
    kitchen.run("refresh", "--patch", "first").ok()
    assert kitchen.codes() == ["recipe-stale", "recipe-count"]
    kitchen.recipe({**DROP, "expect": 4})
    kitchen.run("refresh").ok()
    kitchen.run("check").ok()
    assert "@fuser" not in kitchen.applied().read_text()


def test_names_and_files_must_agree(kitchen: Kitchen) -> None:
    kitchen.project.write({PATCH: kitchen.patch.replace(b"Recipe: drop-", b"Recipe: other-")})
    said = "names other-fuser.recipe.yml as its recipe, not drop-fuser.recipe.yml"
    kitchen.checked().shows(said)
    kitchen.project.write({PATCH: kitchen.patch.replace(b"Recipe: other-fuser.recipe.yml\n", b"")})
    assert kitchen.codes() == ["recipe-unnamed"]


def test_a_broken_recipe_is_told_with_its_line(kitchen: Kitchen) -> None:
    kitchen.recipe({"id": "x", "rule": {"pattren": "x"}})
    kitchen.checked().ends(1).shows(f"{RECIPE}:17\n    rules[1].rule.pattren is an unknown key")
    kitchen.run("refresh").ends(4, "pattren")


def test_a_recipe_of_no_patch_is_told(kitchen: Kitchen) -> None:
    orphan = RECIPE.replace("drop-fuser", "lost")
    kitchen.project.write({orphan: recipe_text(DROP)})
    kitchen.checked().shows(f"{orphan}\n    is not listed in the series beside it")
    series = kitchen.project.root / "patches/demo/series"
    series.write_text(f"{series.read_text()}# lost.recipe.yml  is for later\n")
    assert "lost" not in kitchen.checked().ok().out


@pytest.mark.slow
def test_a_patch_behind_a_generated_one(kitchen: Kitchen) -> None:
    """The recipe runs in its place: the patch behind it is made for what it leaves."""
    path = kitchen.applied()
    path.write_text(path.read_text().replace("return x + 1", "return x + 2"))
    kitchen.run("refresh", "--new", "behind", "--message", f"Count\n\n{BODY}").ok()
    series = kitchen.project.root / "patches/demo/series"
    assert series.read_text().split() == ["first.patch", "drop-fuser.patch", "behind.patch"]
    old = str(kitchen.upstream.resolve("refs/heads/main"))
    moved = kitchen.upstream.commit({"src/a.py": "# licence\n@fuser\ndef e(): ...\n" + CODE}, "m")
    manifest = kitchen.project.root / "manifests/demo.yaml"
    manifest.write_text(manifest.read_text().replace(old, moved))
    kitchen.recipe({**DROP, "expect": 4})
    kitchen.run("refresh").ok()
    assert kitchen.patch.count(b"\n-@fuser\n") == 4
    kitchen.run("check", "--strict").ok()
    kitchen.applied()
    text = path.read_text()
    assert ("@fuser" in text, "return x + 2" in text) == (False, True)
