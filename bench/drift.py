"""Compare `patchkit drift` with trying each commit by `git apply`, on a real upstream.

    python -m bench.drift MANIFEST COMPONENT [--to REF] [--cache DIR] [--sample 60]

Three questions: does it say what `git apply --cached` says on a sample of commits, all changes of
state and both commits around them included; how long does it take against trying all of them; how
long against the bare `git log --first-parent --raw` over the same paths. The history and the files
must be in the cache (they are, after one `patchkit drift`): what is measured is the looking, in
CPU seconds of all processes; and the whole command, from the start of Python to the last line of
its report, with nothing remembered of earlier ones.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from patchkit.cli.main import collect_rarely
from patchkit.drift.walk import Walk, Walker, WatchedSeries, walk_history
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.manifest.load import load_manifest
from patchkit.model.outcome import Status
from patchkit.model.progress import Silent
from patchkit.stack.build import patch_changes
from patchkit.stack.generated import load_generator
from patchkit.stack.series import LoadedPatch, load_series
from patchkit.upstream.git import LATEST
from patchkit.upstream.history import History, HistoryReader, open_history
from patchkit.upstream.store import Store

_ROUNDS = 9


@dataclass(frozen=True)
class Trials:
    """What `git apply --cached` says of some commits, patch by patch, and how long it took."""

    verdicts: dict[str, tuple[bool, ...]]
    seconds: float


def main() -> None:
    options = _arguments()
    collect_rarely()
    manifest = load_manifest(Path(options.manifest))
    component = manifest.component(options.component)
    assert component is not None
    store = Store(options.cache.absolute(), offline=True)
    patches = load_series(manifest, component, store, Silent()).patches
    history = open_history(store, component, options.to or LATEST, Silent())

    recipes = load_generator(patches).recipes

    def walk(*, quick: bool = True) -> Walk:
        with ObjectReader(history.repository) as reader:
            series = WatchedSeries([patch.series_patch for patch in patches], recipes)
            return walk_history(Walker(HistoryReader(history, reader), series, quick=quick))

    found = walk()
    line = (found.line.start, *found.line.commits)
    positions = _sample(found, options.sample)
    trials = _try(history, patches, [line[each] for each in positions])
    wrong = [
        (line[each][:10], patches[n].name)
        for each in positions
        for n, said in enumerate(trials.verdicts[line[each]])
        if said is not _fits(found, n, each)
    ]
    ours, bare = _in_turn(walk, lambda: _bare_log(history, patches))
    whole, _ = _in_turn(lambda: walk(quick=False), lambda: None, rounds=1)
    with _nothing_remembered(options.cache) as cache:
        command, again = (
            _in_turn(lambda: _command(options, cache), lambda: None, rounds=1)[0] for _ in range(2)
        )
    each = trials.seconds / len(positions)
    print(f"{component.name} along {history.ref}: {len(line) - 1} commits, {len(patches)} patches")
    print(f"agrees with git apply on {len(positions) * len(patches) - len(wrong)}", end=" ")
    print(f"of {len(positions) * len(patches)} verdicts on {len(positions)} commits {wrong or ''}")
    print(f"drift            {ours:7.3f} s")
    print(f"with the carry engine's word on every version of every file: {whole:.3f} s")
    print(f"the whole command{command:6.3f} s, once more {again:.3f} s")
    print(f"bare git log     {bare:7.3f} s   drift takes {ours / bare:.1f} times as long")
    print(f"each by git apply{each * len(line):7.1f} s   ({each * 1000:.0f} ms a commit)", end=" ")
    print(f"  drift takes 1/{each * len(line) / ours:.0f}")


def _sample(walk: Walk, count: int) -> list[int]:
    """All changes of state with the commits before them, and others up to `count`."""
    changed = {change.position for changes in walk.changes for change in changes}
    length = len(walk.line.commits)
    chosen = {0, length, *changed, *(each - 1 for each in changed if each)}
    rest = [each for each in range(length + 1) if each not in chosen]
    more = random.Random(1).sample(rest, min(len(rest), max(0, count - len(chosen))))
    return sorted({*chosen, *more})


def _fits(walk: Walk, patch: int, position: int) -> bool:
    last = [each for each in walk.changes[patch] if each.position <= position][-1]
    return last.status in (Status.UNCHANGED, Status.SHIFTED)


def _try(history: History, patches: Sequence[LoadedPatch], commits: Sequence[str]) -> Trials:
    """A patch that does not apply is left out, and the next one tried without it."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, patch in enumerate(patches):
            files.append(Path(folder) / f"{number}.patch")
            files[-1].write_bytes(patch.data)
        index = Path(folder) / "index"
        git = ["git", f"--git-dir={history.repository.git_dir}"]
        environment = {"GIT_INDEX_FILE": str(index), "PATH": "/usr/bin:/bin", "HOME": folder}

        def run(*args: str) -> bool:
            done = subprocess.run([*git, *args], env=environment, capture_output=True, check=False)
            return done.returncode == 0

        verdicts = {}
        begun = _spent()
        for commit in commits:
            assert run("read-tree", commit)
            pairs = zip(patches, files, strict=True)
            verdicts[commit] = tuple(
                run("apply", "--cached", f"-p{patch.strip}", str(file)) for patch, file in pairs
            )
        return Trials(verdicts, _spent() - begun)


def _bare_log(history: History, patches: Sequence[LoadedPatch]) -> None:
    changes = [change for patch in patches for change in patch_changes(patch.series_patch)]
    paths = sorted({path for c in changes for path in (c.old_path, c.new_path) if path})
    span = f"{history.fork}..{history.tip}"
    git = ["git", f"--git-dir={history.repository.git_dir}"]
    log = ["log", "--first-parent", "-m", "--raw", "--no-renames", span, "--", *paths]
    subprocess.run([*git, *log], capture_output=True, check=True)


@contextmanager
def _nothing_remembered(cache: Path) -> Iterator[Path]:
    """A cache with the same upstreams, and nothing that earlier reports found."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("histories", "named", "repos", "files", "downloads"):
            if (cache / name).exists():
                (Path(folder) / name).symlink_to((cache / name).absolute())
        yield Path(folder)


def _command(options: argparse.Namespace, cache: Path) -> None:
    command = [sys.executable, "-m", "patchkit", "drift", "-m", options.manifest]
    command += ["-c", options.component, "--offline", f"--cache={cache}"]
    command += ["--to", options.to] if options.to else []
    assert subprocess.run(command, capture_output=True, check=False).returncode in (0, 1)


def _in_turn(
    one: Callable[[], object], other: Callable[[], object], *, rounds: int = _ROUNDS
) -> tuple[float, float]:
    """The median CPU time of each, run in turn so that a slow moment hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, taken in zip((one, other), times, strict=True):
            begun = _spent()
            work()
            taken.append(_spent() - begun)
    return statistics.median(times[0]), statistics.median(times[1])


def _spent() -> float:
    """CPU time of this process and of those that it waited for: steady on a busy machine."""
    spent = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("manifest")
    parser.add_argument("component")
    parser.add_argument("--to")
    parser.add_argument("--cache", type=Path, default=Path(".patchkit-cache"))
    parser.add_argument("--sample", type=int, default=60)
    return parser.parse_args()


if __name__ == "__main__":
    main()
