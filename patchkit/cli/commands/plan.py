"""`patchkit plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    CacheOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.plan import PlanReport

ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REF",
        help="Look along this branch, tag, tag pattern or commit instead of the tracked branch.",
    ),
]


@command(
    examples=[
        ("patchkit plan megatron-lm", "how far along the tracked branch, at what cost?"),
        ("patchkit plan megatron-lm --to core_v0.16.0", "the same up to a release"),
        ("patchkit plan -m qwen3-vl-npu", "the newest combination of all components"),
    ],
    exits={
        ExitCode.OK: "the components were looked at",
        ExitCode.BAD_INPUT: "a manifest, series or patch cannot be read; no branch is tracked",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.plan:PlanReport",
)
def plan(
    *,
    components: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMPONENT", help="A component. Default: every one."),
    ] = None,
    to: ToOption = None,
    manifest: ManifestOption = None,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Say how far a stack can go upstream, and at what cost.

    Looks at every commit between the pin and the newest one: up to where do the patches apply
    untouched, where are they merged, and how many files are in conflict from where on? For several
    components also the newest commits that fit each other, by the versions that their metadata
    asks for. Nothing is changed; `patchkit bump` goes there.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.errors import UsageError
    from patchkit.ops.plan import plan_components
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    picked = pick_components(chosen, components)
    if to is not None and len(picked) > 1:
        raise UsageError(
            "--to goes with one component", hint="name it: patchkit plan NAME --to REF"
        )
    store = Store(cache_folder(cache), offline=offline)
    with showing_progress(terminal) as progress:
        report = plan_components(chosen, picked, store, progress, to=to)
    return terminal.report("plan", report, report.exit_code, _render)


def _render(terminal: Terminal, report: PlanReport) -> None:
    from patchkit.cli.plan_output import print_plan

    print_plan(terminal, report)
