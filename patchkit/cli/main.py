"""The entry point: find the command, run it, turn whatever happens into an exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from contextlib import suppress

from patchkit.errors import FAILED_CHECKS, SurroundingsError

# Nobody reads our output any more; what the shell reports for a process that SIGPIPE ended.
_BROKEN_PIPE = 141


def main() -> None:
    """Run patchkit on the process's arguments and exit."""
    if sys.platform == "win32":  # no flock, no fork: nothing would be safe there
        sys.exit(_refuse_system())
    collect_rarely()
    _open_streams()
    if not sys.warnoptions:
        # about code of upstreams that we parse, say; `python -W` and PYTHONWARNINGS ask for them
        warnings.simplefilter("ignore")
    code = run(sys.argv[1:])
    # no search for cycles in what the system takes back at once: a tenth of a short command
    gc.freeze()
    sys.exit(code)


def _refuse_system() -> int:
    print("error: patchkit needs Linux or another POSIX system", file=sys.stderr)
    print(
        "hint: on Windows run it in WSL, with the project on its own file system", file=sys.stderr
    )
    return 5


def _open_streams() -> None:
    """Open streams that are closed: the next file would get the number of one, and be written to by
    whatever writes to it, as git does.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def run(argv: list[str]) -> int:
    """Run a command line; returns the exit code, never raises."""
    from patchkit.cli.failure import report_failed_checks, report_failure

    try:
        try:
            _end_on_signals()
            code = _run_command(argv)
            if FAILED_CHECKS:
                report_failed_checks(argv)
        except BrokenPipeError:
            raise
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            code = report_failure(_unwritten() or error, argv)
        unwritten = _unwritten()
        return report_failure(unwritten, []) if unwritten else code
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE


def _unwritten() -> SurroundingsError | None:
    """Why stdout does not take what was written, on a full disk below it, which is dropped then."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        return SurroundingsError(f"the output cannot be written: {error.strerror}")
    return None


def _run_command(argv: list[str]) -> int:
    import typer

    from patchkit.cli.application import app

    command = typer.main.get_command(app)
    if "_PATCHKIT_COMPLETE" in os.environ:
        with suppress(SystemExit):
            command.main(argv, "patchkit")
        return 0
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    try:
        # not `command.main`: it takes a broken pipe for an error of its own
        try:
            context = command.make_context("patchkit", list(argv))
        except SystemExit as end:  # of typer's options for completion
            return int(end.code or 0)
        with context:
            return command.invoke(context) or 0
    except typer.Exit as end:
        return end.exit_code


def collect_rarely() -> None:
    """Let Python look for cycles seldom, of which there are few here.

    A check that parses many files spent a third of its time on that, a walk through a history a
    tenth; a command's memory stays the same.
    """
    gc.set_threshold(1_000_000, 20, 100)


def _end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as ^C does: with its git processes and scratch folders.

    A signal that somebody ignores on purpose, as nohup does, stays ignored.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _drop_output() -> None:
    # Python flushes stdout once more when it ends, and would complain about the pipe again
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
