"""What a damaged patch was before it was damaged, as far as the tree that it is for can tell.

Each reading of it is applied there. Where the blob ids of its index lines are of files of that
tree, they tell which one is right; else it is the only one that applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.trees import TreeView
from patchkit.model.apply_changes import Applied, Blobs, apply_changes
from patchkit.model.diff_parse import split_lines
from patchkit.model.mail import parse_patch
from patchkit.model.outcome import Preimage
from patchkit.model.patch import FileChange
from patchkit.model.repair import PatchReading, readings, readings_at
from patchkit.model.revision import unified
from patchkit.stack.build import SeriesPatch, patch_changes


class PatchRepair(Struct, frozen=True):
    """What was damaged in a patch file, and is mended; or, with a `problem`, why it is not."""

    not_in_json: ClassVar[frozenset[str]] = frozenset({"data"})

    source: str  # the file, or the mail of a mailbox
    mends: tuple[str, ...]  # by the names that `repair` in a manifest has for them
    diffs: tuple[bytes, ...]  # unified, of the patch file: one, or of each reading that applies
    problem: Problem | None = None
    data: bytes = b""  # the patch as it is mended


class _Trial(Struct, frozen=True):
    """A reading that can be parsed, on the tree."""

    reading: PatchReading
    changes: Sequence[FileChange]
    applied: Applied

    @property
    def told(self) -> bool | None:
        """Whether the blob ids say that it is right, None where they do not tell of all files."""
        pairs = zip(self.changes, self.applied.files, strict=True)
        left = [pair for pair in pairs if pair[0].hunks and pair[0].new_path is not None]
        known = [change for change, file in left if file.preimage is Preimage.MATCHES]
        if not all(map(self._is_as_told, known)):
            return False
        return True if len(known) == len(left) else None

    def _is_as_told(self, change: FileChange) -> bool:
        entry = self.applied.tree and self.applied.tree.entry(change.path)
        return bool(entry and change.new_blob and entry.oid.startswith(change.new_blob))


def repair_patch(
    data: bytes, view: TreeView, where: str, strip: int, subdirectory: str
) -> PatchRepair | None:
    """The patch as it was, for the tree of `view`; None where it is whole, or nothing fits there.

    `strip` folders go from its paths, which are then below `subdirectory`.
    """

    def tried(these: Sequence[PatchReading]) -> Iterator[_Trial]:
        for reading in these:
            with suppress(BadInputError):
                file = parse_patch(reading.data, name=where, strip=strip)
                changes = patch_changes(SeriesPatch(where, file, strip, subdirectory))
                if changes:
                    yield _Trial(reading, changes, apply_changes(view.tree, blobs, changes))

    blobs = Blobs(view.source)
    trials = [*tried(readings(data))]
    if not any(each.applied.tree for each in trials):
        for each in [*trials]:
            preimages = {file.preimage for file in each.applied.files}
            if Preimage.DIFFERS not in preimages:
                trials += tried([*readings_at(each.reading, each.changes, view.lines)])
    fit = [each for each in trials if each.applied.tree is not None]
    right = [each for each in fit if each.told]
    good = right or [each for each in fit if each.told is None]
    by_tree: dict[str, PatchReading] = {}
    for each in sorted(good, key=lambda trial: bool(trial.reading.doubt)):
        by_tree.setdefault(_tree(each), each.reading)
    found = [*by_tree.values()]
    if len(found) == 1 and (right or not found[0].doubt):
        return _repair(data, where, found) if found[0].mends else None
    if not fit or (not found and not fit[0].reading.mends):
        return None  # whatever is wrong with it, it is no damage; or its ids are of an older diff
    return replace(_repair(data, where, found or [fit[0].reading]), problem=_refused(where, found))


def _tree(trial: _Trial) -> str:
    assert trial.applied.tree is not None
    return trial.applied.tree.write([])


def _repair(data: bytes, where: str, found: Sequence[PatchReading]) -> PatchRepair:
    diffs = [
        unified(split_lines(data), split_lines(each.data), ("damaged", " + ".join(each.mends)))
        for each in found
    ]
    return PatchRepair(where, found[0].mends, tuple(diffs), data=found[0].data)


def _refused(where: str, found: Sequence[PatchReading]) -> Problem:
    hint = "take it anew from where it comes from; or edit it, and delete its index lines"
    if not found:
        what = "is damaged, and its index lines name other contents than it would give"
    elif found[1:]:
        ways = "; ".join(" + ".join(each.mends) or "as it is" for each in found)
        what = f"can be read in {len(found)} ways that give different files: {ways}"
    else:
        what = f"is damaged, and {found[0].doubt}"
    return Problem(what, where, hint)
