"""What the user's own git configuration says: who makes a patch, and when."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
    command = [git_program(), "var", "GIT_AUTHOR_IDENT"]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=folder, check=False)
    said = done.stdout.decode("utf-8", "surrogateescape").strip() if done.returncode == 0 else ""
    name, mark, rest = said.partition(" <")
    email = rest.rpartition("> ")[0]
    if not mark:
        raise SurroundingsError(
            "git has no author identity",
            hint='git config --global user.name "..."; git config --global user.email "..."',
        )
    return Identity(name, email, when)


def _in_utc(text: str) -> str:
    """A date in git's raw form, in UTC; "" for none. A day alone is its first second."""
    forms = (f"{text} +0000", text, f"{text}T00:00:00Z")
    found = next(filter(None, map(parse_date, forms)), "")
    return f"{found.partition(' ')[0]} +0000" if found else ""
