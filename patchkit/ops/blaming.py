"""Name the upstream commits behind a conflict, from the history of the upstream."""

from __future__ import annotations

from msgspec.structs import replace

from patchkit.errors import PatchkitError
from patchkit.gitcmd.touching import that_touched, touches_of
from patchkit.histories import History, bring_blobs, open_history
from patchkit.manifest.values import Component, GitPin
from patchkit.model.progress import Progress
from patchkit.refresh.halting import Conflict, ConflictedFile
from patchkit.store import Store

_SHOWN = 5


def with_upstream(
    conflict: Conflict, component: Component, old: str, store: Store, progress: Progress
) -> Conflict:
    """The conflict with the commits that touched its lines since `old`.

    Where the history cannot be had it says so, and goes without: it is a help, no more.
    """
    pin = component.pin
    if not isinstance(pin, GitPin):
        return conflict
    try:
        at_old = replace(component, pin=GitPin(old))
        history = open_history(store, at_old, pin.commit, progress)
        files = tuple(_named(each, history, at_old, store, progress) for each in conflict.files)
    except PatchkitError as error:
        return replace(conflict, unknown="; ".join(each.what for each in error.problems))
    return replace(conflict, files=files)


def _named(
    file: ConflictedFile, history: History, component: Component, store: Store, progress: Progress
) -> ConflictedFile:
    repository = history.repository
    touches = touches_of(repository, history.pin, history.tip, file.path)
    if file.lines:
        blobs = [oid for each in touches for oid in each.blobs]
        bring_blobs(store, component, history, blobs, progress)
        touches = that_touched(repository, touches, file.lines) or touches
    return replace(file, upstream=tuple(each.told for each in touches[:_SHOWN]))
