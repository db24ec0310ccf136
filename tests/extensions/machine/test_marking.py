"""The digest tells edited from stale."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchkit.extensions.machine.documents import (
    UNSIGNED,
    Condition,
    condition,
    is_intact,
    is_marked,
    signed,
)

TEXT = f"#!/bin/sh\n# {UNSIGNED}\necho a\n"
OTHER = f"#!/bin/sh\n# {UNSIGNED}\necho b\n"


def test_conditions() -> None:
    wanted = signed(TEXT)
    assert condition(None, wanted) is Condition.MISSING
    assert condition(wanted, wanted) is Condition.FRESH
    assert condition(signed(OTHER), wanted) is Condition.STALE
    assert condition(wanted + "echo more\n", wanted) is Condition.EDITED
    assert condition(TEXT.replace(UNSIGNED, "mine"), wanted) is Condition.FOREIGN


def test_signing_twice_changes_nothing() -> None:
    assert signed(signed(TEXT)) == signed(TEXT)
    assert is_intact(signed(TEXT))
    assert not is_intact(TEXT), "a mark without its digest is no signature"


@given(st.text(max_size=40), st.text(max_size=40), st.data())
def test_every_edit_is_seen(before: str, after: str, data: st.DataObject) -> None:
    assume("patchkit-digest" not in before + after)
    text = signed(f"{before}\n# {UNSIGNED}\n{after}")
    at = data.draw(st.integers(0, len(text)))
    edited = text[:at] + data.draw(st.sampled_from(["x", "\n", "0", " "])) + text[at:]
    assert is_marked(text)
    assert is_intact(text)
    assert not is_intact(edited)


@pytest.mark.parametrize("digest", ["0" * 64, "", "f" * 63])
def test_a_digest_that_somebody_made_up_is_an_edit(digest: str) -> None:
    assert not is_intact(TEXT.replace(UNSIGNED, UNSIGNED + digest))
