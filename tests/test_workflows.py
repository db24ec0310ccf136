"""Our workflows and the GitLab template, each shell step run as a runner runs it.

What other people's actions do (checkout, artifacts) is done here in their place; python's pip, make
and gh are stand-ins, for they reach out. Everything else is real: bash, git, patchkit, the remote.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, git_in
from tests.test_integrations import ROOT, load, with_origin

pytestmark = pytest.mark.slow

_PYTHON = f'case "$*" in "-m pip"*) exit 0;; esac\nexec {sys.executable} "$@"'
_GH = 'echo "$*" >> "$LOG"; case "$2" in create) echo https://example.com/pull/1;; esac'
_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


@pytest.fixture
def pinned(project: Project, upstream: Upstream) -> Project:
    return with_origin(project, upstream)


class Runner:
    """Runs the jobs of a workflow one by one, each in a clone of its own."""

    def __init__(self, tmp_path: Path, patchkit: str) -> None:
        self.home = tmp_path
        self.artifacts = tmp_path / "artifacts"
        self.outputs: dict[str, dict[str, str]] = {}
        self.summary = tmp_path / "summary.md"
        programs = tmp_path / "programs"
        programs.mkdir()
        fakes = {"python": _PYTHON, "make": "exit 0", "gh": _GH}
        for name, body in {**fakes, "patchkit": patchkit}.items():
            (programs / name).write_text(f"#!/bin/bash\n{body}\n")
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self.environment = {
            **os.environ,
            "PATH": path,
            "LOG": str(tmp_path / "gh.log"),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_REF_NAME": "main",
        }

    def job(self, name: str, job: Mapping[str, Any], matrix: Mapping[str, str]) -> list[int]:
        """The exit codes of a job's shell steps."""
        folder = self.home / "jobs" / f"{name}-{matrix.get('name', '')}"
        git_in(self.home, "clone", "-q", str(self.home / "origin.git"), str(folder))
        values = {f"matrix.{key}": value for key, value in matrix.items()}
        values |= {f"runner.{key}": str(folder.parent) for key in ("temp",)}
        values |= {"github.token": "token", "github.run_id": "7", "github.run_attempt": "1"}
        codes, told = [], dict[str, str]()
        for step in job["steps"]:
            for code, output in self._step(step, folder, values):
                codes.append(code)
                told |= {f"steps.{step.get('id')}.outputs.{k}": v for k, v in output.items()}
        wanted = job.get("outputs", {})
        self.outputs[name] = {k: _filled(str(v), {**values, **told}) for k, v in wanted.items()}
        return codes

    def _step(
        self, step: Mapping[str, Any], folder: Path, values: Mapping[str, str]
    ) -> Iterator[tuple[int, dict[str, str]]]:
        given = {key: _filled(str(each), values) for key, each in step.get("with", {}).items()}
        uses = step.get("uses", "")
        if "run" in step:
            yield self._shell(step, folder, values)
        elif uses.startswith("./"):
            home = ROOT / uses
            action = load(f"{uses}/action.yml")
            defaults = {k: str(v.get("default", "")) for k, v in action["inputs"].items()}
            inside = {**values, "github.action_path": str(home)}
            taken = {k: _filled(v, values) for k, v in {**defaults, **given}.items()}
            inside |= {f"inputs.{key}": value for key, value in taken.items()}
            for each in action["runs"]["steps"]:
                yield from self._step(each, folder, inside)
        elif uses.startswith("actions/upload-artifact@"):
            target, paths = self.artifacts / given["name"], given["path"].split()
            target.mkdir(parents=True)
            for source in (folder / each for each in paths):
                if source.is_dir():  # several paths keep their names
                    into = target / source.name if len(paths) > 1 else target
                    shutil.copytree(source, into, dirs_exist_ok=True)
                elif source.exists():
                    shutil.copy(source, target)
        elif uses.startswith("actions/download-artifact@"):
            target = folder / given.get("path", ".")
            for each in self.artifacts.glob(given.get("name", given.get("pattern", ""))):
                shutil.copytree(each, target, dirs_exist_ok=True)
        else:
            assert re.match(r"actions/(checkout|setup-python|cache)@[0-9a-f]{40}$", uses), uses

    def _shell(
        self, step: Mapping[str, Any], folder: Path, values: Mapping[str, str]
    ) -> tuple[int, dict[str, str]]:
        output = folder.parent / "output"
        output.write_text("")
        own = {key: _filled(str(each), values) for key, each in step.get("env", {}).items()}
        flags = ["--noprofile", "--norc", "-eo", "pipefail"] if step.get("shell") else ["-e"]
        done = subprocess.run(
            ["bash", *flags, "-c", _filled(step["run"], values)],
            env={**self.environment, **own, "GITHUB_OUTPUT": str(output)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout, done.stderr)  # pytest shows it where a step fails
        assert "Traceback" not in done.stderr
        rows = [line.partition("=") for line in output.read_text().splitlines()]
        return done.returncode, {name: value for name, _, value in rows}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: values[found[1]], text)


def _included(jobs: str) -> list[dict[str, str]]:
    return list(json.loads(jobs)["include"])


@pytest.mark.usefixtures("pinned")
def test_every_step_of_ci(tmp_path: Path, served_patchkit: str) -> None:
    jobs, runner = load(".github/workflows/ci.yml")["jobs"], Runner(tmp_path, served_patchkit)
    assert runner.job("test", jobs["test"], {"python": "3.11", "make": "check"}) == [0]
    assert runner.job("plan", jobs["plan"], {}) == [0, 0]
    (only,) = _included(runner.outputs["plan"]["jobs"])
    assert runner.job("patches", jobs["patches"], only) == [0]
    assert runner.job("report", jobs["report"], {}) == [0, 0]
    page = (runner.artifacts / "report" / "patchkit.html").read_text(encoding="utf-8")
    assert "ours.patch" in page
    assert runner.summary.read_text().count("demo: demo drift") == 2  # of the job, and of all


def test_every_step_of_drift(pinned: Project, tmp_path: Path, served_patchkit: str) -> None:
    jobs, runner = load(".github/workflows/drift.yml")["jobs"], Runner(tmp_path, served_patchkit)
    assert runner.job("drift", jobs["drift"], {}) == [0, 0, 0]
    assert "ours.patch" in (runner.artifacts / "drift" / "drift.html").read_text(encoding="utf-8")
    (only,) = _included(runner.outputs["drift"]["jobs"])
    after = {**only, "name": "demo"}
    assert runner.job("bump", jobs["bump"], after) == [0]
    pushed = git_in(tmp_path / "origin.git", "show", "--format=%s", "patchkit/bump-demo-demo")
    assert b"Bump demo of demo" in pushed
    assert (tmp_path / "gh.log").read_text().splitlines()[1].startswith("pr create")


def _gitlab(name: str) -> dict[str, Any]:
    """A job of the template with what it extends."""
    template = load("ci/gitlab.yml")
    job = template[name]
    base = _gitlab(job["extends"]) if "extends" in job else {}
    variables = {**base.get("variables", {}), **job.get("variables", {})}
    return {**base, **job, "variables": variables}


def test_every_step_of_the_gitlab_template(
    pinned: Project, tmp_path: Path, served_patchkit: str
) -> None:
    runner = Runner(tmp_path, served_patchkit)
    place = {**runner.environment, "CI_PROJECT_DIR": str(pinned.root)}
    for name in (".patchkit", ".patchkit-report"):
        job = _gitlab(name)
        own = {
            k: v.replace("$CI_PROJECT_DIR", str(pinned.root)) for k, v in job["variables"].items()
        }
        script = "\n".join([*job["before_script"], *job["script"]])
        if name == ".patchkit":
            matrix = pinned.run("ci", "--matrix", "--json").ok().json["jobs"]
            own |= {"PATCHKIT_JOB": matrix[0]["name"], "PATCHKIT_SELECTION": matrix[0]["options"]}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            env={**place, **own},
            cwd=pinned.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert "ours.patch" in (pinned.root / "patchkit.xml").read_text(encoding="utf-8")
    assert "ours.patch" in (pinned.root / "patchkit.html").read_text(encoding="utf-8")
