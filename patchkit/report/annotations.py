"""Notices as workflow commands, which GitHub shows beside the lines of a pull request.

A workflow command is a line that begins with `::`. Whatever upstream wrote into a subject or a path
is escaped as GitHub's own toolkit does it, so that it can end no line and begin no command.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.report.values import Level, Notice

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def annotation_lines(notices: Iterable[Notice]) -> list[str]:
    """One line for each notice."""
    return [_line(each) for each in notices]


def _line(notice: Notice) -> str:
    facts = {"title": notice.title}
    if notice.path:
        facts = {"file": notice.path, "line": str(max(1, notice.line)), **facts}
    told = ",".join(f"{key}={_property(value)}" for key, value in facts.items())
    return f"::{_COMMANDS[notice.level]} {told}::{_data(notice.message)}"


def _data(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    # what other readers of logs take for the end of a line
    return "".join(char if char.isprintable() or char == " " else _named(char) for char in text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _named(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
