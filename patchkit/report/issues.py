"""What is open, as one text for each cause: for a forge's command line to post, update and close.

A folder holds them, a file each, named by the cause's id. The first line is a comment that says
what patchkit knows of it, the second the title, the rest the body. A cause that is found no more is
closed, but only where the same kind of look was taken at all that it is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, Problem
from patchkit.model.text import counted, escaped
from patchkit.ops.ci import CiReport
from patchkit.report.findings import (
    HELP,
    RULES,
    Level,
    Notice,
    Paths,
    RootCause,
    check_notices,
    drift_notices,
    find_causes,
)
from patchkit.report.markdown import notice_lines

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
    change: IssueChange
    is_open: bool
    title: str
    rule: str
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

    Notes, and what could not be looked at because the network or git failed, make no issue.
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
        raise BadInputError(Problem("is no issue that patchkit wrote", name, hint)) from error
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
