"""The entry point: find the command, run it, turn whatever happens into an exit code.

Nothing but `sys` and the command list is imported up here: `--version`, `--help` and completion are
answered from text that was generated when patchkit was built (see `tools.reference`), and
one command's module is imported only to run that command.
"""

from __future__ import annotations

import sys

from patchkit import __version__
from patchkit.cli.catalog import split_command

# Nobody reads our output any more; what the shell reports for a process that SIGPIPE ended.
_BROKEN_PIPE = 141


def main() -> None:
    """Run patchkit on the process's arguments and exit."""
    if sys.platform == "win32":  # no flock, no fork: nothing would be safe there
        sys.exit(_refuse_system())
    collect_rarely()
    _open_streams()
    _warn_of_nothing()
    code = run(sys.argv[1:])
    _collect_no_more()
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
    import os

    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def run(argv: list[str]) -> int:
    """Run a command line; returns the exit code, never raises."""
    try:
        argv = _changed_folder(argv)
        found = split_command(argv)
        if (asked := _help_asked(argv)) or found is None:
            code = _answer(argv, asked)
        else:
            _end_on_signals()
            code = _run_command(*found)
            _report_failed_checks(argv)
    except BrokenPipeError:
        return _broken_pipe()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        code = _report(error, argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _broken_pipe()
    except OSError as error:  # a full disk below a file that stdout goes to
        from patchkit.errors import SurroundingsError

        _drop_output()
        what = f"the output cannot be written: {error.strerror}"
        return _report(SurroundingsError(what), [])
    return code


def _changed_folder(argv: list[str]) -> list[str]:
    """The command line after `-C DIR`, which means as in git: go there first."""
    while argv[:1] == ["-C"]:
        import os

        from patchkit.errors import UsageError

        if len(argv) < 2:
            raise UsageError("-C needs a folder", hint="patchkit -C DIR COMMAND")
        try:
            os.chdir(argv[1])
        except OSError as error:
            raise UsageError(f"-C {argv[1]}: {error.strerror}") from error
        argv = argv[2:]
    return argv


def _answer(argv: list[str], asked: list[str]) -> int:
    """Answer what is no command: version, completion, help, or a word that is none."""
    if argv in (["--version"], ["-V"]):
        print(f"patchkit {__version__}")
        return 0
    if argv[:1] == ["__complete"]:
        from patchkit.cli.help import complete

        return complete(argv[1:])
    from patchkit.cli.help import print_help, print_unknown

    return print_help(asked) if asked or not argv else print_unknown(argv)


def _help_asked(argv: list[str]) -> list[str]:
    """The words to explain, if help is asked for; ["patchkit"] for patchkit itself."""
    options = argv[: argv.index("--")] if "--" in argv else argv
    if argv[:1] == ["help"]:
        return argv[1:] or ["patchkit"]
    if "--help" in options or "-h" in options:
        return [word for word in options if not word.startswith("-")] or ["patchkit"]
    return []


def _run_command(name: str, arguments: list[str]) -> int:
    from patchkit.cli import command

    body = command.body_of(name)
    parameters = command.parameters_of(body)
    options = command.read_plainly(parameters, arguments)
    if options is not None:
        return command.call_body(body, options)
    return command.run_by_typer(name, arguments)


def _warn_of_nothing() -> None:
    """Let Python keep its warnings to itself, about code of upstreams that we parse, say; where
    somebody asked for them (`python -W`, PYTHONWARNINGS) they stay.
    """
    import warnings

    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def collect_rarely() -> None:
    """Let Python look for cycles seldom, of which there are few here.

    A check that parses many files spent a third of its time on that, a walk through a history a
    tenth; a command's memory stays the same.
    """
    import gc

    gc.set_threshold(1_000_000, 20, 100)


def _collect_no_more() -> None:
    """Let Python not look for cycles as it ends, in what the system takes back at once: a tenth of
    what a short command costs.
    """
    import gc

    gc.freeze()


def _end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as ^C does: with its git processes and scratch folders.

    A signal that somebody ignores on purpose, as nohup does, stays ignored.
    """
    import signal

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _report(error: BaseException, argv: list[str]) -> int:
    from patchkit.cli.failure import report_failure

    try:
        return report_failure(error, argv)
    except BrokenPipeError:
        return _broken_pipe()


def _report_failed_checks(argv: list[str]) -> None:
    from patchkit.errors import FAILED_CHECKS

    if FAILED_CHECKS:
        from patchkit.cli.failure import report_failed_checks

        report_failed_checks(argv)


def _broken_pipe() -> int:
    _drop_output()
    return _BROKEN_PIPE


def _drop_output() -> None:
    # Python flushes stdout once more when it ends, and would complain about the pipe again
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
