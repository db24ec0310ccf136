"""Cases as JUnit XML, as most CI systems read it: one suite per component, one case per patch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from patchkit.report.values import Case, Verdict

# What XML 1.0 has no way to say, not even escaped.
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What steers a terminal that the document is shown on, or reorders it.
_STEERING = re.compile("[\r\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ELEMENTS = {Verdict.FAILED: "failure", Verdict.ERROR: "error", Verdict.SKIPPED: "skipped"}


def junit_document(cases: Iterable[Case], name: str) -> str:
    """The results of one run, called `name`; without a final newline."""
    listed = list(cases)
    suites: dict[str, list[Case]] = {}
    for case in listed:
        suites.setdefault(case.suite, []).append(case)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f"<testsuites name={_attribute(name)} {_counts(listed)}>")
    for suite, members in suites.items():
        lines.append(f"  <testsuite name={_attribute(suite)} {_counts(members)}>")
        lines += [_case(case) for case in members]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _case(case: Case) -> str:
    head = f"    <testcase classname={_attribute(case.suite)} name={_attribute(case.name)}"
    element = _ELEMENTS.get(case.verdict)
    if element is None:
        return f'{head} time="0"/>'
    message = f"<{element} message={_attribute(case.message)}"
    body = f">{_words(case.details)}</{element}>" if case.details else "/>"
    return f'{head} time="0">\n      {message}{body}\n    </testcase>'


def _counts(cases: list[Case]) -> str:
    counted = {
        "tests": len(cases),
        "failures": sum(case.verdict is Verdict.FAILED for case in cases),
        "errors": sum(case.verdict is Verdict.ERROR for case in cases),
        "skipped": sum(case.verdict is Verdict.SKIPPED for case in cases),
    }
    return " ".join(f'{key}="{value}"' for key, value in counted.items()) + ' time="0"'


def _attribute(text: str) -> str:
    # a parser takes any blank in an attribute for a space
    return '"' + _words(text).replace("\n", "&#10;").replace("\t", "&#9;") + '"'


def _words(text: str) -> str:
    speakable = _UNSPEAKABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return _STEERING.sub(lambda found: f"&#{ord(found[0])};", escape(speakable))
