"""Calls between components that upstream breaks, each with the commit that did it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_processes import started
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

NORM = "def rms_norm(x, hidden_size, eps, weight=None):\n    return x\n"
KERNELS = {
    "kernels/__init__.py": "from .norm import rms_norm\n",
    "kernels/norm.py": NORM,
    "kernels/rope.py": "def rope(x, cos):\n    return x\n",
}
ENGINE = {
    "engine/model.py": (
        "from kernels import rms_norm\nfrom kernels.rope import rope\n\n\n"
        "def forward(self, x, hidden_size, eps):\n"
        "    x = rms_norm(x, hidden_size, eps)\n"
        "    return rope(x, 1, 2)\n"
    )
}
FIXED = {"engine/model.py": ENGINE["engine/model.py"].replace("rope(x, 1, 2)", "rope(x, cos=1)")}


@pytest.fixture
def kernels(tmp_path: Path) -> Upstream:
    return Upstream.create(tmp_path / "kernels.git")


@pytest.fixture
def pair(project: Project, upstream: Upstream, kernels: Upstream) -> Project:
    """`engine`, whose patch mends one of its calls, and `kernels`, which it calls."""
    given = {"packages": ["kernels"]}
    pin = kernels.commit(KERNELS, "one")
    project.component("kernels", kernels, pin, contracts=given, track="main")
    patch = make_patch(ENGINE, FIXED, body="Because.\n\nUpstream-Status: Pending")
    pin = upstream.commit(ENGINE, "engine")
    declares = {"packages": ["engine"]}
    project.component(
        "engine", upstream, pin, {"rope.patch": patch}, contracts=declares, track="main"
    )
    return project


def drift(project: Project, component: str, *argv: str) -> dict[str, Any]:
    ran = project.run("drift", "-c", component, *argv, "--json")
    (found,) = ran.json["components"]
    return dict(found)


def told(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["what"], each["by"]["commit"]) for each in found["findings"]]


@pytest.mark.slow
def test_what_upstream_breaks_is_told_with_the_commit(pair: Project, kernels: Upstream) -> None:
    kernels.commit({"kernels/norm.py": "# faster\n" + NORM}, "No matter")
    moved = NORM.replace("hidden_size, eps, weight=None", "weight, hidden_size, eps")
    first = kernels.commit({"kernels/norm.py": moved}, "The weight first (#4)")
    kernels.commit({"kernels/norm.py": "# still\n" + moved}, "No matter, either")
    gone = kernels.commit({"kernels/rope.py": None}, "Rotate elsewhere")

    found = drift(pair, "kernels")
    assert told(found) == [
        ("there is no module kernels.rope", gone),
        ("kernels.norm.rms_norm needs eps", first),
    ]
    pair.run("drift", "-c", "kernels").shows(
        "engine: engine/model.py:6\n    kernels.norm.rms_norm needs eps\n"
    )
    sarif = json.loads(pair.run("drift", "-c", "kernels", "--format", "sarif").out)
    rules = [each["ruleId"] for each in sarif["runs"][0]["results"]]
    assert rules == ["contract-upstream"] * 2
    assert told(drift(pair, "kernels", "--offline")) == told(found)


@pytest.mark.slow
def test_one_walk_names_the_commits_of_all(pair: Project, kernels: Upstream) -> None:
    assert told(drift(pair, "kernels")) == []
    one = {"kernels/norm.py": "def rms_norm():\n    return 1\n"}
    walks = []
    for changed in (one, {"kernels/rope.py": None}):
        kernels.commit(changed, "Nothing")
        asked, _ = started("drift", "-c", "kernels", "--quiet", cwd=pair.root)
        walks.append(asked.count("log"))
    assert len(told(drift(pair, "kernels"))) == 2
    assert walks[0] == walks[1] > 0


def test_what_upstream_calls_wrongly_is_told_too(pair: Project, upstream: Upstream) -> None:
    more = ENGINE["engine/model.py"] + "\n\ndef load():\n    return rms_norm(1)\n"
    by = upstream.commit({"engine/model.py": more}, "Load")
    found = drift(pair, "engine")
    assert told(found) == [("kernels.norm.rms_norm needs hidden_size, eps", by)]


@pytest.mark.slow
def test_what_was_broken_before_or_is_explained_is_no_news(
    pair: Project, upstream: Upstream, kernels: Upstream
) -> None:
    upstream.commit({"engine/model.py": "# top\n" + ENGINE["engine/model.py"]}, "A line above")
    assert told(drift(pair, "engine")) == []
    kernels.commit({"kernels/norm.py": "def rms_norm():\n    return 1\n"}, "Nothing")
    assert len(told(drift(pair, "kernels"))) == 1
    absent = [{"name": "kernels.norm.*", "reason": "not run"}]
    pin = upstream.git("rev-parse", "main~1").decode().strip()
    patch = pair.root.joinpath("patches/engine/rope.patch").read_bytes()
    declares = {"packages": ["engine"], "absent": absent}
    pair.component("engine", upstream, pin, {"rope.patch": patch}, contracts=declares)
    assert told(drift(pair, "kernels")) == []


@pytest.mark.slow
def test_since_the_last_report_only_new_ones_are_told(pair: Project, kernels: Upstream) -> None:
    kernels.commit({"kernels/norm.py": "def rms_norm():\n    return 1\n"}, "Nothing")
    argv = ("drift", "-c", "kernels", "--since-last", "--json")
    assert len(pair.run(*argv).json["components"][0]["findings"]) == 1
    assert pair.run(*argv).json["components"] == []
    kernels.commit({"kernels/rope.py": None}, "Rotate elsewhere")
    (now,) = pair.run(*argv).json["components"]
    assert [each["what"] for each in now["findings"]] == ["there is no module kernels.rope"]


def test_what_cannot_be_looked_at_is_said(pair: Project, upstream: Upstream) -> None:
    wrong = make_patch({"gone.py": "a\n"}, {"gone.py": "b\n"}, body="Because.")
    pin = upstream.git("rev-parse", "main").decode().strip()
    pair.component(
        "engine", upstream, pin, {"wrong.patch": wrong}, contracts={"packages": ["engine"]}
    )
    found = drift(pair, "kernels")
    (unseen,) = found["findings"]
    assert (unseen["code"], unseen["severity"]) == ("unseen", "note")
    assert "calls between components: " in unseen["what"]


@pytest.mark.slow
@pytest.mark.parametrize("dry", [True, False])
def test_a_bump_tells_what_breaks(pair: Project, kernels: Upstream, dry: bool) -> None:
    kernels.commit({"kernels/norm.py": "def rms_norm():\n    return 1\n"}, "Nothing any more")
    by = kernels.git("rev-parse", "main").decode().strip()
    kernels.commit({"kernels/more.py": "x = 1\n"}, "More")
    pair.run("apply").ok()
    ran = pair.run("bump", "kernels", "--to", "main", *(["--dry-run"] if dry else []))
    assert "takes 0 positional arguments, is given 3" in ran.out + ran.err
    assert f"since {by[:10]} Nothing any more" in ran.out + ran.err
    assert pair.run("check", "-c", "engine").code == (0 if dry else 1)


def test_a_bump_that_breaks_nothing_says_nothing(pair: Project, kernels: Upstream) -> None:
    kernels.commit({"kernels/norm.py": "# faster\n" + NORM}, "No matter")
    pair.run("apply").ok()
    ran = pair.run("bump", "kernels", "--to", "main").ok()
    assert "breaks a call" not in ran.out + ran.err


@pytest.mark.slow
def test_a_bump_names_the_first_of_many_calls(
    pair: Project, upstream: Upstream, kernels: Upstream
) -> None:
    many = "from kernels import rms_norm\n" + "rms_norm(1, 2, 3)\n" * 12
    pin = upstream.commit({**FIXED, "engine/many.py": many}, "Many")
    pair.component("engine", upstream, pin, contracts={"packages": ["engine"]})
    gone = {"kernels/norm.py": "def rms_norm():\n    return 1\n", "kernels/rope.py": "x = 1\n"}
    commit = kernels.commit(gone, "Nothing any more")
    ran = pair.run("bump", "kernels", "--to", "main", "--dry-run").ok()
    rows = [row for row in ran.err.splitlines() if "breaks a call: " in row]
    assert len(rows) == 8
    assert "warning: kernels: 6 more warnings like these\nhint: --json has all" in ran.err
    found = pair.run("bump", "kernels", "--to", "main", "--dry-run", "--json").json
    whats = [note["what"] for note in found["components"][0]["notes"]]
    assert len(whats) == 14
    since = f"since {commit[:10]} Nothing any more"
    assert f"upstream breaks a call: kernels.rope has no rope, {since}" in whats
