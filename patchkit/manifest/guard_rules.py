"""What must hold between the keys by which patchkit guards patches; see rules.py."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.errors import Problem
from patchkit.manifest.checking import near
from patchkit.manifest.nodes import Items, Node, Scalar, Table


def check_guards(manifest: Table) -> Iterator[Problem]:
    """What is wrong with overrides: a target that is none, or that is named twice."""
    components = manifest.get("components")
    entries = components.entries if isinstance(components, Table) else ()
    names = [key.text for key, _ in entries]
    for key, table in entries:
        if isinstance(table, Table):
            yield from _targets(key.text, table.get("overrides"), names)


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
