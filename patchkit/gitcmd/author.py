"""What the user's own git configuration says: who makes a patch and when, and in which editor."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from patchkit.disk.files import scratch_folder
from patchkit.errors import SurroundingsError, UsageError
from patchkit.gitcmd.process import git_program, network_environment
from patchkit.model.dates import parse_date
from patchkit.model.patch import Identity


def user_identity(folder: Path) -> Identity:
    """The author of a patch that is made in `folder`; SurroundingsError if git knows none.

    Its date, in UTC, is what GIT_AUTHOR_DATE or SOURCE_DATE_EPOCH gives, else none: by the clock no
    two runs would write the same file. UsageError for one that is no date.
    """
    environment = network_environment()
    given = environment.pop("GIT_AUTHOR_DATE", "") or os.environ.get("SOURCE_DATE_EPOCH")
    when = _in_utc(given or "")
    if given and not when:
        what = f"{given!a} is no date"
        raise UsageError(what, hint="2026-01-31, 2026-01-31T12:00:00Z, or seconds since 1970")
    name, mark, rest = _variable("GIT_AUTHOR_IDENT", folder, environment).partition(" <")
    email = rest.rpartition("> ")[0]
    if not mark:
        raise SurroundingsError(
            "git has no author identity",
            hint='git config --global user.name "..."; git config --global user.email "..."',
        )
    return Identity(name, email, when)


def _variable(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What git knows by a name in a folder; "" for nothing."""
    command = [git_program(), "var", name]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=folder, check=False)
    text = done.stdout.decode("utf-8", "surrogateescape").strip()
    return text if done.returncode == 0 else ""


def _in_utc(text: str) -> str:
    """A date in git's raw form, in UTC; "" for none. A day alone is its first second."""
    forms = (f"{text} +0000", text, f"{text}T00:00:00Z")
    found = next(filter(None, map(parse_date, forms)), "")
    return f"{found.partition(' ')[0]} +0000" if found else ""


_EDITORS = ("GIT_EDITOR", "VISUAL", "EDITOR")


def edit_text(folder: Path, text: str, name: str) -> str:
    """What the user makes of a text in the editor that git would start in `folder`.

    `name` is that of the file which the editor shows. SurroundingsError if it ends with an error,
    or where there is no terminal for it and the environment names none: it would wait for ever.
    """
    if not (any(map(os.environ.get, _EDITORS)) or all(map(os.isatty, (0, 1)))):
        raise SurroundingsError("there is no terminal for an editor", hint="use --message TEXT")
    editor = _variable("GIT_EDITOR", folder, network_environment())
    if not editor:
        raise SurroundingsError("git has no editor configured", hint="set EDITOR, or use --message")
    with scratch_folder() as place:
        file = place / name
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        # a line for the shell, as git takes it
        done = subprocess.run(["sh", "-c", f'{editor} "$@"', editor, str(file)], check=False)
        if done.returncode != 0:
            raise SurroundingsError(f"the editor failed: {editor}", hint="or use --message")
        return file.read_text(encoding="utf-8", errors="surrogateescape")
