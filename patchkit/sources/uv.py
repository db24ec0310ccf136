"""What uv is configured to use: its variables and its user's and system's uv.toml.

A project's own [tool.uv] does not count: it says where that project's dependencies come from.
Reading uv.toml needs Python 3.11; with 3.10 the variables alone count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct


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
