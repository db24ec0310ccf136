"""The product goes to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TextIO

import pytest
from msgspec import Struct

from patchkit.cli.display import Answers, showing_progress
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Terminal, colour_wanted
from patchkit.errors import ExitCode
from patchkit.extensions.installed.layer import PatchPresence
from patchkit.extensions.installed.stacks_in_packages import IntoResult
from patchkit.extensions.machine.documents import Condition
from patchkit.extensions.planning.plan_report import Grade
from patchkit.extensions.python_guards.verdicts import TargetVerdict
from patchkit.model.outcome import Status
from patchkit.ops.apply import ApplyResult
from patchkit.workspace.state import CheckoutState
from tests.support.commands import run_process
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch


class _Result(Struct, frozen=True):
    name: str


def _render(terminal: Terminal, result: _Result) -> None:
    terminal.product(result.name)


def _stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding, write_through=True)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_off_a_terminal(environment: dict[str, str], expected: bool) -> None:
    assert colour_wanted(io.StringIO(), environment) is expected


@pytest.mark.parametrize(
    "kind",
    [
        Status,
        Condition,
        CheckoutState,
        ApplyResult,
        Grade,
        IntoResult,
        TargetVerdict,
        PatchPresence,
    ],
)
def test_every_state_has_a_look(kind: type[Enum]) -> None:
    assert all(word(each).text.split(" ", 1)[1] == each.value for each in kind)


def test_colour_on_a_terminal() -> None:
    with _screen() as screen:
        assert colour_wanted(screen.stream, {"TERM": "xterm"})
        assert not colour_wanted(screen.stream, {"TERM": "dumb"})
        assert not colour_wanted(screen.stream, {"NO_COLOR": "1"})


class _Screen(Struct):
    """What is shown on a terminal, and the stream of who writes to it."""

    file: int
    stream: TextIO

    def until(self, word: str) -> str:
        """What is shown up to a word; fails where it does not come."""
        shown = b""
        while word.encode() not in shown:
            assert select.select([self.file], [], [], 20)[0], shown
            shown += os.read(self.file, 65536)
        return shown.decode()


@contextlib.contextmanager
def _screen() -> Iterator[_Screen]:
    """A terminal that output and errors of this process go to."""
    main, other = pty.openpty()
    with (
        os.fdopen(main, "rb"),
        os.fdopen(other, "w") as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
    ):
        yield _Screen(main, stream)


def test_a_last_column_without_room_goes_below_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    with _screen() as screen:
        Terminal().table([("a" * 40, "ok"), ("b", "the middle of a bump, 1 file edited")])
        Terminal().product("end")
        screen.stream.flush()
        assert [line.rstrip() for line in screen.until("end").splitlines()] == [
            "a" * 40 + "  ok",
            "b",
            "    the middle of a bump, 1 file edited",
            "end",
        ]


def test_reports(capsys: pytest.CaptureFixture[str]) -> None:
    result = _Result("x")
    assert Terminal().report("do", result, ExitCode.OK, _render) is ExitCode.OK
    assert capsys.readouterr() == ("x\n", "")
    Terminal(quiet=True).report("do", result, ExitCode.OK, _render)
    assert capsys.readouterr() == ("", "")
    Terminal(quiet=True).report("do", result, ExitCode.FINDING, _render)
    assert capsys.readouterr() == ("x\n", "")
    Terminal(json=True).report("do it", result, ExitCode.FINDING, _render)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["schema"], printed["exit_code"], printed["name"]) == (
        "patchkit/do-it/2",
        1,
        "x",
    )


def test_quiet_keeps_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(quiet=True)
    terminal.say("step")
    terminal.hint("do this")
    terminal.warn("careful")
    terminal.problem("broken")
    assert capsys.readouterr() == ("", "warning: careful\nerror: broken\n")


def test_a_diff_is_written_to_the_byte_unless_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\x1b\r\n+\xff"
    for force, expected in (("0", data), ("1", b"\x1b[32m+\\xff\x1b[0m\n")):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("FORCE_COLOR", force)
        stream = _stream("utf-8")
        with contextlib.redirect_stdout(stream):
            Terminal().diff(data)
        assert stream.buffer.getvalue().endswith(expected)  # type: ignore[attr-defined]


def test_an_output_without_the_symbols_gets_plain_ones() -> None:
    stream = _stream("latin-1")
    with contextlib.redirect_stdout(stream):
        Terminal().product([word(Status.UNCHANGED), " é ", "漢"])
    assert stream.buffer.getvalue() == "+ unchanged é \\u6f22\n".encode("latin-1")  # type: ignore[attr-defined]


def test_what_is_said_does_not_overtake_the_product() -> None:
    script = "from patchkit.cli.terminal import Terminal as T; t = T(); t.product('a'); t.say('b')"
    done = subprocess.run(
        [sys.executable, "-c", script + "; t.product('c')"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    assert done.stdout == b"a\nb\nc\n"


def test_progress_off_a_terminal_is_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_progress(Terminal()) as progress:
        progress.step("demo", "fetching \x1b")
        progress.step("demo", "downloading")
        progress.advance("demo", 1, 2)
        progress.finish("demo", "fetched")
        progress.step("demo", "applying 3 patches", local=True)
        progress.finish("demo", "applied")
    assert capsys.readouterr() == ("", "demo: fetching \\e\ndemo: fetched\n")
    with showing_progress(Terminal(quiet=True)) as progress:
        progress.step("demo", "fetching")
    assert capsys.readouterr() == ("", "")


_BARS = """\
import select, sys, time
from patchkit.cli.terminal import Terminal
from patchkit.cli.display import showing_progress
with showing_progress(Terminal()) as progress:
    progress.step("demo", "fetching [bold]it[/bold]")
    while LONG and not select.select([sys.stdin], [], [], 0.1)[0]:
        progress.advance("demo", 1, 10)
    progress.finish("demo", "fetched")
    print("Which one? ", end="", file=sys.stderr, flush=True)
    time.sleep(0.3)
    print("This one.", file=sys.stderr, flush=True)
    progress.step("other", "fetching")
Terminal().say("done")
"""


@pytest.mark.parametrize("long", [True, False])
def test_progress_on_a_terminal_is_bars_if_it_takes_a_while(long: bool) -> None:
    """The work goes on until the bar is seen; where nothing is under way, a question stays."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", _BARS.replace("LONG", str(long))])
    bar, written = b"fetching [bold]it[/bold]", b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        if bar not in written and bar in written + chunk:
            os.write(terminal, b"\n")
        written += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (bar in written) is long
    assert b"Which one? This one." in written
    assert written.endswith(b"done\r\n")


def test_a_process_in_the_c_locale_writes_symbols() -> None:
    run_process("--version", environment={**os.environ, "LC_ALL": "C"}).ok()


def test_answers_come_in_one_order_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    answers = Answers[str](Terminal(), ["a", "b", "c"], Terminal.product, shown=True)
    answers("b", "second")
    assert capsys.readouterr().out == ""
    answers("a", "first")
    assert capsys.readouterr().out == "first\nsecond\n"
    answers.interrupted()
    assert capsys.readouterr() == ("", "error: no answer yet for c\n")


def test_answers_come_as_they_are_known_where_somebody_watches() -> None:
    with _screen() as screen:
        terminal = Terminal()
        answers = Answers[str](terminal, ["a", "b"], Terminal.product, shown=True)
        with showing_progress(terminal) as progress:
            progress.step("a", "looking")
            progress.step("b", "looking")
            shown = screen.until("looking")  # the bars are there
            answers("b", "the second")
            answers("a", "the first")
        shown += screen.until("the first")
        assert shown.index("the second") < shown.index("the first")


def _on_screen(written: str) -> list[str]:
    """The lines of a terminal that moves its cursor up, and erases lines, where it is told to."""
    lines, row = [""], 0
    for part in re.split(r"(\x1b\[[?0-9;]*[a-zA-Z]|\r|\n)", written):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part == "\x1b[1A":
            row = max(row - 1, 0)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part and part[0] not in "\x1b\r":
            lines[row] += part
    return [line for line in lines if line]


def test_bars_leave_what_was_printed_above_them() -> None:
    """They went over it when they came back: five bars wiped the last four lines."""
    with _screen() as screen:
        terminal = Terminal()
        answers = Answers[str](terminal, ["a", "b", "c"], Terminal.product, shown=True)
        with showing_progress(terminal) as progress:
            terminal.product("before")
            for name in "abc":
                progress.step(name, "looking")
            shown = screen.until("c")
            for name in "abc":
                answers(name, f"the answer for {name}")
                shown += screen.until("looking")  # the bars are back
            progress.finish("b", "done")
            progress.step("c", "waiting")
            shown += screen.until("waiting")
            assert not [line for line in _on_screen(shown) if " b " in line]
        terminal.product("end")
        screen.stream.flush()
        shown += screen.until("end")
        answered = [f"the answer for {name}" for name in "abc"]
        assert _on_screen(shown) == ["before", *answered, "end"]


def test_ci_tells_what_drifted_while_others_are_looked_at(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    other = Upstream.create(tmp_path / "other.git")
    patch = make_patch({"a": "a\n"}, {"a": "b\n"}, subject="Say b", body="It is b.")
    for name, each in (("one", upstream), ("two", other)):
        project.component(name, each, {"a": "a\n"}, {"b.patch": patch}, track="main")
    project.run("fetch").ok()
    with _screen() as screen:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(20)
            url = f"git://127.0.0.1:{server.getsockname()[1]}/r.git"
            (Path.home() / ".gitconfig").write_text(f'[url "{url}"]\n\tinsteadOf = {other.url}\n')
            program = [sys.executable, "-m", "patchkit", "ci"]
            out = screen.stream
            process = subprocess.Popen(program, cwd=project.root, stdout=out, stderr=out)
            with server.accept()[0]:  # nobody answers for the second
                shown = screen.until(" main to ")
                process.terminate()
                process.wait(20)
        parts = ("one  1 patch applies", "2 components, 2 patches", "demo: one  main to ")
        assert sorted(map(shown.index, parts)) == [shown.index(each) for each in parts], shown
