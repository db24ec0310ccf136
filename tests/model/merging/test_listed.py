"""Names in imports and `__all__`: merged as sets, in upstream's own layout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.carry.carried import CERTAIN, confidence_of
from patchkit.model.merging.merge import merge_file
from patchkit.model.merging.python_imports import merge_listed
from patchkit.model.merging.regions import Rule

REST = "\n\ndef f():\n    return 1\n"


def merged(base: str, upstream: str, patch: str) -> str | None:
    """The file as merged, by the rule for names, flagged; None for a conflict."""
    sides = (f"import os\n{text}{REST}".encode() for text in (base, upstream, patch))
    merge = merge_file("m.py", *sides)
    assert merge is not None
    if merge.data is None:
        return None
    assert Rule.IMPORTS in [each.rule for _, each in merge.steps if each is not None]
    assert confidence_of(merge).lines < CERTAIN
    assert merge.data.startswith(b"import os\n")
    assert merge.data.endswith(REST.encode())
    return merge.data.decode()[len("import os\n") : -len(REST)]


def block(module: str, *names: str) -> str:
    rows = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{rows})\n"


def test_a_line_that_upstream_wrapped() -> None:
    base = "from a import one, two\n"
    upstream = block("a", "one", "three", "two")
    assert merged(base, upstream, "from a import one, only, two\n") == block(
        "a", "one", "only", "three", "two"
    )


def test_a_block_that_upstream_made_a_line() -> None:
    base = block("a", "One", "two", "zoo")
    patch = block("a", "One", "Own", "two")
    assert merged(base, "from a import One, two, zoo\n", patch) == "from a import One, Own, two\n"


def test_a_line_that_gets_too_long_becomes_a_block() -> None:
    names = [f"a_rather_long_name_{letter}" for letter in "abcd"]
    base = f"from a import {names[0]}, {names[1]}\n"
    upstream = f"from a import {', '.join(names[:3])}\n"
    patch = f"from a import {names[0]}, {names[1]}, {names[3]}\n"
    assert merged(base, upstream, patch) == block("a", *names)


def test_a_statement_goes_where_it_is_sorted() -> None:
    base = "from a import one\nfrom c import two\n"
    upstream = "from a import one, uno\nfrom d import two\n"
    patch = "from a import one\nfrom b import (\n    own,\n)\nfrom c import too, two\n"
    assert merged(base, upstream, patch) == (
        "from a import one, uno\nfrom b import own\nfrom c import too\nfrom d import two\n"
    )


def test_exported_names() -> None:
    base = '__all__ = [\n    "one",\n    "two",\n    "six",\n]\n'
    upstream = base.replace('"two"', '"deux"').replace('    "six",\n', "")
    patch = base.replace('"two"', '"zwei"').replace('    "six",\n', '    "six",\n    "ten",\n')
    assert merged(base, upstream, patch) == (
        '__all__ = [\n    "one",\n    "deux",\n    "zwei",\n    "ten",\n]\n'
    )


def test_a_block_without_a_last_comma_gets_one() -> None:
    base, upstream = "from a import one\n", "from a import (\n    one,\n    two\n)\n"
    assert merged(base, upstream, "from a import one, zoo\n") == block("a", "one", "two", "zoo")


@pytest.mark.parametrize(
    ("upstream", "own", "merged"),
    [
        (block("c", "u") + "from b import x\n\n", "import zlib", "{}import zlib\n\n"),
        (block("a", "u"), "from b import own as mine", "{}from b import own as mine\n"),
        (block("a", "u") + "\n\n", "from b import own", "{}from b import own\n\n\n"),
        (block("c", "u"), "from b import own", "from b import own\n{}"),
        (block("c", "u"), "import b as own", "import b as own\n{}"),
        ("# none\n", "from b import own", "{}from b import own\n"),
        ("\n", "from b import own", "from b import own\n{}"),
    ],
)
def test_where_a_new_statement_goes(upstream: str, own: str, merged: str) -> None:
    """Sorted among the others, if they are; else behind the last; empty lines stay at the end."""
    base, patch = "from m import o\n", f"from m import o\n{own}\n"
    sides = [side.encode().splitlines(True) for side in (base, upstream, patch)]
    found = merge_listed(sides[0], sides[1], sides[2])
    bare = upstream.rstrip("\n") + "\n" if upstream.strip() else upstream
    assert found is not None
    assert b"".join(found).decode() == merged.format(bare)


def test_indented_imports_with_other_line_ends() -> None:
    def text(*lines: str) -> bytes:
        return "".join(f"{line}\r\n" for line in ("def f():", *lines, "    return 1")).encode()

    base = text("    from a import one, two")
    upstream = text("    from a import (", "        one,", "        six,", "    )")
    patch = text("    from a import one, two", "    from b import own")
    merge = merge_file("m.py", base, upstream, patch)
    assert merge is not None
    assert merge.data == text(
        "    from a import (", "        one,", "        six,", "    )", "    from b import own"
    )
    added = text("    from a import one, own, two")
    merge = merge_file("m.py", base, upstream, added)
    assert merge is not None
    assert merge.data == text(
        "    from a import (", "        one,", "        own,", "        six,", "    )"
    )


@pytest.mark.parametrize(
    ("base", "upstream", "patch"),
    [
        ("from a import b\nx = 1\n", "from a import c\nx = 2\n", "from a import d\nx = 3\n"),
        ("from a import (b,\n  c)\n", "from a import (b,\n  d)\n", "from a import (b,\n  e)\n"),
    ],
)
def test_what_cannot_be_said_is_a_conflict(base: str, upstream: str, patch: str) -> None:
    assert merged(base, upstream, patch) is None


def test_a_module_that_is_imported_elsewhere_is_a_conflict() -> None:
    base, tail = "from a import one\n", "\n\ndef g():\n    return 2\n"
    upstream = f"import sys\n{tail}\n\nfrom a import one\n"
    assert merged(base + tail, upstream, f"from a import one, two\n{tail}") is None


@pytest.mark.parametrize("upstream", ["from c import one\n", "import re\n"])
def test_a_name_that_both_take_from_elsewhere_is_a_conflict(upstream: str) -> None:
    """Upstream imports it from a third module, or no more."""
    assert merged("from a import one\n", upstream, "from b import one\n") is None
    assert (
        merged("from a import one, two\n", f"from a import two\n{upstream}", "from b import one\n")
        is None
    )


NAMES = st.lists(
    st.sampled_from(["alpha", "Beta", "gamma", "delta", "eta"]), unique=True, min_size=1
)


@given(NAMES, NAMES, NAMES, st.booleans())
def test_law_names_are_merged_as_sets(
    base: list[str],
    upstream: list[str],
    patch: list[str],
    wrapped: bool,
) -> None:
    def written(names: list[str], *, rows: bool = False) -> bytes:
        line = f"from a import {', '.join(names)}\n"
        return ((block("a", *names) if rows else line) + REST).encode()

    merge = merge_file("m.py", written(base), written(upstream, rows=wrapped), written(patch))
    assert merge is not None
    wanted = (set(upstream) | (set(patch) - set(base))) - (set(base) - set(patch))
    if merge.data is not None and wanted:
        code = merge.data.decode().partition("\n\n")[0]
        names = code.partition("import")[2].replace("(", "").replace(")", "")
        assert {each.strip() for each in names.split(",") if each.strip()} == wanted
