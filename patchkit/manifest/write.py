"""Manifest values -> YAML text that loads again to the same values, and plain data for JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import yaml

from patchkit.manifest.format import FORMAT_VERSION
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    Contracts,
    Environment,
    ExternalMerger,
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
    RuleStep,
    RunStep,
    SiteValue,
    Source,
    TextStep,
    UpstreamTests,
    VerifyStep,
)
from patchkit.manifest.yaml_nodes import Reading, reading_of

Data: TypeAlias = "str | int | list[Data] | dict[str, Data]"

# Plain words: no character or beginning with a meaning in YAML, whatever stands around them.
_PLAIN = re.compile(r"[A-Za-z0-9/_.][A-Za-z0-9/_.+-]*")
# On a line of its own a value may have more: words, URLs.
_PLAIN_LINE = re.compile(r"(?:(?:^| )[A-Za-z0-9/_.(][A-Za-z0-9/_.+@:%~?&=,;()'-]*(?<!:))+")


def manifest_data(manifest: Manifest) -> dict[str, Data]:
    """A manifest in the format's own keys and order, `extends` and defaults of folders resolved."""
    data: dict[str, Data] = {"version": FORMAT_VERSION}
    data |= _given(description=manifest.description)
    data |= _given(upon=list(manifest.upon))
    data |= _given(environment=_environment(manifest.environment))
    data |= _given(
        values={each.name: _value(each) for each in manifest.values},
        image={} if manifest.image is None else _image(manifest.image),
        launch={each.name: _launch(each) for each in manifest.launches},
    )
    data |= _given(mergers=[_merger(each) for each in manifest.mergers])
    data["components"] = {each.name: component_data(each) for each in manifest.components}
    return data


def component_data(component: Component) -> dict[str, Data]:
    """A component in the format's keys."""
    data: dict[str, Data] = _given(description=component.description)
    data["source"] = _source(component.source)
    data["pin"] = _pin(component.pin)
    data |= _given(track=component.track or "")
    data["checkout"] = component.checkout
    data["strip"] = component.strip
    data |= _given(
        subdirectory=component.subdirectory,
        layout={old or ".": new or "." for old, new in component.layout.items()},
        differing=[
            {"files": list(each.files), "reason": each.reason} for each in component.differing
        ],
        patches=[_patch(each) for each in component.patches],
        install=[_step(each) for each in component.install],
        environment=_environment(component.environment),
        overrides=[_overrides(each) for each in component.overrides],
        verify=[_verify(each) for each in component.verify],
        residual=_given(rules=list(component.residual.rules), baseline=component.residual.baseline),
        contracts=_contracts(component.contracts),
        upstream_tests=_upstream_tests(component.upstream_tests),
    )
    return data


def _upstream_tests(tests: UpstreamTests | None) -> dict[str, Data]:
    if tests is None:
        return {}
    more = _given(directory=tests.directory, variables=dict(tests.variables))
    return {"run": tests.run, **more}


def _merger(merger: ExternalMerger) -> dict[str, Data]:
    more = _given(name=merger.name, seconds=merger.seconds)
    return {"files": list(merger.files), "run": merger.run, **more}


def _contracts(contracts: Contracts | None) -> dict[str, Data]:
    if contracts is None:
        return {}
    return _given(
        packages=list(contracts.packages),
        root=contracts.root,
        entries=list(contracts.entries),
        holds=list(contracts.holds),
        fails=list(contracts.fails),
        calls=[
            {"call": each.call, "files": list(each.files), "to": each.to}
            for each in contracts.calls
        ],
        outside=list(contracts.outside),
        absent=[{"name": each.name, "reason": each.reason} for each in contracts.absent],
    )


def _overrides(overrides: Overrides) -> dict[str, Data]:
    absent: list[Data] = [{"name": each.name, "reason": each.reason} for each in overrides.absent]
    data = {"target": overrides.target, "rule": overrides.rule}
    more = _given(packages=list(overrides.packages), root=overrides.root, absent=absent)
    return {**data, **more}


def _verify(step: VerifyStep) -> dict[str, Data]:
    data: dict[str, Data]
    match step:
        case TextStep():
            data = {"present" if step.wanted else "absent": step.text, "files": list(step.files)}
            data |= _given(optional=step.optional)
        case RuleStep():
            data = {"rules": step.rules}
        case RunStep():
            data = {"run": step.run, **_given(directory=step.directory)}
    return {**data, **_given(name=step.name, after=step.after)}


def yaml_text(data: Mapping[str, Data]) -> str:
    """Data as YAML: blocks, one value a line, with a final newline."""
    return "".join(f"{line}\n" for line in _lines(data, 0))


def flow_mapping(entry: Mapping[str, str | int]) -> str:
    """A mapping of plain values on one line, in braces."""
    return "{" + ", ".join(f"{quoted(key)}: {_scalar(value)}" for key, value in entry.items()) + "}"


def quoted(text: str) -> str:
    """A text as a YAML scalar, with quotes where YAML or a reader could take it for another."""
    if _PLAIN.fullmatch(text) and reading_of(text) is Reading.TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


def _lines(data: Mapping[str, Data], indent: int) -> Iterable[str]:
    for key, value in data.items():
        head = " " * indent + quoted(key) + ":"
        if isinstance(value, dict) and value:
            yield head
            yield from _lines(value, indent + 2)
        elif isinstance(value, list) and value:
            yield head
            yield from _item_lines(value, indent + 2)
        else:
            yield f"{head} {_inline(value)}"


def _item_lines(items: list[Data], indent: int) -> Iterable[str]:
    for item in items:
        dash = " " * indent + "- "
        if isinstance(item, dict):
            first, *rest = _lines(item, indent + 2)
            yield dash + first.lstrip(" ")
            yield from rest
        else:
            yield dash + _inline(item)


def _inline(value: Data) -> str:
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if isinstance(value, str) and _PLAIN_LINE.fullmatch(value):
        return value if reading_of(value) is Reading.TEXT else json.dumps(value)
    return _scalar(value)


def _scalar(value: str | int) -> str:
    return str(value) if isinstance(value, int) else quoted(value)


def _given(**values: Data) -> dict[str, Data]:
    """Only what is not empty."""
    return {key: value for key, value in values.items() if value not in ("", [], {})}


def _source(source: Source) -> dict[str, Data]:
    match source:
        case GitSource():
            return {"git": source.url, **_given(mirrors=list(source.mirrors))}
        case ArchiveSource():
            return {"archive": source.url, **_given(mirrors=list(source.mirrors))}
        case IndexSource():
            return {"index": source.project}


def _pin(pin: Pin) -> Data:
    match pin:
        case GitPin():
            return pin.commit
        case IndexPin():
            return {"version": pin.version, "sha256": pin.sha256}
        case ArchivePin():
            return {"sha256": pin.sha256}


def _patch(entry: PatchEntry) -> dict[str, Data]:
    match entry:
        case LocalSeries():
            return {"series": entry.path}
        case LocalPatch():
            return {"patch": entry.path}
        case PinnedPatch():
            data: dict[str, Data] = _given(
                component=entry.component or "",
                git=entry.git or "",
                commit=entry.commit or "",
                path=entry.path,
                sha256=entry.sha256,
                name=entry.name or "",
                other_base=[{"file": f.path, "reason": f.reason} for f in entry.other_base],
            )
            return data if entry.strip is None else {**data, "strip": entry.strip}


def _step(step: InstallStep) -> dict[str, Data]:
    return {"run": step.run, **_given(name=step.name, directory=step.directory)}


def _value(value: SiteValue) -> dict[str, Data]:
    data: dict[str, Data] = {"description": value.description}
    return data if value.default is None else {**data, "default": value.default}


def _image(image: Image) -> dict[str, Data]:
    return {"base": image.base, **_given(packages=list(image.packages))}


def _launch(launch: Launch) -> dict[str, Data]:
    return {
        **_given(
            description=launch.description,
            component=launch.component or "",
            directory=launch.directory,
            variables=dict(launch.variables),
            before=[_step(each) for each in launch.before],
        ),
        "command": launch.command,
        **_given(
            arguments={
                group: {
                    name: value if isinstance(value, str) else list(value)
                    for name, value in arguments.items()
                }
                for group, arguments in launch.arguments.items()
            }
        ),
    }


def _environment(environment: Environment) -> dict[str, Data]:
    return _given(
        versions=dict(environment.versions),
        scripts=list(environment.scripts),
        variables=dict(environment.variables),
        paths={name: list(folders) for name, folders in environment.paths.items()},
        unsupported=dict(environment.unsupported),
    )


# Plain data as YAML in which texts of several lines stand as blocks: for files that hold code.


class _Dumper(yaml.SafeDumper):
    """Lists set in, no anchors: what editors and people expect."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """As in PyYAML, but list items stand further in than their key."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        """Equal values are written out, each at its place."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML writes quotes where a block cannot say the text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def block_yaml(data: Mapping[str, Any]) -> bytes:
    """The file's bytes; the keys keep their order."""
    text = yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000
    )
    return str(text).encode()
