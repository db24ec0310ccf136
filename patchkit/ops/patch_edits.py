"""Who, in the repository that a pinned patch comes from, changed it so that it fits no more."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError
from patchkit.explain.edits import find_edit
from patchkit.explain.values import PatchEdit
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.histories import bring_blobs, known_history
from patchkit.manifest.values import Component, Manifest, PinnedPatch
from patchkit.model.apply import Blobs, apply_changes
from patchkit.model.mail import parse_patch
from patchkit.model.progress import Silent
from patchkit.model.tree import ObjectSource, Tree
from patchkit.series import LoadedPatch
from patchkit.stack import patch_changes
from patchkit.store import Store, home_of


class Met(Struct, frozen=True):
    """The tree that a patch meets, and where its objects are."""

    source: ObjectSource
    tree: str


def edit_of(
    manifest: Manifest, component: Component, patch: LoadedPatch, met: Met, store: Store
) -> PatchEdit | None:
    """The commit that changed the patch's file; None where its repository's history is not here.

    Of that history only the file's versions are fetched, if they are not here.
    """
    entry = patch.origin
    if not isinstance(entry, PinnedPatch):
        return None
    source, commit = home_of(manifest, entry)
    history = known_history(store, source, commit)
    if history is None:
        return None

    def fits(data: bytes) -> bool:
        try:
            file = parse_patch(data, name=patch.name, strip=patch.strip)
            changes = patch_changes(replace(patch.series_patch, file=file))
            applied = apply_changes(Tree(met.source, met.tree), Blobs(met.source), changes)
        except (PatchkitError, MissingObjectError):
            return False
        return applied.tree is not None

    def bring(blobs: Iterable[str]) -> None:
        bring_blobs(store, component, history, blobs, Silent())

    try:
        return find_edit(history.repository, commit, entry.path, fits, bring)
    except PatchkitError:  # without a network nobody can tell
        return None
