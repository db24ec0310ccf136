"""`import --rewrites`: each patch does what the rewrite does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.extensions.python_guards.test_rewrites import CALLER, CORE, HELPER
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.skipif(shutil.which("sed") is None, reason="no sed here")
FILE = "core/io.py"


@pytest.fixture
def core(project: Project, upstream: Upstream) -> Project:
    entry = {"files": ["*.sh", "*.py"], "meant": [{"anchor": "$X", "reason": "our own"}]}
    project.component("core", upstream, CORE, rewrites=[entry])
    return project


def taken(project: Project, *argv: str) -> list[str]:
    """What the patches are made of that are taken."""
    report = project.run("import", "--rewrites", "-c", "core", "--json", *argv).json
    return [each["source"] for each in report["patches"]]


def applied(project: Project, path: str = FILE) -> str:
    project.run("apply").ok()
    return (project.checkout("core") / path).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("run", [(), ("--run",)])
def test_the_tree_is_the_one_that_the_commands_make(
    core: Project, tmp_path: Path, run: tuple[str, ...]
) -> None:
    lines = [
        *(
            f"sed -i '5s/cuda/npu/;/^import/a import os' {FILE}",
            f"sed -i -E 's/(lo)ad/\\1ck/g' {FILE}",
        ),
        f"sed -i -z 's/os\\n\\n\\ndef/os\\n\\ndef/' {FILE}",
    ]
    core.write({"build.sh": "# as it is on the machine\n" + "".join(f"{x}\n" for x in lines)})
    (tmp_path / "core").mkdir()
    (tmp_path / FILE).write_text(CORE[FILE])
    subprocess.run(["sh", "-e", core.root / "build.sh"], cwd=tmp_path, check=True)
    assert taken(core, *run) == ["build.sh:2", "build.sh:3", "build.sh:4"]
    assert applied(core) == (tmp_path / FILE).read_text()
    names = core.read("patches/core/series").split()
    first = core.read(f"patches/core/{names[0]}")
    assert first.startswith("Subject: Change io.py as build.sh:2 does\n\nas it is on the machine\n")
    assert "    5s/cuda/npu/\n    /^import/a import os\n" in first
    assert taken(core, *run) == []  # the tree has it


def test_python_that_rewrites_becomes_patches(core: Project) -> None:
    core.write({"helper.py": HELPER, "caller.py": CALLER})
    assert taken(core) == ["caller.py:8", "caller.py:8 (2)", "caller.py:12"]
    text = CORE[FILE].replace("'cuda'", "'npu'").replace("import torch\n", "import torch  # n\n")
    assert applied(core) == text
    layer = CORE["core/layer.py"].replace("scale(y)", "fast_scale(y)")
    assert applied(core, "core/layer.py") == layer
    assert "Why it is so." in core.read("patches/core/change-io-py-as-caller-py-8-does.patch")


def test_what_is_not_certain_is_not_written(core: Project) -> None:
    core.write({"build.sh": f"sed -i 's/x*/-/g' {FILE}\nsed -i 's/tpu/npu/' {FILE}\n"})
    ran = core.run("import", "--rewrites", "-c", "core").ok()
    ran.says("build.sh:1: no patch was made: what it writes is not certain; --run asks sed")
    ran.says("build.sh:2: no patch was made: what it looks for is not there")
    assert not (core.root / "patches").exists()
    assert taken(core, "--run") == ["build.sh:1"]
    script = ["sed", "s/x*/-/g"]
    sed = subprocess.run(script, input=CORE[FILE], capture_output=True, text=True, check=True)
    assert applied(core) == sed.stdout


def test_what_only_a_run_of_python_knows_is_not_written(core: Project) -> None:
    text = "def f(new):\n    t = open('core/io.py').read()\n    t = t.replace('cuda', new)\n"
    core.write({"a.py": text})
    ran = core.run("import", "--rewrites", "-c", "core", "--run").ok()
    ran.says("a.py:3: no patch was made: what it writes is not certain; a run decides on it")


def test_a_patch_that_is_applied_is_taken(core: Project) -> None:
    after = {FILE: CORE[FILE].replace("cuda", "npu")}
    core.write({"npu.patch": make_patch(CORE, CORE | after)})
    core.write({"build.sh": "cd /w/core\ngit apply npu.patch\n"})
    assert taken(core) == ["build.sh:2"]
    assert applied(core) == after[FILE]


def test_a_dry_run_writes_nothing(core: Project) -> None:
    core.write({"build.sh": f"sed -i 's/cuda/npu/' {FILE}\n"})
    assert taken(core, "-n") == ["build.sh:1"]
    assert not (core.root / "patches").exists()


def test_a_component_that_nothing_rewrites(core: Project, upstream: Upstream) -> None:
    core.component("other", upstream, CORE)
    core.run("import", "--rewrites", "-c", "other").ends(2, "nothing is said to rewrite other")
