from __future__ import annotations

import pytest

from patchkit.model.merging.checking import names_gone
from patchkit.model.merging.regions import compare_three

BASE = """\
import os


def go():
    if ready():
        assert pick(str(1))
    else:
        wait()
"""


@pytest.mark.parametrize(
    ("upstream", "added", "gone"),
    [
        (BASE.replace("pick(", "choose("), "    pick(2)\n", ("pick",)),
        (BASE.replace("pick(", "choose("), "    choose(2)\n", ()),
        # Python's own words are there whether upstream uses them or not
        ("import os\n\n\ndef go():\n    wait()\n", "    while str: assert wait() or os\n", ()),
        (BASE.replace("pick(", "choose("), '    say("pick")  # pick\n', ()),
    ],
)
def test_names_that_upstream_no_longer_has(
    upstream: str, added: str, gone: tuple[str, ...]
) -> None:
    base, theirs, ours = (t.encode().splitlines(True) for t in (BASE, upstream, BASE + added))
    assert names_gone(compare_three(base, theirs, ours)) == gone
