"""Several components at once, in processes: where what they take is Python's own time.

One is always done here, in the process that asks; how others of it are begun and end, see `_Worker`
and `serve`.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import IO, Any, TypeVar

from patchkit.errors import FAILED_CHECKS
from patchkit.model.progress import Progress, Stop
from patchkit.parallel import in_parallel, share_memory

Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: So many seconds all is done here: most commands are through by then, and start no process.
_PATIENCE = 1.0
#: At most so many at once: each may take 200 MiB.
_MOST = 4


def in_processes(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    progress: Progress,
    stop: Stop,
    told: Callable[[Item, Answer], None] = lambda _item, _answer: None,
    first: Callable[[], None] = lambda: None,
) -> tuple[Answer, ...]:
    """`work` on every item as `in_parallel` does it, on one here and on others in processes; `told`
    gets each answer, here, as soon as it is there. What is done here begins with `first`.

    `work`, items and answers are pickled, but `progress`: what `work` tells it there, it is told
    here. What a process does not bring to an end, as it cannot be started or dies, is done here.
    """
    here, began = Lock(), time.monotonic()
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def answer(item: Item) -> Answer:
        if not here.acquire(timeout=max(0.0, began + _PATIENCE - time.monotonic())):
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                worker = _Worker() if idle.empty() else idle.get()
                with stop.killing(worker.kill):
                    found: Answer = worker.ask((work, item, stop), progress)
                idle.put(worker)
                return found
            here.acquire()
        try:
            stop.check()
            return work(item)
        finally:
            here.release()

    def do_first() -> None:
        try:
            first()
        finally:
            here.release()

    def do(item: Item) -> Answer:
        found = answer(item)
        told(item, found)
        return found

    here.acquire()  # for `first`
    tasks: list[Callable[[], Any]] = [do_first, *(partial(do, item) for item in items)]
    jobs = max(2, min(_MOST, os.cpu_count() or 1))
    try:
        _, *answers = in_parallel(lambda task: task(), tasks, jobs=jobs, stop=stop.ask)
    finally:
        while not idle.empty():
            idle.get().close()
    return tuple(answers)


class _Worker:
    """A process that answers one question after the other, and hands on what is told meanwhile.

    It is not forked, as this process has threads, and `multiprocessing` would run the program that
    uses patchkit once more. It imports what this one would, and ^C does not reach it: this process
    ends it.
    """

    def __init__(self) -> None:
        code = (
            f"import sys; sys.path[:] = {sys.path}; from patchkit import processes as p; p.serve()"
        )
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        self.kill = self._process.terminate

    def ask(self, question: object, progress: Progress) -> Any:
        """The answer to a question; EOFError where the process ends without one."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        try:
            _Pickler(questions, progress).dump((question, progress.counts, gc.get_threshold()))
            questions.flush()
            while len(message := pickle.load(answers)) == 3:
                name, said, named = message
                getattr(progress, name)(*said, **named)
        except BaseException:
            self.close()
            raise
        found, failed = message
        FAILED_CHECKS.update(failed)
        return found

    def close(self) -> None:
        """Let it end: it has nothing more to answer."""
        with suppress(OSError):  # it is gone with what it was to be asked
            self._process.communicate()


class _Pickler(pickle.Pickler):
    """Leaves a listener out."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        super().__init__(file)
        self._progress = progress

    def persistent_id(self, value: object) -> bool | None:
        return True if value is self._progress else None


class _Unpickler(pickle.Unpickler):
    """Puts another one in its place."""

    def __init__(self, file: IO[bytes], relay: _Relay) -> None:
        super().__init__(file)
        self._relay = relay

    def persistent_load(self, _left_out: object) -> _Relay:
        return self._relay


class _Relay:
    """A listener like `Progress`, for one in the process that asked."""

    counts = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._lock = file, Lock()

    def send(self, *message: object) -> None:
        """Write a message."""
        with self._lock:
            pickle.dump(message, self._file)
            self._file.flush()

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *said, **named: self.send(name, said, named)


def serve() -> None:
    """Answer the questions of the process that started this one until there are no more."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    share_memory()
    relay = _Relay(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # nothing else may come between the answers
    with suppress(BaseException):  # what it is, shows where the question is asked once more
        while True:
            question, relay.counts, threshold = _Unpickler(sys.stdin.buffer, relay).load()
            work, item, stop = question
            gc.set_threshold(*threshold)
            relay.send(*in_parallel(work, [item], jobs=1, stop=stop.ask), dict(FAILED_CHECKS))
