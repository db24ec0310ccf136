"""Read pages and files over HTTP or from disk, with the user's proxies, certificates and netrc.

A redirect gets the credentials of its own host; urllib would hand a password on to any.
"""

from __future__ import annotations

import base64
import errno
import netrc
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from patchkit import __version__
from patchkit.errors import BadInputError, PatchkitError, Problem, SurroundingsError
from patchkit.model.names import readable_url
from patchkit.model.progress import Stop

_REDIRECTS = (301, 302, 303, 307, 308)
_MAXIMUM_PAGE = 256 << 20  # the page of a project with thousands of releases has some 10 MiB

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)

_HINTS = {
    401: "put the credentials into ~/.netrc or into the index URL of pip's configuration",
    403: "put the credentials into ~/.netrc or into the index URL of pip's configuration",
    404: "check the URL",
    407: "the proxy needs credentials: put them into its URL",
}


class HttpError(SurroundingsError):
    """A URL that cannot be read.

    `status` is the HTTP status, 0 without an answer; `passing`: it may work at the next attempt.
    """

    def __init__(
        self, url: str, what: str, *, status: int = 0, passing: bool = False, hint: str = ""
    ) -> None:
        self.status = status
        self.passing = passing
        hint = hint or _HINTS.get(status, "check the network, the proxy and the URL")
        super().__init__(Problem(f"{readable_url(url)}: {what}", hint=hint))


class Access(Struct, frozen=True):
    """How the user reaches the network; empty fields: as the system says.

    `certificates` is a file or folder of authorities, `client_certificate` a PEM file with its
    key; hosts in `trusted` are not asked for a certificate, with or without ":port".
    """

    proxy: str = ""  # a URL
    certificates: str = ""
    client_certificate: str = ""
    trusted: frozenset[str] = frozenset()
    timeout: float = 30.0  # seconds without a byte


class Page(Struct, frozen=True):
    """A document; `url` is where it was found after all redirects."""

    url: str
    body: bytes  # the bytes as they came


class Http:
    """Opens URLs in the way that `access` says; safe to use from several threads."""

    def __init__(self, access: Access | None = None) -> None:
        self._access = access or Access()
        proxy = self._access.proxy
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None),
            _Https(self._access),
            _Redirects,
        )

    def page(self, url: str, *, accept: str = "*/*") -> Page:
        """A whole document; HttpError if it cannot be fetched."""
        with self.opened(url, {"Accept": accept}) as response:
            body = response.read(_MAXIMUM_PAGE)
            return Page(response.geturl(), body)

    @contextmanager
    def opened(self, url: str, headers: Mapping[str, str]) -> Iterator[Any]:
        """The response to a GET, redirects followed; errors inside the block become HttpError."""
        try:
            timeout = self._access.timeout
            with self._opener.open(_request(url, headers), timeout=timeout) as response:
                yield response
        except urllib.error.HTTPError as error:
            error.close()
            passing = error.code >= 500 or error.code in (408, 429)
            what = f"the server says {error.code} {error.reason}"
            hint, target = "", error.headers.get("Location")
            if error.code in _REDIRECTS and target:
                what = f"redirects to {readable_url(target)}, which is less safe"
                hint = "name the final URL"
            if error.reason.startswith(_Redirects.inf_msg):
                what = f"redirected more than {_Redirects.max_redirections} times"
            raise HttpError(url, what, status=error.code, passing=passing, hint=hint) from error
        except urllib.error.URLError as error:
            raise _no_answer(url, error.reason) from error
        except (OSError, HTTPException) as error:
            if isinstance(error, OSError) and error.errno in _DISK:
                raise  # the caller's, who writes what it reads
            raise _no_answer(url, error) from error


def _request(url: str, headers: Mapping[str, str]) -> urllib.request.Request:
    """A GET without the user and password that its URL may have, but for its own header."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise HttpError(url, "neither an http nor an https URL", hint="check the URL")
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
    agent = {"User-Agent": f"patchkit/{__version__}"}
    request = urllib.request.Request(bare, headers={**headers, **agent})
    login = _login(url)
    if login:
        # not handed on by us, and a server that needs none ignores it
        request.add_unredirected_header("Authorization", login)
    return request


class _Https(urllib.request.HTTPSHandler):
    """Asks for certificates as `access` says for a host; reads the authorities when it has to."""

    def __init__(self, access: Access) -> None:
        # from Python 3.12 on, HTTPSHandler's own makes a context that nobody needs
        urllib.request.AbstractHTTPHandler.__init__(self)
        self._access = access

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        access, host = self._access, urlsplit(req.full_url).netloc
        authorities, own = access.certificates, access.client_certificate
        trusted = not access.trusted.isdisjoint((host, host.partition(":")[0]))
        try:
            context = _context(authorities, own, trusted)
        except OSError as error:
            files = " or ".join(each for each in (authorities, own) if each)
            what = f"the certificates in {files} cannot be read: {_words(error)}"
            raise HttpError(f"https://{host}/", what, hint="correct pip's configuration") from error
        return self.do_open(HTTPSConnection, req, context=context)


@cache
def _context(authorities: str, own: str, trusted: bool) -> ssl.SSLContext:
    """One for all hosts: to read the authorities takes 45 ms, as long as a short command."""
    is_folder = Path(authorities).is_dir() if authorities else False
    context = ssl.create_default_context(
        cafile=authorities if authorities and not is_folder else None,
        capath=authorities if is_folder else None,
    )
    if own:
        context.load_cert_chain(own)
    if trusted:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows with the credentials of the next host, and never to where it is less safe."""

    max_repeats = max_redirections = 10
    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302  # missing in Python 3.10

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, *told: Any
    ) -> urllib.request.Request:
        """The request for the target of a redirect, if it may lead there."""
        code, message, headers, target = told
        if urlsplit(target).scheme not in ("https", urlsplit(req.full_url).scheme):
            raise urllib.error.HTTPError(req.full_url, code, message, headers, fp)
        return _request(target, req.headers)


def _login(url: str) -> str:
    """The Authorization header for a URL: from the URL itself, else from the user's netrc."""
    parts = urlsplit(url)
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
    else:
        try:
            found = netrc.netrc().authenticators(parts.hostname or "")
        except (OSError, netrc.NetrcParseError):
            found = None
        if found is None:
            return ""
        user, password = found[0], found[2] or ""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _no_answer(url: str, reason: object) -> HttpError:
    """The error for a connection that was never made, or broke."""
    if isinstance(reason, FileNotFoundError):
        return HttpError(url, "is not there", status=404)
    if isinstance(reason, ssl.SSLError):
        hint = "set `cert` in pip's configuration if your network has its own authority"
        return HttpError(url, f"its certificate is not accepted: {reason.reason}", hint=hint)
    # a name that does not exist and a port that is closed stay so for a while
    passing = not isinstance(reason, (socket.gaierror, ConnectionRefusedError))
    return HttpError(url, f"cannot be reached: {_words(reason)}", passing=passing)


def _words(reason: object) -> str:
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__


# Download a file whose SHA-256 is known, to a place where an interrupted download goes on.
#
# What arrives is called whole only when its hash is right. A hash that is wrong after a resumed
# download says nothing: the two halves may be of different files, so that one starts again.


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
    into: Path  # the file
    counter: Counter
    stop: Stop
    pause: float  # seconds before the second attempt

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
        raise HttpError(self.url, "the server sends another file at each attempt")

    def _attempt(self) -> None:
        """Go on where the file ends, or start again where the server does not resume."""
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
