"""What a shell script or a Dockerfile runs, as far as its text says."""

from __future__ import annotations

from time import monotonic

import pytest

from patchkit.extensions.python_guards.shell_reader import shell_commands


def words(text: str, *, is_dockerfile: bool = False) -> list[tuple[str, ...]]:
    return [each.words for each in shell_commands(text, is_dockerfile=is_dockerfile)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sed -i 's/a b/c/' \"x y\" z\\ w # no", [("sed", "-i", "s/a b/c/", "x y", "z w")]),
        ("A=1; B=\"$A/x\"\nrun ${B}y '$A'", [("run", "1/xy", "$A")]),
        ("run $C \"$(find . -name 'a b')/x\" `pwd`", [("run", "\0", "\0/x", "\0")]),
        ("for f in a b; do run $f; done", [("run", "a"), ("run", "b"), ("done",)]),
        ("if test; then\n  run \\\n  on\nfi", [("test",), ("run", "on"), ("fi",)]),
        ('run "a\\"b" \'c"d\' "\\n"', [("run", 'a"b', 'c"d', "\\n")]),
        ("bash <<EOF\nrun it\nEOF\nrun on", [("run", "it"), ("run", "on")]),
        ("cat > f <<'EOF'\nrun it\nEOF\nrun", [("cat",), ("run",)]),
        ("echo 'unclosed\nrun", [("echo", "unclosed"), ("run",)]),
    ],
)
def test_words(text: str, found: list[tuple[str, ...]]) -> None:
    assert words(text) == found


def test_where_a_command_stands_and_runs() -> None:
    text = "cd /a\n# why\n# so\nrun < in\ncd b && other | run\n"
    run, other, piped = (each for each in shell_commands(text) if each.words[0] != "cd")
    assert (run.line, run.folder, run.comment, run.given) == (4, "/a", "why\nso", "in")
    assert (other.folder, piped.before) == ("/a/b", ("other",))


def test_a_dockerfile() -> None:
    text = (
        "FROM x AS y\nARG TOP=/opt\nENV HOME=$TOP/home\nWORKDIR /w\n"
        "RUN --mount=type=cache cd sub && \\\n    # a note\n    run $HOME \\\n  # more\n    end\n"
        "RUN run\nRUN <<EOF\nrun it\nEOF\n"
    )
    found = [each for each in shell_commands(text, is_dockerfile=True) if each.words[0] == "run"]
    assert [each.words for each in found] == [("run", "/opt/home", "end"), ("run",), ("run", "it")]
    assert [(each.line, each.folder) for each in found] == [(7, "/w/sub"), (10, "/w"), (12, "/w")]


@pytest.mark.parametrize(
    "text", ['"$(' * 3000, "'\"" * 5000, "$((" * 5000, "<<A\n" * 3000, "`" * 9999]
)
def test_bad_text_takes_no_time(text: str) -> None:
    began = monotonic()
    words(text)
    assert monotonic() - began < 10
