"""The format's tables for docs/recipes.md, from the declarations.

`python -m patchkit.recipes.reference DOCS` writes them, and the JSON Schema, into a docs folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from patchkit.manifest.reference import with_tables, write_stale
from patchkit.recipes.recipe_format import RECIPE, recipe_schema

BEGIN = "<!-- generated: the tables; `python -m patchkit.recipes.reference docs` writes them -->"


def generated_files(docs: Path) -> dict[Path, str]:
    """Path -> text of everything below `docs` that is made from the declarations."""
    page = docs / "recipes.md"
    return {
        docs / "recipe.schema.json": json.dumps(recipe_schema(), indent=2) + "\n",
        page: with_tables(page.read_text(encoding="utf-8"), RECIPE, BEGIN),
    }


if __name__ == "__main__":
    write_stale(generated_files(Path(sys.argv[1])))
