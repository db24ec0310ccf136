"""`patchkit completion`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

_SCRIPTS = Path(__file__).parent.parent / "shells"


class Shell(str, Enum):
    """A shell that patchkit completes for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command(
    examples=[
        ('eval "$(patchkit completion bash)"', "in ~/.bashrc"),
        ('eval "$(patchkit completion zsh)"', "in ~/.zshrc, after compinit"),
        ("patchkit completion fish | source", "in ~/.config/fish/config.fish"),
    ],
    exits={ExitCode.OK: "printed"},
)
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="The shell.")],
) -> ExitCode:
    """Print the script that makes a shell complete patchkit.

    Commands, options, manifests, components and patches are completed. The script asks patchkit
    itself, so it need not be made again after an update.
    """
    script = _SCRIPTS / f"patchkit.{shell.value}"
    Terminal().document(script.read_text(encoding="utf-8"))
    return ExitCode.OK
