"""The law of forecasts: drift at the tip, plan at the tip and a bump to it say the same.

Of each patch and each of its files: what becomes of it, whether a person should look, how sure it
is, for which patch it waits and which commit made the same change.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drift.lines import numbered
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.support.laws import share
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

STAYS = ("unchanged", "shifted", "empty")
FUSED = "@fuser\ndef f(x):\n    return x\n"


def code(name: str, count: int = 5) -> str:
    """Functions whose lines are all different."""
    body = "def {0}_{1}(size):\n    check_{0}({1})\n    return run_{0}(size, {1})\n\n\n"
    return "".join(body.format(name, number) for number in range(count))


FILES = {f"{path}.py": code(path[-1]) for path in ("a", "b", "lib/c", "lib/d")}


def series_of(random: Random, at: dict[str, int]) -> dict[str, bytes]:
    """Patches that build on each other: the second and third change what the first one makes.

    `at` is the function of each file that the first one changes.
    """

    def ours(files: dict[str, str], path: str, number: int, what: str) -> dict[str, str]:
        name = path[-4]
        line = f"    check_{name}({number})\n"
        return {**files, path: files[path].replace(line, f"{line}    {what}_{name}({number})\n")}

    one = ours(ours(FILES, "a.py", at["a.py"], "one"), "lib/c.py", at["lib/c.py"], "one")
    two = ours(one, "lib/c.py", (at["lib/c.py"] + random.choice((0, 1, 2))) % 5, "two")
    three = ours(ours(two, "b.py", at["b.py"], "three"), "lib/c.py", at["lib/c.py"], "three")
    four = {**three, "lib/new.py": "def fresh():\n    pass\n"}
    trees = [FILES, one, two, three, four]
    return {
        f"{number}.patch": make_patch(old, new, subject=f"Patch {number}")
        for number, (old, new) in enumerate(pairwise(trees), 1)
    }


class Landing:
    """Lands changes of every kind on an upstream's main branch."""

    def __init__(self, upstream: Upstream, random: Random, at: dict[str, int]) -> None:
        self.upstream, self.random, self.at = upstream, random, at
        self.now: dict[str, str] = dict(FILES)
        self.before: list[dict[str, str]] = []
        self.pin = upstream.commit({**self.now, "src/f.py": FUSED})

    def any(self) -> None:
        deeds = (self.edit, self.edit, self.rename, self.folder, self.delete)
        more = (self.move, self.revert, self.merge, self.absorb, self.edit)
        self.random.choice((*deeds, *more))()

    def land(self, new: dict[str, str], subject: str) -> None:
        changed = {p: new.get(p) for p in {*self.now, *new} if self.now.get(p) != new.get(p)}
        if changed and new:
            self.before.append(self.now)
            self.now = new
            self.upstream.commit(dict(sorted(changed.items())), subject)

    def edited(self, path: str) -> dict[str, str]:
        lines = self.now[path].splitlines(keepends=True) or ["\n"]
        at = self.random.randrange(len(lines))
        if path in self.at and self.random.random() < 0.4:  # where patches are
            at = min(5 * self.at[path] + self.random.randrange(3), len(lines) - 1)
        fresh = f"    theirs_{self.random.randrange(999)}()\n"
        lines[at : at + self.random.randrange(2)] = [fresh]
        return {**self.now, path: "".join(lines)}

    def path(self) -> str:
        return self.random.choice(sorted(self.now))

    def edit(self) -> None:
        self.land(self.edited(self.path()), "Edit")

    def renamed(self, old: str, new: str) -> dict[str, str]:
        return {new if path == old else path: text for path, text in self.now.items()}

    def rename(self) -> None:
        old = self.path()
        self.land(self.renamed(old, f"moved/{self.random.randrange(99)}_{old[-4:]}"), "Rename")

    def folder(self) -> None:
        new = {p.replace("lib/", "core/"): text for p, text in self.now.items()}
        self.land(new, "Rename the folder")

    def delete(self) -> None:
        gone = self.path()
        self.land({p: text for p, text in self.now.items() if p != gone}, "Delete")

    def move(self) -> None:
        """A function goes to another file."""
        old, new = self.path(), self.path()
        start, mark, rest = self.now[old].partition("\n\n\n")
        if old != new and mark:
            self.land({**self.now, old: rest, new: self.now[new] + start + mark}, "Move")

    def revert(self) -> None:
        if self.before:
            self.land(self.random.choice(self.before), "Revert")

    def absorb(self) -> None:
        """What the first patch does to a file, by upstream itself."""
        path = self.random.choice(("a.py", "lib/c.py"))
        if path in self.now:
            name, number = path[-4], self.at[path]
            line = f"    check_{name}({number})\n"
            text = self.now[path].replace(line, f"{line}    one_{name}({number})\n")
            self.land({**self.now, path: text}, "Take it")

    def merge(self) -> None:
        path, tip = self.path(), self.upstream.resolve("main") or ""
        new = self.edited(path)
        side = self.upstream.commit({path: new[path]}, "Aside", branch="side", parents=(tip,))
        self.upstream.commit({path: new[path]}, "Merge branch side", parents=(tip, side))
        self.before.append(self.now)
        self.now = new


def told(patch: dict[str, Any]) -> tuple[object, ...]:
    files = sorted(
        (
            each["path"],
            each["status"],
            each["review"],
            0.0 if each["status"] in ("conflicted", "waiting") else each["confidence"],
            tuple(each["waits_for"]),
            each["absorbed_by"],
        )
        for each in patch["files"]
    )
    return patch["status"], files


def three_answers(project: Project) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What drift, plan and a dry bump say of each patch; None for one that plan leaves out."""
    (drifted,) = project.run("drift", "--json").json["components"]
    (planned,) = project.run("plan", "--json").json["components"]
    ran = project.run("bump", "demo", "--to", "main", "--dry-run", "--json")
    (bumped,) = ran.json["components"]
    drift = {each["name"]: told(each["forecast"]) for each in drifted["patches"]}
    assert [each["forecast"]["status"] for each in drifted["patches"]] == [
        each["status"] for each in drifted["patches"]
    ]
    reach = planned["reaches"][-1]
    assert reach["behind"] == 0
    plan = {each["name"]: told(each) for each in reach["patches"]}
    bump = {each["name"]: told(each) for each in bumped["patches"]}
    assert drifted["exit_code"] == int(any(map(is_finding, drift.values())))
    return drift, plan, bump


def is_finding(answer: tuple[Any, ...]) -> bool:
    status, files = answer
    return status not in (*STAYS, "regenerated") or any(review for _, _, review, *_ in files)


@given(seed=st.integers(0, 100_000))
@settings(max_examples=share(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_three_commands_have_one_answer(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    root = tmp_path / f"project-{seed}-{random.random()}"
    root.mkdir()
    upstream, project = Upstream.create(root / "up.git"), Project(root)
    at = {path: random.randrange(5) for path in FILES}
    landing = Landing(upstream, random, at)
    patches = series_of(random, at)
    if random.random() < 0.3:
        patches["5.patch"] = b""
    project.component("demo", upstream, landing.pin, patches, track="main")
    if "5.patch" in patches:
        (root / "patches/demo/5.patch").unlink()
        recipe = recipe_text({**DROP, "expect": ">=1"})
        project.write({"patches/demo/5.recipe.yml": recipe})
        project.run("refresh").ok()
        if random.random() < 0.7:
            upstream.commit({"src/f.py": FUSED.replace("f(x)", "g(x, y)")}, "Rename it")
    for _ in range(random.randrange(3, 9)):
        landing.any()
    upstream.commit({"end": "x\n"}, "The end")

    drift, plan, bump = three_answers(project)

    assert drift == bump
    assert drift.keys() >= plan.keys()
    for name, answer in drift.items():
        if name in plan:
            assert plan[name] == answer
        else:
            assert answer[0] in STAYS
            assert not is_finding(answer)


def test_a_file_that_upstream_renames(project: Project, upstream: Upstream) -> None:
    """Once: drift in conflict, plan merged for nobody to look at, bump carried for review."""
    project.patched(
        upstream,
        {"m1.py": numbered(30)},
        {"m1.py": numbered(30, l6="ours")},
        patch="ours.patch",
        track="main",
    )
    moved = upstream.commit({"m1.py": None, "lib/m1.py": numbered(30, l20="theirs")}, "Move")

    drift, plan, bump = three_answers(project)

    assert drift == plan == bump
    status, files = drift["ours.patch"]
    assert (status, files[0][1]) == ("merged", "merged")
    (component,) = project.run("drift", "--json").json["components"]
    assert component["patches"][0]["since"]["commit"] == moved


def test_the_commit_that_absorbed_a_patch_is_named_by_all_three(
    project: Project, upstream: Upstream
) -> None:
    text = "a line that nobody else has"
    project.patched(
        upstream,
        {"a.py": numbered(30)},
        {"a.py": numbered(30, l6=text)},
        patch="ours.patch",
        track="main",
    )
    took = upstream.commit({"a.py": numbered(30, l6=text)}, "Take it")
    upstream.commit({"a.py": numbered(30, l6=text, l20="more")}, "And on")

    drift, plan, bump = three_answers(project)

    assert drift == plan == bump
    (component,) = project.run("drift", "--json").json["components"]
    assert component["patches"][0]["absorbed_by"]["commit"] == took
    named = f"{took[:10]} Take it"
    assert drift["ours.patch"][1][0][5] == named
    project.run("drift").shows(f"by {took[:10]} of ")
    project.run("plan").shows(named)
    project.run("bump", "demo", "--to", "main", "--dry-run").shows(named)


def test_what_only_lines_say_of_a_removal_all_three_say_with_a_perhaps(
    project: Project, upstream: Upstream
) -> None:
    """What the patch removes stood there and is gone, by a commit that put something else there."""
    before = numbered(30, l6="a line that nobody else has")
    files = {"a.py": before}, {"a.py": before.replace("a line that nobody else has\n", "")}
    project.patched(upstream, *files, patch="ours.patch", track="main")
    took = upstream.commit({"a.py": numbered(30, l6="another one in its place")}, "Say it anew")

    drift, plan, bump = three_answers(project)

    assert drift == plan == bump
    named = f"{took[:10]} Say it anew"
    told = project.run("drift")
    told.shows("perhaps upstream has it", "is perhaps upstream\n", f"by {took[:10]} of ", named)
    project.run("plan").shows("1 to look at", f"perhaps absorbed ({named})")
    project.run("bump", "demo", "--to", "main", "--dry-run").shows(f"perhaps landed by {named}")
