"""What a manifest says stays text in a Dockerfile and in Markdown."""

from __future__ import annotations

import pytest

from patchkit.errors import BadInputError
from patchkit.extensions.machine import notation
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Pin,
    Source,
)
from patchkit.model.objects import CommitId

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the trainer", "the trainer"),
        ("flash_attn and torch-npu 2.8", "flash_attn and torch-npu 2.8"),
        ("a | b", "a \\| b"),
        ("`rm`", "\\`rm\\`"),
        ("[x](javascript:alert(1))", "\\[x\\](javascript:alert(1))"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("<!-- patchkit versions: end -->", "&lt;!-- patchkit versions: end --&gt;"),
        ("R&D, &lt;", "R&amp;D, &amp;lt;"),
        ("two\nlines\n\n# heading", "two lines # heading"),
        ("# heading", "\\# heading"),
        ("1. item", "\\1. item"),
        ("*bold* _it_", "\\*bold\\* \\_it\\_"),
        ("a\x1b[31m", "a \\[31m"),
    ],
)
def test_markdown_shows_just_the_text(text: str, expected: str) -> None:
    assert notation.markdown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("==2.8.0", "`==2.8.0`"), ("a`b", "a\\`b"), ("a|b", "a\\|b"), ("x -->", "x --&gt;")],
)
def test_code_spans(text: str, expected: str) -> None:
    assert notation.code(text) == expected


@pytest.mark.parametrize(
    ("source", "pin", "cells"),
    [
        (
            GitSource("https://github.com/THUDM/slime.git"),
            GitPin(CommitId(COMMIT)),
            (
                f"[`0123456789ab`](https://github.com/THUDM/slime/commit/{COMMIT})",
                "[THUDM/slime](https://github.com/THUDM/slime)",
            ),
        ),
        (
            GitSource("ssh://git@host/x.git"),
            GitPin(CommitId(COMMIT)),
            (f"`{COMMIT}`", "`ssh://git@host/x.git`"),
        ),
        (
            GitSource("https://github.com/a/b?x=](javascript:1)"),
            GitPin(CommitId(COMMIT)),
            (f"`{COMMIT}`", "`https://github.com/a/b?x=](javascript:1)`"),
        ),
        (
            IndexSource("verl"),
            IndexPin("0.8.0", "0" * 64),
            ("`0.8.0`", "`verl` on the package index"),
        ),
        (
            ArchiveSource("https://example.com/a.tar.gz"),
            ArchivePin("1" * 64),
            ("`sha256 111111111111`", "`https://example.com/a.tar.gz`"),
        ),
    ],
)
def test_cells(source: Source, pin: Pin, cells: tuple[str, str]) -> None:
    assert (notation.pin_cell(pin, source), notation.source_cell(source)) == cells


@pytest.mark.parametrize("name", ["ubuntu:22.04", f"host:5000/a/b@sha256:{'0' * 64}"])
def test_images(name: str) -> None:
    assert notation.image(name, "demo.yaml") == name


@pytest.mark.parametrize("name", ["", "a b", "a\nRUN x", "-x", "a@b", "a$b"])
def test_what_is_no_image(name: str) -> None:
    with pytest.raises(BadInputError, match="is not an image name"):
        notation.image(name, "demo.yaml")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("patches/", '["patches/", "patches/"]'),
        ("a b/", '["a b/", "a b/"]'),
        ("a$b", '["a\\\\$b", "a\\\\$b"]'),
    ],
)
def test_copying(path: str, expected: str) -> None:
    assert notation.copy_words(path) == expected
