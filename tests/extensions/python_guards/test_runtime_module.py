"""`export --format runtime`: a module that replaces functions does what the patches do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project, write_files
from tests.support.repos import Upstream

OPS = """from __future__ import annotations

import functools

BY = 2


def scale(x: Missing):
    return x * BY


@functools.lru_cache
def cached(x):
    return x


class Base:
    def __init__(self):
        self.size = 1


class Layer(Base):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return scale(x)

    @staticmethod
    def kind():
        return "gpu"

    class Inner:
        @property
        def name(self):
            return "old"
"""
CORE = {"core/__init__.py": "", "core/ops.py": OPS}
CORE["core/user.py"] = "from core.ops import scale as by_name\n"
EDITS = [
    ("    return x * BY", "    return x * BY + 100"),
    ("cached(x):\n    return x", "cached(x):\n    return [\n'''npu\n'''] + [x]"),
    ("        super().__init__()", "        super().__init__()\n        self.size += 6"),
    ("return scale(x)", "return -scale(x)"),
    ('return "gpu"', 'return "npu"'),
    ('return "old"', 'return "new"'),
]
USE = (
    "import core.ops as o, core.user as u, inspect\nlayer = o.Layer()\n"
    "print(o.scale(3), u.by_name(3), o.cached(1), o.cached(1), o.cached.cache_info().hits,\n"
    "      layer.size, layer.forward(4), layer.kind(), o.Layer.kind(), o.Layer.Inner().name,\n"
    "      inspect.getsource(o.scale), o.Layer.forward.__qualname__)\n"
)


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def printed(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def exported(project: Project, upstream: Upstream, after: str) -> Path:
    project.patched(upstream, CORE, CORE | {"core/ops.py": after}, name="core")
    out = project.root / "out"
    write_files(out, CORE)
    return out


@pytest.fixture
def out(project: Project, upstream: Upstream) -> Path:
    """The unpatched tree with the module of the patches."""
    out = exported(project, upstream, edited(OPS, *EDITS))
    project.run("export", "--format", "runtime", "-c", "core", "-o", str(out / "npu.py")).ok()
    return out


@pytest.mark.parametrize("before", ["", "import core.user\n"])
def test_it_does_what_the_patches_do(out: Path, tmp_path: Path, before: str) -> None:
    write_files(tmp_path / "patched", CORE | {"core/ops.py": edited(OPS, *EDITS)})
    wanted = printed(tmp_path / "patched", USE)
    assert "106 106" in wanted.stdout
    assert printed(out, USE).stdout != wanted.stdout
    ran = printed(out, f"{before}import npu\n{USE}")
    assert (ran.stdout, ran.stderr) == (wanted.stdout, "")


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (("return scale(x)", "return scale(x) + 0"), "core.ops.Layer.forward"),
        (("@functools.lru_cache\n", ""), "core.ops.cached"),
    ],
)
def test_another_upstream_is_refused_whole(out: Path, edit: tuple[str, str], name: str) -> None:
    write_files(out, {"core/ops.py": edited(OPS, edit)})
    ran = printed(out, "import npu")
    assert f"RuntimeError: {name} is not what the patch was made for" in ran.stderr
    code = "import core.user as u\ntry:\n  import npu\nexcept RuntimeError:\n  print(u.by_name(3))"
    assert printed(out, code).stdout == "6\n"


def test_a_component_that_is_not_there_is_refused(out: Path) -> None:
    (out / "core/ops.py").unlink()
    assert "core.ops.scale is not what" in printed(out, "import npu").stderr


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([("BY = 2", "BY = 3"), EDITS[0]], "core/ops.py:5: changes outside of functions"),
        ([("BY = 2\n", "BY = 2\nscale2 = scale\n"), EDITS[0]], "core/ops.py:6: changes"),
        ([("class Layer(Base)", "class Layer")], "core/ops.py:22: changes outside"),
        ([("return scale(x)", "return self.__x")], "core/ops.py:26: __x in Layer.forward is"),
        ([("    @staticmethod\n    def kind():\n        return \"gpu\"\n\n", "")],
         "core/ops.py:22: changes outside of functions"),
        ([("  return x * BY", "  return (")], "core/ops.py: cannot be parsed: "),
    ],
)  # fmt: skip
def test_what_no_replacement_does_is_said(
    project: Project, upstream: Upstream, edits: list[tuple[str, str]], words: str
) -> None:
    out = exported(project, upstream, edited(OPS, *edits))
    argv = ["export", "--format", "runtime", "-c", "core", "-o", str(out / "npu.py")]
    project.run(*argv).ends(4, words)
    assert not (out / "npu.py").exists()


def test_other_files_and_what_is_bound_twice(project: Project, upstream: Upstream) -> None:
    before = {"a.py": "def f():\n    return 1\n\n\nf = f\n", "b.md": "a\n"}
    after = {"a.py": before["a.py"].replace("1", "2"), "b.md": "b\n", "c.py": ""}
    project.patched(upstream, before, after)
    ran = project.run("export", "--format", "runtime", "-o", "new.py")
    ran.ends(4, "a.py:1: changes outside of functions")
    ran.says(*(f"{path}: is no Python file before and after" for path in ("b.md", "c.py")))


def test_packages_below_a_folder(project: Project, upstream: Upstream) -> None:
    before = {"src/lib/a.py": "def f():\n    return 1\n"}
    project.patched(upstream, before, {"src/lib/a.py": "def f():\n    return 2\n"})
    argv = ["export", "--format", "runtime", "-o", "new.py"]
    project.run(*argv).ok()
    write_files(project.root, before)
    code = "import sys\nsys.path.append('src')\nimport new, lib.a\nprint(lib.a.f())"
    assert printed(project.root, code).stdout == "2\n"
    project.run(*argv).ends(2, "new.py is there already")


def test_a_default_of_its_class_is_refused(project: Project, upstream: Upstream) -> None:
    before = {"a.py": "N = 1\n\n\nclass A:\n    N = 2\n\n    def f(self, n=N):\n        return n\n"}
    after = before["a.py"].replace("return n", "return n + 1")
    project.patched(upstream, before, {"a.py": after})
    project.run("export", "--format", "runtime", "-o", "new.py").ok()
    write_files(project.root, before)
    code = "import a\ntry:\n  import new\nexcept RuntimeError as e:\n  print(e, a.A().f())"
    ran = printed(project.root, code)
    assert "it needs N of its class" in ran.stdout
    assert ran.stdout.endswith("nothing was replaced 2\n")
