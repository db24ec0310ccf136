"""Talk to git servers: fetch with progress, and a reason when it fails.

Where a bar on a terminal shows how far git is, GitPython reads the streams
(`handle_process_output`) and understands the progress lines (`RemoteProgress`). Nobody else loads
it: it costs as much as half a fetch. The process is started here and not by `Git.execute`, because
that one always hands on the whole of os.environ, GIT_DIR and GIT_TRACE included.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.process import (
    git_program,
    network_environment,
    require_git,
    signals_held,
)
from patchkit.gitcmd.repository import Repository
from patchkit.model.names import readable_url
from patchkit.model.progress import Stop

#: Called with (done, total) of git's longest steps; the total may be unknown.
Listener = Callable[[int, int | None], None]

# Whatever a URL or an `insteadOf` names, no other helper is ever run: `ext::` would run a command.
_PROTOCOLS = ("file", "git", "http", "https", "ssh")

# fetch.fsckObjects is left to the user: many a real history has old, harmless faults that it would
# refuse. What arrives is checked against its ids all the same, and paths when they are checked out.
_NETWORK_CONFIG = (
    "core.hooksPath=" + os.devnull,  # reference-transaction would run
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "fetch.prune=false",
    "fetch.writeCommitGraph=false",
    "fetch.unpackLimit=1",  # always one pack, never loose objects: packs move in one rename
    "protocol.version=2",  # servers that speak it let us name any commit
)

# A connection that carries less than this for a minute is dead; the user's own values win.
_STALL = {"GIT_HTTP_LOW_SPEED_LIMIT": "100", "GIT_HTTP_LOW_SPEED_TIME": "60"}


class Trouble(Enum):
    """Why a fetch failed, as far as what to do next depends on it."""

    ABSENT = "absent"  # the server answers: it does not have that commit
    REFUSED = "refused"  # the server does not do it this way: ask in a plainer way
    UNREACHABLE = "unreachable"
    DENIED = "denied"
    NO_REPOSITORY = "no repository"
    DISK = "disk"
    DAMAGED = "damaged"  # the server's repository lacks an object that it should have
    BROKEN = "broken"  # the connection broke half-way
    OTHER = "other"


# First match wins; what git (2.34 to 2.52), curl and ssh say in the C locale. Compiled when
# something failed: most runs ask no server.
_SIGNS = {
    Trouble.DISK: r"no space left on device|disk quota exceeded",
    Trouble.DAMAGED: (
        r"possible repository corruption|unable to read [0-9a-f]{40}"
        r"|missing (blob|tree|commit) object"
    ),
    Trouble.ABSENT: r"not our ref|couldn't find remote ref|no such ref",
    Trouble.REFUSED: (
        r"does not allow request for unadvertised|does not support shallow"
        r"|dumb http transport does not support|want \S+ not valid|shallow file has changed"
    ),
    Trouble.DENIED: (
        r"could not read (username|password)|authentication failed|permission denied"
        r"|terminal prompts disabled|host key verification failed|error: 40[13]\b"
    ),
    Trouble.NO_REPOSITORY: (
        r"repository not found|does not appear to be a git repository|does not exist"
        r"|repository '[^']*' not found|error: 404(?! bytes)\b|not a git repository|no such file"
    ),
    Trouble.UNREACHABLE: (
        r"could not resolve|couldn't connect|failed to connect|connection refused|timed out"
        r"|unable to connect|unable to look up|network is unreachable|no route to host"
        r"|name or service not known|temporary failure in name resolution|ssl certificate"
        r"|certificate verif|error: (5\d\d|429)\b"
    ),
    Trouble.BROKEN: (
        r"early eof|rpc failed|hung up|unexpected disconnect|index-pack failed"
        r"|connection reset|transfer closed|low speed|operation too slow|invalid index-pack"
        # half an answer, or another one than git's protocol has there
        r"|protocol error|expected (flush|'|no other)|invalid (packet|server response)"
        r"|bytes of (body are still expected|length header were received)"
    ),
}

_HINTS = {
    Trouble.ABSENT: "check the pin; if upstream force-pushed over it, add a mirror that has it",
    Trouble.UNREACHABLE: "check the network, the proxy and the URL, or add a mirror",
    Trouble.DENIED: "give git the credentials (credential helper, ssh key); patchkit never asks",
    Trouble.NO_REPOSITORY: "check the URL; a private repository needs credentials",
    Trouble.DISK: "make room, or put the cache elsewhere with --cache DIR",
    Trouble.DAMAGED: "tell the owner of the repository, or add a mirror",
    Trouble.BROKEN: "run the command again, or add a mirror",
}


class RemoteError(SurroundingsError):
    """A fetch that failed; `trouble` says in which way, `said` is every line that git said."""

    def __init__(
        self, trouble: Trouble, url: str, what: str, said: str = "", hint: str | None = None
    ) -> None:
        self.trouble = trouble
        self.said = said
        shown = readable_url(url)
        super().__init__(
            Problem(f"{shown}: {what}", hint=_HINTS.get(trouble, "") if hint is None else hint)
        )


def fetch(
    into: Repository,
    url: str,
    refspecs: Sequence[str],
    *,
    options: Sequence[str] = (),
    remote: str | None = None,
    afresh: bool = False,
    listener: Listener | None = None,
    stop: Stop | None = None,
) -> None:
    """Fetch `refspecs` from `url` in the user's network environment; RemoteError if it fails.

    `remote` is the name by which the configuration of `into` knows the URL, where it must. `afresh`
    does not tell the server what is here: it would leave out blobs of a commit that is.
    On disk: packs and refs in `into`, and its `shallow` file; no tags, no FETCH_HEAD.
    """
    arguments = [
        *(("-c", "fetch.negotiationAlgorithm=noop") if afresh else ()),
        "fetch",
        *(("--progress",) if listener is not None else ()),
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--refmap=",
        "--force",
        "--stdin",
        *options,
        "--end-of-options",
        remote or url,
    ]
    # may be more than fit on a command line
    wanted = into.git_dir / "wanted"
    wanted.write_text("".join(f"{each}\n" for each in refspecs))
    run_network(into, arguments, url=url, listener=listener, stop=stop, stdin=wanted)


class Abilities(Struct, frozen=True):
    """What a server does for who asks."""

    by_id: bool  # speaks protocol v2, and so gives any object by its id
    filters: bool  # leaves out files or trees, maybe not all that may be asked for


def abilities(repository: Repository, url: str, *, stop: Stop | None = None) -> Abilities:
    """What the server at `url` says that it does.

    `repository` may be any. RemoteError if it does not answer.
    """
    trace = repository.git_dir / "packets"
    trace.unlink(missing_ok=True)  # git would append
    extra = {"GIT_TRACE_PACKET": str(trace)}
    run_network(
        repository,
        ["ls-remote", "--quiet", "--end-of-options", url, "HEAD"],
        url=url,
        stop=stop,
        extra=extra,
    )
    try:
        said = trace.read_bytes()
    except FileNotFoundError:  # a dumb server sends no packets
        said = b""
    by_id = b"< version 2" in said
    return Abilities(by_id, by_id and re.search(rb"< fetch=[^\n]*\bfilter\b", said) is not None)


def run_network(
    repository: Repository,
    args: Sequence[str],
    *,
    url: str,
    listener: Listener | None = None,
    stop: Stop | None,
    extra: Mapping[str, str] | None = None,
    stdin: Path = Path(os.devnull),
) -> bytes:
    """Run a git command that may talk to `url`; its stdout, or RemoteError.

    `extra` adds environment variables, `stdin` is a file that it reads.
    """
    require_git()
    read_output = _read_all if listener is None else _telling(listener)
    command = [git_program(), f"--git-dir={repository.git_dir}"]
    for setting in _NETWORK_CONFIG:
        command += ["-c", setting]
    stop = stop or Stop()
    stop.check()
    process: subprocess.Popen[bytes] | None = None
    try:
        with stdin.open("rb") as given, signals_held():
            # Its own session: no terminal to ask on, and one signal ends the helpers of git, too.
            process = started = subprocess.Popen(
                [*command, *args],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment() | dict(extra or {}),
                cwd="/",
                start_new_session=True,
            )
        with stop.killing(lambda: _kill(started)):
            out, said = read_output(started)
            code = started.wait()
    finally:
        if process is not None:
            with signals_held():
                _kill(process)
    stop.check()
    if code != 0:
        raise _failure(url, said, code)
    return out


def _read_all(process: subprocess.Popen[bytes]) -> tuple[bytes, list[str]]:
    """What git writes, and the lines that it says: those of errors at the end."""
    out, told = process.communicate()
    lines = [each for each in re.split("[\r\n]+", told.decode("utf-8", "replace")) if each]
    return out, sorted(lines, key=lambda line: line.startswith(("error:", "fatal:")))


def classify(said: str) -> Trouble:
    """What the lines that git, curl, ssh and the server wrote come to."""
    return next((trouble for trouble, sign in _SIGNS.items() if _tells(sign, said)), Trouble.OTHER)


def _tells(sign: str, said: str) -> bool:
    return re.search(sign, said, re.IGNORECASE) is not None


def _gitpython() -> Any:
    """GitPython's `git.cmd`; it starts git when it is loaded, and that may fail."""
    try:
        from git import cmd  # noqa: PLC0415  (slow to import)
    except ImportError as error:
        raise SurroundingsError(f"GitPython cannot be loaded: {error}") from error
    return cmd


def _environment() -> dict[str, str]:
    environment = network_environment()
    allowed = environment.get("GIT_ALLOW_PROTOCOL", ":".join(_PROTOCOLS)).split(":")
    environment["GIT_ALLOW_PROTOCOL"] = ":".join(p for p in _PROTOCOLS if p in allowed) or "https"
    return _STALL | environment


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # another thread may be ending it as well; what has ended has no group any more
        with suppress(ProcessLookupError):
            # TERM, not KILL: git then removes its temporary packs and lock files
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _telling(
    listener: Listener,
) -> Callable[[subprocess.Popen[bytes]], tuple[bytes, list[str]]]:
    """The same as `_read_all`, with the progress lines told to a listener on the way."""
    handle_process_output = _gitpython().handle_process_output
    from git.util import RemoteProgress  # noqa: PLC0415  (slow to import)

    class _Told(RemoteProgress):
        def update(
            self,
            op_code: int,
            cur_count: str | float,
            max_count: str | float | None = None,
            message: str = "",
        ) -> None:
            if op_code & (self.RECEIVING | self.RESOLVING):
                listener(int(cur_count or 0), int(max_count) if max_count else None)

    def read(process: subprocess.Popen[bytes]) -> tuple[bytes, list[str]]:
        out: list[bytes] = []
        progress = _Told()
        # Only what git tells is text: its progress lines end in a bare carriage return.
        told: Any = io.TextIOWrapper(cast("io.BufferedReader", process.stderr), errors="replace")
        process.stderr = told
        handle_process_output(
            process,
            cast("Callable[[str], None]", out.append),  # bytes, as decode_streams says
            progress.new_message_handler(),
            decode_streams=False,
        )
        return b"".join(out), [*progress.other_lines, *progress.error_lines]

    return read


def _failure(url: str, said: Sequence[str], code: int) -> RemoteError:
    text = "\n".join(said)
    trouble = classify(text)
    telling = [line for line in said if _tells(_SIGN_OF[trouble], line)] or said
    what = _plain(telling[0], url) if telling else f"git exits with {code}"
    return RemoteError(trouble, url, _WORDS.get(trouble, "") + what, text)


_SIGN_OF = _SIGNS | {Trouble.OTHER: "^fatal:"}

_WORDS = {
    Trouble.UNREACHABLE: "cannot be reached: ",
    Trouble.DENIED: "authentication needed: ",
    Trouble.DISK: "no disk space: ",
    Trouble.DAMAGED: "its repository is damaged: ",
    Trouble.BROKEN: "the connection broke: ",
}


def _plain(line: str, url: str) -> str:
    """A line of git's or the server's without its label, control characters and passwords."""
    from urllib.parse import urlsplit  # noqa: PLC0415 (where something failed)

    line = re.sub(r"^((fatal|error|remote):\s*)+", "", line, flags=re.IGNORECASE)
    line = re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]", "", line)
    login, at, _ = urlsplit(url).netloc.rpartition("@")
    return re.sub(r"://[^/\s@']+@", "://", line.replace(login + at, "") if at else line).strip()
