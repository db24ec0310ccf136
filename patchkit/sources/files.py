"""Single files of a repository at a commit: published patches that manifests refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from patchkit.gitcmd.remote import run_network
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.staging import staging
from patchkit.sources.fetching import Fetching
from patchkit.sources.git import Server, fetch_trees


def read_file(repository: Repository, commit: str, path: str) -> bytes | None:
    """The file's bytes, None if the commit has no such file; the commit must be here whole."""
    oid = _blob(repository, commit, path)
    return None if oid is None else repository.git("cat-file", "blob", oid).out


def fetch_files(
    url: str, commit: str, paths: Iterable[str], fetching: Fetching
) -> Mapping[str, bytes]:
    """Fetch as little as the server allows to read `paths`; those that it has not are left out.

    Nothing is left on disk.
    """
    nowhere = Repository(fetching.scratch / "nothing.git")
    with staging(nowhere, fetching.scratch) as stage:
        server = Server(url, stage, fetching.advance, fetching.stop)
        fetch_trees(server, commit)
        found = {path: oid for path in paths if (oid := _blob(stage, commit, path))}
        return {path: _content(server, oid) for path, oid in found.items()}


def _blob(repository: Repository, commit: str, path: str) -> str | None:
    """The id of the regular file at `path`; looks at trees only."""
    out = repository.git("ls-tree", "-z", "--full-tree", commit, "--", path).out
    rows = [row.split(b"\t", 1) for row in out.split(b"\0") if row]
    named = {name: facts.split() for facts, name in rows}
    mode, kind, oid = named.get(path.encode("utf-8", "surrogateescape"), (b"", b"", b""))
    return oid.decode() if kind == b"blob" and mode != b"120000" else None


def _content(server: Server, oid: str) -> bytes:
    # in the network environment, where git gets a blob that a filter left out by itself
    return run_network(server.stage, ["cat-file", "blob", oid], url=server.url, stop=server.stop)
