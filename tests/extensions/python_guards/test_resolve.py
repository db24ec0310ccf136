"""Names are resolved as Python does it: the same package is read by us and imported for real."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.replacements import Definition, TargetKind, definition_of
from patchkit.extensions.python_guards.resolve import Resolver
from tests.support.projects import write_files

FILES = {
    "kit/core/__init__.py": (
        "from .shapes import Circle\n"
        "from .shapes import area as measure\n"
        "from . import shapes as forms\n"
        "from .late import *\n"
        "from .maths import helper\n"
    ),
    "kit/core/shapes.py": (
        "import os\n"
        "import os.path as paths\n"
        "from collections import OrderedDict\n"
        "from dataclasses import dataclass, field\n"
        "from kit.core.base import Base, Rooted\n"
        "def area(shape, unit='m', *rest, exact=False, **more):\n    return 1\n"
        "class Circle(Base):\n"
        "    radius = 1\n"
        "    def grow(self, by): return by\n"
        "    @staticmethod\n    def unit(): return 1\n"
        "    @property\n    def wide(self): return 2\n"
        "    class Inner:\n        def deep(self, x): return x\n"
        "class Ring(Circle):\n    pass\n"
        "class Tree(Rooted):\n    def grow(self): return 0\n"
        "@dataclass\nclass Size:\n    width: int\n    height: int = 2\n"
        "@dataclass\nclass Box(Size):\n    deep: list = field(default_factory=list)\n"
        "fast = area\n"
        "_limit, bound = 3, 4\n"
        "def outer(): return 0\n"
        "def outer(a): return a\n"
        "Circle.added = area\n"
        "with open(os.devnull) as handle:\n    opened = 1\n"
        "for number in (1, 2):\n    last = number\n"
    ),
    "kit/core/base.py": (
        "class Root:\n    def start(self, fast=True): return fast\n"
        "class Base(Root):\n    def shrink(self): return 0\n"
        "class Rooted(OrderedDict := dict):\n    def hold(self): return 1\n"
    ),
    "kit/core/late.py": (
        "__all__ = ['shown', '_private']\n"
        "def shown(a): return a\n"
        "def hidden(a): return a\n"
        "def _private(a): return a\n"
    ),
    "kit/core/maths/__init__.py": "from .helper import helper\nfrom kit.core.maths.all import *\n",
    "kit/core/maths/helper.py": "def helper(x):\n    return x\n",
    "kit/core/maths/all.py": "def plus(a, b): return a\ndef _minus(a, b): return a\n",
    "kit/core/branch.py": (
        "try:\n    import json as engine\n    HAVE = True\n"
        "except ImportError:\n    engine = None\n    HAVE = False\n"
        "if HAVE:\n    def run(a): return a\n"
        "else:\n    def run(a): return None\n"
    ),
    "kit/core/circle_a.py": "import kit.core.circle_b\ndef a(): return 1\n",
    "kit/core/circle_b.py": (
        "from kit.core import circle_a\nfrom kit.core.shapes import area as a\n"
    ),
    "kit/plain/module.py": "from ..core import measure\nfrom ..core.shapes import *\n",
}

_THERE = """
    kit.core.shapes.area kit.core.measure kit.core.Circle kit.core.forms.area kit.core.shown
    kit.core._private kit.core.shapes.Circle.grow kit.core.shapes.Ring.grow kit.core.helper
    kit.core.shapes.Ring.shrink kit.core.shapes.Ring.start kit.core.shapes.Circle.unit
    kit.core.shapes.Circle.Inner.deep kit.core.shapes.fast kit.core.shapes.outer
    kit.core.shapes.Size.__init__ kit.core.shapes.Box.__init__ kit.core.maths.plus
    kit.core.maths.helper.helper kit.core.branch.run kit.core.circle_a.a kit.core.circle_b.a
    kit.plain.module.measure kit.plain.module.Circle.grow kit.core.shapes.Circle.added
    kit.core.shapes.Tree.grow kit.core.shapes.Tree.hold
"""
_NOT_THERE = """
    kit.core.hidden kit.core.shapes.volume kit.core.shapes.Circle.melt kit.core.maths._minus
    kit.plain.module._limit kit.core.nowhere.area kit.core.shapes.Ring.Inner.shallow
    kit.other kit.core.circle_b.b
"""
_VALUES = """
    kit.core.shapes._limit kit.core.shapes.bound kit.core.shapes.Circle.radius kit.core.branch.HAVE
    kit.core.shapes.opened kit.core.shapes.last kit.core.shapes.handle
"""


THERE, NOT_THERE, VALUES = _THERE.split(), _NOT_THERE.split(), _VALUES.split()


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """The package on disk, importable."""
    write_files(tmp_path, FILES)
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "kit"]:
        del sys.modules[name]


def resolver(files: Mapping[str, str], root: str = "") -> Resolver:
    data = {path: text.encode() for path, text in files.items()}
    return Resolver(Modules(data, data.get, root))


def standing(name: str, files: Mapping[str, str]) -> Definition:
    return definition_of(resolver(files), name)


def imported(name: str) -> Any:
    """What Python itself finds there: modules first, then attributes, as monkey patchers do."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if inspect.ismodule(found) and number < len(parts):
            try:
                found = importlib.import_module(".".join(parts[:number]))
                continue
            except ModuleNotFoundError:
                pass
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", THERE)
def test_what_python_finds_is_found_where_it_is_defined_and_takes_the_same(
    name: str, package: Path
) -> None:
    theirs, ours = imported(name), standing(name, FILES)
    assert ours.kind in (TargetKind.FUNCTION, TargetKind.CLASS)
    if not name.endswith(".__init__"):  # of a dataclass it is made, not written
        where = Path(inspect.getsourcefile(theirs) or "").relative_to(package)
        line = inspect.getsourcelines(theirs)[1] + name.endswith(".unit")  # which is decorated
        assert ours.place == f"{where.as_posix()}:{line}" or " | " in ours.signature
    # else it is called in another way; two branches; a class that leaves it to `object`
    if ours.signature and not set("@|") & set(ours.signature):
        taken = inspect.signature(theirs.__init__ if inspect.isclass(theirs) else theirs)
        assert [each.arg for each in _arguments(ours.signature)] == list(taken.parameters)


def _arguments(signature: str) -> list[ast.arg]:
    function = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    found = function.args
    stars = [each for each in (found.vararg, found.kwarg) if each is not None]
    plain = [*found.posonlyargs, *found.args]
    return [*plain, *stars[:1], *found.kwonlyargs, *stars[1:]]


@pytest.mark.parametrize("name", NOT_THERE)
def test_what_python_does_not_find_is_absent(name: str, package: Path) -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        imported(name)
    assert standing(name, FILES).kind is TargetKind.ABSENT


@pytest.mark.parametrize("name", VALUES)
def test_values_are_there(name: str, package: Path) -> None:
    imported(name)
    assert standing(name, FILES).kind is TargetKind.VALUE


def test_why_a_name_ends() -> None:
    assert standing("kit.core.shapes.volume", FILES).why == "kit.core.shapes has no volume"
    assert standing("kit.core.Circle.melt", FILES).why == "kit.core.shapes.Circle has no melt"
    assert standing("other.x", FILES).why == "there is no package other"


def test_what_comes_from_elsewhere_is_named() -> None:
    files = {"a/__init__.py": "from torch.nn import Module\nimport torch\nfloating = torch.float\n"}
    assert standing("a.Module.forward", files).signature == "torch.nn.Module.forward"
    assert standing("a.floating", files).kind is TargetKind.OUTSIDE


def test_a_foreign_base_may_have_it() -> None:
    files = {"a.py": "import torch\nclass Net(torch.nn.Module):\n    def forward(self): ...\n"}
    found = standing("a.Net.backward", files)
    assert (found.kind, found.why) == (
        TargetKind.UNCLEAR,
        "a.Net has no backward, unless torch.nn.Module has it",
    )
    assert standing("a.Net.__init__", files).kind is TargetKind.OUTSIDE
    bare = {"a.py": "from abc import ABC\nclass Net(ABC):\n    pass\n"}
    assert standing("a.Net.step", bare).kind is TargetKind.ABSENT


def test_what_cannot_be_parsed_is_unclear() -> None:
    assert standing("a.f", {"a.py": "def f(:\n"}).why == "a.py cannot be parsed in line 1"
    files = {"a.py": "def __getattr__(name):\n    return name\n"}
    assert standing("a.f", files).kind is TargetKind.UNCLEAR


def test_packages_below_a_folder() -> None:
    files = {"python/kit/one.py": "def f(a): ...\n"}
    assert definition_of(resolver(files, "python"), "kit.one.f").signature == "(a)"


def test_both_branches_count() -> None:
    one = standing("kit.core.branch.run", FILES)
    changed = FILES["kit/core/branch.py"].replace("return None", "return 0")
    assert standing("kit.core.branch.run", FILES | {"kit/core/branch.py": changed}).body != one.body
