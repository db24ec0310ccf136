"""`patchkit fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from patchkit.cli.command import JOBS, JobsOption, OptionSpec, command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.ops.fetch import FetchedComponent, FetchReport


@command(
    "manifest components store json quiet",
    examples=[
        ("patchkit fetch -m qwen3-vl-npu", "everything the manifest pins"),
        ("patchkit fetch -m qwen3-vl-npu --offline", "is all of it cached?"),
        ("patchkit fetch -m qwen3-vl-npu --verify", "read the cache to the last byte"),
    ],
    exits={
        ExitCode.OK: "everything is in the cache",
        ExitCode.BAD_INPUT: "a pinned file is not there or has another hash",
        ExitCode.ENVIRONMENT: "something could not be fetched; the other components were",
    },
    result="patchkit.ops.fetch:FetchReport",
)
def fetch(
    session: Session,
    *,
    verify: Annotated[
        bool, OptionSpec("--verify", help="Read what is cached, and fetch again what is damaged.")
    ] = False,
    jobs: JobsOption = JOBS,
) -> ExitCode:
    """Bring what a manifest pins into the cache.

    Afterwards everything works offline.

    Git upstreams are fetched at exactly the pinned commit, source distributions and archives are
    verified by their SHA-256 and unpacked without running anything of theirs. What is cached is
    never asked for again. If one component cannot be had, the others are fetched all the same.
    """
    from patchkit.ops.fetch import fetch_components

    components = session.components
    with session.progress() as progress:
        report = fetch_components(
            session.manifest, components, session.store, progress, verify=verify, jobs=jobs
        )
    return session.report("fetch", report, _render)


def _render(terminal: Terminal, report: FetchReport) -> None:
    from patchkit.cli.status_words import word

    terminal.table([(word(each.status), each.name, _detail(each)) for each in report.components])
    for each in report.components:
        for problem in each.problems:
            terminal.problem(problem)
        for path in each.absent:
            terminal.warn(f"{each.name}: no server has the contents of {path}")


def _detail(component: FetchedComponent) -> str:
    other = component.commit is not None and component.commit != component.pin
    base = f", base {short_id(component.commit)}" if component.commit and other else ""
    referred = counted(component.files, "patch by reference", "patches by reference")
    files = f", {referred}" if component.files else ""
    return short_id(component.pin) + base + files
