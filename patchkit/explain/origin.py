"""For which base a patch was made: what its `index` lines say against what the tree has, and which
commit of its own repository changed it since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

from msgspec.structs import replace

from patchkit.explain.explanation import Origin, OtherBlob, PatchEdit
from patchkit.gitcmd.commit_history import best_match
from patchkit.gitcmd.first_parent import versions
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import TreeView
from patchkit.model.patch import FileChange

#: path -> [(blob id as a patch's index line says, the patch's name)], of results
Results = Mapping[str, Sequence[tuple[str, str]]]

_SHORT = 7  # hex digits; of fewer, ids of different blobs begin alike too easily


def find_origin(
    terrain: TreeView,
    changes: Iterable[FileChange],
    *,
    base: str,
    history: Repository | None,
    results: Results | None = None,
) -> Origin:
    """Compare the preimage blobs; where some are others, look for the base that has them.

    `history` is searched back from `base` and from other pins in it. `results` are the blobs that
    other patches make: one of them may be missing before this one.
    """
    wanted = _wanted(changes)
    others = tuple(
        OtherBlob(path, blob, found)
        for path, blob in wanted.items()
        if not (found := _blob_at(terrain, path)).startswith(blob)
    )
    origin = Origin(len(wanted), others)
    if not others:
        return origin
    makers = [name for each in others for name in _makers(each, results or {})]
    origin = replace(origin, made_by=tuple(dict.fromkeys(makers)))
    return origin if history is None else _with_commit(origin, history, base, wanted)


def results_of(
    patches: Iterable[tuple[str, Iterable[FileChange]]],
) -> dict[str, list[tuple[str, str]]]:
    """The blobs that patches (name, changes) make, for `find_origin`."""
    results: dict[str, list[tuple[str, str]]] = {}
    for name, changes in patches:
        for change in changes:
            blob = change.new_blob or ""
            if change.new_path and len(blob) >= _SHORT and blob.strip("0"):
                results.setdefault(change.new_path, []).append((blob, name))
    return results


def _wanted(changes: Iterable[FileChange]) -> dict[str, str]:
    return {
        change.old_path: change.old_blob
        for change in changes
        if change.old_path and change.old_blob and change.old_blob.strip("0")
        if len(change.old_blob) >= _SHORT
    }


def _blob_at(terrain: TreeView, path: str) -> str:
    entry = terrain.tree.entry(path)
    return "" if entry is None else entry.oid


def _makers(other: OtherBlob, results: Results) -> list[str]:
    return [
        name
        for blob, name in results.get(other.path, ())
        if blob.startswith(other.expected) or other.expected.startswith(blob)
    ]


def _with_commit(
    origin: Origin, history: Repository, base: str, wanted: Mapping[str, str]
) -> Origin:
    # other pins of the upstream; not every branch, that would take minutes in a whole clone
    tips = [base, *sorted(set(history.refs("refs/patchkit/").values()) - {base})][:4]
    match = best_match(history, tips, wanted)
    if match is None or match.matches <= origin.known - len(origin.others):
        return origin
    return replace(
        origin,
        commit=match.commit,
        commit_subject=match.subject,
        commit_matches=match.matches,
        alone=match.commit == base and match.matches == origin.known,
    )


# Which commit of its own repository changed a patch so that it fits no more.


# So many versions back somebody may have pinned one that fits.
_VERSIONS = 40


def find_edit(
    repository: Repository,
    commit: str,
    path: str,
    fits: Callable[[bytes], bool],
    bring: Callable[[Iterable[str]], object],
) -> PatchEdit | None:
    """The commit before which the file at `path` fits; None if none is known.

    `bring` is asked for versions that are not here. The version at `commit` does not fit.
    """
    found = versions(repository, commit, path, _VERSIONS)
    entries = [each.touches[path] for each in found]
    blobs = [entry.oid for entry in entries if entry is not None]
    if len(blobs) < 2:
        return None
    bring(blobs)
    with ObjectReader(repository) as reader:
        contents = reader.read_present(blobs)
    for newer, older in pairwise(found):
        entry = older.touches[path]
        data = contents.get(entry.oid) if entry is not None else None
        if data is None:
            return None
        if fits(data):
            by = newer.commit
            digest = sha256(data).hexdigest()
            return PatchEdit(by.id, by.date, by.author, by.subject, older.commit.id, digest)
    return None
