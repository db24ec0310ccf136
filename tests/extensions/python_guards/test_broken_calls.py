"""Calls between components that upstream breaks, each with the commit that did it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from patchkit.manifest.load import load_manifest
from patchkit.model.progress import Silent
from patchkit.ops.bump import WantedPin, bump_components
from patchkit.ops.refresh_input import RefreshOptions
from patchkit.upstream.git import LATEST
from patchkit.upstream.store import Store
from tests.cli.test_processes import started
from tests.support.commands import Ran
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


GONE = "def rms_norm():\n    return 1\n"


@dataclass
class Pair:
    """`engine`, whose patch mends one of its calls, and `kernels`, which it calls."""

    project: Project
    kernels: Upstream
    engine: Upstream

    def engine_at(
        self, pin: str, patches: dict[str, bytes] | None = None, **contracts: object
    ) -> None:
        """Pin the engine."""
        declared = {"packages": ["engine"], **contracts}
        self.project.component(
            "engine", self.engine, pin, patches, contracts=declared, track="main"
        )

    def drift(self, component: str, *argv: str) -> Ran:
        return self.project.run("drift", "-c", component, *argv)

    def told(self, component: str, *argv: str) -> list[tuple[str, str]]:
        """What drift finds, and whose doing it is."""
        (found,) = self.drift(component, *argv, "--json").json["components"]
        return [(each["what"], each["by"]["commit"]) for each in found["findings"]]

    def bump(self, *argv: str) -> Ran:
        return self.project.run("bump", "kernels", "--to", "main", *argv)


@pytest.fixture
def pair(project: Project, upstream: Upstream, tmp_path: Path) -> Pair:
    """Both at their pins."""
    made = Pair(project, Upstream.create(tmp_path / "kernels.git"), upstream)
    given, pin = {"packages": ["kernels"]}, made.kernels.commit(KERNELS)
    project.component("kernels", made.kernels, pin, contracts=given, track="main")
    patch = make_patch(ENGINE, FIXED, body="Because.\n\nUpstream-Status: Pending")
    made.engine_at(upstream.commit(ENGINE), {"rope.patch": patch})
    return made


@pytest.mark.slow
def test_what_upstream_breaks_is_told_with_the_commit(pair: Pair) -> None:
    commit = pair.kernels.commit
    commit({"kernels/norm.py": "# faster\n" + NORM}, "No matter")
    moved = NORM.replace("hidden_size, eps, weight=None", "weight, hidden_size, eps")
    first = commit({"kernels/norm.py": moved}, "The weight first (#4)")
    commit({"kernels/norm.py": "# still\n" + moved}, "No matter, either")
    gone = commit({"kernels/rope.py": None}, "Rotate elsewhere")

    broken = [
        ("there is no module kernels.rope", gone),
        ("kernels.norm.rms_norm needs eps", first),
    ]
    assert pair.told("kernels") == broken
    told = "engine: engine/model.py:6\n    kernels.norm.rms_norm needs eps\n"
    pair.drift("kernels").shows(told)
    (run,) = pair.drift("kernels", "--format", "sarif").json["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["contract-upstream"] * 2
    assert pair.told("kernels", "--offline") == broken


@pytest.mark.slow
def test_one_walk_names_the_commits_of_all(pair: Pair) -> None:
    assert pair.told("kernels") == []
    walks = []
    for changed in ({"kernels/norm.py": GONE}, {"kernels/rope.py": None}):
        pair.kernels.commit(changed)
        asked, _ = started("drift", "-c", "kernels", "--quiet", cwd=pair.project.root)
        walks.append(asked.count("log"))
    assert len(pair.told("kernels")) == 2
    assert walks[0] == walks[1] > 0


def test_what_upstream_calls_wrongly_is_told_too(pair: Pair) -> None:
    more = ENGINE["engine/model.py"] + "\n\ndef load():\n    return rms_norm(1)\n"
    by = pair.engine.commit({"engine/model.py": more}, "Load")
    assert pair.told("engine") == [("kernels.norm.rms_norm needs hidden_size, eps", by)]


@pytest.mark.slow
def test_what_was_broken_before_or_is_explained_is_no_news(pair: Pair) -> None:
    pin = str(pair.engine.resolve("refs/heads/main"))
    pair.engine.commit({"engine/model.py": "# top\n" + ENGINE["engine/model.py"]}, "A line above")
    assert pair.told("engine") == []
    pair.kernels.commit({"kernels/norm.py": GONE})
    assert len(pair.told("kernels")) == 1
    patch = (pair.project.root / "patches/engine/rope.patch").read_bytes()
    absent = [{"name": "kernels.norm.*", "reason": "not run"}]
    pair.engine_at(pin, {"rope.patch": patch}, absent=absent)
    assert pair.told("kernels") == []


@pytest.mark.slow
def test_what_is_kept_of_calls_answers_until_a_patch_changes(pair: Pair) -> None:
    pin = str(pair.engine.resolve("refs/heads/main"))
    pair.kernels.commit({"kernels/norm.py": GONE})
    assert pair.told("kernels") != []
    asked, _ = started("drift", "-c", "kernels", "--quiet", cwd=pair.project.root)
    assert "log" not in asked
    spared = {"engine/model.py": FIXED["engine/model.py"].replace("rms_norm(x", "print(x")}
    pair.engine_at(pin, {"rope.patch": make_patch(ENGINE, spared, body="Because.")})
    assert pair.told("kernels") == []
    pair.engine_at(pin, {"rope.patch": make_patch(ENGINE, FIXED, body="Because.")})
    assert len(pair.told("kernels")) == 1


def test_what_was_broken_before_is_no_news_where_it_went(pair: Pair) -> None:
    again = "\n\ndef again(x):\n    return rope(x, 1, 2)\n"
    moved = {"engine/model.py": None, "engine/moved.py": ENGINE["engine/model.py"] + again}
    by = pair.engine.commit(moved, "Move it, and do it again")
    assert pair.told("engine") == [
        ("kernels.rope.rope takes 2 positional arguments, is given 3", by)
    ]


def test_what_cannot_be_looked_at_is_said(pair: Pair) -> None:
    wrong = make_patch({"gone.py": "a\n"}, {"gone.py": "b\n"}, body="Because.")
    pair.engine_at(str(pair.engine.resolve("refs/heads/main")), {"wrong.patch": wrong})
    (found,) = pair.drift("kernels", "--json").json["components"]
    (unseen,) = found["findings"]
    assert (unseen["code"], unseen["severity"]) == ("unseen", "note")
    assert "calls between components: " in unseen["what"]


@pytest.mark.slow
@pytest.mark.parametrize("dry", [True, False])
def test_a_bump_tells_what_breaks(pair: Pair, dry: bool) -> None:
    by = pair.kernels.commit({"kernels/norm.py": GONE}, "Nothing any more")
    pair.kernels.commit({"kernels/more.py": "x = 1\n"}, "More")
    pair.project.run("apply").ok()
    ran = pair.bump(*["--dry-run"][: int(dry)])
    assert "takes 0 positional arguments, is given 3" in ran.out + ran.err
    assert f"since {by[:10]} Nothing any more" in ran.out + ran.err
    pair.project.run("check", "-c", "engine").ends(0 if dry else 1)


class _Heard(Silent):
    """What was said to be under way."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        self.steps.append(what)


@pytest.mark.slow
def test_no_verdict_of_a_dry_run_waits_for_calls(pair: Pair) -> None:
    pair.kernels.commit({"kernels/norm.py": GONE}, "Nothing any more")
    pair.engine.commit({"engine/more.py": "x = 1\n"}, "More")
    heard, before = _Heard(), dict[str, list[str]]()
    report = bump_components(
        load_manifest(pair.project.root / "manifests/demo.yaml"),
        ["kernels", "engine"],
        WantedPin(LATEST),
        store=Store(pair.project.root / "cache"),
        workspace=pair.project.root / "workspace",
        options=RefreshOptions(0, dry_run=True),
        progress=heard,
        known=lambda name, row: before.update({name: [*heard.steps, *map(str, row.notes)]}),
    )
    assert "calls" in " ".join(heard.steps)
    assert "calls" not in " ".join([*before.pop("kernels"), *before.pop("engine")])
    assert "breaks a call" in str(report.components[0].notes)


@pytest.mark.slow
def test_ci_tells_the_verdict_on_patches_first(pair: Pair) -> None:
    rest = "looking at the rest"
    out = pair.project.run("ci").ok().out
    assert out.startswith(
        f"demo: kernels  no patches; {rest}\ndemo: engine  1 patch applies; {rest}\ndemo\n"
    )


def test_a_bump_that_breaks_nothing_says_nothing(pair: Pair) -> None:
    pair.kernels.commit({"kernels/norm.py": "# faster\n" + NORM}, "No matter")
    pair.project.run("apply").ok()
    ran = pair.bump().ok()
    assert "breaks a call" not in ran.out + ran.err


@pytest.mark.slow
def test_a_bump_names_the_first_of_many_calls(pair: Pair) -> None:
    many = "from kernels import rms_norm\n" + "rms_norm(1, 2, 3)\n" * 12
    pair.engine_at(pair.engine.commit({**FIXED, "engine/many.py": many}, "Many"))
    gone = {"kernels/norm.py": GONE, "kernels/rope.py": "x = 1\n"}
    commit = pair.kernels.commit(gone, "Nothing any more")
    ran = pair.bump("--dry-run").ok()
    assert len([row for row in ran.err.splitlines() if "breaks a call: " in row]) == 8
    assert "warning: kernels: 6 more warnings like these\nhint: --json has all" in ran.err
    notes = pair.bump("--dry-run", "--json").json["components"][0]["notes"]
    assert len(notes) == 14
    since = f"since {commit[:10]} Nothing any more"
    said = f"upstream breaks a call: kernels.rope has no rope, {since}"
    assert said in [note["what"] for note in notes]
