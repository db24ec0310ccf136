"""Bring one component's pin into its repository, by the way that its source asks for."""

from __future__ import annotations

from patchkit.errors import BadInputError, Problem
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
from patchkit.sources.fetching import Fetching


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
