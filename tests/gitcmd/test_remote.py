"""Fetching: what reaches git, what comes back as an error, and that it can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from patchkit.gitcmd.remote import Abilities, RemoteError, Trouble, abilities, classify, fetch
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.model.progress import Stop, StoppedError
from tests.support.commands import run_process
from tests.support.dumb import dumb_server
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream
from tests.support.servers import dead_port, silent_server


@pytest.fixture
def target(tmp_path: Path) -> Repository:
    return init_repository(tmp_path / "target.git")


def _bring(target: Repository, url: str, commit: str) -> None:
    fetch(target, url, [f"{commit}:refs/fetched/pin"])
    assert target.commit("refs/fetched/pin") == commit


def test_brings_the_commit_alone_and_tells_how_far_it_is(
    upstream: Upstream, target: Repository
) -> None:
    commit = upstream.commit({f"{n}.txt": f"{n}\n" * 50 for n in range(60)})
    upstream.tag("v1", commit)
    steps: list[tuple[int, int | None]] = []

    def listen(done: int, total: int | None) -> None:
        steps.append((done, total))

    fetch(target, upstream.url, [f"{commit}:refs/fetched/pin"], listener=listen)

    assert (62, 62) in steps
    assert target.refs("refs/") == {"refs/fetched/pin": commit}
    assert not (target.git_dir / "FETCH_HEAD").exists()


def test_the_environment_leads_git_nowhere_else(
    upstream: Upstream, target: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_SHALLOW_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_NAMESPACE", "other")

    _bring(target, upstream.url, upstream.commit({"a": "1\n"}))

    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_the_users_insteadof_is_honoured_and_no_hook_runs(
    upstream: Upstream, target: Repository, tmp_path: Path
) -> None:
    hook = tmp_path / "hooks" / "reference-transaction"
    write_files(tmp_path, {"hooks/reference-transaction": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    hook.chmod(0o755)
    (Path.home() / ".gitconfig").write_text(
        f'[url "file://{upstream.path.parent}/"]\n\tinsteadOf = https://git.invalid/\n'
        f"[core]\n\thooksPath = {hook.parent}\n"
    )

    _bring(target, "https://git.invalid/upstream.git", upstream.commit({"a": "1\n"}))

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("url", ["ext::touch ran", "fd::3", "--upload-pack=touch ran"])
def test_a_url_runs_no_program(url: str, target: Repository, tmp_path: Path) -> None:
    with pytest.raises(RemoteError):
        fetch(target, url, ["main"])

    assert not (tmp_path / "ran").exists()
    assert not Path("/ran").exists()


def test_a_users_own_stricter_protocols_win(
    upstream: Upstream, target: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = upstream.commit({"a": "1\n"})
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https:ext")

    with pytest.raises(RemoteError, match="transport 'file' not allowed"):
        fetch(target, upstream.url, [commit])


def test_what_is_not_there_is_told_apart(
    upstream: Upstream, target: Repository, tmp_path: Path
) -> None:
    upstream.commit({"a": "1\n"})
    for url, what, trouble in (
        (upstream.url, "1" * 40, Trouble.ABSENT),
        (f"file://{tmp_path}/nothing.git", "main", Trouble.NO_REPOSITORY),
        (f"git://127.0.0.1:{dead_port()}/r.git", "main", Trouble.UNREACHABLE),
    ):
        with pytest.raises(RemoteError) as caught:
            fetch(target, url, [what])
        assert caught.value.trouble is trouble
    assert "cannot be reached" in str(caught.value)


def test_stop_ends_a_fetch_that_waits(target: Repository) -> None:
    stop = Stop()
    with silent_server() as port:
        threading.Timer(0.3, stop.ask).start()
        began = time.monotonic()
        with pytest.raises(StoppedError):
            fetch(target, f"git://127.0.0.1:{port}/r.git", ["main"], stop=stop)

    assert time.monotonic() - began < 5


# What git (2.34 to 2.52), curl, ssh and servers say, word for word.
@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("fatal: remote error: upload-pack: not our ref 1111", Trouble.ABSENT),
        ("fatal: couldn't find remote ref refs/heads/gone", Trouble.ABSENT),
        (
            "error: Server does not allow request for unadvertised object 1111",
            Trouble.REFUSED,
        ),
        ("fatal: dumb http transport does not support shallow capabilities", Trouble.REFUSED),
        (
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
            Trouble.DENIED,
        ),
        ("fatal: Authentication failed for 'https://h/r.git/'", Trouble.DENIED),
        ("git@h: Permission denied (publickey).\nfatal: Could not read", Trouble.DENIED),
        (
            "fatal: unable to access 'https://h/r/': The requested URL returned error: 403",
            Trouble.DENIED,
        ),
        (
            "remote: Repository not found.\nfatal: repository 'https://h/r/' not found",
            Trouble.NO_REPOSITORY,
        ),
        ("fatal: '/srv/r' does not appear to be a git repository", Trouble.NO_REPOSITORY),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", Trouble.UNREACHABLE),
        (
            "fatal: unable to access 'https://h/': Failed to connect to h port 443 after 0 ms:"
            " Couldn't connect to server",
            Trouble.UNREACHABLE,
        ),
        ("ssh: connect to host h port 22: Connection timed out", Trouble.UNREACHABLE),
        (
            "fatal: unable to access 'https://h/': SSL certificate problem: unable to get local"
            " issuer certificate",
            Trouble.UNREACHABLE,
        ),
        ("fatal: write error: No space left on device\nfatal: index-pack failed", Trouble.DISK),
        (
            "error: RPC failed; curl 18 transfer closed with outstanding read data remaining\n"
            "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output",
            Trouble.BROKEN,
        ),
        # no 404 of HTTP
        ("error: 404 bytes of body are still expected", Trouble.BROKEN),
        ("error: 2 bytes of length header were received", Trouble.BROKEN),
        (
            "remote: fatal: unable to read 1111111111111111111111111111111111111111\n"
            "remote: aborting due to possible repository corruption on the remote side.\n"
            "fatal: early EOF",
            Trouble.DAMAGED,
        ),
        (
            # a server that is a partial clone itself
            "remote: fatal: missing blob object '1111111111111111111111111111111111111111'\n"
            "fatal: early EOF",
            Trouble.DAMAGED,
        ),
        ("fatal: the machine is on fire", Trouble.OTHER),
    ],
)
def test_what_git_says_is_understood(said: str, trouble: Trouble) -> None:
    assert classify(said) is trouble


def test_what_servers_do_is_what_they_say(
    upstream: Upstream, target: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.commit({"a": "1\n"})
    assert abilities(target, upstream.url) == Abilities(by_id=True, filters=False)
    upstream.git("config", "uploadpack.allowFilter", "true")
    assert abilities(target, upstream.url) == Abilities(by_id=True, filters=True)
    plain = Abilities(by_id=False, filters=False)
    with dumb_server(upstream) as url:
        assert abilities(target, url) == plain
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nunset GIT_PROTOCOL\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))
    assert abilities(target, f"ssh://git.invalid{upstream.path}") == plain
    with pytest.raises(RemoteError):
        abilities(target, f"file://{tmp_path}/nothing.git")


@pytest.mark.slow
def test_a_gitpython_that_cannot_start_is_no_bug(upstream: Upstream, tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.component("demo", upstream, upstream.commit({"a": "1\n"}))
    environment = {**os.environ, "GIT_PYTHON_GIT_EXECUTABLE": str(tmp_path / "no-git")}
    # no terminal shows a bar: nobody needs it
    run_process("fetch", cwd=project.root, environment=environment).ok()
    told = """
import sys
from pathlib import Path
from patchkit.errors import SurroundingsError
from patchkit.gitcmd.remote import fetch
from patchkit.gitcmd.repository import Repository
try:
    fetch(Repository(Path(sys.argv[1])), sys.argv[2], [], listener=print)
except SurroundingsError as error:
    print(error)
"""
    argv = [sys.executable, "-c", told, str(upstream.path), upstream.url]
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    assert "GitPython cannot be loaded" in ran.stdout


def test_without_a_listener_git_says_the_same(upstream: Upstream, target: Repository) -> None:
    upstream.commit({"a": "1\n"})
    said = []
    for listener in (None, lambda *step: None):
        with pytest.raises(RemoteError) as failed:
            fetch(target, upstream.url, ["refs/heads/none:refs/fetched/none"], listener=listener)
        said.append((failed.value.said, failed.value.problems, failed.value.trouble))
    assert said[0] == said[1]
    assert said[0][0] == "fatal: couldn't find remote ref refs/heads/none"
