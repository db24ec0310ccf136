"""How many git processes a command starts, how many files it reads; docs/evidence.md says so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.page import PROCESSES
from patchkit.workspace.contents import blob_id
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

_SCRIPT = """\
import sys, threading
sys.path[:] = {path!r}
def note(event, args):
    if event == "subprocess.Popen":
        words = [w for w in args[1][1:] if not w.startswith("-") and "=" not in w]
        print("git:", words[0], file=sys.stderr)
def look(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "read_many":
        if frame.f_locals["kind"] == "blob":
            print("blobs:", *frame.f_locals["oids"], file=sys.stderr)
sys.addaudithook(note)
if {blobs}:  # to look at each call takes as long as all else
    threading.setprofile(look)
    sys.setprofile(look)
from patchkit.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def started(
    *argv: str, cwd: Path, code: int = 0, blobs: bool = False
) -> tuple[list[str], set[str]]:
    """The git commands that a command line starts, in order; the blobs that it reads, if asked."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(path=sys.path, blobs=blobs), *argv],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    read = re.findall(r"(?m)^blobs: (.*)$", done.stderr)
    return re.findall(r"(?m)^git: (.*)$", done.stderr), set(" ".join(read).split())


@pytest.mark.parametrize("name", PROCESSES)
def test_a_command_starts_so_many(name: str, project: Project, upstream: Upstream) -> None:
    old = {"a": "1\n", "b": "1\n"}
    pin = upstream.commit(old)
    patches = {"two.patch": make_patch(old, old | {"a": "2\n"}, body="Because.")}
    project.component("demo", upstream, pin, {} if "base" in name else patches)
    project.run("apply").ok()
    if "base" in name:
        project.component("demo", upstream, pin, patches)
    if name == "apply, a patch changed":
        changed = make_patch(old, old | {"a": "3\n"}, body="Because.")
        project.write({"patches/demo/two.patch": changed})
    argv = [name.split(",", maxsplit=1)[0], *(["--accept"] if "changed" in name else [])]
    if argv[0] in ("bump", "drift"):
        project.component("demo", upstream, pin, patches, track="main")
        upstream.commit({"b": "2\n"})
        argv += ["demo", "--to", "latest", "--dry-run"] if argv[0] == "bump" else []
        project.run(*argv).ok()
    assert started(*argv, "--quiet", cwd=project.root)[0] == PROCESSES[name].split()


def test_what_a_server_sends_unasked_is_not_fetched_again(
    project: Project, upstream: Upstream
) -> None:
    """One that knows no filter sends the trees and files of a history with its commits."""
    upstream.git("config", "uploadpack.allowFilter", "false")
    patches = {"two.patch": make_patch({"a": "1\n"}, {"a": "2\n"}, body="Because.")}
    project.component("demo", upstream, {"a": "1\n"}, patches, track="main")
    upstream.commit({"a": "1\n", "b": "2\n"})
    project.run("fetch").ok()
    assert started("drift", "--quiet", cwd=project.root)[0].count("fetch") == 1


def _far(project: Project, upstream: Upstream, patches: int, commits: int) -> set[str]:
    """Patches of a file each, and commits of which every other one changes such a file.

    Returns the ids of all that these files ever were.
    """
    upstream.git("config", "uploadpack.allowFilter", "true")
    now = {f"{n}.py": "".join(f"{n} {line}\n" for line in range(99)) for n in range(40)}
    start, series = upstream.commit(now), {}
    ever = {blob_id(now[f"{n}.py"].encode()) for n in range(patches)}
    for n in range(patches):
        new = {f"{n}.py": now[f"{n}.py"].replace(f"{n} 3\n", "ours\n")}
        ever.add(blob_id(new[f"{n}.py"].encode()))
        series[f"{n}.patch"] = make_patch(now, new, subject=f"Ours {n}", body="Because.")
    project.component("demo", upstream, start, series, track="main")
    for number in range(commits):
        n = 30 + number % 9 if number % 2 else number // 2 % patches
        now[f"{n}.py"] = now[f"{n}.py"].replace(f"{n} {10 + number}\n", "theirs\n")
        upstream.commit({f"{n}.py": now[f"{n}.py"]}, f"Commit {number}")
        if n < patches:
            text = now[f"{n}.py"]
            ever |= {blob_id(text.encode()), blob_id(text.replace(f"{n} 3\n", "ours\n").encode())}
    project.run("fetch").ok()
    return ever


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["bump", "demo", "--to", "latest", "--dry-run"], ["drift"]])
def test_neither_commits_nor_patches_cost_a_process(tmp_path: Path, argv: list[str]) -> None:
    counts = []
    for patches, commits in ((2, 8), (8, 40)):
        folder = tmp_path / str(commits)
        upstream, project = Upstream.create(folder / "u.git"), Project(folder / "project")
        ever = _far(project, upstream, patches, commits)
        processes, read = started(*argv, "--quiet", cwd=project.root, blobs=True)
        assert read, "nothing was looked at"
        assert read <= ever, "a file that no patch changes"
        counts.append(processes)
    assert len(counts[0]) == len(counts[1]), counts


def test_conflicts_cost_no_fetch_each(tmp_path: Path) -> None:
    fetches = []
    for files in (3, 12):
        upstream = Upstream.create(tmp_path / f"{files}.git")
        upstream.git("config", "uploadpack.allowFilter", "true")
        project = Project(tmp_path / f"project-{files}")
        old = {f"{n}.py": f"first {n}\nsecond {n}\nthird {n}\n" for n in range(files)}
        pin = upstream.commit(old)
        series = {}
        for name, text in old.items():
            new = old | {name: text.replace("second", "ours")}
            series[f"{name}.patch"] = make_patch(old, new, body="Because.")
            upstream.commit({name: text.replace("second", "halfway")})
            upstream.commit({name: text.replace("second", "theirs")})
        project.component("demo", upstream, pin, series, track="main")
        project.run("fetch").ok()
        argv = ["bump", "demo", "--to", "latest", "--dry-run", "--skip-conflicts", "--quiet"]
        processes, _ = started(*argv, cwd=project.root, code=1)
        fetches.append(processes.count("fetch"))
    assert fetches[0] == fetches[1] <= 8, fetches
