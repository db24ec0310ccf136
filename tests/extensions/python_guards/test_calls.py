"""Which names calls give: literals, and texts put together from what is in reach."""

from __future__ import annotations

import pytest

from patchkit.errors import BadInputError
from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.replacements import Replacements, find_replacements
from patchkit.extensions.recipes.captures import captures_in
from tests.extensions.recipes.kitchen import recipe_of

RULE = {"id": "put", "rule": {"pattern": "$_.put($TARGET, $$$)"}, "files": ["src/**"]}


def found(**files: str) -> Replacements:
    data = {f"src/{name}.py": text.encode() for name, text in files.items()}
    return find_replacements(
        captures_in(recipe_of(RULE), "TARGET", data), Modules(data, data.get, "src")
    )


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("m.put('a.b', f)", {"a.b"}),
        ("m.put(\n  'a.'\n  'b', f)", {"a.b"}),
        ("P = 'a'\nm.put(P + '.b', f)", {"a.b"}),
        ("P = 'a'\ndef f():\n    m.put(f'{P}.b', f)", {"a.b"}),
        ("m.put('.'.join(['a', 'b']), f)", {"a.b"}),
        ("for n in ('a', 'b'):\n    m.put(n, f)", {"a", "b"}),
        ("L = [('a', 1), ('b', 2)]\ndef g():\n    [m.put(n, f) for n, f in L]", {"a", "b"}),
        ("def g(q):\n    L = ['a']\n    if q:\n        L.extend(['b'])\n    for n in L:\n"
         "        m.put(n, 1)", {"a", "b"}),
        ("for n in ['x']:\n    for k in ('a', 'b'):\n        m.put(f'{n}.{k}', f)", {"x.a", "x.b"}),
        ("L = [('a', 1), ('b', 2)]\nfor n, f in L:\n    m.put(n, f)", {"a", "b"}),
        ("m.put('a' if x else 'b', f)", {"a", "b"}),
        ("from names import A, B as C\nm.put(A + '.' + C, 1)", {"core.b"}),
        ("import names\nm.put(names.A, 1)", {"core"}),
        ("from names import *\nm.put(f'{A}.{DEEP}', 1)", {"core.core.deep"}),
        ("D = {'x': 'a'}\nm.put(D['x'], 1)", {"a"}),
        ("n = 'a'\nif x:\n    n = 'b'\nelse:\n    n = 'c'\nm.put(f'x.{n}', 1)", {"x.b", "x.c"}),
        ("n = 'a'\nif x:\n    n = 'b'\nm.put(n, 1)", {"a", "b"}),
        # a name that a later loop binds again
        ("for n in ['a']:\n    k = n\nm.put(k, 1)\nfor n in ['b']:\n    k = n", {"a"}),
    ],
)  # fmt: skip
def test_names_that_are_plain_to_see(code: str, names: set[str]) -> None:
    calls = found(calls=code, names="A = 'core'\nB = 'b'\nDEEP = A + '.deep'\n")
    assert set(calls.targets) == names
    assert calls.uncertain == ()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("m.put(name, f)", set()),
        ("def g(n):\n    m.put(n, 1)\ng('a')", {"a"}),
        ("def g(n='a'):\n    m.put(n, 1)", set()),
        ("for n in read():\n    m.put(n, 1)", set()),
        ("for n in ['a', other]:\n    m.put(n, 1)", {"a"}),
        ("for n in ['a', *others]:\n    m.put(n, 1)", {"a"}),
        ("for n, k in [('a', 1), ('b',)]:\n    m.put(k, n)", {"1"}),
        ("m.put(f'a.{kind()}', 1)", set()),
        ("m.put(A.lower(), 1)", set()),
        ("m.put('%s.b' % A, 1)", set()),
        ("D = {'x': 'a'}\nD['x'] = 'b'\nm.put(D['x'], 1)", set()),
        ("L = ['a']\nL[0] = 'b'\nm.put(L[0], 1)", set()),
        ("class C:\n    P = 'a'\n    def g(self):\n        m.put(self.P, 1)", set()),
        # what a list is given later
        ("L = ['a']\nL.extend(more())\nfor n in L:\n    m.put(n, 1)", {"a"}),
        ("L = ['a']\ndef g():\n    L.append('b')\nfor n in L:\n    m.put(n, 1)", {"a"}),
        ("L = ['a']\nL += ['b']\nfor n in L:\n    m.put(n, 1)", {"a", "b"}),
        ("n = 'a'\nif x:\n    n = read()\nm.put(n, 1)", {"a"}),
        ("L = ['a']\nL[0] = 'b'\nfor n in L:\n    m.put(n, 1)", {"a"}),
        ("L = []\nL.append('a')\nfor n in L:\n    m.put(n, 1)", set()),
        ("X = X + 'a'\nm.put(X, 1)", set()),
    ],
)
def test_what_is_not_plain_is_told_and_what_is_known_kept(code: str, names: set[str]) -> None:
    calls = found(calls=code)
    assert set(calls.targets) == names
    assert [site.place for site in calls.uncertain] == [
        f"src/calls.py:{next(n for n, line in enumerate(code.split(chr(10)), 1) if '.put' in line)}"
    ]


def test_a_call_knows_its_place() -> None:
    code = "class Feature:\n    def register(self, m):\n        m.put('ä.b', 1); m.put(f'c', 2)\n"
    (one,), (two,) = found(calls=code).targets.values()
    assert (two.place, two.within, two.text) == ("src/calls.py:3", "Feature.register", "'ä.b'")
    assert one.text == "f'c'"


def test_only_names_in_the_packages() -> None:
    calls = found(calls="m.put('core', 1); m.put('core.x', 1); m.put('corex.y', 1)")
    assert set(calls.below(["core"])) == {"core", "core.x"}


def test_a_rule_must_say_which_argument() -> None:
    rule = {**RULE, "rule": {"pattern": "$_.put($NAME)"}}
    with pytest.raises(BadInputError, match="put does not say which argument"):
        captures_in(recipe_of(rule), "TARGET", {})
