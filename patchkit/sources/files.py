"""Single files of a repository at a commit: published patches that manifests refer to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.remote import RemoteError
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.staging import staging
from patchkit.manifest.values import GitSource
from patchkit.sources.fetching import Fetching
from patchkit.sources.git import Server, fetch_some_blobs, fetch_trees


def read_file(repository: Repository, commit: str, path: str) -> bytes | None:
    """The file's bytes, None if the commit has no such file; the commit must be here whole."""
    oid = _blob(repository, commit, path)
    return None if oid is None else repository.git("cat-file", "blob", oid).out


def fetch_files(
    source: GitSource, commit: str, paths: Collection[str], fetching: Fetching
) -> Mapping[str, bytes]:
    """Fetch as little as the server allows to read `paths`; those that it has not are left out.

    The mirrors are tried in order; if all fail, the SurroundingsError has one problem for each.
    Nothing is left on disk.
    """
    problems: list[Problem] = []
    nowhere = Repository(fetching.scratch / "nothing.git")
    for url in (source.url, *source.mirrors):
        with staging(nowhere, fetching.scratch) as stage:
            try:
                return _from_url(Server(url, stage, fetching.advance, fetching.stop), commit, paths)
            except RemoteError as error:
                problems += error.problems
    raise SurroundingsError(*problems)


def _from_url(server: Server, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
    remote = fetch_trees(server, commit)
    found = {path: oid for path in paths if (oid := _blob(server.stage, commit, path))}
    if remote is not None and found:
        # by their ids, so that no git ever comes upon a blob that it lacks and fetches it unasked
        absent = fetch_some_blobs(server, remote, set(found.values()))
        found = {path: oid for path, oid in found.items() if oid not in absent}
    return {path: server.stage.git("cat-file", "blob", oid).out for path, oid in found.items()}


def _blob(repository: Repository, commit: str, path: str) -> str | None:
    """The id of the regular file at `path`; looks at trees only."""
    out = repository.git("ls-tree", "-z", "--full-tree", commit, "--", path).out
    rows = [row.split(b"\t", 1) for row in out.split(b"\0") if row]
    named = {name: facts.split() for facts, name in rows}
    mode, kind, oid = named.get(path.encode("utf-8", "surrogateescape"), (b"", b"", b""))
    return oid.decode() if kind == b"blob" and mode != b"120000" else None
