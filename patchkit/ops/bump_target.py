"""What a component is to be moved to: a name, looked up at its source, and the pin it means."""

from __future__ import annotations

import re

from msgspec import Struct

from patchkit.errors import Problem, UsageError
from patchkit.histories import find_commit
from patchkit.manifest.values import (
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Pin,
    Source,
)
from patchkit.manifest.words import check_version
from patchkit.model.progress import Progress
from patchkit.ops.bump_report import NamedPin
from patchkit.sources.refs import LATEST
from patchkit.store import Store

_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


class Target(Struct, frozen=True):
    """The pin to move to, with the names by which both pins are known."""

    pin: Pin
    old: NamedPin
    new: NamedPin


def find_target(component: Component, wanted: str, store: Store, progress: Progress) -> Target:
    """What `wanted` is at the component's source now: a version, or what `find_commit` takes.

    UsageError if there is no such thing.
    """
    match component.source, component.pin:
        case GitSource(), GitPin(old):
            return _git_target(component, old, wanted, store, progress)
        case IndexSource(project), IndexPin() as pin:
            lacking = "what the package index has is not in the cache"
            store.require_network(component.name, lacking, "run it without --offline")
            progress.step(component.name, "asking the package index")
            found = _index_pin(project, wanted)
            return Target(found, NamedPin(pin.version), NamedPin(found.version))
    hint = "write its new URL and sha256 into the manifest, then patchkit refresh"
    what = "is an archive: there is nothing to look a new one up in"
    raise UsageError(Problem(what, component.name, hint))


def compare_link(source: Source, old: Pin, new: Pin) -> str:
    """Where upstream shows what is between two commits; "" where that is not plain."""
    found = _GITHUB.fullmatch(source.url) if isinstance(source, GitSource) else None
    return f"https://github.com/{found[1]}/compare/{old}...{new}" if found else ""


def _git_target(
    component: Component, old: str, wanted: str, store: Store, progress: Progress
) -> Target:
    meaning = find_commit(store, component, wanted, progress)
    named, refs = meaning.named, meaning.refs
    if refs is None:
        return Target(GitPin(named.commit), NamedPin(old), NamedPin(named.commit))
    tag = named.tag or (refs.tag_at(named.commit) if named.branch else "")
    before = refs.tag_at(old)
    return Target(
        GitPin(named.commit),
        NamedPin(old, before, lasting=bool(before)),
        NamedPin(named.commit, tag or named.branch, lasting=bool(tag)),
    )


def _index_pin(project: str, wanted: str) -> IndexPin:
    # imported here: it needs libraries that the others can do without
    from patchkit.sources.index import newest_version, sdist_hash  # noqa: PLC0415

    version = newest_version(project) if wanted == LATEST else wanted
    complaint = check_version(version)
    if complaint is not None:
        hint = complaint.hint or "an index has versions only"
        raise UsageError(Problem(f"--to {version} {complaint.what}", hint=hint))
    return IndexPin(version, sdist_hash(project, version))
