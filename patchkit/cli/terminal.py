"""What patchkit writes: the product on stdout, everything else on stderr.

A *product* is what the command was asked for (a report, a diff, JSON). Progress, warnings, hints
and errors are not. `--quiet` leaves out everything but warnings, errors and reports of trouble;
`--json` puts the JSON where the report would be.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from shutil import get_terminal_size
from typing import TextIO, TypeAlias, TypeVar

from msgspec import Struct

from patchkit.errors import ExitCode, Problem
from patchkit.model.text import clean

# Text on its way to a terminal: made harmless, coloured by meaning, laid out in columns.
#
# Upstream text (paths, subjects, lines of files) may hold terminal escapes. So colour is never a
# part of a `str` here: a line is made of pieces, every `str` among them is cleaned when it is
# written, and only `Painted` pieces get colour.


class Paint(str, Enum):
    """A colour by what it means; the value is the SGR code, so equal colours are one member."""

    GOOD = "32"
    NOTICE = "33"
    BAD = "31"
    ADDED = "32"
    REMOVED = "31"
    PLACE = "36"
    STRONG = "1"
    FAINT = "2"

    @property
    def escape(self) -> str:
        """The terminal escape that turns it on."""
        return f"\x1b[{self.value}m"


class Painted(Struct, frozen=True):
    """Text with a colour."""

    text: str
    paint: Paint


Piece: TypeAlias = str | Painted
Line: TypeAlias = Piece | Sequence[Piece]


def width(line: Line) -> int:
    """How many columns a line takes."""
    return sum(_columns(char) for piece in pieces(line) for char in clean(_text(piece)))


def pieces(line: Line) -> Sequence[Piece]:
    """A line as its pieces."""
    return (line,) if isinstance(line, str | Painted) else line


def render(line: Line, *, colour: bool) -> str:
    """The line as it is written."""
    return "".join(_render_piece(piece, colour) for piece in pieces(line))


def columns(rows: Iterable[Sequence[Line]], *, indent: int = 0, gap: int = 2) -> list[list[Piece]]:
    """Rows of cells as lines with aligned columns; the last column is left as long as it is."""
    rows = [_without_empty_end(row) for row in rows]
    count = max(map(len, rows), default=0)
    widths = [max((width(r[i]) for r in rows if i < len(r) - 1), default=0) for i in range(count)]
    lines: list[list[Piece]] = []
    for row in rows:
        line: list[Piece] = [" " * indent]
        for index, cell in enumerate(row):
            line.extend(pieces(cell))
            if index < len(row) - 1:
                line.append(" " * (widths[index] - width(cell) + gap))
        lines.append(line)
    return lines


def cut(text: str, room: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= room else text[: room - 1] + "…"


def _without_empty_end(row: Sequence[Line]) -> Sequence[Line]:
    while row and width(row[-1]) == 0:
        row = row[:-1]
    return row


def _render_piece(piece: Piece, colour: bool) -> str:
    if isinstance(piece, Painted) and colour and piece.text:
        return f"{piece.paint.escape}{clean(piece.text)}\x1b[0m"
    return clean(_text(piece))


def _text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Painted) else piece


def _columns(char: str) -> int:
    if (char.isascii() and char.isprintable()) or ord(char) in _PLAIN:
        return 1
    import unicodedata

    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


_Result = TypeVar("_Result")

_NARROW = 40  # nobody reads a report in fewer

#: For outputs whose encoding has no room for the signs of `patchkit.model.states`.
_PLAIN = str.maketrans({"✓": "+", "✗": "x", "≈": "+", "↻": "~", "·": ".", "→": ">", "…": "~"})


def room() -> int:
    """The columns that a report has."""
    return max(_NARROW, get_terminal_size().columns)


class Terminal:
    """The two streams of a command, and how it may write to them."""

    def __init__(self, *, quiet: bool = False, json: bool = False) -> None:
        self.quiet = quiet
        self.json = json
        self._only_kept = False
        self._out = sys.stdout
        self._err = sys.stderr
        #: Takes the bars away while something is printed in the block.
        self.above_bars: Callable[[], AbstractContextManager[None]] = nullcontext
        self._colour_out = colour_wanted(self._out, os.environ)
        self._colour_err = colour_wanted(self._err, os.environ)

    @property
    def interactive(self) -> bool:
        """Whether somebody watches stderr."""
        return self._err.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def watched(self) -> bool:
        """Whether somebody reads the product as it comes."""
        return self._out.isatty()

    def flush(self) -> None:
        """Hand on what was printed so far, to whoever reads a pipe."""
        self._out.flush()

    @property
    def error_descriptor(self) -> int | None:
        """The descriptor of stderr, for programs that write there; None where it has none."""
        try:
            return self._err.fileno()
        except (OSError, ValueError):
            return None

    # --- the product

    def report(
        self,
        command: str,
        result: _Result,
        code: ExitCode,
        render_result: Callable[[Terminal, _Result], None],
    ) -> ExitCode:
        """Print a command's result in the form asked for; hands `code` back.

        `result` is a Struct, `command` the name in the JSON schema; `render_result` prints it
        for people. With --quiet a result without trouble is not printed, but for
        where work of the user's is kept.
        """
        if self.json:
            from patchkit.report.json import envelope

            self.document(envelope(command, result, code))
        else:
            # without trouble only what is kept of the user's work is said
            self._only_kept = self.quiet and code is ExitCode.OK
            render_result(self, result)
            self._only_kept = False
        return code

    def product(self, line: Line = "") -> None:
        """One line on stdout; a terminal folds it, so that what is copied is one line."""
        if not self._only_kept:
            self._write(self._out, render(line, colour=self._colour_out))

    def table(self, rows: Iterable[Sequence[Line]], *, indent: int = 0) -> None:
        """Rows of cells on stdout, in aligned columns; put what may be long last.

        On a terminal the last cell goes below its row where the line has no room for it.
        """
        rows = list(rows)
        for line, row in zip(columns(rows, indent=indent), rows, strict=True):
            last = pieces(row[-1]) if row[1:] else ()
            if width(last) and width(line) > room() and self._out.isatty():
                self.product(line[: -len(last)])
                self.product([" " * (indent + 4), *last])
            else:
                self.product(line)

    def diff(self, data: bytes) -> None:
        """A patch or diff on stdout: its very bytes, or cleaned and coloured on a terminal."""
        if self._colour_out or self._out.isatty():
            for line in data.split(b"\n")[: -1 if data.endswith(b"\n") else None]:
                self._write(self._out, render(_diff_line(line), colour=self._colour_out))
        else:
            self.raw(data)

    def document(self, text: str) -> None:
        """Text of our own making on stdout (JSON, a schema), as it is but for a final newline."""
        self._write(self._out, text.removesuffix("\n"))

    def raw(self, data: bytes) -> None:
        """Bytes on stdout, as they are."""
        if self._only_kept:
            return
        self._out.flush()
        self._out.buffer.write(data)
        self._out.flush()

    # --- everything else

    def say(self, line: Line) -> None:
        """One line on stderr about what is going on; not with --quiet."""
        if not self.quiet:
            self._tell(line)

    def kept(self, name: str, what: str, place: str) -> None:
        """Where work of the user's in component `name` is now: said with --quiet, too."""
        self._tell(f"{name}: {what} kept as {place}")

    def also_saved(self, name: str, places: Iterable[str]) -> None:
        """The refs, or files, with what would have been gone though nobody asked to save it."""
        for place in places:
            self.kept(
                name, "what only git's index had, or came while files were replaced, is", place
            )

    def hint(self, text: str) -> None:
        """What the user can do next; not with --quiet."""
        self.say([Painted("hint:", Paint.PLACE), " ", text])

    def warn(self, problem: Problem | str) -> None:
        """Something that is wrong and does not stop the command."""
        if self._only_kept:
            return
        self._problem(Painted("warning:", Paint.NOTICE), problem)

    def problem(self, problem: Problem | str) -> None:
        """Something that is wrong and stops the command, or a component."""
        self._problem(Painted("error:", Paint.BAD), problem)

    def problems(self, problems: Sequence[Problem]) -> None:
        """All of them; a hint that neighbours share is printed once, after the last."""
        for problem, following in zip(problems, [*problems[1:], Problem("")], strict=False):
            shared = problem.hint == following.hint
            self.problem(Problem(problem.what, problem.where) if shared else problem)

    def _problem(self, label: Painted, problem: Problem | str) -> None:
        problem = Problem(problem) if isinstance(problem, str) else problem
        where: list[Piece] = [Painted(problem.where, Paint.STRONG), ": "] if problem.where else []
        first, *more = problem.what.split("\n")
        self._tell([label, " ", *where, first])
        for text in more:
            self._tell(["  ", text])
        if problem.hint:
            hint, *more = problem.hint.split("\n")
            self._tell([Painted("hint:", Paint.PLACE), " ", hint])
            for text in more:
                self._tell(["      ", text])

    def _tell(self, line: Line) -> None:
        # in a pipe stdout is held back, and what is said about the product would overtake it
        self._out.flush()
        self._write(self._err, render(line, colour=self._colour_err))

    def _write(self, stream: TextIO, text: str) -> None:
        if not (stream.encoding or "").lower().replace("-", "").startswith("utf"):
            encoding = stream.encoding or "ascii"
            text = text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
        try:
            stream.write(text + "\n")
        except BrokenPipeError:
            raise
        except OSError:
            if stream is not self._err:
                raise
            # that nobody can be told is no reason to stop
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def colour_wanted(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to colour a stream: NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") != "0":
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"


def _diff_line(line: bytes) -> Line:
    text = line.decode("utf-8", "surrogateescape")
    if text.startswith(("--- ", "+++ ", "diff --git ", "index ")):
        return Painted(text, Paint.STRONG)
    if text.startswith("@@"):
        return Painted(text, Paint.PLACE)
    if text.startswith("+"):
        return Painted(text, Paint.ADDED)
    return Painted(text, Paint.REMOVED) if text.startswith("-") else text
