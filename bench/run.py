"""`python -m bench.run`: what patchkit costs beside its peers, as ratios.

Every table names what it is compared with in its first row. The upstream is made up, or with
`--repository` a stack of real commits of yours. No network, nothing of the user's configuration.
`--write FILE` puts the figures between the marks of docs/evidence.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.measure import Command, compare, slope, use_bytecode
from bench.moving import carried_alike, carrying, drifting
from bench.page import Page, Table
from bench.peers import appliers
from bench.scenes import (
    Scene,
    Upstream,
    apply_all,
    git,
    has_stack,
    made_up,
    make_scene,
    put_back,
    put_clone_back,
    real,
)

_PATCHKIT = [sys.executable, "-m", "patchkit"]
_FILES = (500, 2000, 8000)
_COMMITS = (500, 2000, 4000)
#: The stack that is looked at while upstream goes on.
_SMALL_STACK = 20
#: Of stacks with more patches there are three rounds at most.
_FEW = 200
#: What peers leave in a checkout beside the stack's files.
_OF_PEERS = ("one-file-more", "debian/", "patches/", ".pc/")


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as name:
        folder = Path(name)
        seal(folder)
        use_bytecode()
        page = Page(options.rounds, _subject(options.repository))
        mark = "costs, real" if options.repository else "costs"
        for table in _tables(folder, options):
            page.add(table)
            page.write(options.write, mark)  # what is measured stays, whatever ends the rest
        page.write(options.write, mark, whole=True)


def _tables(folder: Path, options: argparse.Namespace) -> Iterator[Table]:
    """With a repository of yours only what depends on its commits."""
    rounds = options.rounds
    costs: dict[str, dict[int, float]] = {"patchkit apply": {}, "patchkit check": {}}
    if not options.repository:
        yield _measured("The command line", _command_line(_five(folder / "five")), rounds * 3)
        scene = make_scene(folder / "fetched", made_up(folder / "fetched", 10), _PATCHKIT)
        yield _measured("Fetching", fetching(scene), rounds)
    took: dict[str, float] = {}  # seconds for each patch
    for size in options.patches:
        scene = _scene(folder / f"stack-{size}", size, options)
        slow = {name: each * size for name, each in took.items() if each * size > options.patience}
        for table in _of_a_stack(scene, size, rounds if size <= _FEW else min(rounds, 3), slow):
            yield table
            for row in table.rows:
                if row.name in costs:
                    costs[row.name][size] = row.seconds
                if not row.missing:
                    took[row.name] = row.seconds / size
        shutil.rmtree(folder / f"stack-{size}")
    if not options.repository:
        yield from _moving(folder / "moving", rounds)
        yield _growth(folder, costs, rounds)


def _of_a_stack(scene: Scene, size: int, rounds: int, slow: Mapping[str, float]) -> Iterator[Table]:
    """`slow`: whom to leave out, and how many seconds a run of it would take."""
    words = {name: f"left out: some {seconds:.0f} s a run" for name, seconds in slow.items()}
    commands = [
        replace(each, missing=words.get(each.name, each.missing))
        for each in [*appliers(scene), *applying(scene)]
    ]
    table = _measured(f"Applying {size} patches", commands, rounds)
    able = {row.name for row in table.rows if not row.missing}
    other = [each.name for each in commands if each.name in able and not _right(scene, each)]
    same = f"Not the stack's tree: {', '.join(other)}." if other else "The same tree everywhere."
    yield Table(table.title, table.rows, same)
    apply_all(_PATCHKIT, scene)
    yield _measured(f"Checking {size} patches", _checking(scene), rounds)
    yield _measured(f"Refreshing {size} patches", _refreshing(scene), rounds)


def _moving(folder: Path, rounds: int) -> Iterator[Table]:
    commits = _COMMITS[1]
    scene = make_scene(folder, made_up(folder, _SMALL_STACK, later=commits), _PATCHKIT)
    title = f"Drift of {_SMALL_STACK} patches over {commits:,} commits"
    yield _measured(title, drifting(scene, _PATCHKIT), rounds)
    title = f"Carrying {_SMALL_STACK} patches over {commits:,} commits"
    table = _measured(title, carrying(scene, _PATCHKIT), rounds)
    same = "The same tree" if carried_alike(scene, _PATCHKIT) else "NOT the same tree"
    yield Table(
        table.title, table.rows, f"{same} as `git rebase`, once the new patches are applied."
    )


def _measured(title: str, commands: Sequence[Command], rounds: int) -> Table:
    return Table(title, tuple(compare(commands, rounds)))


def _command_line(project: Path) -> list[Command]:
    python = Command("python -c pass", [sys.executable, "-c", "pass"])
    asked = {
        "--version": ["--version"],
        "--help": ["--help"],
        "apply --help": ["apply", "--help"],
        "complete a manifest": ["__complete", "apply", "-m", ""],
        "complete a component": ["__complete", "apply", "-m", "five", "-c", ""],
        "status of five components": ["status"],
    }
    return [python] + [
        Command(f"patchkit {name}", [*_PATCHKIT, *argv], project) for name, argv in asked.items()
    ]


def fetching(scene: Scene) -> list[Command]:
    clone = scene.clone.with_name("cloned")
    cache = scene.project / "cache"
    url = f"file://{scene.upstream}"
    argv = [*_PATCHKIT, "fetch", "-m", "base", "-q", "--cache", str(cache)]

    def forget() -> None:
        shutil.rmtree(clone, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)

    shallow = ["git", "clone", "-q", "--depth=1", "--no-checkout", "-b", "base", url, str(clone)]
    return [
        Command("git clone --depth=1 --no-checkout", shallow, prepare=forget),
        Command("patchkit fetch, cold", argv, scene.project, forget),
        Command("patchkit fetch, again", argv, scene.project),
    ]


def applying(scene: Scene) -> list[Command]:
    argv = [*_PATCHKIT, "apply", "-m", "stack", "-q"]
    return [
        Command("patchkit apply", argv, scene.project, lambda: put_back(scene)),
        Command("patchkit apply, again", argv, scene.project),
    ]


def _right(scene: Scene, command: Command) -> bool:
    """Whether the last run of a command left the stack's tree."""
    if command.folder == scene.project:
        return has_stack(scene, scene.project / "workspace" / "upstream")
    git(command.folder, "add", "--all", "--force")
    changed = git(command.folder, "diff", "--cached", "--name-only", "origin/stack").splitlines()
    return all(path.startswith(_OF_PEERS) for path in changed)


def _checking(scene: Scene) -> list[Command]:
    put_clone_back(scene.clone)
    loop = "rm -f .git/trial; export GIT_INDEX_FILE=.git/trial; git read-tree HEAD; "
    loop += 'for each in "$@"; do git apply --cached "$each" || exit 1; done'
    one = "rm -f .git/trial; export GIT_INDEX_FILE=.git/trial; git read-tree HEAD; "
    one += 'git apply --cached "$1"'
    return [
        Command("git apply --cached, each", ["sh", "-c", loop, "sh", *scene.patches], scene.clone),
        Command(
            "git apply --cached, all at once", ["sh", "-c", one, "sh", scene.mailbox], scene.clone
        ),
        Command("patchkit check", [*_PATCHKIT, "check", "-m", "stack", "-q"], scene.project),
    ]


def _refreshing(scene: Scene) -> list[Command]:
    clone = scene.clone
    out = clone.with_name("written")
    checkout = scene.project / "workspace" / "upstream"
    argv = [*_PATCHKIT, "refresh", "-m", "stack", "-q"]
    patches = scene.project / "patches"
    kept = scene.project / "patches-kept"
    shutil.copytree(patches, kept)

    def edit() -> None:
        shutil.rmtree(patches)
        shutil.copytree(kept, patches)
        apply_all(_PATCHKIT, scene)
        _change_a_patched_line(checkout)

    git(clone, "checkout", "--quiet", "--force", "--detach", "origin/stack")
    form = ["--quiet", "--full-index", "--binary", "-o", str(out)]
    return [
        Command("git format-patch", ["git", "format-patch", *form, "origin/base.."], clone),
        Command("patchkit refresh, nothing edited", argv, scene.project),
        Command("patchkit refresh, one line edited", argv, scene.project, edit),
    ]


def _change_a_patched_line(checkout: Path) -> None:
    """Edit a line that the last patch added."""
    diff = git(checkout, "diff", "-U0", "--no-color", "HEAD~1", "HEAD")
    path = next(line[6:] for line in diff.splitlines() if line.startswith("+++ b/"))
    rows = diff.splitlines()
    added = next(row[1:] for row in rows if row.startswith("+") and row[1:2] not in ("+", ""))
    file = checkout / path
    file.write_text(file.read_text().replace(added, added + " # edited", 1))


def _growth(folder: Path, costs: dict[str, dict[int, float]], rounds: int) -> Table:
    """Exponents: 1 is linear, 0 is no growth at all."""
    lines = []
    for name, of in costs.items():
        if len(of) > 2:
            sizes = sorted(of)[1:]
            lines.append(_slope_line(name, "patches", sizes, [of[size] for size in sizes]))
    few = max(3, rounds // 2)
    spent: list[float] = []
    for files in _FILES:
        place = folder / f"files-{files}"
        scene = make_scene(place, made_up(place, 50, files), _PATCHKIT)
        spent.append(compare(applying(scene)[:1], few)[0].seconds)
        shutil.rmtree(place)
    lines.append(_slope_line("patchkit apply", "files", _FILES, spent))
    spent = []
    for commits in _COMMITS:
        place = folder / f"commits-{commits}"
        scene = make_scene(place, made_up(place, _SMALL_STACK, later=commits), _PATCHKIT)
        spent.append(compare(drifting(scene, _PATCHKIT)[2:3], few)[0].seconds)
        shutil.rmtree(place)
    lines.append(_slope_line("patchkit drift", "commits", _COMMITS, spent))
    return Table("Growth", (), "\n".join(f"- {line}" for line in lines))


def _slope_line(name: str, what: str, sizes: Sequence[int], seconds: Sequence[float]) -> str:
    return f"{name} with the number of {what} ({sizes[0]}-{sizes[-1]}): {slope(sizes, seconds):.2f}"


def _scene(folder: Path, size: int, options: argparse.Namespace) -> Scene:
    if options.repository:
        upstream: Upstream = real(folder, options.repository, options.tip, size)
    else:
        upstream = made_up(folder, size)
    return make_scene(folder, upstream, _PATCHKIT)


def _five(folder: Path) -> Path:
    """A project with five components, all applied."""
    scene = make_scene(folder, made_up(folder, 3), _PATCHKIT)
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


def seal(folder: Path) -> None:
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


def _subject(repository: Path | None) -> str:
    if repository is None:
        return "a made-up upstream of 1,500 files"
    url = git(repository, "config", "--default", "", "remote.origin.url")
    name = url.rstrip("/").removesuffix(".git").rpartition("/")[2] or repository.resolve().name
    files = len(git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines())
    return f"real commits of {name}, {files:,} files"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure patchkit beside its peers, as ratios.")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each command (5)")
    parser.add_argument("--patches", default="10,50,200", help="sizes of stacks (10,50,200)")
    parser.add_argument(
        "--patience", type=float, default=10, help="seconds that one run may take (10)"
    )
    parser.add_argument("--repository", type=Path, help="a clone whose commits become the stack")
    parser.add_argument("--tip", default="HEAD", help="the last of these commits")
    parser.add_argument("--write", type=Path, metavar="FILE", help="a page with the marks")
    options = parser.parse_args()
    options.patches = [int(size) for size in options.patches.split(",")]
    if options.repository:
        options.repository = options.repository.absolute()
    return options


if __name__ == "__main__":
    main()
