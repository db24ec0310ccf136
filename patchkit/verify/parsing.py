"""Files that a stack touches and that could be parsed before must parse after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module

from patchkit.explain.terrain import Overlay, Terrain
from patchkit.manifest.wellformed import yaml_problem
from patchkit.model.lint import Finding, Severity
from patchkit.overrides.sources import parse_python
from patchkit.series import LoadedPatch
from patchkit.stack import Stack

#: Ending -> what a file of that name is.
_LANGUAGES = {
    ".py": "Python",
    ".pyi": "Python",
    ".json": "JSON",
    ".toml": "TOML",
    ".yml": "YAML",
    ".yaml": "YAML",
}


def parse_problem(path: str, data: bytes) -> str:
    """Why a file is not what its name says, "" if it is, or if that is not known."""
    language = _LANGUAGES.get(path[path.rfind(".") :]) if "." in path else None
    if language is None:
        return ""
    return {"Python": _python, "JSON": _json, "TOML": _toml, "YAML": yaml_problem}[language](data)


def language_of(path: str) -> str:
    """What a file that can be parsed is."""
    return _LANGUAGES[path[path.rfind(".") :]]


def parse_findings(
    source: Overlay, stack: Stack, patches: tuple[LoadedPatch, ...]
) -> Iterator[Finding]:
    """Files that the stack broke, each at the last patch that touches it."""
    last: dict[str, LoadedPatch] = {}
    for patch, outcome in zip(patches, stack.outcomes, strict=True):
        last |= {file.path: patch for file in outcome.files if outcome.status.applies}
    before, after = Terrain(source, stack.base.tree), Terrain(source, stack.tree)
    for path, patch in sorted(last.items()):
        data = after.data(path)
        problem = "" if data is None else parse_problem(path, data)
        if not problem:
            continue
        old = before.data(path)
        if old is None or not parse_problem(path, old):
            what = f"{path} is no {language_of(path)} with the stack applied: {problem}"
            hint = f"{patch.name} is the last patch that touches it"
            yield Finding(Severity.ERROR, "verify-parse", what, patch.where, hint)


def _python(data: bytes) -> str:
    return parse_python(data)[1]


def _json(data: bytes) -> str:
    try:
        json.loads(data)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _toml(data: bytes) -> str:
    try:
        tomllib = import_module("tomllib")
    except ImportError:
        return ""  # before Python 3.11: nothing can be told
    try:
        tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""
