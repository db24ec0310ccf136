"""A stack as a bill of materials: CycloneDX 1.6, each component with its pedigree.

A patched component is not the release that its version names. CycloneDX says so by `pedigree`: the
ancestor is what upstream published, the patches what was done to it, with what they resolve. The
document is a pure function of manifest, lock and patch files: it has no time and no random number.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID, uuid5

from msgspec import Struct

from patchkit import REPOSITORY, __version__
from patchkit.errors import Problem
from patchkit.manifest.values import (
    ArchiveSource,
    Component,
    GitSource,
    IndexPin,
    IndexSource,
    Manifest,
    PinnedPatch,
    normal_name,
)
from patchkit.model.names import short_id
from patchkit.stack.lockfile import Lock, LockedComponent, recorded_in
from patchkit.stack.series import LoadedPatch

#: Serial numbers are named below this (a random UUID, made once).
_NAMESPACE = UUID("7c2c9d55-5f0e-4f3c-9d0a-2a4d7d0b9f11")
_CVE = re.compile(r"\bCVE-\d{4}-\d{4,}\b")
_BACKPORT = re.compile(
    r"^(?:Upstream-Status:[ \t]*Backport|Origin:[ \t]*(?:upstream|backport)\b"
    r"|\(cherry[ -]picked from commit [0-9a-f]{7,}\))",
    re.MULTILINE | re.IGNORECASE,
)
_BUG = re.compile(r"^(?:Bug(?:-[A-Za-z]+)?|Closes|Fixes):[ \t]*(https?://\S+)", re.MULTILINE)


class StackPart(Struct, frozen=True):
    """A component with its patches as they are read."""

    component: Component
    patches: tuple[LoadedPatch, ...]


def unlocked(manifest: Manifest, parts: Iterable[StackPart], lock: Lock | None) -> list[Problem]:
    """Where patches are not those of the lock: nobody may vouch for what nobody has applied."""
    return [each for part in parts for each in _unlocked(manifest, part, lock)]


def _unlocked(manifest: Manifest, part: StackPart, lock: Lock | None) -> Iterator[Problem]:
    name = part.component.name
    locked = recorded_in(lock, name)
    hint = f"patchkit apply {manifest.options(name)} --accept"
    if locked is None:
        yield Problem(f"{name} is not in the lock", str(manifest.lock_path.name), hint)
        return
    recorded = [(each.name, each.sha256) for each in locked.patches]
    if recorded != [(each.name, each.sha256) for each in part.patches]:
        yield Problem(
            f"{name}: its patches are not those of the lock", manifest.lock_path.name, hint
        )
    commit = str(part.component.pin)
    if isinstance(part.component.source, GitSource) and commit != locked.commit:
        what = f"{name} is pinned to {short_id(commit)}, the lock has {short_id(locked.commit)}"
        yield Problem(what, manifest.lock_path.name, hint)


def sbom_document(
    manifest: Manifest, parts: Sequence[StackPart], lock: Lock, *, diffs: bool = False
) -> str:
    """The document without a final newline; `diffs` puts the patches' bytes into it.

    Every part is in the lock as it is (see `unlocked`).
    """
    components = [_component(part, lock.components[part.component.name], diffs) for part in parts]
    stack = {"type": "application", "bom-ref": f"stack:{manifest.name}", "name": manifest.name}
    if manifest.description:
        stack["description"] = " ".join(manifest.description.split())
    tool = {
        "type": "application",
        "name": "patchkit",
        "version": __version__,
        "externalReferences": [{"type": "vcs", "url": REPOSITORY}],
    }
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"tools": {"components": [tool]}, "component": stack},
        "components": components,
        "dependencies": [
            {"ref": stack["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}
        ],
    }
    serial = uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return json.dumps({**document, "serialNumber": f"urn:uuid:{serial}"}, indent=2)


def _component(part: StackPart, locked: LockedComponent, diffs: bool) -> dict[str, Any]:
    component = part.component
    released = _released(component)
    found = {
        **released,
        "bom-ref": f"component:{component.name}",
        "properties": [
            {"name": "patchkit:component", "value": component.name},
            {"name": "patchkit:base:tree", "value": locked.tree},
            {"name": "patchkit:result:tree", "value": locked.result},
        ],
    }
    if component.description:
        found["description"] = " ".join(component.description.split())
    if not part.patches:
        return found
    # The purl stays, as scanners look holes up by it; the bytes are no longer the release's.
    found.pop("hashes", None)
    found["version"] = f"{released['version']}+patchkit.{short_id(locked.result)}"
    found["modified"] = True
    found["properties"] += [
        {"name": f"patchkit:patch:{number}:{each.name}", "value": f"sha256:{each.sha256}"}
        for number, each in enumerate(part.patches, 1)
    ]
    found["pedigree"] = {
        "ancestors": [{**released, "bom-ref": f"upstream:{component.name}"}],
        "patches": [_patch(each, component, diffs) for each in part.patches],
        "notes": "\n".join(f"{each.name}: {each.file.subject}" for each in part.patches),
    }
    return found


def _released(component: Component) -> dict[str, Any]:
    """The component as upstream published it."""
    source, pin = component.source, component.pin
    found: dict[str, Any] = {"type": "library", "name": component.name, "version": str(pin)}
    if isinstance(source, GitSource):
        found["purl"] = _git_purl(component.name, source.url, str(pin))
        found["externalReferences"] = [{"type": "vcs", "url": _address(source.url)}]
    elif isinstance(source, IndexSource) and isinstance(pin, IndexPin):
        name = normal_name(source.project)
        found["name"] = name
        found["purl"] = f"pkg:pypi/{quote(name)}@{quote(pin.version)}"
        found["hashes"] = [{"alg": "SHA-256", "content": pin.sha256}]
    elif isinstance(source, ArchiveSource):
        digest = str(pin).removeprefix("sha256:")
        url = _address(source.url)
        found["version"] = digest[:12]
        found["purl"] = (
            f"pkg:generic/{quote(component.name)}?checksum=sha256:{digest}"
            f"&download_url={quote(url, safe='')}"
        )
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
        found["externalReferences"] = [{"type": "distribution", "url": url}]
    return found


def _git_purl(name: str, url: str, commit: str) -> str:
    """GitHub has a type of its own; everything else is named by where it is."""
    parts = urlsplit(url)
    path = parts.path.strip("/").removesuffix(".git")
    if parts.hostname == "github.com" and path.count("/") == 1:
        return f"pkg:github/{quote(path.lower())}@{commit}"
    where = quote(f"git+{_address(url)}@{commit}", safe="")
    return f"pkg:generic/{quote(name)}@{commit}?vcs_url={where}"


def _address(url: str) -> str:
    """A URL without user and password, as an IRI; a local path is quoted."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return quote(parts.geturl(), safe="/:?&=#%+~,;@[]!$'()*", errors="surrogateescape")


def _patch(patch: LoadedPatch, component: Component, diffs: bool) -> dict[str, Any]:
    diff: dict[str, Any] = {"url": _patch_address(patch, component)}
    if diffs:
        content = b64encode(patch.data).decode()
        diff = {
            "text": {"contentType": "text/x-diff", "encoding": "base64", "content": content},
            **diff,
        }
    found: dict[str, Any] = {
        "type": "backport" if _BACKPORT.search(patch.file.message) else "unofficial",
        "diff": diff,
    }
    resolved = list(_resolved(patch.file.message))
    if resolved:
        found["resolves"] = resolved
    return found


def _patch_address(patch: LoadedPatch, component: Component) -> str:
    """The file in the project; of another repository its address, commit and path."""
    origin = patch.origin
    if not isinstance(origin, PinnedPatch):
        return quote(patch.where, errors="surrogateescape")
    if origin.git is not None:
        path = quote(origin.path, errors="surrogateescape")
        return f"{_address(origin.git)}@{origin.commit}#{path}"
    return f"#component:{quote(origin.component or component.name)}"


def _resolved(message: str) -> Iterator[Mapping[str, Any]]:
    """What a patch says that it mends: holes by their number, bugs by their page."""
    for each in dict.fromkeys(_CVE.findall(message)):
        yield {"type": "security", "id": each}
    for url in dict.fromkeys(_BUG.findall(message)):
        yield {"type": "defect", "references": [_address(url)]}
