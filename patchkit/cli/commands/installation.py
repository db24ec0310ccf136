"""`patchkit version`: what is installed."""

from __future__ import annotations

import platform
import sys

from msgspec import Struct

from patchkit import __version__
from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode


class Versions(Struct, frozen=True):
    """What runs: `git` is "major.minor", `python` the full version, `platform` a name."""

    git: str
    python: str
    platform: str


@command(
    "json",
    examples=[("patchkit version", "what to write into a bug report")],
    exits={ExitCode.OK: "always", ExitCode.ENVIRONMENT: "git is missing or too old"},
    result="patchkit.cli.commands.installation:Versions",
)
def version(
    session: Session,
) -> ExitCode:
    """Say which patchkit, git and Python run.

    `patchkit --version` prints patchkit's own version alone, without looking for git.
    """
    from patchkit.gitcmd.process import git_version, require_git

    require_git()
    git = ".".join(map(str, git_version()))
    versions = Versions(git, platform.python_version(), sys.platform)
    return session.terminal.report("version", versions, ExitCode.OK, _render)


def _render(terminal: Terminal, versions: Versions) -> None:
    terminal.table(
        [
            ("patchkit", __version__),
            ("git", versions.git),
            ("python", versions.python),
            ("platform", versions.platform),
        ]
    )
