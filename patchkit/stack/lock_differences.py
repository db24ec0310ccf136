"""What differs between the lock and what a stack comes to now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from patchkit.model.names import short_id
from patchkit.stack.lockfile import LockedComponent, LockedPatch
from patchkit.stack.series import LoadedSeries


class LockDifference(Struct, frozen=True):
    """One difference between the lock and what a stack comes to now."""

    what: str  # what is there, and what the lock says
    edit: str = ""  # the edit of patch files or series behind it, "" for none: "one.patch edited"
    patch: str = ""  # the patch whose bytes or presence differ; "" for the base, or the order
    is_base: bool = False  # the commit that the patches go on

    def is_local(self, series: LoadedSeries) -> bool:
        """Whether it is an edit of the project's own patch files, or of a series.

        Not so a pin, what an upstream or another repository's patch came to, or the result.
        """
        fixed = {each.name for each in series.patches if each.path is None}
        return bool(self.edit) and self.patch not in fixed


def compare(recorded: LockedComponent, actual: LockedComponent) -> tuple[LockDifference, ...]:
    """What differs between the lock and what a stack comes to now."""
    return tuple(_differences(recorded, actual))


def _differences(recorded: LockedComponent, actual: LockedComponent) -> Iterator[LockDifference]:
    if recorded.commit != actual.commit:
        now, then = short_id(actual.commit), short_id(recorded.commit)
        yield LockDifference(f"the base is {now}, the lock says {then}", is_base=True)
    elif recorded.tree != actual.tree:
        now, then = short_id(actual.tree), short_id(recorded.tree)
        yield LockDifference(f"the base's tree is {now}, the lock says {then}")
    found = list(_patch_differences(recorded.patches, actual.patches))
    yield from found
    # where base and patches agree, so does the result, or the lock was not written by us
    if not found and recorded.tree == actual.tree and recorded.result != actual.result:
        now, then = short_id(actual.result), short_id(recorded.result)
        yield LockDifference(f"the resulting tree is {now}, the lock says {then}")
    elif not found and recorded.files != actual.files:
        yield LockDifference("the files are not those that the lock says they are")


def _patch_differences(
    recorded: Sequence[LockedPatch], actual: Sequence[LockedPatch]
) -> Iterator[LockDifference]:
    """Patches that came, went or changed, by name; then their order, as one difference."""
    old, new = ({each.name: each for each in rows} for rows in (recorded, actual))
    for name in old:
        if name not in new:
            yield LockDifference(
                f"{name} is in the lock and not in the series", f"{name} removed", name
            )
    for name, patch in new.items():
        if name not in old:
            yield LockDifference(f"{name} is not in the lock", f"{name} added", name)
        elif patch.sha256 != old[name].sha256:
            now, then = short_id(patch.sha256), short_id(old[name].sha256)
            what = f"{name} has changed: sha256 {now}, the lock says {then}"
            yield LockDifference(what, f"{name} edited", name)
    before = [name for name in old if name in new]
    after = [name for name in new if name in old]
    moved = next((pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]), None)
    if moved is not None:
        what = f"the patches are in another order: {moved[1]} now comes before {moved[0]}"
        yield LockDifference(what, f"reordered: {moved[1]} now before {moved[0]}")
