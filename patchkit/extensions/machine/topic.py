"""What of a machine is looked at; apart from the rest, as `--help` loads it."""

from __future__ import annotations

from enum import Enum


class Topic(str, Enum):
    """What can be looked at by itself."""

    SYSTEM = "system"  # Python, CANN, NNAL, driver
    PACKAGES = "packages"  # what is installed in the Python
    VARIABLES = "variables"  # the environment of this shell
    METADATA = "metadata"  # what components ask for, beside the manifest
