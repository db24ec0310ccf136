"""A further pin of a component that has several: it starts as a copy of the nearest."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from patchkit.disk.files import read_given
from patchkit.errors import PatchkitError, Problem, UsageError
from patchkit.manifest.edit import add_component
from patchkit.manifest.keys import as_data
from patchkit.manifest.load import inspect_manifest
from patchkit.manifest.values import Component, Manifest
from patchkit.manifest.write import yaml_text
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.ops.refresh_write import Change, write_changes
from patchkit.upstream.history import find_commit, open_history
from patchkit.upstream.store import Store
from patchkit.workspace.checkout import checkout_of
from patchkit.workspace.operations import Operation


def nearest_pin(pins: Sequence[Component], ref: str, store: Store, progress: Progress) -> Component:
    """Of some pins that from which `ref` is the fewest commits away: those that one of both has.

    Where a history is not to be had, the last that is no newer than `ref` by the numbers in what
    they are called, else the first; one without numbers is the newest.
    """
    ordered = sorted(pins, key=lambda pin: _numbers(pin.label))
    with suppress(PatchkitError):
        tip = find_commit(store, pins[0], ref, progress).named.commit
        return min(reversed(ordered), key=lambda pin: _commits_apart(store, pin, tip, progress))
    older = bisect_right([_numbers(pin.label) for pin in ordered], _numbers(ref))
    return ordered[max(0, older - 1)]


def _commits_apart(store: Store, pin: Component, tip: CommitId, progress: Progress) -> int:
    history = open_history(store, pin, tip, progress)
    span = f"{history.pin}...{tip}"
    return int(history.repository.git("rev-list", "--count", span, "--").out)


def _numbers(label: str) -> list[float]:
    return [int(digits) for digits in re.findall("[0-9]+", label)] or [math.inf]


def start_pin(
    manifest: Manifest, like: Component, ref: str, workspace: Path, began: int
) -> tuple[Manifest, Component]:
    """The manifest with a pin for `ref`: the commit of another one, and copies of its patches.

    On disk: all or nothing. Where the path of the patches says the other pin, it says the new one.
    `began` is when the command did, as in a refresh. UsageError where it cannot be a copy.
    """
    root, file, entry = manifest.root, manifest.path, like.series
    old, new = like.label.removeprefix("v"), ref.removeprefix("v")
    there = manifest.component(f"{like.family}@{ref}")
    says = old and entry is not None and entry.kind == "quilt" and old in entry.folder
    if there is not None or entry is None or not says or not (root / entry.path).exists():
        what = f"{like.name} has no patches in a folder with {old or 'a pin'} in its name"
        hint = "write the new pin below `pins:` by hand"
        if there is not None:
            what = f"{there.name} is there already"
            hint = f"patchkit bump {manifest.options(there.name)} --to {ref}  moves it"
        raise UsageError(Problem(what, (there or like).where.below(root), hint))
    before, _, after = entry.folder.rpartition(old)
    path, folder = f"{before}{new}{after}", root / entry.folder
    if (root / path).exists():
        where = like.where.below(root)
        raise UsageError(Problem(f"{path} is there already", where, "move it away, or delete it"))
    moved = replace(entry, path=path + entry.path.removeprefix(entry.folder))
    writes: dict[Path, bytes | None] = {
        root / moved.folder / path.relative_to(folder): read_given(path, str(path), inside=root)
        for path in folder.rglob("*")
        if path.is_file()
    }
    seen = dict.fromkeys(writes) | {file: file.read_bytes()}
    lines = yaml_text({ref: {"pin": as_data(like.pin), "patches": [as_data(moved)]}})
    writes[file] = add_component(seen[file] or b"", lines, file=file, family=like.family)
    added = inspect_manifest(file, writes[file]).require()
    (pin,) = added.named(f"{like.family}@{ref}")
    operation = Operation(pin.name, f"bump --add: a copy of {like.name}")
    checkout = checkout_of(workspace, added, pin)
    write_changes(root, [Change(checkout, operation, writes, seen=seen)], began)
    return added, pin
