"""The typer application: commands that are imported when they are called, and what is said without
one.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from patchkit import __version__
from patchkit.cli.catalog import (
    COMMANDS,
    GROUPS,
    all_commands,
    place_of,
    split_command,
)
from patchkit.cli.command import about, load_command, summary
from patchkit.errors import SurroundingsError, UsageError

#: What `patchkit` alone shows: a command line for each task of the daily round.
_ROUND = {
    "init NAME --git URL --ref TAG": "pin an upstream in a new manifest",
    "init --here": "adopt patches that are here, as they are",
    "apply": "fetch, patch and check out upstreams",
    "status": "show where each checkout is",
    "refresh": "record edits in the patches",
    "check": "find patches that do not apply",
    "drift": "name the commit that broke a patch",
    "bump COMPONENT --to TAG": "move to another upstream version",
    "undo": "take the last change back",
}

#: What is typed here without being a command, as in git, quilt and StGit, and what does that.
_ELSEWHERE = {
    "commit": "`patchkit refresh` records edits and commits in the patches",
    "push": "`patchkit apply` applies the whole series",
    "pop": "`patchkit drop` takes a patch off the series",
    "goto": "`patchkit apply` applies the whole series",
    "series": "`patchkit log` lists the patches",
    "rebase": "`patchkit bump` moves the pin and carries the patches there",
    "update": "`patchkit bump` moves the pin and carries the patches there",
    "upgrade": "`patchkit bump` moves the pin and carries the patches there",
    "pull": "`patchkit bump` moves the pin and carries the patches there",
    "blame": "`git blame` in the checkout: each patch is a commit there",
    "clone": "`patchkit init` writes a manifest, `patchkit apply` makes the checkout",
    "checkout": "`patchkit apply` makes the checkouts, `git switch patchkit` in one goes back",
    "delete": "`patchkit drop` takes a patch off the series",
    "remove": "`patchkit drop` takes a patch off the series",
    "lint": "`patchkit check`, or `patchkit check --only manifest`",
    "new": "`patchkit refresh` makes a patch of edits, with --new",
    "rename": "`patchkit edit` gives a patch another name",
    "version": "`patchkit --version` says which one runs",
    "test": "`patchkit check --only tests` runs upstream's own",
    "doctor": "`patchkit check --only machine` looks at this machine",
    "graph": "`patchkit log` says which patches need which",
}


class Commands(TyperGroup):
    """The commands of the catalog."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The word of each command, in the catalog's order."""
        return list(dict.fromkeys(name.split()[0] for name in all_commands()))

    def get_command(self, ctx: typer.Context, word: str) -> Any:  # type: ignore[override]
        """The command; None where there is no such word."""
        return load_command(word) if place_of(word) else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raises UsageError with what may be meant."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            raise _no_such_command(args[0])
        if found := split_command(args):
            return found[0], load_command(found[0]), found[1]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A section for each group, with the commands that extensions bring."""
        for title, names in groups().items():
            if words := [name for name in names if " --" not in name]:
                with formatter.section(title):
                    formatter.write_dl([(name, summary(name)) for name in words])


def groups() -> dict[str, list[str]]:
    """The commands by the title of their group, those of extensions last; imports these, and leaves
    out what cannot be loaded.
    """
    found = {title: [*commands] for title, commands in GROUPS.items()}
    for name in all_commands():
        if name not in COMMANDS:
            with suppress(SurroundingsError):
                found.setdefault(about(name).group, []).append(name)
    return found


def _no_such_command(word: str) -> UsageError:
    close = " or ".join(get_close_matches(word, all_commands(), n=2, cutoff=0.6))
    hint = f"did you mean {close}?" if close else "`patchkit --help` lists them"
    given = word.encode("ascii", "backslashreplace").decode()
    return UsageError(f"{given}: no such command", hint=_ELSEWHERE.get(word, hint))


def _go_to(folders: list[Path] | None) -> list[Path] | None:
    for folder in folders or ():
        try:
            os.chdir(folder)
        except OSError as error:
            raise UsageError(f"-C {folder}: {error.strerror}") from error
    return folders


def _say_version(wanted: bool) -> None:
    if wanted:
        from patchkit.gitcmd.process import git_version, require_git

        print(f"patchkit {__version__}")
        require_git()
        print(f"git {'.'.join(map(str, git_version()))}, Python {sys.version.split()[0]}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
    subcommand_metavar="COMMAND [OPTIONS]",
    options_metavar="",
)


@app.callback()
def patchkit(
    ctx: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Option("-C", metavar="DIR", callback=_go_to, help="Go there first, as git -C does."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            is_eager=True,
            callback=_say_version,
            help="Say which patchkit, git and Python run.",
        ),
    ] = False,
) -> None:
    """Patch stacks on pinned upstreams: apply them, check them, see them drift."""
    if ctx.invoked_subcommand is None:
        print("Carry patches on pinned upstreams.\n")
        for line, meaning in _ROUND.items():
            print(f"  patchkit {line:<30} {meaning}")
        print("\n`--help` lists all commands, `COMMAND --help` explains one.")
