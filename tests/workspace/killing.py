"""Kill a piece of work at the n-th thing that it does to the disk, or let that thing fail.

An audit hook counts what Python does to files and processes. Work to be killed runs in a forked
child, which ends without any clean-up (SIGKILL) just before the n-th.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeAlias

_EVENTS = {
    "os.rename",
    "os.link",
    "os.symlink",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "os.truncate",
    "shutil.rmtree",
    "shutil.copyfile",
    "subprocess.Popen",
}
_NEED_ROOM = {"os.mkdir", "os.link", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


#: Is called at each audit event, with its arguments.
_Hook: TypeAlias = Callable[[str, tuple[object, ...]], None]


class _Hooks(list[_Hook]):
    """Those that are called now. Python keeps an audit hook for as long as the process runs, and
    each costs all tests after it: there is one, in a process that needs it.
    """

    def append(self, hook: _Hook) -> None:
        _ask_hooks()
        super().append(hook)


hooks = _Hooks()


@cache
def _ask_hooks() -> None:
    def ask(event: str, arguments: tuple[object, ...]) -> None:
        if hooks:
            for hook in list(hooks):
                hook(event, arguments)

    sys.addaudithook(ask)


def killed_at(
    point: int, work: Callable[[], object], *, once: Callable[[], bool] = lambda: True
) -> bool:
    """Run `work` in a child, kill it before the `point`-th event; False if it ended before that.

    Events count from the moment at which `once` is true.
    """
    child = os.fork()
    if child == 0:
        _die_at(point, once)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == 0, "the work failed by itself"
    return False


def kept(root: Path) -> Callable[[], object]:
    """What puts a folder back as it is now."""
    template = root.with_name("template")
    shutil.copytree(root, template, symlinks=True)

    def put_back() -> None:
        shutil.rmtree(root)
        shutil.copytree(template, root, symlinks=True)

    return put_back


def kills(
    work: Callable[[], object], put_back: Callable[[], object], *, step: int, first: int = 1
) -> Iterator[int]:
    """Each point at which the work was just killed, begun anew; the last one is behind its end."""
    for point in range(first, 3000, step):
        put_back()
        killed = killed_at(point, work)
        yield point
        if not killed:
            return
    raise AssertionError("the work never came to its end")


def _die_at(point: int, once: Callable[[], bool]) -> None:
    left = point

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in _EVENTS or (event == "open" and _opens_to_write(arguments)):
            left -= left < point or once()
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def _opens_to_write(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & _WRITES)


def failing_at(
    point: int, work: Callable[[], object], error: BaseException
) -> BaseException | bool:
    """Run `work`, whose `point`-th event raises the error; False if there were not so many.

    Returns what `work` raised then; True if it went on as if nothing had happened.
    """
    left = point

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in _EVENTS or (event == "open" and _opens_to_write(arguments)):
            left -= 1
            if left == 0:
                raise error

    hooks.append(count)
    try:
        work()
    except BaseException as raised:
        if left > 0:
            raise
        return raised
    finally:
        hooks.remove(count)
    return left <= 0


@contextmanager
def full_disk(*, after: int, git: bool) -> Iterator[list[int]]:
    """In the block, the disk is full once `after` things that need room were done.

    To make a folder, a link or a file fails then, and with `git` each start of one. A rename needs
    no room. Yields a list of one number, how often something failed.
    """
    done, failed = 0, [0]

    def fail(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        needs = event in _NEED_ROOM or (git and event == "subprocess.Popen")
        if needs or (event == "open" and _opens_to_write(arguments)):
            done += 1
            if done > after:
                failed[0] += 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))

    hooks.append(fail)
    try:
        yield failed
    finally:
        hooks.remove(fail)


@contextmanager
def failing_git(command: str) -> Iterator[list[str]]:
    """In the block, the first git with that command cannot be started; yields it, once it was."""
    failed: list[str] = []

    def fail(event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" and not failed and command in str(arguments[1]):
            failed.append(command)
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), "git")

    hooks.append(fail)
    try:
        yield failed
    finally:
        hooks.remove(fail)


@contextmanager
def failing_once(event: str, when: Callable[[], bool]) -> Iterator[None]:
    """In the block, the first such event at which `when` is true fails; it has to come."""
    failed = False

    def fail(happening: str, _: tuple[object, ...]) -> None:
        nonlocal failed
        if happening == event and not failed and when():
            failed = True
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), event)

    hooks.append(fail)
    try:
        yield
    finally:
        hooks.remove(fail)
    assert failed, "it never came to that"


@contextmanager
def just_before(event: str, action: Callable[[], object]) -> Iterator[None]:
    """In the block, `action` happens just before the first such event; it has to come."""
    left = [action]

    def happen(happening: str, _: tuple[object, ...]) -> None:
        if happening == event and left:
            left.pop()()

    hooks.append(happen)
    try:
        yield
    finally:
        hooks.remove(happen)
    assert not left, "it never came to that"
