"""Who the user is, as their own git says: the author of a patch that they make."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from patchkit.errors import SurroundingsError, UsageError
from patchkit.gitcmd.process import git_program, network_environment
from patchkit.model.dates import parse_date
from patchkit.model.patch import Identity


def user_identity(folder: Path, date: str = "") -> Identity:
    """The author of a patch that is made in `folder`; SurroundingsError if git knows none.

    Its date, in UTC, is `date`, else what GIT_AUTHOR_DATE or SOURCE_DATE_EPOCH gives, else none: by
    the clock no two runs would write the same file. UsageError for a `date` that is none.
    """
    environment = network_environment()
    given = date or environment.pop("GIT_AUTHOR_DATE", "") or os.environ.get("SOURCE_DATE_EPOCH")
    when = _in_utc(given or "")
    if given and not when:
        what = f"{given!a} is no date"
        raise UsageError(what, hint="2026-01-31, 2026-01-31T12:00:00Z, or seconds since 1970")
    done = subprocess.run(
        [git_program(), "var", "GIT_AUTHOR_IDENT"],
        capture_output=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    name, mark, rest = done.stdout.decode("utf-8", "surrogateescape").strip().partition(" <")
    email = rest.rpartition("> ")[0]
    if done.returncode != 0 or not mark:
        raise SurroundingsError(
            "git does not know who you are",
            hint='git config --global user.name "..."; git config --global user.email "..."',
        )
    return Identity(name, email, when)


def _in_utc(text: str) -> str:
    """A date in git's raw form, in UTC; "" for none. A day alone is its first second."""
    forms = (f"{text} +0000", text, f"{text}T00:00:00Z")
    found = next(filter(None, map(parse_date, forms)), "")
    return f"{found.partition(' ')[0]} +0000" if found else ""
