"""What drifts without a conflict: new sites of rules, functions that another component replaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.drift.lines import edit, numbered
from tests.extensions.python_guards.test_overrides import CORE, MOVED, RULES, overriding
from tests.extensions.python_guards.test_overrides import SPEED as SPEED_FILES
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.extensions.recipes.test_residual import FUSED
from tests.extensions.recipes.test_residual import RULES as DEVICE_RULES
from tests.support.projects import Project
from tests.support.repos import Upstream

pytestmark = pytest.mark.slow

BASE = numbered()


@pytest.fixture
def core(tmp_path: Path) -> Upstream:
    return Upstream.create(tmp_path / "core.git")


def _drift(project: Project, *argv: str) -> dict[str, Any]:
    (component,) = project.run("drift", *argv, "--json").json["components"]
    return dict(component)


def test_new_sites_are_told_with_the_commit_that_brought_each(
    project: Project, upstream: Upstream
) -> None:
    project.write({"patches/demo/unfuse.recipe.yml": recipe_text(DROP)})
    project.write({"patches/demo/series": "unfuse.patch\n"})
    project.write({"patches/cuda.rules.yml": yaml.safe_dump(DEVICE_RULES)})
    code = {"src/a.py": FUSED.format("scale"), "run.py": 'a = "cuda"\n', "lib.py": "x = 1\n"}
    pin = upstream.commit(code)
    entries = [{"series": "patches/demo/series"}]
    rules = {"rules": ["patches/cuda.rules.yml"]}
    project.component("demo", upstream, pin, entries, residual=rules, track="main")
    project.run("refresh").ok()
    upstream.commit({"src/b.py": FUSED.format("one")}, "The recipe takes care of it")
    lib = upstream.commit({"lib.py": 'x = 1\ny = "cuda"\n'}, "A device by name (#3)")
    upstream.commit({"lib.py": '# more\nx = 1\ny = "cuda"\n'}, "A line above")
    run = upstream.commit({"run.py": 'b = 2\na = "cuda"\nc = "cuda"\n'}, "One more of a kind")
    lite = upstream.commit({"lite.py": FUSED.format("two")}, "Where no recipe looks")
    upstream.commit({"gone.py": 'd = "cuda"\n'}, "For a while")
    upstream.commit({"gone.py": None}, "And gone")

    component = _drift(project)

    found = [
        (s["what"].partition(":")[0], s["where"], s["by"]["commit"]) for s in component["findings"]
    ]
    assert found == [
        ("device", "demo: lib.py:3", lib),
        ("drop-fuser", "demo: lite.py:1", lite),
        ("device", "demo: run.py:3", run),
    ]
    assert _drift(project) == component  # from memory
    reviewed = "version: 1\nareas:\n  - {rule: '*', path: 'lite.py', reason: not run}\n"
    project.write({"patches/demo/residual.yml": reviewed})
    left = [site["where"] for site in _drift(project)["findings"]]
    assert left == ["demo: lib.py:3", "demo: run.py:3"]
    ran = project.run("drift")
    assert ran.code == 0  # to be read: no reason for a red light
    sarif = json.loads(project.run("drift", "--format", "sarif").ok().out)
    results = sarif["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == ["new-site-upstream"] * 2
    assert ran.out.count("device: a new site") == 2
    for each in results:  # the same words, with the commit that brought it
        what, by = each["message"]["text"].removeprefix("demo: demo: ").split("\n")
        assert what.replace(": device", "\n    device") + f"\n      {by}\n" in ran.out


def test_functions_that_are_replaced_and_changed_are_told_with_the_commit(
    project: Project, upstream: Upstream, core: Upstream
) -> None:
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    patches = {"ours.patch": edit("a.py", BASE, l6="ours")}
    project.component(
        "core", core, core.commit({**CORE, "a.py": BASE}, "one"), patches, track="main"
    )
    speed = upstream.commit(SPEED_FILES, "speed")
    declared = overriding({"name": "core.ops.fused", "reason": "speed adds it"})
    project.component("speed", upstream, speed, overrides=[declared])
    ops, layer = MOVED["core/ops.py"], MOVED["core/layer.py"]
    first = core.commit({"core/ops.py": ops}, "Operators (#4)")
    core.commit({"a.py": "top\n" + BASE}, "Elsewhere")
    second = core.commit({"core/layer.py": layer}, "Layers")
    core.commit({"core/ops.py": ops + "\nmore = 1\n"}, "No matter")

    component = _drift(project, "-c", "core")
    found = [(t["about"], t["code"], t["by"]["commit"]) for t in component["findings"]]
    assert found == [
        (f"speed replaces {name}: {what}", f"override-{what}-upstream", commit)
        for name, what, commit in (
            ("core.layer.Layer.forward", "gone", second),
            ("core.ops.shift", "body", first),
            ("core.scale", "signature", first),
        )
    ]
    assert component["findings"][2]["lines"][0] == "replaced at speed/features.py:2"
    out = project.run("drift", "-c", "core").out
    markdown = project.run("drift", "-c", "core", "--format", "markdown").out
    for name, what in (
        ("core.layer.Layer.forward", "is gone"),
        ("core.scale", "is called in another way"),
        ("core.ops.shift", "does something else"),
    ):
        words = f"{name}, which speed replaces, {what}"
        assert words in out and words in markdown
    again = _drift(project, "-c", "core", "--offline")
    assert again["findings"] == component["findings"]


def test_the_next_tip_is_told_as_without_what_is_remembered(
    project: Project, upstream: Upstream, core: Upstream
) -> None:
    """Also where the branch was rewritten, so that a remembered commit is not on it."""
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    project.write({"patches/cuda.rules.yml": yaml.safe_dump(DEVICE_RULES)})
    patches = {"ours.patch": edit("a.py", BASE, l6="ours")}
    pin = core.commit({**CORE, "a.py": BASE}, "one")
    rules = {"rules": ["patches/cuda.rules.yml"]}
    project.component("core", core, pin, patches, track="main", residual=rules)
    speed = upstream.commit(SPEED_FILES, "speed")
    declared = overriding({"name": "core.ops.fused", "reason": "speed adds it"})
    project.component("speed", upstream, speed, overrides=[declared])
    news = {"core/ops.py": MOVED["core/ops.py"], "run.py": 'a = "cuda"\n'}
    core.commit(news, "Operators")

    def told(*argv: str) -> list[Any]:
        return list(_drift(project, "-c", "core", *argv)["findings"])

    told()
    layer = core.commit({"core/layer.py": MOVED["core/layer.py"], "b.py": 'b = "cuda"\n'}, "On")
    found = told()
    assert found == told("--cache", "anew")
    assert {each["by"]["commit"] for each in found} > {layer}

    core.branch("main", pin)
    again = core.commit({**news, "b.py": 'b = "cuda"\n'}, "All at once, rewritten")
    found = told()
    assert found == told("--cache", "anew")
    assert {each["by"]["commit"] for each in found} == {again}


def test_what_broke_comes_before_what_is_silent(project: Project, upstream: Upstream) -> None:
    """GitHub shows the first ten annotations of a level."""
    project.write({"patches/cuda.rules.yml": yaml.safe_dump(DEVICE_RULES)})
    pin = upstream.commit({"a.py": BASE})
    rules = {"rules": ["patches/cuda.rules.yml"]}
    project.component("one", upstream, pin, residual=rules, track="main")
    patches = {"ours.patch": edit("a.py", BASE, l6="ours")}
    project.component("two", upstream, pin, patches, track="main")
    upstream.commit({"b.py": 'x = "cuda"\n', "a.py": None}, "Both")
    told = project.run("drift", "--format", "github").out.splitlines()
    assert [line.partition(" ")[0] for line in told if line] == ["::error", "::warning"]
    markdown = project.run("drift", "--format", "markdown").out
    assert "one: b.py:1: device: a new site" in markdown
    assert ", 1 commit |" in markdown


def test_since_the_last_report_only_what_is_new_is_told(
    project: Project, upstream: Upstream
) -> None:
    project.write({"patches/cuda.rules.yml": yaml.safe_dump(DEVICE_RULES)})
    pin = upstream.commit({"a.py": BASE})
    patches = {"ours.patch": edit("a.py", BASE, l6="ours")}
    rules = {"rules": ["patches/cuda.rules.yml"]}
    project.component("demo", upstream, pin, patches, residual=rules, track="main")
    upstream.commit({"one.py": 'x = "cuda"\n'}, "One")
    assert "one.py:1" in project.run("drift", "--since-last").ok().out
    assert "one.py" not in project.run("drift", "--since-last").ok().out
    upstream.commit({"two.py": 'x = "cuda"\n'}, "Two")
    told = project.run("drift", "--since-last").ok().out
    assert "two.py:1" in told
    assert "one.py" not in told


def test_what_cannot_be_looked_at_is_told(
    project: Project, upstream: Upstream, core: Upstream
) -> None:
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    pin = core.commit({**CORE, "a.py": BASE}, "one")
    patches = {"ours.patch": edit("a.py", BASE, l6="ours")}
    project.component("core", core, pin, patches, track="main")
    project.component("speed", upstream, "0" * 39 + "1", overrides=[overriding()])
    upstream.commit(SPEED_FILES, "speed")

    component = _drift(project, "-c", "core")

    assert component["patches"][0]["status"] == "unchanged"
    (unseen,) = component["findings"]
    assert unseen["code"] == "unseen"
    assert unseen["what"].startswith("not all of core could be looked at: what is replaced: ")
    ran = project.run("drift", "-c", "core", "--format", "github")
    assert ran.out.startswith("::notice file=manifests/demo.yaml,line=1,title=not all of core")
