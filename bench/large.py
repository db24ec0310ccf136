"""How costs grow with one component: large upstreams, and long series.

    python -m bench.large [--files 5000,20000,80000] [--patches 1000,5000] [--write PAGE]

Made-up upstreams (`bench.scenes`): 50 patches on so many files, and so many patches on 1,500 files.
Each command runs once, after what it needs; the growth is the exponent of the power law through
its CPU times, 1 for linear.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figures import growth_rows, machine, numbers, print_and_write, today
from bench.measure import Command, Cost, run_once, use_bytecode
from bench.peers import appliers
from bench.run import applying, fetching, seal
from bench.scenes import Scene, made_up, make_scene

_PATCHKIT = [sys.executable, "-m", "patchkit"]
_PATCHES = 50
_MARK = "python -m bench.large"


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as name:
        folder = Path(name)
        seal(folder)
        use_bytecode()
        print_and_write(_lines(folder, options), options.write, _MARK)


def _lines(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    yield f"{machine()}. {today()}.\n"
    yield "| | size | CPU s | wall s | peak MiB | growth |"
    yield "|---|--:|--:|--:|--:|--:|"
    yield from _large_upstreams(folder, options.files)
    yield from _long_series(folder, options.patches)


def _large_upstreams(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """50 patches on upstreams of so many files: fetched, applied for the first time and again."""
    costs: dict[str, list[Cost]] = {}
    for size in sizes:
        place = folder / f"files-{size}"
        scene = make_scene(place, made_up(place, _PATCHES, size), _PATCHKIT)
        for command in (*fetching(scene), *_first_and_again(scene)):
            costs.setdefault(command.name, []).append(run_once(command))
        shutil.rmtree(place)
    yield from growth_rows("files", sizes, costs)


def _first_and_again(scene: Scene) -> Iterator[Command]:
    copy, workspace = scene.clone.with_name("copy"), scene.project / "workspace"

    def forget() -> None:
        for each in (copy, workspace):
            shutil.rmtree(each, ignore_errors=True)

    clone = ["git", "clone", "-q", "--shared", "-b", "base", str(scene.upstream), str(copy)]
    yield Command("git clone --shared", clone, prepare=forget)
    argv = [*_PATCHKIT, "apply", "-m", "stack", "-q"]
    yield Command("patchkit apply, first", argv, scene.project, forget)
    yield Command("patchkit apply, again", argv, scene.project)
    yield Command("patchkit status", [*_PATCHKIT, "status", "-m", "stack"], scene.project)


def _long_series(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """So many patches on 1,500 files."""
    costs: dict[str, list[Cost]] = {}
    for size in sizes:
        place = folder / f"patches-{size}"
        scene = make_scene(place, made_up(place, size), _PATCHKIT)
        git_am = next(each for each in appliers(scene) if each.name == "git am")
        apply, again = applying(scene)
        others = [
            Command(f"patchkit {name}", [*_PATCHKIT, name, "-m", "stack", "-q"], scene.project)
            for name in ("check", "status", "refresh")
        ]
        for command in (git_am, apply, again, *others):
            costs.setdefault(command.name, []).append(run_once(command))
        shutil.rmtree(place)
    yield from growth_rows("patches", sizes, costs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how costs grow with one component.")
    parser.add_argument("--files", type=numbers, default=[5_000, 20_000, 80_000])
    parser.add_argument("--patches", type=numbers, default=[1_000, 5_000])
    parser.add_argument("--write", type=Path, help="put the figures between this page's marks")
    return parser.parse_args()


if __name__ == "__main__":
    main()
