"""Modules whose calls need not be followed: what is found is what following all of them finds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from patchkit.extensions.python_guards.agreement import Agreement, examine_partners
from patchkit.extensions.python_guards.known_modules import KnownModules, Partner, known_modules
from patchkit.extensions.python_guards.modules import ParsedModules
from tests.extensions.python_guards.trees import TextTree, contracts
from tests.support.laws import share

LIB = {
    "lib/__init__.py": "from .far import Far\nmade: Far = Far()\n",
    "lib/far.py": "class Far:\n    def run(self, x): return x\ndef scale(x) -> Far: return Far()\n",
}
#: Modules that touch nothing; with them the others are few enough to be told apart.
PLAIN = {f"app/plain{n}.py": f"import os\nos.getcwd()\nx{n} = {n}\n" for n in range(40)}
_NAMES = ("Far", "scale", "K", "L", "v", "make")
_ATTRIBUTES = ("x", "run", "made", "made_by")


def told(files: dict[str, str], lib: dict[str, str] = LIB, most: int = 1 << 20) -> Agreement:
    """What is found in both, folding modules once `most` bytes of them are parsed."""
    known = KnownModules(parsed=ParsedModules(most))
    both = [Partner("lib", TextTree(lib), contracts("lib"))]
    both.append(Partner("app", TextTree(files), contracts("app")))
    return examine_partners(both, (), known)


def _expression(chance: Random, modules: list[str]) -> str:
    start = chance.choice((*_NAMES, *modules, "lib.far.Far", "lib.made"))
    if start in modules:
        start += f".{chance.choice(_NAMES)}"
    for _ in range(chance.randrange(3)):
        start += chance.choice(("()", "()", f".{chance.choice(_ATTRIBUTES)}"))
    return start


def _statement(chance: Random, earlier: list[str]) -> str:
    """Something that brings, keeps, hands on or uses a value."""
    modules = [f"app.{each}" for each in earlier]
    name, other = chance.choice(_NAMES), chance.choice(_NAMES)
    value, attribute = _expression(chance, modules), chance.choice(_ATTRIBUTES)
    source = chance.choice((*modules, "lib", "lib.far"))
    far = chance.choice(("Far", "K", "L", "'Far'", "'K | None'"))
    brings = (
        f"from {source} import {name}",
        f"from {source} import {name} as {other}",
        f"import {source}",
        f"import {source} as {other}",
        f"from {chance.choice(modules) if modules else 'os'} import *",
    )
    keeps = (
        f"{name} = {value}",
        f"{name}: {far} = {value}",
        f"def {name}() -> {far}: return 1",
        f"class {name}({other}):\n    pass",
        f"class {name}:\n    {attribute}: {far}",
        f"class {name}:\n    {attribute} = {value}",
        f"class {name}:\n    @property\n    def {attribute}(self) -> {far}: return 1",
        f"class {name}:\n    def __init__(self, p: {far}):\n        self.{attribute} = p",
        f"class {name}:\n    def __init__(self):\n        from lib.far import Far as q\n"
        f"        r = q()\n        self.{attribute} = r",
        f"class {name}:\n    def f(self):\n        q = {value}\n        self.{attribute} = q\n"
        f"        q.run(1, 2)",
        f"{name}.{attribute} = {value}",
        f"try:\n    from lib import far as {name}\nexcept ImportError:\n    {name} = None",
    )
    uses = (
        f"{value}.run(1, 2)",
        f"{value}(1, 2, 3)",
        f"def g(p: {far}):\n    p.{attribute}.run(1, 2)\n    p.run(1, 2)",
        f"def g():\n    from {source} import {name} as t\n    t().run(1, 2)\n    {value}(1, 2)",
        f"class Z({name}):\n    def f(self):\n        super().run(1, 2)\n"
        f"        self.run(1, 2)\n        self.{attribute}.run(1, 2)",
    )
    return chance.choice(chance.choice((brings, brings, keeps, keeps, uses)))


def _program(seed: int) -> dict[str, str]:
    chance = Random(seed)
    names = ["a", "b", "c", "d"]
    return {
        f"app/{name}.py": "\n".join(_statement(chance, names[:at]) for _ in range(8)) + "\n"
        for at, name in enumerate(names)
    }


def _rows(found: Agreement) -> list[object]:
    return [(each.broken, each.open, each.bound) for each in found.values()]


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_law_nothing_is_lost(first: int) -> None:
    broken = 0
    for seed in range(first, first + share(100)):
        files = _program(seed)
        everything = told(files)  # so few modules are all followed
        assert _rows(told(files | PLAIN, most=0)) == _rows(everything), "\n".join(
            f"# {n}\n{t}" for n, t in files.items()
        )
        broken += bool(everything["app"].broken)
    assert broken > share(100) / 5


WAYS = {
    "a name": ("from lib import Far\n", "from app.a import Far\nFar().run(1, 2)\n"),
    "an alias": ("from lib import Far as K\n", "from app.a import K as L\nL().run(1, 2)\n"),
    "a star": ("from lib import Far\n", "from app.a import *\nFar().run(1, 2)\n"),
    "a star of the other tree": ("from lib.far import *\n", "from app.a import scale\nscale()\n"),
    "an attribute of a package": ("import lib\n", "import app.a\napp.a.lib.far.scale()\n"),
    "a base": ("import lib\nclass K(lib.Far): pass\n", "from app import a\na.K().run(1, 2)\n"),
    "an annotation": ("import lib\ndef f() -> 'lib.Far': 1\n", "import app.a\napp.a.f().run()\n"),
    "a local of a method": (
        "class K:\n    def f(self):\n        import lib.far as q\n        r = q.Far()\n"
        "        self.x = r\n",
        "from app.a import K\nK().x.run(1, 2)\n",
    ),
    "an attribute that is annotated": (
        "import lib\nclass K:\n    x: lib.Far\n",
        "from app.a import K\nK().x.run(1, 2)\n",
    ),
    "another name on the way": (
        "from lib import Far\n",
        "from app.c import z\nz.run(1, 2)\n",
        "from app.d import L as K\nz = K()\n",
        "from app.a import Far as L\n",
    ),
    "a name that is known late": (
        "import lib\nfrom app.c import q\ny = q\n",
        "from app.a import y\ny.run(1, 2)\n",
        "import lib\nq = lib.Far()\n",
    ),
    "a name that is no ASCII": ("from lib import Far as é\n", "from app.a import é\né().run()\n"),
    "another spelling": ("from lib import Far as ﬁx\n", "from app.a import fix\nfix().run()\n"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_followed(way: str) -> None:
    files = {f"app/{name}.py": text for name, text in zip("abcd", WAYS[way], strict=False)}
    found = told({"app/__init__.py": "", **files, **PLAIN})["app"]
    assert [(each.path, each.breach.name) for each in found.broken] == [("app/b.py", "ARGUMENTS")]


def test_what_another_tree_gives_a_class_is_met_there() -> None:
    giving = {**LIB, "lib/gives.py": "from app.a import K\ndef f(self, x): 1\nK.other = f\n"}
    files = {"app/a.py": "class K: pass\n", "app/b.py": "from app.a import K\nK().other()\n"}
    found = told({**files, **PLAIN}, giving)["app"]
    assert [each.path for each in found.broken] == ["app/b.py"]


def test_it_is_kept_until_the_tree_or_what_it_meets_changes(tmp_path: Path) -> None:
    files = {"app/a.py": "import lib\n", "app/b.py": "from app.a import lib\nlib.Far().run()\n"}
    other = {"app/b.py": "from app.a import lib\nlib.Far().run(1)\n"}
    tools = {"tools/x.py": "def f(x): 1\n"}
    for app, lib in (
        (files, LIB),
        (files, {**LIB, "lib/more.py": "x = 1\n"}),
        ({**files, **other}, LIB),
        ({**files, "app/c.py": "import tools.x\ntools.x.f()\n"}, tools),
        ({**files, "app/c.py": "import tools.x\ntools.x.f()\n"}, {**LIB, **tools}),
    ):
        given = [
            Partner("lib", TextTree(lib), contracts("lib tools")),
            Partner("app", TextTree({**app, **PLAIN}), contracts("app")),
        ]
        with known_modules(tmp_path, given, ()) as known:
            kept = examine_partners(given, (), known)
        assert kept == examine_partners(given, (), KnownModules())
