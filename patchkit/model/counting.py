"""Numbers with their nouns, as every report says them."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`3 patches`: the number, and the noun for one or, by default with an `s`, for many."""
    return f"{number} {one if number == 1 else many or one + 's'}"
