"""Rules as a person would write them."""

from __future__ import annotations

import re
from typing import Any

#: Kinds of Python's nodes that are code, or that code, only with something around them.
_AROUND = {
    "keyword_argument": "f({})",
    "default_parameter": "def f({}): ...",
    "typed_default_parameter": "def f({}): ...",
}


def pattern_rule(language: str, text: str, kind: str = "") -> dict[str, Any]:
    """The rule that finds such code; `kind` is its kind of node where that is known."""
    if language == "python" and kind in _AROUND:
        return {"pattern": {"context": _AROUND[kind].format(text), "selector": kind}}
    if language == "python" and text.startswith("@"):
        name = text[1:].partition("#")[0].strip()
        if re.fullmatch(r"[\w.]+", name):
            # a comment behind it belongs to the decorator, so its text is not compared
            return {"kind": "decorator", "has": {"pattern": name}}
        return {"pattern": {"context": f"{text}\ndef f(): ...", "selector": "decorator"}}
    return {"pattern": text}
