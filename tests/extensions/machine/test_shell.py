"""What a manifest says stays a word, a comment, a step: bash itself is the judge."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.extensions.machine import notation as shell
from patchkit.model.names import filled
from tests.support.laws import share

VALUES = {"model": "/data/a b", "workspace": "/w", "odd": "$(echo no) `echo no` \"'\\"}
TEXTS = st.text(
    st.sampled_from("ab0_/:=-[] '\"\\$`!*?~#&;|<>(){}%\té\N{ZERO WIDTH SPACE}"), max_size=12
)
REFERENCES = st.sampled_from([f"${{{name}}}" for name in VALUES])
WITH_VALUES = st.lists(st.one_of(TEXTS.filter(lambda t: "${" not in t), REFERENCES)).map("".join)


def bash(script: str, cwd: Path | None = None) -> bytes:
    """What a script writes; it must succeed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], capture_output=True, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def words(script: Sequence[str]) -> list[str]:
    """The words that bash makes of shell words, with the values as variables."""
    head = "".join(f"{name}={shell.quote(text)}\n" for name, text in VALUES.items())
    out = bash(head + "printf '%s\\0' " + " ".join(script))
    return out.decode().split("\0")[:-1]


@settings(max_examples=share(30))
@given(st.lists(TEXTS, min_size=1))
def test_a_quoted_text_is_one_word_and_itself(texts: list[str]) -> None:
    assert words([shell.quote(text) for text in texts]) == texts


@pytest.mark.slow
@settings(max_examples=share(40))
@given(st.lists(WITH_VALUES, min_size=1))
def test_a_text_with_values_is_one_word_with_the_values_in_it(texts: list[str]) -> None:
    made = words([shell.word(text) for text in texts])
    assert made == [filled(text, VALUES) for text in texts]


@settings(max_examples=share(20))
@given(st.lists(st.one_of(TEXTS, st.just("\n$(exit 9)\n"), st.just("\r$(exit 9)"))))
def test_a_comment_does_nothing(texts: list[str]) -> None:
    lines = shell.comment(" ".join(texts) or "-")
    assert bash(lines + "\necho done") == b"done\n"
    assert all(line.startswith("#") for line in lines.split("\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("torch==2.8.0", "torch==2.8.0"),
        ("a b", "'a b'"),
        ("", "''"),
        ("$HOME", '"\\$HOME"'),
        ("${model}", '"${model}"'),
        ("${model}/sub", '"${model}/sub"'),
        ("${model}_2", '"${model}_2"'),
        ("${model}${odd}", '"${model}${odd}"'),
        ("$${model}", '"\\${model}"'),
    ],
)
def test_words_look_as_people_write_them(text: str, expected: str) -> None:
    assert shell.word(text) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("--lr", "1e-6", "--lr 1e-6"),
        ("--colocate", "", "--colocate"),
        ("--load", "${model}", '--load "${model}"'),
        ("--eval", ("geo3k", "${model}", "a b"), "--eval geo3k \"${model}\" 'a b'"),
        ("-v", "", "-v"),
        ("actor.lr", "1e-6", "actor.lr=1e-6"),
        ("+actor.x", "True", "+actor.x=True"),
        ("actor.empty", "", "actor.empty="),
        ("actor.list", "[1,${model}]", '"actor.list=[1,${model}]"'),
        ("actor.spec", "'[a, b]'", "'actor.spec='\"'\"'[a, b]'\"'\"''"),
    ],
)
def test_arguments(name: str, value: str | tuple[str, ...], expected: str) -> None:
    assert shell.argument(value, name) == expected


@pytest.mark.parametrize(
    ("run", "body"),
    [
        ("make", "    make"),
        ("make a\nmake b\n", "    make a\n    make b"),
        ("pip install \\\n  x", "    pip install \\\n      x"),
        ("cat <<END\nx\nEND\n", "cat <<END\nx\nEND"),
        ("echo 'a\n  b'", "echo 'a\n  b'"),
    ],
)
def test_a_step_is_indented_where_that_changes_nothing(run: str, body: str) -> None:
    assert shell.step_body(run) == body
    plain, inside = (bash(f"make() {{ echo; }}; pip() {{ echo; }}; {x}") for x in (run, body))
    assert plain == inside


@pytest.mark.parametrize("before", [None, "", "/old", "/a:/b"])
def test_folders_go_before_what_is_there(before: str | None) -> None:
    setting = "unset P" if before is None else f"P={before}"
    line = shell.prepended(["${workspace}/x y", "/lib$1"], "P")
    out = bash(f'workspace=/w\n{setting}\nP={line}\nprintf %s "$P"').decode()
    assert out == "/w/x y:/lib$1" + (f":{before}" if before else "")


@pytest.mark.parametrize(
    ("run", "used"),
    [
        ("echo $model", ("model",)),
        ("echo ${model}/x ${mod}", ("model",)),
        ('echo "${model:-x}"', ("model",)),
        ("echo $model_path $$ model", ()),
        ("echo $models", ()),
    ],
)
def test_values_used_in_shell_text(run: str, used: tuple[str, ...]) -> None:
    assert shell.used_in(run, ["model", "workspace"]) == used
