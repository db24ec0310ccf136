"""Histories come with all trees, whatever the server can leave out; what they tell is what
upstream's own repository tells.
"""

from __future__ import annotations

from random import Random

import pytest

from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.first_parent import (
    Beginning,
    Landing,
    entries_at,
    first_parents,
    landings,
    missing_objects,
)
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import CommitId
from patchkit.model.progress import Silent
from patchkit.upstream.history import History, open_history
from patchkit.upstream.store import Store
from tests.support.components import git_component
from tests.support.dumb import dumb_server
from tests.support.laws import share
from tests.support.repos import Upstream

#: What a server is told about filters.
SERVERS = {
    "any": {"uploadpack.allowFilter": "true"},
    "none": {"uploadpack.allowFilter": "false"},
}
PATHS = ("a.py", "b/c/d.py", "b/e.py")


def _serve(upstream: Upstream, server: str) -> None:
    for key, value in SERVERS[server].items():
        upstream.git("config", key, value)


def _open(store: Store, upstream: Upstream, pin: str, name: str = "main") -> History:
    return open_history(store, git_component(upstream.url, pin), name, Silent())


def _grown(upstream: Upstream, random: Random) -> list[CommitId]:
    """Commits of a branch into which others are merged that began anywhere before.

    Their dates are in order or, as after a conversion from another system, in any.
    """
    commits = [upstream.commit(dict.fromkeys(PATHS, "0\n"), "Begin", minute=1)]
    side: list[CommitId] = []
    in_order = random.random() < 0.5
    for number in range(24):
        minute = None if in_order else random.randrange(60)
        path, text = random.choice(PATHS), f"{random.randrange(4)}\n"
        if random.random() < 0.4:
            start = random.choice(commits + side)
            commit = upstream.commit(
                {path: text}, f"{number}", branch="side", parents=(start,), minute=minute
            )
            side.append(commit)
            continue
        merged = side and random.random() < 0.5
        parents = (commits[-1], random.choice(side)) if merged else None
        made = upstream.commit({path: text}, f"{number}", parents=parents, minute=minute)
        commits.append(made)
    return commits + side


def _told(repository: Repository, pin: CommitId, tip: CommitId, fork: CommitId) -> object:
    line = first_parents(repository, fork, tip)
    landed = landings(repository, line, PATHS)
    inside = [_brought(repository, each) for each in landed]
    places = {pin, tip, fork, line.start, *line.commits}
    entries = [entries_at(repository, each, PATHS) for each in sorted(places)]
    return line, landed, inside, entries


def _brought(repository: Repository, landing: Landing) -> list[CommitId]:
    """Who gave each of the files its contents, of what a commit of the line merged."""

    def who(path: str) -> CommitId:
        there = landing.touches[path]
        asked = Beginning(repository, [path], lambda files: files[path] == there, list)
        return asked.within(landing).id

    return list(map(who, landing.touches))


@pytest.mark.slow
@pytest.mark.hypothesis  # by this mark `make faults` selects laws
@pytest.mark.parametrize("seed", range(share(6)))
def test_a_line_is_told_as_upstream_has_it(upstream: Upstream, store: Store, seed: int) -> None:
    random = Random(seed)
    commits = _grown(upstream, random)
    tip = CommitId(upstream.resolve("main") or "")
    server = random.choice(["any", *SERVERS])
    _serve(upstream, server)
    for pin in random.sample(commits, 3):
        history = _open(store, upstream, pin)
        told = _told(history.repository, pin, tip, history.fork)
        assert told == _told(Repository(upstream.path), pin, tip, history.fork), (server, pin)
        offline = Store(store.cache, offline=True)
        assert _open(offline, upstream, pin, tip).landings(PATHS) == history.landings(PATHS)


def test_a_merge_that_brings_the_pin_s_own_branch(upstream: Upstream, store: Store) -> None:
    """The commit that it landed is named, also one that came before the pin."""
    _serve(upstream, "any")
    start = upstream.commit({"a.py": "0\n"})
    early, _, pin = (
        upstream.commit({"a.py": text}, branch="release", parents=(start,) if text == "1" else None)
        for text in ("1", "2", "2\n\n")
    )
    main = upstream.commit({"b.py": "0\n"}, parents=(start,))
    tip = upstream.commit({"a.py": "2\n\n"}, "Merge release", parents=(main, pin))
    history = _open(store, upstream, pin)
    (merge,) = history.landings(["a.py"])
    assert (merge.commit.id, _brought(history.repository, merge)) == (tip, [pin])
    zero = entries_at(history.repository, start, ["a.py"])["a.py"]
    changed = Beginning(history.repository, ["a.py"], lambda files: files["a.py"] != zero, list)
    assert changed.within(merge).id == early


def test_dates_out_of_order(upstream: Upstream, store: Store) -> None:
    _serve(upstream, "any")
    old = [upstream.commit({"a.py": f"{n}\n"}, minute=1000 + n) for n in range(12)]
    start = (old[-1],)
    side = upstream.commit({"a.py": "1\n"}, branch="side", parents=start, minute=2000)
    *_, pin = (upstream.commit({"c.py": f"{n}\n"}, minute=n) for n in range(3))
    tip = upstream.commit({"a.py": "1\n"}, "Merge side", parents=(pin, side), minute=2001)
    history = _open(store, upstream, pin, tip)
    asked = (pin, tip, history.fork)
    assert _told(history.repository, *asked) == _told(Repository(upstream.path), *asked)


def _has(history: History, commit: str, path: str = "a.py") -> bool:
    return history.repository.resolve(f"{commit}:{path}") is not None


@pytest.mark.parametrize("server", SERVERS)
def test_commits_come_with_their_trees_and_without_files(
    upstream: Upstream, store: Store, server: str
) -> None:
    _serve(upstream, server)
    old, _, pin, tip = (upstream.commit({"a.py": f"{n}\n"}) for n in range(4))
    history = _open(store, upstream, pin)
    assert all(_has(history, each) for each in (old, pin, tip))
    blob = upstream.resolve(f"{old}:a.py") or ""
    assert missing_objects(history.repository, [blob]) == ({blob} if server == "any" else set())


def test_a_mirror_that_is_a_folder_on_the_web_gives_it(upstream: Upstream, store: Store) -> None:
    first, pin, tip = (upstream.commit({"a.py": f"{n}\n"}) for n in range(3))
    with dumb_server(upstream) as url:
        component = git_component(upstream.url, pin, mirrors=(url,))
        upstream.path.rename(upstream.path.with_name("gone.git"))
        assert _has(open_history(store, component, tip, Silent()), first)


def test_a_rename_is_found_without_the_files(upstream: Upstream, store: Store) -> None:
    _serve(upstream, "any")
    _, _, pin = (upstream.commit({"a.py": f"{n}\n", "b.py": "b\n"}) for n in range(3))
    upstream.commit({"b.py": None, "c.py": "b\n"})
    tip = upstream.commit({"a.py": "3\n"})
    history = _open(store, upstream, pin, tip)
    history.repository.bring([upstream.resolve(f"{pin}:b.py") or ""])
    past = Between(history.repository, CommitId(pin), CommitId(tip))
    assert past.renamed("nowhere.py") is None
    assert past.renamed("b.py") == "c.py"
