"""A source distribution from the user's package index: found, fetched, never built.

`pip download` would run the package's own build code to learn its metadata. Here the index is read
(listing.py), the file is taken by its SHA-256, and unpacked without running anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.sources.configuration import IndexConfiguration, index_configuration
from patchkit.sources.download import WrongHashError, download
from patchkit.sources.fetching import Fetching
from patchkit.sources.http import Http, HttpError
from patchkit.sources.identity import normal_project
from patchkit.sources.listing import ListedFile, place_files, project_files
from patchkit.sources.unpacked import commit_archive

_SHOWN_VERSIONS = 5


def fetch_sdist(
    project: str, version: str, digest: str, repository: Repository, fetching: Fetching
) -> str:
    """Download and unpack the source distribution into `repository`; the base commit's id."""
    fetching.step("looking it up")
    configuration = index_configuration()
    http = Http(configuration.access)
    files = find_sdist(http, configuration, project, version, digest)
    archive = fetching.downloads / f"{digest}-{repository.git_dir.stem}"
    fetching.step("downloading")
    urls = [file.url for file in files]
    download(http, urls, digest, archive, counter=fetching.count, stop=fetching.stop)
    fetching.step("unpacking")
    message = f"{normal_project(project)} {version}\n\nSource distribution\nsha256: {digest}\n"
    commit = commit_archive(archive, message, repository)
    archive.unlink()
    return commit


def find_sdist(
    http: Http, configuration: IndexConfiguration, project: str, version: str, digest: str
) -> tuple[ListedFile, ...]:
    """Where to get the file: the one with that SHA-256, else those of that name without a hash.

    SurroundingsError if there is none, WrongHashError if the index has another file.
    """
    listed: list[ListedFile] = []
    errors: list[PatchkitError] = []
    for look in _places(http, configuration, project):
        try:
            found = look()
        except HttpError as error:
            errors.append(error)
            continue
        exact = [file for file in found if file.sha256 == digest]
        if exact:
            return (_source(exact, project, version),)
        listed += found
    of_project = [file for file in listed if file.is_of(project)]
    of_version = [f for f in of_project if _same_version(f.version or "", version)]
    unhashed = tuple(file for file in of_version if not file.sha256)
    if unhashed:
        return unhashed
    if of_version:
        raise _other_file(of_version[0], project, version, digest)
    raise _not_there(of_project, errors, project, version)


def _places(
    http: Http, configuration: IndexConfiguration, project: str
) -> Iterator[Callable[[], tuple[ListedFile, ...]]]:
    for place in configuration.find_links:
        yield lambda place=place: place_files(http, place)  # type: ignore[misc]
    for index in configuration.indexes:
        yield lambda index=index: project_files(http, index, project)  # type: ignore[misc]


def _source(files: Iterable[ListedFile], project: str, version: str) -> ListedFile:
    """The source distribution among the files with the right hash: there is nothing else to be."""
    found = next(iter(files))
    if not found.is_of(project) or not _same_version(found.version or "", version):
        problem = Problem(
            f"the sha256 of {project} {version} is that of {found.name}",
            hint="take version and sha256 of the source distribution, not of a wheel",
        )
        raise WrongHashError(problem)
    return found


def _other_file(file: ListedFile, project: str, version: str, digest: str) -> PatchkitError:
    return WrongHashError(
        Problem(
            f"{project} {version} has sha256 {file.sha256} on the index,"
            f" the manifest says {digest}",
            hint="if upstream really changed this file, look at it, then correct the pin",
        )
    )


def _not_there(
    files: Iterable[ListedFile], errors: list[PatchkitError], project: str, version: str
) -> PatchkitError:
    problems = [problem for error in errors for problem in error.problems]
    versions = list(dict.fromkeys(file.version for file in files if file.version))
    if versions or not problems:
        what = f"no source distribution of {project} {version} on the package index"
        shown = ", ".join(sorted(versions, key=_version_key)[-_SHOWN_VERSIONS:])
        hint = f"there are {shown}" if shown else "check the name, or pip's index configuration"
        problems.insert(0, Problem(what, hint=hint))
    return SurroundingsError(*problems)


def _same_version(one: str, other: str) -> bool:
    return _normal_version(one) == _normal_version(other)


def _normal_version(version: str) -> str:
    """Enough of PEP 440 for file names; the hash decides in the end."""
    text = re.sub(r"[-_]", ".", version.strip().lower().removeprefix("v"))
    return re.sub(r"(?:\.0)+$", "", text)


def _version_key(version: str) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|[a-z]+", version.lower())
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
