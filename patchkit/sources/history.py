"""The history of a tracked branch: commits and trees, and single blobs when they are asked for.

To say when a patch stopped fitting takes every tree and very few files. So the branch comes without
blobs where the server allows that, and what is then looked at is asked for by id, many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.partial import make_partial, note_absent
from patchkit.gitcmd.remote import RemoteError, Trouble, speaks_v2
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.staging import adopt, staging
from patchkit.manifest.values import GitSource
from patchkit.sources.fetching import Fetching
from patchkit.sources.git import Server, fetch_some_blobs
from patchkit.sources.refs import Named

Answer = TypeVar("Answer")

_ALL = ("+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*")


def fetch_history(
    source: GitSource, tip: Named, pin: str, target: Repository, fetching: Fetching
) -> None:
    """Bring the history of the commits `tip` and `pin` into `target`.

    What `target` has is not asked for again. On disk: packs in `target`, no ref.
    """

    def bring(server: Server) -> None:
        lacking = [each for each in (tip.commit, pin) if target.commit(each) is None]
        if lacking:
            _bring_commits(server, tip, lacking)
            adopt(server.stage, target)

    _from_first(source, target, fetching, bring)


def fetch_file_contents(
    source: GitSource, blobs: Collection[str], target: Repository, fetching: Fetching
) -> frozenset[str]:
    """Bring blobs of commits whose history is here; the ids of those that no server gives.

    On disk: packs in `target`, and a note of what can't be had.
    """

    def bring(server: Server) -> frozenset[str]:
        remote = make_partial(server.stage, server.url)
        absent = fetch_some_blobs(server, remote, blobs)
        adopt(server.stage, target)
        note_absent(target, absent)
        return absent

    return _from_first(source, target, fetching, bring)


def _from_first(
    source: GitSource,
    target: Repository,
    fetching: Fetching,
    bring: Callable[[Server], Answer],
) -> Answer:
    """What `bring` answers for the URL or the first mirror that has it."""
    problems: list[Problem] = []
    for url in (source.url, *source.mirrors):
        with staging(target, fetching.scratch) as stage:
            try:
                return bring(Server(url, stage, fetching.advance, fetching.stop))
            except RemoteError as error:
                problems += error.problems
    raise SurroundingsError(*problems)


def _bring_commits(server: Server, tip: Named, lacking: Collection[str]) -> None:
    whole = not speaks_v2(server.stage, server.url, stop=server.stop)
    options = [] if whole else ["--filter=blob:none"]
    remote = None if whole else make_partial(server.stage, server.url)
    # a server that gives no commit by its id still gives the branch
    names = {tip.commit: tip.ref} if tip.ref else {}
    wanted = [f"+{names.get(each, each)}:refs/fetched/{each}" for each in lacking]
    try:
        server.fetch(wanted, *options, remote=remote)
    except RemoteError as error:
        if error.trouble is not Trouble.REFUSED:
            raise
        server.fetch(_ALL, *options, remote=remote)  # a server that gives out branches only
    absent = [each for each in lacking if server.stage.commit(each) is None]
    if absent:
        raise RemoteError(Trouble.ABSENT, server.url, f"does not have commit {absent[0]}")
