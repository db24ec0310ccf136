"""Patches that several components take: they must fit every pin that they are put on."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from patchkit.model.outcome import Status


class PatchUse(Struct, frozen=True):
    """One component's use of a patch file; `status` is None where it could not be tried."""

    patch: str
    sha256: str
    manifest: str
    component: str
    pin: str
    status: Status | None


class SharedPatch(Struct, frozen=True):
    """A patch, by its bytes, that is used at different pins; `fits`: it applies at all of them."""

    patch: str
    sha256: str
    fits: bool
    uses: tuple[PatchUse, ...]


def find_shared(uses: Iterable[PatchUse]) -> tuple[SharedPatch, ...]:
    """The patches that are used at more than one pin, in the order of their first use."""
    groups: dict[str, list[PatchUse]] = {}
    for use in uses:
        groups.setdefault(use.sha256, []).append(use)
    return tuple(
        SharedPatch(group[0].patch, sha256, all(map(_applies, group)), tuple(group))
        for sha256, group in groups.items()
        if len({use.pin for use in group}) > 1
    )


def _applies(use: PatchUse) -> bool:
    return use.status is not None and use.status.applies
