"""Plain data -> YAML text that loads again to the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from patchkit.manifest.keys import Data
from patchkit.manifest.yaml_nodes import Reading, reading_of

# Plain words: no character or beginning with a meaning in YAML, whatever stands around them.
_PLAIN = re.compile(r"[A-Za-z0-9/_.][A-Za-z0-9/_.+-]*")
# On a line of its own a value may have more: words, URLs.
_PLAIN_LINE = re.compile(r"(?:(?:^| )[A-Za-z0-9/_.(][A-Za-z0-9/_.+@:%~?&=,;()'-]*(?<!:))+")


def yaml_text(data: Mapping[str, Data]) -> str:
    """Data as YAML: blocks, one value a line, with a final newline."""
    return "".join(f"{line}\n" for line in _lines(data, 0))


def flow_mapping(entry: Mapping[str, str | int]) -> str:
    """A mapping of plain values on one line, in braces."""
    return "{" + ", ".join(f"{quoted(key)}: {_scalar(value)}" for key, value in entry.items()) + "}"


def quoted(text: str) -> str:
    """A text as a YAML scalar, with quotes where YAML or a reader could take it for another."""
    if _PLAIN.fullmatch(text) and reading_of(text) is Reading.TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


def _lines(data: Mapping[str, Data], indent: int) -> Iterable[str]:
    for key, value in data.items():
        head = " " * indent + quoted(key) + ":"
        if isinstance(value, dict) and value:
            yield head
            yield from _lines(value, indent + 2)
        elif isinstance(value, list) and value:
            yield head
            yield from _item_lines(value, indent + 2)
        else:
            yield f"{head} {_inline(value)}"


def _item_lines(items: list[Data], indent: int) -> Iterable[str]:
    for item in items:
        dash = " " * indent + "- "
        if isinstance(item, dict):
            first, *rest = _lines(item, indent + 2)
            yield dash + first.lstrip(" ")
            yield from rest
        else:
            yield dash + _inline(item)


def _inline(value: Data) -> str:
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if isinstance(value, str) and _PLAIN_LINE.fullmatch(value):
        return value if reading_of(value) is Reading.TEXT else json.dumps(value)
    return _scalar(value)


def _scalar(value: str | int) -> str:
    return str(value) if isinstance(value, int) else quoted(value)


# Plain data as YAML in which texts of several lines stand as blocks: for files that hold code.


class _Dumper(yaml.SafeDumper):
    """Lists set in, no anchors: what editors and people expect."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """As in PyYAML, but list items stand further in than their key."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        """Equal values are written out, each at its place."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML writes quotes where a block cannot say the text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def block_yaml(data: Mapping[str, Any]) -> bytes:
    """The file's bytes; the keys keep their order."""
    text = yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000
    )
    return str(text).encode()
