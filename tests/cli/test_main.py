"""From a command line to an exit code, whatever happens on the way."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit import __version__
from patchkit.cli.catalog import split_command
from patchkit.cli.failure import report_failure
from patchkit.errors import (
    BadInputError,
    ExitCode,
    Problem,
    SurroundingsError,
    UsageError,
    expected,
)
from tests.support.commands import run
from tests.support.golden import Golden


def test_the_version() -> None:
    assert run("--version").out == run("-V").out
    patchkit, rest = run("--version").out.splitlines()
    assert patchkit == f"patchkit {__version__}"
    assert re.fullmatch(r"git \d+\.\d+, Python 3\.\d+\.\d+\S*", rest)


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("unknown-command", ["versoin"]),
        ("unknown-form", ["check", "--only", "manifets"]),
        ("option-first", ["-q", "status"]),
    ],
)
def test_usage_errors(golden: Golden, name: str, argv: list[str]) -> None:
    ran = run(*argv).ends(ExitCode.USAGE)
    golden(f"usage-{name}", ran)


@pytest.mark.parametrize(
    ("argv", "offender"),
    [
        (["abort", "--nope"], "--nope"),
        (["init", "a", "b"], "b"),
        (["drift", "--format", "tcsh"], "tcsh"),
        (["drop"], "PATCH"),
    ],
)
def test_usage_errors_that_typer_finds(argv: list[str], offender: str) -> None:
    ran = run(*argv).ends(ExitCode.USAGE)
    message, hint = ran.err.splitlines()
    assert message.startswith("error: ")
    assert offender in message
    assert f"patchkit {argv[0]}" in hint


def test_help_is_the_same_however_it_is_asked_for() -> None:
    page = run("init", "--help").ok().out
    assert page.startswith("Usage: patchkit init [OPTIONS] [NAME]\n")
    for argv in (["help", "init"], ["init", "-h"]):
        assert run(*argv).ok().out == page
    assert run("--help").out == run("help").out


def test_without_a_command_it_shows_the_daily_round() -> None:
    shown = [
        split_command(line.split()[1:]) for line in run().ok().out.splitlines() if "  p" in line
    ]
    assert len(shown) == 9
    assert None not in shown


def test_an_option_chooses_a_form_of_a_command() -> None:
    page = run("check", "--only", "manifest", "--help").ok().out
    assert page.startswith("Usage: patchkit check --only manifest [OPTIONS] [MANIFEST]\n")
    for argv in (["check", "--only=manifest", "--help"], ["check", "--help", "--only", "manifest"]):
        assert run(*argv).ok().out == page
    assert "check --only manifest Say what" in " ".join(run("check", "--help").ok().out.split())
    run("status", "--help").ok().shows("status --resolved ")
    assert "status --resolved" not in run("--help").ok().out


def test_every_problem_is_printed_with_its_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error = BadInputError(
        Problem("version: unknown", where="a.yaml:1", hint="write 1"),
        Problem("pin: too short", where="a.yaml:2", hint="use 40 digits"),
        Problem("pin: too short", where="a.yaml:7", hint="use 40 digits"),
    )
    assert report_failure(error, ["apply"]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "error: a.yaml:1: version: unknown\nhint: write 1\n"
        "error: a.yaml:2: pin: too short\nerror: a.yaml:7: pin: too short\nhint: use 40 digits\n"
    )


def test_errors_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    error = SurroundingsError("git is missing", hint="install it")
    assert report_failure(error, ["apply", "--json"]) == ExitCode.ENVIRONMENT
    captured = capsys.readouterr()
    assert captured.err == "error: git is missing\nhint: install it\n"
    assert json.loads(captured.out) == {
        "schema": "patchkit/error/2",
        "patchkit": __version__,
        "exit_code": 5,
        "problems": [{"what": "git is missing", "where": "", "hint": "install it"}],
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (KeyboardInterrupt(), 130),
        (FileNotFoundError(2, "No such file", "x"), 5),
        (SystemExit(0), 70),
        (MemoryError(), 5),
        (ImportError("_ssl.so: cannot open shared object file: Too many open files"), 5),
        (ImportError("no module named x"), 70),
    ],
)
def test_every_exception_has_a_code(error: BaseException, code: int) -> None:
    assert report_failure(error, ["apply"]) == code


def test_a_bug_leaves_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ZeroDivisionError("oh")
    except ZeroDivisionError as error:
        assert report_failure(error, ["apply", "-m", "x"]) == ExitCode.BUG
    err = capsys.readouterr().err
    assert err.startswith("error: this is a bug in patchkit: ZeroDivisionError: oh\n")
    (log,) = (tmp_path / "home").rglob("details-*.log")
    assert str(log) in err
    text = log.read_text()
    assert "arguments: ['apply', '-m', 'x']" in text
    assert "Traceback" in text


@pytest.mark.parametrize("argv", [["init", "--schema"], ["--version"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "patchkit", *argv],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            timeout=30,
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("word", "named"), [("commit", "refresh"), ("push", "apply"), ("rebase", "bump")]
)
def test_a_command_of_git_or_quilt_gets_the_one_of_patchkit(word: str, named: str) -> None:
    run(word).ends(ExitCode.USAGE, f"hint: `patchkit {named}` ")


def test_what_the_system_says_names_the_file_or_the_system() -> None:
    """It was "None: ..." of an error without a file, "b'/x': ..." of one that git's bytes name."""
    full = OSError(errno.ENOSPC, "No space left on device")
    assert expected(full, "app").problems == (
        Problem("the system: No space left on device", "app"),
    )
    named = OSError(errno.EIO, "Input/output error", b"/x")
    assert str(expected(named)) == "/x: Input/output error"
    assert expected(expected(named), "app").exit_code is ExitCode.ENVIRONMENT
