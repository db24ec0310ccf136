"""A patch that another repository has, and that was changed there so that it fits no more."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.drift.lines import edit, numbered
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

BASE = numbered()
GOOD = edit("a.py", BASE, l6="ours")
OTHER = edit("a.py", numbered(l5="theirs"), l6="ours")


def _manifest(project: Project, upstream: Upstream, home: Upstream, pin: str, commit: str) -> None:
    data = home.files(commit)["fixes/a.patch"]
    project.write(
        {
            "manifests/demo.yaml": f"""version: 1
components:
  demo:
    source: {{git: "{upstream.url}"}}
    pin: {pin}
    patches:
      - {{git: "{home.url}", commit: {commit}, path: fixes/a.patch,
         sha256: {hashlib.sha256(data).hexdigest()}}}
  home:
    source: {{git: "{home.url}"}}
    pin: {commit}
    track: main
    patches: [{{series: patches/home/series}}]
"""
        }
    )
    project.series("home", {})


@pytest.mark.slow
def test_its_commit_is_named_and_the_version_before(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    home = Upstream.create(tmp_path / "home.git")
    pin = upstream.commit({"a.py": BASE})
    home.commit({"fixes/a.patch": OTHER, "x": "0\n"}, "Never fitted")
    fits = home.commit({"fixes/a.patch": GOOD, "x": "1\n"}, "Fits")
    broke = home.commit({"fixes/a.patch": OTHER}, "Follow upstream")
    last = home.commit({"fixes/a.patch": OTHER + b"\n"}, "And a blank line")
    home.commit({"x": "2\n"}, "Later")
    _manifest(project, upstream, home, pin, last)
    home_check = ("check", "-m", "demo", "-c", "demo")

    home.git("config", "uploadpack.allowFilter", "true")  # trees before the pin stay away
    alone = project.run(*home_check, "--json").json
    assert alone["components"][0]["patches"][0]["explanation"]["edit"] is None

    project.series("home", {"x.patch": make_patch({"x": "1\n"}, {"x": "9\n"})})
    assert project.run("drift", "-m", "demo", "-c", "home").code == 1  # the history is here now

    told = project.run(*home_check, "--json").json["components"][0]["patches"][0]
    found = told["explanation"]["edit"]
    assert (found["commit"], found["subject"]) == (broke, "Follow upstream")
    assert (found["fits_at"], found["fits_sha256"]) == (fits, hashlib.sha256(GOOD).hexdigest())
    assert f"  commit: {fits}" in told["next_steps"][0].splitlines()
    assert "Follow upstream" in project.run(*home_check).out

    line = 1 + (project.root / "manifests/demo.yaml").read_text().split("- {git")[0].count("\n")
    annotation = project.run(*home_check, "--format", "github").out.splitlines()[0]
    assert annotation.startswith(f"::error file=manifests/demo.yaml,line={line},"), annotation
