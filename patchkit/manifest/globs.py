"""Which paths are meant: globs as in .gitignore, anchored at the root of the upstream.

`*` and `?` stay within one folder, `**` is any number of folders, `{a,b}` one of several,
`[ab]` one character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

from msgspec import Struct

from patchkit.manifest.types import Complaint, Text, first_complaint

_TOKENS = r"(?s)\*\*/|/\*\*$|\*|\?|\[[^\]/]+\]|\{[^{}]*\}|."


class Scope(Struct, frozen=True):
    """The paths that one of `files` matches and none of `ignores`.

    With `endings`, only those that end so, and what `files` names in full: a glob may well reach
    a README that quotes the code.
    """

    files: tuple[str, ...]
    ignores: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Whether `path` (with slashes, from the root) belongs to it."""
        if self.endings and not path.endswith(self.endings) and path not in self.files:
            return False
        if not _pattern(self.files).fullmatch(path):
            return False
        return not (self.ignores and _pattern(self.ignores).fullmatch(path))


def check_glob(text: str) -> Complaint | None:
    """What is wrong with a glob."""
    return first_complaint(
        text,
        (r"^\.{0,2}/", "does not start at the root", "write the path without / or ./ before it"),
        (r"\\", "has a backslash", "folders are divided by /"),
        (r"/\Z", "is a folder", f"write {text}** for all files below it"),
        (
            r"^(?![^\[\]{}]*(?:(?:\[[^\]/]+\]|\{[^{}]*\})[^\[\]{}]*)*\Z)",
            "is not a glob",
            "* ? ** [ab] {a,b}",
        ),
    )


Glob = Annotated[str, Text("a glob", check=check_glob, example="megatron/core/**/*.py")]


@lru_cache(maxsize=256)
def _pattern(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_regex(glob)})" for glob in globs), re.DOTALL)


def _regex(glob: str) -> str:
    return "".join(_token(each) for each in re.findall(_TOKENS, glob))


def _token(token: str) -> str:
    fixed = {"**/": "(?:[^/]+/)*", "/**": "/.+", "*": "[^/]*", "?": "[^/]"}
    if token in fixed:
        return fixed[token]
    if len(token) > 1 and token[0] == "[":
        negated = token[1] in "!^"
        return f"[{'^' * negated}{re.escape(token[2 if negated else 1 : -1])}]"
    if len(token) > 1 and token[0] == "{":
        return f"(?:{'|'.join(_regex(each) for each in token[1:-1].split(','))})"
    return re.escape(token)
