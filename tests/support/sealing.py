"""An environment for tests in which nothing of the machine or its user is left."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

#: When everything happens: 2026-01-02 03:04:05 UTC.
NOW = 1767323045

_KEEPS = ("PATH", "TMPDIR", "LANG", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
#: Variables that patchkit needs to reach a package index; only tests marked `index` keep them.
_INDEX = ("PIP_", "UV_", "HTTP", "http", "ALL_PROXY", "NO_PROXY", "no_proxy", "SSL_", "REQUESTS_")

#: The environment before any test.
_OUTSIDE = dict(os.environ)

_SETS = {
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "COLUMNS": "80",
    "NO_COLOR": "1",
    "TERM": "xterm-256color",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Ursula User",
    "GIT_AUTHOR_EMAIL": "user@example.com",
    "GIT_AUTHOR_DATE": f"{NOW} +0000",
    "GIT_COMMITTER_NAME": "Ursula User",
    "GIT_COMMITTER_EMAIL": "user@example.com",
    "GIT_COMMITTER_DATE": f"{NOW} +0000",
    # a test that starts an editor or a browser is wrong
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "BROWSER": "false",
}


def seal(home: Path, *, keep_index: bool) -> None:
    """Replace the whole environment; `home` becomes the home, with an empty git configuration.

    It stays as it is after the test: that of the next is mostly the same.
    """
    home.mkdir()
    (home / ".gitconfig").touch()
    now = dict(os.environ)
    tools = {name: value for name, value in now.items() if name.startswith(("PYTEST", "COVERAGE"))}
    wanted = _environment(home, keep_index) | tools
    if now != wanted:
        os.environ.clear()
        os.environ.update(wanted)


@cache
def _environment(home: Path, keep_index: bool) -> dict[str, str]:
    kept = {
        name: value
        for name, value in _OUTSIDE.items()
        if name in _KEEPS or (keep_index and name.startswith(_INDEX))
    }
    # the `python3` of a version manager takes five times as long to find out which it is
    path = f"{Path(sys.executable).resolve().parent}:{kept['PATH']}"
    return kept | _SETS | {"PATH": path, "HOME": str(home), "PATCHKIT_CACHE": str(home / "cache")}
