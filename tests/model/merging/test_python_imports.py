"""Imports of one line each, merged as sets."""

from __future__ import annotations

import pytest

from patchkit.model.merging.python_imports import imported_by, merge_imports


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import a\n", {("a", "", "")}),
        ("import a.b as c, d  # why\n", {("a.b", "", "c"), ("d", "", "")}),
        ("  from a import b, c as d,\r\n", {("a", "b", ""), ("a", "c", "d")}),
        ("\n# nothing\n   \n", set()),
        ("import a\nx = 1\n", None),
        ("from a import (b)\n", None),
        ("from a import *\n", None),
        ("importlib.reload(a)\n", None),
    ],
)
def test_what_lines_import(text: str, imported: set[tuple[str, str, str]] | None) -> None:
    found = imported_by(text.encode().splitlines(True))
    assert found == (
        None if imported is None else {tuple(map(str.encode, each)) for each in imported}
    )


@pytest.mark.parametrize(
    ("base", "upstream", "patch", "merged"),
    [
        (
            "import a\n",
            "import a\nimport u\n",
            "import a\nimport p\n",
            "import a|import u|import p",
        ),
        ("import a\n", "import u\n", "import a\nimport p\n", "import u|import p"),
        (
            "import a\nimport b\n",
            "import a\nimport b\nimport u\n",
            "import b\n",
            "import b|import u",
        ),
        ("import a\nimport b\n", "import a\nimport u\n", "import a\n", "import a|import u"),
        ("import a\n", "import a\nimport p\n", "import a\nimport p\n", "import a|import p"),
        # what it takes away stands in one line with something else
        ("import a\nimport b\n", "import a, b\n", "import a\n", None),
        # what it adds stands in one line with something that is there
        ("from m import a\n", "from m import a, u\n", "from m import a, p\n", None),
        ("x = 1\n", "import u\n", "import p\n", None),
        ("import a\n", "x = 1\n", "import p\n", None),
        ("import a\n", "import u\n", "x = 1\n", None),
    ],
)
def test_names_come_and_go(base: str, upstream: str, patch: str, merged: str | None) -> None:
    lines = merge_imports(*(text.encode().splitlines(True) for text in (base, upstream, patch)))
    assert (b"".join(lines).decode() if lines is not None else None) == (
        None if merged is None else merged.replace("|", "\n") + "\n"
    )
