"""What of a machine is looked at and made for it, and the option for site values; apart from the
rest, as `--help` loads them.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A site value; @FILE: those of a file, `name: value` a line in YAML. May be given "
        "several times: a value that is typed wins over a file's.",
    ),
]


class Topic(str, Enum):
    """What can be looked at by itself."""

    SYSTEM = "system"  # Python, CANN, NNAL, driver
    PACKAGES = "packages"  # what is installed in the Python
    VARIABLES = "variables"  # the environment of this shell
    METADATA = "metadata"  # what components ask for, beside the manifest


class DocumentKind(str, Enum):
    """What can be made by itself."""

    ENVIRONMENT = "env"
    INSTALL = "install"
    DOCKERFILE = "dockerfile"
    LAUNCH = "launch"
    VERSIONS = "versions"
    LOCK = "lock"  # asks the package index: made only where it is named
