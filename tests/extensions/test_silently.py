"""What drifts without a conflict: new sites of rules, functions that another component replaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.cli.test_processes import started
from tests.drift.lines import edit, numbered
from tests.extensions.python_guards.test_overrides import CORE, MOVED, RULES, overriding
from tests.extensions.python_guards.test_overrides import SPEED as SPEED_FILES
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.extensions.recipes.test_residual import FUSED, RULE
from tests.extensions.recipes.test_residual import RULES as DEVICE_RULES
from tests.support.projects import Project
from tests.support.repos import Upstream

pytestmark = pytest.mark.slow

BASE = numbered()


OURS = {"ours.patch": edit("a.py", BASE, l6="ours")}


@dataclass
class Silent:
    """A project in which rules look for devices and for calls that replace something."""

    project: Project
    core: Upstream
    speed: Upstream

    def component(self, name: str, pin: str, patches: Any = None, **keys: object) -> None:
        """A component on the core's main, in which devices by name are sites."""
        keys = {"residual": {"rules": ["patches/cuda.rules.yml"]}, "track": "main"} | keys
        self.project.component(name, self.core, pin, patches, **cast(Any, keys))

    def replaced(self) -> None:
        """A component that replaces functions of core."""
        pin = self.speed.commit(SPEED_FILES, "speed")
        declared = overriding({"name": "core.ops.fused", "reason": "speed adds it"})
        self.project.component("speed", self.speed, pin, overrides=[declared])

    def found(self, *argv: str) -> list[Any]:
        """What drift tells beside the patches."""
        (component,) = self.project.run("drift", *argv, "--json").json["components"]
        return list(component["findings"])


@pytest.fixture
def silent(project: Project, upstream: Upstream, tmp_path: Path) -> Silent:
    """Only the rules are there."""
    rules = {"patches/cuda.rules.yml": DEVICE_RULES, "patches/calls.rules.yml": RULES}
    project.write({path: yaml.safe_dump(each) for path, each in rules.items()})
    return Silent(project, Upstream.create(tmp_path / "core.git"), upstream)


def test_new_sites_are_told_with_the_commit_that_brought_each(silent: Silent) -> None:
    project, commit = silent.project, silent.core.commit
    project.write({"patches/demo/unfuse.recipe.yml": recipe_text(DROP)})
    project.write({"patches/demo/series": "unfuse.patch\n"})
    code = {"src/a.py": FUSED.format("scale"), "run.py": 'a = "cuda"\n', "lib.py": "x = 1\n"}
    silent.component("demo", commit(code), [{"series": "patches/demo/series"}])
    project.run("refresh").ok()
    commit({"src/b.py": FUSED.format("one")}, "The recipe takes care of it")
    lib = commit({"lib.py": 'x = 1\ny = "cuda"\n'}, "A device by name (#3)")
    commit({"lib.py": '# more\nx = 1\ny = "cuda"\n'}, "A line above")
    run = commit({"run.py": 'b = 2\na = "cuda"\nc = "cuda"\n'}, "One more of a kind")
    lite = commit({"lite.py": FUSED.format("two")}, "Where no recipe looks")
    commit({"gone.py": 'd = "cuda"\n'}, "For a while")
    commit({"gone.py": None}, "And gone")

    found = silent.found()

    assert [(s["what"].partition(":")[0], s["where"], s["by"]["commit"]) for s in found] == [
        ("device", "demo: lib.py:3", lib),
        ("drop-fuser", "demo: lite.py:1", lite),
        ("device", "demo: run.py:3", run),
    ]
    assert silent.found() == found  # from memory
    reviewed = "version: 1\nareas:\n  - {rule: '*', path: 'lite.py', reason: not run}\n"
    project.write({"patches/demo/residual.yml": reviewed})
    assert [site["where"] for site in silent.found()] == ["demo: lib.py:3", "demo: run.py:3"]
    ran = project.run("drift").ok()  # to be read: no reason for a red light
    (told,) = project.run("drift", "--format", "sarif").ok().json["runs"]
    assert [each["ruleId"] for each in told["results"]] == ["new-site-upstream"] * 2
    assert ran.out.count("device: a new site") == 2
    for each in told["results"]:  # the same words, with the commit that brought it
        what, by = each["message"]["text"].removeprefix("demo: demo: ").split("\n")
        ran.shows(what.replace(": device", "\n    device") + f"\n      {by}\n")


def test_functions_that_are_replaced_and_changed_are_told_with_the_commit(silent: Silent) -> None:
    project, commit = silent.project, silent.core.commit
    silent.component("core", commit({**CORE, "a.py": BASE}, "one"), OURS)
    silent.replaced()
    ops, layer = MOVED["core/ops.py"], MOVED["core/layer.py"]
    first = commit({"core/ops.py": ops}, "Operators (#4)")
    commit({"a.py": "top\n" + BASE}, "Elsewhere")
    second = commit({"core/layer.py": layer}, "Layers")
    commit({"core/ops.py": ops + "\nmore = 1\n"}, "No matter")

    found = silent.found("-c", "core")
    text, markdown = (
        project.run("drift", "-c", "core", *form) for form in ((), ("--format", "markdown"))
    )
    for each, (name, code, said, by) in zip(
        found,
        (
            ("core.layer.Layer.forward", "gone", "is gone", second),
            ("core.ops.shift", "body", "does something else", first),
            ("core.scale", "signature", "is called in another way", first),
        ),
        strict=True,
    ):
        about, kind = f"speed replaces {name}: {code}", f"override-{code}-upstream"
        assert (each["about"], each["code"], each["by"]["commit"]) == (about, kind, by)
        for ran in (text, markdown):
            ran.shows(f"{name}, which speed replaces, {said}")
    assert found[2]["lines"][0] == "replaced at speed/features.py:2"
    assert silent.found("-c", "core", "--offline") == found


def test_the_next_tip_is_told_as_without_what_is_remembered(silent: Silent) -> None:
    """Also where the branch was rewritten, so that a remembered commit is not on it."""
    core = silent.core
    pin = core.commit({**CORE, "a.py": BASE}, "one")
    silent.component("core", pin, OURS)
    silent.replaced()
    news = {"core/ops.py": MOVED["core/ops.py"], "run.py": 'a = "cuda"\n'}
    core.commit(news, "Operators")

    def authors() -> set[str]:
        found = silent.found("-c", "core")
        assert found == silent.found("-c", "core", "--cache", "anew")
        return {each["by"]["commit"] for each in found}

    silent.found("-c", "core")
    layer = core.commit({"core/layer.py": MOVED["core/layer.py"], "b.py": 'b = "cuda"\n'}, "On")
    assert authors() > {layer}

    core.branch("main", pin)
    again = core.commit({**news, "b.py": 'b = "cuda"\n'}, "All at once, rewritten")
    assert authors() == {again}


def test_what_is_kept_answers_until_what_it_follows_from_changes(silent: Silent) -> None:
    """Also where no commit is known, as where a name leads to another file since."""
    project, core = silent.project, silent.core
    files = {**CORE, "a.py": BASE, "core/more.py": CORE["core/ops.py"]}
    pins = [core.commit(files), core.commit({"core/layer.py": MOVED["core/layer.py"]})]
    core.commit({"core/__init__.py": "from .more import scale\n", "run.py": 'a = "cuda"\n'})
    core.commit({"core/more.py": MOVED["core/ops.py"]}, "The new one")
    silent.component("core", pins[0], OURS)
    silent.replaced()

    def look() -> list[Any]:
        found = silent.found("-c", "core")
        asked, _ = started("drift", "-c", "core", "--quiet", cwd=project.root)
        assert "log" not in asked  # nobody looks again which commit it was
        assert found == silent.found("-c", "core", "--cache", "anew")
        return found

    assert None in [each["by"] for each in look()]
    rules = {**DEVICE_RULES, "rules": [{**RULE, "id": "named"}]}
    project.write({"patches/cuda.rules.yml": yaml.safe_dump(rules)})
    assert "named: run.py" in repr(look())
    silent.component("core", pins[1], OURS)
    assert "Layer" not in repr(look())
    silent.component("core", pins[0], {"ours.patch": edit("a.py", BASE, l3="else")})
    assert "Layer" in repr(look())
    fewer = SPEED_FILES["speed/features.py"].replace("core.layer.Layer.forward", "core.ops.fused")
    pin = silent.speed.commit({"speed/features.py": fewer})
    project.component("speed", silent.speed, pin, overrides=[overriding()])
    assert "Layer" not in repr(look())


def test_what_broke_comes_before_what_is_silent(silent: Silent) -> None:
    """GitHub shows the first ten annotations of a level."""
    pin = silent.core.commit({"a.py": BASE})
    silent.component("one", pin)
    silent.component("two", pin, OURS, residual={})
    silent.core.commit({"b.py": 'x = "cuda"\n', "a.py": None}, "Both")
    told = silent.project.run("drift", "--format", "github").out.splitlines()
    assert [line.partition(" ")[0] for line in told if line] == ["::error", "::warning"]
    markdown = silent.project.run("drift", "--format", "markdown")
    markdown.shows("one: b.py:1: device: a new site", ", 1 commit |")


def test_only_what_is_new_opens_an_issue(silent: Silent) -> None:
    silent.component("demo", silent.core.commit({"a.py": BASE}), OURS)
    told = []
    for new in ("one", "two", ""):
        if new:
            silent.core.commit({f"{new}.py": 'x = "cuda"\n'}, new)
        silent.project.run("drift", "--format", "json", "-o", "drift.json").ok()
        out = silent.project.run("ci", "--issues", "drift.json", "-o", "issues").ok().out
        told.append(out.count("opened  pk-"))
    assert told == [1, 1, 0]


def test_what_cannot_be_looked_at_is_told(silent: Silent) -> None:
    silent.component("core", silent.core.commit({**CORE, "a.py": BASE}, "one"), OURS)
    silent.project.component("speed", silent.speed, "0" * 39 + "1", overrides=[overriding()])
    silent.speed.commit(SPEED_FILES, "speed")

    (component,) = silent.project.run("drift", "-c", "core", "--json").json["components"]

    assert component["patches"][0]["status"] == "unchanged"
    (unseen,) = component["findings"]
    assert unseen["code"] == "unseen"
    assert unseen["what"].startswith("not all of core could be looked at: what is replaced: ")
    ran = silent.project.run("drift", "-c", "core", "--format", "github")
    assert ran.out.startswith("::notice file=manifests/demo.yaml,line=1,title=not all of core")
