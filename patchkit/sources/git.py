"""A git upstream: bring exactly the pinned commit, by the cheapest way that the server allows.

First that commit alone (`--depth=1`). A server that hands out branches only gets asked for the
tracked branch, then for everything. A server whose repository is damaged gets asked for the tree,
then for the blobs that it still has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.partial import (
    fetch_blobs,
    make_partial,
    missing_objects,
    note_absent,
)
from patchkit.gitcmd.remote import Listener, RemoteError, Trouble, fetch, speaks_v2
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.staging import adopt, staging
from patchkit.manifest.values import GitSource
from patchkit.model.stop import Stop
from patchkit.sources.fetching import Fetching
from patchkit.sources.refs import branches_named

_EVERYTHING = ("+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*")


def fetch_commit(
    source: GitSource,
    commit: str,
    target: Repository,
    fetching: Fetching,
    *,
    track: str | None = None,
) -> None:
    """Bring `commit` with its files into `target`, from the URL or the first mirror that has it.

    If all fail, the SurroundingsError has one problem for each. On disk: packs in `target`, no ref.
    """
    problems: list[Problem] = []
    damaged: list[str] = []

    def attempt(url: str, bring: Callable[[Server], frozenset[str]]) -> bool:
        with staging(target, fetching.scratch) as stage:
            try:
                absent = bring(Server(url, stage, fetching.advance, fetching.stop))
            except RemoteError as error:
                problems.extend(error.problems)
                if error.trouble is Trouble.DAMAGED:
                    damaged.append(url)
                return False
            adopt(stage, target)
            note_absent(target, absent)
            return True

    for url in (source.url, *source.mirrors):
        if attempt(url, lambda server: _bring(server, commit, track)):
            return
    for url in tuple(damaged):  # only when nobody has it whole
        fetching.step("fetching what a damaged upstream still has")
        if attempt(url, lambda server: _salvage(server, commit)):
            return
    raise SurroundingsError(*problems)


class Server(Struct, frozen=True):
    """A URL to fetch from, into a throw-away repository."""

    url: str
    stage: Repository
    listener: Listener | None = None
    stop: Stop | None = None

    def fetch(
        self,
        refspecs: Sequence[str],
        *options: str,
        remote: str | None = None,
        afresh: bool = False,
    ) -> None:
        """Fetch into `stage`; see gitcmd.remote.fetch."""
        fetch(
            self.stage,
            self.url,
            refspecs,
            options=options,
            remote=remote,
            afresh=afresh,
            listener=self.listener,
            stop=self.stop,
        )


def fetch_trees(server: Server, commit: str) -> str | None:
    """Bring `commit` without its blobs; the name of the remote to ask for them by their ids.

    A server that does not give single objects sends all of them at once: then None.
    """
    if not speaks_v2(server.stage, server.url, stop=server.stop):
        _bring(server, commit, None)
        return None
    remote = make_partial(server.stage, server.url)
    pin = f"{commit}:refs/fetched/pin"
    try:
        server.fetch([pin], "--depth=1", "--filter=blob:none", remote=remote)
    except RemoteError as error:
        raise _naming(error, server.url, commit) from error
    return remote


def fetch_some_blobs(server: Server, remote: str, blobs: Collection[str]) -> frozenset[str]:
    """Bring blobs by their ids, after `fetch_trees`; the ids of those that the server lacks."""

    def fetch_batch(batch: Collection[str]) -> None:
        server.fetch(list(batch), "--no-filter", remote=remote, afresh=True)

    return fetch_blobs(fetch_batch, blobs)


def _bring(server: Server, commit: str, track: str | None) -> frozenset[str]:
    """Bring the commit whole; nothing is absent."""
    try:
        server.fetch([f"{commit}:refs/fetched/pin"], "--depth=1")
    except RemoteError as error:
        if error.trouble is not Trouble.REFUSED:
            raise _naming(error, server.url, commit) from error
        _whole_history(server, commit, track)
    if server.stage.commit(commit) is None:
        raise _naming(RemoteError(Trouble.ABSENT, server.url, ""), server.url, commit)
    return frozenset()


def _whole_history(server: Server, commit: str, track: str | None) -> None:
    """For servers that give out branches only: the tracked one, and if it is not on it, all."""
    for branch in branches_named(track or ""):
        try:
            server.fetch([f"+{branch}:refs/fetched/track"], "--update-shallow")
        except RemoteError as error:
            if error.trouble is not Trouble.ABSENT:  # a tag, or a branch that is gone
                raise
        if server.stage.commit(commit) is not None:
            return
    server.fetch(_EVERYTHING, "--update-shallow")


def _salvage(server: Server, commit: str) -> frozenset[str]:
    """The tree first, then every blob that the server can still read; the ids of the others."""
    remote = fetch_trees(server, commit)
    if remote is None:
        return frozenset()
    return fetch_some_blobs(server, remote, missing_objects(server.stage, commit))


def _naming(error: RemoteError, url: str, commit: str) -> RemoteError:
    """The same error, naming the commit where git does not."""
    if error.trouble is not Trouble.ABSENT:
        return error
    return RemoteError(Trouble.ABSENT, url, f"does not have commit {commit}", error.said)
