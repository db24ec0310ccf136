"""The store: fetched once, whole or not at all, whoever else is at it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from patchkit.errors import BadInputError, ExitCode, SurroundingsError
from patchkit.manifest.values import Component, PinnedPatch
from patchkit.model.objects import Base, TreeId
from patchkit.model.progress import Silent
from patchkit.ops.fetch import FetchedComponent, fetch_components
from patchkit.upstream.fetching import pin_ref
from patchkit.upstream.store import Store
from tests.support.archives import digest, make_tar
from tests.support.components import (
    WHERE,
    archive_component,
    git_component,
    index_component,
    manifest_of,
)
from tests.support.repos import Submodule, Symlink, Upstream
from tests.support.servers import HttpServer, Reply, dead_port, silent_server

pytestmark = pytest.mark.slow


@dataclass
class Listener(Silent):
    """Keeps what it is told."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        self.steps.append((component, what))

    def finish(self, component: str, what: str) -> None:
        self.ends[component] = what


def _component(upstream: Upstream) -> Component:
    """Demo, pinned to a new commit."""
    return git_component(upstream.url, upstream.commit({"a": "1\n"}))


def test_what_is_cached_is_never_asked_for_again(upstream: Upstream, store: Store) -> None:
    commit = upstream.commit({"a": "1\n"})
    component = git_component(upstream.url, commit)
    other = git_component(upstream.url.removesuffix(".git") + "/", commit)
    assert store.cached_base(component) is None
    base = store.base(component, Silent())
    assert base == Base(commit, TreeId(upstream.tree(commit)), "1700000060 +0000")
    assert store.repository(component) == store.repository(other)
    assert store.cached_base(other) == base
    shutil.rmtree(upstream.path)
    listener = Listener()

    again = Store(store.cache, offline=True).base(component, listener)

    assert (again, listener.steps) == (base, [])


def test_offline_names_what_is_missing(store: Store) -> None:
    component = git_component("https://git.invalid/org/repo.git", "1" * 40)

    with pytest.raises(SurroundingsError) as caught:
        Store(store.cache, offline=True).base(component, Silent())

    what = f"demo: https://git.invalid/org/repo.git at {'1' * 40} is not in the cache"
    assert str(caught.value) == what
    assert "without --offline" in caught.value.problems[0].hint
    assert not store.cache.exists()


def test_one_error_stops_no_other_component(
    upstream: Upstream, store: Store, server: HttpServer
) -> None:
    commit = upstream.commit({"a": "1\n"})
    data = make_tar({"d/a": "1"})
    server.replies["/a.tar.gz"] = Reply(data)
    good = git_component(upstream.url, commit, name="good")
    components = (
        git_component(upstream.url, "1" * 40, name="absent"),
        git_component(f"git://127.0.0.1:{dead_port()}/r.git", "1" * 40, name="dead"),
        archive_component(server.url + "/a.tar.gz", "2" * 64, name="wrong"),
        archive_component(server.url + "/b.tar.gz", "2" * 64, name="gone"),
        archive_component(server.url + "/a.tar.gz", digest(data), name="archive"),
        good,
    )
    listener = Listener()

    manifest = manifest_of(*components)
    report = fetch_components(manifest, components, store, listener)
    results = {row.name: row for row in report.components}

    assert {name: _said(result) for name, result in results.items()} == {
        "absent": f"absent: {upstream.url}: does not have commit {'1' * 40}",
        "dead": _said(results["dead"]),
        "wrong": f"wrong: {server.url}/a.tar.gz has sha256 {digest(data)},"
        f" the manifest says {'2' * 64}",
        "gone": f"gone: {server.url}/b.tar.gz: the server says 404 Not Found",
        "archive": "",
        "good": "",
    }
    assert _said(results["dead"]).startswith("dead: git://127.0.0.1")
    assert results["wrong"].exit_code is ExitCode.BAD_INPUT
    assert listener.ends == {
        each.name: "fetched" if each.name in ("good", "archive") else "failed"
        for each in components
    }


def test_cached_components_make_no_progress(upstream: Upstream, store: Store) -> None:
    manifest = manifest_of(_component(upstream))
    fetch_components(manifest, manifest.components, store, Silent())
    listener = Listener()

    fetch_components(manifest, manifest.components, store, listener)

    assert (listener.steps, listener.ends) == ([], {})


def test_mirrors_of_an_archive_give_the_same_base(
    store: Store, server: HttpServer, tmp_path: Path
) -> None:
    data = make_tar({"d/a": "1"})
    server.replies["/a.tar.gz"] = server.replies["/copy/b.tgz"] = Reply(data)
    one = archive_component(server.url + "/a.tar.gz", digest(data))
    mirrors = (server.url + "/copy/b.tgz",)
    other = archive_component(server.url + "/gone", digest(data), mirrors=mirrors)

    base = store.base(one, Silent())

    assert store.base(one, Silent()) == base
    assert server.asked("/a.tar.gz") == 1
    assert Store(tmp_path / "other").base(other, Silent()) == base


def test_a_hostile_archive_leaves_no_base(store: Store, server: HttpServer) -> None:
    data = make_tar({"d/a": "1", "../b": "2"})
    server.replies["/a.tar.gz"] = Reply(data)
    component = archive_component(server.url + "/a.tar.gz", digest(data))

    with pytest.raises(BadInputError, match=r"demo: \.\./b: path that leaves the tree"):
        store.base(component, Silent())

    assert store.cached_base(component) is None


def test_a_later_pin_of_the_same_upstream(upstream: Upstream, store: Store) -> None:
    first = _component(upstream)
    second = git_component(upstream.url, upstream.commit({"a": "2\n"}))
    base = store.base(first, Silent())

    store.base(second, Silent())

    assert store.cached_base(first) == base
    assert _is_whole(store, second)


def _pack(store: Store, component: Component) -> Path:
    (pack,) = (store.repository(component).git_dir / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    return pack


@pytest.mark.parametrize("damage", ["pack", "objects", "repository", "config", "rot"])
def test_a_damaged_cache_is_fetched_again(upstream: Upstream, store: Store, damage: str) -> None:
    component = _component(upstream)
    base = store.base(component, Silent())
    git_dir, pack = store.repository(component).git_dir, _pack(store, component)
    if damage == "pack":
        pack.unlink()
    elif damage == "objects":
        shutil.rmtree(git_dir / "objects")
    elif damage == "repository":
        shutil.rmtree(git_dir)
    elif damage == "config":
        (git_dir / "HEAD").write_bytes(b"\0")
        shutil.rmtree(git_dir / "patchkit-pins")
    else:
        pack.write_bytes(pack.read_bytes()[:-5])
    listener = Listener()

    assert store.base(component, listener) == base
    assert store.cached_base(component) == base
    said = ("demo", "the cached copy is damaged, fetching it again") in listener.steps
    assert said == (damage != "repository")


def test_verifying_finds_a_rotten_byte(upstream: Upstream, store: Store) -> None:
    component = _component(upstream)
    assert store.verify(component, Silent())
    base = store.base(component, Silent())
    assert store.verify(component, Silent())
    pack = _pack(store, component)
    data = bytearray(pack.read_bytes())
    data[-30] ^= 0xFF
    pack.write_bytes(data)

    assert not store.verify(component, Silent())
    assert store.base(component, Silent()) == base


def test_stop_ends_all_fetches(store: Store) -> None:
    with silent_server() as port:
        components = tuple(
            git_component(f"git://127.0.0.1:{port}/{n}.git", "1" * 40, name=f"c{n}")
            for n in range(3)
        )
        threading.Timer(0.4, store.stop.ask).start()
        began = time.monotonic()
        with pytest.raises(Exception, match=r"^$"):  # StoppedError says nothing
            fetch_components(manifest_of(*components), components, store, Silent())

    assert time.monotonic() - began < 5
    assert list((store.cache / "scratch").iterdir()) == []


# --- several processes

_PROGRAM = """
import sys
from pathlib import Path
from patchkit.model.progress import Silent
from patchkit.ops.fetch import FetchedComponent, fetch_components
from patchkit.upstream.fetching import pin_ref
from patchkit.upstream.store import Store
from tests.support.components import git_component
print("ready", flush=True)
base = Store(Path(sys.argv[1])).base(git_component(sys.argv[2], sys.argv[3]), Silent())
print(base.tree)
"""


def _start(store: Store, url: str, commit: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, str(store.cache), url, commit]
    path = os.pathsep.join(sys.path)
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
    )


def test_eight_processes_fetch_once(upstream: Upstream, store: Store, tmp_path: Path) -> None:
    commit = upstream.commit({f"{n}": f"{n}\n" * 100 for n in range(200)})
    hook = tmp_path / "hook"  # git runs it for each pack that it sends
    hook.write_text(f'#!/bin/sh\necho sent >> {tmp_path}/log\nexec "$@"\n')
    hook.chmod(0o755)
    (Path.home() / ".gitconfig").write_text(f"[uploadpack]\n\tpackObjectsHook = {hook}\n")

    processes = [_start(store, upstream.url, commit) for _ in range(8)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]

    assert outputs == [f"ready\n{upstream.tree(commit)}\n"] * 8
    assert (tmp_path / "log").read_text() == "sent\n"


def test_a_killed_fetch_leaves_nothing_that_looks_whole(upstream: Upstream, store: Store) -> None:
    commit = upstream.commit({f"{n}": os.urandom(4000) for n in range(500)})
    component = git_component(upstream.url, commit)
    for delay in (0.1, 0.25, 0.35, 0.45):
        process = _start(store, upstream.url, commit)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        base = store.cached_base(component)
        assert base is None or _is_whole(store, component)
        shutil.rmtree(store.repository(component).git_dir / "patchkit-pins", ignore_errors=True)

    assert store.base(component, Silent()).commit == commit
    assert _is_whole(store, component)


def test_a_lock_vanishes_with_its_process(upstream: Upstream, store: Store) -> None:
    commit = upstream.commit({"a": "1\n"})
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        url = f"git://127.0.0.1:{server.getsockname()[1]}/r.git"
        process = _start(store, url, commit)
        # once git calls, it no longer has what is open in between fork and exec: our lock, too
        with server.accept()[0]:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    (Path.home() / ".gitconfig").write_text(f'[url "{upstream.url}"]\n\tinsteadOf = {url}\n')
    listener = Listener()

    assert store.base(git_component(url, commit), listener).commit == commit
    assert ("demo", "waiting for another patchkit that fetches it") not in listener.steps


def test_waiting_for_another_process_is_told(upstream: Upstream, store: Store) -> None:
    commit = upstream.commit({"a": "1\n"})
    with silent_server() as port:
        url = f"git://127.0.0.1:{port}/r.git"
        process = _start(store, url, commit)
        assert process.stdout is not None
        process.stdout.readline()
        _wait_for(lambda: any((store.cache / "scratch").glob("*")))
        listener = Listener()
        threading.Timer(0.4, process.kill).start()
        (Path.home() / ".gitconfig").write_text(f'[url "{upstream.url}"]\n\tinsteadOf = {url}\n')
        base = store.base(git_component(url, commit), listener)
        process.communicate()

    assert base.commit == commit
    assert ("demo", "waiting for another patchkit that fetches it") in listener.steps


# --- files of other repositories


FIX = "patches/fix.patch"
#: Where a file is: in a component, or at a commit of a repository.
_forms = pytest.mark.parametrize("form", ["component", "git"])


def _demo(url: str, commit: str, files: dict[str, str], form: str = "git") -> Component:
    """Demo, pinned to a commit; its patches are files that are said to be in it."""
    at: dict[str, Any] = {"git": url, "commit": commit} if form == "git" else {"component": "demo"}
    entries = (PinnedPatch(p, digest(text.encode()), WHERE, **at) for p, text in files.items())
    return git_component(url, commit, patches=tuple(entries))


def _read(store: Store, demo: Component, number: int = 0, *others: Component) -> bytes:
    """What the store gives for a patch of demo."""
    entry = demo.patches[number]
    assert isinstance(entry, PinnedPatch)
    return store.pinned_file(manifest_of(demo, *others), demo, entry, Silent())


def _cached(store: Store, demo: Component, number: int = 0) -> bytes | None:
    entry = demo.patches[number]
    assert isinstance(entry, PinnedPatch)
    return store.cached_file(manifest_of(demo), entry)


@_forms
def test_files_of_a_commit_come_together(upstream: Upstream, store: Store, form: str) -> None:
    files = {FIX: "the fix\n", "patches/a[b]*ü": "b\r\n"}
    demo = _demo(upstream.url, upstream.commit({**files}), files, form)
    offline = Store(store.cache, offline=True)

    assert _read(store, demo) == _read(offline, demo) == b"the fix\n"
    assert _read(offline, demo, 1) == b"b\r\n"
    assert list((store.cache / "scratch").iterdir()) == []


def test_a_file_comes_from_a_components_mirror(upstream: Upstream, store: Store) -> None:
    commit = upstream.commit({FIX: "the fix\n"})
    dead = f"git://127.0.0.1:{dead_port()}/r.git"
    demo = _demo(dead, commit, {FIX: "the fix\n"})
    other = git_component(dead + "/", commit, name="other", mirrors=(upstream.url,))

    assert _read(store, demo, 0, other) == b"the fix\n"


def test_a_file_of_a_pin_that_is_cached_anyway(upstream: Upstream, store: Store) -> None:
    demo = _demo(upstream.url, upstream.commit({FIX: "the fix\n"}), {FIX: "the fix\n"})
    store.base(demo, Silent())

    assert _read(Store(store.cache, offline=True), demo) == b"the fix\n"


@pytest.mark.parametrize("path", ["patches/none.patch", "patches", "link", "sub"])
@_forms
def test_a_file_that_is_not_there(upstream: Upstream, store: Store, form: str, path: str) -> None:
    commit = upstream.commit({FIX: "x\n", "link": Symlink("patches"), "sub": Submodule("1" * 40)})

    with pytest.raises(BadInputError, match=rf"demo\.yaml:7: {path} is not in"):
        _read(store, _demo(upstream.url, commit, {path: ""}, form))


def test_a_wrong_file_spoils_no_other(upstream: Upstream, store: Store) -> None:
    commit = upstream.commit({"a.patch": "a\n", "b.patch": "b\n"})
    demo = _demo(upstream.url, commit, {"a.patch": "a\n", "b.patch": "x\n"})

    assert _read(store, demo) == b"a\n"
    assert _cached(store, demo, 1) is None


@_forms
def test_a_cached_file_answers_for_no_other_commit(
    upstream: Upstream, store: Store, form: str
) -> None:
    old, new = (
        _demo(upstream.url, upstream.commit({FIX: text}), {FIX: "the fix\n"}, form)
        for text in ("the fix\n", "reworked\n")
    )

    assert _read(store, old) == b"the fix\n"
    with pytest.raises(BadInputError) as caught:
        _read(store, new)
    found, wanted = digest(b"reworked\n"), digest(b"the fix\n")
    assert str(caught.value) == (
        f"manifests/demo.yaml:7: {FIX} has sha256 {found}, the manifest says {wanted}"
    )
    assert _cached(store, new) is None
    assert _read(store, old) == b"the fix\n"


def test_a_rotten_cached_file_is_fetched_again(upstream: Upstream, store: Store) -> None:
    demo = _demo(upstream.url, upstream.commit({FIX: "the fix\n"}), {FIX: "the fix\n"})
    _read(store, demo)
    (file,) = (store.cache / "files").iterdir()
    file.write_bytes(b"rot")

    assert _read(store, demo) == b"the fix\n"


def test_a_commit_that_is_not_there(upstream: Upstream, store: Store) -> None:
    upstream.commit({"a": "1\n"})
    demo = _demo(upstream.url, "1" * 40, {FIX: "x"})

    with pytest.raises(SurroundingsError, match="does not have commit 1111"):
        _read(store, demo)
    with pytest.raises(SurroundingsError, match=r" at 1+ is not in the cache"):
        _read(Store(store.cache, offline=True), demo)


# --- the real ones


@pytest.mark.index
def test_a_real_source_distribution(store: Store) -> None:
    component = index_component(
        "mbridge", "0.15.1", "26028dbe7dc9193c6c6b3de56e82691c9a484f46ded1ed18a41f2747a08e8104"
    )
    try:
        base = store.base(component, Silent())
    except SurroundingsError as error:
        pytest.skip(f"no package index: {error}")

    assert base.commit == "52852f9cd9c9900e1d796fd11023eb67ef45dd5d"


def _said(result: FetchedComponent) -> str:
    return "\n".join(map(str, result.problems))


def _is_whole(store: Store, component: Component) -> bool:
    fsck = ("fsck", "--connectivity-only")
    return store.repository(component).git(*fsck, accept=range(256)).code == 0


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("left", ["half a repository", "lock of the ref"])
def test_what_a_kill_left_is_in_nobodys_way(upstream: Upstream, store: Store, left: str) -> None:
    component = _component(upstream)
    folder = store.repository(component).git_dir
    if left == "half a repository":
        names = ["HEAD", "config.lock", "refs/heads/x.lock"]
    else:
        store.base(git_component(upstream.url, upstream.commit({"a": "0\n"})), Silent())
        names = [f"{pin_ref(component)}.lock"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    store.base(component, Silent())

    assert store.cached_base(component) is not None
    assert _is_whole(store, component)
    assert not [path for path in store.cache.rglob("*.lock") if path.parent.name != "locks"]
    assert [path.name for path in (store.cache / "repos").iterdir()] == [folder.name]
