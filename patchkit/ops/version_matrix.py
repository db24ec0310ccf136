"""The patches of a component that has several pins, side by side: which pin has which of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from msgspec import Struct

from patchkit.explain.diagnose import undoes
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Component, Manifest
from patchkit.model.outcome import Status
from patchkit.model.progress import Silent
from patchkit.model.revision import Revision, compare_patches, what_it_does
from patchkit.stack.build import patch_changes
from patchkit.stack.series import LoadedPatch, load_series
from patchkit.upstream.store import Store

_At: TypeAlias = tuple[Manifest, Component]
#: The patches of a family: the number of a pin -> its patch.
Family: TypeAlias = dict[int, LoadedPatch]
#: A number that a patch's name begins with is its place in one series.
_NUMBER = re.compile(r"^[0-9]+[-_.]")
_REVISED = {
    Revision.CONTEXT: "carried",
    Revision.MESSAGE: "carried",
    Revision.CONTENT: "differing",
}


class VersionMatrix(Struct, frozen=True):
    """The patches of a component at its pins, in the order of the manifest.

    `families` has a state for each pin, under the patch's last name. `applies`: as at the first pin
    that has it; `carried`: it changes the same lines, others are around them; `differing`: it
    changes other lines; `absorbed`: upstream has it there; `missing`: not even upstream, as far as
    its files are here. Any other is the patch's own: where it does not apply, and in a drift.
    """

    manifest: str  # its name
    component: str  # without what its pins are called
    pins: tuple[str, ...]  # what they are called
    families: Mapping[str, tuple[str, ...]]

    @property
    def rows(self) -> Iterator[tuple[str, ...]]:
        """As a table, with a head."""
        yield (f"{self.manifest}: {self.component}", *self.pins)
        for name, states in self.families.items():
            yield (name, *states)


def find_matrices(
    looked_at: Sequence[_At], found: Sequence[Any], store: Store
) -> tuple[VersionMatrix, ...]:
    """The matrix of each component that was looked at at several pins.

    `found` are the reports on all, whose `patches` have a `name` and a `status`.
    """
    matrices = []
    pairs = zip(looked_at, found, strict=True)
    for (manifest, name), group in groupby(
        pairs, lambda each: (each[1].manifest, each[0][1].family)
    ):
        pins, reports = zip(*group, strict=True)
        if len(pins) > 1:
            labels = tuple(component.label for _, component in pins)
            states = {
                [*family.values()][-1].name: tuple(_states(family, pins, reports, store))
                for family in families_of(pins, store)
            }
            matrices.append(VersionMatrix(manifest, name, labels, states))
    return tuple(matrices)


def families_of(pins: Sequence[_At], store: Store) -> list[Family]:
    """The patches of a component at its pins by family, as far as they can be read.

    A patch is of the family that has its name, less a number in front; else of that which has its
    subject; else of that which changes the same lines. A family has one patch of each pin.
    """
    families: list[Family] = []
    known: dict[object, Family] = {}
    for number, at in enumerate(pins):
        for patch in load_series(*at, store, Silent(), partly=True).patches:
            name = _NUMBER.sub("", patch.name.rpartition("/")[2])
            marks = name, patch.file.subject or name, what_it_does(patch.file)
            fitting = (known[mark] for mark in marks if mark in known)
            family = next((members for members in fitting if number not in members), {})
            families += [family] if not family else []
            family[number] = patch
            known = dict.fromkeys(marks, family) | known
    return families


def _states(
    family: Family,
    pins: Sequence[_At],
    reports: Sequence[Any],
    store: Store,
) -> Iterator[str]:
    first, *_ = family.values()
    for number, ((_, component), report) in enumerate(zip(pins, reports, strict=True)):
        patch = family.get(number)
        if patch is None:
            has = any(_has(component, member, store) for member in family.values())
            yield "absorbed" if has else "missing"
            continue
        status = {checked.name: checked.status for checked in report.patches}.get(patch.name)
        if status in (Status.UNCHANGED, Status.SHIFTED):
            yield _REVISED.get(compare_patches(first.file, patch.file), "applies")
        else:
            yield status.value if status else "unknown"


def _has(component: Component, patch: LoadedPatch, store: Store) -> bool:
    """Whether upstream has what a patch does at the pin, as far as that is here."""
    base = store.cached_base(component)
    if base is None:
        return False
    with reading(store.repository(component)) as reader:
        return undoes(TreeView(reader, base.tree), patch_changes(patch.series_patch))
