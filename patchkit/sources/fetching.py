"""Bring one component's pin into its repository, by the way that its source asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchkit.errors import BadInputError, PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
)
from patchkit.model.progress import Progress
from patchkit.model.stop import Stop


@dataclass(frozen=True, slots=True)
class Fetching:
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


def fetch_pin(component: Component, repository: Repository, fetching: Fetching) -> str:
    """Bring the component's pin with all its files into `repository`; the base commit's id.

    On disk: packs in `repository`, no ref.
    """
    # imported here: each kind of source needs libraries that the others can do without
    match component.source, component.pin:
        case GitSource() as source, GitPin(commit):
            from patchkit.sources.git import fetch_commit  # noqa: PLC0415

            fetch_commit(source, commit, repository, fetching, track=component.track)
            return commit
        case IndexSource(project), IndexPin(version, digest):
            from patchkit.sources.index import fetch_sdist  # noqa: PLC0415

            return fetch_sdist(project, version, digest, repository, fetching)
        case ArchiveSource() as source, ArchivePin(digest):
            from patchkit.sources.archive import fetch_archive  # noqa: PLC0415

            return fetch_archive(source, digest, repository, fetching)
    what = f"the pin of {component.name} does not go with its source"
    raise BadInputError(Problem(what, str(component.pin_where)))


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
