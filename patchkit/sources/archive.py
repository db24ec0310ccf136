"""An archive by URL and SHA-256."""

from __future__ import annotations

from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import ArchiveSource
from patchkit.sources.download import download
from patchkit.sources.fetching import Fetching
from patchkit.sources.http import Http
from patchkit.sources.unpacked import commit_archive


def fetch_archive(
    source: ArchiveSource, digest: str, repository: Repository, fetching: Fetching
) -> str:
    """Download and unpack the archive into `repository`; the base commit's id.

    Its URL is not in the commit: a mirror's copy gives the same base.
    """
    archive = fetching.downloads / f"{digest}-{repository.git_dir.stem}"
    fetching.step("downloading")
    download(
        Http(),
        (source.url, *source.mirrors),
        digest,
        archive,
        counter=fetching.count,
        stop=fetching.stop,
    )
    fetching.step("unpacking")
    commit = commit_archive(archive, f"Archive\n\nsha256: {digest}\n", repository)
    archive.unlink()
    return commit
