from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.dates import format_date, parse_date


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("Fri, 21 Nov 2025 11:00:00 +0100", "1763719200 +0100"),
        ("21 Nov 2025 11:00 +0100", "1763719200 +0100"),
        ("Fri, 21 Nov 2025 10:00:00 GMT", "1763719200 +0000"),
        ("Fri, 21 Nov 2025 10:00:00 +0000 (UTC)", "1763719200 +0000"),
        ("Fri Nov 21 11:00:00 2025 +0100", "1763719200 +0100"),
        ("2025-11-21 11:00:00 +0100", "1763719200 +0100"),
        ("2025-11-21T10:00:00Z", "1763719200 +0000"),
        ("2025-11-21T11:00:00.123+01:00", "1763719200 +0100"),
        ("@1763719200 +0100", "1763719200 +0100"),
        ("1763719200 -0000", "1763719200 -0000"),
        ("Mon, 1 Foo 2025 11:00:00 +0100", ""),
        ("31 Feb 2025 11:00:00 +0100", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_dates_of_mails(text: str, raw: str) -> None:
    assert parse_date(text) == raw


ZONES = st.sampled_from(["+0000", "-0000", "+0545", "-1200", "+1400", "+0199"])


@given(st.integers(-(2**45), 2**45), ZONES)
def test_law_a_date_that_was_written_reads_the_same(seconds: int, zone: str) -> None:
    raw = f"{seconds} {zone}"
    assert parse_date(format_date(raw)) == raw


def test_no_date_gives_none() -> None:
    assert format_date("") == ""
