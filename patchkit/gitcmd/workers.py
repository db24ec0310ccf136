"""Work on several components at once, or on parts of one, in processes of patchkit's own.

Python runs one thread at a time, so threads do not help where it computes. One part is always done
here, in the calling process; workers do the others, and end when it has no more for them.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from threading import Event, Lock
from typing import IO, Any

from patchkit.errors import FAILED_CHECKS
from patchkit.model.progress import Progress, Stop
from patchkit.parallel import Answer, Begun, Item, in_parallel, share_memory

#: Seconds before the first worker is started: most commands have ended by then.
_PATIENCE = 1.0
#: The most processes at once; each may take 200 MiB.
_MOST = 4


def in_processes(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    progress: Progress,
    stop: Stop,
    told: Callable[[Item, Answer], None] = lambda _item, _answer: None,
    first: Callable[[], None] = lambda: None,
    helped: bool = True,
) -> tuple[Answer, ...]:
    """Do `work` on every item, as `in_parallel` does: one at a time here, the others in workers.

    Items are begun in their order; before the first one here comes `first`. `told` is called here
    with each answer as soon as it is known. `work`, items and answers are pickled, except for
    `progress`: calls of it in a worker are made here. If a worker cannot be started, or dies, its
    item is done here. Without being `helped` all are.
    """
    begun, ended = Begun(len(items)), Event()
    answers: dict[int, Answer] = {}

    def note(number: int, answer: Answer) -> None:
        answers[number] = answer
        told(items[number], answer)

    def do_here() -> None:
        try:
            first()
            while (number := begun.take()) is not None:
                note(number, work(items[number]))
        finally:
            begun.take_all()  # an error ends the others, too
            ended.set()

    def ask() -> None:
        if not ended.wait(_PATIENCE):
            for number, answer in _answers(begun, lambda n: (work, items[n], stop), progress, stop):
                note(number, answer)

    workers = max(1, min(_MOST, os.cpu_count() or 1) - 1) if helped else 0
    slots = [do_here, *[ask] * workers]
    in_parallel(lambda slot: slot(), slots, jobs=len(slots), stop=stop.ask)
    lost = [number for number in range(len(items)) if number not in answers]
    in_parallel(lambda number: note(number, work(items[number])), lost, jobs=1, stop=stop.ask)
    return tuple(answers[number] for number in range(len(items)))


def _answers(
    begun: Begun, question: Callable[[int], object], progress: Progress, stop: Stop
) -> Iterator[tuple[int, Any]]:
    """The answers of a new worker, until nothing is left to ask, or it dies."""
    number = begun.take()
    if number is None:
        return
    try:
        worker = _Worker()
    except OSError:  # no more processes
        return
    with closing(worker), stop.killing(worker.kill):
        while number is not None and (answer := worker.ask(question(number), progress)):
            yield number, *answer
            number = begun.take()


class _Worker:
    """A process that answers one question after another, and passes on calls of the progress.

    It is not forked, because this process has threads, nor started by `multiprocessing`, which
    would run the main program again. It has the same import path. It does not get ^C: this process
    ends it.
    """

    def __init__(self) -> None:
        path = f"import sys; sys.path[:] = {sys.path}"
        code = f"{path}; from patchkit.gitcmd.workers import serve; serve()"
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        self.kill = self._process.terminate

    def ask(self, question: object, progress: Progress) -> tuple[Any] | None:
        """The answer to a question; None where the process ends without one."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        finished: list[Callable[[], None]] = []  # called once the answer is known
        with suppress(BrokenPipeError, EOFError, pickle.UnpicklingError):
            _Pickler(questions, progress).dump((question, progress.counts, gc.get_threshold()))
            questions.flush()
            while len(message := pickle.load(answers)) == 3:
                name, said, named = message
                tell = partial(getattr(progress, name), *said, **named)
                if name == "finish":
                    finished.append(tell)
                else:
                    tell()
            found, failed = message
            FAILED_CHECKS.update(failed)
            for finish in finished:
                finish()
            return (found,)
        return None

    def close(self) -> None:
        """Let it end, and wait for that."""
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
    with suppress(BaseException):  # the caller does the item again, and reports the error
        while True:
            question, relay.counts, threshold = _Unpickler(sys.stdin.buffer, relay).load()
            work, item, stop = question
            gc.set_threshold(*threshold)
            relay.send(*in_parallel(work, [item], jobs=1, stop=stop.ask), dict(FAILED_CHECKS))
