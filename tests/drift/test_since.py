"""`patchkit drift --since-last`: what changed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.drift.lines import edit, numbered
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream

BASE = numbered()


@pytest.fixture
def drifting(project: Project, upstream: Upstream) -> Project:
    """A project with a patch on line 6 of a.py and one on line 6 of b.py."""
    pin = upstream.commit({"a.py": BASE, "b.py": BASE}, "Start")
    patches = {"a.patch": edit("a.py", BASE, l6="ours"), "b.patch": edit("b.py", BASE, l6="ours")}
    project.component("demo", upstream, pin, patches, track="main")
    return project


def _since(project: Project, *options: str) -> Ran:
    return project.run("drift", "--since-last", *options)


@pytest.mark.slow
def test_only_what_changed_is_told(drifting: Project, upstream: Upstream) -> None:
    nothing = "✓ ok: 1 component as the last report saw it\n"
    assert _since(drifting).ok().out == nothing

    upstream.commit({"a.py": numbered(l6="theirs")}, "Break a (#1)")
    broken = _since(drifting).ends(1).shows("conflicted  a.patch  was unchanged", "Break a (#1)")
    assert "b.patch" not in broken.out
    assert _since(drifting).ok().out == nothing
    drifting.run("drift").ends(1)  # it is broken all the same

    upstream.commit({"a.py": BASE}, "Mend a")
    upstream.commit({"a.py": numbered(l6="others")}, "Break it again")
    _since(drifting).ends(1).shows("a.patch  by another commit than before")

    upstream.commit({"a.py": BASE, "b.py": numbered(l1="x")}, "Mend a")
    mended = _since(drifting).ok().shows("unchanged  a.patch  was conflicted")
    assert "b.patch" not in mended.out


@pytest.mark.slow
def test_each_form_has_only_what_changed(drifting: Project, upstream: Upstream) -> None:
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break a")
    drifting.run("drift", "--record", "seen.jsonl")
    upstream.commit({"b.py": numbered(l6="theirs")}, "Break b")
    found = _since(drifting, "--record", "seen.jsonl", "--json")
    (component,) = found.json["components"]
    assert [patch["name"] for patch in component["patches"]] == ["b.patch"]
    assert component["since"]["changes"] == [
        {"patch": "b.patch", "status": "conflicted", "was": "unchanged", "again": False}
    ]
    (line,) = (drifting.root / "seen.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["component"] == "demo"


def test_a_record_that_cannot_be_written(drifting: Project, tmp_path: Path) -> None:
    (drifting.root / "folder").mkdir()
    _since(drifting, "--record", "folder").ends(5, "folder cannot be")
    reports = tmp_path / "home" / "cache" / "reports"
    reports.parent.mkdir(parents=True, exist_ok=True)
    reports.write_text("in the way")  # of the cache's own: a report is more than its record
    drifting.run("drift").ok()
