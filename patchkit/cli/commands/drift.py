"""`patchkit drift`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.explanations import explanation_lines
from patchkit.cli.format_options import Format, FormatOption, OutputOption, Writers, deliver, wanted
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Piece, Terminal, cut, room, width
from patchkit.drift.drift_report import forecast_words
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.objects import lines_of
from patchkit.model.outcome import Status
from patchkit.model.states import state_of
from patchkit.model.text import counted, listed

if TYPE_CHECKING:
    from patchkit.cli.terminal import Answers
    from patchkit.drift.drift_report import AbsorbedHunk, Break, Interval, PatchDrift
    from patchkit.drift.record import Since, StateChange
    from patchkit.manifest.values import Component, Manifest
    from patchkit.model.finding import Landed
    from patchkit.ops.drift import ComponentDrift, DriftReport


ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REF",
        help="Look along this branch, tag, tag pattern or commit instead of the tracked branch.",
    ),
]
BisectOption = Annotated[
    bool,
    typer.Option(
        "--bisect",
        help="Try few commits only; a break that was fixed later is not seen.",
    ),
]
SinceLastOption = Annotated[
    bool,
    typer.Option("--since-last", help="Report only what changed since the last report."),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Keep what was seen in this file instead of the cache, for --since-last.",
    ),
]


@command(
    "manifests components store json quiet",
    examples=[
        ("patchkit drift -m slime-npu-official -c megatron-lm", "along the tracked branch"),
        ("patchkit drift -m slime-npu-official -c megatron-lm --to main", "along another one"),
        ("patchkit drift --since-last", "only what changed since the last report"),
        ("patchkit drift --format html -o drift.html", "a page with timelines"),
    ],
    exits={
        ExitCode.OK: "every patch fits the newest commit; with --since-last: none got worse",
        ExitCode.FINDING: "a patch does not fit the newest commit, or is upstream there",
        ExitCode.BAD_INPUT: "a manifest, series or patch cannot be read; no branch is tracked",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.drift:DriftReport",
)
def drift(
    session: Session,
    *,
    to: ToOption = None,
    bisect: BisectOption = False,
    since_last: SinceLastOption = False,
    record: RecordOption = None,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> ExitCode:
    """Say which upstream commit broke which patch, and when.

    Judges every commit of the tracked branch after the pin, without a checkout: its history is
    fetched without files, then only the files that patches touch. The verdict on each commit is the
    one that apply would give, and a break that was fixed later is reported as such. The next run
    looks at new commits only.

    What was seen is noted, in the cache unless --record names a file: --since-last reports what
    changed since the last report, and fails only for what got worse.
    """
    from patchkit.cli.session import moment
    from patchkit.ops.drift import RecordPlace, look_for_drift, note_report

    asked = wanted(form, output, json=session.terminal.json)
    paths = session.manifest_paths
    chosen, broken = session.open_manifests()
    shown = drifts_shown(session, chosen, shown=asked.form is Format.TEXT and not since_last)
    with shown as known, session.progress() as progress:
        report = look_for_drift(
            chosen,
            session.store,
            progress,
            to=to,
            bisect=bisect,
            every_commit=asked.form is Format.HTML,
            broken=broken,
            known=known,
        )
    place = RecordPlace(record, session.store.cache / "reports")
    report = note_report(report, place, moment(), since_last=since_last)
    show = partial(print_drift, shown=known.shown)
    return deliver(session.terminal, report, asked, lambda: _writers(paths), show)


def drifts_shown(
    session: Session, chosen: Sequence[tuple[Manifest, Sequence[Component]]], *, shown: bool
) -> AbstractContextManager[Answers[ComponentDrift]]:
    """Prints what is found of each component as soon as it is known."""
    names = [f"{manifest.name}: {each.name}" for manifest, some in chosen for each in some]
    return session.answers(names, _print_component, shown=shown)


def _writers(paths: Sequence[Path]) -> Writers[DriftReport]:
    from patchkit.cli.report_forms import drift_writers

    return drift_writers(paths)


# As many findings of one kind are worth reading in a terminal; --json has all.
_SHOWN = 6


def silent_lines(component: ComponentDrift) -> Iterator[Line]:
    """The findings that are no conflict, as every other report tells them."""
    if not (component.sites or component.targets or component.contracts or component.unseen):
        return
    from patchkit.report.findings import silent_notices

    notices = list(silent_notices(component, ""))
    for notice in notices[:_SHOWN]:
        title, *lines = lines_of(notice.message)
        yield ""
        yield ["  ", Painted(title, Paint.STRONG)]
        yield from (f"    {line}" for line in lines)
    if len(notices) > _SHOWN:
        yield ""
        yield f"  and {counted(len(notices) - _SHOWN, 'more finding')}: --json has all"


def print_changes(terminal: Terminal, component: ComponentDrift, since: Since) -> None:
    """A line for each change, below a line that names the component."""
    if not since.at:
        terminal.product("  the first report on it: all that does not fit is new")
    elif since.pin != component.pin:
        terminal.product(f"  the pin was {short_id(since.pin)} and is {short_id(component.pin)}")
    rows = [_since_row(change, first=not since.at) for change in since.changes]
    terminal.table(rows, indent=2)
    _print_notes(terminal, "new", since.new)
    _print_notes(terminal, "settled", since.settled)


def _print_notes(terminal: Terminal, kind: str, notes: Sequence[str]) -> None:
    for note in notes[:_SHOWN]:
        terminal.product(["  ", word(kind), f"  {note}"])
    if len(notes) > _SHOWN:
        terminal.product(["  ", word(kind), f"  {len(notes) - _SHOWN} more"])


def _since_row(change: StateChange, *, first: bool) -> tuple[Line, Line, Line]:
    return word(change.status or "dropped"), change.patch, "" if first else _before(change)


def _before(change: StateChange) -> str:
    if change.status is None:
        return "is no longer in the series"
    if change.again:
        return "by another commit than before"
    return f"was {change.was.value}" if change.was is not None else "is new in the series"


def print_drift(
    terminal: Terminal,
    report: DriftReport,
    brief: bool = False,
    *,
    allowed: bool = False,
    shown: bool = False,
) -> None:
    """The whole report, in `brief` its problems and a summary; `allowed`: drift fails nothing;
    `shown`: the components were printed when they were known.
    """
    for component in () if brief or shown else report.components:
        _print_component(terminal, component)
    problems = [problem for each in report.broken for problem in each.problems]
    problems += [problem for each in report.components for problem in each.problems]
    for problem in dict.fromkeys(problems):
        terminal.problem(problem)
    terminal.product(_summary(report, allowed=allowed))


def _print_component(terminal: Terminal, component: ComponentDrift) -> None:
    for line in _heading(component):
        terminal.product(line)
    if component.tip is not None:
        if not component.on_branch:
            since = (
                f"  since {short_id(component.fork)}, where they part: the pin is not on the branch"
            )
            if component.fork == component.tip.commit:
                since = "  an ancestor of the pin"
            terminal.product(Painted(since, Paint.FAINT))
        if component.since is None:
            terminal.table([_row(patch) for patch in component.patches], indent=2)
        else:
            print_changes(terminal, component, component.since)
        for patch in component.patches:
            for line in _patch_lines(patch):
                terminal.product(line)
        for line in silent_lines(component):
            terminal.product(line)
    terminal.product()


def _heading(component: ComponentDrift) -> Iterator[Line]:
    name = Painted(f"{component.manifest}: {component.name}", Paint.STRONG)
    if component.problems:
        yield [word("failed"), "  ", name, "  could not be examined, see below"]
        return
    if component.tip is None:
        yield [word("skipped"), "  ", name, f"  {component.skipped}"]
        return
    last = short_id(component.since.tip) if component.since is not None else ""
    begin = f"from {last} " if last else ""
    to = f"{begin}to {short_id(component.tip.commit)} of {_day(component.tip)}"
    what = f"  {component.ref} {to}, {counted(component.commits, 'commit')}"
    if width([name, what]) <= room():
        yield [name, what]
    else:
        yield name
        yield what


def _row(patch: PatchDrift) -> tuple[Line, Line, Line]:
    return word(patch.status), patch.name, _verdict(patch)


def _verdict(patch: PatchDrift) -> Line:
    since = f" since {_day(patch.event)}" if patch.event is not None else ""
    if patch.is_broken:
        return _broken_words(patch)
    means = state_of(patch.status).means
    words = {
        Status.UNCHANGED: "fits",
        Status.REGENERATED: f"fits, {means}{since}",
        Status.WAITING: f"waits for {', '.join(patch.waits_for)}{since}",
        Status.ABSORBED: f"{means}{since}",
    }
    return words.get(patch.status, means)


def _broken_words(patch: PatchDrift) -> str:
    """Since when a patch is in its state; and when it stopped applying, if that was earlier."""
    after = "" if patch.days is None else f" after {counted(patch.days, 'day')}"
    since = f"since {_day(patch.since)}" if patch.since else "since the start of the branch"
    if patch.stopped_earlier:
        after = f", stopped applying {_day(patch.broken_by)}{after}"
    bump = "" if patch.status is Status.CONFLICTED else f", {state_of(patch.status).means}"
    return f"{since}{after}{bump}"


def _patch_lines(patch: PatchDrift) -> Iterator[Line]:
    body: list[Line] = [
        *_break_lines(patch),
        *_absorbed_lines(patch),
        *_forecast_lines(patch),
        *_suspicion_lines(patch),
        *_risk_lines(patch),
    ]
    if patch.explanation is not None:
        where = f"at {short_id(patch.since.commit)}" if patch.since else "at the tip"
        body.append(["  ", Painted("clash", Paint.NOTICE), f"     {where}:"])
        body += explanation_lines(patch.explanation, shift=2)
    if not body:
        return
    yield ""
    yield ["  ", Painted(patch.name, Paint.STRONG)]
    for line in body:
        yield ["  ", *([line] if isinstance(line, str | Painted) else line)]


def _break_lines(patch: PatchDrift) -> Iterator[Line]:
    for each in patch.breaks[-_SHOWN:]:
        yield from _one_break(each)
    if patch.stopped_earlier and patch.since is not None:
        last = patch.intervals[-1]
        yield from _commit_lines(patch.status.value, Paint.BAD, patch.since, _files(last))
    if patch.last_good is not None:
        yield from _commit_lines("last good", Paint.GOOD, patch.last_good)


def _one_break(each: Break) -> Iterator[Line]:
    if each.by is None:
        yield ["  ", Painted("broken", Paint.BAD), "    since the start of the branch"]
    else:
        yield from _commit_lines("broken", Paint.BAD, each.by, _files(each))
    if each.mended is not None:
        yield from _commit_lines("reverted" if each.reverted else "mended", Paint.GOOD, each.mended)


def _commit_lines(label: str, paint: Paint, commit: Landed, files: str = "") -> Iterator[Line]:
    gap = " " * max(1, 10 - len(label))
    yield ["  ", Painted(label, paint), gap, *_identity(commit)]
    yield [" " * 12, Painted(cut(commit.subject, room() - 16), Paint.FAINT)]
    if commit.via is not None:
        via = f"by way of {short_id(commit.via.commit)} {commit.via.subject}"
        yield [" " * 12, Painted(cut(via, room() - 16), Paint.FAINT)]
    if files:
        yield " " * 12 + cut(f"in {files}", room() - 16)


def _identity(commit: Landed) -> list[Piece]:
    request = f" #{commit.request}" if commit.request is not None else ""
    return [
        Painted(short_id(commit.commit), Paint.PLACE),
        f" {_day(commit)}{request} {cut(commit.author, 24)}",
    ]


def _files(each: Break | Interval) -> str:
    paths = list(dict.fromkeys(fault.path for fault in each.faults))
    return listed([path.rpartition("/")[2] for path in paths], 2)


def _absorbed_lines(patch: PatchDrift) -> Iterator[Line]:
    if patch.absorbed:
        share = f"{len(patch.absorbed)} of {counted(patch.hunks, 'hunk')} upstream already"
        yield ["  ", Painted("absorbed", Paint.NOTICE), f"  {share}"]
    by_commit: dict[Landed | None, list[AbsorbedHunk]] = {}
    for each in patch.absorbed:
        by_commit.setdefault(each.by, []).append(each)
    for by, hunks in list(by_commit.items())[:_SHOWN]:
        yield [" " * 12, *(_identity(by) if by is not None else ["before the branch begins here"])]
        for each in hunks[:_SHOWN]:
            yield [" " * 14, f"patch line {each.line}: {_tail(each.path, room() - 34)}"]
        if len(hunks) > _SHOWN:
            yield " " * 14 + f"and {len(hunks) - _SHOWN} more"
    if len(by_commit) > _SHOWN:
        yield " " * 12 + f"and {len(by_commit) - _SHOWN} more commits"


def _forecast_lines(patch: PatchDrift) -> Iterator[Line]:
    forecast, fits = patch.forecast, (Status.UNCHANGED, Status.SHIFTED, Status.EMPTY)
    if forecast is not None and (forecast.status not in fits or forecast.review):
        words = f"      to the tip {forecast_words(forecast)}"
        yield ["  ", Painted("bump", Paint.NOTICE), words]


def _suspicion_lines(patch: PatchDrift) -> Iterator[Line]:
    if patch.suspicions:
        hunks = len({(s.path, s.hunk) for s in patch.suspicions})
        apply = "applies" if hunks == 1 else "apply"
        words = f"   wrong, though {counted(hunks, 'hunk')} {apply}"
        yield ["  ", Painted("perhaps", Paint.NOTICE), words]
    for each in patch.suspicions[:_SHOWN]:
        yield " " * 12 + f"patch line {each.line}: {_tail(each.path, room() - 32)}"
        yield " " * 14 + cut(each.what, room() - 18)
        if each.by is not None:
            yield [" " * 14, *_identity(each.by)]
    if len(patch.suspicions) > _SHOWN:
        yield " " * 12 + f"and {len(patch.suspicions) - _SHOWN} more"


def _risk_lines(patch: PatchDrift) -> Iterator[Line]:
    if patch.risk is None or not patch.risk.commits:
        return
    often = f"{counted(patch.risk.commits, 'commit')}, {patch.risk.per_month:g} a month"
    yield ["  ", Painted("risk", Paint.NOTICE), f"      its files changed: {often}"]
    for file in patch.risk.files[:3]:
        yield f"            {file.commits:4}  {_tail(file.path, room() - 22)}"


def _summary(report: DriftReport, *, allowed: bool) -> Line:
    patches = [patch for each in report.components for patch in each.patches]
    broken = sum(patch.is_broken for patch in patches)
    absorbed = sum(patch.status is Status.ABSORBED for patch in patches)
    waiting = sum(patch.status is Status.WAITING for patch in patches)
    failed = sum(bool(each.problems) for each in report.components)
    parts = [
        counted(len(report.components), "component"),
        counted(len(patches), "patch", "patches"),
        *([f"{broken} broken at the tip"] if broken else []),
        *([f"{waiting} waiting for {'it' if broken == 1 else 'these'}"] if waiting else []),
        *([f"{absorbed} absorbed"] if absorbed else []),
        *([f"{failed} not looked at"] if failed else []),
    ]
    good = report.exit_code is ExitCode.OK
    if report.unchanged:
        them = "it" if report.unchanged == 1 else "them"
        still = f"{counted(report.unchanged, 'component')} as the last report saw {them}"
        parts = [*(parts if report.components else []), still]
    if allowed and report.exit_code is ExitCode.FINDING:
        return [word("warning", "drift allowed"), ": ", ", ".join(parts)]
    return [word("ok" if good else "failed"), ": ", ", ".join(parts)]


def _day(commit: Landed | None) -> str:
    return commit.date[:10] if commit is not None else ""


def _tail(path: str, width: int) -> str:
    return path if len(path) <= width else "…" + path[1 - width :]
