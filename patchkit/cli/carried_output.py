"""What became of a patch that was carried, for people: each file that is worth a word, and why."""

from __future__ import annotations

import textwrap
from shutil import get_terminal_size

from patchkit.cli.terminal import Terminal
from patchkit.cli.text import Paint, Painted
from patchkit.cli.words import word
from patchkit.model.outcome import FileOutcome, Status
from patchkit.ops.carry import CarriedFileRow

_NARROW = 40
_HANGING = 2


def print_carried(
    terminal: Terminal, name: str, status: Status, *, review: bool, indent: int = 0
) -> None:
    """The line of a patch."""
    note = [Painted("  review", Paint.NOTICE)] if review else []
    terminal.product(["  " * indent, word(status), "  ", name, *note])


def print_carried_file(terminal: Terminal, file: FileOutcome | CarriedFileRow) -> None:
    """A file with its reasons; nothing for one that there is nothing to say about."""
    offset = file.offset if isinstance(file, CarriedFileRow) else 0
    if not (file.reasons or file.review or offset or file.status is Status.CONFLICTED):
        return
    sure = f", {file.confidence:.0%} sure" if file.review else ""
    shift = f", {offset:+} lines" if offset and file.status is Status.SHIFTED else ""
    place = f" -> {file.carried_to}" if file.carried_to else ""
    terminal.product(["    ", word(file.status), f"  {file.path}{place}{shift}{sure}"])
    for reason in file.reasons:
        for indent, line in wrapped(reason, 8):
            terminal.product([indent, Painted(line, Paint.FAINT)])


def wrapped(text: str, indent: int) -> list[tuple[str, str]]:
    """(indent, text) of the lines for which the terminal has room; paths stay whole."""
    width = max(_NARROW, get_terminal_size().columns) - indent - _HANGING
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [(" " * (indent + _HANGING * bool(n)), line) for n, line in enumerate(lines)]
