"""Print help pages from the generated table, without loading typer.

A command that the table does not know yet (while it is being written) gets its page made on the
spot; a test keeps the table fresh.
"""

from __future__ import annotations

import os
import sys

from patchkit.cli.catalog import COMMANDS, split_command, subcommands

_USAGE = 2


def print_help(words: list[str]) -> int:
    """Print the page of the command that `words` start with, or of patchkit itself."""
    found = split_command(words)
    if found is not None:
        _print_page(_page(found[0]))
    elif words == ["patchkit"]:
        _print_page(_page(""))
    elif group := subcommands(words[0]):
        _print_page("\n".join(_page(name) for name in group))
    else:
        return print_unknown(words)
    return 0


def print_unknown(words: list[str]) -> int:
    """Say on stderr that this is no command, and which one may be meant."""
    from difflib import get_close_matches

    given = words[0].encode("ascii", "backslashreplace").decode()
    if group := subcommands(words[0]):
        print(f"error: {given} needs a subcommand", file=sys.stderr)
        print(f"hint: {', '.join(group)}", file=sys.stderr)
        return _USAGE
    if given.startswith("-"):
        print(f"error: {given} comes before a command", file=sys.stderr)
        print("hint: options stand after the command: patchkit COMMAND [OPTIONS]", file=sys.stderr)
        return _USAGE
    print(f"error: {given}: no such command", file=sys.stderr)
    close = get_close_matches(given, COMMANDS, n=2, cutoff=0.5)
    meant = f"did you mean {' or '.join(close)}?" if close else "`patchkit --help` lists them"
    print(f"hint: {meant}", file=sys.stderr)
    return _USAGE


def _page(name: str) -> str:
    try:
        from patchkit.cli.table import PAGES

        return PAGES[name]
    except (ImportError, KeyError):
        from patchkit.cli.help_pages import command_page, overview

        return command_page(name) if name else overview()


def _print_page(page: str) -> None:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in page.removesuffix("\n").split("\n"):
        heading = coloured and line.endswith(":") and not line.startswith(" ")
        print(f"\x1b[1m{line}\x1b[0m" if heading else line)
