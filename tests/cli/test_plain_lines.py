"""What is read of a plain command line is what typer reads; what is not plain is left to typer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import typer

from patchkit.cli.catalog import COMMANDS
from patchkit.cli.command import (
    REQUIRED,
    ArgumentSpec,
    ParameterSpec,
    body_of,
    load_command,
    parameters_of,
    read_plainly,
)

_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
_VALUES = (
    "x",
    "a b",
    "a=b",
    "2",
    "0",
    "007",
    "",
    "-",
    "-x",
    "--",
    "--json",
    "é",
    "text",
    "src/a.py",
)


def by_typer(name: str, words: list[str]) -> dict[str, Any] | None:
    """The options that typer gives the command's function; None where it refuses the line."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(add_help_option=False)(load_command(name))
    command = typer.main.get_command(app)
    read: dict[str, Any] = {}
    try:
        with command.make_context(name, list(words)) as context:
            assert command.callback is not None
            command.callback = _noting(command.callback, read)
            command.invoke(context)
    except _USAGE_ERROR:
        return None
    return read


def _noting(callback: Any, read: dict[str, Any]) -> Any:
    # typer converts paths and lists in the function that it puts around ours
    inner = callback.__closure__
    for cell in inner:
        if callable(cell.cell_contents) and not isinstance(cell.cell_contents, type):
            cell.cell_contents = lambda **options: read.update(options) or 0
            break
    return callback


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_means_what_typer_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATCHKIT_WORKSPACE", raising=False)
    parameters = parameters_of(body_of(name))
    dice = random.Random(name)
    lines = [[], *(_line(parameters, dice) for _ in range(40))]
    plain = 0
    for words in lines:
        ours = read_plainly(parameters, words)
        if ours is not None:
            assert ours == by_typer(name, words), words
            plain += 1
    # what people type often is plain
    assert name not in ("apply", "check", "refresh", "status") or plain >= len(lines) // 4


def _line(parameters: tuple[ParameterSpec, ...], dice: random.Random) -> list[str]:
    words: list[str] = []
    for each in parameters:
        if isinstance(each.declared, ArgumentSpec):
            words += [dice.choice(_VALUES[:4])] if each.default is REQUIRED else []
        elif each.declared.names and dice.random() < 0.25:
            value = dice.choice(_VALUES[:6] if dice.random() < 0.9 else _VALUES)
            option = dice.choice(each.declared.names)
            if each.kind is bool:
                words.append(option)
            elif dice.random() < 0.3 and option.startswith("--"):
                words.append(f"{option}={value}")
            else:
                words += [option, value]
    return words + [dice.choice(_VALUES)] * (dice.random() < 0.1)


def test_an_environment_variable_stands_for_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = parameters_of(body_of("apply"))
    for value, wanted in (("/w", Path("/w")), ("", None)):
        monkeypatch.setenv("PATCHKIT_WORKSPACE", value)
        read = read_plainly(parameters, [])
        assert read is not None
        assert read["workspace"] == wanted
        assert read == by_typer("apply", [])


@pytest.mark.parametrize(
    "words",
    [["-qm", "x"], ["--man", "x"], ["--nope"], ["-m"], ["--json=1"], ["--jobs", "0"], ["--", "x"]],
)
def test_what_is_not_plain_is_left_to_typer(words: list[str]) -> None:
    assert read_plainly(parameters_of(body_of("apply")), words) is None
