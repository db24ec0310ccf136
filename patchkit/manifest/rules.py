"""What must hold between the values of a manifest, once each of them is right by itself.

Works on nodes, so that every problem has its line, and passes over what is malformed: that has been
told already.

Apart from `load`, its only user: that reads one value after the other, here they meet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from patchkit import entry_points
from patchkit.disk.files import is_inside
from patchkit.errors import Problem, SurroundingsError
from patchkit.manifest.keys import added_keys
from patchkit.manifest.types import check_inner_path, holds_secret, is_local
from patchkit.manifest.validate import Suggestions, shown
from patchkit.manifest.values import normal_name
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table
from patchkit.model.names import ALWAYS_THERE, VALUE_NAME, is_patch_name, referred
from patchkit.model.text import listed

#: A hint names so many components.
_NAMED = 50

_Components: TypeAlias = Sequence[tuple[Scalar, Table]]
_Thing = TypeVar("_Thing")
_Check: TypeAlias = Callable[[Table], Iterable[Problem]]


def check_rules(manifest: Table, root: Path) -> Iterator[Problem]:
    """What is wrong between values; `root` is the project's folder."""
    pairs = manifest.pairs("components")
    tables = [(key, table) for key, table in pairs if isinstance(table, Table)]
    suggestions = Suggestions()
    yield from _references(manifest)
    yield from _folders(tables)
    for owner in (manifest, *(table for _, table in tables)):
        yield from _environment(owner)
    names = {key.text: table for key, table in tables}
    for launch in manifest.tables("launch.*"):
        for node in launch.scalars("component"):
            yield from strangers(node, names, suggestions)
        yield from _lists(launch)
    for key, table in tables:
        yield from _patches(key.text, table, names, suggestions)
        yield from _places(table, root)
    yield from _added(manifest)


def find_warnings(manifest: Table) -> Iterator[Problem]:
    """What is allowed and unwise."""
    for scalar in manifest.scalars():
        where = str(scalar.where)
        if holds_secret(scalar.text):
            hint = "whoever reads the manifest has it: use git's credential helper, or ~/.netrc"
            yield Problem("a URL has a user name or password in it", where, hint)
        elif scalar.text.startswith("file:") and is_local(scalar.text):
            hint = "others do not have it: use a URL, or a relative path"
            yield Problem(f"{scalar.text} is a place on this machine", where, hint)


def strangers(
    node: Scalar, names: Mapping[str, object], suggestions: Suggestions
) -> Iterator[Problem]:
    """The name of a component that is none."""
    if node.text not in names:
        others = f"components here: {listed([*names], _NAMED)}"
        hint = suggestions.hint([node.text], names, others)
        what = f"{shown(node.text)} is not a component of this manifest"
        yield Problem(what, str(node.where), hint)


def repeated(things: Iterable[tuple[str, _Thing]]) -> Iterator[tuple[_Thing, _Thing]]:
    """Each thing whose word another had before, and the first of that word."""
    first: dict[str, _Thing] = {}
    for word, thing in things:
        if first.setdefault(word, thing) is not thing:
            yield thing, first[word]


def _added(manifest: Table) -> Iterator[Problem]:
    """What extensions say of the keys that they add."""
    owners = {"manifest": [manifest], "component": [*manifest.tables("components.*")]}
    met = {
        place
        for title, tables in owners.items()
        for key, place in added_keys(title).items()
        if any(table.get(key) for table in tables)
    }
    for place in sorted(met):
        with suppress(SurroundingsError):  # told where the key is
            check: _Check = getattr(entry_points.load(place), "problems", lambda _: ())
            yield from check(manifest)


# The environment, and what refers to site values.


def _references(manifest: Table) -> Iterator[Problem]:
    """`${name}` that is the name of no value."""
    suggestions = Suggestions()
    known = dict.fromkeys((*(key.text for key, _ in manifest.pairs("values")), *ALWAYS_THERE))
    for scalar in _texts_with_values(manifest):
        for name in referred(scalar.text):
            if name in known:
                continue
            if VALUE_NAME.fullmatch(name):
                hint = suggestions.hint([name], known, f"declare it: `values: {{{name}: ...`")
                yield Problem(f"${{{name}}} is not a site value", str(scalar.where), hint)
            else:
                hint = "site values are lower-case words in braces; `$${` is a plain `${`"
                what = f"{shown(scalar.text)} has a ${{ that begins no site value"
                yield Problem(what, str(scalar.where), hint)


def _texts_with_values(manifest: Table) -> Iterator[Scalar]:
    for owner in (manifest, *manifest.tables("components.*")):
        for key in ("scripts", "variables", "paths"):
            yield from owner.scalars(f"environment.{key}")
    launches = (f"launch.*.{key}" for key in ("variables", "needs", "ray", "arguments"))
    for path in ("image.base", *launches):
        yield from manifest.scalars(path)


def _environment(owner: Table) -> Iterator[Problem]:
    for environment in owner.tables("environment"):
        variables = {key.text for key, _ in environment.pairs("variables")}
        for key, _ in environment.pairs("paths"):
            if key.text in variables:
                hint = "variables replace what is there, paths go before it: keep one"
                yield Problem(f"{key.text} is in variables and in paths", str(key.where), hint)
        wanted, unwanted = (_packages(environment, key) for key in ("versions", "unsupported"))
        for packages in (wanted, unwanted):
            for key, first in repeated(packages):
                if first.text != key.text:
                    what = f"{key.text} is the same package as {first.text} in"
                    what = f"{what} {_seen_from(key, first)}"
                    yield Problem(what, str(key.where), "keep one of them")
        asked_for = dict(wanted)
        for normal, key in unwanted:
            if normal in asked_for:
                place = _seen_from(key, asked_for[normal])
                what = f"{key.text} does not work, and is asked for in {place}"
                yield Problem(what, str(key.where), "delete one of them")


def _packages(environment: Table, key: str) -> list[tuple[str, Scalar]]:
    return [(normal_name(name.text), name) for name, _ in environment.pairs(key)]


def _lists(launch: Table) -> Iterator[Problem]:
    for group in launch.tables("arguments.*"):
        for key, value in group.entries:
            if isinstance(value, Items) and not key.text.startswith("-"):
                hint = "only a name that begins with - can; write the whole text after the ="
                yield Problem(f"{shown(key.text)} has a list of values", str(value.where), hint)


# Folders and patches.


def _folders(components: _Components) -> Iterator[Problem]:
    """Checkouts and series that two components have."""
    checkouts, series = [], []
    for key, table in components:
        node = table.get("checkout")
        folder = node if isinstance(node, Scalar) else key
        checkouts.append((folder.text.casefold(), (folder, key.text)))
        series += [
            (f"{os.path.normpath(path.text)}\0{entry.text('target')}".casefold(), (path, key.text))
            for entry in table.tables("patches.*")
            if isinstance(path := entry.get("series") or entry.get("folder"), Scalar)
        ]
    for (folder, name), (_, owner) in repeated(checkouts):
        if owner != name:
            what = f"checkout {folder.text} of {name} is the folder of {owner}, too"
            yield Problem(what, str(folder.where), "two folders must differ in more than case")
    for (path, name), (_, owner) in repeated(series):
        if owner != name:
            hint = "each component has a series of its own; `refresh` writes there"
            what = f"series {path.text} of {name} is the series of {owner}, too"
            yield Problem(what, str(path.where), hint)


def _patches(
    name: str, table: Table, components: Mapping[str, Table], suggestions: Suggestions
) -> Iterator[Problem]:
    entries = list(table.tables("patches.*"))
    series = [entry for entry in entries if entry.get("series") or entry.get("folder")]
    for entry in series[1:]:
        place = _seen_from(entry, series[0])
        what = f"{name} has a second series, the first is in {place}"
        hint = "one series per component: `refresh` must know where to write"
        yield Problem(what, str(entry.where), hint)
    for entry in series:
        for node in entry.scalars("of") if entry.get("branch") is None else ():
            hint = "write `branch: NAME` beside it, or delete it"
            yield Problem("`of` names a repository, and no branch of it", str(node.where), hint)
    single = [entry for entry in entries if entry not in series]
    yield from _patch_names(single)
    for entry in single:
        for origin in entry.scalars("component"):
            yield from _origin(name, origin, components, suggestions)


def _patch_names(entries: Iterable[Table]) -> Iterator[Problem]:
    names: list[tuple[str, tuple[Table, Scalar, str]]] = []
    for entry in entries:
        node = entry.get("name") or entry.get("patch") or entry.get("path")
        name = node.text.rpartition("/")[2] if isinstance(node, Scalar) else ""
        if not isinstance(node, Scalar) or not name:
            continue  # malformed, or a folder: told already
        if node is entry.get("path") and not is_patch_name(name):
            hint = "give it one beside `path`: `name: something.patch`"
            yield Problem(f"{name} cannot name a patch", str(node.where), hint)
        else:
            names.append((name.casefold(), (entry, node, name)))
    for (entry, node, name), (first, _, _) in repeated(names):
        what = f"{name} is the name of the patch in {_seen_from(node, first)}, too"
        is_own = node is entry.get("patch")
        hint = "drop it if it is the same patch, else give it another `name:`"
        yield Problem(what, str(node.where), "rename one" if is_own else hint)


def _origin(
    name: str, node: Scalar, components: Mapping[str, Table], suggestions: Suggestions
) -> Iterator[Problem]:
    where = str(node.where)
    if node.text == name:
        hint = "a patch of the upstream's own: name it by `git:` and `commit:`"
        yield Problem(f"{name} takes a patch from itself", where, hint)
    yield from strangers(node, components, suggestions)
    source = components[node.text].get("source") if node.text in components else None
    if node.text != name and isinstance(source, Table) and source.get("git") is None:
        hint = "a patch can be taken from a component with a git source"
        yield Problem(f"{node.text} is not a git repository", where, hint)


def _places(table: Table, root: Path) -> Iterator[Problem]:
    """Local paths that leave the project through a symbolic link."""
    for key in ("series", "patch"):
        for node in table.scalars(f"patches.*.{key}"):
            if check_inner_path(node.text) is None and not is_inside(root / node.text, root):
                hint = "a symbolic link on the way; patches stay below the project's folder"
                yield Problem(f"{node.text} leads out of the project", str(node.where), hint)


def _seen_from(here: Node, there: Node) -> str:
    """Where `there` stands, for a message about `here`: another file is named."""
    same = here.where.file == there.where.file
    return f"line {there.where.line}" if same else str(there.where)
