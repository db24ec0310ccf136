"""`patchkit fetch` and `patchkit apply`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import JOBS, DryRunOption, ForceOption, JobsOption, command
from patchkit.cli.project import in_ci, near
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import BadInputError, ExitCode
from patchkit.model.names import short_id
from patchkit.model.text import counted, listed

if TYPE_CHECKING:
    from patchkit.model.outcome import PatchResult
    from patchkit.ops.apply import AppliedComponent, ApplyReport
    from patchkit.ops.fetch import FetchedComponent, FetchReport


AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Accept stacks that differ from the lock, and record them; forget components that "
        "the manifest no longer has.",
    ),
]

LockedOption = Annotated[
    bool,
    typer.Option(
        "--locked",
        help="Refuse a stack that differs from the lock in any way. The default where CI is set.",
    ),
]


@command(
    "manifest components workspace store json quiet",
    examples={
        "patchkit apply -m qwen3-vl-npu": "every component of the manifest",
        "patchkit apply -m qwen3-vl-npu -c megatron-lm": "only this one",
        "patchkit apply -m qwen3-vl-npu --dry-run": "say what would be done",
        "patchkit apply -m qwen3-vl-npu --force": "save local work under a ref, then apply",
    },
    ok="every checkout is at its stack",
    finding="a patch does not apply, a stack is not the one in the lock, or work in "
    "a checkout is in the way",
    bad_input="the manifest, a series, a patch or the lock cannot be read",
    environment="a fetch failed, a checkout is locked, the disk is full",
    result="patchkit.ops.apply:ApplyReport",
)
def apply(
    session: Session,
    *,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    locked: LockedOption = False,
    accept: AcceptOption = False,
    jobs: JobsOption = JOBS,
) -> ExitCode:
    """Build each component's stack and move its checkout there.

    One commit per patch, on a branch `patchkit`. Only files that differ are written; applied again,
    nothing is touched. A component is all or nothing: if one patch does not apply, its checkout
    stays as it was. Your changes in a checkout are never lost: patchkit refuses to overwrite them,
    or with --force saves them under a ref and says how to restore them.

    The first apply writes the lock beside the manifest; every later one compares with it. Edits of
    patch files and of the series are accepted and reported; a changed pin, or a changed patch of
    another repository, is refused.
    """
    from patchkit.ops.apply import ApplyOptions, apply_components

    locked = locked or (in_ci() and not accept)
    options = ApplyOptions(int(time.time()), force, dry_run, accept, jobs, locked)
    with session.progress() as progress:
        report = apply_components(
            session.manifest,
            session.components,
            store=session.store,
            workspace=session.workspace,
            options=options,
            progress=progress,
        )
    return session.report("apply", report, _render)


def _render(terminal: Terminal, report: ApplyReport) -> None:
    terminal.table([_row(component, report.manifest) for component in report.components])
    terminal.table([row for each in report.components for row in _patch_rows(each)], indent=2)
    for each in report.components:
        _print_notes(terminal, each)
        _print_failures(terminal, each)
        terminal.problems(each.problems)
    for warning in report.warnings:
        terminal.warn(warning)
    _print_next(terminal, report)


def _row(applied: AppliedComponent, manifest: str) -> tuple[Line, ...]:
    count = len(applied.patches)
    patches = counted(count, "patch", "patches") if count else "no patches"
    sayings = {
        "created": f"{patches}, {_files(applied)}in {near(applied.checkout)}",
        "moved": f"{patches}, {_files(applied)}changed{_from_base(applied, manifest)}",
        "unchanged": f"{patches}, at the stack already",
        "refused": f"{_obstacle(applied)}; checkout unchanged",
        "conflicted": "a patch does not apply; checkout unchanged",
        "differs": "differs from the lock; checkout unchanged",
        "failed": "see below",
    }
    name = Painted(applied.name, Paint.STRONG)
    return (word(applied.result), name, sayings[applied.result.value])


def _obstacle(applied: AppliedComponent) -> str:
    before = applied.before
    if before is None or before.state.value != "other branch":
        return "local changes are in the way"
    return "HEAD is not on its branch" if before.ours else "something else is in the way"


def _files(applied: AppliedComponent) -> str:
    """How many files were written; nothing where a dry run cannot tell."""
    return "" if applied.changed is None else f"{counted(applied.changed, 'file')} "


def _from_base(applied: AppliedComponent, manifest: str) -> str:
    """Where the checkout was, if on another base or at another manifest's stack."""
    before = applied.before
    if before is None:
        return ""
    other = f" of manifest {before.manifest}" * (before.manifest not in (None, manifest))
    if before.base not in (None, applied.base):
        return f", was on base {short_id(before.base)}{other}"
    return f", was at the stack{other}" if other else ""


def _patch_rows(applied: AppliedComponent) -> Iterator[tuple[Line, ...]]:
    """The patches that are not simply as they were recorded."""
    for each in applied.patches:
        remarks = "; ".join(_remarks(each))
        if each.status.value not in ("unchanged", "waiting") or remarks:
            name = f"{applied.name}: {each.name}"
            yield (word(each.status), name, *([remarks] if remarks else []))


def _remarks(outcome: PatchResult) -> list[str]:
    offsets = [offset for file in outcome.files for offset in file.offsets if offset]
    found = []
    if offsets:
        low, high = min(offsets), max(offsets)
        span = f"{low:+d}" if low == high else f"{low:+d} to {high:+d}"
        found.append(f"{counted(len(offsets), 'hunk')} at offset {span}")
    if outcome.made_for_another_base:
        others = [file.path for file in outcome.files if file.preimage.value == "differs"]
        found.append(f"made for another base: {listed(others, 1)}")
    found += [f"{f.path}: {reason}" for f in outcome.files if f.review for reason in f.reasons]
    return found


def _print_notes(terminal: Terminal, applied: AppliedComponent) -> None:
    name = applied.name
    if applied.finished:
        terminal.product(f"{name}: an apply that was killed earlier was finished first")
    if applied.taken_up and not applied.problems:
        terminal.product(f"{name}: edits taken up: {', '.join(applied.taken_up)}")
    if applied.saved_ref is not None and terminal.quiet:
        terminal.kept(name, "your work is", applied.saved_ref)
    elif applied.saved_ref is not None:
        terminal.product(f"{name}: your work is saved as {applied.saved_ref}; to get it back:")
        terminal.product(f"  {applied.restore or 'nothing: the files have all of it'}")
    terminal.also_saved(name, applied.also_saved)
    if applied.moved_aside is not None:
        terminal.product(f"{name}: what was there is now {near(applied.moved_aside)}")
    if applied.left_out:
        paths = ", ".join(applied.left_out)
        terminal.product(f"{name}: left out, no server has their contents: {paths}")


def _print_failures(terminal: Terminal, applied: AppliedComponent) -> None:
    """Which hunks fail; why, and what to do, is for `check` to say."""
    if not applied.failures:
        return
    from patchkit.explain.explanation import file_words

    for failure in applied.failures:
        what = f"✗ {failure.explanation.name} does not apply"
        base = short_id(applied.base or "")
        terminal.product([Painted(what, Paint.BAD), f" to {applied.name} {base}"])
        for file in failure.explanation.files:
            terminal.product(["  ", Painted(file.path, Paint.STRONG), f": {file_words(file)}"])


def _print_next(terminal: Terminal, report: ApplyReport) -> None:
    failed = [each.name for each in report.components if each.failures]
    if failed:
        names = "".join(f" -c {name}" for name in failed)
        terminal.hint(f"why, and what to do: patchkit check -m {report.manifest}{names}")
    if report.lock_written:
        terminal.say(f"wrote {near(report.lock)}")
    if report.dry_run:
        terminal.say("a dry run: nothing was written")
        if report.exit_code is ExitCode.OK:
            names = "".join(f" {each.name}" for each in report.components)
            terminal.hint(f"do it with: patchkit apply -m {report.manifest}{names}")
    elif any(each.result.value == "created" for each in report.components):
        terminal.hint(f"edit in the checkouts, then: patchkit refresh -m {report.manifest}")


# `patchkit fetch`.


@command(
    "manifest components store json quiet",
    examples={
        "patchkit fetch -m qwen3-vl-npu": "everything the manifest pins",
        "patchkit fetch -m qwen3-vl-npu --offline": "is all of it cached?",
        "patchkit fetch -m qwen3-vl-npu --verify": "read the cache to the last byte",
    },
    ok="everything is in the cache",
    bad_input="a pinned file is not there or has another hash",
    environment="something could not be fetched; the other components were",
    result="patchkit.ops.fetch:FetchReport",
)
def fetch(
    session: Session,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read what is cached, and fetch again what is damaged.")
    ] = False,
    jobs: JobsOption = JOBS,
) -> ExitCode:
    """Fetch what a manifest pins into the cache.

    Afterwards every command works offline.

    Git upstreams are fetched at exactly the pinned commit; of a tag that stands where the pin does
    the lock gets the commit, once. Source distributions and archives are
    verified by their SHA-256 and unpacked without running anything of theirs. What is cached is not
    fetched again. If one component cannot be fetched, the others still are.
    """
    from patchkit.ops.fetch import fetch_components, learn_names

    try:
        components = session.components
    except BadInputError:
        with session.progress() as progress:
            paths = session.possible_paths
            learned = [learn_names(path, session.store, progress) for path in paths]
        if not any(learned):
            raise
        components = session.components
    with session.progress() as progress:
        report = fetch_components(
            session.manifest,
            components,
            session.store,
            progress,
            verify=verify,
            jobs=jobs,
        )
    return session.report("fetch", report, _render_fetched)


def _render_fetched(terminal: Terminal, report: FetchReport) -> None:
    terminal.table(
        [
            (word(component.status), component.name, _detail(component))
            for component in report.components
        ]
    )
    for each in report.components:
        terminal.problems(each.problems)
        for path in each.absent:
            terminal.warn(f"{each.name}: no server has the contents of {path}")


def _detail(component: FetchedComponent) -> str:
    other = component.commit is not None and component.commit != component.pin
    base = f", base {short_id(component.commit)}" if component.commit and other else ""
    referred = counted(component.files, "patch by reference", "patches by reference")
    files = f", {referred}" if component.files else ""
    return short_id(component.pin) + base + files
