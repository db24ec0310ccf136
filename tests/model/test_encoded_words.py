from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.mailinfo import decode_words, encode_words


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("=?UTF-8?q?J=C3=BCrgen=20M=C3=BCller?=", "Jürgen Müller"),
        ("=?utf-8?B?SsO8cmdlbg==?=", "Jürgen"),
        ("=?utf-8?q?a?= =?utf-8?q?b?= c", "ab c"),
        ("=?utf-8?q?a?=\n =?utf-8?q?_b?=", "a b"),
        ("=?iso-8859-1*de?Q?gr=FC=DFe?=", "grüße"),
        ("x =?nonsense?q?a?= y", "x =?nonsense?q?a?= y"),
        ("=?utf-8?b?a?=", "=?utf-8?b?a?="),
        ("50 =? 50", "50 =? 50"),
    ],
)
def test_words(text: str, decoded: str) -> None:
    assert decode_words(text) == decoded


@given(st.text(st.characters(codec="utf-8") | st.just("\udcff")))
def test_law_what_is_encoded_decodes(text: str) -> None:
    word = encode_words(text)
    assert decode_words(word) == text
    assert word.isascii()
    assert "\n" not in word
