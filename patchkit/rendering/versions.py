"""The version table: what a stack is made of, for a README or a page of documentation."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from patchkit.manifest.values import Component, Environment, LocalSeries, Manifest
from patchkit.rendering import notation
from patchkit.series import read_series


class ComponentRow(Struct, frozen=True):
    """A line of the table, each cell as Markdown."""

    name: str
    pin: str
    source: str
    patches: str
    description: str


class VersionTable(Struct, frozen=True):
    """The components in order, what they run in, and what does not work; cells as Markdown."""

    rows: tuple[ComponentRow, ...]
    environment: Mapping[str, str]
    unsupported: Mapping[str, str]


def version_table(manifest: Manifest, environment: Environment) -> VersionTable:
    """The table of a manifest; reads its series files. Raises BadInputError."""
    return VersionTable(
        tuple(_row(manifest, each) for each in manifest.components),
        {
            notation.markdown(_LABELS.get(name, name)): notation.code(_shown(specifier))
            for name, specifier in environment.versions.items()
        },
        {
            notation.markdown(name): notation.markdown(reason)
            for name, reason in environment.unsupported.items()
        },
    )


#: How documents call the system's software.
_LABELS = {
    "python": "Python",
    "cann": "CANN",
    "nnal": "NNAL",
    "hdk": "HDK (driver and firmware)",
    "driver": "driver",
    "firmware": "firmware",
}


def _row(manifest: Manifest, component: Component) -> ComponentRow:
    return ComponentRow(
        name=notation.markdown(component.name),
        pin=notation.pin_cell(component.source, component.pin),
        source=notation.source_cell(component.source),
        patches=str(_patch_count(manifest, component) or "none"),
        description=notation.markdown(component.description),
    )


def _patch_count(manifest: Manifest, component: Component) -> int:
    return sum(
        len(read_series(manifest, entry).entries) if isinstance(entry, LocalSeries) else 1
        for entry in component.patches
    )


def _shown(specifier: str) -> str:
    """`==2.8.0` is just 2.8.0 to a reader."""
    exact = specifier.removeprefix("==")
    return exact if "," not in exact and exact != specifier and "*" not in exact else specifier
