"""jsonschema, less what an optional library of it does when it is loaded: it compiles 39 grammars
of addresses, a second for every process of a test run. Here each is compiled when it is used.
"""

from __future__ import annotations

import importlib.util
from functools import cached_property
from typing import Any
from unittest import mock

_GRAMMARS = "rfc3987_syntax"


class _Grammar:
    """A parser of lark's that is made when something is parsed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._made_of = args, options

    def parse(self, *args: Any, **options: Any) -> Any:
        return self._parser.parse(*args, **options)

    @cached_property
    def _parser(self) -> Any:
        args, options = self._made_of
        return importlib.import_module("lark").Lark(*args, **options)


if importlib.util.find_spec(_GRAMMARS) is not None:
    with mock.patch("lark.Lark", _Grammar):
        importlib.import_module(_GRAMMARS)

import jsonschema  # noqa: E402

__all__ = ["jsonschema"]
