"""Numbers with more digits than Python reads, and digits that are none: never a bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import BadInputError, UsageError
from patchkit.extensions.recipes.rule import check_expect
from patchkit.manifest.load import load_manifest
from patchkit.model.dates import parse_date
from patchkit.model.diff_parse import BadPayloadError, parse_diff, read_binary_hunk
from patchkit.model.upstream_intent import request_number
from patchkit.stack.importing import read_source
from patchkit.stack.lockfile import load_lock
from patchkit.upstream.git import version_order

pytestmark = pytest.mark.slow

HUGE = "9" * 5000


@pytest.mark.parametrize("head", ["-1,{0} +1", "-1 +1,{0}", "-{0} +1", "-1 +{0}"])
def test_hunks(head: str) -> None:
    text = f"--- a/f\n+++ b/f\n@@ {head.format(HUGE)} @@\n-a\n+b\n"
    with pytest.raises(BadInputError, match="malformed @@ line"):
        parse_diff(text.encode())


def test_lengths_of_binary_hunks() -> None:
    with pytest.raises(BadPayloadError, match="without a length"):
        read_binary_hunk([b"literal %s\n" % HUGE.encode(), b"Ax\n", b"\n"], 0)


def test_a_similarity_says_nothing() -> None:
    text = f"diff --git a/f b/g\nsimilarity index {HUGE}%\nrename from f\nrename to g\n"
    (change,) = parse_diff(text.encode())
    assert change.old_path == "f"


@pytest.mark.parametrize("key", ["version: {0}\ncomponents: {{}}", "version: 1\nstrip: {0}"])
def test_manifests(key: str, tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(key.format(HUGE) + "\n")
    with pytest.raises(BadInputError):
        load_manifest(path)


def test_a_strip_level(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(
        "version: 1\ncomponents:\n  a:\n    source: {git: 'https://example.com/a.git'}\n"
        f"    pin: '{'1' * 40}'\n    strip: {HUGE}\n"
    )
    with pytest.raises(BadInputError, match="out of range"):
        load_manifest(path)


def test_what_upstreams_write() -> None:
    assert request_number(f"Fix it (#{HUGE})") is None
    assert request_number("Fix it (#12)") == 12
    assert version_order(f"v{HUGE}") > version_order("v1")
    assert version_order("v1²") > version_order("v0.9")
    assert parse_date(f"@{HUGE} +0000") == ""


@pytest.mark.parametrize("text", [f'{{"version": {HUGE}}}', "[" * 100_000, '{"version": NaN}'])
def test_locks(text: str, tmp_path: Path) -> None:
    path = tmp_path / "demo.lock.json"
    path.write_text(text)
    with pytest.raises(BadInputError):
        load_lock(path)


def test_names_of_files(tmp_path: Path) -> None:
    for name in ("10-a.patch", "2-b.patch", "1²2-c.patch"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match="nothing says in which order"):
        read_source(tmp_path, strip=1)


def test_recipes() -> None:
    assert check_expect(">= 3") is None
    assert check_expect(HUGE) is not None
