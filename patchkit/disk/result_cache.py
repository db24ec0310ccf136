"""What was costly to find, kept in the cache for the next run: a shortcut and nothing more.

A file that is damaged, or cannot be read or written, is as good as none. So only what follows from
its key alone may be kept, and the key has all that it follows from.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from patchkit import __version__
from patchkit.disk.files import files_in, replace_file
from patchkit.errors import SurroundingsError
from patchkit.model.decoding import from_builtins, from_msgpack

T = TypeVar("T")


def memory_path(cache: Path, kind: str, facts: object) -> Path:
    """Where something is kept that follows from `facts`, which JSON can hold, and this patchkit."""
    key = json.dumps([__version__, facts]).encode()
    return cache / kind / f"{sha256(key).hexdigest()[:32]}.json"


@cache
def code_digest(*places: str) -> str:
    """A digest of modules of patchkit, for what is kept of what their code came to; a place is a
    folder of them, or one without its ending. None is loaded.

    OSError where a place is neither: a digest of nothing would keep what other code came to.
    """
    digest, home = sha256(), Path(__file__).parent.parent
    for place in places:
        for file in files_in(home / place, "*.py") or [home / f"{place}.py"]:
            digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def recall_as(path: Path, kind: type[T]) -> T | None:
    """The values of `kind` kept at `path`; None if nothing is there, or it is damaged."""
    body = _body(path)
    try:
        return None if body is None else read_as(json.loads(body), kind)
    except ValueError:
        return None


def read_as(data: object, kind: type[T]) -> T | None:
    """Data that JSON gave as values of `kind`; None if it is not of it."""
    try:
        return from_builtins(data, kind)
    except msgspec.ValidationError:
        return None


def remember(path: Path, data: object) -> None:
    """Keep what JSON can hold; best effort, as on a disk that can only be read."""
    _keep(path, json.dumps(data, separators=(",", ":")).encode())


def recall_packed(path: Path, kind: type[T]) -> T | None:
    """Values of `kind` that `remember_packed` kept; None if nothing is there, or it is damaged."""
    body = _body(path)
    try:
        return None if body is None else from_msgpack(body, kind)
    except ValueError:
        return None


def remember_packed(path: Path, data: object) -> None:
    """Keep values with bytes in them, in msgpack; best effort."""
    _keep(path, msgspec.msgpack.encode(data))


def _body(path: Path) -> bytes | None:
    """What `_keep` wrote, less its checksum; None if the file is damaged or cannot be read."""
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return body if sha256(body).hexdigest().encode() == checksum else None


def _keep(path: Path, body: bytes) -> None:
    with suppress(OSError, SurroundingsError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, sha256(body).hexdigest().encode() + b"\n" + body)


class ResultCache:
    """Answers by question, in one file, each of which follows from its question and the file's key.

    What nobody asked since it was opened is forgotten when it is closed, as it is of files long
    gone; all but so many `spare` ones that were asked last. Without a path in memory only.
    """

    def __init__(self, path: Path | None = None, spare: int = 0) -> None:
        self._path = path
        self._spare = spare
        kept: dict[str, Any] | None = recall_as(path, dict) if path is not None else None
        self._kept = kept or {}
        self._asked: dict[str, Any] = {}

    def known(self, question: str) -> Any:
        """The answer that was kept, None for none."""
        if question in self._kept:
            self._asked[question] = self._kept[question]
        return self._asked.get(question)

    def note(self, question: str, answer: object) -> None:
        """Keep an answer, which JSON can hold."""
        self._asked[question] = answer

    def close(self) -> None:
        """Write what was asked, if it is not what the file has."""
        rest = islice((each for each in self._kept if each not in self._asked), self._spare)
        rows = {**self._asked, **{each: self._kept[each] for each in rest}}
        if self._path is not None and rows != self._kept:
            remember(self._path, rows)
