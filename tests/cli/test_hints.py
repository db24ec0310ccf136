"""Every command that a message or a help page prints can be typed as it is printed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import patchkit
from patchkit.cli.catalog import all_commands, split_command
from patchkit.cli.command import load_command

_ROOT = Path(patchkit.__file__).parent
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
#: What stands in a message for a value that is known only when it is printed.
_VALUE = "\N{WHITE SQUARE}"
_SELECTIONS = {"target": "-m one -c two", "options()": "-m one"}
#: A command in a text: at the beginning of a line, behind a colon, or as code.
_TYPED = re.compile(r"(?:(?:^ *|: )(patchkit .*?)(?:  .*)?$|`(patchkit [^`]*)`)", re.MULTILINE)
_NAMED = re.compile(rf"\bpatchkit (?:{'|'.join({name.split()[0] for name in all_commands()})})\b")
#: Where nothing of the user's is known yet, and where a form is shown.
_PLACEHOLDERS = {
    "patchkit refresh --new NAME -m one -c two",  # after an edit, which only the user can name
    "patchkit export --format machine --set @FILE",
    "patchkit check\n# --only sites --accept --reason ...",  # in the head of a file
    "patchkit init NAME --git URL --ref TAG",
    "patchkit init demo --git URL --ref ID --component mbridge",
    "patchkit add trainer -m demo --git URL --ref ID",
    "patchkit bump zlib --to 1.3.1 --sha256 9a93b2...",
    "patchkit split PATCH --new NAME --file src/a.py --file src/b.py:2",
}


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            name = re.sub(r"options\(.+\)$", "target", ast.unparse(part.value))
            parts.append(_SELECTIONS.get(name.rpartition(".")[2], _VALUE))
    return "".join(parts)


#: Words that are arguments; `{target}` is of `str.format`.
_NAMES = {
    "manifest",
    "lock",
    "part",
    "slime",
    "demo",
    "base",
    "last",
    "env",
    "install",
    "fish",
    "hccl",
    "target",
    "packages",
    "trainer",
}
#: Titles, and shell lines whose commands stand inside.
_OTHER = re.compile(r"\$\(|^## ")


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module but docstrings and parts of other texts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    passed = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            passed.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            passed |= {id(each) for each in ast.walk(node) if each is not node}
    for node in ast.walk(tree):
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        ):
            yield node.lineno, _text(node)


@cache
def _all_texts() -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(_ROOT)}:{line}", text)
        for path in sorted(_ROOT.rglob("*.py"))
        for line, text in _texts(path)
        if _NAMED.search(text) and not _OTHER.search(text)
    ]


def _refusal(typed: str) -> str:
    """Why the command line's own parser refuses a command; "" where it takes it."""
    words = shlex.split(re.split(r" [|>&]+ ", typed)[0], comments=True)[1:]
    if (found := split_command(words)) is None:
        return "no such command"
    name, rest = found[0], [word for word in found[1] if word != "--help"]
    command = load_command(name)
    try:
        with command.make_context(name, rest) as context:
            given = [
                context.params[each.name or ""]
                for each in command.params
                if each.param_type_name == "argument"
            ]
    except _USAGE_ERROR as error:
        return str(error.format_message())
    # an argument that is an English word is the sentence that goes on
    plain = re.findall(r"(?<![\w./-])[a-z]+(?![\w./-])", str(given).replace("None", ""))
    return "" if {*plain} <= _NAMES else f"{plain}: words behind a command"


def test_each_command_of_a_message_is_one_that_can_be_typed() -> None:
    wrong = []
    for place, text in _all_texts():
        for at_end, as_code in _TYPED.findall(text):
            typed = at_end or as_code
            if as_code.removeprefix("patchkit ") in all_commands() or typed in _PLACEHOLDERS:
                continue  # a command is named
            refusal = _refusal(typed)
            if re.search(r"(?<![\w./-])[A-Z]{2,}(?![\w./-])|\.\.\.", re.sub("'.*?'", "", typed)):
                refusal = "a placeholder"
            if refusal:
                wrong.append(f"{place}: {typed}: {refusal}")
    assert not wrong, "\n".join(wrong)


def test_a_command_stands_alone_or_is_marked_as_code() -> None:
    """Else nobody can tell where it ends, and what of a line to type."""
    wrong = [
        f"{place}: {text}" for place, text in _all_texts() if _NAMED.search(_TYPED.sub("", text))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("typed", "fine"),
    [
        ("patchkit refresh -m one -c two", True),
        ("patchkit refresh -m one --patch x --new y", True),
        ("patchkit refresh --no-such", False),
        ("patchkit nothing", False),
        ("patchkit check -m one says why", False),
        ("patchkit show", False),
    ],
)
def test_what_cannot_be_typed_is_seen(typed: str, fine: bool) -> None:
    assert (_refusal(typed) == "") is fine
