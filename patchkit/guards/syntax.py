"""Files that a stack touches and that could be parsed before must parse after.

What parses is loaded where a file is not known to be in order.

Apart from `ops/check.py`, its only user: each guard is a module that a check without it does not
load.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from patchkit.disk.result_cache import ResultCache, memory_path
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.lint import Finding, Severity
from patchkit.stack.build import Stack
from patchkit.stack.series import LoadedPatch

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
    language = _language(path)
    return _PARSERS[language](data) if language is not None else ""


def language_of(path: str) -> str:
    """What a file that can be parsed is."""
    return _LANGUAGES[path[path.rfind(".") :]]


def well_formed_files(cache: Path, manifest: Path, component: str) -> ResultCache:
    """The blobs of a component that are known to be in order: parsing outweighs all else."""
    about = [sys.version, _yaml_reader(), str(manifest), component]
    return ResultCache(memory_path(cache, "well-formed", about))


def parse_findings(
    source: Overlay, stack: Stack, patches: tuple[LoadedPatch, ...], known: ResultCache
) -> Iterator[Finding]:
    """Files that the stack broke, each at the last patch that touches it."""
    last: dict[str, LoadedPatch] = {}
    for patch, outcome in zip(patches, stack.outcomes, strict=True):
        last |= {file.path: patch for file in outcome.files if outcome.status.applies}
    before, after = TreeView(source, stack.base.tree), TreeView(source, stack.tree)
    for path, patch in sorted(last.items()):
        problem = _problem(after, path, known)
        if problem and not _problem(before, path, known):
            what = f"{path} is no {language_of(path)} with the stack applied: {problem}"
            hint = f"{patch.name} is the last patch that touches it"
            yield Finding(Severity.ERROR, "verify-parse", what, patch.where, hint)


def _problem(terrain: TreeView, path: str, known: ResultCache) -> str:
    """Why the file at a path is not what its name says; "" also where there is no file."""
    entry, language = terrain.tree.entry(path), _language(path)
    if entry is None or language is None:
        return ""
    blob = f"{language} {entry.oid}"
    if known.known(blob):
        return ""
    data = terrain.data(path)
    problem = "" if data is None else parse_problem(path, data)
    # a problem is looked at anew: memory or depth may have been short
    if data is not None and not problem:
        known.note(blob, answer=True)
    return problem


def _language(path: str) -> str | None:
    return _LANGUAGES.get(path[path.rfind(".") :]) if "." in path else None


def _python(data: bytes) -> str:
    from patchkit.python.modules import parse_python  # noqa: PLC0415

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


def _yaml(data: bytes) -> str:
    from patchkit.manifest.yaml_nodes import yaml_problem  # noqa: PLC0415

    return yaml_problem(data)


def _yaml_reader() -> int:
    """What changes when another PyYAML is installed, without loading it."""
    found = find_spec("yaml")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).stat().st_mtime_ns


_PARSERS = {"Python": _python, "JSON": _json, "TOML": _toml, "YAML": _yaml}
