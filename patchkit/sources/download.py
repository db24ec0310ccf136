"""Download a file whose SHA-256 is known, to a place where an interrupted download goes on.

What arrives is called whole only when its hash is right. A hash that is wrong after a resumed
download says nothing: the two halves may be of different files, so that one starts anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.errors import BadInputError, PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.urls import readable_url
from patchkit.model.stop import Stop
from patchkit.sources.http import Http, HttpError

_CHUNK = 1 << 16
_ATTEMPTS = 3
_LENGTH = re.compile(r"[0-9]{1,18}")

#: Called with (done, total) in bytes; the total may be unknown.
Counter = Callable[[int, int | None], None]


class WrongHashError(BadInputError):
    """A file that is there but is not the one that the manifest means."""


def download(
    http: Http,
    urls: Sequence[str],
    digest: str,
    into: Path,
    *,
    counter: Counter,
    stop: Stop,
    pause: float = 0.5,
) -> None:
    """Bring the file with that SHA-256 to `into` from the first URL that has it.

    A connection that breaks is made again after `pause` seconds, then after twice that. If no URL
    has the file, the error has one problem for each. On disk: what has arrived stays in `into` for
    the next time, except after a wrong hash.
    """
    errors: list[PatchkitError] = []
    into.parent.mkdir(parents=True, exist_ok=True)
    for url in urls:
        try:
            _Download(http, url, into, counter, stop, pause).until_whole(digest)
        except (HttpError, WrongHashError) as error:
            errors.append(error)
        else:
            return
    wrong = any(isinstance(error, WrongHashError) for error in errors)
    kind = WrongHashError if wrong else SurroundingsError
    raise kind(*(problem for error in errors for problem in error.problems))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    digest = sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


class _Download(Struct, frozen=True):
    """One file from one URL."""

    http: Http
    url: str
    into: Path
    counter: Counter
    stop: Stop
    pause: float

    def until_whole(self, digest: str) -> None:
        """Attempt it until the file is the right one, or something says that it will not be."""
        for attempt in range(1, _ATTEMPTS + 1):
            resumed = self._have() > 0
            try:
                self._attempt()
            except HttpError as error:
                if not error.passing or attempt == _ATTEMPTS:
                    raise
                self.stop.wait(attempt * self.pause)
                continue
            found = file_sha256(self.into)
            if found == digest:
                return
            self.into.unlink()
            if not resumed:
                raise _wrong_hash(self.url, found, digest)
        raise HttpError(self.url, "what arrives is another file at each attempt")

    def _attempt(self) -> None:
        """Go on where the file ends, or start anew where the server does not resume."""
        have = self._have()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with self.http.opened(self.url, headers) as response:
                self._receive(response, have if _resumes_at(response, have) else 0)
        except HttpError as error:
            if error.status != 416:  # what is here is longer than the file: another file
                raise
            self.into.unlink(missing_ok=True)
            raise HttpError(self.url, "the server does not resume", passing=True) from error

    def _receive(self, response: Any, start: int) -> None:
        length = response.headers.get("Content-Length") or ""
        total = start + int(length) if _LENGTH.fullmatch(length) else None
        done = start
        with self.into.open("ab" if start else "wb") as stream:
            while chunk := response.read(_CHUNK):
                self.stop.check()
                stream.write(chunk)
                done += len(chunk)
                self.counter(done, total)
        if total is not None and done != total:
            what = f"the connection broke at byte {done} of {total}"
            raise HttpError(self.url, what, passing=True)

    def _have(self) -> int:
        return self.into.stat().st_size if self.into.exists() else 0


def _wrong_hash(url: str, found: str, digest: str) -> WrongHashError:
    what = f"{readable_url(url)} has sha256 {found}, the manifest says {digest}"
    hint = "if upstream really changed this file, look at it, then correct the pin"
    return WrongHashError(Problem(what, hint=hint))


def _resumes_at(response: Any, offset: int) -> bool:
    place = str(response.headers.get("Content-Range", ""))
    return offset > 0 and response.status == 206 and place.startswith(f"bytes {offset}-")
