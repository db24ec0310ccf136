"""Pins in files that other tools read: found exactly once, and only their characters change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.manifest.pin_places import find_spot
from patchkit.manifest.values import FilePlace, Location
from tests.support.laws import share

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WHERE = Location(Path("manifests/demo.yaml"), 5)


def place(file: str = "file", **form: Any) -> FilePlace:
    return FilePlace(file=file, where=WHERE, **form)


#: Form -> its key's value, and texts as people write them, with VALUE in the place of the pin.
FORMS: dict[str, tuple[str, list[str]]] = {
    "arg": (
        "SGLANG_COMMIT",
        [
            "FROM base\nARG SGLANG_COMMIT=VALUE\nRUN git checkout ${SGLANG_COMMIT}\n",
            'ARG OTHER=1\n# ARG SGLANG_COMMIT=old\nARG SGLANG_COMMIT="VALUE"\nARG SGLANG_COMMIT\n',
            "ENV A=1 \\\n    SGLANG_COMMIT=VALUE \\\n    B=2\n",
            "  env SGLANG_COMMIT VALUE\nENV SGLANG_COMMIT=$OTHER MY_SGLANG_COMMIT=1\n",
            "ARG A=1 'SGLANG_COMMIT=x'\nARG SGLANG_COMMIT='VALUE'",
        ],
    ),
    "variable": (
        "LIB_VERSION",
        [
            "# LIB_VERSION = 1\nLIB_VERSION = VALUE # see the list\nX = $(LIB_VERSION)\n",
            "LIB_VERSION := VALUE\nLIB_VERSION_2 := b\n",
            'export LIB_VERSION="VALUE"\n',
            "pkgname=x\nLIB_VERSION='VALUE'\nsource=($LIB_VERSION)\n",
            '  LIB_VERSION = "VALUE",\n',
            '{\n  "name": "x",\n  "LIB_VERSION": "VALUE",\n  "port-version": 1\n}\n',
            "source:\n  git_url: https://x/y.git\n  LIB_VERSION: VALUE  # 1\n  fn: {{ LIB }}\n",
            '{% set LIB_VERSION = "VALUE" %}\npackage:\n  version: {{ LIB_VERSION }}\n',
            "{\n  upstream:\n  {\n    url: https://x/y\n    LIB_VERSION: VALUE\n  }\n}\n",
            "Name: x\nLIB_VERSION: VALUE\nSource0: %{name}-%{LIB_VERSION}.tgz\n",
        ],
    ),
    "cmake": (
        "json",
        [
            "FetchContent_Declare(json\n  GIT_REPOSITORY git://x/z\n  GIT_TAG VALUE # v3\n)\n",
            "fetchcontent_declare( json # (why)\n GIT_TAG VALUE)\nset(b c)",
            'ExternalProject_Add(json PREFIX p\n # GIT_TAG old\n GIT_TAG "VALUE" GIT_SHALLOW 1)\n',
            "# set(json old)\nset(json VALUE)\nset(jsonx b)\n",
            "vcpkg_from_github(\n  OUT_SOURCE_PATH json\n  REPO a/b\n  REF VALUE\n  SHA512 0\n)\n",
        ],
    ),
    "deps": (
        "src/nan",
        [
            "deps = {\n  'src/nan': 'https://x.y/nan.git@VALUE',\n}\n",
            "deps = {\n 'src/nan': {\n 'url': 'git://x/n@VALUE', 'a': 'c'},\n}",
            "vars = {'a_revision': 'b', \"src/nan\": \"VALUE\"}",
            "deps = {'src/nan':\n Var('git') + '/n.git' + '@' + 'VALUE', 'b': Var('g')}",
            "deps = {'src/nan': Var('git') + '/n.git@VALUE'}",
        ],
    ),
    "key": (
        "sources.1.2.0.0.rev",
        [
            'sources:\n  "1.2.0":\n    - rev: VALUE  # here\n      sha256: b\n',
            '{"sources": {"1.2.0": [{\n\t"rev": "VALUE"}]}, "rev": "c"}\n',
            "sources: {1.2.0: [{rev: 'VALUE'}]}\n",
        ],
    ),
    "pattern": (
        r'^git_revision\("([^"]*)"\)',
        ['x\ngit_revision("VALUE")\n# git_revision("b")\n', 'git_revision("VALUE")'],
    ),
    "": ("", ["VALUE\n", "VALUE", "\n  VALUE \n\n"]),
}

#: A tag or a commit id.
VALUES = st.one_of(
    st.just(COMMIT), st.from_regex(r"[a-z][a-zA-Z0-9_]{0,8}([./-][0-9]{1,4}){0,3}", fullmatch=True)
)


@st.composite
def written(draw: st.DrawFn) -> tuple[FilePlace, str, str]:
    """A place, a file with VALUE in it, and what is to stand there."""
    form = draw(st.sampled_from(sorted(FORMS)))
    name, texts = FORMS[form]
    text = draw(st.sampled_from(texts))
    if form not in ("key", "") and draw(st.booleans()):
        text = draw(st.sampled_from(["# é\n", "\n\n", "other = 1\n"])) + text + "\n# end é\n"
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        text = "\ufeff" + text
    return place(**({form: name} if form else {})), text, draw(VALUES)


@settings(max_examples=share(1500))
@given(written(), VALUES)
def test_what_is_read_is_what_is_written(each: tuple[FilePlace, str, str], new: str) -> None:
    where, text, value = each
    before = text.replace("VALUE", value).encode()
    spot = find_spot(where, before)
    assert spot.value == value
    assert spot.line == text.partition("VALUE")[0].count("\n") + 1
    assert spot.with_value(value, before) == before
    after = spot.with_value(new, before)
    assert after == text.replace("VALUE", new).encode()
    assert find_spot(where, after).value == new


@pytest.mark.parametrize("form", [each for each in FORMS if each])
def test_what_is_not_there_exactly_once_is_refused(form: str) -> None:
    name, texts = FORMS[form]
    for text in texts:
        data = text.replace("VALUE", "v1.0").encode()
        if form != "key":
            refused(place(**{form: name}), data + b"\n" + data, "is there 2 times")
        other = place(**{form: name.replace("rev", "no").replace("O", "X").replace("n", "m")})
        refused(other, text.replace("VALUE", "v1.0").replace("json", "jso").encode(), "has no")


def refused(where: FilePlace, data: bytes, what: str, hint: str = "") -> None:
    with pytest.raises(BadInputError) as caught:
        find_spot(where, data)
    (problem,) = caught.value.problems
    assert what in str(problem), problem
    assert hint in problem.hint, problem
    assert re.search(r":[0-9, ]+$", problem.where), problem


REFUSED: list[tuple[Callable[[], FilePlace], bytes, str, str]] = [
    (
        lambda: place(arg="A"),
        b"ARG B=1\nENV C=2\nARG B=2\n",
        "file has no arg A",
        "it has arg B, C",
    ),
    (
        lambda: place(variable="A"),
        b"nothing here\n",
        "file has no variable A",
        "nothing of that form",
    ),
    (lambda: place(arg="A"), b"ARG A=1\nARG A=1\n", "file:1, 2: arg A is there 2 times", "pattern"),
    (lambda: place(arg="A", key="b"), b"ARG A=1", "looked at by arg and key", "one of them"),
    (place, b"a b\n", "file has no line of one word", "other forms: arg"),
    (lambda: place(arg="A"), b"one\nARG A=\xff\n", "file:2: not UTF-8", ""),
    (lambda: place(key="a"), b"a: |\n  text\n", "file:1: a is not written as one word", ""),
    (lambda: place(key="a"), b'a: "\\x76"\n', "file:1: a is not written as one word", ""),
    (lambda: place(key="a"), b"a: [1\n", "file:1: not YAML", ""),
    (
        lambda: place(pattern="^((?:a|aa)+)$"),
        b"a" * 40 + b"!",
        "seconds in file",
        "repeat",
    ),
]


@pytest.mark.parametrize(
    ("where", "data", "what", "hint"), REFUSED, ids=[each[2] for each in REFUSED]
)
def test_each_mistake_is_told(
    where: Callable[[], FilePlace],
    data: bytes,
    what: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("patchkit.manifest.pin_places.PATIENCE", 0.05)
    refused(where(), data, what, hint)


def test_a_number_is_quoted_where_yaml_would_take_it_for_one() -> None:
    spot = find_spot(place(key="rev"), b"rev: v1\n")
    assert spot.with_value("1.10", b"rev: v1\n") == b'rev: "1.10"\n'
    assert spot.with_value("v1.10", b"rev: v1\n") == b"rev: v1.10\n"
