"""Repositories and projects to measure on.

An upstream is real commits of a repository of yours, or made up but shaped like one: FILES files of
Python-like text in folders, where every patch changes a few hunks in one to three of them, and some
files are changed by several patches, as in a real series.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

FILES = 1500
LINES = 200
#: Lines at the beginning and the end of a file that no patch changes: upstream does.
_EDGE = 10
_IDENTITY = "Bench <bench@example.com>"


@dataclass(frozen=True)
class Upstream:
    """A bare repository with the branches `base` and `stack`, and what is between as patches.

    One that goes on has the branch `later`, too: upstream's own commits on `base`.
    """

    path: Path
    patches: tuple[Path, ...]


@dataclass(frozen=True)
class Scene:
    """An upstream with a stack of patches on it.

    `upstream` is bare with the branches `base` and `stack`; `mailbox` holds the patches as `git am`
    reads them, `patches` are the same as files, in order; `project` is a patchkit project with the
    manifests `stack` (all patches) and `base` (none), both of one component `upstream`;
    `project/pristine` is a workspace whose checkout is at the base. `clone` is an ordinary clone.
    """

    upstream: Path
    mailbox: Path
    patches: tuple[Path, ...]
    project: Path
    clone: Path


def made_up(folder: Path, count: int, files: int = FILES, later: int = 0) -> Upstream:
    """An upstream of `files` files with `count` commits to make patches of.

    With `later` it goes on by so many commits: every fourth is to patched files, at their beginning
    or end, so that all patches fit further on or nearer than they were made for.
    """
    folder.mkdir(parents=True)
    upstream = folder / "upstream.git"
    git(folder, "init", "--quiet", "--bare", str(upstream))
    git(upstream, "fast-import", "--quiet", stdin=_history(count, files, later))
    return Upstream(upstream, _exported(upstream, folder / "patches"))


def real(folder: Path, repository: Path, tip: str, count: int) -> Upstream:
    """The `count` commits up to `tip` of a repository, along first parents.

    A merge counts as one commit with all that it brought, one that changes nothing (which the peers
    take for a broken patch) not at all; of the messages the subject is kept.
    """
    folder.mkdir(parents=True)
    upstream = folder / "upstream.git"
    git(folder, "init", "--quiet", "--bare", str(upstream))
    alternates = upstream / "objects" / "info" / "alternates"
    alternates.write_text(
        git(repository, "rev-parse", "--path-format=absolute", "--git-path", "objects") + "\n"
    )
    line = git(repository, "log", "--first-parent", f"-{2 * count}", "--format=%H %T", tip)
    rows = [row.split() for row in line.splitlines()]
    changing = [commit for (commit, tree), (_, before) in pairwise(rows) if tree != before][:count]
    head = git(repository, "rev-parse", f"{changing[-1]}^")
    git(upstream, "update-ref", "refs/heads/base", head)
    for commit in reversed(changing):
        subject = git(upstream, "log", "-1", "--format=%s", commit)
        head = git(upstream, "commit-tree", "-p", head, "-m", subject, f"{commit}^{{tree}}")
    git(upstream, "update-ref", "refs/heads/stack", head)
    return Upstream(upstream, _exported(upstream, folder / "patches"))


def make_scene(folder: Path, upstream: Upstream, patchkit: list[str]) -> Scene:
    """A scene around an upstream, below `folder`."""
    mailbox = folder / "mailbox"
    mailbox.write_bytes(b"".join(path.read_bytes() for path in upstream.patches))
    clone = folder / "clone"
    shared = ("clone", "--quiet", "--shared", "--branch", "base")
    git(folder, *shared, str(upstream.path), str(clone))
    project = _make_project(folder / "project", upstream.path, upstream.patches)
    _run(patchkit, project, "base")
    (project / "workspace").rename(project / "pristine")
    return Scene(upstream.path, mailbox, upstream.patches, project, clone)


def put_back(scene: Scene) -> None:
    """Set the project's workspace and the clone back to the base."""
    shutil.rmtree(scene.project / "workspace", ignore_errors=True)
    shutil.copytree(scene.project / "pristine", scene.project / "workspace", symlinks=True)
    # a copy's files are others than the index knows; the peers' clones are not copied
    git(scene.project / "workspace" / "upstream", "update-index", "-q", "--refresh")
    for lock in (scene.project / "manifests").glob("*.lock.json"):
        lock.unlink()


def put_clone_back(clone: Path) -> None:
    """Set a clone back to the base."""
    git(clone, "checkout", "--quiet", "--force", "-B", "work", "origin/base")
    git(clone, "clean", "-fdq")


def apply_all(patchkit: list[str], scene: Scene) -> None:
    """Bring the project's workspace to the whole stack."""
    put_back(scene)
    _run(patchkit, scene.project, "stack")


def has_stack(scene: Scene, checkout: Path) -> bool:
    """Whether a checkout is clean and has the tree that the stack makes."""
    wanted = git(scene.upstream, "rev-parse", "stack^{tree}")
    clean = not git(checkout, "status", "--porcelain", "--untracked-files=no")
    return clean and git(checkout, "rev-parse", "HEAD^{tree}") == wanted


def _make_project(root: Path, upstream: Path, patches: tuple[Path, ...]) -> Path:
    head = f"version: 1\ncomponents:\n  upstream:\n    source: {{git: 'file://{upstream}'}}\n"
    pin = f"    pin: {git(upstream, 'rev-parse', 'base')}\n"
    series = "    patches: [{series: patches/upstream/series}]\n"
    (root / "manifests").mkdir(parents=True)
    (root / "manifests" / "base.yaml").write_text(head + pin)
    (root / "manifests" / "stack.yaml").write_text(head + pin + series)
    folder = root / "patches" / "upstream"
    folder.mkdir(parents=True)
    for path in patches:
        shutil.copy(path, folder / path.name)
    (folder / "series").write_text("".join(f"{path.name}\n" for path in patches))
    return root


def _exported(upstream: Path, folder: Path) -> tuple[Path, ...]:
    form = ("--quiet", "--no-signature", "--full-index", "--binary", "--no-stat", "--no-renames")
    git(upstream, "format-patch", *form, "-o", str(folder), "base..stack")
    return tuple(sorted(folder.iterdir()))


def _history(count: int, number_of_files: int, later: int) -> bytes:
    """A fast-import stream: the branch `base`, on it `stack` with `count` commits, and `later`."""
    dice = random.Random(1)
    files = {
        _path(n): [f"value_{n}_{i} = {dice.random()}" for i in range(LINES)]
        for n in range(number_of_files)
    }
    parts = [_commit("base", "Base", 0, files)]
    before = {path: list(lines) for path, lines in files.items()}
    touched = sorted(files)[:: max(1, number_of_files // max(40, count))]
    parts.append("reset refs/heads/stack\nfrom refs/heads/base\n\n")
    for number in range(1, count + 1):
        changed = {path: files[path] for path in dice.sample(touched, dice.choice((1, 1, 2, 3)))}
        for lines in changed.values():
            _edit(lines, number, dice)
        parts.append(
            _commit("stack", f"Change number {number}\n\nFor the sake of it.\n", number, changed)
        )
    return "".join([*parts, *_going_on(before, touched, later)]).encode()


def _going_on(files: dict[str, list[str]], touched: list[str], count: int) -> Iterator[str]:
    """The branch `later`, of `count` commits."""
    dice = random.Random(2)
    everything = sorted(files)
    if count:
        yield "reset refs/heads/later\nfrom refs/heads/base\n\n"
    for number in range(1, count + 1):
        path = dice.choice(everything if number % 4 else touched)
        lines = files[path]
        place = dice.choice((0, len(lines) - 1))
        lines[place : place + dice.choice((0, 1))] = [f"later_{number}_{i} = 0" for i in range(2)]
        yield _commit("later", f"Go on, {number}\n", count + number, {path: lines})


def _edit(lines: list[str], number: int, dice: random.Random) -> None:
    for _ in range(dice.choice((1, 2, 4))):
        place = dice.randrange(_EDGE, len(lines) - _EDGE)
        lines[place : place + 1] = [
            f"changed_{number}_{i} = {place}" for i in range(dice.choice((1, 3)))
        ]


def _commit(branch: str, message: str, number: int, files: dict[str, list[str]]) -> str:
    stamp = f"{_IDENTITY} {1700000000 + number} +0000"
    parts = [f"commit refs/heads/{branch}\nauthor {stamp}\ncommitter {stamp}\n", _data(message)]
    for path, lines in files.items():
        parts.append(f"M 100644 inline {path}\n{_data(chr(10).join(lines) + chr(10))}")
    return "".join(parts) + "\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _path(number: int) -> str:
    return f"package_{number % 12}/module_{number % 60}/file_{number}.py"


def git(folder: Path, *args: str, stdin: bytes = b"") -> str:
    """What a git command says; it has to succeed."""
    done = subprocess.run(["git", *args], cwd=folder, input=stdin, capture_output=True, check=True)
    return done.stdout.decode(errors="replace").strip()


def _run(patchkit: list[str], project: Path, manifest: str) -> None:
    subprocess.run(
        [*patchkit, "apply", "-m", manifest, "--quiet"],
        cwd=project,
        check=True,
        capture_output=True,
    )
