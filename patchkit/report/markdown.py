"""A check or a drift as Markdown: for a comment on a pull request, or a job's summary.

Texts of others (subjects, names, paths) are escaped: they can form no link, table, heading, mention
or HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from patchkit.drift.drift_report import Landed, PatchDrift
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.objects import lines_of
from patchkit.model.outcome import Status
from patchkit.model.text import counted, escaped
from patchkit.ops.check_report import CheckReport
from patchkit.ops.drift import ComponentDrift, DriftReport
from patchkit.report.findings import Level, Notice, silent_notices

_SIGNS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTE: "ℹ️"}  # noqa: RUF001
#: So many silent findings are read in a comment; the rest is counted.
_LISTED = 20


def check_markdown(report: CheckReport, notices: Iterable[Notice]) -> str:
    """A table of components, then what was found."""
    lines = [f"## {_sign(report.exit_code)} patchkit check", ""]
    lines += ["| manifest | component | patches | verdict |", "|---|---|---|---|"]
    for each in report.components:
        fine = each.exit_code is ExitCode.OK
        failed = [p.name for p in each.patches if p.status is Status.CONFLICTED]
        words = f"{', '.join(failed)} does not apply" if failed else "ok" if fine else "see below"
        cells = (each.manifest, each.name, str(len(each.patches)))
        lines.append(
            f"| {' | '.join(map(escaped, cells))} | {_sign(each.exit_code)} {escaped(words)} |"
        )
    return "\n".join([*lines, *notice_lines(notices)])


def drift_markdown(report: DriftReport) -> str:
    """For each component a table of patches, with the commits that broke them."""
    lines = [f"## {_sign(report.exit_code)} patchkit drift"]
    for component in report.components:
        lines += ["", *_component_lines(component)]
    for broken in report.broken:
        lines += ["", f"❌ {escaped(broken.manifest)}: {escaped(str(broken.problems[0]))}"]
    return "\n".join(lines)


def _component_lines(component: ComponentDrift) -> Iterator[str]:
    yield f"### {escaped(component.manifest)}: {escaped(component.name)}"
    yield ""
    if component.tip is None:
        problems = "; ".join(str(each) for each in component.problems)
        yield escaped(problems or component.skipped)
        return
    yield (
        f"**{escaped(component.ref)}** to {_commit(component.tip)}:"
        f" {counted(component.commits, 'commit')} since {escaped(short_id(component.fork))}"
    )
    yield ""
    yield "| patch | state | since | last good | risk |"
    yield "|---|---|---|---|---|"
    for patch in component.patches:
        yield _row(patch)
    for patch in component.patches:
        yield from _absorbed(patch)
    yield from _silent_lines(component)


def _row(patch: PatchDrift) -> str:
    reverted = sum(each.mended is not None for each in patch.breaks)
    note = f" ({counted(reverted, 'earlier break')} mended)" if reverted else ""
    risk = counted(patch.risk.commits, "commit") if patch.risk is not None else ""
    cells = (
        escaped(patch.name),
        f"{_patch_sign(patch.status)} {_state_words(patch)}{note}",
        _told(patch.event),
        _commit(patch.last_good) if patch.last_good else "",
        risk,
    )
    return f"| {' | '.join(cells)} |"


def _state_words(patch: PatchDrift) -> str:
    if patch.status is Status.WAITING:
        return f"waits for {escaped(', '.join(patch.waits_for))}"
    return str(patch.status.value)


def _absorbed(patch: PatchDrift) -> Iterator[str]:
    if patch.absorbed:
        yield ""
        yield f"{len(patch.absorbed)} of {patch.hunks} hunks of {escaped(patch.name)} are upstream:"
        yield ""
        for each in patch.absorbed:
            yield f"- patch line {each.line} ({escaped(each.path)}): {_told(each.by)}"


def _silent_lines(component: ComponentDrift) -> Iterator[str]:
    """What drifted without a conflict, in short."""
    found = [
        f"{patch.name}: {each.what}" for patch in component.patches for each in patch.suspicions
    ]
    notices = [each for each in silent_notices(component, "") if each.level is not Level.NOTE]
    notices.sort(key=lambda each: not each.rule.startswith("override-"))  # fewer, and graver
    found += ["; ".join(lines_of(each.message)[:2]) for each in notices]
    if found:
        yield ""
    yield from (f"- ⚠️ {escaped(each)}" for each in found[:_LISTED])
    if len(found) > _LISTED:
        yield f"- and {len(found) - _LISTED} more: `--json` has all"


def _told(commit: Landed | None) -> str:
    if commit is None:
        return ""
    via = f", by way of {_commit(commit.via)}" if commit.via is not None else ""
    return f"{_commit(commit)} {escaped(commit.subject)}{via}"


def _commit(commit: Landed) -> str:
    text = f"{short_id(commit.commit)} of {commit.day}"
    return f"[{text}]({commit.link})" if commit.link else text


def notice_lines(notices: Iterable[Notice]) -> Iterator[str]:
    """A list of what was found, behind an empty line; nothing for none."""
    listed = list(notices)
    if listed:
        yield ""
    for each in listed:
        place = f" ({escaped(each.path)}:{each.line})" if each.path else ""
        first, *more = lines_of(each.message) or [each.title]
        yield f"- {_SIGNS[each.level]} {escaped(first)}{place}"
        yield from (f"  <br>{escaped(line)}" for line in more[:10])


def _sign(code: ExitCode) -> str:
    return "✅" if code is ExitCode.OK else "❌"


def _patch_sign(status: Status) -> str:
    signs = {
        Status.CONFLICTED: "❌",
        Status.MERGED: "⚠️",
        Status.REGENERATED: "ℹ️",  # noqa: RUF001
        Status.ABSORBED: "⚠️",
        Status.WAITING: "·",
        Status.SKIPPED: "·",
    }
    return signs.get(status, "✅")
