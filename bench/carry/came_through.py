"""What a carry left at the paths of a patch, whether or not the whole patch came through."""

from __future__ import annotations

from patchkit.carry import CarryReport
from patchkit.model.objects import SUBMODULE_MODE
from patchkit.model.tree import ObjectSource, Overlay, Tree


def carried_files(
    report: CarryReport, source: ObjectSource, name: str = "0.patch"
) -> dict[str, bytes | None]:
    """Path -> contents, None for no file, of what came through of a patch, also if not all did."""
    objects = Overlay(source, report.stack.objects)
    found: dict[str, bytes | None] = {}
    if name in report.conflicts:
        through = [file for file in report.conflicts[name] if file.carried]
        found.update({file.leaves: None for file in through if file.leaves})
        made = {file.path: file.blob for file in through}
        entries = {file.path: file.entry for file in through}
    else:
        (outcome,) = (each for each in report.outcomes if each.name == name)
        tree, made = Tree(objects, outcome.tree or report.stack.tree), {}
        paths = {file.carried_to or file.path for file in outcome.files}
        # what a rename leaves is a file of the stack, and of no other change
        gone = {file.path for file in report.stack.files if name in file.patches}
        entries = {path: tree.entry(path) for path in sorted(paths | gone)}
    for path, entry in entries.items():
        blob = made.get(path)
        if blob is not None:
            found[path] = blob.payload
        elif entry is None or entry.mode == SUBMODULE_MODE:
            found[path] = None
        else:
            found[path] = objects.read(entry.oid, "blob")
    return found
