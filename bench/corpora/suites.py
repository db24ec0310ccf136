"""The test suites of git and of GNU patch: run from their trees, recorded, judged."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.corpora.judging import Judged, by_git, by_patch, gits_strip, judge, patchs_strips
from bench.corpora.recording import recorded, run_script, unpacked, wrapper

#: git's suite asks these of a build; an installed git has its templates elsewhere.
_BUILD_OPTIONS = "SHELL_PATH=/bin/sh\nPERL_PATH=perl\nDIFF=diff\nTAR=tar\nX=\nPYTHON_PATH=\n"
#: What t/helper/test-tool would do is not needed; it has to be there.
_NO_TOOL = "#!/bin/sh\nexit 1\n"


def git_scripts(clone: str, folder: Path, *, match: str, tell: Callable[[str], object]) -> Judged:
    """All scripts t/MATCH of git's suite: each call of `git apply`, verdict for verdict."""
    tree = unpacked(clone, ["t"], folder / "git")
    templates = folder / "templates"
    templates.mkdir()
    options = f"{_BUILD_OPTIONS}GIT_TEST_TEMPLATE_DIR='{templates}'\n"
    (tree / "GIT-BUILD-OPTIONS").write_text(options)
    tool = tree / "t" / "helper" / "test-tool"
    tool.write_text(_NO_TOOL)
    tool.chmod(0o755)
    cases = folder / "cases"
    program = wrapper(folder / "bin", "git", cases, only="apply")
    environment = {
        "GIT_TEST_INSTALLED": str(program.parent),
        "GIT_TEST_DEFAULT_HASH": "sha1",
        "TEST_NO_MALLOC_CHECK": "1",
    }
    for script in sorted((tree / "t").glob(match)):
        tell(script.name)
        run_script(script, tree / "t", environment)
    return judge(recorded(cases), by_git, gits_strip)


def patch_scripts(clone: str, folder: Path, *, tell: Callable[[str], object]) -> Judged:
    """All scripts of GNU patch's suite: what it does without fuzz, and what we do."""
    tree = unpacked(clone, ["tests"], folder / "patch")
    cases, build = folder / "cases", folder / "build"
    program = wrapper(folder / "bin", "patch", cases)
    (build / "tests").mkdir(parents=True)
    environment = {
        "srcdir": str(tree / "tests"),
        "abs_top_builddir": str(build),
        "PATCH": str(program),
    }
    for script in sorted((tree / "tests").iterdir()):
        if not script.suffix and os.access(script, os.R_OK):
            tell(script.name)
            run_script(script, build / "tests", environment)
    return judge(recorded(cases), by_patch, patchs_strips)


def version(*command: str) -> str:
    """The first line that a program says of itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]
