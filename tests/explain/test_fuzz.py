"""The fuzz that is named is the one of GNU patch, where that is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from patchkit.explain.diagnose import fuzz_of
from patchkit.model.diff_parse import parse_diff
from tests.support.repos import make_patch

_PATCH = shutil.which("patch")


def gnu_fuzz(folder: Path, data: bytes, text: str) -> int | None:
    """The fuzz with which GNU patch takes a patch of one hunk; None where it refuses it."""
    file = folder / "a.txt"
    file.write_text(text)
    argv = [str(_PATCH), "-p1", "--force", "--no-backup-if-mismatch", "-r", "-"]
    done = subprocess.run(argv, input=data, cwd=folder, capture_output=True, check=False)
    fuzz = re.search(rb"with fuzz (\d)", done.stdout)
    return None if done.returncode else int(fuzz[1]) if fuzz else 0


@pytest.mark.slow
@pytest.mark.skipif(_PATCH is None, reason="GNU patch is not installed")
def test_fuzz_is_that_of_gnu_patch(tmp_path: Path) -> None:
    random, seen = Random(28), set[int | None]()
    for _ in range(60):
        rows = [f"row {number}\n" for number in range(random.randrange(3, 12))]
        at = random.randrange(len(rows))
        new = [*rows[:at], "changed\n", *rows[at + 1 :]]
        data = make_patch({"a.txt": "".join(rows)}, {"a.txt": "".join(new)}, subject="Change")
        there = list(rows)
        for _ in range(random.randrange(1, 3)):
            near = at + random.choice((-3, -2, -1, 1, 2, 3))
            if 0 <= near < len(there) and near != at:
                there[near] = "other\n"
        ((change,), text) = parse_diff(data), "".join(there)
        ours = fuzz_of(change.hunks[0], [row.encode() for row in there])
        fuzz = gnu_fuzz(tmp_path, data, text)
        if fuzz != 0:  # it fits as it is: there nothing is asked
            assert ours == (fuzz or 0), (data.decode(), text)
        seen.add(fuzz)
    assert seen >= {None, 0, 1, 2}
