"""What goes wrong half-way without a kill: everything is put back."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.process import GitFailureError
from patchkit.workspace import CheckoutState, checkout
from patchkit.workspace.contents import contents_at
from patchkit.workspace.enter import Action, Entered, Stacked
from patchkit.workspace.journal import MoveStep
from patchkit.workspace.put_files import put_back, put_in_place
from patchkit.workspace.recover import has_leftovers
from patchkit.workspace.save import read_worktree
from tests.support.repos import Files, Submodule, Symlink, git_in
from tests.workspace.bench import BASE, CHANGE, Bench, committed_files, disk_files
from tests.workspace.killing import failing_git, full_disk, hooks, killed_at
from tests.workspace.test_kill import NEW, OLD

pytestmark = pytest.mark.slow


def everything(bench: Bench) -> tuple[object, ...]:
    """Files, index, refs and HEAD of the checkout."""
    return (
        disk_files(bench.path),
        (bench.path / ".git/index").read_bytes(),
        bench.git("for-each-ref"),
        bench.git("symbolic-ref", "HEAD"),
        sorted(path.name for path in (bench.path / ".git").iterdir()),
    )


def _without_files(bench: Bench) -> tuple[object, ...]:
    """Index and refs: what is read of a pipe never ends."""
    return (bench.path / ".git/index").read_bytes(), bench.git("for-each-ref")


@contextmanager
def writing_before(bench: Bench, event: str, number: int) -> Iterator[None]:
    """In the block, somebody saves edit.py just before the `number`-th event."""
    left = number

    def write(happening: str, _: object) -> None:
        nonlocal left
        left -= happening == event
        if happening == event and left == 0:
            (bench.path / "edit.py").write_text("mine\n")

    hooks.append(write)
    try:
        yield
    finally:
        hooks.remove(write)
    assert left <= 0, "it never came to that"


#: The old stack with a submodule, whose folder is empty.
FULL: Files = {**OLD, "mod": Submodule("1" * 40)}


@pytest.fixture
def moving(bench: Bench) -> Stacked:
    """A checkout at one stack, and the stack to move it to."""
    old = bench.stack(OLD, {"a.py": "a\n"})
    new = bench.stacked(bench.base, bench.upstream.commit(NEW))
    bench.enter(old)
    bench.enter(new)  # so that the objects are there, and every try has the same start
    bench.enter(old)
    return new


class InterruptionError(Exception):
    """Raised at the n-th thing that is done to the disk."""


def raising_at(point: int, work: Callable[[], object]) -> bool:
    """Run the work; an exception comes at the `point`-th rename or link. False: it did not come."""
    left = point

    def count(event: str, _: object) -> None:
        nonlocal left
        if event in ("os.rename", "os.link", "os.mkdir", "subprocess.Popen"):
            left -= 1
            if left == 0:
                raise InterruptionError

    hooks.append(count)
    try:
        work()
    except InterruptionError:
        return True
    finally:
        hooks.remove(count)
    return False


def test_whatever_fails_all_is_put_back(bench: Bench, moving: Stacked) -> None:
    before = everything(bench)
    put_back = 0
    for point in range(1, 1000):
        if not raising_at(point, lambda: bench.enter(moving)):
            break
        if bench.look().state is not CheckoutState.INTERRUPTED and everything(bench) == before:
            put_back += 1
        elif bench.look().head == moving.tip:
            bench.enter(moving)  # the refs had moved: it goes on from there
            bench.assert_at(moving)
            break
        else:
            assert everything(bench) == before, f"not put back after point {point}"
    assert put_back > 30


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_not_patchkits_stays_in_its_place_if_force_fails(bench: Bench, kind: str) -> None:
    """It is moved aside only once there is something to put there."""
    stack = bench.stack()
    bench.checkout.workspace.mkdir()
    mine = bench.write("mine.txt", "mine\n") if kind == "folder" else bench.path
    mine.write_text("mine\n")
    for point in range(1, 1000):
        if not raising_at(point, lambda: bench.enter(stack, force=True)):
            break
        assert mine.read_text() == "mine\n", f"not put back after point {point}"
        assert {path.name for path in bench.path.parent.iterdir()} <= {".patchkit", "demo"}
    assert point > 10
    bench.assert_at(stack)


def test_what_is_written_to_a_file_in_place_survives_the_way_back(tmp_path: Path) -> None:
    """A later step fails; the old contents are in a commit, the user's are nowhere else."""
    root, folder = tmp_path / "checkout", tmp_path / "move"
    steps = []
    for name in ("a.py", "b.py", "c.py"):
        for place, text in ((root, "old\n"), (folder / "new", "new\n")):
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        steps.append(MoveStep(name, contents_at(root, name), contents_at(folder / "new", name)))
    put_in_place(root, folder, steps)
    (root / "b.py").write_text("mine\n")
    put_back(root, folder, steps)
    assert [(root / step.path).read_text() for step in steps] == ["old\n", "mine\n", "old\n"]


def test_a_full_disk(bench: Bench, tmp_path: Path) -> None:
    bench.enter(bench.stack())
    stack = bench.stacked(bench.base, bench.upstream.commit({"big.bin": os.urandom(300_000)}))
    before = everything(bench)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            bench.enter(stack)
        except (SurroundingsError, OSError):
            os._exit(7)
        os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert everything(bench)[:4] == before[:4]
    bench.enter(stack)
    bench.assert_at(stack)


@pytest.mark.parametrize("git", [False, True])
def test_a_disk_that_stays_full_leaves_the_old_stack_or_a_journal(bench: Bench, git: bool) -> None:
    """The folder of a file that went cannot be made again: the move is finished, not forgotten."""
    old = bench.stack(FULL, {"a.py": "a\n"})
    new = bench.stacked(bench.base, bench.upstream.commit({**NEW, "mod": None}))
    bench.enter(old)
    bench.enter(new)  # so that the objects are there, and every try has the same start
    bench.enter(old)
    before, folders, half_way = everything(bench), _folders(bench), 0
    for after in range(1000):
        error = None
        with full_disk(after=after, git=git) as failed:
            try:
                bench.enter(new)
            except (SurroundingsError, OSError) as raised:
                error = raised
        if not failed[0]:
            break
        if bench.look().state is CheckoutState.INTERRUPTED:
            half_way += 1
            assert isinstance(error, SurroundingsError)
            assert "is half-way between two stacks" in str(error)
            assert "No space left on device" in str(error)
            bench.enter(new)
        elif error is not None:
            assert (everything(bench), _folders(bench)) == (before, folders)
            assert not has_leftovers(bench.checkout)
            continue
        bench.assert_at(new)
        bench.enter(old)
        before = everything(bench)
    assert half_way > 2
    bench.assert_at(new)


def test_a_kill_on_the_way_back_costs_nothing(bench: Bench) -> None:
    """Files and index were new, the refs could not be moved, and the files were put back."""
    old = bench.stack(OLD, {"a.py": "a\n"})
    new = bench.stacked(bench.base, bench.upstream.commit(NEW))
    for each in (old, new, old):
        bench.enter(each)
    replaced = bench.path / ".git/patchkit/move/old"
    for point in range(1, 9):
        with failing_git("update-ref") as failed:

            def are_back() -> bool:
                return bool(failed) and not any(replaced.iterdir())

            assert killed_at(point, lambda: bench.enter(new), once=are_back)
        assert disk_files(bench.path) <= both(bench, old, new)
        bench.enter(new)
        bench.assert_at(new)
        bench.enter(old)
        bench.assert_at(old)


def both(bench: Bench, *stacks: Stacked) -> set[tuple[bytes, bytes]]:
    """The files of some stacks."""
    return {each for stack in stacks for each in committed_files(bench.path, stack.tip)}


def _folders(bench: Bench) -> list[str]:
    """Folders of the checkout, also those that are empty."""
    below = (path.relative_to(bench.path) for path in bench.path.rglob("*") if path.is_dir())
    return sorted(str(path) for path in below if path.parts[0] != ".git")


def at_once(bench: Bench, stack: Stacked) -> list[Entered]:
    """Enter the stack four times at once."""
    ended: list[Entered] = []
    threads = [threading.Thread(target=lambda: ended.append(bench.enter(stack))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended


def test_a_repository_that_git_cannot_read_is_left_alone(bench: Bench) -> None:
    old = bench.stack()
    bench.enter(old)
    new = bench.stacked(bench.base, bench.upstream.commit({"a.py": "1\n"}))
    bench.write("b.py", "mine\n")
    index = bench.path / ".git/index"
    sound = index.read_bytes()
    index.write_bytes(b"damaged")
    seen = bench.look()
    assert seen.state is CheckoutState.OTHER_BRANCH
    assert "git cannot read it" in seen.detail
    before = disk_files(bench.path)
    refused = bench.enter(new)
    assert (refused.action, refused.before.state) == (Action.REFUSED, CheckoutState.OTHER_BRANCH)
    assert (disk_files(bench.path), index.read_bytes()) == (before, b"damaged")
    index.write_bytes(sound)
    assert bench.look().state is CheckoutState.EDITED


def test_work_that_cannot_be_saved_is_not_overwritten(bench: Bench) -> None:
    bench.enter(bench.stack())
    new = bench.stacked(bench.base, bench.upstream.commit({"b.py": "1\n"}))
    bench.write("b.py", "mine\n")
    place = bench.path / ".git/refs/patchkit/saved"
    place.write_text(bench.tip + "\n")  # no folder: nothing can be saved in there
    before = everything(bench)
    with pytest.raises(SurroundingsError):
        bench.enter(new, force=True)
    assert everything(bench)[:4] == before[:4]
    assert not has_leftovers(bench.checkout)
    place.unlink()
    forced = bench.enter(new, force=True)
    bench.assert_at(new)
    assert bench.git("show", f"{forced.saved}:b.py") == "mine"


def test_what_no_commit_can_hold_is_never_replaced(bench: Bench) -> None:
    """A pipe where a tracked file was, and git told not to look at it."""
    bench.enter(bench.stack())
    new = bench.stacked(bench.base, bench.upstream.commit({"b.py": "1\n"}))
    bench.git("update-index", "--assume-unchanged", "b.py")
    (bench.path / "b.py").unlink()
    os.mkfifo(bench.path / "b.py")
    before = _without_files(bench)
    refused = bench.enter(new)
    assert refused.refusal is not None
    assert refused.refusal.paths == ("b.py",)
    with pytest.raises(GitFailureError):
        bench.enter(new, force=True)
    assert (bench.path / "b.py").is_fifo()
    assert _without_files(bench) == before
    assert not has_leftovers(bench.checkout)


def test_an_index_that_was_deleted_costs_no_edit(bench: Bench) -> None:
    bench.enter(bench.stack())
    new = bench.stacked(bench.base, bench.upstream.commit({"b.py": "1\n"}))
    bench.write("b.py", "mine\n")
    (bench.path / ".git/index").unlink()
    before = disk_files(bench.path)
    assert bench.enter(new).action is Action.REFUSED
    assert disk_files(bench.path) == before
    forced = bench.enter(new, force=True)
    bench.assert_at(new)
    assert bench.git("show", f"{forced.saved}:b.py") == "mine"


def test_a_file_system_without_hard_links(
    bench: Bench, moving: Stacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "there are no hard links here")

    monkeypatch.setattr(os, "link", link)
    bench.enter(moving)
    bench.assert_at(moving)


def test_a_checkout_that_another_patchkit_holds(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = bench.stack()
    monkeypatch.setattr(checkout, "_PATIENCE", 0.05)
    with (
        checkout.locked(bench.checkout),
        ThreadPoolExecutor(1) as other,
        pytest.raises(SurroundingsError, match="is locked by another patchkit"),
    ):
        other.submit(bench.enter, stack).result()
    assert not bench.path.exists()
    bench.enter(stack)


def test_two_at_once(bench: Bench) -> None:
    one = bench.stack()
    two = bench.stacked(bench.base, bench.upstream.commit({"b.py": "2\n"}))
    for stack, first in ((one, Action.CREATED), (two, Action.MOVED)):
        ended = at_once(bench, stack)
        actions = sorted(each.action for each in ended)
        assert actions == sorted([first, *[Action.UNCHANGED] * 3])
        bench.assert_at(stack)


def test_a_workspace_that_is_deleted_is_made_again(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    shutil.rmtree(bench.checkout.workspace)
    assert bench.enter(stack).action is Action.CREATED
    bench.assert_at(stack)


@pytest.mark.parametrize(
    ("event", "number"),
    [
        ("os.link", 1),
        *product(("os.rename",), range(1, 9)),
        *product(("subprocess.Popen",), range(1, 7)),
    ],
)
def test_a_file_written_while_it_is_replaced_is_kept(
    bench: Bench, moving: Stacked, event: str, number: int
) -> None:
    with writing_before(bench, event, number):
        try:
            action = bench.enter(moving).action
        except SurroundingsError as error:
            assert "edit.py was changed while" in str(error)
        else:
            # before or after its turn
            assert action in (Action.REFUSED, Action.MOVED)
    assert (bench.path / "edit.py").read_text() == "mine\n"
    assert bench.look().edited == ("edit.py",)


def test_a_commit_made_while_files_are_replaced_is_kept(bench: Bench, moving: Stacked) -> None:
    """Before the refs move: all is put back, the commit stays."""
    before = disk_files(bench.path)
    head = bench.git("rev-parse", "HEAD")
    mine = bench.git("commit-tree", "-p", head, "-m", "Mine", f"{head}^{{tree}}")
    moves = 0

    def commit(happening: str, _: object) -> None:
        nonlocal moves
        moves += happening == "os.rename" and (bench.path / ".git/patchkit/move/index").exists()
        if moves == 3:
            moves += 1
            (bench.path / ".git/refs/heads/patchkit").write_text(f"{mine}\n")

    hooks.append(commit)
    try:
        with pytest.raises(
            SurroundingsError, match="the branch was changed while patchkit"
        ) as error:
            bench.enter(moving)
    finally:
        hooks.remove(commit)
    assert error.value.problems[0].hint == "run the command again"
    assert bench.git("rev-parse", "HEAD") == mine
    assert disk_files(bench.path) == before
    assert bench.git("status", "--porcelain") == ""
    assert bench.look().state is CheckoutState.EXTRA_COMMITS


HOSTILE = """\
[core]
\tautocrlf = true
\teol = crlf
\tfileMode = false
\tsymlinks = false
\tfsmonitor = true
\tuntrackedCache = true
\tsplitIndex = true
\tsparseCheckout = true
\tquotePath = true
\tattributesFile = {home}/attributes
\texcludesFile = {home}/ignore
\thooksPath = {home}/hooks
\tlogAllRefUpdates = false
\tpreloadIndex = false
[commit]
\tgpgSign = true
[gpg]
\tprogram = false
[init]
\ttemplateDir = {home}/template
\tdefaultBranch = trunk
[index]
\tsparse = true
\tthreads = true
\tversion = 4
[status]
\tshowUntrackedFiles = no
\tshort = true
[diff]
\tignoreSubmodules = all
\trenames = copies
\texternal = false
[filter "evil"]
\tclean = false
\tsmudge = false
\trequired = true
[safe]
\tdirectory = /nowhere
[transfer]
\tfsckObjects = true
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose git is set up as differently as can be; returns a file that hooks write to."""
    home = Path(os.environ["HOME"])
    (home / ".gitconfig").write_text(HOSTILE.format(home=home))
    (home / "attributes").write_text("* filter=evil eol=crlf text\n")
    (home / "ignore").write_text("*\n")
    alarm = tmp_path / "alarm"
    for folder in ("hooks", "template/hooks"):
        (home / folder).mkdir(parents=True)
        for name in ("reference-transaction", "post-index-change", "post-checkout"):
            hook = home / folder / name
            hook.write_text(f"#!/bin/sh\necho {name} >> {alarm}\nexit 1\n")
            hook.chmod(0o755)
    for name, value in {
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_NAMESPACE": "evil",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_ICASE_PATHSPECS": "1",
        "GIT_TRACE": str(alarm),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "LC_ALL": "de_DE.UTF-8",
    }.items():
        monkeypatch.setenv(name, value)
    return alarm


def test_the_users_configuration_does_not_matter(
    bench: Bench, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base: Files = {**BASE, "link": Symlink("a.py"), "crlf.txt": "1\r\n2\r\n", "lf.txt": "1\n2\n"}
    with monkeypatch.context() as context:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            context.delenv(name)
        context.setenv("HOME", "/nowhere")
        old = bench.stack(base, CHANGE)
        new = bench.stacked(bench.base, bench.upstream.commit({"lf.txt": "1\n3\n", "b.py": "2\n"}))
    assert bench.enter(old).action is Action.CREATED
    assert bench.look().state is CheckoutState.APPLIED
    assert bench.enter(new).action is Action.MOVED
    assert bench.enter(new).action is Action.UNCHANGED
    bench.write("lf.txt", "mine\n")
    assert bench.enter(old).action is Action.REFUSED
    assert bench.enter(old, force=True).saved
    assert not hostile.exists(), hostile.read_text()
    with monkeypatch.context() as context:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            context.delenv(name)
        context.setenv("HOME", "/nowhere")
        bench.assert_at(old)
        assert (b"crlf.txt", b"1\r\n2\r\n") in disk_files(bench.path)
        assert (b"link", b"a.py") in disk_files(bench.path)


def test_line_ends_stay_when_the_user_commits_with_autocrlf(bench: Bench) -> None:
    bench.enter(bench.stack())
    git_in(bench.path, "config", "--global", "core.autocrlf", "true")
    (bench.path / "a.py").touch()
    assert bench.git("status", "--porcelain") == ""
    bench.git("checkout", "-q", "HEAD~1")
    assert (bench.path / "a.py").read_bytes() == b"one\n"


@pytest.mark.parametrize("name", ["refs/heads/patchkit", "refs/patchkit/applied", "HEAD"])
def test_the_lock_of_a_ref_that_a_killed_git_left_is_in_nobodys_way(
    bench: Bench, name: str
) -> None:
    bench.enter(bench.stack())
    new = bench.stack(BASE, {"a.py": "other\n"})
    if name == "HEAD":
        bench.git("checkout", "-q", "--detach")
    (bench.path / ".git" / f"{name}.lock").touch()
    bench.enter(new, force=True)
    bench.assert_at(new)


def test_a_lock_in_our_own_folder_is_in_nobodys_way(bench: Bench) -> None:
    """A git that was not let write was not let remove it, either."""
    stack = bench.stack()
    bench.enter(stack)
    bench.write("a.py", "mine\n")
    left = bench.checkout.own_folder / "move" / "worktree.index.lock"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    # as a bump finds it, that asks for the worktree before anything else
    assert read_worktree(bench.checkout, stack.place.tip).tree
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    assert bench.enter(stack, force=True).saved
