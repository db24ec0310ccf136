"""Calls fit signatures as Python says they do: a call that is made is the oracle."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.extensions.python_guards.callables import (
    arguments_of,
    crossed,
    misfits,
    signature_from,
    signature_text,
)

_NAMES = ("a", "b", "c", "d", "e")


@st.composite
def parameters(draw: st.DrawFn) -> str:
    """The parameters of a definition, every kind of them, as text."""
    names = list(_NAMES[: draw(st.integers(0, 5))])
    first = draw(st.integers(0, len(names)))
    slash = draw(st.integers(0, first))
    optional = draw(st.integers(0, first))
    words = [f"{name}=0" if n >= optional else name for n, name in enumerate(names[:first])]
    if slash:
        words.insert(slash, "/")
    star = draw(st.sampled_from(["", "*rest"]))
    if star or first < len(names):
        words.append(star or "*")
    words += [name if draw(st.booleans()) else f"{name}=0" for name in names[first:]]
    words += draw(st.sampled_from([[], ["**more"]]))
    return ", ".join(words)


@st.composite
def arguments(draw: st.DrawFn) -> str:
    """What a call passes, as text; no keyword twice, which no Python parses."""
    positions = ["0"] * draw(st.integers(0, 6))
    keywords = draw(st.lists(st.sampled_from([*_NAMES, "z"]), unique=True, max_size=4))
    return ", ".join([*positions, *(f"{name}=0" for name in keywords)])


@given(parameters(), arguments())
def test_a_call_fits_where_python_binds_it(taken: str, passed: str) -> None:
    made: dict[str, Any] = {}
    exec(f"def f({taken}): pass", made)
    try:
        eval(f"f({passed})", made)
        fits = True
    except TypeError:
        fits = False
    assert (reasons(taken, passed) == []) == fits


def reasons(taken: str, passed: str) -> list[str]:
    """Why `f(passed)` does not fit `def f(taken)`."""
    function, call = (
        ast.parse(f"def f({taken}): pass").body[0],
        ast.parse(f"f({passed})", mode="eval"),
    )
    assert isinstance(function, ast.FunctionDef) and isinstance(call.body, ast.Call)
    signature, given = signature_from(function.args), arguments_of(call.body)
    return [*misfits(signature, given), *crossed(signature, given)]


@pytest.mark.parametrize(
    ("taken", "passed", "told"),
    [
        ("a", "1, 2", "takes 1 positional argument, is given 2"),
        ("", "1", "takes 0 positional arguments, is given 1"),
        ("a, b, c", "1", "needs b, c"),
        ("a", "1, a=1", "is given a by position and by name"),
        ("a", "1, z=1", "takes no argument z"),
    ],
)
def test_a_misfit_is_told_in_words(taken: str, passed: str, told: str) -> None:
    assert reasons(taken, passed) == [told]


@pytest.mark.parametrize(
    ("taken", "passed", "told"),
    [
        # what is open is taken to fit
        ("a, b", "*n", ""),
        ("a, b", "**n", ""),
        ("a, b", "1, **n", ""),
        ("a, b", "*n, c=1", "takes no argument c"),
        ("a", "1, 2, *n", "takes 1 positional argument, is given 2"),
        ("a", "*n, 1, 2", "takes 1 positional argument, is given 2"),
        ("a, *, b", "*n", "needs b"),
        ("a, b, /", "**n", "needs a, b"),
        # names
        ("source, target", "source, target", ""),
        ("source, target", "target, source",
         "target is passed as source, source is passed as target"),
        ("source, target", "self.target, self.source",
         "target is passed as source, source is passed as target"),
        ("source, target", "one, two", ""),
        ("source, target", "target=source, source=target", ""),
        ("x, weight, size, eps", "x, size, eps, weight",
         "size is passed as weight, eps is passed as size, weight is passed as eps"),
        ("x, y=None", "y", ""),  # the other one gets nothing
    ],
)  # fmt: skip
def test_what_follows_from_what_is_known(taken: str, passed: str, told: str) -> None:
    assert ", ".join(reasons(taken, passed)) == told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{'a': 1}", ""),
        ("dict(a=1)", ""),
        ("{'a': 1, 'z': 2}", "takes no argument z"),
        ("dict(a=1, z=2)", "takes no argument z"),
        ("{}", "needs a"),
        ("{'a': 1, **n}", ""),
        ("{n: 1}", ""),
        ("dict(n)", ""),
    ],
)
def test_a_dict_that_is_written_down(given: str, told: str) -> None:
    assert ", ".join(reasons("a", f"**{given}")) == told


@pytest.mark.parametrize("taken", ["", "a", "a, b=1, /, c=2, *, d, e=3", "*x, y", "a, /, **k"])
def test_a_signature_is_shown_as_it_is_written(taken: str) -> None:
    function = ast.parse(f"def f({taken}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    plain = taken.replace("1", "...").replace("2", "...").replace("3", "...")
    assert signature_text(signature_from(function.args)) == f"({plain})"
