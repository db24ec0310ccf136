"""What a user can type and write: `python -m tools.abilities` prints it, an ability a line.

An ability is a command (`bump`), an option (`bump --to`, `--version`) or a key of a manifest
(`key: components.*.pin`, where `*` is a name that the user chooses).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.figures import ROOT, options_of, words_and_options

SCHEMA = ROOT / "docs" / "manifest.schema.json"


def abilities() -> list[str]:
    """Commands and their options in the order of `--help`, then the keys of a manifest."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    return [*_commands(), *(f"key: {key}" for key in dict.fromkeys(_keys(schema, schema, "")))]


def _commands() -> Iterator[str]:
    yield from sorted(options_of() - {"--help"})
    for word, options in words_and_options().items():
        yield word
        yield from (f"{word} {option}" for option in sorted(options - {"--help"}))


def _keys(schema: Mapping[str, Any], node: Mapping[str, Any], path: str) -> Iterator[str]:
    """The keys that a node of a JSON Schema allows below `path`, with dots between them."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    for combined in ("anyOf", "oneOf", "allOf"):
        for part in node.get(combined, ()):
            yield from _keys(schema, part, path)
    for key, part in node.get("properties", {}).items():
        below = f"{path}.{key}".lstrip(".")
        yield below
        yield from _keys(schema, part, below)
    for part in (node.get("additionalProperties"), *node.get("patternProperties", {}).values()):
        if isinstance(part, dict):
            yield from _keys(schema, part, f"{path}.*")
    if isinstance(node.get("items"), dict):
        yield from _keys(schema, node["items"], path)


if __name__ == "__main__":
    print(*abilities(), sep="\n")
