"""`patchkit version` and `completion`: what is installed, and the shell's part of it."""

from __future__ import annotations

import platform
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from patchkit import __version__
from patchkit.cli.command import ArgumentSpec, command
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


_SCRIPTS = Path(__file__).parent.parent / "shells"


class Shell(str, Enum):
    """A shell that patchkit completes for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command(
    "",
    examples=[
        ('eval "$(patchkit completion bash)"', "in ~/.bashrc"),
        ('eval "$(patchkit completion zsh)"', "in ~/.zshrc, after compinit"),
        ("patchkit completion fish | source", "in ~/.config/fish/config.fish"),
    ],
    exits={ExitCode.OK: "printed"},
)
def completion(
    session: Session,
    shell: Annotated[Shell, ArgumentSpec(metavar="SHELL", help="The shell.")],
) -> ExitCode:
    """Print the script that makes a shell complete patchkit.

    Commands, options, manifests, components and patches are completed. The script asks patchkit
    itself, so it need not be made again after an update.
    """
    script = _SCRIPTS / f"patchkit.{shell.value}"
    Terminal().document(script.read_text(encoding="utf-8"))
    return ExitCode.OK
