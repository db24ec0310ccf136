"""Prints help pages without loading typer: they are files, written by `python -m tools.reference`.

`pages/` holds the page of each command, and `commands.tsv`, which completion reads; a test keeps
them fresh.
"""

from __future__ import annotations

import os
import sys

from patchkit.cli.catalog import COMMANDS, split_command, subcommands

#: The table of commands and their parameters, a row each: command, names of the option (none: an
#: argument; no names and no value: the command itself), what it takes (nothing: a flag), "*" if it
#: may be repeated, what it is for.
TABLE = "commands.tsv"

_USAGE = 2

#: Commands of git, quilt and StGit that are typed here, and what does that.
_ELSEWHERE = {
    "commit": "`patchkit refresh` takes edits and commits into the patches",
    "push": "`patchkit apply` applies the whole series",
    "pop": "`patchkit drop` takes a patch off the series",
    "goto": "`patchkit apply` applies the whole series",
    "show": "`patchkit log` lists the patches, `diff` shows edits, `blame` whose a line is",
    "series": "`patchkit log` lists the patches",
    "rebase": "`patchkit bump` moves the pin and carries the patches there",
    "update": "`patchkit bump` moves the pin and carries the patches there",
    "upgrade": "`patchkit bump` moves the pin and carries the patches there",
    "pull": "`patchkit bump` moves the pin and carries the patches there",
    "add": "`git add` in the checkout, then `patchkit refresh`",
    "clone": "`patchkit init` writes a manifest, `patchkit apply` makes the checkout",
    "checkout": "`patchkit apply` makes the checkouts, `git switch patchkit` in one goes back",
    "delete": "`patchkit drop` takes a patch off the series",
    "remove": "`patchkit drop` takes a patch off the series",
    "lint": "`patchkit check`, or `patchkit manifest lint`",
}
_PAGES = os.path.join(os.path.dirname(__file__), "pages")


def print_help(words: list[str]) -> int:
    """Print the page of the command that `words` start with, or of patchkit itself."""
    found = split_command(words)
    if found is not None:
        _print_page(generated(page_file(found[0])))
    elif words == ["patchkit"]:
        _print_page(generated(page_file("")))
    elif group := subcommands(words[0]):
        _print_page("\n".join(generated(page_file(name)) for name in group))
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
        at = next((n for n in range(1, len(words)) if split_command(words[n:])), 0)
        line = [*words[at:], *words[:at]] if at else ["COMMAND", "[OPTIONS]"]
        print(f"hint: options come after it: patchkit {' '.join(line)}", file=sys.stderr)
        return _USAGE
    print(f"error: {given}: no such command", file=sys.stderr)
    if given in _ELSEWHERE:
        print(f"hint: {_ELSEWHERE[given]}", file=sys.stderr)
        return _USAGE
    close = get_close_matches(given, COMMANDS, n=2, cutoff=0.6)
    meant = f"did you mean {' or '.join(close)}?" if close else "`patchkit --help` lists them"
    print(f"hint: {meant}", file=sys.stderr)
    return _USAGE


def page_file(name: str) -> str:
    """The file of a command's page; of the overview for ""."""
    return f"{name.replace(' ', '-') or 'patchkit'}.txt"


def generated(file: str) -> str:
    """The text of a generated file."""
    with open(os.path.join(_PAGES, file), encoding="utf-8") as page:
        return page.read()


def _print_page(page: str) -> None:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in page.removesuffix("\n").split("\n"):
        heading = coloured and line.endswith(":") and not line.startswith(" ")
        print(f"\x1b[1m{line}\x1b[0m" if heading else line)
