"""Who the user is, as their own git says: the author of a patch that they make."""

from __future__ import annotations

import subprocess
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.process import git_program, network_environment
from patchkit.model.patch import Identity


def user_identity(folder: Path) -> Identity:
    """The author and the time of a commit made now in `folder`; SurroundingsError if unknown."""
    done = subprocess.run(
        [git_program(), "var", "GIT_AUTHOR_IDENT"],
        capture_output=True,
        env=network_environment(),
        cwd=folder,
        check=False,
    )
    name, mark, rest = done.stdout.decode("utf-8", "surrogateescape").strip().partition(" <")
    email, _, date = rest.rpartition("> ")
    if done.returncode != 0 or not mark:
        raise SurroundingsError(
            "git does not know who you are",
            hint='git config --global user.name "..."; git config --global user.email "..."',
        )
    return Identity(name, email, date)
