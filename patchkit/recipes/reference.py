"""The format's tables for docs/recipes.md, from the declarations.

`python -m patchkit.recipes.reference DOCS` writes them, and the JSON Schema, into a docs folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from patchkit.atomic import replace_file
from patchkit.manifest.reference import END, tables
from patchkit.recipes.fields import RECIPE, recipe_schema

BEGIN = "<!-- generated: the tables; `python -m patchkit.recipes.reference docs` writes them -->"


def generated_files(docs: Path) -> dict[Path, str]:
    """Path -> text of everything below `docs` that is made from the declarations."""
    page = docs / "recipes.md"
    return {
        docs / "recipe.schema.json": json.dumps(recipe_schema(), indent=2) + "\n",
        page: _with_tables(page.read_text(encoding="utf-8")),
    }


def _with_tables(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables(RECIPE)}\n{END}{after}"


def main(docs: Path) -> None:
    """Write everything that is out of date."""
    for path, text in generated_files(docs).items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            replace_file(path, text.encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
