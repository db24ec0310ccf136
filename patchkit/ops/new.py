"""Record the edits of a checkout as a patch of their own."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from patchkit.errors import ExitCode, Problem
from patchkit.manifest.values import Component, Manifest
from patchkit.model.progress import Progress
from patchkit.ops.refresh import refresh_components
from patchkit.ops.refresh_options import RefreshOptions
from patchkit.ops.refresh_report import RefreshedComponent, RefreshReport, Result
from patchkit.store import Store


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


def _judged(component: RefreshedComponent) -> RefreshedComponent:
    if component.problems:
        return component
    empty = component.result in (Result.UNCHANGED, Result.ABSENT)
    if not empty and not (component.result is Result.REFRESHED and not component.edits):
        return component
    problem = Problem(
        "there are no edits to record",
        component.name,
        f"edit files in {component.checkout} (git add new ones) and run this again",
    )
    return replace(component, exit_code=ExitCode.FINDING, problems=(problem,))
