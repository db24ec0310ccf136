"""Reports in the forms that CI systems and audits read: SARIF 2.1.0 for code scanning, JUnit XML,
workflow commands that GitHub shows beside the lines of a pull request, CycloneDX.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID, uuid5

from msgspec import Struct
from msgspec.structs import replace

from patchkit import REPOSITORY, __version__
from patchkit.errors import Problem
from patchkit.manifest.values import (
    ArchiveSource,
    Component,
    GitSource,
    IndexPin,
    IndexSource,
    Manifest,
    PinnedPatch,
    normal_name,
)
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import short_id
from patchkit.ops.ci import Job, MatrixReport
from patchkit.report.findings import COMPONENT, HELP, RULES, Outcome, Paths, explained, place_of
from patchkit.stack.lockfile import Lock, LockedComponent, recorded_in
from patchkit.stack.series import LoadedPatch

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


# What XML 1.0 has no way to say, not even escaped.
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What steers a terminal that the document is shown on, or reorders it.
_STEERING = re.compile("[\r\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


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
    if not case.element:
        return f'{head} time="0"/>'
    message = f"<{case.element} message={_attribute(case.message)}"
    body = f">{_words(case.details)}</{case.element}>" if case.details else "/>"
    return f'{head} time="0">\n      {message}{body}\n    </testcase>'


def _counts(cases: Sequence[Case]) -> str:
    elements = [case.element for case in cases]
    counted = {
        "tests": len(cases),
        "failures": elements.count("failure"),
        "errors": elements.count("error"),
        "skipped": elements.count("skipped"),
    }
    return " ".join(f'{key}="{value}"' for key, value in counted.items()) + ' time="0"'


def _attribute(text: str) -> str:
    # a parser takes any blank in an attribute for a space
    return '"' + _words(text).replace("\n", "&#10;").replace("\t", "&#9;") + '"'


def _words(text: str) -> str:
    speakable = _UNSPEAKABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return _STEERING.sub(lambda found: f"&#{ord(found[0])};", escape(speakable))


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
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    # what other readers of logs take for the end of a line
    return "".join(char if char.isprintable() or char == " " else _named(char) for char in text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _named(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# A job matrix in the forms that GitHub and GitLab take.


#: The job of GitLab's template whose results are joined.
CHECKING = ".patchkit"


def github_matrix(report: MatrixReport) -> str:
    """For `strategy: matrix: ${{ fromJSON(...) }}`, in one line, as job outputs have to be."""
    rows = [
        {
            "name": job.name,
            "manifest": job.manifest,
            "component": job.component,
            "options": job.options,
            "cache": job.cache,
            "cache-like": job.cache_like,
        }
        for job in report.jobs
    ]
    return json.dumps({"include": rows}, separators=(",", ":"))


def gitlab_pipeline(report: MatrixReport, include: str, extends: str) -> str:
    """A child pipeline: one job of the `include`d template, extended many times.

    After the jobs that check, the template's own job joins what they wrote.
    """
    where = "remote" if "://" in include else "local"
    lines = ["include:", f"  - {where}: {json.dumps(include)}", "patchkit:"]
    lines += [f"  extends: {json.dumps(extends)}", "  parallel:", "    matrix:"]
    lines += [row for job in report.jobs for row in _gitlab_rows(job)]
    if extends == CHECKING:
        lines += ["report:", f"  extends: {json.dumps(f'{CHECKING}-report')}"]
        lines += ["  needs: [patchkit]", "  when: always"]
    return "\n".join(lines)


def _gitlab_rows(job: Job) -> list[str]:
    values = {
        "PATCHKIT_JOB": job.name,
        "PATCHKIT_MANIFEST": job.manifest,
        "PATCHKIT_COMPONENT": job.component,
        "PATCHKIT_SELECTION": job.options,
        "PATCHKIT_CACHE_KEY": job.cache,
        "PATCHKIT_CACHE_LIKE": job.cache_like,
    }
    first, *rest = (f"{name}: {json.dumps(value)}" for name, value in values.items())
    return [f"      - {first}", *(f"        {each}" for each in rest)]


# A stack as a bill of materials: CycloneDX 1.6, each component with its pedigree.
#
# A patched component is not the release that its version names. CycloneDX says so by `pedigree`:
# the ancestor is what upstream published, the patches what was done to it, with what they
# resolve. The document is a pure function of manifest, lock and patch files: it has no time and
# no random number.


#: Serial numbers are named below this (a random UUID, made once).
_NAMESPACE = UUID("7c2c9d55-5f0e-4f3c-9d0a-2a4d7d0b9f11")
_CVE = re.compile(r"\bCVE-\d{4}-\d{4,}\b")
_BACKPORT = re.compile(
    r"^(?:Upstream-Status:[ \t]*Backport|Origin:[ \t]*(?:upstream|backport)\b"
    r"|\(cherry[ -]picked from commit [0-9a-f]{7,}\))",
    re.MULTILINE | re.IGNORECASE,
)
_BUG = re.compile(r"^(?:Bug(?:-[A-Za-z]+)?|Closes|Fixes):[ \t]*(https?://\S+)", re.MULTILINE)


class StackPart(Struct, frozen=True):
    """A component with its patches as they are read."""

    component: Component
    patches: tuple[LoadedPatch, ...]


def unlocked(manifest: Manifest, parts: Iterable[StackPart], lock: Lock | None) -> list[Problem]:
    """Where patches are not those of the lock: nobody may vouch for what nobody has applied."""
    return [each for part in parts for each in _unlocked(manifest, part, lock)]


def _unlocked(manifest: Manifest, part: StackPart, lock: Lock | None) -> Iterator[Problem]:
    name = part.component.name
    locked = recorded_in(lock, name)
    hint = f"patchkit apply {manifest.options(name)} --update-lock"
    if locked is None:
        yield Problem(f"{name} is not in the lock", str(manifest.lock_path.name), hint)
        return
    recorded = [(each.name, each.sha256) for each in locked.patches]
    if recorded != [(each.name, each.sha256) for each in part.patches]:
        yield Problem(
            f"{name}: its patches are not those of the lock", manifest.lock_path.name, hint
        )
    commit = str(part.component.pin)
    if isinstance(part.component.source, GitSource) and commit != locked.commit:
        what = f"{name} is pinned to {short_id(commit)}, the lock has {short_id(locked.commit)}"
        yield Problem(what, manifest.lock_path.name, hint)


def sbom_document(
    manifest: Manifest, parts: Sequence[StackPart], lock: Lock, *, diffs: bool = False
) -> str:
    """The document without a final newline; `diffs` puts the patches' bytes into it.

    Every part is in the lock as it is (see `unlocked`).
    """
    components = [_component(part, lock.components[part.component.name], diffs) for part in parts]
    stack = {"type": "application", "bom-ref": f"stack:{manifest.name}", "name": manifest.name}
    if manifest.description:
        stack["description"] = " ".join(manifest.description.split())
    tool = {
        "type": "application",
        "name": "patchkit",
        "version": __version__,
        "externalReferences": [{"type": "vcs", "url": REPOSITORY}],
    }
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"tools": {"components": [tool]}, "component": stack},
        "components": components,
        "dependencies": [
            {"ref": stack["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}
        ],
    }
    serial = uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return json.dumps({**document, "serialNumber": f"urn:uuid:{serial}"}, indent=2)


def _component(part: StackPart, locked: LockedComponent, diffs: bool) -> dict[str, Any]:
    component = part.component
    released = _released(component)
    found = {
        **released,
        "bom-ref": f"component:{component.name}",
        "properties": [
            {"name": "patchkit:component", "value": component.name},
            {"name": "patchkit:base:tree", "value": locked.tree},
            {"name": "patchkit:result:tree", "value": locked.result},
        ],
    }
    if component.description:
        found["description"] = " ".join(component.description.split())
    if not part.patches:
        return found
    # The purl stays, as scanners look holes up by it; the bytes are no longer the release's.
    found.pop("hashes", None)
    found["version"] = f"{released['version']}+patchkit.{short_id(locked.result)}"
    found["modified"] = True
    found["properties"] += [
        {"name": f"patchkit:patch:{number}:{each.name}", "value": f"sha256:{each.sha256}"}
        for number, each in enumerate(part.patches, 1)
    ]
    found["pedigree"] = {
        "ancestors": [{**released, "bom-ref": f"upstream:{component.name}"}],
        "patches": [_patch(each, component, diffs) for each in part.patches],
        "notes": "\n".join(f"{each.name}: {each.file.subject}" for each in part.patches),
    }
    return found


def _released(component: Component) -> dict[str, Any]:
    """The component as upstream published it."""
    source, pin = component.source, component.pin
    found: dict[str, Any] = {"type": "library", "name": component.name, "version": str(pin)}
    if isinstance(source, GitSource):
        found["purl"] = _git_purl(component.name, source.url, str(pin))
        found["externalReferences"] = [{"type": "vcs", "url": _address(source.url)}]
    elif isinstance(source, IndexSource) and isinstance(pin, IndexPin):
        name = normal_name(source.project)
        found["name"] = name
        found["purl"] = f"pkg:pypi/{quote(name)}@{quote(pin.version)}"
        found["hashes"] = [{"alg": "SHA-256", "content": pin.sha256}]
    elif isinstance(source, ArchiveSource):
        digest = str(pin).removeprefix("sha256:")
        url = _address(source.url)
        found["version"] = digest[:12]
        found["purl"] = (
            f"pkg:generic/{quote(component.name)}?checksum=sha256:{digest}"
            f"&download_url={quote(url, safe='')}"
        )
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
        found["externalReferences"] = [{"type": "distribution", "url": url}]
    return found


def _git_purl(name: str, url: str, commit: str) -> str:
    """GitHub has a type of its own; everything else is named by where it is."""
    parts = urlsplit(url)
    path = parts.path.strip("/").removesuffix(".git")
    if parts.hostname == "github.com" and path.count("/") == 1:
        return f"pkg:github/{quote(path.lower())}@{commit}"
    where = quote(f"git+{_address(url)}@{commit}", safe="")
    return f"pkg:generic/{quote(name)}@{commit}?vcs_url={where}"


def _address(url: str) -> str:
    """A URL without user and password, as an IRI; a local path is quoted."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return quote(parts.geturl(), safe="/:?&=#%+~,;@[]!$'()*", errors="surrogateescape")


def _patch(patch: LoadedPatch, component: Component, diffs: bool) -> dict[str, Any]:
    diff: dict[str, Any] = {"url": _patch_address(patch, component)}
    if diffs:
        content = b64encode(patch.data).decode()
        diff = {
            "text": {"contentType": "text/x-diff", "encoding": "base64", "content": content},
            **diff,
        }
    found: dict[str, Any] = {
        "type": "backport" if _BACKPORT.search(patch.file.message) else "unofficial",
        "diff": diff,
    }
    resolved = list(_resolved(patch.file.message))
    if resolved:
        found["resolves"] = resolved
    return found


def _patch_address(patch: LoadedPatch, component: Component) -> str:
    """The file in the project; of another repository its address, commit and path."""
    origin = patch.origin
    if not isinstance(origin, PinnedPatch):
        return quote(patch.where, errors="surrogateescape")
    if origin.git is not None:
        path = quote(origin.path, errors="surrogateescape")
        return f"{_address(origin.git)}@{origin.commit}#{path}"
    return f"#component:{quote(origin.component or component.name)}"


def _resolved(message: str) -> Iterator[Mapping[str, Any]]:
    """What a patch says that it mends: holes by their number, bugs by their page."""
    for each in dict.fromkeys(_CVE.findall(message)):
        yield {"type": "security", "id": each}
    for url in dict.fromkeys(_BUG.findall(message)):
        yield {"type": "defect", "references": [_address(url)]}
