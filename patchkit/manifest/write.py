"""Plain data -> YAML text that loads again to the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from patchkit.manifest.yaml_nodes import Reading, reading_of

# Plain words: no character or beginning with a meaning in YAML, whatever stands around them.
_PLAIN = re.compile(r"[A-Za-z0-9/_.][A-Za-z0-9/_.+-]*")


def flow_mapping(entry: Mapping[str, str | int]) -> str:
    """A mapping of plain values on one line, in braces."""
    pairs = (
        f"{quoted(key)}: {value if isinstance(value, int) else quoted(value)}"
        for key, value in entry.items()
    )
    return "{" + ", ".join(pairs) + "}"


def quoted(text: str) -> str:
    """A text as a YAML scalar, with quotes where YAML or a reader could take it for another."""
    if _PLAIN.fullmatch(text) and reading_of(text) is Reading.TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


class _Dumper(yaml.SafeDumper):
    """Lists set in, no anchors: what editors and people expect."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """As in PyYAML, but list items stand further in than their key."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        """Equal values are written out, each at its place."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML writes quotes where a block or a plain word cannot say the text; what any other YAML
    # takes for a number or the like is quoted, too
    style = "|" if "\n" in text else None if reading_of(text) is Reading.TEXT else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def yaml_text(data: Mapping[str, Any]) -> str:
    """Data as YAML: one value a line, a text of several lines as a block; keys keep their order."""
    return str(
        yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    )
