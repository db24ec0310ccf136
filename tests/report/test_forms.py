"""The forms for CI systems: well made, whatever upstream wrote into a subject, a path or a name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from patchkit.model.finding import Finding, Severity
from patchkit.model.text import escaped
from patchkit.report.ci_formats import Case, annotation_lines, junit_document, sarif_document
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.support.schemas import jsonschema

#: What SARIF 2.1.0 requires of the parts that we write (the whole schema is not ours to ship).
_SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/run"}},
    },
    "$defs": {
        "text": {
            "type": "object",
            "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}},
        },
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "properties": {"driver": {"$ref": "#/$defs/driver"}},
                },
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
            },
            "additionalProperties": False,
        },
        "driver": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "semanticVersion": {"type": "string"},
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "required": ["id", "shortDescription", "fullDescription", "help"],
                        "properties": {
                            "id": {"type": "string"},
                            "shortDescription": {"$ref": "#/$defs/text"},
                            "fullDescription": {"$ref": "#/$defs/text"},
                            "help": {"$ref": "#/$defs/text"},
                        },
                        "additionalProperties": False,
                    },
                },
            },
            "additionalProperties": False,
        },
        "result": {
            "type": "object",
            "required": ["message", "ruleId", "level"],
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"$ref": "#/$defs/text"},
                "partialFingerprints": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                },
                "locations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["physicalLocation"],
                        "properties": {
                            "physicalLocation": {
                                "type": "object",
                                "required": ["artifactLocation", "region"],
                                "properties": {
                                    "artifactLocation": {
                                        "type": "object",
                                        "properties": {
                                            "uri": {"pattern": r"^[A-Za-z0-9%._~/+@,=()!$&'*;-]+$"}
                                        },
                                    },
                                    "region": {
                                        "properties": {
                                            "startLine": {"type": "integer", "minimum": 1}
                                        }
                                    },
                                },
                            }
                        },
                    },
                },
            },
            "additionalProperties": False,
        },
    },
}

_ANY = st.text(max_size=60)
_NASTY = "x\n::error file=a.py::forged\r\n::stop-commands::t%0A::debug::\u2028\x1b[31m]]></failure>"


@given(title=_ANY, message=_ANY, path=_ANY)
@example(title=_NASTY, message=_NASTY, path=_NASTY)
def test_an_annotation_is_one_line_and_one_command(title: str, message: str, path: str) -> None:
    finding = Finding(Severity.ERROR, "rule", title, f"{path}.patch:3" * bool(path), message)
    (line,) = annotation_lines([finding], {})
    assert len(line.splitlines()) == 1
    found = re.fullmatch(r"::error ([^:]*)::(.*)", line)
    assert found is not None
    keys = [each.partition("=")[0] for each in found[1].split(",")]
    plain = bool(path) and not {*":\n"} & {*path} and not path.startswith("/")
    assert keys == (["file", "line", "title"] if plain else ["title"])
    assert "\x1b" not in line


@given(message=_ANY, name=_ANY, details=_ANY)
@example(message=_NASTY, name=_NASTY, details=_NASTY)
def test_junit_says_what_it_was_given(message: str, name: str, details: str) -> None:
    case = Case("suite", name, "failure", message, details)
    root = ElementTree.fromstring(junit_document([case, Case("suite", "b")], "n"))
    (suite,) = root.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    if all(char.isprintable() for char in message + details):
        assert (failure.get("message"), failure.text or "") == (message, details)


@pytest.mark.slow
@given(message=st.text(min_size=1), path=_ANY)
@example(message=_NASTY, path="patches/ä b/\udcff.patch")
def test_sarif_is_what_its_schema_asks_for(message: str, path: str) -> None:
    findings = [
        Finding(Severity.NOTE, "one", message, f"{path}.patch:0"),
        Finding(Severity.ERROR, "one", "m", "other"),
    ]
    document = json.loads(sarif_document(findings, {}))
    jsonschema.validate(document, _SARIF)
    one, other = document["runs"][0]["results"]
    assert one["partialFingerprints"] != other["partialFingerprints"]
    assert "locations" not in other


@given(text=_ANY)
@example(text="[x](javascript:1) <img src=x> @team #12 | `a` https://evil.example www.evil.example")
@example(text="1. one")
@example(text="12) _a_ ~~b~~ **c** &lt; \\* a_b_c __init__.py $x$")
def test_markdown_shows_texts_as_they_are(text: str) -> None:
    escape = escaped(text)
    assert len(escape.splitlines()) <= 1
    assert not re.search(
        r"@|(?<![\\])#(?=[^\W_])|(?<![\\])://|www\.", re.sub(r"&#\d+;", "", escape)
    )
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(escape)
    assert bool(tokens) == bool(text.split())
    if not tokens:
        return
    (paragraph,) = [each for each in tokens if each.type == "inline"]
    flat = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
    assert {each.type for each in paragraph.children or ()} <= {"text", "text_special"}
    assert "".join(each.content for each in paragraph.children or ()) == flat
    assert tokens[0].type == "paragraph_open"


def test_markdown_escapes_only_what_acts() -> None:
    for text in ("v2.40.0", "a_file.py: line 5, +3 -1", "npu-ids.patch (12)", "C:\tx!", "a & b"):
        assert escaped(text) == " ".join(text.split())


def _drifted(project: Project, upstream: Upstream, subject: str) -> None:
    project.patched(
        upstream,
        {"a.py": "one\ntwo\nthree\n"},
        {"a.py": "one\n2\nthree\n"},
        patch="count.patch",
        subject="Count",
        body="So.",
        track="main",
    )
    upstream.commit({"a.py": "one\nzwei\nthree\n"}, subject)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "drift"])
def test_every_form_of_every_report(project: Project, upstream: Upstream, command: str) -> None:
    _drifted(project, upstream, "Rework ::error::x %0A (#7)")
    code = 1 if command == "drift" else 0
    junit = project.run(command, "--format", "junit").ends(code)
    assert ElementTree.fromstring(junit.out).find(".//testcase[@name='count.patch']") is not None
    sarif = project.run(command, "--format", "sarif").json
    jsonschema.validate(sarif, _SARIF)
    assert len(sarif["runs"][0]["results"]) == code
    github = project.run(command, "--format", "github").out.splitlines()
    assert len([line for line in github if line]) == code
    assert all(
        line.startswith("::error file=patches/demo/count.patch,line=") for line in github if line
    )
    markdown = project.run(command, "--format", "markdown").out
    assert "count.patch" in markdown or "demo" in markdown
    assert project.run(command, "--format", "json").json["exit_code"] == code


@pytest.mark.slow
def test_each_form_has_one_finding_for_a_cause(project: Project, upstream: Upstream) -> None:
    """The second patch builds on the first: alone it would be a finding, waiting it is none."""
    texts = ["one\ntwo\nthree\n", "one\n2\nthree\n", "one\n2\n2b\nthree\n"]
    patches = {
        f"{number}.patch": make_patch({"a.py": old}, {"a.py": new}, subject="Count")
        for number, (old, new) in enumerate(pairwise(texts), 1)
    }
    project.component("demo", upstream, {"a.py": texts[0]}, patches, track="main")
    upstream.commit({"a.py": "one\nzwei\nthree\n"}, "Rework")
    sarif = project.run("drift", "--format", "sarif").json
    (result,) = sarif["runs"][0]["results"]
    assert "1.patch" in result["message"]["text"]
    github = project.run("drift", "--format", "github").out
    assert github.count("::error") == 1
    junit = ElementTree.fromstring(project.run("drift", "--format", "junit").out)
    assert (junit.get("failures"), junit.get("skipped")) == ("1", "1")
    project.run("drift", "--format", "junit").shows("waits for 1.patch")
    project.run("drift", "--format", "markdown").shows("waits for 1.patch")
    project.run("drift").shows("2 patches, 1 conflicted, 1 waiting")


@pytest.mark.slow
def test_each_form_tells_the_event_of_the_state(project: Project, upstream: Upstream) -> None:
    """First stopped applying by one commit, in conflict by another: both, each as what it is."""
    lines = [f"line {number}" for number in range(1, 13)]

    def text(**other: str) -> str:
        return "".join(f"{other.get(f'l{n}', line)}\n" for n, line in enumerate(lines, 1))

    project.patched(
        upstream,
        {"a.py": text()},
        {"a.py": text(l6="ours")},
        patch="ours.patch",
        subject="Ours",
        track="main",
    )
    near = upstream.commit({"a.py": text(l4="near")}, "Near")[:10]
    same = upstream.commit({"a.py": text(l4="near", l6="theirs")}, "The same line")[:10]
    for form in ("text", "sarif", "junit", "github", "markdown"):
        told = project.run("drift", "--format", form).out
        assert told.index(f"by {same}") < told.index(f"it stopped applying by {near}"), form
    project.run("drift", "--format", "html").shows(same)


@pytest.mark.slow
def test_check_and_drift_in_one(project: Project, upstream: Upstream) -> None:
    _drifted(project, upstream, "Rework (#7)")
    ran = project.run("ci", "--json")
    assert (ran.code, ran.json["exit_code"]) == (1, 1)
    assert ran.json["check"]["components"][0]["exit_code"] == 0
    allowed = project.run("ci", "--allow-drift").ok()
    assert "✗ failed" not in allowed.out
    allowed.shows("! drift allowed: 1 component")
    junit = ElementTree.fromstring(project.run("ci", "--allow-drift", "--format", "junit").out)
    assert (junit.get("failures"), junit.get("skipped")) == ("0", "1")
    github = project.run("ci", "--allow-drift", "--format", "github").out
    assert ("::error" in github, "::warning" in github) == (False, True)
    junit = ElementTree.fromstring(project.run("ci", "--format", "junit").out)
    assert (junit.get("tests"), junit.get("failures")) == ("2", "1")
    sarif = project.run("ci", "--format", "sarif").json
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == ["broken-upstream"]
    markdown = project.run("ci", "--format", "markdown").out
    assert "| demo: demo | ✅ 1 patch applies |" in markdown
    assert "| demo: demo drift | ❌ main to " in markdown


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_each_form_counts_the_same(project: Project, upstream: Upstream, strict: bool) -> None:
    """A file that is not listed, blanks at an end (a note), no Upstream-Status (style)."""
    project.patched(
        upstream,
        {"a.py": "one\n"},
        {"a.py": "1  \n"},
        patch="count.patch",
        subject="Count",
        body="So.",
    )
    project.write({"patches/demo/left.patch": b"not listed"})
    options = ("check", *(["--strict"] if strict else []))

    def run(form: str) -> str:
        return project.run(*options, "--format", form).out

    (component,) = json.loads(run("json"))["components"]
    listed = [component["findings"], *(each["findings"] for each in component["patches"])]
    severities = [each["severity"] for each in chain.from_iterable(listed)]
    assert {"note", "error" if strict else "style"} <= {*severities}
    level = "error" if strict else "warning"
    count = severities.count(level)
    assert count == (2 if strict else 1)
    said = f"1 patch applies, {count} {level}"
    project.run(*options).ends(1 if strict else 0).shows(said)
    assert said in run("markdown") and said in run("html")
    results = json.loads(run("sarif"))["runs"][0]["results"]
    assert [each["level"] for each in results] == [level] * count
    assert run("github").count(f"::{level} ") == count
    assert sum(line.startswith("- ") for line in run("markdown").splitlines()) == count
    assert run("html").count('<span class="level ') == count
    junit = ElementTree.fromstring(run("junit"))
    assert int(junit.get("failures", "")) == (count if strict else 0)


def test_a_report_in_a_file_leaves_a_summary_on_the_terminal(
    project: Project, upstream: Upstream
) -> None:
    _drifted(project, upstream, "Rework")
    ran = project.run("drift", "--format", "sarif", "--output", "out/drift.sarif").ends(1)
    assert ran.out == "✗ failed: 1 component, 1 patch, 1 conflicted\n"
    assert json.loads((project.root / "out" / "drift.sarif").read_text())["version"] == "2.1.0"
    project.run("drift", "-o", "out/page.html").ends(1)
    assert project.read("out/page.html").startswith("<!doctype html>")
    ran = project.run("drift", "--output", "x")
    assert (ran.code, "fetch" in ran.err) == (2, False)  # told before anything is done


def test_sarif_is_what_microsofts_validator_asks_for(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    """Its rules for the format and those for GitHub's code scanning."""
    validator = shutil.which("Sarif.Multitool") or shutil.which("sarif-multitool")
    if validator is None:
        pytest.skip("sarif-multitool is not installed")
    _drifted(project, upstream, "Rework ::error::x (#7)")
    project.write({"patches/demo/left.patch": b"not listed"})
    project.run("ci", "--format", "sarif", "-o", "x.sarif")
    argv = [validator, "validate", str(project.root / "x.sarif"), "--rule-kind", "Sarif;Ghas"]
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
    )
    assert "Analysis completed successfully." in done.stdout
    assert ": error " not in done.stdout


def test_junit_is_read_by_another_reader(project: Project, upstream: Upstream) -> None:
    junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")
    _drifted(project, upstream, "Rework")
    project.run("ci", "--format", "junit", "-o", "x.xml")
    report = junitparser.JUnitXml.fromfile(str(project.root / "x.xml"))
    assert [suite.name for suite in report] == ["demo: demo", "demo: demo drift"]
    assert (report.tests, report.failures) == (2, 1)
