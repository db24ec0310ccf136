"""What a component is to be moved to: a name, looked up at its source, and the pin it means."""

from __future__ import annotations

import re

from msgspec import Struct

from patchkit.errors import Problem, UsageError
from patchkit.gitcmd.urls import readable_url
from patchkit.histories import known_commit
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
from patchkit.model.names import COMMIT_ID
from patchkit.model.progress import Progress
from patchkit.ops.bump_report import NamedPin
from patchkit.sources.refs import find_ref, list_refs
from patchkit.store import Store

#: Stands for what `track` names.
LATEST = "latest"

_OFFLINE = "run it without --offline; or name a commit that was fetched before: --to COMMIT"

# As reports show commits; these are known once somebody has looked along the branch.
_SHORT_ID = re.compile(r"[0-9a-f]{7,39}")
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


class Target(Struct, frozen=True):
    """The pin to move to, with the names by which both pins are known."""

    pin: Pin
    old: NamedPin
    new: NamedPin


def find_target(component: Component, wanted: str, store: Store, progress: Progress) -> Target:
    """What `wanted` is at the component's source now; asks the network unless it is a commit id.

    `wanted` is a branch, tag, tag pattern, commit id (abbreviated, if it is known here), version,
    or LATEST. UsageError if there is no
    such thing.
    """
    match component.source, component.pin:
        case GitSource() as source, GitPin(old):
            return _git_target(component, source, old, wanted, store, progress)
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


def _git_target(  # noqa: PLR0917
    component: Component,
    source: GitSource,
    old: str,
    wanted: str,
    store: Store,
    progress: Progress,
) -> Target:
    if wanted == LATEST:
        wanted = component.track or ""
        if not wanted:
            hint = "name a tag, branch or commit, or write `track` into the manifest"
            raise UsageError(
                Problem("has no `track` that latest could stand for", component.name, hint)
            )
    if _SHORT_ID.fullmatch(wanted):
        wanted = known_commit(store, source, wanted) or wanted
    if COMMIT_ID.fullmatch(wanted):
        return Target(GitPin(wanted), NamedPin(old), NamedPin(wanted))
    lacking = f"what {wanted} is upstream now is not in the cache"
    store.require_network(component.name, lacking, _OFFLINE)
    progress.step(component.name, f"asking {readable_url(source.url)}")
    refs = list_refs(source, store.stop)
    name, commit = find_ref(refs, wanted)
    branch = name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""
    tag = refs.tag_at(commit) if branch else name.removeprefix("refs/tags/")
    before = refs.tag_at(old)
    return Target(
        GitPin(commit),
        NamedPin(old, before, lasting=bool(before)),
        NamedPin(commit, tag or branch, lasting=bool(tag)),
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
