"""`python bench/run.py`: what patchkit costs, as ratios.

Tables: questions about the command line against a bare interpreter; applying and checking a stack
against `git am`, `git am -3` and `git apply`. Everything is made up in a temporary folder; no
network, and nothing of the user's configuration.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.measure import Command, Row, compare
from bench.scenes import Scene, apply_all, make_scene, put_back, put_clone_back, same_tree

_PATCHKIT = [sys.executable, "-m", "patchkit"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure patchkit against git, as ratios.")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each command (9)")
    parser.add_argument("--patches", default="5,50,200", help="sizes of stacks (5,50,200)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as name:
        folder = Path(name)
        _seal(folder)
        _print_head(options.rounds)
        sizes = [int(size) for size in options.patches.split(",")]
        five = _make_five(folder / "five")
        _print_table("The command line", _command_line(five), options.rounds * 3)
        for size in sizes:
            scene = make_scene(folder / f"stack-{size}", size, _PATCHKIT)
            _print_table(f"Applying {size} patches", _applying(scene), options.rounds)
            apply_all(_PATCHKIT, scene)
            put_clone_back(scene)
            subprocess.run(["git", "am", "-q", str(scene.mailbox)], cwd=scene.clone, check=True)
            print(f"same tree as git am: {'yes' if same_tree(scene) else 'NO'}")
            _print_table(f"Checking {size} patches", _checking(scene), options.rounds)


def _command_line(project: Path) -> list[Command]:
    python = Command("python -c pass", [sys.executable, "-c", "pass"])
    asked = [["--version"], ["--help"], ["apply", "--help"], ["__complete", "apply", "-m", ""]]
    asked += [["__complete", "apply", "-m", "five", "-c", ""], ["status"]]
    names = ["--version", "--help", "apply --help", "complete a manifest", "complete a component"]
    names += ["status of five components"]
    return [python] + [
        Command(name, [*_PATCHKIT, *argv], project) for name, argv in zip(names, asked, strict=True)
    ]


def _applying(scene: Scene) -> list[Command]:
    def restore() -> None:
        put_back(scene)

    def reset() -> None:
        put_clone_back(scene)

    return [
        Command("git am", ["git", "am", "-q", scene.mailbox], scene.clone, reset),
        Command("git am -3", ["git", "am", "-q", "-3", scene.mailbox], scene.clone, reset),
        Command(
            "git apply --index, no commits",
            ["git", "apply", "--index", scene.mailbox],
            scene.clone,
            reset,
        ),
        Command(
            "patchkit apply",
            [*_PATCHKIT, "apply", "-m", "stack", "-q"],
            scene.project,
            restore,
        ),
        Command(
            "patchkit apply, again",
            [*_PATCHKIT, "apply", "-m", "stack", "-q"],
            scene.project,
        ),
    ]


def _checking(scene: Scene) -> list[Command]:
    put_clone_back(scene)
    loop = "rm -f .git/trial; export GIT_INDEX_FILE=.git/trial; git read-tree HEAD; "
    loop += 'for each in "$@"; do git apply --cached "$each" || exit 1; done'
    return [
        Command(
            "loop of git apply --cached",
            ["sh", "-c", loop, "sh", *scene.patches],
            scene.clone,
        ),
        Command(
            "git apply --check, all at once",
            ["git", "apply", "--check", scene.mailbox],
            scene.clone,
        ),
        Command("patchkit check", [*_PATCHKIT, "check", "-m", "stack", "-q"], scene.project),
    ]


def _make_five(folder: Path) -> Path:
    """A project with five components, all applied."""
    scene = make_scene(folder, 3, _PATCHKIT)
    text = (scene.project / "manifests" / "stack.yaml").read_text()
    head, _, body = text.partition("  upstream:\n")
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    for old in (scene.project / "manifests").iterdir():
        old.unlink()
    parts = [f"  {name}:\n{body.replace('patches/upstream', 'patches/' + name)}" for name in names]
    for name in names:
        shutil.copytree(scene.project / "patches" / "upstream", scene.project / "patches" / name)
    (scene.project / "manifests" / "five.yaml").write_text(head + "".join(parts))
    subprocess.run([*_PATCHKIT, "apply", "-q"], cwd=scene.project, check=True, capture_output=True)
    return scene.project


def _seal(folder: Path) -> None:
    """No configuration, identity or cache of the user's in any command that is measured."""
    for name in [each for each in os.environ if each.startswith(("GIT_", "PATCHKIT_"))]:
        del os.environ[name]
    os.environ["HOME"] = str(folder)
    os.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    os.environ["PATCHKIT_CACHE"] = str(folder / "cache")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)
    for who in ("AUTHOR", "COMMITTER"):
        os.environ[f"GIT_{who}_NAME"] = "Bench"
        os.environ[f"GIT_{who}_EMAIL"] = "bench@example.com"


def _print_head(rounds: int) -> None:
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    machine = f"{os.cpu_count()} cores, {rounds} rounds"
    print(f"Python {platform.python_version()}, {git.strip()}, {machine}.")
    print("Ratios to the first line of each table: median (quartiles); smaller is faster.")


def _print_table(title: str, commands: Sequence[Command], rounds: int) -> None:
    rows = compare(commands, rounds)
    wide = max(len(row.name) for row in rows)
    print(f"\n{title}\n  {'':{wide}}  {'CPU':>20}  {'wall':>20}  {'CPU s':>7}")
    for row in rows:
        print(_line(row, wide), flush=True)


def _line(row: Row, wide: int) -> str:
    return f"  {row.name:{wide}}  {row.cpu!s:>20}  {row.wall!s:>20}  {row.seconds:7.3f}"


if __name__ == "__main__":
    main()
