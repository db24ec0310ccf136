"""What the user, or an editor at work, has in a checkout is kept by every command that moves it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.ops.test_resume import Bumping
from tests.support.commands import Ran
from tests.support.laws import SHARE
from tests.support.meanwhile import run_meanwhile
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import lines, small_patches

pytestmark = pytest.mark.slow

_REF = re.compile(r"refs/patchkit/saved/[\w-]+")


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Bumping:
    """Upstream moved on so that one.patch and three.patch conflict."""
    stack = Bumping.of(project, upstream, small_patches())
    upstream.commit({"a.txt": lines({5: "upstream five\n"}), "b.txt": lines({10: "X\n"})})
    return stack


@pytest.fixture
def halted(stack: Bumping) -> Bumping:
    """The bump waits at the conflict of one.patch."""
    stack.bump().ends(3)
    return stack


def kept(stack: Bumping, ran: Ran, text: str) -> bool:
    """Whether a ref that the output names has a blob with this text, or the patches do."""
    (stack.checkout.parent / "text").write_text(text)
    oid = stack.git("hash-object", "--no-filters", str(stack.checkout.parent / "text"))
    refs = [*_REF.findall(ran.out + ran.err), "HEAD"]
    return any(oid in stack.git("rev-list", "--objects", ref) for ref in refs)


def stage_only(stack: Bumping, name: str, text: str) -> None:
    path = stack.checkout / name
    before = path.read_bytes()
    path.write_text(text)
    stack.git("add", name)
    path.write_bytes(before)


# -- hidden from git ----------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_bump_that_stops_leaves_a_hidden_edit(stack: Bumping, flag: str) -> None:
    for name in ("a.txt", "c.txt"):  # which upstream changes, and which nobody does
        stack.git("update-index", flag, name)
        stack.write(name, f"my {name}\n")
    with stack.untouched():
        stack.bump().ends(
            5,
            "a.txt is edited, and git is set to ignore",
            "update-index --no-assume-unchanged --no-skip-worktree a.txt",
        )
    stack.git("update-index", f"--no-{flag[2:]}", "a.txt")
    stack.git("checkout", "-q", "a.txt")
    stack.bump().ends(3)
    assert stack.read("c.txt") == "my c.txt\n"
    assert stack.git("ls-files", "-v", "c.txt")[0] in "hS"
    stack.resolve_one()
    stack.resolve("b.txt", "both tens\n")
    stack.run("continue").ok()
    assert not any(b"my c.txt" in data for data in stack.project.files().values())
    assert stack.read("c.txt") == "my c.txt\n"


# -- staged alone -------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("refresh",), ("refresh", "--new", "mine")])
def test_what_is_only_staged_is_kept_when_patches_are_refreshed(
    stack: Bumping, command: tuple[str, ...]
) -> None:
    stage_only(stack, "c.txt", "staged only\n")
    stack.edit("b.txt", "line 20\n", "20\n")
    ran = stack.run(*command, *(["--patch", "three.patch"] if command == ("refresh",) else [])).ok()
    assert kept(stack, ran, "staged only\n")


@pytest.mark.parametrize(
    "command", [("skip",), ("abort",), ("undo",), ("apply", "--force"), ("continue",)]
)
def test_what_is_only_staged_is_kept_on_the_way_from_a_conflict(
    halted: Bumping, command: tuple[str, ...]
) -> None:
    stage_only(halted, "c.txt", "staged only\n")
    if command == ("continue",):
        halted.resolve("a.txt", "upstream FIVE\nsix\n")
    assert kept(halted, halted.run(*command), "staged only\n")


# -- resolved by hand -----------------------------------------------------------------------------


def test_undo_keeps_what_was_resolved_by_hand(stack: Bumping) -> None:
    start = stack.state
    stack.bump().ends(3)
    stack.resolve_one()
    stack.resolve("b.txt", "both tens\n")
    stack.run("continue").ok()
    recorded = sorted((stack.project.root / "patches/demo/resolutions").iterdir())
    ran = stack.run("undo").ok().says(*(path.name for path in recorded))
    (ref,) = _REF.findall(ran.err)
    assert stack.state_but_kept == start
    stack.git("reflog", "expire", "--expire=now", "--all")
    stack.git("gc", "-q", "--prune=now")
    assert "upstream FIVE\nsix\n" in stack.git("show", f"{ref}:a.txt")
    assert "both tens\n" in stack.git("show", f"{ref}:b.txt")


@pytest.mark.parametrize("command", [("abort",), ("apply", "--force")])
def test_what_was_resolved_before_is_kept(halted: Bumping, command: tuple[str, ...]) -> None:
    """As a file, and by abort as the patch."""
    halted.resolve("a.txt", "upstream FIVE\nsix\n")
    resolved = halted.read("a.txt")
    halted.run("continue").ends(3)
    ran = halted.run(*command).ok()
    assert kept(halted, ran, resolved)
    if command == ("abort",):
        shown = halted.git("log", "-p", "--format=%B", *_REF.findall(ran.err))
        commit = shown.partition("Patchkit-Patch: one.patch")[2].partition("Patchkit-Patch:")[0]
        assert "+upstream FIVE" in commit


# -- bytes ----------------------------------------------------------------------------------------


def test_a_resolution_that_git_would_change_is_kept_as_it_was(stack: Bumping) -> None:
    (stack.checkout / ".git/info").mkdir(exist_ok=True)
    (stack.checkout / ".git/info/attributes").write_text("a.txt text\n")
    stack.bump().ends(3)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    text = stack.read("a.txt").replace("line 9\n", "line 9\r\n")
    (stack.checkout / "a.txt").write_bytes(text.encode())
    ran = stack.run("continue").ends(3)
    (ref,) = _REF.findall(ran.err)
    shown = stack.git("cat-file", "blob", f"{ref}:a.txt")
    assert "line 9\r\n" in shown.replace("\r\n", "\r\n")


# -- an editor at work ----------------------------------------------------------------------------


def _saves(path: Path) -> Callable[[], object]:
    def save() -> None:
        beside = path.with_name("editor~")
        beside.write_text("saved by an editor\n")
        beside.replace(path)

    return save


_COMMANDS = ("bump", "continue", "skip", "abort", "undo")
_STEPS = ("read-tree", "checkout-index", "diff-tree", "update-index")


def _strikes() -> Iterator[tuple[str, str, str]]:
    """Each command at each step, with one file in turn, or with each where all is tried."""
    for number, (command, git) in enumerate(product(_COMMANDS, _STEPS)):
        names = ("a.txt", "b.txt", "c.txt")
        for name in names if SHARE >= 1 else names[number % 3 :][:1]:
            yield command, git, name


@pytest.mark.hypothesis  # by this mark `make faults` selects laws
@pytest.mark.parametrize(("command", "git", "name"), [*_strikes()])
def test_what_an_editor_saves_meanwhile_is_not_overwritten(
    stack: Bumping, command: str, git: str, name: str
) -> None:
    argv = [command]
    if command == "bump":
        argv += ["demo", "--to", "main"]
    else:
        stack.bump().ends(3)
        stack.resolve("a.txt", "upstream FIVE\nsix\n")
    before = stack.product
    save = _saves(stack.checkout / name)
    ran = run_meanwhile(*argv, cwd=stack.project.root, git=git, change=save)
    assert stack.read(name) == "saved by an editor\n" or kept(stack, ran, "saved by an editor\n")
    if ran.code == 5:
        ran.says(f"{name} was changed while patchkit worked on it")
        written = "the patch files are written" in ran.err
        assert written == (stack.product != before)
        assert "refs/patchkit/halt" in stack.git("show-ref") or command == "bump"


def test_the_last_continue_writes_nothing_if_a_file_was_saved_meanwhile(halted: Bumping) -> None:
    halted.resolve_one()
    halted.resolve("b.txt", "both tens\n")
    before = halted.product
    save = _saves(halted.checkout / "b.txt")
    # once the files were read, and long before anything is written
    run_meanwhile("continue", cwd=halted.project.root, git="diff-tree", change=save).ends(
        5, "b.txt was changed while patchkit worked on it"
    )
    assert halted.read("b.txt") == "saved by an editor\n"
    assert halted.product == before


def test_a_conflict_that_no_checkout_holds_is_not_said_to_be_there(halted: Bumping) -> None:
    save = _saves(halted.checkout / "a.txt")
    ran = run_meanwhile("skip", cwd=halted.project.root, git="read-tree", change=save)
    assert "its conflict is in" not in ran.ends(5, "hint: run the command again").err
    ran = halted.run("skip")
    assert (ran.code, kept(halted, ran, "saved by an editor\n")) == (3, True)


def test_a_checkout_that_could_not_follow_is_brought_on_by_continue(halted: Bumping) -> None:
    halted.run("skip").ends(3)
    save = _saves(halted.checkout / "b.txt")
    run_meanwhile("skip", cwd=halted.project.root, git="read-tree", change=save).ends(
        5, "hint: patchkit continue"
    )
    ran = halted.run("continue").ok()
    assert kept(halted, ran, "saved by an editor\n")
    halted.settled()


def test_quiet_names_where_work_is_kept(stack: Bumping) -> None:
    stack.write("c.txt", "my c.txt\n")
    ran = stack.run("apply", "--force", "--quiet").ok()
    assert (ran.out, "your work is kept as refs/patchkit/saved/" in ran.err) == ("", True)
