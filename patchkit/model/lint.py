"""What is wrong with a patch file that can be seen without its upstream.

Errors: paths that no patch may touch. Warnings: damage that mail and editors do, and a header that
does not tell a reader who, what and why. Style: another form than the one that patchkit writes,
which only `check --strict` counts, as errors. Corrupt files never come here, the parser
refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchkit.model.finding import Finding, Severity
from patchkit.model.header import is_trailers
from patchkit.model.names import unsafe_path
from patchkit.model.patch import HeaderForm, Hunk, PatchFile
from patchkit.model.text import counted

SUBJECT_LENGTH = 72

#: The words that Yocto defines; the text after them says where or why.
UPSTREAM_STATUS = (
    "Pending",
    "Submitted",
    "Accepted",
    "Backport",
    "Denied",
    "Inactive-Upstream",
    "Inappropriate",
)

_STATUS_LINE = re.compile(r"^Upstream-Status:[ \t]*([\w-]*)", re.MULTILINE | re.IGNORECASE)
_SHORT_INDEX = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)", re.MULTILINE)
_BLANKS_AT_AN_END = re.compile(rb"^\+.*[ \t]\r?$", re.MULTILINE)
_DIFFSTAT = re.compile(rb"^ \d+ files? changed[,\n]", re.MULTILINE)


def lint_patch(file: PatchFile, *, name: str, ours: bool) -> tuple[Finding, ...]:
    """All findings on a patch file; `name` is what to call it.

    With `ours` False (a file of somebody else's, by pinned reference) only what endangers the
    tree or shows damage is looked for: its words and form are not for us to change.
    """
    found = [*_path_findings(file, name), *_stray_findings(file, name)]
    found += _damage_findings(file, name)
    if ours:
        found += [*_header_findings(file, name), *_form_findings(file, name)]
    return tuple(found)


# --- paths


def _path_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    for change in file.changes:
        for path in dict.fromkeys((change.old_path, change.new_path)):
            wrong = unsafe_path(path) if path is not None else None
            if wrong:
                yield Finding(
                    Severity.ERROR,
                    "unsafe-path",
                    f"{path}: {wrong}",
                    f"{name}:{change.line}",
                    "a patch may only name files inside the tree; remove this change",
                )


# --- damage


def _stray_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    if file.stray:
        # git ignores them without a word, and so does the engine
        yield Finding(
            Severity.ERROR,
            "stray-lines",
            f"{counted(len(file.stray), 'line')} beyond a hunk's counts, without effect",
            f"{name}:{file.stray[0]}",
            "correct the counts in the @@ line above, or remove what is too much",
        )


def _damage_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    # one look at all lines first: few patches have any of it
    if b"\r\n" not in file.diff and not _BLANKS_AT_AN_END.search(file.diff):
        return
    for change in file.changes:
        lines = [pair for hunk in change.hunks for pair in numbered_lines(hunk)]
        added = [(number, line) for number, line in lines if line[:1] == b"+"]
        kept = [line for _, line in lines if line[:1] != b"+"]
        ends = [number for number, line in added if line.endswith(b"\r\n")]
        # a file with CRLF throughout is meant to have it
        if ends and kept and not any(line.endswith(b"\r\n") for line in kept):
            yield Finding(
                Severity.WARNING,
                "carriage-return",
                f"{change.path}: {counted(len(ends), 'added line')} in CRLF, in a file that has LF",
                f"{name}:{ends[0]}",
                "an editor or a mail program did that; convert the patch file to LF",
            )
        blanks = [number for number, line in added if line.rstrip(b"\r\n")[-1:] in b" \t"]
        if blanks:
            yield Finding(
                Severity.NOTE,
                "trailing-blanks",
                f"{change.path}: {counted(len(blanks), 'added line')} with blanks at the end",
                f"{name}:{blanks[0]}",
            )


def numbered_lines(hunk: Hunk) -> Iterator[tuple[int, bytes]]:
    """A hunk's lines with their numbers in the patch file."""
    number = hunk.line
    for line in hunk.lines:
        number += 1
        yield number, line
        if not line.endswith(b"\n"):
            number += 1  # the line that says so


# --- header


def _header_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    if file.header is None:
        yield _header(
            name,
            "no-header",
            "has no header: who made it, and why, is not recorded",
            "put From:, Date: and Subject: lines, an empty line and the reason above the diff",
        )
        return
    if file.author is None and not _says(file, "Origin"):
        hint = "add a From: line (Author: in a DEP-3 header)"
        yield _header(name, "header-author", "the header names no author", hint)
    yield from _subject_findings(file, name)
    yield from _body_findings(file, name)


def _subject_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    subject = file.subject.strip()
    if not subject:
        yield _header(name, "header-subject", "the header has no subject", "add a Subject: line")
    elif len(subject) > SUBJECT_LENGTH:
        yield _header(
            name,
            "header-subject",
            f"the subject has {len(subject)} characters, more than {SUBJECT_LENGTH}",
            "shorten it, and put the rest into the message",
        )


def _body_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    paragraphs = [p for p in file.message.split("\n\n")[1:] if p.strip()]
    # DEP-3 asks for a description and no more; a bug report says why, too
    reason = file.form is HeaderForm.DEP3 or _says(file, "Bug(?:-[A-Za-z0-9]+)?")
    if not reason and all(map(is_trailers, paragraphs)):
        yield _header(
            name, "header-reason", "the message gives no reason", "say below the subject why it is"
        )
    status = _STATUS_LINE.search(file.message)
    words = ", ".join(UPSTREAM_STATUS)
    if status is None and not _says(file, "Forwarded|Applied-Upstream|Origin"):
        yield Finding(
            Severity.STYLE,
            "upstream-status",
            "the message has no Upstream-Status trailer",
            f"{name}:1",
            f"one of {words}; in a DEP-3 header Forwarded: or Applied-Upstream:",
        )
    elif status is not None and status[1] not in UPSTREAM_STATUS:
        yield _header(
            name, "upstream-status", f"Upstream-Status: {status[1]} is not known", f"one of {words}"
        )


def _says(file: PatchFile, fields: str) -> bool:
    """Whether the message has one of DEP-3's fields, with something behind it."""
    found = re.search(rf"^(?:{fields}):[ \t]*\S", file.message, re.MULTILINE | re.IGNORECASE)
    return found is not None


def _header(name: str, code: str, what: str, hint: str) -> Finding:
    return Finding(Severity.WARNING, code, what, f"{name}:1", hint)


# --- form


def _form_findings(file: PatchFile, name: str) -> Iterator[Finding]:
    wrong = list(_not_canonical(file))
    if wrong:
        line, _ = wrong[0]
        yield Finding(
            Severity.STYLE,
            "not-canonical",
            "not in canonical form: " + "; ".join(dict.fromkeys(what for _, what in wrong)),
            f"{name}:{line}",
        )


def _not_canonical(file: PatchFile) -> Iterator[tuple[int, str]]:
    short = _SHORT_INDEX.search(file.diff)
    if short and len(short[1]) < 40:
        yield _line(file, len(file.preamble) + short.start()), "abbreviated index lines"
    unheaded = [c for c in file.changes if c.plain]
    if unheaded:
        yield unheaded[0].line, "no `diff --git` lines"
    stat = _DIFFSTAT.search(file.preamble)
    if stat:
        yield _line(file, stat.start()), "a diffstat"
    if file.signature:
        yield _line(file, len(file.preamble) + len(file.diff)), "a mail signature"


def _line(file: PatchFile, offset: int) -> int:
    return file.data.count(b"\n", 0, offset) + 1
