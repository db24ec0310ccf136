"""Generated patches in refresh and check: made on the tree at their place, for any base."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.extensions.recipes.kitchen import DROP, recipe_text
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

    def run(self, *argv: str) -> Any:
        return self.project.run(*argv)

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


def test_the_first_refresh_makes_the_patch(kitchen: Kitchen) -> None:
    head, _, diff = kitchen.patch.partition(b"diff --git")
    assert head.decode() == (
        "From: Ursula User <user@example.com>\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n"
        "Subject: Run uncompiled\n\nBecause it has to be.\n\n"
        "Upstream-Status: Pending\nRecipe: drop-fuser.recipe.yml\n\n"
    )
    assert diff.count(b"\n-@fuser\n") == 3
    assert kitchen.run("check", "--strict").ok()
    before = kitchen.patch
    kitchen.project.prepare("apply").ok()
    assert "unchanged" in kitchen.run("refresh").ok().out
    assert kitchen.patch == before


def test_a_first_patch_is_laid_out_for_its_component(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit(BASE, "base")
    project.component("demo", upstream, pin, {"drop-fuser.patch": b""}, strip=2)
    (project.root / PATCH).unlink()
    project.write({RECIPE: recipe_text({**DROP, "expect": 3})})
    project.run("refresh").ok()
    assert b"diff --git a/demo/src/a.py b/demo/src/a.py" in (project.root / PATCH).read_bytes()
    project.run("check", "--strict").ok()


def test_a_patch_is_not_made_without_an_author(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert kitchen.run("refresh").ok()  # it is made already
    (kitchen.project.root / PATCH).unlink()
    before = kitchen.project.files("")
    kitchen.run("refresh").ends(5, "git has no author identity")
    assert kitchen.project.files("") == before


def test_before_it_is_made_nothing_is_applied(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, upstream.commit(BASE, "base"), {"drop-fuser.patch": b""})
    (project.root / PATCH).unlink()
    project.write({RECIPE: recipe_text(DROP)})
    project.run("apply").ends(
        4, "is not made yet from the recipe beside it", "patchkit refresh  makes it"
    )


def test_quilt_and_git_see_an_ordinary_patch(kitchen: Kitchen) -> None:
    kitchen.project.prepare("apply").ok()
    text = (kitchen.project.checkout("demo") / "src" / "a.py").read_text()
    assert "@fuser" not in text
    assert "import sys" in text  # the patch before it is there


@pytest.mark.slow
def test_a_moved_pin(kitchen: Kitchen, golden: Golden) -> None:
    kitchen.project.prepare("apply").ok()
    more = CODE.replace("def g(x):", "def new(x):") + "\n\n@fuser\ndef newest(): pass\n"
    kitchen.pin(kitchen.upstream.commit({"src/a.py": "# licence\n" + more}, "moves on"))
    kitchen.recipe({**DROP, "expect": 4})
    assert kitchen.run("check").code == 1
    golden("refresh-regenerated", kitchen.run("refresh"))
    assert kitchen.patch.count(b"\n-@fuser\n") == 4
    assert kitchen.run("check", "--strict").ok()
    kitchen.project.prepare("apply").ok()
    assert "@fuser" not in (kitchen.project.checkout("demo") / "src" / "a.py").read_text()
    assert "unchanged" in kitchen.run("refresh").ok().out


def test_a_pin_that_the_patch_fits_but_misses_a_site(kitchen: Kitchen, golden: Golden) -> None:
    new = kitchen.upstream.commit({"src/new.py": "@fuser\ndef missed(): pass\n"}, "one more")
    kitchen.pin(new)
    golden("check-recipe-stale", kitchen.run("check", "--jobs", "1"))
    ran = kitchen.run("refresh")
    assert ran.code == 1  # written, and the count is to be looked at
    assert "matches 4 sites, not 3" in ran.err
    assert b"src/new.py" in kitchen.patch
    assert kitchen.codes() == ["recipe-count"]
    kitchen.recipe({**DROP, "expect": 4})
    assert kitchen.run("check", "--strict").ok()


def test_a_changed_recipe_regenerates(kitchen: Kitchen) -> None:
    kitchen.project.prepare("apply").ok()
    kitchen.recipe({**DROP, "files": ["src/a.py"]})
    assert kitchen.codes() == ["recipe-stale"]
    assert "would" in kitchen.run("refresh", "--dry-run").ok().out
    assert kitchen.codes() == ["recipe-stale"]
    kitchen.run("refresh").ok().shows("regenerated")
    assert b"src/b.py" not in kitchen.patch
    assert kitchen.codes() == []
    kitchen.project.prepare("apply").ok()
    assert "@fuser" in (kitchen.project.checkout("demo") / "src" / "b.py").read_text()


def test_the_header_is_kept(kitchen: Kitchen) -> None:
    own = b"From: Me <me@x>\nSubject: Mine\n\nMy reason.\n\nRecipe: drop-fuser.recipe.yml\n\n"
    diff = kitchen.patch[kitchen.patch.index(b"diff --git") :]
    kitchen.project.write({PATCH: own + diff})
    kitchen.run("refresh")
    kitchen.recipe({**DROP, "files": ["src/b.py"]})
    kitchen.run("refresh").ok()
    assert kitchen.patch.startswith(own + b"diff --git a/src/b.py")
    assert b"src/a.py" not in kitchen.patch


def test_a_dead_rule(kitchen: Kitchen) -> None:
    gone = {"id": "gone", "rule": {"pattern": "vanished($A)"}, "fix": "found($A)"}
    kitchen.recipe({**DROP, "expect": 3}, gone)
    ran = kitchen.run("check", "--jobs", "1")
    assert (ran.code, kitchen.codes()) == (1, ["recipe-dead-rule"])
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
    kitchen.project.prepare("apply").ok()
    path = kitchen.project.checkout("demo") / "src" / "a.py"
    path.write_text(path.read_text().replace("def f(x)", "def f(y)"))
    before = kitchen.project.files("")
    kitchen.run("refresh", "--patch", "drop-fuser").ends(
        1, "is made from a recipe: edits in it would be lost"
    )
    assert kitchen.patch == before[PATCH]
    kitchen.run("refresh", "--patch", "first").ok()
    assert b"+def f(y)" in (kitchen.project.root / "patches/demo/first.patch").read_bytes()
    assert kitchen.run("check").ok()


def test_an_edit_before_it_that_makes_a_new_site(kitchen: Kitchen) -> None:
    kitchen.project.prepare("apply").ok()
    path = kitchen.project.checkout("demo") / "src" / "a.py"
    path.write_text(path.read_text().replace("import sys\n", "import sys\n@fuser\ndef i(): ...\n"))
    kitchen.run("refresh", "--patch", "first").ok()
    assert kitchen.codes() == ["recipe-stale", "recipe-count"]
    kitchen.recipe({**DROP, "expect": 4})
    kitchen.run("refresh").ok()
    assert kitchen.run("check").ok()
    kitchen.project.prepare("apply").ok()
    assert "@fuser" not in path.read_text()


def test_names_and_files_must_agree(kitchen: Kitchen) -> None:
    kitchen.project.write({PATCH: kitchen.patch.replace(b"Recipe: drop-", b"Recipe: other-")})
    kitchen.run("check", "--jobs", "1").shows(
        "names other-fuser.recipe.yml as its recipe, not drop-fuser.recipe.yml"
    )
    kitchen.project.write({PATCH: kitchen.patch.replace(b"Recipe: other-fuser.recipe.yml\n", b"")})
    assert kitchen.codes() == ["recipe-unnamed"]


def test_a_broken_recipe_is_told_with_its_line(kitchen: Kitchen) -> None:
    kitchen.project.write({RECIPE: recipe_text({"id": "x", "rule": {"pattren": "x"}})})
    kitchen.run("check", "--jobs", "1").ends(1).shows(
        f"{RECIPE}:17\n    rules[1].rule.pattren is an unknown key"
    )
    kitchen.run("refresh").ends(4, "pattren")


def test_a_recipe_of_no_patch_is_told(kitchen: Kitchen) -> None:
    orphan = RECIPE.replace("drop-fuser", "lost")
    kitchen.project.write({orphan: recipe_text(DROP)})
    kitchen.run("check", "--jobs", "1").shows(
        f"{orphan}\n    is not listed in the series beside it"
    )
    series = kitchen.project.root / "patches/demo/series"
    series.write_text(f"{series.read_text()}# lost.recipe.yml  is for later\n")
    assert "lost" not in kitchen.run("check", "--jobs", "1").ok().out


@pytest.mark.slow
def test_a_patch_behind_a_generated_one(kitchen: Kitchen) -> None:
    """The recipe runs in its place: the patch behind it is made for what it leaves."""
    kitchen.project.prepare("apply").ok()
    path = kitchen.project.checkout("demo") / "src" / "a.py"
    path.write_text(path.read_text().replace("return x + 1", "return x + 2"))
    kitchen.run("refresh", "--new", "behind", "--message", f"Count\n\n{BODY}").ok()
    series = kitchen.project.root / "patches/demo/series"
    assert series.read_text().split() == ["first.patch", "drop-fuser.patch", "behind.patch"]
    text = (kitchen.project.root / "manifests/demo.yaml").read_text()
    moved = kitchen.upstream.commit({"src/a.py": "# licence\n@fuser\ndef e(): ...\n" + CODE}, "m")
    old = re.search("[0-9a-f]{40}", text)
    assert old is not None
    kitchen.project.write({"manifests/demo.yaml": text.replace(old[0], moved)})
    kitchen.recipe({**DROP, "expect": 4})
    kitchen.run("refresh").ok()
    assert kitchen.patch.count(b"\n-@fuser\n") == 4
    assert kitchen.run("check", "--strict").ok()
    kitchen.project.prepare("apply").ok()
    assert "@fuser" not in path.read_text()
    assert "return x + 2" in path.read_text()
