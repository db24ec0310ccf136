"""Calls from one component into another, bound to what stands there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from patchkit.extensions.python_guards.agreement import examine_partners
from patchkit.extensions.python_guards.breaches import Breach, Examined
from patchkit.extensions.python_guards.known_modules import KnownModules, Partner, known_modules
from tests.extensions.python_guards.trees import TextTree, agreed, contracts, declared

LIB = {
    "lib/__init__.py": "from .ops import scale\nfrom . import ops as operations\n",
    "lib/ops.py": (
        "from torch import no_grad, jit\n"
        "def scale(x, by=2): return x\n"
        "def norm(x, q_size, head_dim, q_weight=None): return x\n"
        "async def wait(x) -> 'Layer': return Layer(x)\n"
        "def make(size) -> 'Layer': return Layer(size)\n"
        "@no_grad()\n"
        "def kept(x): return x\n"
        "from elsewhere import odd\n"
        "@odd\n"
        "def hidden(x): return x\n"
        "def passing(x, **kwargs): return scale(x, **kwargs)\n"
        "def taking(x, **kwargs): return kwargs.get('y')\n"
    ),
    "lib/layer.py": (
        "from dataclasses import dataclass, field\n"
        "from torch.nn import Module\n"
        "from .ops import scale\n"
        "class Base:\n"
        "    def __init__(self, size): self.size = size\n"
        "    def grow(self, by): return by\n"
        "    @staticmethod\n"
        "    def unit(one): return one\n"
        "    @classmethod\n"
        "    def of(cls, size): return cls(size)\n"
        "    @property\n"
        "    def wide(self): return 1\n"
        "class Layer(Base):\n"
        "    def run(self, x): return x\n"
        "class Model(Module):\n"
        "    def __init__(self, config): self.layer = Layer(1)\n"
        "    def forward(self, x, mask=None): return x\n"
        "@dataclass\n"
        "class Config:\n"
        "    size: int\n"
        "    kind: str = 'a'\n"
        "    made: list = field(default_factory=list)\n"
        "    late: int = field(default=1, init=False)\n"
        "    last: int = field(default=1, kw_only=True)\n"
        "@dataclass(kw_only=True)\n"
        "class Wider(Config):\n"
        "    more: int\n"
        "from typing import TypedDict\n"
        "class Row(TypedDict):\n"
        "    size: int\n"
        "class Left:\n"
        "    def __init__(self, a, **kwargs): super().__init__(**kwargs)\n"
        "class Right:\n"
        "    def __init__(self, b): self.b = b\n"
        "class Both(Left, Right): pass\n"
        "class Lazy:\n"
        "    def __getattr__(self, name): return name\n"
    ),
}
LIB["lib/ops.py"] += "from .layer import Layer\n"


def looked_at(code: str, **more: object) -> Examined:
    """What is found in a module of the component `app`."""
    files = {"app/__init__.py": "", "app/main.py": code, "app/own.py": "def scale(x): return x\n"}
    found = agreed(("lib", LIB, contracts("lib")), ("app", files, contracts("app", **more)))
    assert found["lib"].broken == ()
    return found["app"]


CALLS = (
        "import lib\nlib.scale(1)",
        "import lib.ops as o\no.scale(1, by=3)",
        "from lib import scale as s\ns(1, 2)",
        "from lib import operations\noperations.scale(1)",
        "def f():\n    from lib.ops import scale\n    return scale(1)",
        "from lib.ops import make\nmake(1).run(2)",
        "from lib.layer import Layer\nLayer(1).grow(2)\nLayer.grow(Layer(1), 2)",
        "from lib.layer import Layer\nLayer.unit(1)\nLayer(1).unit(1)\nLayer.of(1)",
        "from lib.layer import Config\nConfig(1)\nConfig(1, 'b', last=2)",
        "from lib.layer import Model\nm = Model(1)\nm(1, mask=2)\nm.layer.run(1)",
        "from lib.layer import Base\nclass Mine(Base):\n    def __init__(self):\n"
        "        super().__init__(1)\n        self.grow(1)",
        "from lib.layer import Layer\ndef f(x: Layer):\n    x.run(1)",
        "from lib.layer import Layer\ndef f(x: 'Layer | None' = None):\n    x.run(1)",
        "from lib.ops import wait\nasync def f():\n    (await wait(1)).run(2)",
        "from lib.ops import kept\nkept(1)",
        "from lib.ops import passing, taking\npassing(1, by=2)\ntaking(1, y=2)",
        "from lib.layer import Lazy\nLazy().anything(1)",
        "from lib.layer import Both\nBoth(a=1, b=2)",  # super() leads to the class beside
        # what is asked for, caught or not run
        "try:\n    from lib import gone\nexcept ImportError:\n    gone = None",
        "import lib\nif hasattr(lib, 'gone'):\n    lib.gone(1)",
        "import lib\nx = hasattr(lib, 'gone') and lib.gone(1)",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib import gone",
        "from lib import scale\ntry:\n    scale(1, new=2)\nexcept TypeError:\n    scale(1)",
        # names that are something else where they are used
        "from lib import scale\n[scale(1, 2, 3) for scale in (max,)]",
        "from lib import scale\ndef f(scale):\n    scale(1, 2, 3)",
        "from lib import scale\nlambda scale: scale(1, 2, 3)",
        "if x:\n    from lib import scale\nelse:\n    from app.own import scale\nscale(1)",
        "from app.own import scale\nscale(1, 2, 3)",  # the component's own affair
)  # fmt: skip


@pytest.mark.parametrize("code", CALLS)
def test_what_fits(code: str) -> None:
    assert looked_at(code).broken == ()


@pytest.mark.parametrize(
    ("code", "breach", "what"),
    [
        ("import lib.gone", Breach.MODULE, "there is no module lib.gone"),
        ("from lib.gone import x", Breach.MODULE, "there is no module lib.gone"),
        ("def f():\n    from lib.ops import gone", Breach.NAME, "lib.ops has no gone"),
        ("import lib\nlib.gone(1)", Breach.NAME, "lib has no gone"),
        ("import lib\nx = lib.ops.gone", Breach.NAME, "lib.ops has no gone"),
        ("from lib.layer import Layer\nLayer(1).gone()", Breach.NAME, "Layer has no gone"),
        ("import lib\nlib.scale()", Breach.ARGUMENTS, "needs x"),
        ("import lib\nlib.scale(1, 2, 3)", Breach.ARGUMENTS, "takes 2 positional"),
        ("import lib\nlib.scale(1, to=3)", Breach.ARGUMENTS, "takes no argument to"),
        ("import lib\nlib.scale(1, x=3)", Breach.ARGUMENTS, "by position and by name"),
        ("import lib\nlib.scale(**{'x': 1, 'to': 2})", Breach.ARGUMENTS, "takes no argument to"),
        ("from lib.ops import norm\nnorm(a, q_weight, q_size, head_dim)",
         Breach.CROSSED, "q_weight is passed as q_size"),
        ("from lib.ops import make\nmake(1).run()", Breach.ARGUMENTS, "needs x"),
        ("from lib.layer import Layer\nLayer()", Breach.ARGUMENTS, "needs size"),
        ("from lib.layer import Layer\nLayer.unit()", Breach.ARGUMENTS, "needs one"),
        ("from lib.layer import Layer\nLayer.of(1, 2)", Breach.ARGUMENTS, "1 positional"),
        ("from lib.layer import Config\nConfig()", Breach.ARGUMENTS, "needs size"),
        ("from lib.layer import Config\nConfig(1, 'a', [], 2)", Breach.ARGUMENTS, "3 positional"),
        ("from lib.layer import Config\nConfig(1, late=2)", Breach.ARGUMENTS, "no argument late"),
        ("from lib.layer import Model\nModel(1)(1, masks=2)", Breach.ARGUMENTS, "argument masks"),
        ("from lib.layer import Model\nModel(1).layer.run(1, 2)", Breach.ARGUMENTS, "positional"),
        ("from lib.layer import Base\nclass Mine(Base):\n    def __init__(self):\n"
         "        super().__init__()", Breach.ARGUMENTS, "needs size"),
        ("from lib.layer import Base\nclass Mine(Base):\n    def f(self):\n"
         "        self.grow()", Breach.ARGUMENTS, "needs by"),
        ("from lib.layer import Layer\ndef f(x: Layer | None):\n    x.run()",
         Breach.ARGUMENTS, "needs x"),
        ("from lib.ops import wait\nasync def f():\n    (await wait(1)).run()",
         Breach.ARGUMENTS, "needs x"),
        ("from lib.ops import kept\nkept()", Breach.ARGUMENTS, "needs x"),
        ("from functools import lru_cache\nfrom lib import scale\n@lru_cache\ndef f():\n"
         "    return [scale() for x in y if x]", Breach.ARGUMENTS, "needs x"),
    ],
)  # fmt: skip
def test_what_does_not_fit(code: str, breach: Breach, what: str) -> None:
    (broken,) = looked_at(code).broken
    assert broken.breach is breach
    assert what in broken.what
    assert (broken.component, broken.provider) == ("app", "lib")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("from lib.ops import hidden\nhidden(1, 2, 3)", "hidden is decorated by odd"),
        ("import lib\nif version(lib.__version__) > 3:\n    lib.scale()", "a test of a version"),
        ("import lib\nfrom inspect import signature\nif 'to' in signature(lib.scale).parameters:\n"
         "    lib.scale(1, to=2)", "a test of a version or signature"),
        ("import lib\nif lib_version < 3:\n    lib.gone()", "lib has no gone; a test of a"),
        ("from lib.layer import Row\nRow(size=1)", "Row is made from its fields"),
        ("from lib.layer import Wider\nWider(1, 'a', [], 2)", "has fields that only a name gives"),
        ("from lib import scale\nif x:\n    scale = wrap(scale)\nscale(1)", "what a call returns"),
    ],
)  # fmt: skip
def test_what_cannot_be_told(code: str, why: str) -> None:
    found = looked_at(code)
    assert found.broken == ()
    assert [why in each.what for each in found.open] == [True]


def test_a_declared_call_leads_where_the_source_does_not_show_it() -> None:
    code = "def f(model, x):\n    return model(x, masks=1)\n"
    assert looked_at(code) == Examined(modules=3)
    call = declared("model", "lib.layer.Model.forward", "app/*.py")
    (broken,) = looked_at(code, calls=(call,)).broken
    assert broken.what == "takes no argument masks"
    assert looked_at("def f(other):\n    other(1)\n", calls=(call,)).used == ()


def test_what_a_module_gives_a_class_of_another_counts() -> None:
    """As slime does with a model's forward: the call fits only what was put there."""
    code = (
        "from lib.layer import Model\n"
        "_forward = Model.forward\n"
        "def _patched(self, *args, masks=None, **kwargs):\n"
        "    return _forward(self, *args, **kwargs)\n"
        "Model.forward = _patched\n"
        "Model(1)(2, masks=3)\n"
    )
    assert looked_at(code).broken == ()


@pytest.mark.parametrize(
    ("condition", "is_run"),
    [
        ("is_npu()", True),
        ("not is_npu()", False),
        ("_npu", True),
        ("_cuda", False),
        ("_cuda or x", True),
        ("_cuda and x", False),
        ("not (_cuda or _npu)", False),
        ("x", True),
    ],
)
def test_code_that_the_machine_does_not_run_is_passed_over(condition: str, is_run: bool) -> None:
    code = (
        "import lib\nfrom app.device import is_npu, _cuda\n_npu = is_npu()\n"
        f"def f(x):\n    y = 1 if not ({condition}) else lib.gone\n"
        f"    if {condition}:\n        return lib.gone()\n    elif {condition}:\n        pass\n"
    )
    files = {"app/main.py": code, "app/device.py": "_cuda = is_cuda()\ndef is_npu(): return 1\n"}
    declares = contracts("app", holds=("is_npu",), fails=("is_cuda",))
    found = agreed(("lib", LIB, contracts("lib")), ("app", files, declares))["app"]
    assert len(found.broken) == (2 if is_run else 0)


def test_only_what_entries_load_is_looked_at() -> None:
    app = {
        "app/__init__.py": "",
        "app/main.py": "from app import used\ndef f():\n    import app.late\n",
        "app/used.py": "import lib\nlib.gone()\nimport torch\nimport yaml, os\nimport vllm.x\n",
        "app/late.py": "import lib\nlib.gone()\n",
        "app/never.py": "import lib\nlib.gone()\n",
    }
    whole = agreed(("lib", LIB, contracts("lib")), ("app", app, contracts("app")))
    assert len(whole["app"].broken) == 3
    declares = contracts("app", entries=("app.ma*",), outside=("torch",))
    some = agreed(("lib", LIB, contracts("lib")), ("app", app, declares), given=frozenset({"yaml"}))
    told = [(each.breach, each.target) for each in some["app"].broken]
    assert told == [(Breach.NAME, "lib.gone"), (Breach.PACKAGE, "vllm")]
    assert {name: each.modules for name, each in some.items()} == {"lib": 3, "app": 3}


def test_one_namespace_may_lie_in_two_components() -> None:
    core = {"megatron/core/__init__.py": "def f(x): return x\n"}
    bridge = {
        "src/megatron/bridge/__init__.py": "from megatron.core import f\nf()\n"
        "import megatron.energon\nimport megatron.core.gone\nfrom megatron.bridge import own\n"
    }
    found = agreed(
        ("core", core, contracts("megatron", entries=("megatron.bridge",))),
        ("bridge", bridge, contracts("megatron.bridge", root="src")),
    )["bridge"]
    told = [(each.breach, each.target) for each in found.broken]
    assert told == [
        (Breach.ARGUMENTS, "megatron.core.f"),
        (Breach.PACKAGE, "megatron.energon"),
        (Breach.MODULE, "megatron.core.gone"),
    ]


def test_a_name_that_is_bound_from_itself_costs_no_more_than_its_lines() -> None:
    lines = "".join(f"    x = lib.gone{n}(x).a or x\n    y = x(y) or y.b(x)\n" for n in range(40))
    found = looked_at(f"import lib\ndef f(x, y, z):\n    x = z\n    y = z\n{lines}")
    assert len(found.broken) == 40


@pytest.mark.parametrize("deep", ["x = " + "a + " * 9000 + "a", "x = a" + ".b()" * 9000])
def test_code_that_is_nested_too_deeply_is_told(deep: str) -> None:
    (left,) = looked_at(f"import lib\n{deep}\n").open
    told = "what comes from here on cannot be parsed, or is nested too deeply"
    assert left.what in (told, "cannot be parsed")


def test_a_function_that_cannot_be_parsed_is_told() -> None:
    found = looked_at("import lib\ndef f():\n    lib.gone()\ndef g():\n    print 1\nlib.f(1)\n")
    (left,) = found.open
    assert left.what.startswith("what comes from here on cannot be parsed")
    assert [place.line for place in found.broken] == [3]


def test_the_stack_may_be_short() -> None:
    """Wherever Python's own stack ends, the module is told as one that was not looked at whole."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(260)
    try:
        (left,) = looked_at("import lib\nx = " + "a + " * 300 + "a\n").open
    finally:
        sys.setrecursionlimit(limit)
    assert "too deeply" in left.what or left.what == "cannot be parsed"


def test_a_file_that_cannot_be_parsed_is_told() -> None:
    (left,) = looked_at("import lib\ndef f(:\n").open
    assert (left.path, left.what) == ("app/main.py", "cannot be parsed in line 2")


# What is kept of single modules: the same answers, for less.

KEPT = {
    "lib/__init__.py": "from .ops import scale\n",
    "lib/ops.py": "def scale(x): return x\n",
    "lib/far.py": "class Far:\n    def run(self, x): return x\nclass Near:\n    pass\n",
    "lib/way.py": "from lib.far import Far as Chosen\n",
    "app/main.py": "from lib import scale\nscale(1)\n",
    "app/late.py": "import lib.far\nlib.far.Far().run(1, 2)\n",
    "app/gives.py": "from lib.way import Chosen\ndef f(self, *a): pass\nChosen.run = f\n",
    "app/alone.py": "import os\nos.getcwd()\n",
}
#: What is edited one after the other; None takes a file away.
EDITS: tuple[Mapping[str, str | None], ...] = (
    {},
    {"lib/ops.py": "def scale(x, y): return x\n"},
    {"lib/__init__.py": "from .other import scale\n"},
    {"lib/other.py": "def scale(): return 1\n"},
    {"lib/way.py": "from lib.far import Near as Chosen\n"},
    {"app/gives.py": None},
    {"lib/far.py": "def __getattr__(name): return 1\n"},
    {"lib/ops.py": "def scale(x): return x\n", "lib/__init__.py": "from .ops import scale\n"},
    {"app/main.py": "from lib import gone\n"},
    KEPT,
)


def partners(files: Mapping[str, str]) -> list[Partner]:
    return [
        Partner(
            name,
            TextTree({path: text for path, text in files.items() if path.startswith(name)}),
            contracts(name, entries=("app.*", "lib")),
        )
        for name in ("lib", "app")
    ]


def test_what_is_kept_of_modules_says_what_a_fresh_look_says(tmp_path: Path) -> None:
    files: dict[str, str] = dict(KEPT)
    told = set()
    for edit in EDITS:
        files |= {path: text for path, text in edit.items() if text is not None}
        files = {path: text for path, text in files.items() if edit.get(path, "") is not None}
        with known_modules(tmp_path, partners(files), ()) as known:
            kept = examine_partners(partners(files), (), known)
        assert kept == examine_partners(partners(files), (), KnownModules()), edit
        told.add(repr(kept))
    assert len(told) >= 6  # the edits matter


def test_only_what_an_edit_reaches_is_looked_at_again(tmp_path: Path) -> None:
    def parsed(files: Mapping[str, str]) -> set[str]:
        with known_modules(tmp_path, partners(files), ()) as known:
            examine_partners(partners(files), (), known)
        return {path for _, _, path, _ in known.parsed.known}

    assert parsed(KEPT) == set(KEPT)
    # what gives something to others is loaded again, with the way to what it gives
    loaded = {"app/gives.py", "lib/way.py", "lib/far.py", "lib/__init__.py"}
    assert parsed(KEPT) <= loaded
    edited = {**KEPT, "app/alone.py": "import os\nos.getpid()\n"}
    assert parsed(edited) <= {"app/alone.py", *loaded}
    called = {**KEPT, "lib/ops.py": "def scale(x, y): return x\n"}
    assert parsed(called) <= {"lib/ops.py", "app/main.py", *loaded}
