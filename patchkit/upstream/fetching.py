"""What every way of fetching needs, and how its errors come to name the component."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, PatchkitError, Problem, SurroundingsError
from patchkit.model.progress import Progress, Stop


class Fetching(Struct, frozen=True):
    """What every way of fetching needs: where to put things, whom to tell, when to give up."""

    name: str
    cache: Path
    progress: Progress
    stop: Stop

    @property
    def scratch(self) -> Path:
        """Where throw-away repositories are made; on the cache's file system."""
        return self.cache / "scratch"

    @property
    def downloads(self) -> Path:
        """Where unfinished downloads wait to be resumed."""
        return self.cache / "downloads"

    def step(self, what: str) -> None:
        """Tell what happens now."""
        self.progress.step(self.name, what)

    def advance(self, what: str, done: int, total: int | None) -> None:
        """Tell how far it is; `what` is git's own step and goes without saying."""
        self.progress.advance(self.name, done, total)

    def count(self, done: int, total: int | None) -> None:
        """Tell how many bytes have arrived."""
        self.progress.advance(self.name, done, total)


@contextmanager
def about(name: str) -> Iterator[None]:
    """Every problem raised inside names `name`, where it names no other place."""
    try:
        yield
    except PatchkitError as error:
        raise _placed(error, name) from error
    except OSError as error:  # a full disk, a folder that cannot be written
        what = f"{error.filename or 'the cache'}: {error.strerror or error}"
        hint = "make room, or put the cache elsewhere with --cache DIR"
        raise SurroundingsError(Problem(what, name, hint)) from error


def _placed(error: PatchkitError, name: str) -> PatchkitError:
    problems = (Problem(p.what, p.where or name, p.hint) for p in error.problems)
    kind = BadInputError if isinstance(error, BadInputError) else SurroundingsError
    return kind(*problems)
