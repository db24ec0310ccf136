"""A refresh at one pin of a component, whose edits are carried to the patches at its other pins.

There each is imported, by the carry engine, as a patch on the stack in which it was made, and
becomes a part of the patch of the same family. A conflict waits as that of any import.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from patchkit.errors import ExitCode, Problem, UsageError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.model.revision import what_it_does
from patchkit.ops.refresh import refresh_components
from patchkit.ops.refresh_input import IncomingPatches, RefreshOptions
from patchkit.ops.refresh_report import RefreshReport
from patchkit.ops.resume import can_stop_in
from patchkit.ops.version_matrix import families_of
from patchkit.refresh.draft import Request
from patchkit.refresh.series_edits import CannotEditSeriesError
from patchkit.stack.build import build_stack
from patchkit.stack.patch_files import canonical_diffs, layout_of
from patchkit.stack.series import ImportedPatch, LoadedPatch, load_series
from patchkit.upstream.store import Store
from patchkit.workspace import checkout_of, inspect


def refresh_all_pins(
    manifest: Manifest,
    components: Sequence[Component],
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> RefreshReport:
    """Refresh one pin of a component, and carry to all others what that changed in its patches.

    On disk: as by a refresh, and imports, which one `undo` takes back. UsageError, with nothing
    changed, where there is no other, or one has no checkout to which a conflict could go.
    """
    (edited,) = components
    others = [pin for pin in manifest.named(edited.family) if pin != edited]
    if not others:
        where, hint = edited.where.below(manifest.root), "refresh it without --all-pins"
        raise UsageError(Problem(f"{edited.name} has one pin", where, hint))
    for other in others:
        if not can_stop_in(inspect(checkout_of(workspace, manifest, other)), None):
            hint = f"patchkit apply {manifest.options(other.name)}  makes it, or says what is there"
            raise UsageError(Problem("has no checkout for a conflict", other.name, hint))
    work = partial(
        refresh_components, manifest, store=store, workspace=workspace, progress=progress
    )
    before = load_series(manifest, edited, store, progress).patches
    report = work([edited], options=options)
    if report.exit_code is not ExitCode.OK or options.dry_run:
        return report
    after = load_series(manifest, edited, store, progress).patches
    base, edits = _edits(before, after, edited, store)
    rows, known = list(report.components), {patch.name for patch in before}
    for other in others:
        families = families_of([(manifest, edited), (manifest, other)], store)
        there = {family[0].name: family[1].name for family in families if len(family) > 1}
        # one that changed is there, too, and one that is new is not
        wanted = [
            replace(edit, into=there.get(name, ""))
            for name, edit in edits.items()
            if (name in there) == (name in known)
        ]
        if wanted:
            incoming = IncomingPatches(tuple(wanted), base)
            wish = replace(options, request=Request(), stop=True, imported=incoming)
            rows += work([other], options=wish).components
    return replace(report, components=tuple(rows))


def _edits(
    before: Sequence[LoadedPatch], after: Sequence[LoadedPatch], edited: Component, store: Store
) -> tuple[CommitId, dict[str, ImportedPatch]]:
    """The stack as it was, and what was changed in each patch, one on the other, by its name.

    What is new is the patch itself. On disk: the stacks' objects, in the cache.
    CannotEditSeriesError where patches changed together, so that neither applies without the other.
    """
    repository, base = store.repository(edited), store.cached_base(edited)
    assert base is not None
    series = {patch.name: patch for patch in before}
    edits: dict[str, ImportedPatch] = {}
    changed: list[LoadedPatch] = []
    with reading(repository) as reader:
        first = stack = build_stack(reader, base, [patch.series_patch for patch in before])
        write_objects(repository, stack.objects)
        for patch in after if first.clean else ():  # else they were for another pin
            old, series[patch.name] = series.get(patch.name), patch
            if old is None or what_it_does(old.file) != what_it_does(patch.file):
                changed.append(patch)
            now = build_stack(reader, base, [listed.series_patch for listed in series.values()])
            if not now.clean or len(changed) != 1:
                continue  # in another the lines around it changed, too
            write_objects(repository, now.objects)
            (only,) = changed
            edit = ImportedPatch(only.name, only.data, only.where, only.strip)
            if any(earlier.name == only.name for earlier in before):
                layout = layout_of(only.file, only.strip, only.subdirectory)
                (diff,) = canonical_diffs(repository, [(stack.tree, now.tree)], layout)
                head = f"Subject: [PATCH] What changed in {only.name}\n\n---\n"
                edit = replace(edit, name=f"edit-{only.name}", data=head.encode() + diff)
            edits[only.name], stack, changed = edit, now, []
    if changed:
        names = " and ".join(patch.name for patch in changed)
        hint = "patchkit undo  brings the edits back; carry those of one patch at a time"
        raise CannotEditSeriesError(Problem(f"{names} changed together", edited.name, hint))
    return first.commit, edits
