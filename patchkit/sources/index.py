"""A source distribution from the user's package index: found, fetched, never built.

`pip download` would run the package's own build code to learn its metadata. Here the index is read
(listing.py), the file is taken by its SHA-256, and unpacked without running anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from packaging.version import InvalidVersion, Version

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
    for found in _listings(http, configuration, project, errors):
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


def sdist_hash(project: str, version: str) -> str:
    """The SHA-256 that the user's index tells for a source distribution.

    SurroundingsError if there is none, or the index tells no hashes.
    """
    configuration = index_configuration()
    errors: list[PatchkitError] = []
    listed: list[ListedFile] = []
    for found in _listings(Http(configuration.access), configuration, project, errors):
        listed += (file for file in found if file.is_of(project))
        for file in listed:
            if file.sha256 and _same_version(file.version or "", version):
                return file.sha256
    if any(_same_version(file.version or "", version) for file in listed):
        what = f"the package index tells no SHA-256 of {project} {version}"
        raise SurroundingsError(what, hint="download it, and take the output of sha256sum")
    raise _not_there(listed, errors, project, version)


def newest_version(project: str) -> str:
    """The highest version that the user's index has a source distribution of, final ones first.

    SurroundingsError if there is none.
    """
    configuration = index_configuration()
    errors: list[PatchkitError] = []
    listed: list[ListedFile] = []
    for found in _listings(Http(configuration.access), configuration, project, errors):
        listed += (file for file in found if file.is_of(project))
    versions = {v: parsed for v in _versions(listed) if (parsed := _version(v)) is not None}
    if not versions:
        raise _not_there((), errors, project, "")
    return max(versions, key=lambda each: (not versions[each].is_prerelease, versions[each]))


def _versions(files: Iterable[ListedFile]) -> list[str]:
    return [file.version for file in files if file.version]


def _listings(
    http: Http, configuration: IndexConfiguration, project: str, errors: list[PatchkitError]
) -> Iterator[tuple[ListedFile, ...]]:
    """What each place lists, one after the other; a place that fails is noted in `errors`."""
    looks: list[Callable[[], tuple[ListedFile, ...]]] = [
        *(partial(place_files, http, place) for place in configuration.find_links),
        *(partial(project_files, http, index, project) for index in configuration.indexes),
    ]
    for look in looks:
        try:
            yield look()
        except HttpError as error:
            errors.append(error)


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
        what = f"no source distribution of {f'{project} {version}'.strip()} on the package index"
        shown = ", ".join(sorted(versions, key=_version_key)[-_SHOWN_VERSIONS:])
        hint = f"there are {shown}" if shown else "check the name, or pip's index configuration"
        problems.insert(0, Problem(what, hint=hint))
    return SurroundingsError(*problems)


def _same_version(one: str, other: str) -> bool:
    return one == other or (_version(one) is not None and _version(one) == _version(other))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _version_key(text: str) -> Version:
    """Versions that are none come first."""
    return _version(text) or Version("0.dev0")
