"""What was found out about one thing that a stack needs, and what to do about it."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Topic(str, Enum):
    """What can be looked at by itself."""

    SYSTEM = "system"  # Python, CANN, NNAL, driver
    PACKAGES = "packages"  # what is installed in the Python
    VARIABLES = "variables"  # the environment of this shell
    METADATA = "metadata"  # what components ask for, beside the manifest


class MachineVerdict(str, Enum):
    """How a thing stands."""

    OK = "ok"
    WRONG = "wrong"
    MISSING = "missing"
    UNCERTAIN = "uncertain"  # it could not be found out
    NOTE = "note"  # worth knowing, and known to be harmless


#: These are findings; an uncertainty is told, and fails nothing.
FINDINGS = (MachineVerdict.WRONG, MachineVerdict.MISSING)


class Diagnosis(Struct, frozen=True):
    """One thing.

    `name` is what it is called in the manifest, `wanted` what the manifest says of it, `found` what
    is there, in words; `where` is the file or program that told it; `advice` what to do.
    """

    topic: Topic
    name: str
    verdict: MachineVerdict
    wanted: str = ""
    found: str = ""
    where: str = ""
    advice: str = ""
