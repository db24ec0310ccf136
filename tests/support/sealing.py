"""An environment for tests in which nothing of the machine or its user is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: When everything happens: 2026-01-02 03:04:05 UTC.
NOW = 1767323045

_KEEPS = ("PATH", "TMPDIR", "LANG", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
#: Variables that patchkit needs to reach a package index; only tests marked `index` keep them.
_INDEX = ("PIP_", "UV_", "HTTP", "http", "ALL_PROXY", "NO_PROXY", "no_proxy", "SSL_", "REQUESTS_")

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


def seal(monkeypatch: pytest.MonkeyPatch, home: Path, *, keep_index: bool) -> None:
    """Replace the whole environment; `home` becomes the home, with an empty git configuration."""
    home.mkdir()
    (home / ".gitconfig").touch()
    for name in list(os.environ):
        reaches_index = keep_index and name.startswith(_INDEX)
        if name not in _KEEPS and not name.startswith(("PYTEST", "COVERAGE")) and not reaches_index:
            monkeypatch.delenv(name)
    for name, value in _SETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATCHKIT_CACHE", str(home / "cache"))
