"""Which commit of its own repository changed a patch so that it fits no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import pairwise

from patchkit.explain.values import PatchEdit
from patchkit.gitcmd.firstparent import versions
from patchkit.gitcmd.objects import ObjectReader
from patchkit.gitcmd.repository import Repository

# So many versions back somebody may have pinned one that fits.
_VERSIONS = 40


def find_edit(
    repository: Repository,
    commit: str,
    path: str,
    fits: Callable[[bytes], bool],
    bring: Callable[[Iterable[str]], object],
) -> PatchEdit | None:
    """The commit before which the file at `path` fits; None if none is known.

    `bring` is asked for versions that are not here. The version at `commit` does not fit.
    """
    found = versions(repository, commit, path, _VERSIONS)
    entries = [each.touches[path] for each in found]
    blobs = [entry.oid for entry in entries if entry is not None]
    if len(blobs) < 2:
        return None
    bring(blobs)
    with ObjectReader(repository) as reader:
        contents = reader.read_present(blobs)
    for newer, older in pairwise(found):
        entry = older.touches[path]
        data = contents.get(entry.oid) if entry is not None else None
        if data is None:
            return None
        if fits(data):
            by = newer.commit
            digest = sha256(data).hexdigest()
            return PatchEdit(by.id, by.date, by.author, by.subject, older.commit.id, digest)
    return None
