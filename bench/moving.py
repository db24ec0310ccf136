"""What it costs when upstream goes on: drift along its commits, and carrying the stack to the last.

The walk alone, on a real upstream and held against `git apply` commit by commit, is `bench.drift`;
how right carrying is where git gives up, `bench.carry`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.measure import Command
from bench.scenes import Scene, git, put_back, put_clone_back

#: At how many of the commits every patch is tried by git: at all of them would take minutes.
_TRIED = 20

#: What of a cache is not found by looking at an upstream, but is that upstream.
_FETCHED = ("repos", "histories", "files", "downloads", "locks")


def drifting(scene: Scene, patchkit: list[str]) -> list[Command]:
    """Where along upstream's commits each patch fits."""
    cache = scene.project / "drift-cache"
    argv = [*patchkit, "drift", "-m", "stack", "--to", "later", "-q", "--cache", str(cache)]

    def forget() -> None:
        for each in cache.iterdir() if cache.exists() else ():
            if each.name not in _FETCHED:
                shutil.rmtree(each)

    changed = git(scene.upstream, "diff", "--name-only", "base", "stack").splitlines()
    log = ["git", "log", "--first-parent", "--raw", "--no-renames", "base..later", "--", *changed]
    commits = git(scene.upstream, "rev-list", "--first-parent", "base..later").splitlines()
    chosen = commits[:: max(1, len(commits) // _TRIED)][:_TRIED]
    trial = (
        "export GIT_INDEX_FILE=.git/trial; for commit in $1; do git read-tree $commit || exit 1;"
    )
    trial += ' for each in $2; do git apply --cached "$each" || exit 1; done; done'
    patches = " ".join(map(str, scene.patches))
    return [
        Command("git log --raw of these paths", log, scene.upstream),
        Command(
            f"git apply --cached, at {len(chosen)} of the commits",
            ["sh", "-c", trial, "sh", " ".join(chosen), patches],
            scene.clone,
        ),
        Command("patchkit drift", argv, scene.project, forget),
        Command("patchkit drift, again", argv, scene.project),
    ]


def carrying(scene: Scene, patchkit: list[str]) -> list[Command]:
    """The stack, on upstream's last commit."""
    clone = scene.clone
    kept = scene.project.with_name("kept")
    for part in ("manifests", "patches"):
        shutil.copytree(scene.project / part, kept / part)

    def at(branch: str) -> None:
        put_clone_back(clone)
        git(clone, "checkout", "--quiet", "-B", "work", f"origin/{branch}")

    def take_back() -> None:
        for part in ("manifests", "patches"):
            shutil.rmtree(scene.project / part)
            shutil.copytree(kept / part, scene.project / part)

    rebase = ["git", "rebase", "--quiet", "--onto", "origin/later", "origin/base"]
    bump = [*patchkit, "bump", "upstream", "--to", "later", "-m", "stack", "-q"]
    return [
        Command("git rebase, of commits", rebase, clone, lambda: at("stack")),
        Command("git am -3", ["git", "am", "-q", "-3", scene.mailbox], clone, lambda: at("later")),
        Command("patchkit bump --dry-run", [*bump, "--dry-run"], scene.project, take_back),
        Command("patchkit bump: pin, patches, lock", bump, scene.project, take_back),
    ]


def carried_alike(scene: Scene, patchkit: list[str]) -> bool:
    """Whether what the last bump wrote applies to the tree that `git rebase` makes."""
    put_clone_back(scene.clone)
    git(scene.clone, "checkout", "--quiet", "-B", "work", "origin/stack")
    git(scene.clone, "rebase", "--quiet", "--onto", "origin/later", "origin/base")
    put_back(scene)
    argv = [*patchkit, "apply", "-m", "stack", "-q"]
    subprocess.run(argv, cwd=scene.project, check=True, capture_output=True)
    return _tree(scene.clone) == _tree(scene.project / "workspace" / "upstream")


def _tree(checkout: Path) -> str:
    return git(checkout, "rev-parse", "HEAD^{tree}")
