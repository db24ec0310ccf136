"""What must hold between the values of a manifest, once each of them is right by itself.

Works on nodes, so that every problem has its line, and passes over what is malformed: that has been
told already.

Apart from `load`, its only user: that reads one value after the other, here they meet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from patchkit.disk.files import is_inside
from patchkit.errors import Problem
from patchkit.manifest.types import check_inner_path, holds_secret, is_local
from patchkit.manifest.validate import Suggestions, shown
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table
from patchkit.model.names import ALWAYS_THERE, VALUE_NAME, is_patch_name, referred
from patchkit.model.text import listed

#: A hint names so many components.
_NAMED = 50

# What must hold between the keys by which patchkit guards patches.


def check_guards(manifest: Table) -> Iterator[Problem]:
    """What is wrong with overrides, as a target that is none, and with what contracts say."""
    names, suggestions = dict.fromkeys(manifest.names("components")), Suggestions()
    tables = manifest.named_tables("components")
    for key, table in tables:
        yield from _targets(key.text, table, names, suggestions)
    yield from _guard_packages([(key.text, table.get("contracts")) for key, table in tables])


def _guard_packages(declared: list[tuple[str, Node | None]]) -> Iterator[Problem]:
    """Packages that two components give, and names that are both true and false."""
    givers: dict[str, str] = {}
    for name, node in declared:
        if not isinstance(node, Table):
            continue
        for package in _scalars(node.get("packages")):
            if package.text in givers:
                other = givers[package.text]
                hint = "name what lies in each: megatron.core, megatron.bridge"
                what = f"{package.text} is given by {other}, too"
                yield Problem(what, str(package.where), hint)
            givers.setdefault(package.text, name)
        holding = set(node.texts("holds"))
        for each in _scalars(node.get("fails")):
            if each.text in holding:
                hint = "leave out what is not certainly one of them"
                yield Problem(f"{each.text} is under `holds`, too", str(each.where), hint)


def _targets(
    name: str, component: Table, names: Mapping[str, None], suggestions: Suggestions
) -> Iterator[Problem]:
    seen: set[str] = set()
    for table in component.tables("overrides"):
        target = table.get("target")
        if not isinstance(target, Scalar):
            continue
        where = str(target.where)
        if target.text == name:
            yield Problem(f"{name} overrides itself", where, "name another component")
        elif target.text not in names:
            others = f"components here: {listed([*names], _NAMED)}"
            hint = suggestions.hint([target.text], names, others)
            yield Problem(f"{target.text} is not a component of this manifest", where, hint)
        elif target.text in seen:
            hint = "put the rules into one file"
            yield Problem(f"{name} overrides {target.text} twice", where, hint)
        seen.add(target.text)


# What must hold between the keys from which the files for a machine are made.
#
# On nodes, for the lines; what is malformed in itself has been told already.


def check_machine(manifest: Table) -> Iterator[Problem]:
    """What is wrong between environment, values, image, launches and components."""
    yield from _references(manifest)
    components = manifest.named_tables("components")
    for owner in (manifest, *(table for _, table in components)):
        yield from _set_twice(owner)
    names = {key.text: None for key, _ in components}
    for _, launch in manifest.named_tables("launch"):
        yield from _place(launch, names)
        yield from _lists(launch)


def _references(manifest: Table) -> Iterator[Problem]:
    """`${name}` that is the name of no value."""
    suggestions = Suggestions()
    known = dict.fromkeys((*manifest.names("values"), *ALWAYS_THERE))
    for scalar in _texts_with_values(manifest):
        for name in referred(scalar.text):
            if name in known:
                continue
            if VALUE_NAME.fullmatch(name):
                others = f"declare it: `values: {{{name}: ...`"
                hint = suggestions.hint([name], known, others)
                yield Problem(f"${{{name}}} is not a site value", str(scalar.where), hint)
            else:
                hint = "site values are lower-case words in braces; `$${` is a plain `${`"
                what = f"{shown(scalar.text)} has a ${{ that begins no site value"
                yield Problem(what, str(scalar.where), hint)


def _texts_with_values(manifest: Table) -> Iterator[Scalar]:
    for owner in (manifest, *(table for _, table in manifest.named_tables("components"))):
        environment = owner.get("environment")
        if isinstance(environment, Table):
            for key in ("scripts", "variables", "paths"):
                yield from _scalars(environment.get(key))
    image = manifest.get("image")
    if isinstance(image, Table):
        yield from _scalars(image.get("base"))
    for _, launch in manifest.named_tables("launch"):
        yield from _scalars(launch.get("variables"))
        yield from _scalars(launch.get("arguments"))


def _set_twice(owner: Table) -> Iterator[Problem]:
    environment = owner.get("environment")
    if not isinstance(environment, Table):
        return
    variables = set(environment.names("variables"))
    for key, _ in environment.pairs("paths"):
        if key.text in variables:
            yield Problem(
                f"{key.text} is in variables and in paths",
                str(key.where),
                "variables replace what is there, paths go before it: keep one",
            )


def _place(launch: Table, components: Mapping[str, None]) -> Iterator[Problem]:
    node = launch.get("component")
    if isinstance(node, Scalar) and node.text not in components:
        hint = f"components here: {listed([*components], _NAMED)}"
        what = f"{shown(node.text)} is not a component of this manifest"
        yield Problem(what, str(node.where), hint)


def _lists(launch: Table) -> Iterator[Problem]:
    for _, group in launch.named_tables("arguments"):
        for key, value in group.entries:
            if isinstance(value, Items) and not key.text.startswith("-"):
                yield Problem(
                    f"{shown(key.text)} has a list of values",
                    str(value.where),
                    "only a name that begins with - can; write the whole text after the =",
                )


def check_rules(manifest: Table, root: Path) -> Iterator[Problem]:
    """What is wrong between values; `root` is the project's folder."""
    components = manifest.named_tables("components")
    by_name = {key.text: table for key, table in components}
    yield from _environments(manifest)
    yield from check_machine(manifest)
    yield from check_guards(manifest)
    yield from _checkouts(components)
    yield from _series_files(components)
    for key, table in components:
        yield from _environments(table)
        yield from _patches(key.text, table, by_name)
        yield from _places(table, root)


def find_warnings(manifest: Table) -> Iterator[Problem]:
    """What is allowed and unwise."""
    for scalar in _scalars(manifest):
        if holds_secret(scalar.text):
            yield Problem(
                "a URL has a user name or password in it",
                str(scalar.where),
                "whoever reads the manifest has it: use git's credential helper, or ~/.netrc",
            )
        elif scalar.text.startswith("file:") and is_local(scalar.text):
            yield Problem(
                f"{scalar.text} is a place on this machine",
                str(scalar.where),
                "others do not have it: use a URL, or a relative path",
            )


def _environments(table: Table) -> Iterator[Problem]:
    environment = table.get("environment")
    if isinstance(environment, Table):
        wanted, unwanted = (environment.get(key) for key in ("versions", "unsupported"))
        yield from _spellings(wanted)
        yield from _spellings(unwanted)
        yield from _contradictions(wanted, unwanted)


def _contradictions(wanted: Node | None, unwanted: Node | None) -> Iterator[Problem]:
    asked_for = dict(_packages(wanted))
    for normal, key in _packages(unwanted):
        if normal in asked_for:
            place = _seen_from(key, asked_for[normal])
            yield Problem(
                f"{key.text} does not work, and is asked for in {place}",
                str(key.where),
                "delete one of them",
            )


def _packages(node: Node | None) -> Iterator[tuple[str, Scalar]]:
    """(normal name, key): `torch_npu` is `torch-npu` (PEP 503)."""
    for key, _ in node.entries if isinstance(node, Table) else ():
        yield re.sub(r"[-_.]+", "-", key.text).lower(), key


def _spellings(node: Node | None) -> Iterator[Problem]:
    """One package under two spellings."""
    seen: dict[str, Scalar] = {}
    for normal, key in _packages(node):
        first = seen.setdefault(normal, key)
        if first.text != key.text:
            yield Problem(
                f"{key.text} is the same package as {first.text} in {_seen_from(key, first)}",
                str(key.where),
                "keep one of them",
            )


def _checkouts(components: Sequence[tuple[Scalar, Table]]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for key, table in components:
        node = table.get("checkout")
        folder = node if isinstance(node, Scalar) else key
        owner = seen.setdefault(folder.text.casefold(), key.text)
        if owner != key.text:
            yield Problem(
                f"checkout {folder.text} of {key.text} is the folder of {owner}, too",
                str(folder.where),
                "two folders must differ in more than case",
            )


def _series_files(components: Sequence[tuple[Scalar, Table]]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for key, table in components:
        for entry in table.tables("patches"):
            series = entry.get("series")
            if not isinstance(series, Scalar):
                continue
            owner = seen.setdefault(_plain(series.text), key.text)
            if owner != key.text:
                yield Problem(
                    f"series {series.text} of {key.text} is the series of {owner}, too",
                    str(series.where),
                    "each component has a series of its own; `refresh` writes there",
                )


def _patches(name: str, table: Table, components: dict[str, Table]) -> Iterator[Problem]:
    series: list[Table] = []
    names: dict[str, Table] = {}
    for entry in table.tables("patches"):
        if entry.get("series") is not None:
            series.append(entry)
            continue
        yield from _patch_name(entry, names)
        yield from _origin(name, entry, components)
    for entry in series[1:]:
        yield Problem(
            f"{name} has a second series, the first is in {_seen_from(entry, series[0])}",
            str(entry.where),
            "one series per component: `refresh` must know where to write",
        )


def _patch_name(entry: Table, names: dict[str, Table]) -> Iterator[Problem]:
    node = entry.get("name") or entry.get("patch") or entry.get("path")
    if not isinstance(node, Scalar):
        return
    name = node.text.rpartition("/")[2]
    if not name:
        return  # a folder, told already
    if node is entry.get("path") and not is_patch_name(name):
        yield Problem(
            f"{name} cannot name a patch",
            str(node.where),
            "give it one beside `path`: `name: something.patch`",
        )
        return
    first = names.setdefault(name.casefold(), entry)
    if first is not entry:
        yield Problem(
            f"{name} is the name of the patch in {_seen_from(node, first)}, too",
            str(node.where),
            "rename one"
            if node is entry.get("patch")
            else "drop it if it is the same patch, else give it another `name:`",
        )


def _origin(name: str, entry: Table, components: dict[str, Table]) -> Iterator[Problem]:
    node = entry.get("component")
    if not isinstance(node, Scalar):
        return
    where = str(node.where)
    if node.text == name:
        hint = "a patch of the upstream's own: name it by `git:` and `commit:`"
        yield Problem(f"{name} takes a patch from itself", where, hint)
    elif node.text not in components:
        hint = f"components here: {listed([*components], _NAMED)}"
        yield Problem(f"{node.text} is not a component of this manifest", where, hint)
    else:
        source = components[node.text].get("source")
        if isinstance(source, Table) and source.get("git") is None:
            hint = "a patch can be taken from a component with a git source"
            yield Problem(f"{node.text} is not a git repository", where, hint)


def _places(table: Table, root: Path) -> Iterator[Problem]:
    """Local paths that leave the project through a symbolic link."""
    for entry in table.tables("patches"):
        node = entry.get("series") or entry.get("patch")
        if not isinstance(node, Scalar) or check_inner_path(node.text) is not None:
            continue
        if not is_inside(root / node.text, root):
            yield Problem(
                f"{node.text} leads out of the project",
                str(node.where),
                "a symbolic link on the way; patches stay below the project's folder",
            )


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Items):
        for item in node.items:
            yield from _scalars(item)
    elif isinstance(node, Table):
        for _, value in node.entries:
            yield from _scalars(value)


def _seen_from(here: Node, there: Node) -> str:
    """Where `there` stands, for a message about `here`: another file is named."""
    same = here.where.file == there.where.file
    return f"line {there.where.line}" if same else str(there.where)


def _plain(path: str) -> str:
    return os.path.normpath(path).casefold()
