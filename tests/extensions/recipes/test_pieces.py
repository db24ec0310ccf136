"""A rule that is asked of a file's definitions one by one finds what it finds in the file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.extensions.recipes.rule import CodeRule, is_local
from patchkit.extensions.recipes.run import decode_file, sites_in
from patchkit.extensions.recipes.sites import Source, find_sites
from tests.extensions.recipes.kitchen import DROP, recipe_of

_LOCAL: list[dict[str, Any]] = [
    {"kind": "string", "regex": "^[\"']cuda[\"']$"},
    {"any": [{"pattern": "old($$$)"}, {"kind": "decorator", "regex": "^@old$"}]},
    {
        "kind": "keyword_argument",
        "inside": {"kind": "decorator", "stopBy": "end"},
        "not": {"precedes": {"kind": "keyword_argument", "stopBy": "end"}},
    },
    {"pattern": "old($A)", "inside": {"pattern": "class $C: $$$", "stopBy": "end"}},
    {"kind": "function_definition", "has": {"regex": "old", "stopBy": "end"}},
    {"kind": "identifier", "regex": "^old$", "follows": {"kind": "identifier"}},
]
_OTHERS: list[dict[str, Any]] = [
    {"kind": "identifier", "inside": {"has": {"pattern": "import a"}, "stopBy": "end"}},
    {"kind": "identifier", "inside": {"kind": "module", "has": {"regex": "a"}, "stopBy": "end"}},
    {"kind": "function_definition", "follows": {"kind": "import_statement"}},
    {"kind": "function_definition", "precedes": {"regex": "old", "stopBy": "end"}},
    {"kind": "class_definition", "nthChild": 2},
    {"kind": "comment", "regex": "old"},
    {"regex": "old", "not": {"kind": "identifier"}},
    {"pattern": "$A", "regex": "old"},
    {"any": [{"kind": "string"}, {"regex": "old"}]},
]


def _rule(rule: dict[str, Any]) -> CodeRule:
    return recipe_of({"id": "x", "rule": rule, "fix": "new\n  two", "expect": ">= 0"}).rules[0]


def test_which_rules_are_local() -> None:
    assert [each for each in _LOCAL if not is_local(_rule(each))] == []
    assert [each for each in _OTHERS if is_local(_rule(each))] == []
    assert is_local(recipe_of(DROP).rules[0])


_PARTS = [
    "import a\n",
    "old(1)\n",
    "# old\n",
    "@old\n@f(x=old, y='cuda')\ndef f():\n    'old'\n    return old(f, f'cuda'), 'cuda'\n\n\n",
    "class C(B):\n    'cuda'\n\n    @old\n    def m(self, é='cuda'):\n        return old(é)\n",
    "if __name__ == 'cuda':\n    old(old)\n",
    's = """\ndef inner(): old("cuda")\n"""\n',
    "x = (\n    old(\n  'cuda'))  # old\n",
    "def broken(:\n    old(\n",
    "async def g(old): 'cuda'\r\n",
]


@given(st.lists(st.sampled_from(_PARTS), max_size=6), st.sampled_from(_LOCAL + _OTHERS))
def test_the_same_sites(parts: list[str], rule: dict[str, Any]) -> None:
    data = "".join(parts).encode()
    made = _rule(rule)
    found = sites_in([made], "src/a.py", data)
    whole = find_sites(made, Source.of("src/a.py", decode_file(data)[0]))
    if "def broken(:\n    old(\n" in parts:  # the parser takes what is beside it for a part of it
        assert all(site.text in data.decode() for site in found)
    else:
        assert found == whole


@pytest.mark.parametrize("parts", [_PARTS[3:5], [_PARTS[6], _PARTS[3], _PARTS[7]]])
def test_sites_of_a_version_with_other_lines_above(parts: list[str]) -> None:
    """What is kept of a definition holds wherever it stands."""
    made = _rule(_LOCAL[0])
    for above in ("", "import a\n", "x = 'ü'\n\n# more\n"):
        text = above + "".join(parts)
        found = sites_in([made], "src/a.py", text.encode())
        assert found == find_sites(made, Source.of("src/a.py", text))
        assert len(found) > 1
