"""What a component's metadata says: its distribution, its version, what it asks others for.

Read from the files of a commit, never run. A version that only tags know is unknown here: see
`tagging`.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.parser import HeaderParser
from importlib import import_module
from typing import Any, TypeAlias

from patchkit.machine.requirements import read_wishes
from patchkit.manifest.environments import normal_name
from patchkit.manifest.values import InstallStep
from patchkit.planning.values import Declaration, Need

#: A file of the component's tree by its path; None if there is none.
ReadFile: TypeAlias = Callable[[str], "bytes | None"]

_ATTRIBUTE = re.compile(r"[\w.]+")
_FROM_TAGS = re.compile(rb"setuptools[-_]scm|hatch[-_]vcs|versioningit|vcs[-_]versioning|pbr\b")
_KEYWORDS = ("name", "version")
#: Characters of a name or version; adding a text to itself doubles it.
_LONGEST = 1000


def declaration_of(read: ReadFile, steps: Sequence[InstallStep], otherwise: str) -> Declaration:
    """What the metadata says that the install steps install; `otherwise` is a name to go by."""
    folders = dict.fromkeys([*(step.directory for step in steps), ""])
    name = version = ""
    for folder in folders:
        found = _identity(read, f"{folder}/" if folder else "")
        name, version = name or found[0], version or found[1]
    needs = (
        Need(normal_name(wish.requirement.name), str(wish.requirement.specifier), wish.file)
        for wish in read_wishes(read, steps).wishes
        if wish.requirement.marker is None or "extra" not in str(wish.requirement.marker)
    )
    known = tuple(dict.fromkeys(need for need in needs if need.specifier))
    by_tags = not version and any(_asks_git(read, f"{each}/" if each else "") for each in folders)
    return Declaration(normal_name(name or otherwise), version, known, by_tags)


def _asks_git(read: ReadFile, prefix: str) -> bool:
    """Whether the build takes the version from git's tags."""
    files = (read(f"{prefix}{name}") for name in ("pyproject.toml", "setup.cfg", "setup.py"))
    return any(_FROM_TAGS.search(data) for data in files if data is not None)


def _identity(read: ReadFile, prefix: str) -> tuple[str, str]:
    name = version = ""
    for file, parse in (
        ("pyproject.toml", _pyproject),
        ("setup.cfg", _setup_cfg),
        ("setup.py", _setup_py),
        ("PKG-INFO", _pkg_info),
    ):
        data = read(prefix + file)
        if data is not None:
            with suppress(RecursionError, MemoryError):  # nested without end
                found = parse(data.decode("utf-8", "replace"), read, prefix)
                name, version = name or found[0], version or found[1]
    return name[:_LONGEST], version[:_LONGEST]


def _pyproject(text: str, read: ReadFile, prefix: str) -> tuple[str, str]:
    try:
        told = import_module("tomllib").loads(text)
    except (ImportError, ValueError):
        return "", ""
    project = _table(told, "project")
    version = project.get("version", "")
    if not version:
        dynamic = _table(told, "tool", "setuptools", "dynamic").get("version")
        version = _dynamic(dynamic, read, prefix) if isinstance(dynamic, dict) else ""
    return _text(project.get("name")), _text(version)


def _dynamic(told: Mapping[str, Any], read: ReadFile, prefix: str) -> str:
    files = told.get("file", [])
    for file in [files] if isinstance(files, str) else files if isinstance(files, list) else []:
        data = read(f"{prefix}{file}")
        if data is not None:
            return data.decode("utf-8", "replace").strip()
    return _attribute(str(told.get("attr", "")), read, prefix)


def _attribute(dotted: str, read: ReadFile, prefix: str) -> str:
    """The value of a.b.NAME, of the file a/b.py or a/b/__init__.py."""
    module, _, name = dotted.rpartition(".")
    if not module or not _ATTRIBUTE.fullmatch(dotted):
        return ""
    path = module.replace(".", "/")
    for root in (prefix, f"{prefix}src/"):
        for file in (f"{root}{path}.py", f"{root}{path}/__init__.py"):
            data = read(file)
            if data is not None:
                return _constants(data.decode("utf-8", "replace")).get(name, "")
    return ""


def _setup_cfg(text: str, read: ReadFile, prefix: str) -> tuple[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return "", ""
    version = parser.get("metadata", "version", fallback="").strip()
    kind, _, where = version.partition(":")
    if kind in ("attr", "file"):
        version = _dynamic({kind: where.strip()}, read, prefix)
    return parser.get("metadata", "name", fallback="").strip(), version


def _setup_py(text: str, _read: ReadFile, _prefix: str) -> tuple[str, str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return "", ""
    known = _values(tree)
    found = dict.fromkeys(_KEYWORDS, "")
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _called(call) == "setup":
            for keyword in call.keywords:
                if keyword.arg in found:
                    found[keyword.arg] = _text(_value(keyword.value, known))
    return found["name"], found["version"]


def _pkg_info(text: str, _read: ReadFile, _prefix: str) -> tuple[str, str]:
    headers = HeaderParser().parsestr(text)
    return headers.get("Name", ""), headers.get("Version", "")


# --- what assignments of a module come to, without running it


def _constants(text: str) -> dict[str, str]:
    try:
        known = _values(ast.parse(text))
    except (SyntaxError, ValueError):
        return {}
    return {name: _text(value) for name, value in known.items()}


def _values(tree: ast.Module) -> dict[str, object]:
    known: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    known[target.id] = _value(node.value, known)
    return known


def _value(node: ast.expr, known: Mapping[str, object]) -> object:
    """The value of an expression of constants, names, slices, `+` and joins; None if unknown."""
    value: object = None
    match node:
        case ast.Constant():
            value = node.value
        case ast.Name():
            value = known.get(node.id)
        case ast.Tuple() | ast.List():
            value = tuple(_value(each, known) for each in node.elts)
        case ast.Subscript():
            value = _sliced(_value(node.value, known), node.slice)
        case ast.BinOp(op=ast.Add()):
            value = _joined("", [_value(node.left, known), _value(node.right, known)])
        case ast.JoinedStr():
            value = _joined("", [_value(each, known) for each in node.values])
        case ast.FormattedValue():
            value = _text(_value(node.value, known)) or None
        case ast.Call():
            value = _call(node, known)
    return value


def _call(node: ast.Call, known: Mapping[str, object]) -> object:
    """`str(x)`, `map(str, xs)` and `"".join(xs)`."""
    arguments = [_value(each, known) for each in node.args]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and len(arguments) == 1:
        between, parts = _value(node.func.value, known), arguments[0]
        if isinstance(between, str) and isinstance(parts, tuple):
            return _joined(between, parts)
    name = _called(node)
    if name == "str" and len(arguments) == 1:
        return _text(arguments[0]) or None
    return arguments[1] if name == "map" and len(arguments) == 2 else None


def _joined(between: str, parts: Sequence[object]) -> str | None:
    texts = [_text(part) for part in parts if isinstance(part, str | int)]
    length = sum(map(len, texts)) + len(between) * len(texts)
    return between.join(texts) if len(texts) == len(parts) and length <= _LONGEST else None


def _sliced(value: object, part: ast.expr) -> object:
    if not isinstance(value, tuple | str):
        return None
    try:
        if isinstance(part, ast.Slice):
            bounds = [ast.literal_eval(e) if e else None for e in (part.lower, part.upper)]
            return value[bounds[0] : bounds[1]]
        return value[ast.literal_eval(part)]
    except (ValueError, TypeError, IndexError):
        return None


def _text(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 999:  # thousands of digits are no text
        return ""
    return str(value) if isinstance(value, str | int) else ""


def _called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _table(told: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        below = told.get(name)
        told = below if isinstance(below, dict) else {}
    return told


def asked_for(read: ReadFile, steps: Sequence[InstallStep]) -> Iterator[str]:
    """The paths that `declaration_of` reads, whether or not they are there."""
    asked: list[str] = []

    def recording(path: str) -> bytes | None:
        asked.append(path)
        return read(path)

    declaration_of(recording, steps, "")
    yield from dict.fromkeys(asked)
