"""The laws of the source tree: imports point one way, names say what things are."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import patchkit

ROOT = Path(patchkit.__file__).parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))

#: Layers from the ground up; a module imports from its own layer and from those before it.
LAYERS = ("errors", "model", "gitcmd", "stages", "ops", "report", "cli")

#: Stages in the order of the flow: a stage imports none that comes after it.
FLOW = (
    "reading",
    "atomic",
    "flock",
    "memory",
    "parallel",
    "transaction",
    "manifest",
    "templates",
    "sources",
    "store",
    "histories",
    "stack",
    "series",
    "rendering",
    "machine",
    "carry",
    "explain",
    "lock",
    "export",
    "python",
    "recipes",
    "overrides",
    "verify",
    "residual",
    "contracts",
    "drift",
    "planning",
    "refresh",
    "adopt",
    "workspace",
)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The full names that a module imports, wherever it does."""
    names: list[str] = []
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            names.append(str(node.module))
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def _own(module: str) -> set[str]:
    """The first names below `patchkit` that a module imports ("ops", "errors")."""
    names = (name.split(".") for name in _imports(module))
    return {parts[1] for parts in names if parts[0] == "patchkit" and len(parts) > 1}


def _top(module: str) -> str:
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


def _layer(name: str) -> int:
    if name in ("__init__", "__version__"):
        return 0
    if name == "__main__":
        return len(LAYERS)
    return LAYERS.index(name if name in LAYERS else "stages")


def test_imports_point_one_way() -> None:
    upward = {m: sorted(n for n in _own(m) if _layer(n) > _layer(_top(m))) for m in MODULES}
    assert {m: names for m, names in upward.items() if names} == {}


def test_every_stage_has_its_place_in_the_flow() -> None:
    stages = {_top(m) for m in MODULES} - {*LAYERS, "__init__", "__main__"}
    assert stages <= set(FLOW)


def test_stages_import_in_the_order_of_the_flow() -> None:
    place = {name: index for index, name in enumerate(FLOW)}
    later = {
        m: sorted(n for n in _own(m) if place.get(n, -1) > place[_top(m)])
        for m in MODULES
        if _top(m) in FLOW
    }
    assert {m: names for m, names in later.items() if names} == {}


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("typer", "cli/"),
        ("rich", "cli/"),
        ("platformdirs", "cli/"),
        ("git", "gitcmd/"),
        ("jinja2", "templates/"),
        ("yaml", "manifest/"),
        ("ast_grep_py", "recipes/"),
    ],
)
def test_a_library_has_one_home(library: str, home: str) -> None:
    users = [m for m in MODULES if library in {name.split(".")[0] for name in _imports(m)}]
    assert [m for m in users if not m.startswith(home)] == []


def test_click_is_never_imported() -> None:
    assert [m for m in MODULES if "click" in {n.split(".")[0] for n in _imports(m)}] == []


def test_only_gitcmd_and_sources_spawn() -> None:
    spawners = {m for m in MODULES if {"subprocess", "os.system", "pty"} & set(_imports(m))}
    # the package index is asked through the user's pip or uv, a machine through its programs; what
    # may take without end runs where it can be ended
    others = {m for m in spawners if not m.startswith("gitcmd/")}
    assert others <= {
        "upstream/pip_config.py",
        "upstream/index.py",
        "machine/ascend.py",
        "recipes/regex.py",
        "guards/verify/steps.py",
    }


def test_the_model_is_pure() -> None:
    impure = {
        "os",
        "pathlib.Path",
        "subprocess",
        "time",
        "random",
        "sys",
        "socket",
        "shutil",
    }
    used = {m: impure & set(_imports(m)) for m in MODULES if m.startswith("model/")}
    assert {m: names for m, names in used.items() if names} == {}


def test_only_the_command_line_prints() -> None:
    printing = re.compile(r"^\s*print\(|\bsys\.std(out|err)\b", re.MULTILINE)
    printers = [m for m in MODULES if printing.search((ROOT / m).read_text(encoding="utf-8"))]
    assert [m for m in printers if not m.startswith("cli/")] == []


def test_names_say_what_a_module_is_for() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "base_utils", "tools"}
    assert [m for m in MODULES if vague & set(m.removesuffix(".py").split("/"))] == []


def test_modules_stay_readable() -> None:
    lengths = {m: len((ROOT / m).read_text(encoding="utf-8").splitlines()) for m in MODULES}
    assert {m: n for m, n in lengths.items() if n > 700} == {}


def test_every_module_says_what_it_is_for() -> None:
    trees = {m: ast.parse((ROOT / m).read_text(encoding="utf-8")) for m in MODULES}
    assert [m for m, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_what_is_imported_is_declared() -> None:
    tree = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8")
    listed = tree.partition("dependencies = [\n")[2].partition("\n]")[0]
    declared = set(re.findall(r'^\s*"([a-z0-9-]+)', listed, re.MULTILINE))
    named = {"ast-grep-py": "ast_grep_py", "gitpython": "git", "pyyaml": "yaml"}
    known = {named.get(each, each) for each in declared} | set(sys.stdlib_module_names)
    used = {name.split(".")[0] for m in MODULES for name in _imports(m)} - {"patchkit"}
    assert used - known == set()


#: Where str.splitlines is right, and why.
SPLITLINES = {
    "machine/requirements.py": 1,  # a requirements file: pip splits it so
}


def test_lines_of_others_end_at_a_newline_only() -> None:
    """str.splitlines also ends lines at U+2028, U+0085, form feeds: names and texts have them."""
    calls = {
        m: sum(
            isinstance(node, ast.Attribute) and node.attr == "splitlines"
            for node in ast.walk(ast.parse((ROOT / m).read_text(encoding="utf-8")))
        )
        for m in MODULES
    }
    assert {m: count for m, count in calls.items() if count} == SPLITLINES
