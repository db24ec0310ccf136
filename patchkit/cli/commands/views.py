"""`patchkit log` and `show`: a stack looked at; nothing changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.status_words import verdict, word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.outcome import Status
from patchkit.model.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchkit.ops.views import ComponentLog, LoggedPatch, LogReport


@command(
    "manifest components workspace store json",
    examples={
        "patchkit log -m qwen3-vl-npu": "every component's patches",
        "patchkit log -m qwen3-vl-npu -c megatron-lm --json": "for a script",
        "patchkit log --upstream -m qwen3-vl-npu": "what was sent, landed, is open",
    },
    ok="listed",
    bad_input="a series or patch cannot be read",
    environment="an upstream could not be fetched",
    result="patchkit.ops.views:LogReport",
)
def log(
    session: Session,
    *,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Say what became of each patch upstream.")
    ] = False,
) -> ExitCode:
    """List each component's patches, in order.

    With their size and author, whether they apply, whether they are applied, and which earlier ones
    they need: those that made a file, or lines, that a patch changes or has as context.

    With --upstream also what their headers say: a patch is to be sent, was sent, is never to be, or
    was taken from there (`Upstream-Status:` as Yocto has it, DEP-3's `Forwarded:`, `Origin:` and
    `Applied-Upstream:`, or a request: `PR:`, `Pull-Request:`, `Link:`). And what became of it on
    the tracked branch, since the pin or before: it landed, in part, or differently (its request
    did, and the patch is not there), was reverted, or is open.
    """
    from patchkit.ops.views import log_components

    with session.progress() as progress:
        report = log_components(
            session.manifest,
            session.components,
            workspace=session.workspace,
            store=session.store,
            progress=progress,
            upstream=upstream,
        )
    return session.report("log", report, partial(_render_log, upstream=upstream))


def _render_log(terminal: Terminal, report: LogReport, *, upstream: bool) -> None:
    for number, each in enumerate(report.components):
        if number:
            terminal.product()
        terminal.product([Painted(each.component, Paint.STRONG), f"  on {short_id(each.pin)}"])
        _render_component(terminal, each, upstream=upstream)


def _render_component(terminal: Terminal, log: ComponentLog, *, upstream: bool) -> None:
    terminal.problems(log.problems)
    for patch in log.patches:
        terminal.product(_headline(patch))
        for line in (*_details(patch), *(_upstream(patch) if upstream else ())):
            terminal.product(f"       {line}")
    for commit in log.commits:
        terminal.product(
            ["    +  ", Painted(short_id(commit.commit), Paint.NOTICE), "  not in a patch"]
        )
        terminal.product(f"       {commit.subject}")


def _headline(patch: LoggedPatch) -> Line:
    shown = verdict(patch.status)
    if patch.checkout and patch.status in (Status.UNCHANGED, Status.SHIFTED):
        shown = word(patch.checkout)
    return [f"  {patch.number:>3}  ", shown, "  ", Painted(patch.name, Paint.STRONG)]


def _details(patch: LoggedPatch) -> list[str]:
    files = counted(patch.files, "file")
    size = f"{files}, +{patch.added} -{patch.removed}"
    author = f", {patch.author}" if patch.author else ""
    needs = [f"needs {', '.join(patch.needs)}"] if patch.needs else []
    return [*([patch.subject] if patch.subject else []), size + author, *needs]


def _upstream(patch: LoggedPatch) -> Iterator[str]:
    if patch.intent:
        yield f"{patch.intent}: {patch.sent}"
    if patch.fate:
        yield f"{patch.fate} by {patch.by}" if patch.by is not None else patch.fate


@command(
    "manifest component store json",
    examples={
        "patchkit show fix-rope": "a patch, by name, number or the beginning of its name",
        "patchkit show ae2c912c04 -c sglang": "the commit of upstream that a conflict names",
    },
    ok="shown",
    bad_input="a series or patch cannot be read",
    environment="upstream's history could not be fetched",
    result="patchkit.ops.views:ShownChange",
)
def show(
    session: Session,
    what: Annotated[
        str, typer.Argument(metavar="PATCH|COMMIT", help="A patch, or a commit or tag of upstream.")
    ],
) -> ExitCode:
    """Print a patch, or a commit of upstream.

    While a bump waits, the patches that it has carried already are the commits of the checkout:
    `git log -p refs/patchkit/base..`. Of upstream's it has those of the two pins alone, for `git
    diff` and `git show COMMIT:FILE`.
    """
    from patchkit.ops.views import show_change

    with session.progress() as progress:
        shown = show_change(
            session.manifest,
            session.component_with(what),
            what,
            session.store,
            progress,
        )
    return session.report("show", shown, lambda terminal, r: terminal.diff(r.text))
