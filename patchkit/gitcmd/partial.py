"""Repositories from which blobs are left out on purpose, and how to get exactly those.

Only a throw-away repository (staging.py) is ever one that git may fetch for: with
`extensions.partialClone` it fetches whatever it misses, at any moment, without a word. And only
where the server speaks protocol v2: with a dumb server behind it, git 2.39 looks for each object by
a git that looks for each object, without end. A blob that no server could give is listed in a file
of ours; a checkout without it is a partial clone of nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from patchkit.gitcmd.remote import RemoteError, Trouble
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import decode_path, lines_of

_NAMED_OBJECT = re.compile(
    r"(?:not our ref|unable to read|bad object|missing blob object) '?([0-9a-f]{40})"
)

# The remote that is said to have what no server gives.
_NOBODY = "no-server-has-it"

# Ids on one command line: 41 bytes each, and the smallest limit in use is 128 KiB.
_BATCH = 1000


def make_partial(repository: Repository, url: str) -> str:
    """Let `repository` fetch from `url` with a filter; the name of the remote to say it with."""
    for key, value in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "upstream"),
        ("remote.upstream.url", url),
        ("remote.upstream.promisor", "true"),
    ):
        repository.git("config", key, value)
    return "upstream"


def missing_objects(repository: Repository, commit: str) -> tuple[str, ...]:
    """The objects of this commit's tree (not of its parents') that are not in `repository`."""
    out = repository.git("rev-list", "--objects", "--no-walk", "--missing=print", commit).out
    return tuple(line[1:].decode() for line in lines_of(out) if line.startswith(b"?"))


def fetch_blobs(fetch: Callable[[Collection[str]], None], blobs: Collection[str]) -> frozenset[str]:
    """Get `blobs` by id through `fetch`; the ids that the server names as the ones it lacks."""
    absent: set[str] = set()
    wanted = list(blobs)
    for start in range(0, len(wanted), _BATCH):
        absent |= _fetch_batch(fetch, wanted[start : start + _BATCH])
    return frozenset(absent)


def _fetch_batch(fetch: Callable[[Collection[str]], None], blobs: Collection[str]) -> set[str]:
    absent: set[str] = set()
    while len(absent) < len(blobs):
        try:
            fetch([blob for blob in blobs if blob not in absent])
        except RemoteError as error:
            # the server stops at the first that it does not have, and names it
            named = set(_NAMED_OBJECT.findall(error.said)) & set(blobs) - absent
            if error.trouble not in (Trouble.ABSENT, Trouble.DAMAGED) or not named:
                raise
            absent |= named
        else:
            break
    return absent


def note_absent(repository: Repository, blobs: Collection[str]) -> None:
    """Remember in `repository` that no server gives these blobs."""
    if blobs:
        path = repository.git_dir / "patchkit-absent"
        known = absent_blobs(repository) | frozenset(blobs)
        draft = path.with_suffix(".draft")
        draft.write_text("".join(f"{oid}\n" for oid in sorted(known)))
        draft.replace(path)


def absent_blobs(repository: Repository) -> frozenset[str]:
    """The blobs that `note_absent` recorded; empty for nearly every repository."""
    try:
        return frozenset((repository.git_dir / "patchkit-absent").read_text().split())
    except FileNotFoundError:
        return frozenset()


def bear_absent(repository: Repository, source: Repository) -> None:
    """Let the user's own git (gc, fsck, commit) work where blobs of `source` are missing for good.

    Such a repository is a partial clone to git: what the packs of `source` refer to need not be
    there. All of them are marked, or a `git gc` would drop what only an unmarked one holds. The
    remote that would have the rest has no URL: nothing is ever fetched, a command that cannot do
    without a missing blob says so. Does nothing if `source` lacks none.
    """
    if not absent_blobs(source):
        return
    for pack in (source.git_dir / "objects" / "pack").glob("pack-*.pack"):
        ours = repository.git_dir / "objects" / "pack" / pack.name
        if ours.exists():
            ours.with_suffix(".promisor").touch()
    for key in ("promisor", "skipFetchAll"):
        repository.git("config", f"remote.{_NOBODY}.{key}", "true")


def paths_of(repository: Repository, revision: str, blobs: Collection[str]) -> tuple[str, ...]:
    """The paths of `blobs` in a commit, which may be missing themselves."""
    out = repository.git("ls-tree", "-r", "-z", "--full-tree", revision).out
    rows = [row.split(b"\t", 1) for row in out.split(b"\0") if row]
    return tuple(decode_path(path) for facts, path in rows if facts.split()[2].decode() in blobs)
