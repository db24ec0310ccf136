"""What can go wrong, as the user sees it: exit codes and the exceptions that carry them.

A patch that does not apply or a checkout that drifted is a *result*, never an exception: operations
return it and the command line turns it into exit code 1 or 3. Exceptions are for what stops a
component: input that cannot be read, a git that is missing, a fetch that failed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from msgspec import Struct

_Answer = TypeVar("_Answer")

#: What the system says when it has no more of something, or fails: nothing about the file that
#: was to be read, so nothing that a verdict on the file may rest on.
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


class ExitCode(IntEnum):
    """The process exit codes; part of the public interface."""

    OK = 0
    FINDING = 1  # a patch does not apply, drift, a refusal to touch the user's edits
    USAGE = 2
    HALTED = 3  # stopped on a conflict, the next step is printed
    BAD_INPUT = 4  # manifest, series, patch file
    ENVIRONMENT = 5  # git missing or too old, fetch failed, locked, no disk
    BUG = 70
    INTERRUPTED = 130


_SEVERITY = (
    ExitCode.OK,
    ExitCode.FINDING,
    ExitCode.HALTED,
    ExitCode.ENVIRONMENT,
    ExitCode.BAD_INPUT,
    ExitCode.USAGE,
    ExitCode.INTERRUPTED,
    ExitCode.BUG,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The code that a run over several components exits with; OK for none."""
    return max(codes, key=_SEVERITY.index, default=ExitCode.OK)


class Problem(Struct, frozen=True):
    """One thing that is wrong: where ("file:line", a component, or empty), what, and what to do."""

    what: str
    where: str = ""
    hint: str = ""  # what to type or change; "" for none

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


#: A file that has more mistakes is something else than it is taken for.
_MOST_PROBLEMS = 20


def first_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The first mistakes in a file, and how many more there are."""
    more = len(problems) - _MOST_PROBLEMS
    rest = (Problem(f"{more} more problems", hint="fix these first"),) if more > 0 else ()
    return (*problems[:_MOST_PROBLEMS], *rest)


class OfComponents:
    """A report on `components`, which is as bad as the worst of them."""

    __slots__ = ()

    components: Any  # a tuple of what each report has for one
    broken: Any = ()  # manifests that could not be read, where there may be several

    @property
    def exit_code(self) -> ExitCode:
        """The worst of the components, and of manifests that could not be read."""
        return worst(each.exit_code for each in (*self.components, *self.broken))

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """Each once: a dead host is one problem, however many want something from it."""
        of_all = (*self.broken, *self.components)
        return tuple(dict.fromkeys(problem for each in of_all for problem in each.problems))


class PatchkitError(Exception):
    """Expected trouble; carries every problem found, not only the first."""

    exit_code = ExitCode.ENVIRONMENT

    def __init__(self, *problems: Problem | str, hint: str = "") -> None:
        self.problems = tuple(
            p if isinstance(p, Problem) else Problem(p, hint=hint) for p in problems
        )
        super().__init__("\n".join(str(p) for p in self.problems))


class UsageError(PatchkitError):
    """The command line asks for something that does not go together, or names what is not there."""

    exit_code = ExitCode.USAGE


class BadInputError(PatchkitError):
    """A manifest, series, patch or lock file that cannot be taken as it is."""

    exit_code = ExitCode.BAD_INPUT


class SurroundingsError(PatchkitError):
    """Git missing or too old, a dead host, a full disk, a lock held by somebody else."""

    exit_code = ExitCode.ENVIRONMENT


def expected(error: OSError | PatchkitError, where: str = "") -> PatchkitError:
    """The error as one of ours: what the system says of a file is about `where`."""
    if isinstance(error, PatchkitError):
        return error
    place = os.fsdecode(error.filename) if error.filename else "the system"
    return SurroundingsError(Problem(f"{place}: {error.strerror or error}", where))


#: The tracebacks of checks that failed, each once; the command line writes them to a log.
FAILED_CHECKS: dict[str, None] = {}


def advice(check: Callable[..., _Answer], *about: Any) -> _Answer | None:
    """What a check says that only advises; None if it fails, for the caller to flag.

    Only a person looks at what such a check says. What decides the bytes is never asked this way:
    that has to fail loudly.
    """
    try:
        return check(*about)
    except Exception:  # whatever is wrong with a check, the stack is carried on
        import traceback  # noqa: PLC0415 (next to no run needs it)

        FAILED_CHECKS[traceback.format_exc()] = None
        return None
