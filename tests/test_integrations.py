"""What CI loads from here: actions, workflows, the GitLab template, hooks, the matcher."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from patchkit.cli.catalog import all_commands, split_command
from patchkit.cli.command import load_command
from patchkit.errors import ExitCode
from tests.drift.lines import numbered
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in, make_patch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
WORKFLOWS = [f".github/workflows/{name}.yml" for name in ("ci", "drift", "release")]
ACTIONS = ["action.yml", "ci/bump/action.yml"]
FILES = [*ACTIONS, "ci/gitlab.yml", ".pre-commit-hooks.yaml", *WORKFLOWS, "mkdocs.yml"]
BASE = numbered()


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each patchkit command line in a file's scripts: (command, arguments)."""
    bare = re.sub(r"(?m)^\s*#.*$", "", text)
    joined = re.sub(r"\\\n\s*", "", re.sub(r"\n\s+(?=--)", " ", bare))
    for line in re.findall(r"(?:^|[\s(-])patchkit ([a-z][^|\n)`]*)", joined):
        split = split_command(line.split())
        if split is not None:
            yield split


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("action.yml", {"ci", "ci --merge"}),
        ("ci/bump/action.yml", {"bump"}),
        ("ci/gitlab.yml", {"ci", "ci --merge", "ci --matrix", "bump"}),
        (".pre-commit-hooks.yaml", {"check --only manifest", "check"}),
        (".github/workflows/ci.yml", {"ci --matrix", "ci --merge"}),
        (".github/workflows/release.yml", {"init", "check --only manifest", "status"}),
        (
            ".github/workflows/drift.yml",
            {"ci --matrix", "drift", "ci --merge", "ci --issues", "export --format machine"},
        ),
    ],
)
def test_commands_and_options_are_real(name: str, commands: set[str]) -> None:
    found = list(_commands((ROOT / name).read_text(encoding="utf-8")))
    assert {command for command, _ in found} == commands
    for command, arguments in found:
        assert command in all_commands()
        options = [word for word in arguments if re.fullmatch(r"--[a-z-]+", word)]
        known = {name for each in load_command(command).params for name in each.opts}
        assert set(options) <= known, command


@pytest.mark.parametrize("name", ACTIONS)
def test_no_input_of_an_action_is_shell_code(name: str) -> None:
    (step,) = [each for each in load(name)["runs"]["steps"] if "run" in each]
    assert "${{" not in step["run"]
    used_by_programs = {"PATCHKIT_CACHE", "GH_TOKEN"}
    assert all(word in step["run"] for word in step["env"] if word not in used_by_programs)


def test_what_workflows_give_actions_is_taken() -> None:
    for workflow in WORKFLOWS:
        for job in load(workflow)["jobs"].values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("./"):
                    action = load(f"{step['uses']}/action.yml".removeprefix(".//"))
                    assert step["with"].keys() <= action["inputs"].keys()


def _script(name: str) -> str:
    """What an action runs."""
    (step,) = [each for each in load(name)["runs"]["steps"] if "run" in each]
    return str(step["run"])


def _fakes(folder: Path, programs: Mapping[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return folder


def _run(
    script: str, cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    bash = shutil.which("bash")
    assert bash is not None
    argv = [bash, "-eo", "pipefail", "-c", script]
    return subprocess.run(
        argv, env=dict(environment), cwd=cwd, capture_output=True, text=True, check=False
    )


def test_the_action_passes_its_inputs(tmp_path: Path) -> None:
    patchkit = 'echo "$@"; case $1 in ci) : > out.json; exit 3;; esac'
    fake = _fakes(tmp_path / "bin", {"python": "exit 0", "patchkit": patchkit})
    environment = {
        "PATH": f"{fake}:/usr/bin:/bin",
        "ACTION": "there",
        "MANIFESTS": "one two; touch evil",
        "SELECTION": "--component x",
        "STRICT": "true",
        "ALLOW_DRIFT": "false",
        "RESULT": "out.json",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = _run(_script("action.yml"), tmp_path, environment)
    chosen = "--component x --manifest one --manifest two; --manifest touch --manifest evil"
    assert (done.returncode, done.stdout.splitlines()) == (
        3,
        [
            "::add-matcher::there/ci/problem-matcher.json",
            f"ci {chosen} --strict --quiet --format json --output out.json",
            "ci --merge out.json --format github",
        ],
    )
    assert (tmp_path / "summary").read_text() == "ci --merge out.json --format markdown\n"
    assert not (tmp_path / "evil").exists()


@pytest.fixture
def pinned(project: Project, upstream: Upstream) -> Project:
    return with_origin(project, upstream)


def with_origin(project: Project, upstream: Upstream) -> Project:
    """A project with an origin, whose patch fits the branch beyond its pin."""
    pin = upstream.commit({"a.py": BASE})
    body = "Because it has to be.\n\nUpstream-Status: Pending"
    ours = make_patch({"a.py": BASE}, {"a.py": numbered(l6="ours")}, subject="Ours", body=body)
    project.component("demo", upstream, pin, {"ours.patch": ours}, track="main")
    project.prepare("apply", "--accept").ok()
    shutil.rmtree(project.root / "workspace")
    upstream.commit({"a.py": f"more\n{BASE}"}, "Move on")
    origin = project.root.parent / "origin.git"
    git_in(project.root.parent, "init", "-q", "--bare", "-b", "main", "origin.git")
    for argv in (
        ("init", "-q", "-b", "main"),
        ("remote", "add", "origin", str(origin)),
        ("add", "--all"),
        ("commit", "-q", "-m", "Start"),
        ("push", "-q", "origin", "main"),
    ):
        git_in(project.root, *argv)
    return project


@dataclass
class Around:
    """An environment with the real patchkit and git, and fakes of what reaches out."""

    folder: Path
    patchkit: str
    variables: dict[str, str] = field(default_factory=dict)

    def fake(self, **programs: str) -> None:
        """Put programs on its path."""
        fake = _fakes(self.folder / "bin", {**programs, "patchkit": self.patchkit})
        path = f"{fake}:{os.environ['PATH']}"
        self.variables |= {**os.environ, "PATH": path, "LOG": str(self.folder / "log")}

    def bumps(self, *, after: str = "") -> None:
        """Give it what the action for bumps asks for, and a program that opens pull requests."""
        gh = 'echo "$*" >> "$LOG"; case "$2" in create) echo https://example.com/pull/1;; esac'
        self.fake(python="exit 0", gh=gh)
        files = {"BODY": "body.md", "GITHUB_STEP_SUMMARY": "summary", "GITHUB_OUTPUT": "output"}
        self.variables |= {name: str(self.folder / file) for name, file in files.items()}
        self.variables |= {"ACTION": ".", "MANIFEST": "demo", "COMPONENT": "demo", "AFTER": after}
        self.variables |= {"GITHUB_REF_NAME": "main"}

    def run(self, script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return _run(script, cwd, self.variables)

    def log(self) -> list[str]:
        """What the fakes were asked for."""
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def origin(self, *argv: str) -> str:
        """What git says of the repository that is pushed to."""
        return git_in(self.folder / "origin.git", *argv).decode()


@pytest.fixture
def around(tmp_path: Path, served_patchkit: str) -> Around:
    """The surroundings of a job."""
    return Around(tmp_path, served_patchkit)


def test_a_night_leaves_a_page_and_a_text_for_each_cause(
    pinned: Project, upstream: Upstream, tmp_path: Path, around: Around
) -> None:
    broken = upstream.commit({"a.py": BASE.replace("l6", "theirs")}, "Say it otherwise")
    steps = load(".github/workflows/drift.yml")["jobs"]["drift"]["steps"]
    (script,) = [step["run"] for step in steps if "patchkit drift" in step.get("run", "")]
    around.fake()
    summary = tmp_path / "summary"
    kept = {"PATCHKIT_CACHE": str(tmp_path / "kept"), "GITHUB_STEP_SUMMARY": str(summary)}
    around.variables |= kept
    done = around.run(script, pinned.root)
    assert done.returncode == 1, done.stderr
    (text,) = (pinned.root / "issues").glob("*.md")
    for told in (summary, pinned.root / "drift.html", text):
        assert broken[:10] in told.read_text("utf-8"), told


BUMP = "ci/bump/action.yml"
BRANCH = "patchkit/bump-demo-demo"


def test_a_bump_becomes_a_pull_request(pinned: Project, tmp_path: Path, around: Around) -> None:
    around.bumps(after='echo "$MANIFEST" > after.txt')
    done = around.run(_script(BUMP), pinned.root)
    assert done.returncode == 0, done.stderr
    listed, created, ready = around.log()
    assert ready == "pr ready https://example.com/pull/1"
    assert listed.startswith(f"pr list --head {BRANCH} --state open")
    assert created == (
        f"pr create --head {BRANCH} --base main --title Bump demo of demo --body-file"
        f" {tmp_path / 'body.md'}"
    )
    assert "ours" in (tmp_path / "summary").read_text()
    assert (tmp_path / "output").read_text() == "pull-request=https://example.com/pull/1\n"
    pushed = around.origin("show", "--stat=200", "--format=%s", BRANCH)
    assert pushed.startswith("Bump demo of demo\n")
    assert "manifests/demo.yaml" in pushed
    assert "after.txt" in pushed
    again = around.run(_script(BUMP), pinned.root)  # there is nothing more to move
    assert again.returncode == 0, again.stderr
    assert len(around.log()) == 3


def test_a_branch_with_commits_of_somebody_else_is_left_alone(
    pinned: Project, around: Around
) -> None:
    git_in(pinned.root, "switch", "-q", "-c", BRANCH)
    git_in(pinned.root, "commit", "-q", "--allow-empty", "-m", "A reviewer's own")
    git_in(pinned.root, "push", "-q", "origin", BRANCH)
    git_in(pinned.root, "switch", "-q", "main")
    before = around.origin("rev-parse", BRANCH)
    around.bumps()
    done = around.run(_script(BUMP), pinned.root)
    assert done.returncode == 0, done.stderr
    assert "commits of somebody else" in done.stdout
    assert around.origin("rev-parse", BRANCH) == before
    assert around.log() == []


def test_a_bump_that_does_not_fit_is_red_and_a_draft(
    pinned: Project, upstream: Upstream, tmp_path: Path, around: Around
) -> None:
    upstream.commit({"a.py": numbered(l6="theirs")}, "The same line")
    around.bumps()
    assert around.run(_script(BUMP), pinned.root).returncode == 3
    assert "ours" in (tmp_path / "summary").read_text()
    assert "### Left to do" in (tmp_path / "body.md").read_text()
    _, created, ready = around.log()
    assert created.endswith(" --draft")
    assert ready.endswith("--undo")
    around.origin("rev-parse", "--verify", BRANCH)


def test_a_bump_becomes_a_merge_request(pinned: Project, around: Around) -> None:
    script = "\n".join(load("ci/gitlab.yml")[".patchkit-bump"]["script"])
    script = script.replace(
        '"https://patchkit:$PATCHKIT_TOKEN@$CI_SERVER_HOST/$CI_PROJECT_PATH.git"', "origin"
    )
    around.fake(curl='printf "%s\\n" "$*" >> "$LOG"; case "$*" in *--get*) echo "$KNOWN";; esac')
    cache = Path(f"{pinned.root}.patchkit-cache")
    cache.mkdir()
    around.variables |= {
        "PATCHKIT_CACHE": str(cache),
        "CI_API_V4_URL": "https://example.com/api",
        "CI_PROJECT_ID": "7",
        "CI_DEFAULT_BRANCH": "main",
        "PATCHKIT_MANIFEST": "demo",
        "PATCHKIT_COMPONENT": "demo",
        "PATCHKIT_TOKEN": "secret",
        "KNOWN": "[]",
    }
    done = around.run(script, pinned.root)
    assert done.returncode == 0, done.stderr
    _, made = around.log()
    assert "--request POST https://example.com/api/projects/7/merge_requests" in made
    assert "title=Bump demo of demo" in made
    assert "secret" not in "".join([*around.log(), done.stdout, done.stderr])
    around.origin("rev-parse", "--verify", BRANCH)
    git_in(pinned.root, "checkout", "-q", "main")
    around.variables["KNOWN"] = '[{"iid": 12}]'
    assert around.run(script, pinned.root).returncode == 0
    changed = around.log()[-1]
    assert "--request PUT https://example.com/api/projects/7/merge_requests/12" in changed


def test_the_gitlab_template_takes_its_cache_from_no_commit(
    pinned: Project, tmp_path: Path, around: Around
) -> None:
    """What GitLab restored is used; a folder, link or submodule of the merge request is not."""
    base = load("ci/gitlab.yml")[".patchkit-base"]
    cache, restored = Path(f"{pinned.root}.patchkit-cache"), pinned.root / ".patchkit-cache"
    around.fake(python="exit 0")
    place = base["variables"]["PATCHKIT_CACHE"].replace("$CI_PROJECT_DIR", str(pinned.root))
    around.variables |= {"CI": "true", "PATCHKIT_CACHE": place}
    script = "\n".join([*base["before_script"], "patchkit fetch -q", *base["after_script"]])
    assert around.run(script, pinned.root).returncode == 0
    assert (restored.is_dir(), cache.exists()) == (True, False)
    (restored / "mark").touch()
    before = "\n".join([*base["before_script"], "patchkit fetch -q --offline"])
    assert around.run(before, pinned.root).returncode == 0
    assert (cache / "mark").exists()
    write_files(restored, {"x": ""})
    for tracked in (".patchkit-cache/x", ".patchkit-cache"):
        git_in(pinned.root, "add", "--force", tracked)
        done = around.run(before, pinned.root)
        assert done.returncode == 1, tracked
        assert "is tracked by git" in done.stdout
        git_in(pinned.root, "rm", "-rqf", ".patchkit-cache")
        restored.symlink_to(tmp_path)


def test_no_cache_of_a_workflow_lies_in_the_checkout() -> None:
    for name in ACTIONS + WORKFLOWS:
        text = (ROOT / name).read_text(encoding="utf-8")
        for line in re.findall(r"(?:PATCHKIT_CACHE| path): (.*patchkit-cache.*)$", text, re.M):
            assert line == "${{ runner.temp }}/patchkit-cache", name


@pytest.mark.parametrize("kind", ["a file of it", "a link to it", "a link above it"])
def test_in_ci_a_tracked_cache_is_refused(
    pinned: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("CI", "true")
    below = "kept/cache" if "above" in kind else "kept"
    if kind == "a file of it":
        pinned.write({"kept/x": ""})
    else:
        (tmp_path / "elsewhere").mkdir()
        (pinned.root / "kept").symlink_to(tmp_path / "elsewhere")
    pinned.run("check", "--cache", below).ok()
    git_in(pinned.root, "add", "kept")
    pinned.run("check", "--cache", below).ends(
        ExitCode.USAGE, "is part of the checkout: git tracks kept"
    )


def test_hooks_have_what_pre_commit_asks_for() -> None:
    for hook in load(".pre-commit-hooks.yaml"):
        assert {"id", "name", "entry", "language", "files"} <= hook.keys()
        re.compile(hook["files"])


# -- the problem matcher -----------------------------------------------------------------------


def _matched(text: str) -> list[dict[str, str]]:
    """What GitHub's runner makes of a log: the patterns of a matcher hold on lines in a row."""
    found = []
    lines = text.splitlines()
    for matcher in json.loads((ROOT / "ci/problem-matcher.json").read_text())["problemMatcher"]:
        patterns = matcher["pattern"]
        for at in range(len(lines)):
            facts = {"severity": matcher.get("severity", "error")}
            for pattern, line in zip(patterns, lines[at : at + len(patterns)], strict=False):
                hit = re.search(pattern["regexp"], line)
                if hit is None:
                    break
                keys = ("severity", "file", "line", "column", "message")
                facts |= {key: hit[pattern[key]] or "" for key in keys if key in pattern}
            else:
                found.append(facts)
    return found


def _golden(name: str) -> str:
    return (ROOT / f"tests/golden/{name}.txt").read_text(encoding="utf-8")


def test_the_matcher_finds_errors_at_their_lines() -> None:
    for name in ("manifest-lint-bad", "check-corrupt"):
        text = _golden(name)
        placed = re.findall(r"(?m)^error: (\S+?):(\d+): (.+)$", text)
        assert placed
        found = [(each["file"], each["line"], each["message"]) for each in _matched(text)]
        assert found == placed


def test_the_matcher_finds_findings_and_conflicts() -> None:
    found = _matched(_golden("check-strict"))
    places = {(each["severity"], each["file"], each["line"]) for each in found}
    assert ("error", "patches/demo/raw.patch", "1") in places
    assert all(each["message"] for each in found)
    found = _matched(_golden("check-conflicted"))
    conflicts = [each for each in found if "apply" in each["message"]]
    assert {(each["severity"], Path(each["file"]).suffix) for each in conflicts} == {
        ("error", ".patch")
    }


def test_the_matcher_is_quiet_where_all_is_well() -> None:
    for name in ("check-ok", "apply-created", "exit/drift-0", "exit/ci-0"):
        assert _matched(_golden(name)) == []


# -- other people's linters --------------------------------------------------------------------


def _linter(name: str) -> str:
    """A linter beside this Python or on the PATH; skips where there is none."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _lint(*argv: str) -> None:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _fits(schema: str, *names: str) -> None:
    """In this process: its start takes a second and a half."""
    checker = pytest.importorskip("check_jsonschema").main
    done = CliRunner().invoke(checker, ["--builtin-schema", schema, *names])
    assert done.exit_code == 0, done.output


def test_actionlint_has_nothing_to_say() -> None:
    _lint(_linter("actionlint"), *WORKFLOWS)


def test_yamllint_has_nothing_to_say() -> None:
    _lint(_linter("yamllint"), "--strict", *FILES)


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("vendor.github-actions", ACTIONS),
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.gitlab-ci", ["ci/gitlab.yml"]),
        ("vendor.dependabot", [".github/dependabot.yml"]),
    ],
)
def test_files_are_what_their_schemas_ask_for(schema: str, names: list[str]) -> None:
    _fits(schema, *(str(ROOT / name) for name in names))


def test_a_generated_pipeline_is_what_its_schema_asks_for(pinned: Project) -> None:
    pinned.write({"jobs.yml": pinned.run("ci", "--matrix", "--format", "gitlab").ok().out})
    _fits("vendor.gitlab-ci", str(pinned.root / "jobs.yml"))


def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    shellcheck = _linter("shellcheck")
    for name in ACTIONS:
        script = tmp_path / f"{name.replace('/', '-')}.sh"
        script.write_text(f"#!/usr/bin/env bash\nset -eo pipefail\n{_script(name)}")
        # variables come from the environment
        _lint(shellcheck, "--exclude=SC2153,SC2154", str(script))
