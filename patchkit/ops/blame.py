"""Blame: which patch a line of a patched file comes from, or that it is upstream's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import UsageError
from patchkit.manifest.values import Component, Manifest
from patchkit.model.progress import Progress
from patchkit.ops.stacks import BuiltStack, built_stack
from patchkit.upstream.store import Store
from patchkit.workspace import checkout_of


class BlamedLines(Struct, frozen=True):
    """A file of a component's patched tree, and lines of it: first and last, both included."""

    path: str
    first: int | None = None
    last: int | None = None


class BlamedLine(Struct, frozen=True):
    """One line: its number, the patch that it comes from (None: upstream), and its text."""

    number: int
    patch: str | None
    text: bytes


class BlamedPatch(Struct, frozen=True):
    """A patch that lines come from: its place in the stack from 1, subject and author."""

    name: str
    number: int
    subject: str
    author: str
    where: str


class BlameReport(Struct, frozen=True):
    """The lines asked for, and the patches that they come from."""

    component: str
    path: str
    lines: tuple[BlamedLine, ...]
    patches: tuple[BlamedPatch, ...]


def parse_spot(text: str) -> BlamedLines:
    """FILE, FILE:LINE or FILE:FIRST-LAST."""
    match = re.fullmatch(r"(.+?):(\d+)(?:[-,](\d+))?", text)
    if match is None:
        return BlamedLines(text)
    first = int(match[2])
    return BlamedLines(match[1], first, int(match[3] or first))


def blame(
    manifest: Manifest,
    components: Sequence[Component],
    spot: BlamedLines,
    *,
    workspace: Path,
    store: Store,
    progress: Progress,
) -> BlameReport:
    """Look for the file in the patched trees of `components`, and say whose its lines are.

    UsageError if no component, or more than one, has it, or if it has no such line.
    """
    found = [
        report
        for component in components
        if (
            report := _blame(
                manifest, component, spot, workspace=workspace, store=store, progress=progress
            )
        )
        is not None
    ]
    if not found:
        names = ", ".join(each.name for each in components)
        raise UsageError(
            f"{spot.path}: no such file in the patched tree of {names}",
            hint="give the path from the upstream's top folder, as a patch has it",
        )
    if len(found) > 1:
        names = ", ".join(each.component for each in found)
        raise UsageError(
            f"{spot.path}: several components have it: {names}", hint="choose with --component"
        )
    return found[0]


def _blame(
    manifest: Manifest,
    component: Component,
    spot: BlamedLines,
    *,
    workspace: Path,
    store: Store,
    progress: Progress,
) -> BlameReport | None:
    path = _in_tree(spot.path, manifest, component, workspace)
    with built_stack(manifest, component, store, progress) as built:
        if built.tip.data(path) is None:
            return None
        lines = built.tip.lines(path)
        first = 1 if spot.first is None else spot.first
        last = len(lines) if spot.last is None else spot.last
        if not 1 <= first <= last <= len(lines) and spot.first is not None:
            raise UsageError(f"{path}: no line {last} in it, it has {len(lines)}")
        owners = built.attribute()[0].owners(path) or ()
        names = [None, *(patch.name for patch in built.series.patches)]
        blamed = tuple(
            BlamedLine(number, names[owners[number - 1]], lines[number - 1])
            for number in range(first, last + 1)
        )
        return BlameReport(component.name, path, blamed, _patches(built, blamed))


def _in_tree(path: str, manifest: Manifest, component: Component, workspace: Path) -> str:
    """The path in the tree; one that leads into the component's checkout loses that part."""
    folder = checkout_of(workspace, manifest, component).path
    try:
        return Path(path).absolute().relative_to(folder.absolute()).as_posix()
    except ValueError:
        return path.removeprefix("./")


def _patches(built: BuiltStack, lines: Sequence[BlamedLine]) -> tuple[BlamedPatch, ...]:
    wanted = {line.patch for line in lines}
    return tuple(
        BlamedPatch(
            patch.name,
            number,
            patch.file.header.subject if patch.file.header else "",
            patch.file.header.author.name if patch.file.header and patch.file.header.author else "",
            patch.where,
        )
        for number, patch in enumerate(built.series.patches, 1)
        if patch.name in wanted
    )
