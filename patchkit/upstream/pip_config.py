"""Where the user's own pip or uv looks for packages, and how it gets there.

pip is asked (`pip config list` knows files, virtual environments and PIP_* variables; the help text
knows the default index), so that no host has to be named here. What uv is told counts as well, and
where there is no pip, uv's default. The order of indexes does not matter to us: a SHA-256 says
which file is meant.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct, field

from patchkit.errors import SurroundingsError
from patchkit.model.objects import lines_of
from patchkit.upstream.http import Access

# What uv is configured to use: its variables and its user's and system's uv.toml.
#
# A project's own [tool.uv] does not count: it says where that project's dependencies come from.
# Reading uv.toml needs Python 3.11; with 3.10 the variables alone count.


class UvOptions(Struct, frozen=True):
    """The main index ("" if none is set), further ones, places of files, hosts trusted as is."""

    first: str = ""
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    insecure: tuple[str, ...] = ()


def uv_options(environment: Mapping[str, str], files: Iterable[Mapping[str, Any]]) -> UvOptions:
    """What is in force, from variables and the contents of configuration files, the first first."""
    every = [_of_variables(environment), *(_of_file(data) for data in files)]
    return UvOptions(
        next((each.first for each in every if each.first), ""),
        tuple(url for each in every for url in each.extra),
        tuple(place for each in every for place in each.find_links),
        tuple(host for each in every for host in each.insecure),
    )


def uv_files(environment: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """The contents of the user's and the system's uv.toml, as far as they can be read."""
    try:
        tomllib = import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10
        return []
    found: list[Mapping[str, Any]] = []
    for path in _places(environment):
        try:
            found.append(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            continue
    return found


def uv_default(help_text: str) -> str:
    """The index that uv uses when none is configured, from its help text; "" if it tells none."""
    plain = re.sub(r"\s+", " ", help_text)
    found = re.search(r"--default-index <[^>]*> .*?by default: <(https?://[^>\s]+)>", plain)
    return found[1] if found else ""


def _places(environment: Mapping[str, str]) -> list[Path]:
    if environment.get("UV_CONFIG_FILE"):
        return [Path(environment["UV_CONFIG_FILE"])]
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "/"), ".config"))
    return [Path(home, "uv", "uv.toml"), Path(os.sep, "etc", "uv", "uv.toml")]


def _of_variables(environment: Mapping[str, str]) -> UvOptions:
    first = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL") or ""
    more = f"{environment.get('UV_INDEX', '')} {environment.get('UV_EXTRA_INDEX_URL', '')}"
    places = re.split(r"[\s,]+", environment.get("UV_FIND_LINKS", ""))
    return UvOptions(
        _unnamed(first),
        tuple(_unnamed(index) for index in more.split()),
        tuple(place for place in places if place),
        tuple(environment.get("UV_INSECURE_HOST", "").split()),
    )


def _of_file(data: Mapping[str, Any]) -> UvOptions:
    """A file's top level; what its [pip] table says counts as well."""
    tables = [data, _mapping(data.get("pip"))]
    indexes = [_mapping(each) for table in tables for each in _list(table.get("index"))]
    firsts = [str(each.get("url", "")) for each in indexes if each.get("default") is True]
    firsts += [str(table.get("index-url", "")) for table in tables]
    return UvOptions(
        next((first for first in firsts if first), ""),
        tuple(
            [str(e.get("url", "")) for e in indexes if not e.get("default")]
            + [str(url) for table in tables for url in _list(table.get("extra-index-url"))]
        ),
        tuple(str(place) for table in tables for place in _list(table.get("find-links"))),
        tuple(str(host) for host in _list(data.get("allow-insecure-host"))),
    )


def _unnamed(index: str) -> str:
    """An index without the name that it may have: `internal=https://...`."""
    return re.sub(r"^[A-Za-z0-9._-]+=(?=[a-z]+:)", "", index)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# The later ones win, as they do for `pip download`; what is set for installing only still counts.
_SECTIONS = ("global", "install", "download", ":env:")

_STEERING = ("PIP_", "UV_", "HOME", "XDG_CONFIG", "VIRTUAL_ENV", "PATH")

_LOCK = Lock()


class IndexConfiguration(Struct, frozen=True):
    """Index URLs (PEP 503), places of plain files (`--find-links`), and the way to them."""

    indexes: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    access: Access = field(default_factory=Access)


def index_configuration() -> IndexConfiguration:
    """The configuration of this machine's user, read once; SurroundingsError if there is none."""
    steering = sorted(item for item in os.environ.items() if item[0].startswith(_STEERING))
    with _LOCK:
        return _configuration(tuple(steering))


@cache
def _configuration(steering: Sequence[tuple[str, str]]) -> IndexConfiguration:
    """Asks pip; `steering` are the variables on which the answer depends."""
    environment = dict(steering)
    pip, listing = _asked_pip()
    options = pip_options(listing, environment)
    uv = uv_options(environment, uv_files(environment))
    first = options.get("index-url") or uv.first
    if not first and not _is_true(options.get("no-index", "")):
        first = default_index(_help([*pip, "install"])) if pip else uv_default(_uv_help())
    return configuration(options, uv, first)


def pip_options(listing: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The options in force, from the output of `pip config list`; without pip, from PIP_*."""
    options = {
        name[4:].lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PIP_")
    }
    rows = [re.fullmatch(r"([^.]+)\.([a-z0-9-]+)=(.*)", line) for line in lines_of(listing)]
    for section in _SECTIONS:
        for row in rows:
            if row is not None and row[1] == section:
                options[row[2]] = _text(row[3])
    return options


def default_index(help_text: str) -> str:
    """The index that pip uses when none is configured, from its help text; "" if it tells none."""
    plain = re.sub(r"\s+", " ", help_text)
    found = re.search(r"--index-url .*?\(default:? (https?://[^\s)]+)", plain)
    return found[1] if found else ""


def configuration(options: Mapping[str, str], uv: UvOptions, first: str) -> IndexConfiguration:
    """What pip's and uv's options come to, with `first` as the main index."""
    indexes = [first, *options.get("extra-index-url", "").split(), *uv.extra]
    if _is_true(options.get("no-index", "")):
        indexes = []
    places = [*options.get("find-links", "").split(), *uv.find_links]
    found = IndexConfiguration(_distinct(indexes), _distinct(places), _access(options, uv))
    if not found.indexes and not found.find_links:
        raise SurroundingsError(
            "neither pip nor uv says which package index to use",
            hint="install pip for this Python, or set PIP_INDEX_URL or UV_DEFAULT_INDEX",
        )
    return found


def _access(options: Mapping[str, str], uv: UvOptions) -> Access:
    timeout = options.get("timeout") or options.get("default-timeout") or ""
    return Access(
        proxy=options.get("proxy", ""),
        certificates=options.get("cert", ""),
        client_certificate=options.get("client-cert", ""),
        trusted=frozenset([*options.get("trusted-host", "").split(), *uv.insecure]),
        timeout=float(timeout) if timeout.isdigit() and timeout != "0" else Access().timeout,
    )


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on")


def _text(written: str) -> str:
    """A value as pip prints it: a Python literal."""
    try:
        return str(ast.literal_eval(written))
    except (SyntaxError, ValueError):
        return written


def _asked_pip() -> tuple[list[str], str]:
    """The user's pip (that of this Python, else the one on PATH) and its configuration."""
    on_path = shutil.which("pip") or shutil.which("pip3")
    for pip in ([sys.executable, "-m", "pip"], [on_path]):
        if all(pip):
            listing = _output([*map(str, pip), "config", "list"])
            if listing is not None:
                return [*map(str, pip)], listing
    return [], ""


def _help(command: Sequence[str]) -> str:
    return _output([*command, "--help"]) or ""


def _uv_help() -> str:
    uv = shutil.which("uv")
    return _help([uv, "pip", "install"]) if uv else ""


def _output(command: Sequence[str]) -> str | None:
    # in the root folder, where no folder called pip can be taken for it
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "COLUMNS": "200"}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        cwd="/",
        check=False,
    )
    return done.stdout if done.returncode == 0 else None
