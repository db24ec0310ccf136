"""What makes two upstreams, or two pins of one, the same for the cache."""

from __future__ import annotations

import re

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.pins import PINS
from patchkit.gitcmd.remote import normal_url, readable_url
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Source,
)

#: Part of the ref of everything unpacked from an archive: raise it when unpacking changes, so that
#: what an older patchkit unpacked is not taken for what this one would.
UNPACKING = "v1"


def upstream_key(source: Source) -> str:
    """The same text for every way to write one upstream; mirrors do not matter."""
    if isinstance(source, GitSource):
        return normal_url(source.url)
    if isinstance(source, IndexSource):
        return "index/" + normal_project(source.project)
    return "archive/" + normal_url(source.url)


def pin_ref(component: Component) -> str:
    """The ref that keeps the component's pin, and says that it is whole."""
    match component.source, component.pin:
        case GitSource(), GitPin(commit):
            return commit_ref(commit)
        case IndexSource(), IndexPin(version, digest):
            return f"{PINS}{UNPACKING}/{re.sub('[^A-Za-z0-9.]', '-', version)}/{digest}"
        case ArchiveSource(), ArchivePin(digest):
            return f"{PINS}{UNPACKING}/{digest}"
    problem = Problem(
        f"the pin of {component.name} does not go with its source", str(component.pin_where)
    )
    raise BadInputError(problem)


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


def normal_project(project: str) -> str:
    """A project's name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", project).lower()
