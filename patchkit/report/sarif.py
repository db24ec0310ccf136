"""Notices as SARIF 2.1.0, the form that code scanning pages read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from patchkit import __version__
from patchkit.report.notices import HELP, RULES
from patchkit.report.values import Level, Notice

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "The result's own text says what to do; `patchkit check` prints it with all details."
_RANK = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}


def sarif_document(notices: Iterable[Notice]) -> str:
    """The log of one run; without a final newline."""
    listed = list(notices)
    rules = list(dict.fromkeys(each.rule for each in listed))
    run = {
        "tool": {
            "driver": {
                "name": "patchkit",
                "semanticVersion": __version__,
                "rules": [_rule(each) for each in rules],
            }
        },
        "columnKind": "utf16CodeUnits",
        "results": [_result(each, rules.index(each.rule)) for each in listed],
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


def _result(notice: Notice, rule: int) -> dict[str, Any]:
    fingerprint = sha256(_text(f"{notice.rule}\0{notice.subject}").encode()).hexdigest()
    result: dict[str, Any] = {
        "ruleId": notice.rule,
        "ruleIndex": rule,
        "level": _RANK[notice.level],
        "message": {"text": _text(notice.message)},
        "partialFingerprints": {"patchkit/v1": fingerprint},
    }
    if notice.path:
        place = {
            "artifactLocation": {"uri": quote(notice.path, errors="surrogateescape")},
            "region": {"startLine": max(1, notice.line)},
        }
        result["locations"] = [{"physicalLocation": place}]
    return result


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
