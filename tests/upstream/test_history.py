"""Histories come with the trees that are looked at, whatever the server can leave out; what they
tell is what upstream's own repository tells.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.commit_history import Between, Rename, find_rename
from patchkit.gitcmd.first_parent import Beginning, Landing, entries_at, first_parents, landings
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import CommitId
from patchkit.model.progress import Silent
from patchkit.upstream.history import History, open_history
from patchkit.upstream.store import Store
from tests.support.components import git_component
from tests.support.dumb import dumb_server
from tests.support.repos import Upstream

#: What a server is told about filters.
SERVERS = {
    "any": {"uploadpack.allowFilter": "true"},
    "files": {"uploadpack.allowFilter": "true", "uploadpackfilter.tree.allow": "false"},
    "none": {"uploadpack.allowFilter": "false"},
}
PATHS = ("a.py", "b/c/d.py", "b/e.py")


def _serve(upstream: Upstream, server: str) -> None:
    upstream.git("config", "--remove-section", "uploadpackfilter", accept=(0, 128))
    for key, value in SERVERS[server].items():
        upstream.git("config", key, value)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


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
@pytest.mark.parametrize("seed", range(6))
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
    """git's log walks by date: it must not compare what lies before the trees that are here."""
    _serve(upstream, "any")
    old = [upstream.commit({"a.py": f"{n}\n"}, minute=1000 + n) for n in range(12)]
    start = (old[-1],)
    side = upstream.commit({"a.py": "1\n"}, branch="side", parents=start, minute=2000)
    *_, pin = (upstream.commit({"c.py": f"{n}\n"}, minute=n) for n in range(3))
    tip = upstream.commit({"a.py": "1\n"}, "Merge side", parents=(pin, side), minute=2001)
    history = _open(store, upstream, pin, tip)
    assert not _has(history, old[2])
    told = _told(history.repository, pin, tip, history.fork)
    assert told == _told(Repository(upstream.path), pin, tip, history.fork)


def _has(history: History, commit: str, path: str = "a.py") -> bool:
    return history.repository.resolve(f"{commit}:{path}") is not None


@pytest.mark.parametrize("server", SERVERS)
def test_trees_that_no_one_looks_at_stay_where_they_are(
    upstream: Upstream, store: Store, server: str
) -> None:
    _serve(upstream, server)
    old, middle, pin, _ = (upstream.commit({"a.py": f"{n}\n"}) for n in range(4))
    history = _open(store, upstream, pin)
    assert _has(history, pin)
    assert _has(history, old) == (server != "any")
    marker = history.repository.git_dir / "patchkit-treeless"
    assert marker.exists() == (server == "any")
    history.bring_trees()
    assert _has(history, old)
    assert _has(history, middle)


def test_nothing_is_fetched_to_look_for_a_file_that_never_was(
    upstream: Upstream, store: Store
) -> None:
    """It would be the trees of the whole history, one at a time."""
    _serve(upstream, "any")
    old, _, pin = (upstream.commit({"a.py": f"{n}\n", "b.py": "b\n"}) for n in range(3))
    moved = upstream.commit({"b.py": None, "c.py": "b\n"})
    tip = upstream.commit({"a.py": "3\n"})
    history = _open(store, upstream, pin, tip)
    history.repository.bring([upstream.resolve(f"{pin}:b.py") or ""])
    assert find_rename(history.repository, tip, "nowhere.py") is None
    assert find_rename(history.repository, tip, "b.py") == Rename(moved, "c.py")
    assert not _has(history, old)


def test_a_gap_between_two_lines_is_filled(upstream: Upstream, store: Store) -> None:
    _serve(upstream, "any")
    old, early, gap, _, late, tip = ids = [upstream.commit({"a.py": f"{n}\n"}) for n in range(6)]
    _open(store, upstream, old, early)
    history = _open(store, upstream, late, tip)
    assert not _has(history, gap)
    with pytest.raises(SurroundingsError, match="is not in the cache"):
        _open(Store(store.cache, offline=True), upstream, old, tip)
    found = _open(store, upstream, old, tip).landings(["a.py"])
    assert [each.commit.id for each in found] == ids[1:]


@pytest.mark.parametrize("server", ["files", "none", "over HTTP"])
def test_a_server_that_cannot_leave_out_trees_is_not_told_of_commits_without(
    upstream: Upstream, store: Store, server: str
) -> None:
    """It would leave out what these commits have: here a folder of the first one."""
    _serve(upstream, "any")
    first = upstream.commit({"b/c.py": "0\n"})
    upstream.commit({"b/c.py": "1\n"})
    pin = upstream.commit({"b/c.py": "2\n"})
    assert not _has(_open(store, upstream, pin), first, "b/c.py")
    side = upstream.commit({"a.py": "0\n"}, branch="side", parents=(first,))
    tip = upstream.commit({"a.py": "0\n"}, parents=(pin, side))
    if server in SERVERS:
        _serve(upstream, server)
        assert _has(_open(store, upstream, pin), side, "b/c.py")
        return
    with dumb_server(upstream) as url:
        component = git_component(upstream.url, pin, mirrors=(url,))
        upstream.path.rename(upstream.path.with_name("gone.git"))
        assert _has(open_history(store, component, tip, Silent()), side, "b/c.py")


def _lose(repository: Repository, tree: str) -> None:
    """Take one object out of a repository."""
    packs = repository.git_dir / "objects/pack"
    for pack in list(packs.glob("*.pack")):
        data = pack.read_bytes()
        for file in packs.glob(f"{pack.stem}.*"):
            file.unlink()
        repository.git("unpack-objects", "-q", stdin=data)
    (repository.git_dir / "objects" / tree[:2] / tree[2:]).unlink()


@pytest.mark.parametrize("path", ["", "b", "b/c"])
def test_a_tree_that_is_not_here_is_fetched(upstream: Upstream, store: Store, path: str) -> None:
    """Whoever asks; where the server lacks it, too, the error names it."""
    _serve(upstream, "any")
    pin, middle, tip = (
        upstream.commit({"b/c/d.py": f"{number}\n", "a.py": f"{number}\n"}) for number in range(3)
    )
    history = _open(store, upstream, pin, tip)
    tree = upstream.resolve(f"{middle}:{path}") or ""
    right = history.landings(PATHS)
    _lose(history.repository, tree)
    assert _open(store, upstream, pin, tip).landings(PATHS) == right
    _lose(history.repository, tree)
    assert Between(history.repository, pin, tip).touches("b/c/d.py")[0].commit.id == tip
    _lose(history.repository, tree)
    with pytest.raises(SurroundingsError, match="the cache lacks 1 folder of its history"):
        _open(Store(store.cache, offline=True), upstream, pin, tip).landings(PATHS)
    _lose(Repository(upstream.path), tree)
    with pytest.raises(SurroundingsError, match=tree) as raised:
        _open(store, upstream, pin, tip).landings(PATHS)
    assert all(each.hint for each in raised.value.problems)
