"""`import --rewrites`: a function that another component assigns over one, in its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream

OPS = (
    "import math\n\nBY = 2\n\n\ndef scale(x, by=BY):\n    return x * by\n\n\n"
    "def total(xs):\n    return sum(map(scale, xs))\n\n\n"
    "class Layer:\n    size = 3\n\n    @property\n    def area(self):\n        return self.size\n\n"
    "    def forward(self, x):\n        return scale(x)\n\n\nsame = scale\n"
)
CORE = {"core/__init__.py": "from core.ops import scale\n", "core/ops.py": OPS}
CORE["core/shapes.py"] = "def square(x):\n    return x * x\n"
HEAD = "import core.ops\nfrom core.ops import BY, Layer, scale\nfrom core.shapes import square\n"
HEAD += "import math as maths\nfrom os import path\n\nOWN = 5\n\n\n"


def imported(project: Project, upstreams: tuple[Upstream, Upstream], text: str) -> str:
    """What the notes and the patches of an import are, where speed has such a module."""
    core, speed = upstreams
    project.component("core", core, CORE)
    project.write({"patches/put.rules.yml": RULE})
    declared = {"target": "core", "packages": ["core"], "rule": "patches/put.rules.yml"}
    own = {"speed/__init__.py": "", "speed/put.py": HEAD + text}
    project.component("speed", speed, own, overrides=[declared])
    return project.run("import", "--rewrites", "-c", "core").ok().stderr.decode()


RULE = (
    "version: 1\ndescription: put\nrules:\n  - id: put\n    language: python\n"
    "    files: ['speed/**/*.py']\n    rule: {pattern: $TARGET = $_}\n"
)


@pytest.fixture
def upstreams(tmp_path: Path) -> tuple[Upstream, Upstream]:
    return Upstream.create(tmp_path / "core.git"), Upstream.create(tmp_path / "speed.git")


@pytest.mark.parametrize(
    ("text", "call", "value"),
    [
        ("def fast(x, by=BY):\n    # quick\n    return x + by\n", "scale(5)", "7"),
        ("def fast(x):\n    '''Why.'''\n    return square(x) + maths.floor(1.5)\n",
         "total([3])", "10"),
        ("@property\ndef wide(self):\n    '''Long\n    words.'''\n    return self.size + BY\n",
         "Layer().area", "5"),
        ("def fast(x): return len(str(x))\n", "scale(100)", "3"),
        ("def f(x):\n    def g(): return path.join('a', 'b')\n    return g()\n", "scale(1)", "a/b"),
    ],
)  # fmt: skip
def test_what_means_the_same_there_becomes_a_patch(
    project: Project, upstreams: tuple[Upstream, Upstream], text: str, call: str, value: str
) -> None:
    name = text.partition("def ")[2].partition("(")[0]
    where = "core.ops.Layer.area" if name == "wide" else "core.ops.scale"
    assert "no patch" not in imported(project, upstreams, f"{text}\n\n{where} = {name}\n")
    project.run("apply", "-c", "core").ok()
    code = f"import core.ops; print(core.ops.{call})"
    tree = project.checkout("core")
    argv = [sys.executable, "-c", code]
    ran = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == value
    assert "# quick" in (tree / "core/ops.py").read_text() or "quick" not in text
    [patch] = project.read("patches/core/series").split()
    assert f"\n    {where} = {name}\n" in project.read(f"patches/core/{patch}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(x): return OWN\n\ncore.ops.scale = f\n", "OWN means something else"),
        ("def f(x): return scale(x)\n\ncore.ops.scale = f\n", "scale means something else"),
        ("def f(x=maths.pi):\n    return x\n\ncore.ops.scale = f\n", "maths means something else"),
        ("def f(x): return core.ops.BY\n\ncore.ops.scale = f\n", "core means something else"),
        ("def f(self, x): return super().f(x)\n\nLayer.forward = f\n", "super in it means"),
        ("def f(self, x): return self.__y\n\nLayer.forward = f\n", "__y in it means"),
        ("def f(x):\n    global OWN\n    OWN = x\n\ncore.ops.scale = f\n", "global in it means"),
        ("def f(x): return x\n\ncore.scale = f\n", "it is not one function that is put"),
        ("core.ops.scale = lambda x: x\n", "it is not one function that is put"),
        ("def f(x): return x\n\ncore.ops.gone = f\n", "it is not one function that is put"),
        ("def f(x): return x\n\nif OWN:\n    core.ops.scale = f\n", "only a run tells whether"),
        (
            "def f(x): return x\n\ncore.ops.scale = f\ncore.ops.scale = f\n",
            "only a run tells whether",
        ),
        (
            "def f(self, x):\n    return '''a\n    b'''\n\nLayer.forward = f\n",
            "its text cannot be set in",
        ),
        ("def f(x): return square(x)\n\ncore.ops.scale = f\n", "its text cannot be set in"),
    ],
)
def test_what_does_not_is_shown_and_not_written(
    project: Project, upstreams: tuple[Upstream, Upstream], text: str, why: str
) -> None:
    line = (HEAD + text).split(" = f\n")[0].count("\n") + 1 if " = f\n" in text else 10
    told = imported(project, upstreams, text)
    assert f"speed: speed/put.py:{line}: no patch was made: {why}" in " ".join(told.split())
    assert not (project.root / "patches/core").exists()
