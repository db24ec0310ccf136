"""A clock that runs backwards while commands run, for patchkit and for the git that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.commands import Ran, run_process
from tests.support.commands import run as run_here
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in
from tests.support.stacked import STATES, lines, small_patches

pytestmark = pytest.mark.slow

#: What time it is: as long before NOW as it is really after it.
_MIRROR = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, at);
    if (code == 0 && clock == CLOCK_REALTIME) {
        at->tv_sec = 2 * NOW - at->tv_sec - 1;
        at->tv_nsec = 999999999 - at->tv_nsec;
    }
    return code;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec told;
    clock_gettime(CLOCK_REALTIME, &told);
    at->tv_sec = told.tv_sec;
    at->tv_usec = told.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec told;
    clock_gettime(CLOCK_REALTIME, &told);
    if (at) *at = told.tv_sec;
    return told.tv_sec;
}
"""


@pytest.fixture
def backwards(tmp_path: Path) -> dict[str, str]:
    """The environment of a process for which time runs backwards."""
    compiler, git = shutil.which("cc"), shutil.which("git")
    if compiler is None or git is None or os.name != "posix":
        pytest.skip("no C compiler")
    library, source = tmp_path / "mirror.so", tmp_path / "mirror.c"
    source.write_text(_MIRROR)
    command = [compiler, "-shared", "-fPIC", f"-DNOW={int(time.time())}L", "-o"]
    if (
        subprocess.run(
            [*command, str(library), str(source), "-ldl"], capture_output=True, check=False
        ).returncode
        != 0
    ):
        pytest.skip("the C compiler cannot make a library here")
    preload = {**os.environ, "LD_PRELOAD": str(library)}
    ticks = "import time; a = time.time(); time.sleep(0.01); print(time.time() < a)"
    told = subprocess.run(["python3", "-c", ticks], env=preload, capture_output=True, check=False)
    if told.stdout != b"True\n":
        pytest.skip("no library can be put before others here")
    # git is run without our environment
    wrapper = tmp_path / "programs" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {git} "$@"\n')
    wrapper.chmod(0o755)
    return {**preload, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}


def test_a_bump_from_end_to_end(
    tmp_path: Path, upstream: Upstream, backwards: dict[str, str]
) -> None:
    """Edits are seen and saved, a conflict is resolved, everything comes out as ever."""
    old = upstream.commit(STATES[0])
    new = upstream.commit({"a.txt": lines({5: "upstream five\n"})})
    found = [
        _bumped(tmp_path / name, upstream, old, new, environment)
        for name, environment in (("forwards", None), ("backwards", backwards))
    ]
    assert found[0] == found[1]


def _bumped(
    folder: Path, upstream: Upstream, old: str, new: str, environment: dict[str, str] | None
) -> tuple[dict[str, bytes], str]:
    folder.mkdir()
    project = Project(folder)
    project.component("demo", upstream, old, small_patches(), track="main")
    checkout = project.checkout("demo")

    def run(*argv: str, code: int = 0) -> Ran:
        if environment is None:
            ran = run_here(*argv, cwd=folder)
        else:
            ran = run_process(*argv, cwd=folder, environment=environment)
        assert ran.code == code, f"{argv}: {ran.out}{ran.err}"
        return ran

    run("apply")
    for edit in ("FIVE\n", "V---\n"):  # of the same size
        file = checkout / "a.txt"
        file.write_text(file.read_text().replace("five\n", edit).replace("FIVE\n", edit))
        run("apply", code=1)
        if edit == "FIVE\n":
            run("apply", "--force")
    run("refresh")
    run("bump", "demo", "--to", new, code=3)
    (checkout / "a.txt").write_text(lines({5: "both\n", 6: "six\n"}))
    run("continue")
    saved = git_in(checkout, "for-each-ref", "--format=%(refname)", "refs/patchkit/saved/")
    texts = {git_in(checkout, "show", f"{ref}:a.txt") for ref in saved.decode().split()}
    assert any(b"FIVE\n" in text for text in texts)
    files = {name: data for name, data in project.files("").items() if "workspace" not in name}
    return files, git_in(checkout, "rev-parse", "HEAD").decode()
