"""Plain data as YAML in which texts of several lines stand as blocks: for files that hold code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


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
