"""What a conflict that waits is about, and the resolutions that are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.manifest.values import Component, Manifest
from patchkit.ops.refresh_report import Halted
from patchkit.ops.resume import waiting_of
from patchkit.refresh.conflict import load_resolutions
from patchkit.refresh.project_files import Project
from patchkit.workspace import checkout_of, inspect
from patchkit.workspace.waiting import read_halt


class ConflictReport(Struct, frozen=True):
    """The conflict that a component's checkout holds, and the files that remember others.

    `conflict` tells it from every other one: a proposal names it. `halted` is what was said of it
    then, `diff` what the patch makes of the patches before it, with the markers that the checkout
    got; "" and null where none waits.
    """

    component: str
    resolutions: Mapping[str, bytes]
    conflict: str = ""
    halted: Halted | None = None
    diff: bytes = b""


def read_conflict(manifest: Manifest, component: Component, workspace: Path) -> ConflictReport:
    """What waits in a component's checkout; nothing is changed."""
    kept = load_resolutions(Project(manifest, component).home).values()
    texts = {file.where: (manifest.root / file.where).read_bytes() for file in kept}
    report = ConflictReport(component.name, texts)
    checkout = checkout_of(workspace, manifest, component)
    halt = read_halt(checkout) if inspect(checkout).halt else None
    if halt is None:
        return report
    waiting = waiting_of(halt)
    diff = checkout.repository.git("diff", "-U20", waiting.onto, halt.place.files, "--").out
    return replace(report, conflict=halt.commit, halted=waiting.halted, diff=diff)
