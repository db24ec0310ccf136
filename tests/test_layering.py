"""The laws of the source tree: imports point one way, names say what things are."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

import patchkit
from bench.mutation.groups import GROUPS
from patchkit.extensions.python_guards import known_modules
from patchkit.manifest import cached
from patchkit.stack import series_facts
from tools.figures import size

ROOT = Path(patchkit.__file__).parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))

#: The one list of folders and modules at the top, in import order, is the one that readers see.
_LISTED = re.compile(r"^  ([a-z_]+)(?:/|\.py) ", re.MULTILINE)


def _order() -> tuple[str, ...]:
    page = (ROOT.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (block,) = [each for each in page.split("```") if each.startswith("\npatchkit/ ")]
    return tuple(_LISTED.findall(block))


@dataclass
class _Facts:
    """What the laws ask of a module; its syntax tree would be parsed for each of them."""

    imports: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)  # public ones, at the top
    long: list[str] = field(default_factory=list)  # functions, with their lines
    wide: list[str] = field(default_factory=list)  # functions that take more than eight values
    splitlines: int = 0
    docstring: str | None = None


@cache
def _facts(module: str) -> _Facts:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    facts = _Facts(docstring=ast.get_docstring(tree))
    public = (each.name for each in tree.body if isinstance(each, ast.ClassDef))
    facts.classes += [name for name in public if not name.startswith("_")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            facts.imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            facts.imports.append(str(node.module))
            facts.imports += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.FunctionDef):
            if int(node.end_lineno or 0) - node.lineno > 50:
                facts.long.append(f"{module}:{node.lineno} {node.name}")
            taken = [*node.args.args, *node.args.kwonlyargs]
            if len([each for each in taken if each.arg != "self"]) > 8:
                facts.wide.append(f"{module} {node.name}")
        elif isinstance(node, ast.Attribute) and node.attr == "splitlines":
            facts.splitlines += 1
    return facts


def _imports(module: str) -> list[str]:
    """The full names that a module imports, wherever it does."""
    return _facts(module).imports


def _own(module: str) -> set[str]:
    """The first names below `patchkit` that a module imports ("ops", "errors")."""
    names = (name.split(".") for name in _imports(module))
    return {parts[1] for parts in names if parts[0] == "patchkit" and len(parts) > 1}


def _top(module: str) -> str:
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


def test_the_list_names_what_there_is() -> None:
    assert sorted(_order()) == sorted({_top(m) for m in MODULES} - {"__init__", "__main__"})


def test_imports_point_down_the_list() -> None:
    place = {name: index for index, name in enumerate(_order())} | {"__main__": -1}
    upward = {
        m: sorted(n for n in _own(m) if place.get(n, 99) < place[_top(m)])
        for m in MODULES
        if _top(m) in place
    }
    assert {m: names for m, names in upward.items() if names} == {}


def test_no_extension_needs_another() -> None:
    folders = {m: m.split("/")[1] for m in MODULES if m.count("/") > 1 and _top(m) == "extensions"}
    named = {m: {n.split(".")[2] for n in _imports(m) if ".extensions." in n} for m in folders}
    assert {m: names - {folders[m]} for m, names in named.items() if names - {folders[m]}} == {}


def _needs(module: str) -> set[str]:
    """The modules of patchkit that a module imports, itself not."""
    known = {m.removesuffix(".py").removesuffix("/__init__").replace("/", "."): m for m in MODULES}
    own = {name.removeprefix("patchkit.") for name in _imports(module)}
    return {known[name] for name in own & known.keys()} - {module}


@pytest.mark.parametrize(
    ("makes", "places"),
    [
        ("drift/forecast.py", series_facts._ENGINE),
        ("refresh/carry_onto.py", series_facts._ENGINE),
        ("extensions/python_guards/agreement.py", known_modules.CODE),
        ("manifest/load.py", cached._CODE),
    ],
)
def test_what_is_kept_follows_from_all_code_that_made_it(
    makes: str, places: tuple[str, ...]
) -> None:
    """But for what brings bytes, whole or as an error, and for what only holds values."""
    brings = (
        "__init__",
        "entry_points",
        "errors",
        "parallel",
        "disk/",
        "gitcmd/",
        "upstream/",
        "manifest/",
    )
    values = (
        "extensions/recipes/rule",
        "model/objects",
        "model/progress",
    )
    holds = {f"{name}.py" for name in values}
    left, made_by = {m for m in MODULES if m.startswith(makes)}, set[str]()
    while left - made_by:
        made_by |= left
        left = {need for m in left - holds for need in _needs(m)}
    kept = {m for m in made_by if {m.removesuffix(".py"), m.rpartition("/")[0]} & set(places)}
    assert sorted(m for m in made_by - kept - holds if not m.startswith(brings)) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {m: _needs(m) for m in MODULES}
    while ready := [m for m, needs in left.items() if not needs & left.keys()]:
        for m in ready:
            del left[m]
    assert left == {}


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("typer", ("cli/", "extensions/")),
        ("rich", "cli/"),
        ("platformdirs", "cli/"),
        ("git", "gitcmd/"),
        ("jinja2", "templates/"),
        ("yaml", "manifest/"),
        ("ast_grep_py", "extensions/recipes/"),
        ("mcp", "extensions/agents/"),
        ("anyio", "extensions/agents/"),
    ],
)
def test_a_library_has_one_home(library: str, home: str | tuple[str, ...]) -> None:
    users = [m for m in MODULES if library in {name.split(".")[0] for name in _imports(m)}]
    assert [m for m in users if not m.startswith(home)] == []


def test_click_is_never_imported() -> None:
    assert [m for m in MODULES if "click" in {n.split(".")[0] for n in _imports(m)}] == []


def test_only_gitcmd_and_sources_spawn() -> None:
    ways = {"subprocess", "os.system", "pty", "anyio"}
    spawners = {m for m in MODULES if ways & set(_imports(m))}
    # the package index is asked through the user's pip or uv, a machine through its programs
    others = {m for m in spawners if not m.startswith("gitcmd/")}
    assert others <= {
        "cli/main.py",  # starts nothing, and imports it in a cheaper way
        "upstream/index.py",
        "extensions/agents/mcp_command.py",
        "extensions/agents/server.py",  # patchkit itself, anew for each call
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


#: Of them half are an operation that only its own command calls.
_MOST_WITH_ONE_USER = 30


#: The nodes of patchkit/'s syntax trees: lower it with what you remove. Only an issue that names a
#: number raises it: adopting patch sets where they lie may come to 466,266, and code that changes
#: other code while it runs takes 21,000 more, all of them in extensions/.
MOST_NODES = 485_970
#: Without extensions/.
MOST_NODES_OF_THE_CORE = 351_589


def test_the_house_does_not_grow() -> None:
    assert size() <= MOST_NODES
    assert size(core=True) <= MOST_NODES_OF_THE_CORE


def test_few_modules_have_one_user() -> None:
    """The rest say in their docstring why they are apart, but for `ops` of a single command, and
    what an extension loads for its own.
    """
    users: dict[str, set[str]] = {}
    for m in MODULES:
        for name in _imports(m):
            users.setdefault(name, set()).add(m)
    known = {m: "patchkit." + m.removesuffix(".py").replace("/", ".") for m in MODULES}
    lonely = [
        m
        for m in MODULES
        if len(users.get(known[m], ())) == 1 and not m.startswith(("cli/commands/", "extensions/"))
    ]
    assert len(lonely) <= _MOST_WITH_ONE_USER, lonely


def test_no_two_modules_have_one_name() -> None:
    """But for a command's own: `patchkit apply` is cli/commands/apply.py and ops/apply.py."""
    commands = {Path(m).stem for m in MODULES if m.startswith("cli/commands/")}
    stems = [Path(m).stem for m in MODULES if not m.startswith("cli/commands/")]
    twice = {stem for stem in stems if stems.count(stem) > 1} - {"__init__"}
    assert twice - commands == set()


def test_no_two_public_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for m in MODULES:
        for name in _facts(m).classes:
            homes.setdefault(name, []).append(m)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def _is_command(module: str) -> bool:
    return module.startswith("cli/commands/") or module.endswith("_command.py")


def test_functions_are_short() -> None:
    """A command's declares its options, one each: a long list, and no long thought."""
    long = [_facts(m).long for m in MODULES if not _is_command(m)]
    assert [each for of in long for each in of] == []


def test_few_functions_take_many_values() -> None:
    """What is handed on from one to the next is one value; these take it from a command line."""
    wide = [each for m in MODULES if not _is_command(m) for each in _facts(m).wide]
    assert sorted(wide) == [
        "cli/session.py __init__",
        "drift/forecast.py __init__",
        "extensions/bisect/bisection.py bisect_stack",
        "ops/check.py check_manifests",
    ]


def test_every_module_says_what_it_is_for() -> None:
    assert [m for m in MODULES if not _facts(m).docstring] == []


def test_what_is_imported_is_declared() -> None:
    tree = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8")
    listed = tree.partition("dependencies = [\n")[2].partition("\n]")[0]
    # the libraries of `patchkit mcp`, which has an extra of its own; the second is a part of mcp
    extra = tree.partition("\nmcp = [")[2].partition("]")[0]
    declared = set(re.findall(r'"([a-z0-9-]+)', listed + extra)) | {"mcp-types"}
    named = {"ast-grep-py": "ast_grep_py", "gitpython": "git", "pyyaml": "yaml"}
    named |= {"mcp-types": "mcp_types"}
    known = {named.get(each, each) for each in declared} | set(sys.stdlib_module_names)
    used = {name.split(".")[0] for m in MODULES for name in _imports(m)} - {"patchkit"}
    assert used - known == set()


#: Where str.splitlines is right, and why.
SPLITLINES = {
    "model/diff_parse.py": 1,  # of bytes without a carriage return: only a newline ends a line
    "upstream/requirements.py": 1,  # a requirements file: pip splits it so
}


def test_lines_of_others_end_at_a_newline_only() -> None:
    """str.splitlines also ends lines at U+2028, U+0085, form feeds: names and texts have them."""
    calls = {m: _facts(m).splitlines for m in MODULES}
    assert {m: count for m, count in calls.items() if count} == SPLITLINES


def test_what_is_mutated_is_there() -> None:
    """A module that was renamed would be left out without a word."""
    patterns = {p for group in GROUPS for p in (*group.modules, *group.leaves_out, *group.tests)}
    assert sorted(p for p in patterns if not list(ROOT.parent.glob(p))) == []
