"""What a module's assignments come to, without running it."""

from __future__ import annotations

import pytest

from patchkit.model.syntax import module_constants, parse_python


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("'1'", "1"), ("a + 'y'", "xy"), ("str(3)", "3"), ("a", "x"), ("other", None)),
        (f"str({'9' * 400})", None),
        *(("'-'.join(['1', a])", "1-x"), ("'-'.join(map(str, [1, 2]))", "1-2")),
        *(("'-'.join([[1]])", None), ("a.joined([a])", None), ("a.join(a, a)", None)),
        *(("[1, 2, 3][1:]", (2, 3)), ("[1, 2, 3][:2]", (1, 2)), ("(1,)[0]", 1), ("(1,)[1]", None)),
        *(("f'{a}.{1}'", "x.1"), ("f'{[1]}'", None), ("[1] + [a]", (1, "x")), ("a * 2", None)),
    ],
)
def test_what_an_assignment_comes_to(text: str, value: object) -> None:
    tree, _ = parse_python(f"a = 'x'\nb: object = {text}\n".encode())
    assert module_constants(tree) == {"a": "x", "b": value}
