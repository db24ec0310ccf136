"""The verbs on a series, and `new`: each a refresh with a wish of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchkit.errors import ExitCode, Problem
from patchkit.manifest.values import Component, Manifest
from patchkit.model.progress import Progress
from patchkit.ops.refresh import refresh_components
from patchkit.ops.refresh_input import RefreshOptions
from patchkit.ops.refresh_report import RefreshedComponent, RefreshReport, RefreshResult
from patchkit.stack.series import load_series
from patchkit.upstream.store import Store

if TYPE_CHECKING:
    from patchkit.refresh.series_edits import SeriesEdit

# `new`: the edits of a checkout become a patch of their own.


def new_patch(
    manifest: Manifest,
    component: Component,
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> RefreshReport:
    """Refresh with all edits sent to the new patch that `options.request` names.

    Nothing to record is a finding.
    """
    report = refresh_components(
        manifest,
        [component],
        store=store,
        workspace=workspace,
        options=options,
        progress=progress,
    )
    return replace(report, components=tuple(_judged(each) for each in report.components))


# Verbs on the series, without a rebase: `edit`, `rename`, `drop`, `move`, `fold`, `split`.


def edit_series(
    manifest: Manifest,
    component: Component,
    edit: SeriesEdit,
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> RefreshReport:
    """Change the series of a component: patch files, series, lock, checkout, all or nothing.

    What is wrong with the wish itself is in the report, too. The last of these, or of the bumps,
    can be undone.
    """
    return refresh_components(
        manifest,
        [component],
        store=store,
        workspace=workspace,
        options=replace(options, series_edit=edit),
        progress=progress,
    )


def patch_message(
    manifest: Manifest, component: Component, given: str, store: Store, progress: Progress
) -> tuple[str, str]:
    """(name, message) of the patch that `given` means; UsageError for none or several."""
    from patchkit.refresh.series_edits import find_patch  # noqa: PLC0415

    patch = find_patch(load_series(manifest, component, store, progress).patches, given)
    return patch.name, patch.file.message


def _judged(component: RefreshedComponent) -> RefreshedComponent:
    if component.problems:
        return component
    empty = component.result in (RefreshResult.UNCHANGED, RefreshResult.ABSENT)
    if not empty and not (component.result is RefreshResult.REFRESHED and not component.edits):
        return component
    hint = f"edit files in {component.checkout}, git add new ones, and run this again"
    if component.result is RefreshResult.ABSENT:
        hint = "patchkit apply  makes the checkout"
    problem = Problem(
        "there are no edits to record",
        component.name,
        hint,
    )
    return replace(component, exit_code=ExitCode.FINDING, problems=(problem,))
