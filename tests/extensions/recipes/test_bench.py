"""bench/recipes: its recipes do what they say, and its figures see what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from patchkit.errors import ExitCode
from patchkit.extensions.recipes.workbench import check_recipes
from tests.support.repos import Upstream

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "bench" / "recipes"
SITE = "from megatron.core.jit import jit_fuser\n\n\n@jit_fuser\ndef f(x):\n    return x\n"


def test_the_examples_of_its_recipes() -> None:
    report = check_recipes(sorted(BENCH.glob("*.yml")))
    assert len(report.recipes) == 3
    assert report.exit_code is ExitCode.OK
    assert [each.untested for each in report.recipes] == [(), (), ()]


def test_figures_of_a_made_up_history(upstream: Upstream, tmp_path: Path) -> None:
    """One commit that the text fits, one that it misses a site of, one beyond the scope."""
    start = upstream.commit({"megatron/core/a.py": SITE}, "start")
    pin = upstream.commit({"note.md": "x"}, "pin", branch="dev", parents=(start,))
    missed = upstream.commit({"megatron/core/b.py": SITE}, "b", branch="dev", parents=(pin,))
    upstream.commit({"tools/c.py": SITE}, "c", branch="dev", parents=(missed,))
    upstream.commit({"megatron/core/a.py": "import os\n" + SITE[41:]}, "m", parents=(start,))
    page = tmp_path / "page.md"
    page.write_text("<!-- recipes -->\n<!-- end of recipes -->\n")
    argv = ("--megatron", str(upstream.path), "--pin", pin, "--write", str(page))
    done = subprocess.run(
        [sys.executable, "-m", "bench.recipes.run", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert "1 sites in  1 files: right; as text: does not apply; beyond: 0" in lines[0]
    assert "2 sites in  2 files: right; as text: applies, misses 1; beyond: 0" in lines[1]
    assert "2 sites in  2 files: right; as text: applies, misses 1; beyond: 1" in lines[2]
    assert lines[3] == "3 of 3 right; as text 2 apply"
    assert "1 places at" in page.read_text()
