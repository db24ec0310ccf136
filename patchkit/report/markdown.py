"""A check, a drift or a bump as Markdown: for a comment, a job's summary, the text of a pull
request, an issue for each open cause.

Texts of others (subjects, names, paths) are escaped: they can form no link, table, heading, mention
or HTML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.drift_report import PatchDrift
from patchkit.errors import BadInputError, ExitCode, Problem
from patchkit.model.finding import Landed
from patchkit.model.names import short_id
from patchkit.model.objects import lines_of
from patchkit.model.outcome import Attention, FileResult, PatchResult, Status
from patchkit.model.patch import Hunk
from patchkit.model.states import Level, state_of
from patchkit.model.text import clean, counted, escaped, shown
from patchkit.ops.bump_review import BumpReview, ComponentReview, PatchReview, UpstreamCommit
from patchkit.ops.check_report import CheckReport
from patchkit.ops.ci import CiReport
from patchkit.ops.drift import ComponentDrift, DriftReport
from patchkit.ops.refresh_report import BumpReport, NamedPin
from patchkit.report.findings import (
    HELP,
    RULES,
    Notice,
    Paths,
    RootCause,
    check_notices,
    drift_notices,
    find_causes,
    silent_notices,
)

_SIGNS = {
    Level.ERROR: "❌",
    Level.WARNING: "⚠️",
    Level.NOTE: "ℹ️",  # noqa: RUF001
    Level.FINE: "✅",
    Level.FAINT: "·",
}
#: So many silent findings are read in a comment; the rest is counted.
_LISTED = 20


def check_markdown(report: CheckReport, notices: Iterable[Notice]) -> str:
    """A table of components, then what was found."""
    lines = [f"## {_sign(report.exit_code)} patchkit check", ""]
    lines += ["| manifest | component | patches | verdict |", "|---|---|---|---|"]
    for each in report.components:
        status, words = each.verdict
        cells = (each.manifest, each.name, str(len(each.patches)))
        sign = _SIGNS[state_of(status).level]
        lines.append(f"| {' | '.join(map(escaped, cells))} | {sign} {escaped(words)} |")
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
        f"{_SIGNS[state_of(patch.status).level]} {_state_words(patch)}{note}",
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
    return _SIGNS[Level.FINE if code is ExitCode.OK else Level.ERROR]


# A bump as Markdown: the body of its pull request, with a drafted commit message.
#
# Sorted by what a reviewer must look at; names,
# paths and ids are code, so that they read as they are.


#: What a reviewer is asked of the patches of each kind, as a heading.
HEADINGS = {
    Attention.CONFLICTED: "In conflict",
    Attention.WAITING: "Waiting for one in conflict",
    Attention.RESOLVED: "Conflicts resolved",
    Attention.FLAGGED: "To review: merged or dropped without certainty, or another change now",
    Attention.CONTEXT: "Same change, other context lines",
    Attention.SHIFTED: "Same change, at other lines",
    Attention.REGENERATED: "Regenerated by their recipes",
    Attention.ABSORBED: "Upstream now, taken off the series",
    Attention.LEFT_OUT: "Dropped by hand, taken off the series",
    Attention.UNCHANGED: "Unchanged",
}
SHORT = {
    Attention.CONFLICTED: "In conflict",
    Attention.WAITING: "Waiting for another",
    Attention.RESOLVED: "Resolved",
    Attention.FLAGGED: "To review",
    Attention.CONTEXT: "Context changed",
    Attention.SHIFTED: "At other lines",
    Attention.REGENERATED: "Regenerated by recipes",
    Attention.ABSORBED: "Dropped, as upstream has them",
    Attention.LEFT_OUT: "Dropped",
    Attention.UNCHANGED: "Unchanged",
}
_NAMED = (
    Attention.CONFLICTED,
    Attention.RESOLVED,
    Attention.FLAGGED,
    Attention.ABSORBED,
    Attention.LEFT_OUT,
)
#: Those that are listed file by file, with a box to tick.
DETAILED = (Attention.CONFLICTED, Attention.RESOLVED, Attention.FLAGGED)
#: Those of which nobody need read a line: folded away.
FOLDED = (Attention.SHIFTED, Attention.UNCHANGED)
#: GitHub takes 65,536 characters; diffs are left out before that.
_MOST = 55_000
_ROWS = 120


def review_markdown(review: BumpReview) -> str:
    """The whole text, without a final newline."""
    lines = list(_lines(review, diffs=True))
    if sum(len(line) + 1 for line in lines) > _MOST:
        lines = [*_lines(review, diffs=False), "", "The diffs are too long for this text."]
    return "\n".join(lines)


def _lines(review: BumpReview, *, diffs: bool) -> Iterator[str]:
    report = review.report
    if len(report.components) + len(report.untracked) > 1:
        yield f"# {escaped(report.subject)}"
        yield ""
    for row in review.components:
        yield from _component(row, report.manifest, diffs=diffs)
        yield ""
    if report.untracked:
        yield f"No `track`, passed over: {', '.join(map(code, report.untracked))}"
        yield ""
    if report.notes:
        yield from (f"- {escaped(row)}" for row in problem_rows(report.notes))
        yield ""
    yield "Commit message:"
    yield ""
    yield from (f"    {line}".rstrip() for line in commit_message(report))


def _component(review: ComponentReview, manifest: str, *, diffs: bool) -> Iterator[str]:
    row = review.report
    yield f"## {escaped(row.title)}"
    yield ""
    link = f", [what changed upstream]({row.link})" if row.link else ""
    yield f"{_pin(row.old)} → {_pin(row.new)}{link}"
    if review.sharing:
        yield ""
        yield f"The series is also that of {escaped(', '.join(review.sharing))}."
    left = list(left_to_do(review, manifest))
    if left:
        yield ""
        yield "### Left to do"
        yield ""
        yield from (f"- [ ] {each}" for each in left)
    for attention, group in groupby(review.patches, key=lambda each: each.result.attention):
        patches = list(group)
        assert attention is not None
        yield ""
        yield from _group(attention, patches, diffs=diffs)
    if review.check is not None:
        yield ""
        yield from _check(review)


def _group(attention: Attention, patches: Sequence[PatchReview], *, diffs: bool) -> Iterator[str]:
    if attention in FOLDED:
        yield f"<details><summary>{HEADINGS[attention]} ({len(patches)})</summary>"
        yield ""
        yield from (f"- {_name(each)}" for each in patches)
        yield ""
        yield "</details>"
        return
    yield f"### {HEADINGS[attention]} ({len(patches)})"
    yield ""
    for patch in patches:
        box = "[ ] " if attention in DETAILED else ""
        yield f"- {box}{_name(patch)}"
        yield from (f"  {line}".rstrip() for line in _patch(patch, attention))
        if diffs:
            yield from (f"  {line}".rstrip() for line in _diffs(patch, attention))


def _name(patch: PatchReview) -> str:
    subject = f" {escaped(patch.subject)}" if patch.subject else ""
    return f"{code(patch.result.name)}{subject}"


def _patch(patch: PatchReview, attention: Attention) -> Iterator[str]:
    result = patch.result
    if attention is Attention.FLAGGED and not result.explained:
        yield "- its change differs now"
    for commit in patch.absorbed_by:
        yield f"- absorbed by {_linked_commit(commit)}"
    if attention not in DETAILED:
        return
    for file in result.files:
        if file.review or file.reasons:
            yield f"- {_file(file)}"
            yield from (f"  - {escaped(reason)}" for reason in file.reasons)
        if file.remembered:
            yield f"- {code(file.path)}: as recorded in {code(file.remembered)}"
    for change in patch.upstream:
        for commit in change.commits:
            yield f"- upstream, {code(change.path)}: {_linked_commit(commit)}"


def _file(file: FileResult) -> str:
    place = f" → {code(file.carried_to)}" if file.carried_to else ""
    sure = f", {file.certainty}" if file.review else ""
    return f"{code(file.path)}{place}: {file.status.value}{sure}"


def _diffs(patch: PatchReview, attention: Attention) -> Iterator[str]:
    """Old patch to new, and upstream's hunks, each folded."""
    if attention not in (*DETAILED, Attention.CONTEXT):
        return
    rows = [shown(row) for row in interdiff_rows(patch.change)]
    if rows:
        yield from _folded("the old patch and the new one", rows)
    rows = [row for change in patch.upstream for row in upstream_rows(change.path, change.hunks)]
    if rows:
        yield from _folded("what upstream changed there", rows)


def _folded(title: str, rows: Sequence[str]) -> Iterator[str]:
    left_out = len(rows) - _ROWS
    kept = [clean(row) for row in rows[:_ROWS]]
    fence = "`" * max(3, 1 + _backticks("\n".join(kept)))
    yield ""
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield f"{fence}diff"
    yield from kept
    yield fence
    if left_out > 0:
        yield f"and {counted(left_out, 'more line')}"
    yield ""
    yield "</details>"
    yield ""


def interdiff_rows(change: bytes) -> list[bytes]:
    """The rows of a diff of two patch files, without its file and @@ lines; b"" parts hunks."""
    rows: list[bytes] = []
    for row in lines_of(change.removesuffix(b"\n"))[2:] if change else ():
        if row.startswith(b"@@ "):
            rows += [b""] if rows else []
        elif row[1:3] != b"@@":
            rows.append(row)
    return rows


def upstream_rows(path: str, hunks: Sequence[Hunk]) -> Iterator[str]:
    """Hunks of upstream's as a diff has them, under the file's name."""
    if hunks:
        yield f"--- {path}"
    for hunk in hunks:
        yield f"@@ line {hunk.old_start} @@"
        yield from (shown(line) for line in hunk.lines)


def left_to_do(review: ComponentReview, manifest: str) -> Iterator[str]:
    """What somebody has to do before this is done, as Markdown; no path of a machine in it."""
    row = review.report
    if row.halted is not None:
        files = ", ".join(code(each.path) for each in row.halted.files)
        names = f"-m {manifest} -c {row.name}"
        again = f"patchkit bump {row.name} -m {manifest} --to {row.new.name or row.new.pin}"
        yield (
            f"resolve {code(row.halted.patch)} in {files}: {code(again)} puts the conflict into the"
            f" checkout, {code(f'patchkit continue {names}')} goes on,"
            f" {code(f'patchkit skip {names}')} leaves the patch out"
        )
    elif not row.moved or row.problems:
        yield from map(escaped, problem_rows(row.problems))
    yield from map(escaped, problem_rows(row.notes))


def problem_rows(problems: Iterable[Problem]) -> Iterator[str]:
    """Where and what, without the hint, which may name a path of this machine.

    What is said of several lines of a file is one row: `file:1, 5: what`.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for each in problems:
        file, colon, line = each.where.rpartition(":")
        known = bool(colon) and line.isdigit()
        lines = places.setdefault((file if known else each.where, each.what), [])
        lines += [line] if known and line not in lines else []
    for (file, what), lines in places.items():
        yield str(Problem(what, f"{file}:{', '.join(lines)}" if lines else file))


def check_words(review: ComponentReview) -> str:
    """What `patchkit check` says of the new pin, in a sentence."""
    check = review.check
    assert check is not None
    problems = [counted(len(check.problems), "problem")] if check.problems else []
    found = (*check.counts, *problems) or ("ok",)
    return f"check: {', '.join((counted(len(check.patches), 'patch', 'patches'), *found))}"


def check_rows(review: ComponentReview) -> list[tuple[str, str]]:
    """What that check found: how bad it is, then where and what."""
    check = review.check
    assert check is not None
    rows = [(finding.severity.value, str(finding)) for finding in check.counted]
    return rows + [("error", row) for row in problem_rows(check.problems)]


def _check(review: ComponentReview) -> Iterator[str]:
    yield f"### {check_words(review).capitalize()}"
    rows = check_rows(review)
    if rows:
        yield ""
    yield from (f"- {escaped(' '.join(lines_of(': '.join(row))))}" for row in rows)


def commit_message(report: BumpReport) -> Iterator[str]:
    """The lines of a message for the commit that a bump is."""
    yield _plain(report.subject)
    moved = [each for each in report.components if each.moved]
    for row in moved or report.components:
        if len(moved) > 1:
            yield ""
            yield _plain(row.subject)
        groups = groupby(row.patches, key=lambda each: each.attention)
        lines = [_summed(attention, list(group)) for attention, group in groups if attention]
        if lines and len(moved) <= 1:
            yield ""
        yield from lines


def _summed(attention: Attention, patches: Sequence[PatchResult]) -> str:
    names = ", ".join(_plain(each.name) for each in patches)
    told = f" ({names})" if attention in _NAMED else ""
    return f"{SHORT[attention]}: {len(patches)}{told}"


def _pin(pin: NamedPin) -> str:
    name = f"{escaped(pin.name)} " if pin.name else ""
    return f"{name}{code(pin.short)}" if pin.pin else name.rstrip()


def _linked_commit(commit: UpstreamCommit) -> str:
    words = escaped(commit.words)
    if not commit.commit:
        return words
    text = code(commit.commit)
    return f"{f'[{text}]({commit.link})' if commit.link else text} {words}"


def code(text: str) -> str:
    """Text as code, whatever backticks are in it."""
    flat = _plain(text)
    fence = "`" * (_backticks(flat) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") or not flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _backticks(text: str) -> int:
    """The length of the longest run of them."""
    return max((len(each) for each in re.findall("`+", text)), default=0)


def _plain(text: str) -> str:
    """One line that shows as it is in an indented block."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


# What is open, as one text for each cause: for a forge's command line to post, update and close.
#
# A folder holds them, a file each, named by the cause's id. The first line is a comment that says
# what patchkit knows of it, the second the title, the rest the body. A cause that is found no
# more is closed, but only where the same kind of look was taken at all that it is about.


_FIRST = re.compile(r"<!-- patchkit (\{.*\}) -->")
_FILE = re.compile(r"pk-[0-9a-f]{12}\.md")


class IssueChange(str, Enum):
    """What is to be done with an issue."""

    OPENED = "opened"  # it is new
    UPDATED = "updated"  # its text is another one
    REOPENED = "reopened"  # it was closed, and is found again
    CLOSED = "closed"  # it is found no more
    UNCHANGED = "unchanged"


class Issue(Struct, frozen=True):
    """One cause as a text of its own, in the folder's file `id`.md.

    `look` is "check" or "drift"; `of` are the components it is about, as "MANIFEST: COMPONENT".
    `level` is "error" or "warning"; `title` is plain text in one line.
    """

    id: str
    change: IssueChange  # what is to be done with it since the last run
    is_open: bool  # the cause is there still
    title: str
    rule: str  # the stable word of its findings
    level: str
    look: str
    of: tuple[str, ...]


class IssuesReport(Struct, frozen=True):
    """Every issue of the folder: open ones as they were found, closed ones last."""

    issues: tuple[Issue, ...]

    @property
    def exit_code(self) -> ExitCode:
        """Writing issues is done, whatever they say."""
        return ExitCode.OK


class IssueFile(Struct, frozen=True):
    """An issue and the whole text of its file."""

    issue: Issue
    text: str


def is_issue_file(name: str) -> bool:
    """Whether a file of the folder has a name that we give."""
    return _FILE.fullmatch(name) is not None


def plan_issues(report: CiReport, paths: Paths, known: Mapping[str, str]) -> tuple[IssueFile, ...]:
    """What the folder should hold; `known` is what it holds, name -> text.

    Notes, and what could not be examined because the network or git failed, make no issue.
    BadInputError for a file that is none of ours.
    """
    old = {name.removesuffix(".md"): _read(name, text) for name, text in known.items()}
    found = [
        _issue_file(look, cause, old.get(cause.id), known.get(f"{cause.id}.md", ""))
        for look, notices in _looks(report, paths)
        for cause in find_causes(notices)
        if cause.level is not Level.NOTE
    ]
    seen = _seen(report)
    ids = {each.issue.id for each in found}
    gone = [
        _left(issue, known[f"{name}.md"], seen) for name, issue in old.items() if name not in ids
    ]
    gone.sort(key=lambda each: not each.issue.is_open)  # stable
    return (*found, *gone)


def _looks(report: CiReport, paths: Paths) -> Iterator[tuple[str, list[Notice]]]:
    checked, drifted = report.check, report.drift
    lost = ExitCode.ENVIRONMENT
    failed = {f"{e.manifest}: {e.name}" for e in checked.components if e.exit_code is lost}
    failed |= {f"{e.manifest}: {e.name}" for e in drifted.components if e.exit_code is lost}
    failed |= {e.manifest for e in (*checked.broken, *drifted.broken) if e.exit_code is lost}
    for look, notices in (
        ("check", check_notices(checked, paths)),
        ("drift", drift_notices(drifted, paths)),
    ):
        yield look, [n for n in notices if not (n.rule == "problem" and n.of in failed)]


def _seen(report: CiReport) -> set[tuple[str, str]]:
    """(kind of look, component or manifest) of all that was really looked at."""
    seen = {("check", f"{e.manifest}: {e.name}") for e in report.check.components if not e.problems}
    seen |= {
        ("drift", f"{e.manifest}: {e.name}") for e in report.drift.components if not e.problems
    }
    # a manifest of which a component was looked at could be read
    return seen | {(look, name.partition(": ")[0]) for look, name in seen}


def _issue_file(look: str, cause: RootCause, before: Issue | None, text: str) -> IssueFile:
    issue = Issue(
        id=cause.id,
        change=IssueChange.OPENED,
        is_open=True,
        title=_line(cause.title),
        rule=cause.rule,
        level=cause.level.value,
        look=look,
        of=cause.of,
    )
    now = _text(issue, _body(cause))
    if before is not None:
        change = IssueChange.UPDATED if text != now else IssueChange.UNCHANGED
        issue = replace(issue, change=change if before.is_open else IssueChange.REOPENED)
    return IssueFile(issue, now)


def _left(issue: Issue, text: str, seen: set[tuple[str, str]]) -> IssueFile:
    """An issue that is not found now: closed, if all that it is about was looked at."""
    if not issue.is_open or not all((issue.look, each) in seen for each in issue.of):
        return IssueFile(issue, text)
    closed = replace(issue, is_open=False, change=IssueChange.CLOSED)
    _, _, body = text.partition("\n\n")
    return IssueFile(
        closed, _text(closed, f"Mended: `patchkit {issue.look}` finds it no more.\n\n{body}")
    )


def _text(issue: Issue, body: str) -> str:
    told = {
        "id": issue.id,
        "state": "open" if issue.is_open else "closed",
        "rule": issue.rule,
        "level": issue.level,
        "look": issue.look,
        "of": list(issue.of),
        "title": issue.title,
    }
    # no name of others may end the comment
    line = json.dumps(told).replace(">", "\\u003e")
    return f"<!-- patchkit {line} -->\n# {escaped(issue.title)}\n\n{body.rstrip()}\n"


def _body(cause: RootCause) -> str:
    where = ", ".join(map(escaped, cause.of))
    lines = [
        f"{RULES.get(cause.rule, cause.rule)}: {where}." if where else RULES.get(cause.rule, "")
    ]
    if cause.notices[0].by:
        lines += ["", f"By {escaped(cause.notices[0].by)}"]
    lines += notice_lines(cause.notices)
    lines += ["", HELP.get(cause.rule, "`patchkit check` prints it with all details.")]
    return "\n".join(lines)


def _line(text: str) -> str:
    """A title: one line of plain text."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]


def _read(name: str, text: str) -> Issue:
    """What a file's first lines say; BadInputError if it is none of ours."""
    found = _FIRST.fullmatch(text.partition("\n")[0])
    try:
        told = json.loads(found[1]) if found is not None else {}
        of = tuple(map(str, told["of"]))
        issue = Issue(
            id=str(told["id"]),
            change=IssueChange.UNCHANGED,
            is_open=told["state"] == "open",
            title=str(told["title"]),
            rule=str(told["rule"]),
            level=str(told["level"]),
            look=str(told["look"]),
            of=of,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "move it out of the folder, or delete it"
        raise BadInputError(Problem("is not an issue that patchkit wrote", name, hint)) from error
    if f"{issue.id}.md" != name:
        raise BadInputError(Problem(f"is the issue {issue.id}", name, "call it by its id"))
    return issue


def count_words(issues: Iterable[Issue]) -> str:
    """How many are open, and what became of the others."""
    listed = list(issues)
    parts = [f"{sum(each.is_open for each in listed)} open"]
    for change in (
        IssueChange.OPENED,
        IssueChange.REOPENED,
        IssueChange.UPDATED,
        IssueChange.CLOSED,
    ):
        number = sum(each.change is change for each in listed)
        parts += [f"{number} {change.value}"] if number else []
    return f"{counted(len(listed), 'issue')}: {', '.join(parts)}"
