"""A manifest as it was read last, kept in the cache.

YAML, the declared format and its rules are a third of what a short command costs, and need not be
loaded while no file changed.

Invariant: what is kept follows from its key. The key has the manifest's place and the code,
and the kept data name every file that was read with the digest of its bytes; where there are keys
of extensions, also what is installed that brings keys, and the modules that did. What the rules ask
of the disk beside these bytes (no path leads out of the project) is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path, PosixPath
from typing import Any

from msgspec import Struct

from patchkit import entry_points
from patchkit.disk.files import files_in, is_inside, read_plain
from patchkit.disk.result_cache import code_digest, memory_path, recall_as, remember
from patchkit.errors import SurroundingsError
from patchkit.manifest import values
from patchkit.manifest.find import absolute, project_root
from patchkit.manifest.types import KEYS
from patchkit.manifest.values import LocalPatch, LocalSeries, Manifest, SubmodulePin

#: The code that decides what becomes of a text: a change of it makes another key.
_CODE = ("manifest", "model/dates", "model/decoding", "model/names", "model/patch", "model/text")


def read_manifest(path: Path, cache: Path) -> Manifest:
    """The manifest at `path`; raises BadInputError with every problem, each with its file:line.

    Read again only if a file changed since; `cache` is patchkit's cache folder.
    """
    facts = [str(path), str(absolute(path)), code_digest(*_CODE)]
    kept = memory_path(cache, "manifests", facts)
    manifest = _recalled(recall_as(kept, dict), project_root(path))
    if manifest is None:
        from patchkit.manifest.load import inspect_manifest  # noqa: PLC0415 (YAML and the format)

        inspection = inspect_manifest(path)
        manifest = inspection.require()
        if any(isinstance(each.pin, SubmodulePin) for each in manifest.components):
            return manifest  # what git's index says is asked each time
        digests = {str(file): sha256(data).hexdigest() for file, data in inspection.files.items()}
        modules = set[str]()
        data = _packed(manifest, modules)
        folders = [Path(str(import_module(name).__file__)).parent for name in modules]
        code = {str(file): _digest(file) for each in folders for file in files_in(each, "*.py")}
        added = dict(entry_points.named(KEYS)) if modules else {}
        about = {"files": digests, "added": added, "code": code}
        remember(kept, {**about, "manifest": data})
    return manifest


def _recalled(kept: Any, root: Path) -> Manifest | None:
    """The manifest that was kept, if all files that it was read from are what they were."""
    try:
        for number, (name, digest) in enumerate(kept["files"].items()):
            if _digest(Path(name)) != digest:
                return None
            # the first is the manifest, wherever it is
            if number and not is_inside(Path(name), root):
                return None
        if kept["added"] and kept["added"] != entry_points.named(KEYS):
            return None
        if any(_digest(Path(name)) != digest for name, digest in kept["code"].items()):
            return None
        manifest = _unpacked(kept["manifest"])
    except (TypeError, KeyError, AttributeError, OSError, ValueError, SurroundingsError):
        return None  # nothing was kept, or it is damaged, or a file or an extension is gone
    return manifest if isinstance(manifest, Manifest) and _stays_inside(manifest) else None


def _stays_inside(manifest: Manifest) -> bool:
    """Whether all paths that the manifest names stay in the project, symbolic links followed."""
    return all(
        is_inside(manifest.root / entry.path, manifest.root)
        for component in manifest.components
        for entry in component.patches
        if isinstance(entry, LocalPatch | LocalSeries)
    )


def _digest(file: Path) -> str:
    return sha256(read_plain(file)).hexdigest()


def _packed(value: object, modules: set[str]) -> object:
    """A value of a manifest as JSON can hold it: a list is a tuple, an object says its class.

    The modules of extensions whose keys and classes are there are added to `modules`.
    """
    if isinstance(value, values.Extended):
        points, title = entry_points.named(KEYS), type(value).__name__.lower()
        modules |= {points[f"{title}.{key}"].partition(":")[0] for key in value.more}
    if isinstance(value, Struct):
        kind = type(value)
        name = kind.__name__
        if kind.__module__ != values.__name__:
            modules.add(kind.__module__)
            name = f"{kind.__module__}:{name}"
        fields = [_packed(getattr(value, field), modules) for field in value.__struct_fields__]
        return {"class": name, "fields": fields}
    if isinstance(value, PosixPath):
        return {"path": str(value)}
    if isinstance(value, Mapping):
        return {"mapping": {key: _packed(each, modules) for key, each in value.items()}}
    if isinstance(value, tuple):
        return [_packed(each, modules) for each in value]
    assert value is None or isinstance(value, str | int), f"a manifest with {value!r}"
    return value


def _unpacked(data: Any) -> Any:
    if isinstance(data, list):
        return tuple([_unpacked(each) for each in data])
    if not isinstance(data, dict):
        return data
    if "class" in data:
        name = data["class"]
        kind = entry_points.load(name) if ":" in name else getattr(values, name)
        fields = map(_unpacked, data["fields"])
        return kind(**dict(zip(kind.__struct_fields__, fields, strict=True)))
    if "path" in data:
        return Path(data["path"])
    return {key: _unpacked(each) for key, each in data["mapping"].items()}
