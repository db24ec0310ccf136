"""How costs grow beyond one stack: long histories, many components, and a queue of CI jobs.

    python -m bench.scale [--commits 10000,50000] [--components 5,20,50] [--write PAGE]

Histories are made up (`bench.scenes`), with 20 patches. The queue is simulated: each job that
`patchkit ci --matrix` cuts 50 manifests into is run by itself, one after the other, and what 10
workers would take follows from the times of the jobs, given out in order to whoever is free.
"""

from __future__ import annotations

import argparse
import heapq
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figures import growth_rows, machine, numbers, print_and_write, today
from bench.measure import Command, Cost, run_once, use_bytecode
from bench.moving import drifting
from bench.run import seal
from bench.scenes import Scene, made_up, make_scene

_PATCHKIT = [sys.executable, "-m", "patchkit"]
_PATCHES = 20
_FILES = 500
_MANIFESTS = 50
_UPSTREAMS = 5
_WORKERS = 10
_MARK = "python -m bench.scale"


def main() -> None:
    options = _arguments()
    use_bytecode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seal(folder)
        print_and_write(_lines(folder, options), options.write, _MARK)


def _lines(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    yield f"{machine()}. {today()}."
    yield ""
    yield "| | size | CPU s | wall s | peak MiB | growth |"
    yield "|---|--:|--:|--:|--:|--:|"
    yield from _many_components(folder, options.components)
    yield from _long_histories(folder, options.commits)
    yield ""
    yield from _queue(folder)


def _long_histories(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """Drift and bump along made-up lines of so many commits."""
    costs: dict[str, list[Cost]] = {}
    for size in sizes:
        place = folder / f"commits-{size}"
        scene = make_scene(place, made_up(place, _PATCHES, _FILES, later=size), _PATCHKIT)
        walk, _, *drift = drifting(scene, _PATCHKIT)
        for command in (walk, *drift, _bump(scene)):
            costs.setdefault(command.name, []).append(run_once(command))
        shutil.rmtree(place)
    yield from growth_rows("commits", sizes, costs)


def _bump(scene: Scene) -> Command:
    argv = [*_PATCHKIT, "bump", "upstream", "--to", "later", "-m", "stack", "--dry-run", "-q"]
    cache = scene.project / "bump-cache"
    return Command(
        "patchkit bump --dry-run, cold",
        [*argv, "--cache", str(cache)],
        scene.project,
        lambda: shutil.rmtree(cache, ignore_errors=True),
    )


def _many_components(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """Check and ci of one manifest with so many components, each with its own patches."""
    costs: dict[str, list[Cost]] = {}
    for size in sizes:
        place = folder / f"components-{size}"
        scenes = _upstreams(place)
        project = place / "project"
        _manifest(project, "many", [scenes[n % len(scenes)] for n in range(size)])
        for name in ("check", "ci"):
            cache = project / f"cache-{name}"
            argv = [*_PATCHKIT, name, "-m", "many", "-q", "--cache", str(cache)]
            for how in ("cold", "again"):
                costs.setdefault(f"patchkit {name}, {how}", []).append(
                    run_once(Command(name, argv, project))
                )
        shutil.rmtree(place)
    yield from growth_rows("components", sizes, costs)


def _upstreams(folder: Path) -> list[Scene]:
    places = [folder / f"upstream-{number}" for number in range(_UPSTREAMS)]
    return [make_scene(each, made_up(each, 3, 200), _PATCHKIT) for each in places]


def _manifest(project: Path, name: str, scenes: Sequence[Scene]) -> None:
    """A manifest with a component for each scene, all of them tracking nothing."""
    text = ["version: 1", "components:"]
    for number, scene in enumerate(scenes):
        component = f"part-{number}"
        source = (scene.project / "manifests" / "stack.yaml").read_text()
        body = source.partition("  upstream:\n")[2]
        text += [f"  {component}:", body.replace("patches/upstream", f"patches/{component}")]
        patches = project / "patches" / component
        if not patches.exists():
            shutil.copytree(scene.project / "patches" / "upstream", patches)
    (project / "manifests").mkdir(parents=True, exist_ok=True)
    (project / "manifests" / f"{name}.yaml").write_text("\n".join(text) + "\n")


def _queue(folder: Path) -> Iterator[str]:
    """50 manifests by `ci --matrix` in 10 workers, against one machine; what joining them costs."""
    place = folder / "queue"
    scenes = _upstreams(place)
    project = place / "project"
    for number in range(_MANIFESTS):
        _manifest(project, f"stack-{number:02}", scenes[: 1 + number % 3])
    asked = [*_PATCHKIT, "ci", "--matrix", "--json"]
    said = subprocess.run(asked, cwd=project, check=True, capture_output=True).stdout
    (project / "jobs.json").write_bytes(said)
    jobs = json.loads(said)["jobs"]
    every = [str(each) for each in sorted((project / "manifests").glob("*.yaml"))]
    named = [part for each in every for part in ("-m", each)]
    yield f"{_MANIFESTS} manifests, {len(jobs)} jobs of `patchkit ci --matrix`:"
    yield ""
    yield "| | CPU s | wall s |"
    yield "|---|--:|--:|"
    cache = place / "cache"
    whole = [*_PATCHKIT, "ci", *named, "-q", "--cache", str(cache)]
    alone = {how: run_once(Command("ci", whole, project)) for how in ("cold", "warm")}
    for how, one in alone.items():
        costs = []
        for number, job in enumerate(jobs):
            own = cache if how == "warm" else place / "caches" / str(number)
            argv = [*_PATCHKIT, "ci", *shlex.split(job["options"]), "--cache", str(own)]
            argv += ["-q", "--format", "json", "--output", str(project / f"result-{number}.json")]
            costs.append(run_once(Command("ci", argv, project)))
        yield f"| one `patchkit ci` over all, {how} | {one.cpu:.1f} | {one.wall:.1f} |"
        total, wall = sum(each.cpu for each in costs), _makespan([each.wall for each in costs])
        caches = "one cache for all" if how == "warm" else "a cache of its own for each job"
        yield f"| {_WORKERS} workers, {how}, {caches} | {total:.1f} | {wall:.1f} |"
    results = [str(each) for each in sorted(project.glob("result-*.json"))]
    argv = [*_PATCHKIT, "ci", "--merge", "jobs.json", *results]
    argv += ["-q", "--format", "json", "-o", "all.json"]
    merged = run_once(Command("merge", argv, project))
    figures = f"{merged.cpu:.2f} | {merged.wall:.2f}"
    yield f"| `patchkit ci --merge` of {len(results)} results | {figures} |"


def _makespan(seconds: Sequence[float]) -> float:
    """What workers take together, each job given in order to the one that is free first."""
    free = [0.0] * _WORKERS
    for each in seconds:
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how costs grow.")
    parser.add_argument("--commits", type=numbers, default=[10_000, 50_000])
    parser.add_argument("--components", type=numbers, default=[5, 20, 50])
    parser.add_argument("--write", type=Path, help="put the figures between this page's marks")
    return parser.parse_args()


if __name__ == "__main__":
    main()
