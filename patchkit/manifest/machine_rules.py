"""What must hold between the keys from which the files for a machine are made.

As rules.py: on nodes, for the lines; what is malformed in itself has been told already.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.errors import Problem
from patchkit.manifest.checking import near, shown
from patchkit.manifest.nodes import Items, Node, Scalar, Table
from patchkit.model.references import ALWAYS_THERE, VALUE_NAME, referred


def check_machine(manifest: Table) -> Iterator[Problem]:
    """What is wrong between environment, values, image, launches and components."""
    yield from _references(manifest)
    for owner in (manifest, *_tables(manifest.get("components"))):
        yield from _set_twice(owner)
    for launch in _tables(manifest.get("launch")):
        yield from _place(launch, manifest)
        yield from _lists(launch)


def _references(manifest: Table) -> Iterator[Problem]:
    """`${name}` that is the name of no value."""
    declared = [key.text for key, _ in _entries(manifest.get("values"))]
    known = [*declared, *ALWAYS_THERE]
    for scalar in _texts_with_values(manifest):
        for name in referred(scalar.text):
            if name in known:
                continue
            if VALUE_NAME.fullmatch(name):
                close = near(name, known)
                hint = f"did you mean {close}?" if close else f"declare it: `values: {{{name}: ...`"
                yield Problem(f"${{{name}}} is no site value", str(scalar.where), hint)
            else:
                hint = "site values are lower-case words in braces; `$${` is a plain `${`"
                what = f"{shown(scalar.text)} has a ${{ that begins no site value"
                yield Problem(what, str(scalar.where), hint)


def _texts_with_values(manifest: Table) -> Iterator[Scalar]:
    for owner in (manifest, *_tables(manifest.get("components"))):
        environment = owner.get("environment")
        if isinstance(environment, Table):
            for key in ("scripts", "variables", "paths"):
                yield from _scalars(environment.get(key))
    image = manifest.get("image")
    if isinstance(image, Table):
        yield from _scalars(image.get("base"))
    for launch in _tables(manifest.get("launch")):
        yield from _scalars(launch.get("variables"))
        yield from _scalars(launch.get("arguments"))


def _set_twice(owner: Table) -> Iterator[Problem]:
    environment = owner.get("environment")
    if not isinstance(environment, Table):
        return
    variables = {key.text for key, _ in _entries(environment.get("variables"))}
    for key, _ in _entries(environment.get("paths")):
        if key.text in variables:
            yield Problem(
                f"{key.text} is in variables and in paths",
                str(key.where),
                "variables replace what is there, paths go before it: keep one",
            )


def _place(launch: Table, manifest: Table) -> Iterator[Problem]:
    node = launch.get("component")
    components = [key.text for key, _ in _entries(manifest.get("components"))]
    if isinstance(node, Scalar) and node.text not in components:
        hint = f"components here: {', '.join(components)}"
        yield Problem(f"{shown(node.text)} is no component of this manifest", str(node.where), hint)


def _lists(launch: Table) -> Iterator[Problem]:
    for group in _tables(launch.get("arguments")):
        for key, value in group.entries:
            if isinstance(value, Items) and not key.text.startswith("-"):
                yield Problem(
                    f"{shown(key.text)} has a list of values",
                    str(value.where),
                    "only a name that begins with - can; write the whole text after the =",
                )


def _entries(node: Node | None) -> tuple[tuple[Scalar, Node], ...]:
    return node.entries if isinstance(node, Table) else ()


def _tables(node: Node | None) -> list[Table]:
    return [value for _, value in _entries(node) if isinstance(value, Table)]


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Items):
        for item in node.items:
            yield from _scalars(item)
    else:
        for _, value in _entries(node):
            yield from _scalars(value)
