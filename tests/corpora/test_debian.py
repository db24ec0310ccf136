"""Series of Debian source packages used in place, beside dpkg-source.

PATCHKIT_TEST_DEBIAN names a folder of them, as `apt-get source --download-only` brings them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.corpora.debian import debian_packages

SOURCES = os.environ.get("PATCHKIT_TEST_DEBIAN", "")

pytestmark = [
    pytest.mark.skipif(not SOURCES, reason="PATCHKIT_TEST_DEBIAN names no source packages"),
    pytest.mark.slow,
]


def test_the_tree_is_that_of_dpkg_source_and_refresh_changes_no_byte(tmp_path: Path) -> None:
    packages = list(debian_packages(Path(SOURCES).absolute(), tmp_path, tell=print))
    assert packages, "no package with a series"
    assert [each for each in packages if not each.agrees] == []
