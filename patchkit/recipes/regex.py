"""Regular expressions of text rules. Python's may take time that doubles with each character of a
text, and nothing ends one but the end of its process: they run in one of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from patchkit.errors import BadInputError, Problem, SurroundingsError
from patchkit.recipes.rule import TextRule

#: Seconds that a regular expression may take, over all files of a run of a recipe.
PATIENCE = 20.0
_SCRIPT = Path(__file__).with_name("regex_child.py")


class RegexMatch(NamedTuple):
    """`text[start:end]`, never empty, and what takes its place."""

    start: int
    end: int
    new: str


@contextmanager
def regular_expressions() -> Iterator[None]:
    """What `matches` is called in: what it has started ends with it."""
    try:
        yield
    finally:
        with _lock:
            for child in tuple(_last):
                child.end()


def matches(rule: TextRule, path: str, text: str) -> list[RegexMatch]:
    """What the rule's regular expression finds in a file.

    BadInputError, at the rule, if it is none, if `replace` names a group that it has not, and if
    it takes too long.
    """
    with _lock:
        answer = _child().ask(rule.find, rule.replace, text)
    if answer is None:
        what = f"{rule.id}: the regular expression takes more than {PATIENCE:.0f} seconds"
        where = f" in {path}" if path else ""
        hint = "let nothing repeat that itself repeats, as in (a+)+"
        raise BadInputError(Problem(what + where, str(rule.where), hint))
    if isinstance(answer, str):
        raise BadInputError(Problem(f"{rule.id}: {answer}", str(rule.where)))
    return [RegexMatch(*each) for each in answer]


class _Child:
    """The process. However this one ends, it ends, once it has an answer."""

    def __init__(self) -> None:
        command = [sys.executable or "python3", "-I", "-S", str(_SCRIPT), str(PATIENCE)]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nowhere, encoding="ascii"
        )

    def ask(self, *question: str) -> Any:
        """Its answer, as JSON has it; None if it ran out of time."""
        try:
            answer = self._answer(json.dumps(question))
        except BaseException:  # interrupted: what it answers later is nobody's
            self.end()
            raise
        if answer:
            return json.loads(answer)
        code = self._process.wait()
        self.end()
        if code == 1:  # so the watch of faulthandler ends it
            return None
        raise SurroundingsError(f"the process for regular expressions ended with {code}")

    def _answer(self, question: str) -> str:
        """A line, "" if the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(question + "\n")
            stdin.flush()
        except BrokenPipeError:
            return ""
        answer = stdout.readline()
        return answer if answer.endswith("\n") else ""

    def end(self) -> None:
        """Ends it at once."""
        _last.clear()
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass


_lock = Lock()
_last: list[_Child] = []


def _child() -> _Child:
    if not _last:
        _last.append(_Child())
    return _last[0]
