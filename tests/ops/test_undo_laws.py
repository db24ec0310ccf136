"""Laws of the history: what is undone is as before, what is redone is as after; killed anywhere."""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from patchkit.disk.transaction import recover
from tests.ops.test_resume import Bumping
from tests.support.laws import every, share
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch
from tests.support.stacked import Stacked, lines, small_patches
from tests.workspace.killing import kept, kills

pytestmark = [pytest.mark.slow, pytest.mark.hypothesis]  # by the second `make faults` finds it

#: Every how many-th point is tried.
STEP = every(10)

_MANIFEST = "manifests/demo.yaml"

_VERBS = (
    *("refresh", "new", "rename", "edit", "move", "drop", "fold", "import", "bump"),
    *("apply", "force"),
)


def state(stack: Stacked) -> tuple[Any, ...]:
    """The project's bytes; where the checkout is, its index and its files. Not what is kept."""
    files = stack.project.files(), stack.project.files("manifests")
    there = (path for path in sorted(stack.checkout.iterdir()) if path.is_file())
    return (
        *files,
        stack.git("for-each-ref", "refs/heads", "refs/patchkit/base", "refs/patchkit/applied"),
        stack.git("ls-files", "--stage"),
        git_in(stack.checkout, "status", "--porcelain").decode(),
        {path.name: path.read_bytes() for path in there},
    )


def _edit(stack: Stacked, chance: random.Random) -> None:
    """Edits of some tracked files, one of them staged, and a new file."""
    path = stack.checkout / chance.choice("abc") / "x"
    path = path.parent.with_suffix(".txt")
    rows = path.read_text().splitlines(keepends=True)
    rows[chance.randrange(len(rows))] = f"mine {chance.random()}\n"
    path.write_text("".join(rows))
    if chance.random() < 0.5:
        git_in(stack.checkout, "add", path.name)
    if chance.random() < 0.3:
        (stack.checkout / "fresh.txt").write_text(f"{chance.random()}\n")
        git_in(stack.checkout, "add", "fresh.txt")


def _verb(
    stack: Stacked, upstream: Upstream, chance: random.Random, number: int
) -> tuple[str, ...]:
    """A command line, once what it needs is there."""
    verb, names = chance.choice(_VERBS), stack.series
    one, other = (chance.choice(names) for _ in range(2)) if names else ("x", "y")
    if verb in ("refresh", "new", "force"):
        _edit(stack, chance)
        rest = ("--patch", one) if chance.random() < 0.5 else ("--rest", f"rest-{number}")
        return {
            "refresh": ("refresh", *rest),
            "new": ("refresh", "--new", f"new-{number}"),
            "force": ("apply", "--accept", "--force"),
        }[verb]
    if verb == "import":
        before = {"d.txt": f"{number}\n" * 3}
        path = stack.project.root.parent / f"more-{number}.patch"
        after = {f"more-{number}.txt": "more\n"}
        path.write_bytes(make_patch({}, after, subject=f"More {number}", body=str(before)))
    if verb in ("bump", "apply"):
        upstream.commit({f"up-{number}.txt": "up\n", "c.txt": lines({30: f"{number}\n"})})
    if verb == "apply":
        stack.project.repin(upstream.at("main"))
    return {
        "rename": ("edit", one, "--name", f"name-{number}"),
        "edit": ("edit", one, "--message", f"Words {number}\n\nA reason."),
        "move": ("move", one, "--to", str(chance.randint(1, max(1, len(names))))),
        "drop": ("drop", one),
        "fold": ("fold", one, "--to", other),
        "import": ("import", str(stack.project.root.parent / f"more-{number}.patch")),
        "bump": ("bump", "demo", "--to", "main"),
        "apply": ("apply", "--accept"),
    }[verb]


def _work(stack: Stacked) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in stack.checkout.iterdir() if path.is_file()}


def _clean(stack: Stacked, before: tuple[Any, ...], work: dict[str, bytes]) -> None:
    """As somebody who no longer wants the last edits, but those before."""
    stack.git("reset", "-q", "--hard")
    _again(stack, before, work)


@settings(max_examples=share(9), phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**16))
def test_law_undo_is_before_and_redo_is_after(seed: int) -> None:
    """Over random commands in a row, all of them undone, and then all redone."""
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.create(Path(folder) / "upstream.git")
        stack = Stacked.of(Project(Path(folder) / "project"), upstream, small_patches())
        (stack.checkout / "notes.txt").write_text("notes\n")
        chance, done = random.Random(seed), []
        for number in range(7):
            clean, there = state(stack), _work(stack)
            pin = (stack.project.root / _MANIFEST).read_bytes()
            argv = _verb(stack, upstream, chance, number)
            before, work, count = state(stack), _work(stack), _count(stack)
            code = stack.run(*argv).code
            if code == 3:  # it waits at a conflict
                stack.run("abort").ok()
                assert state(stack) == clean
                assert stack.run("undo").code == 1  # which says that there is no way back
            if _count(stack) == count:
                _clean(stack, clean, there)
                (stack.project.root / _MANIFEST).write_bytes(pin)
                continue
            assert code in (0, 1), argv
            done.append((argv, pin, (clean, there), before, work, state(stack)))
        for argv, pin, earlier, before, _, after in reversed(done):
            assert state(stack) == after, argv
            ran = stack.run("undo").ok()
            assert state(stack) == before, (argv, ran)
            if argv[0] == "refresh" or "--force" in argv:
                _clean(stack, *earlier)
            (stack.project.root / _MANIFEST).write_bytes(pin)
        for argv, _, _, before, work, after in done:
            if argv[0] == "refresh" or "--force" in argv:
                _again(stack, before, work)
            if argv[0] == "apply":
                (stack.project.root / _MANIFEST).write_bytes(before[1][_MANIFEST])
            ran = stack.run("undo", "--redo").ok()
            assert state(stack) == after, (argv, ran)
        assert (stack.checkout / "notes.txt").read_text() == "notes\n"


def _count(stack: Stacked) -> int:
    listed = stack.run("undo", "--list").ok().out.splitlines()
    return sum(not row.startswith("redo") for row in listed)


def _again(stack: Stacked, before: tuple[Any, ...], work: dict[str, bytes]) -> None:
    """The edits that were there before a command, staged as they were."""
    for name, data in work.items():
        (stack.checkout / name).write_bytes(data)
    rows = str(before[4]).splitlines()
    for name in (row[3:] for row in rows if row[:1] not in " ?"):
        stack.git("add", name)


@pytest.mark.parametrize(
    ("first", "command"),
    [
        ((), ("edit", "one", "--name", "first")),
        ((), ("drop", "two")),
        ((), ("bump", "demo", "--to", "main")),
        ((), ("apply", "--accept")),
        ((), ("refresh", "--new", "mine")),
        ((("drop", "two"),), ("undo",)),
        ((("bump", "demo", "--to", "main"),), ("undo",)),
        ((("refresh", "--new", "mine"),), ("undo",)),
        ((("drop", "two"), ("undo",)), ("undo", "--redo")),
        ((("bump", "demo", "--to", "main"), ("undo",)), ("undo", "--redo")),
        ((("refresh", "--new", "mine"), ("undo",)), ("undo", "--redo")),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else None,
)
def test_killed_anywhere_undo_and_redo_still_lead_there(
    project: Project,
    upstream: Upstream,
    first: tuple[tuple[str, ...], ...],
    command: tuple[str, ...],
) -> None:
    stack = Bumping.of(project, upstream, small_patches())

    upstream.commit({"up.txt": "up\n", "c.txt": lines({30: "thirty\n"})})
    stack.run("bump", "demo", "--to", "main", "--dry-run")  # what is fetched is not killed here
    if command[0] == "apply":
        project.repin(upstream.at("main"))
    if any("--new" in argv for argv in (command, *first)):
        (stack.checkout / "c.txt").write_text("mine\n")
    for argv in first:
        stack.run(*argv).ok()
    put_back = kept(project.root)
    start = state(stack)
    stack.run(*command).ok()
    end = state(stack)
    early, late = (end, start) if command == ("undo",) else (start, end)
    for point in kills(partial(stack.run, *command), put_back, step=STEP):
        recover(project.root)
        stack.run("status").ok()
        if state(stack)[:2] not in (start[:2], end[:2]):
            pytest.fail(f"a mixture after a kill at {point}")
        if state(stack) != early:
            stack.run("undo").ok()
        assert state(stack) == early, f"not undone after a kill at {point}"
        ran = stack.run("undo", "--redo")
        if ran.code == 0:
            assert state(stack) == late, f"not redone after a kill at {point}"
        else:  # it was not even recorded
            ran.says("there is nothing to redo")
            assert (state(stack), command[0] != "undo") == (early, True)
