"""Results become JSON that any reader takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from patchkit import __version__
from patchkit.errors import ExitCode
from patchkit.model.outcome import Clash, Reason, Status
from patchkit.report.json import envelope, plain


class _Result(Struct, frozen=True):
    not_in_json: ClassVar = frozenset({"inner"})

    status: Status
    clashes: tuple[Clash, ...]
    places: Mapping[str, Path | None]
    inner: object = None


def test_the_envelope_and_nested_values() -> None:
    clash = Clash("a\udcff", Reason.CONTEXT, 7, expected=(b"x\n", b"\xff"))
    result = _Result(Status.SHIFTED, (clash,), {"x": Path("a/b"), "y": None}, inner=object())
    assert json.loads(envelope("check --only manifest", result, ExitCode.FINDING)) == {
        "schema": "patchkit/check-only-manifest/2",
        "patchkit": __version__,
        "exit_code": 1,
        "status": "shifted",
        "clashes": [
            {
                "path": "a\\xff",
                "reason": "context",
                "line": 7,
                "hunk": 0,
                "expected": ["x\n", "\\xff"],
                "found": [],
                "found_at": 0,
                "detail": "",
            }
        ],
        "places": {"x": "a/b", "y": None},
    }


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        plain(object())


_scalars = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
_values = st.recursive(
    _scalars | st.builds(PurePosixPath, st.text(max_size=3)) | st.sampled_from(ExitCode),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(_values)
def test_every_value_survives_a_strict_encoder(value: object) -> None:
    text = json.dumps(plain(value), ensure_ascii=False)
    assert json.loads(text.encode("utf-8")) == plain(value)
