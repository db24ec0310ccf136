"""Variables in files of other tools, with values that are known without running these."""

from __future__ import annotations

import re
from collections.abc import Callable

_ROUNDS = 10
_LONGEST = 1 << 16  # characters


def expanded(text: str, names: re.Pattern[str], value: Callable[[re.Match[str]], str]) -> str:
    """The text with the values of its variables put in; bounded, as a value may name itself."""
    for _ in range(_ROUNDS):
        if not 0 < sum(len(value(found)) for found in names.finditer(text)) <= _LONGEST:
            break
        text = names.sub(value, text)
    return text
