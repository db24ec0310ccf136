"""Reports in the forms that CI systems and audits read: SARIF 2.1.0 for code scanning, JUnit XML,
workflow commands that GitHub shows beside the lines of a pull request, job matrices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from msgspec import Struct
from msgspec.structs import asdict, replace

from patchkit import __version__
from patchkit.manifest.write import yaml_text
from patchkit.model.finding import Finding, Severity
from patchkit.model.text import clean
from patchkit.ops.ci import Job, MatrixReport
from patchkit.report.findings import COMPONENT, HELP, RULES, Outcome, Paths, explained, place_of

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "The result's own text says what to do; `patchkit check` prints it with all details."


def sarif_document(findings: Sequence[Finding], paths: Paths) -> str:
    """The log of one run; without a final newline."""
    rules = list(dict.fromkeys(each.code for each in findings))
    run = {
        "tool": {
            "driver": {
                "name": "patchkit",
                "semanticVersion": __version__,
                "rules": [_rule(each) for each in rules],
            }
        },
        "columnKind": "utf16CodeUnits",
        "results": [_result(each, rules.index(each.code), paths) for each in findings],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=True)


def _rule(name: str) -> dict[str, Any]:
    words = RULES.get(name, name.replace("-", " ").capitalize())
    # GitHub asks for all three
    return {
        "id": name,
        "shortDescription": {"text": words},
        "fullDescription": {"text": f"{words}."},
        "help": {"text": HELP.get(name, _HELP)},
    }


def _result(finding: Finding, rule: int, paths: Paths) -> dict[str, Any]:
    fingerprint = sha256(_text(f"{finding.code}\0{finding.subject}").encode()).hexdigest()
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity.value,
        "message": {"text": _text(finding.text)},
        "partialFingerprints": {"patchkit/v1": fingerprint},
    }
    path, line = place_of(finding, paths)
    if path:
        place = {
            "artifactLocation": {"uri": quote(path, errors="surrogateescape")},
            "region": {"startLine": max(1, line)},
        }
        result["locations"] = [{"physicalLocation": place}]
    return result


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# JUnit XML: one suite per component, one case per patch.


class Case(Struct, frozen=True):
    """A test's result: `element` is "failure", "error" or "skipped", "" for one that passed."""

    suite: str
    name: str  # of the patch or component
    element: str = ""
    message: str = ""  # in one line
    details: str = ""  # in full, as lines


def cases_of(outcomes: Iterable[Outcome]) -> Iterator[Case]:
    """One case for each patch; one for a component or manifest where something is to be said."""
    for each in outcomes:
        errors = [f for f in each.findings if f.severity is Severity.ERROR] or each.findings
        details = "\n".join(finding.text for finding in explained([replace(each, findings=errors)]))
        first = errors[0].what if each.fails and errors else each.words
        if any(finding.code == "problem" for finding in errors):
            yield Case(each.of, each.name, "error", first, details)
        elif each.fails and each.excuse:
            yield Case(each.of, each.name, "skipped", f"{each.excuse}: {first}", details)
        elif each.fails:
            yield Case(each.of, each.name, "failure", first, details)
        elif each.state in ("waiting", "skipped"):
            yield Case(each.of, each.name, "skipped", each.words)
        elif each.name != COMPONENT:
            yield Case(each.of, each.name)


def junit_document(cases: Iterable[Case], name: str) -> str:
    """The results of one run, called `name`; without a final newline."""
    listed = list(cases)
    root = Element("testsuites", _counts(name, listed))
    for suite in dict.fromkeys(case.suite for case in listed):
        members = [case for case in listed if case.suite == suite]
        node = SubElement(root, "testsuite", _counts(suite, members))
        for case in members:
            names = {"classname": _words(suite), "name": _words(case.name), "time": "0"}
            tested = SubElement(node, "testcase", names)
            if case.element:
                told = SubElement(tested, case.element, {"message": _words(case.message)})
                told.text = _words(case.details)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}'


def _counts(name: str, cases: Sequence[Case]) -> dict[str, str]:
    elements = [case.element for case in cases]
    return {
        "name": _words(name),
        "tests": str(len(cases)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": str(elements.count("skipped")),
        "time": "0",
    }


def _words(text: str) -> str:
    """Text in which is named what steers a terminal, or has no way to be said in XML."""
    return "\n".join(map(clean, text.split("\n")))


# GitHub: a workflow command is a line that begins with `::`. Whatever upstream wrote into a subject
# or a path is escaped as GitHub's own toolkit does it, so that it can end no line and begin no
# command.


def annotation_lines(findings: Iterable[Finding], paths: Paths) -> list[str]:
    """One line for each finding."""
    return [_line(each, *place_of(each, paths)) for each in findings]


def _line(finding: Finding, path: str, line: int) -> str:
    facts = {"title": finding.what.partition("\n")[0]}
    if path:
        facts = {"file": path, "line": str(max(1, line)), **facts}
    note = finding.severity is Severity.NOTE
    command = "notice" if note else finding.severity.value
    told = ",".join(f"{key}={_property(value)}" for key, value in facts.items())
    return f"::{command} {told}::{_data(finding.text)}"


def _data(text: str) -> str:
    # what other readers of logs take for the end of a line is named
    return clean(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# A job matrix in the forms that GitHub and GitLab take.


#: The job of GitLab's template whose results are joined.
CHECKING = ".patchkit"


def github_matrix(report: MatrixReport) -> str:
    """For `strategy: matrix: ${{ fromJSON(...) }}`, in one line, as job outputs have to be."""
    rows = [
        {key.replace("_", "-"): value for key, value in asdict(job).items() if key != "looks_at"}
        for job in report.jobs
    ]
    return json.dumps({"include": rows}, separators=(",", ":"))


def gitlab_pipeline(report: MatrixReport, include: str, extends: str) -> str:
    """A child pipeline: one job of the `include`d template, extended many times.

    After the jobs that check, the template's own job joins what they wrote.
    """
    child: dict[str, Any] = {
        "include": [{"remote" if "://" in include else "local": include}],
        "patchkit": {
            "extends": extends,
            "parallel": {"matrix": [_gitlab_row(job) for job in report.jobs]},
        },
    }
    if extends == CHECKING:
        child["report"] = {"extends": f"{CHECKING}-report", "needs": ["patchkit"], "when": "always"}
    return yaml_text(child).rstrip("\n")


def _gitlab_row(job: Job) -> dict[str, str]:
    return {
        "PATCHKIT_JOB": job.name,
        "PATCHKIT_MANIFEST": job.manifest,
        "PATCHKIT_COMPONENT": job.component,
        "PATCHKIT_SELECTION": job.options,
        "PATCHKIT_CACHE_KEY": job.cache,
        "PATCHKIT_CACHE_LIKE": job.cache_like,
    }
