"""What identifies a pin in the cache, and what every way of fetching shares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from patchkit.errors import BadInputError, PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.pins import PINS
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
)
from patchkit.model.names import readable_url
from patchkit.model.progress import Progress, Stop

if TYPE_CHECKING:
    from patchkit.gitcmd.remote import Listener


class Fetching(Struct, frozen=True):
    """What every way of fetching needs: where to put things, whom to tell, when to give up."""

    name: str  # of the component, for progress
    cache: Path  # patchkit's cache folder
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

    @property
    def listener(self) -> Listener | None:
        """Who is told how far git is; None where nobody sees it."""
        return self.count if self.progress.counts else None

    def step(self, what: str) -> None:
        """Tell what happens now."""
        self.progress.step(self.name, what)

    def count(self, done: int, total: int | None) -> None:
        """Tell how many bytes have arrived, or how far git is."""
        self.progress.advance(self.name, done, total)


@contextmanager
def about(name: str) -> Iterator[None]:
    """Every problem raised inside names `name`, where it names no other place."""
    try:
        yield
    except PatchkitError as error:
        kind = BadInputError if isinstance(error, BadInputError) else SurroundingsError
        raise kind(*(Problem(p.what, p.where or name, p.hint) for p in error.problems)) from error
    except OSError as error:  # a full disk, a folder that cannot be written
        what = f"{error.filename or 'the cache'}: {error.strerror or error}"
        hint = "make room, or put the cache elsewhere with --cache DIR"
        raise SurroundingsError(Problem(what, name, hint)) from error


#: Part of the ref of everything unpacked from an archive: raise it when unpacking changes, so that
#: what an older patchkit unpacked is not taken for what this one would.
UNPACKING = "v1"


def pin_ref(component: Component) -> str:
    """The ref that keeps the component's pin, and says that it is whole."""
    match component.pin:
        case GitPin(commit):
            return commit_ref(commit)
        case IndexPin(version, digest):
            return f"{PINS}{UNPACKING}/{re.sub('[^A-Za-z0-9.]', '-', version)}/{digest}"
        case ArchivePin(digest):
            return f"{PINS}{UNPACKING}/{digest}"


def pin_words(component: Component) -> str:
    """The pin as a message says it: what it is of, and which."""
    match component.source:
        case GitSource(url):
            return f"{readable_url(url)} at {component.pin}"
        case IndexSource(project):
            return f"{project}=={component.pin}"
        case ArchiveSource(url):
            return readable_url(url)


def commit_ref(commit: str) -> str:
    """The ref of a commit that is a git upstream's own."""
    return PINS + commit
