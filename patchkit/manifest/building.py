"""Checked nodes -> the frozen values of a manifest. Nothing is refused here any more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchkit.manifest.nodes import Items, Node, Scalar, Table
from patchkit.manifest.urls import resolve_url
from patchkit.manifest.values import (
    AbsentTarget,
    ArchivePin,
    ArchiveSource,
    ArgumentValue,
    Component,
    Contracts,
    DeclaredCall,
    Environment,
    GitPin,
    GitSource,
    Image,
    IndexPin,
    IndexSource,
    InstallStep,
    Launch,
    LocalPatch,
    LocalSeries,
    Manifest,
    Overrides,
    PatchEntry,
    Pin,
    PinnedPatch,
    Residual,
    ReviewedFile,
    RuleStep,
    RunStep,
    SiteValue,
    Source,
    TextStep,
    VerifyStep,
)


def build_manifest(table: Table, path: Path, root: Path) -> Manifest:
    """The manifest that a checked table says."""
    return Manifest(
        path=path,
        root=root,
        name=path.stem,
        components=tuple(
            _component(key, value, root) for key, value in _named_tables(table, "components")
        ),
        environment=_environment(table.get("environment")),
        description=_text(table, "description"),
        values=tuple(_value(key, value) for key, value in _named_tables(table, "values")),
        image=_image(table.get("image")),
        launches=tuple(_launch(key, value) for key, value in _named_tables(table, "launch")),
    )


def _component(key: Scalar, table: Table, root: Path) -> Component:
    pin = table.get("pin")
    assert pin is not None
    return Component(
        name=key.text,
        source=_source(_table(table, "source"), root),
        pin=_pin(pin),
        where=key.where,
        pin_where=(pin.get("version") or pin.get("sha256") or pin).where
        if isinstance(pin, Table)
        else pin.where,
        track=_optional(table, "track"),
        checkout=_text(table, "checkout", key.text),
        strip=_number(table, "strip", 1),
        subdirectory=_folder(table, "subdirectory"),
        patches=tuple(_patch(each, root) for each in _tables(table, "patches")),
        install=tuple(_step(each) for each in _tables(table, "install")),
        environment=_environment(table.get("environment")),
        description=_text(table, "description"),
        overrides=tuple(_overrides(each) for each in _tables(table, "overrides")),
        verify=tuple(_verify(each) for each in _tables(table, "verify")),
        residual=_residual(table.get("residual")),
        contracts=_contracts(table.get("contracts")),
    )


def _overrides(table: Table) -> Overrides:
    return Overrides(
        target=_text(table, "target"),
        rule=_folder(table, "rule"),
        packages=tuple(_texts(table, "packages")),
        where=table.where,
        root=_folder(table, "root"),
        absent=_absent(table),
    )


def _contracts(node: Node | None) -> Contracts | None:
    if not isinstance(node, Table):
        return None
    calls = (
        DeclaredCall(
            _text(each, "call"), tuple(_texts(each, "files")), _text(each, "to"), each.where
        )
        for each in _tables(node, "calls")
    )
    return Contracts(
        packages=tuple(_texts(node, "packages")),
        where=node.where,
        root=_folder(node, "root"),
        entries=tuple(_texts(node, "entries")),
        holds=tuple(_texts(node, "holds")),
        fails=tuple(_texts(node, "fails")),
        calls=tuple(calls),
        outside=tuple(_texts(node, "outside")),
        absent=_absent(node),
    )


def _absent(table: Table) -> tuple[AbsentTarget, ...]:
    return tuple(
        AbsentTarget(_text(each, "name"), _text(each, "reason").strip(), each.where)
        for each in _tables(table, "absent")
    )


def _verify(table: Table) -> VerifyStep:
    where, name, after = table.where, _text(table, "name"), _text(table, "after")
    if table.get("run") is not None:
        return RunStep(_text(table, "run"), where, name, after, _folder(table, "directory"))
    if table.get("rules") is not None:
        return RuleStep(_folder(table, "rules"), where, name, after)
    wanted = table.get("present") is not None
    text = _text(table, "present" if wanted else "absent").removesuffix("\n")
    return TextStep(text, wanted, tuple(_texts(table, "files")), where, name, after)


def _residual(node: Node | None) -> Residual:
    if not isinstance(node, Table):
        return Residual()
    rules = tuple(_plain_path(each) for each in _texts(node, "rules"))
    return Residual(rules, _folder(node, "baseline"))


def _source(table: Table, root: Path) -> Source:
    project = table.get("index")
    if project is not None:
        return IndexSource(_text(table, "index"))
    mirrors = tuple(resolve_url(url, root) for url in _texts(table, "mirrors"))
    if table.get("archive") is not None:
        return ArchiveSource(resolve_url(_text(table, "archive"), root), mirrors)
    return GitSource(resolve_url(_text(table, "git"), root), mirrors)


def _pin(node: Node) -> Pin:
    if isinstance(node, Scalar):
        return GitPin(node.text)
    assert isinstance(node, Table)
    if node.get("version") is None:
        return ArchivePin(_text(node, "sha256"))
    return IndexPin(_text(node, "version"), _text(node, "sha256"))


def _patch(table: Table, root: Path) -> PatchEntry:
    if table.get("series") is not None:
        return LocalSeries(_folder(table, "series"), table.where)
    if table.get("patch") is not None:
        return LocalPatch(_folder(table, "patch"), table.where)
    git = _optional(table, "git")
    strip = table.get("strip")
    return PinnedPatch(
        path=_text(table, "path"),
        sha256=_text(table, "sha256"),
        where=table.where,
        component=_optional(table, "component"),
        git=None if git is None else resolve_url(git, root),
        commit=_optional(table, "commit"),
        strip=None if strip is None else _number(table, "strip", 0),
        name=_optional(table, "name"),
        other_base=tuple(
            ReviewedFile(_text(each, "file"), _text(each, "reason").strip(), each.where)
            for each in _tables(table, "other_base")
        ),
    )


def _step(table: Table) -> InstallStep:
    return InstallStep(
        run=_text(table, "run"),
        name=_text(table, "name"),
        directory=_folder(table, "directory"),
    )


def _environment(node: Node | None) -> Environment:
    if not isinstance(node, Table):
        return Environment()
    return Environment(
        versions=_mapping(node, "versions"),
        scripts=tuple(_texts(node, "scripts")),
        variables=_mapping(node, "variables"),
        paths=_lists(node, "paths"),
        unsupported=_mapping(node, "unsupported"),
    )


def _value(key: Scalar, table: Table) -> SiteValue:
    return SiteValue(key.text, _text(table, "description"), _optional(table, "default"), key.where)


def _image(node: Node | None) -> Image | None:
    if not isinstance(node, Table):
        return None
    return Image(_text(node, "base"), tuple(_texts(node, "packages")))


def _launch(key: Scalar, table: Table) -> Launch:
    groups = _named_tables(table, "arguments")
    return Launch(
        name=key.text,
        command=_text(table, "command"),
        where=key.where,
        description=_text(table, "description"),
        component=_optional(table, "component"),
        directory=_folder(table, "directory"),
        variables=_mapping(table, "variables"),
        before=tuple(_step(each) for each in _tables(table, "before")),
        arguments={group.text: _arguments(values) for group, values in groups},
    )


def _arguments(table: Table) -> Mapping[str, ArgumentValue]:
    return {
        key.text: value.text if isinstance(value, Scalar) else tuple(_texts(table, key.text))
        for key, value in table.entries
    }


def _lists(table: Table, key: str) -> Mapping[str, tuple[str, ...]]:
    node = table.get(key)
    if not isinstance(node, Table):
        return {}
    return {name.text: tuple(_texts(node, name.text)) for name, _ in node.entries}


def _mapping(table: Table, key: str) -> Mapping[str, str]:
    node = table.get(key)
    if not isinstance(node, Table):
        return {}
    return {name.text: value.text for name, value in node.entries if isinstance(value, Scalar)}


def _table(table: Table, key: str) -> Table:
    node = table.get(key)
    assert isinstance(node, Table)
    return node


def _named_tables(table: Table, key: str) -> list[tuple[Scalar, Table]]:
    node = table.get(key)
    entries = node.entries if isinstance(node, Table) else ()
    return [(name, value) for name, value in entries if isinstance(value, Table)]


def _tables(table: Table, key: str) -> list[Table]:
    node = table.get(key)
    return [n for n in node.items if isinstance(n, Table)] if isinstance(node, Items) else []


def _texts(table: Table, key: str) -> list[str]:
    node = table.get(key)
    return [n.text for n in node.items if isinstance(n, Scalar)] if isinstance(node, Items) else []


def _optional(table: Table, key: str) -> str | None:
    node = table.get(key)
    return node.text if isinstance(node, Scalar) else None


def _text(table: Table, key: str, default: str = "") -> str:
    found = _optional(table, key)
    return default if found is None else found


def _folder(table: Table, key: str) -> str:
    """A checked path in its one spelling: without `./` and a final slash."""
    return _plain_path(_text(table, key))


def _plain_path(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _number(table: Table, key: str, default: int) -> int:
    found = _optional(table, key)
    return default if found is None else int(found)
