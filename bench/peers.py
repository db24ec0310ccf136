"""The other tools that put a stack of patches on a base, each in a clone of its own.

Every one ends with a checkout that has the stack's tree; all but quilt with one commit per patch.
`git rebase` and `git replay` start from commits that exist already: they read no patch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.measure import Command
from bench.scenes import Scene, git, put_clone_back

_CONTROL = "Source: bench\n\nPackage: bench\nArchitecture: all\n"


def appliers(scene: Scene) -> list[Command]:
    """`git am` first: it is what the others are compared with."""
    mailbox = scene.mailbox
    return [
        _am(scene, "git am"),
        _am(scene, "git am -3", "-3"),
        _quilt(scene),
        _stgit(scene, ["stg", "import", "--output", str(mailbox)]),
        _gbp(scene),
        _rebase(scene),
        _replay(scene),
        _floor(scene),
    ]


def _am(scene: Scene, name: str, *options: str) -> Command:
    clone = scene.clone
    argv = ["git", "am", "-q", "--keep-cr", *options, str(scene.mailbox)]
    return Command(name, argv, clone, lambda: put_clone_back(clone))


def _quilt(scene: Scene) -> Command:
    clone = _clone(scene, "quilt")
    folder = clone / "patches"

    def prepare() -> None:
        shutil.rmtree(clone / ".pc", ignore_errors=True)
        put_clone_back(clone)
        folder.mkdir()
        for patch in scene.patches:
            shutil.copy(patch, folder / patch.name)
        (folder / "series").write_text("".join(f"{patch.name}\n" for patch in scene.patches))

    return _present("quilt push -a", ["quilt", "push", "-aq"], clone, prepare)


def _stgit(scene: Scene, argv: list[str]) -> Command:
    clone = _clone(scene, "stgit")

    def prepare() -> None:
        subprocess.run(
            ["stg", "branch", "--cleanup", "--force", "work"],
            cwd=clone,
            capture_output=True,
            check=False,
        )
        put_clone_back(clone)
        subprocess.run(["stg", "init"], cwd=clone, capture_output=True, check=True)

    return _present("stg import", argv, clone, prepare)


def _gbp(scene: Scene) -> Command:
    clone = _clone(scene, "gbp")
    put_clone_back(clone)
    patches = clone / "debian" / "patches"
    patches.mkdir(parents=True)
    (clone / "debian" / "control").write_text(_CONTROL)
    for patch in scene.patches:
        shutil.copy(patch, patches / patch.name)
    (patches / "series").write_text("".join(f"{patch.name}\n" for patch in scene.patches))
    git(clone, "add", "--force", "debian")
    git(clone, "commit", "--quiet", "-m", "debian")
    git(clone, "branch", "packaged")

    def prepare() -> None:
        git(clone, "checkout", "--quiet", "--force", "-B", "work", "packaged")
        subprocess.run(["gbp", "pq", "drop"], cwd=clone, capture_output=True, check=True)

    return _present("gbp pq import", ["gbp", "pq", "import"], clone, prepare)


def _rebase(scene: Scene) -> Command:
    clone = _clone(scene, "rebase")
    other = _elsewhere(clone)

    def prepare() -> None:
        git(clone, "checkout", "--quiet", "--force", "-B", "work", "origin/stack")

    argv = ["git", "rebase", "--quiet", "--onto", other, "origin/base", "work"]
    return Command("git rebase, of commits", argv, clone, prepare)


def _replay(scene: Scene) -> Command:
    clone = _clone(scene, "replay")
    other = _elsewhere(clone)
    known = subprocess.run(["git", "replay", "-h"], cwd=clone, capture_output=True, check=False)
    missing = "" if known.returncode == 129 else "this git has no `git replay`"
    argv = ["git", "replay", "--onto", other, "origin/base..work"]
    return Command(
        "git replay, of commits, no checkout",
        argv,
        clone,
        lambda: void(git(clone, "checkout", "--quiet", "-B", "work", "origin/stack")),
        missing,
    )


def _floor(scene: Scene) -> Command:
    clone = _clone(scene, "floor")
    argv = ["git", "checkout", "--quiet", "--detach", "origin/stack"]
    return Command("floor: git checkout", argv, clone, lambda: put_clone_back(clone))


def void(_: object) -> None:
    """Nothing."""


def _elsewhere(clone: Path) -> str:
    """A commit beside the base, so that rebasing to it is work: it has one file more."""
    put_clone_back(clone)
    (clone / "one-file-more").write_text("")
    git(clone, "add", "--force", "one-file-more")
    git(clone, "commit", "--quiet", "-m", "One file more")
    return git(clone, "rev-parse", "HEAD")


def _clone(scene: Scene, name: str) -> Path:
    clone = scene.clone.with_name(f"clone-{name}")
    shared = ("clone", "--quiet", "--shared", "--branch", "base")
    git(clone.parent, *shared, str(scene.upstream), str(clone))
    return clone


def _present(name: str, argv: list[str], folder: Path, prepare: Callable[[], None]) -> Command:
    """The command, or word that its program is not there."""
    found = shutil.which(argv[0], path=os.environ["PATH"])
    return Command(name, argv, folder, prepare, "" if found else f"no {argv[0]} here")
