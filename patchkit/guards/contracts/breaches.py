"""What is wrong between components, what is not known, and what of it `check` says.

Values only, apart from `agreement`: what prints them loads no resolver of Python names.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct


class Breach(str, Enum):
    """How a component does not keep to what another one offers."""

    MODULE = "missing module"
    PACKAGE = "missing package"  # neither a component nor a requirement gives it
    NAME = "missing name"
    ARGUMENTS = "wrong arguments"
    CROSSED = "crossed arguments"


class BrokenCall(Struct, frozen=True):
    """A place that does not fit: `target` is what it names there, defined at `defined`, "" if not.

    `component` is the one whose code `path` and `line` are in, `provider` the one it leads to, ""
    for a package that nobody gives. `signature` is what a target that is called takes, else "".
    """

    breach: Breach
    component: str
    path: str
    line: int
    within: str  # the function or class of the call
    target: str
    what: str
    provider: str = ""
    defined: str = ""
    signature: str = ""

    @property
    def place(self) -> str:
        """For messages: path:line."""
        return f"{self.path}:{self.line}"


class OpenCall(Struct, frozen=True):
    """A place of which nobody can tell whether it fits, and why."""

    path: str  # of the file in the calling component
    line: int  # from 1
    within: str  # the function or class of the call
    text: str  # the call as it is written, shortened
    why: str  # what keeps it from being judged

    @property
    def place(self) -> str:
        """For messages: path:line."""
        return f"{self.path}:{self.line}"


class Examined(Struct, frozen=True):
    """What was found in one file or many: `bound` counts the calls that fit.

    `used` are the declared receivers (their numbers) that a call was found for.
    """

    broken: tuple[BrokenCall, ...] = ()  # calls that do not fit
    open: tuple[OpenCall, ...] = ()  # calls of which nothing could be said
    bound: int = 0
    used: tuple[int, ...] = ()


def joined(parts: Sequence[Examined]) -> Examined:
    """What was found in all of them."""
    return Examined(
        broken=tuple(each for part in parts for each in part.broken),
        open=tuple(each for part in parts for each in part.open),
        bound=sum(part.bound for part in parts),
        used=tuple(sorted({number for part in parts for number in part.used})),
    )
