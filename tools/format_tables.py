"""Tables and JSON Schemas of the manifest's and the recipes' formats, from their declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from patchkit.extensions.recipes.recipe_file import recipe_schema
from patchkit.extensions.recipes.run import Recipe
from patchkit.manifest.json_schema import describe, schema_text
from patchkit.manifest.keys import record_of
from patchkit.manifest.types import (
    ByForm,
    Choice,
    DependentShape,
    Later,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
)
from patchkit.manifest.values import Manifest


def format_files(docs: Path) -> dict[Path, str]:
    """Path -> text of each JSON Schema below the folder `docs`."""
    return {
        docs / "manifest.schema.json": schema_text(),
        docs / "manifest-part.schema.json": schema_text(part=True),
        docs / "recipe.schema.json": json.dumps(recipe_schema(), indent=2) + "\n",
    }


def key_reference() -> str:
    """Every key of a manifest and of a recipe, as tables."""
    return (
        f"# Keys of manifests\n\n{tables(record_of(Manifest))}\n"
        f"# Keys of recipes\n\n{tables(record_of(Recipe))}"
    )


def tables(root: Record) -> str:
    """A Markdown table for each record of the format, the outermost first."""
    return "\n".join(_section(title, record) for title, record in _records(root))


def _records(root: Record) -> list[tuple[str, Record]]:
    """Each record once, with its title, outermost first."""
    found: list[tuple[str, Record]] = [(root.name, root)]
    for _, record in found:  # grows while it is walked
        for field in record.fields:
            found += [new for new in _inner(field.shape) if new not in found]
    return found


def _inner(shape: Shape) -> Iterator[tuple[str, Record]]:
    match shape:
        case Record():
            yield shape.name, shape
        case ListOf() | MapOf():
            yield from _inner(shape.of)
        case Choice():
            for option in shape.options:
                yield f"{shape.name}: {option.first}", option
        case ByForm():
            for each in shape.shapes:
                yield from _inner(each)
        case Later():
            yield from _inner(shape.of())
        case DependentShape():
            for name, each in shape.shapes.items():
                if isinstance(each, Record):
                    yield f"{shape.name} of {name} source", each


def _section(title: str, record: Record) -> str:
    lines = [f"### {title[0].upper()}{title[1:]}", ""]
    if record.description:
        lines += [record.description, ""]
    lines += ["| key | value | meaning |", "|---|---|---|"]
    for field in record.fields:
        key = f"`{field.key}`" + (" (required)" if field.required else "")
        lines.append(f"| {key} | {_value(field.shape)} | {describe(field)} |")
    return "\n".join(lines) + "\n"


def _value(shape: Shape) -> str:
    match shape:
        case Text():
            value = shape.what
        case Number():
            value = " to ".join(dict.fromkeys((str(shape.minimum), str(shape.maximum))))
        case ListOf():
            value = f"list: {_value(shape.of)}"
        case MapOf():
            value = f"mapping: {shape.key.what} to {_value(shape.of)}"
        case Record() | Choice() | ByForm() | Later():
            value = shape.name
        case DependentShape():
            value = f"as the {shape.other} asks"
    return value
