"""Repositories from which blobs are left out on purpose, and how to get exactly those.

Only a throw-away repository (staging.py) is ever one in git's own sense: `extensions.partialClone`
makes git fetch whatever it misses, at any moment, without a word. And only where the server speaks
protocol v2: with a dumb server behind it, git 2.39 looks for each object by a git that looks for
each object, without end. Elsewhere a blob that no server could give is listed in a file of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from patchkit.gitcmd.remote import RemoteError, Trouble
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import decode_path

_NAMED_OBJECT = re.compile(r"(?:not our ref|unable to read|bad object) ([0-9a-f]{40})")

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
    return tuple(line[1:].decode() for line in out.splitlines() if line.startswith(b"?"))


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


def paths_of(repository: Repository, revision: str, blobs: Collection[str]) -> tuple[str, ...]:
    """The paths of `blobs` in a commit, which may be missing themselves."""
    out = repository.git("ls-tree", "-r", "-z", "--full-tree", revision).out
    rows = [row.split(b"\t", 1) for row in out.split(b"\0") if row]
    return tuple(decode_path(path) for facts, path in rows if facts.split()[2].decode() in blobs)
