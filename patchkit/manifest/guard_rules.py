"""What must hold between the keys by which patchkit guards patches; see rules.py."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.errors import Problem
from patchkit.manifest.checking import near
from patchkit.manifest.nodes import Items, Node, Scalar, Table


def check_guards(manifest: Table) -> Iterator[Problem]:
    """What is wrong with overrides, as a target that is none, and with what contracts say."""
    components = manifest.get("components")
    entries = components.entries if isinstance(components, Table) else ()
    names = [key.text for key, _ in entries]
    for key, table in entries:
        if isinstance(table, Table):
            yield from _targets(key.text, table.get("overrides"), names)
    tables = [(key.text, table) for key, table in entries if isinstance(table, Table)]
    yield from _packages([(name, table.get("contracts")) for name, table in tables])


def _packages(declared: list[tuple[str, Node | None]]) -> Iterator[Problem]:
    """Packages that two components give, and names that are both true and false."""
    givers: dict[str, str] = {}
    for name, node in declared:
        if not isinstance(node, Table):
            continue
        for package in _scalars(node, "packages"):
            if package.text in givers:
                other = givers[package.text]
                hint = "name what lies in each: megatron.core, megatron.bridge"
                what = f"{package.text} is given by {other}, too"
                yield Problem(what, str(package.where), hint)
            givers.setdefault(package.text, name)
        holding = {each.text for each in _scalars(node, "holds")}
        for each in _scalars(node, "fails"):
            if each.text in holding:
                hint = "what is neither for certain belongs into none of them"
                yield Problem(f"{each.text} is under `holds`, too", str(each.where), hint)


def _scalars(table: Table, key: str) -> list[Scalar]:
    node = table.get(key)
    return [n for n in node.items if isinstance(n, Scalar)] if isinstance(node, Items) else []


def _targets(name: str, node: Node | None, names: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for table in node.items if isinstance(node, Items) else ():
        target = table.get("target") if isinstance(table, Table) else None
        if not isinstance(target, Scalar):
            continue
        where = str(target.where)
        if target.text == name:
            yield Problem(f"{name} overrides itself", where, "name another component")
        elif target.text not in names:
            close = near(target.text, names)
            hint = f"did you mean {close}?" if close else f"components here: {', '.join(names)}"
            yield Problem(f"{target.text} is no component of this manifest", where, hint)
        elif target.text in seen:
            hint = "put the rules into one file"
            yield Problem(f"{name} overrides {target.text} twice", where, hint)
        seen.add(target.text)
