"""Keys are declared by annotations, and an extension can add some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from patchkit.errors import BadInputError
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.json_schema import json_schema
from patchkit.manifest.keys import record_of, struct_data
from patchkit.manifest.load import load_manifest
from patchkit.manifest.types import ADDED
from patchkit.manifest.values import Component, Manifest
from tests.manifest.added_keys import Audit, AuditKeys

_TEXT = """\
version: 1
components:
  demo:
    source: {git: https://example.com/demo.git}
    pin: "1111111111111111111111111111111111111111"
    audit:
      - {by: somebody, level: %s}
"""


@contextmanager
def extended() -> Iterator[None]:
    """An extension's key is one of a component's."""
    ADDED[Component] = {"audit": lambda: AuditKeys}
    record_of.cache_clear()
    try:
        yield
    finally:
        del ADDED[Component]
        record_of.cache_clear()


@pytest.fixture
def added() -> Iterator[None]:
    """For a whole test."""
    with extended():
        yield


def _written(level: object) -> Path:
    Path("m.yaml").write_text(_TEXT % level)
    return Path("m.yaml")


def _audit(component: Component) -> Audit:
    audits = component.more["audit"]
    assert isinstance(audits, tuple)
    (audit,) = audits
    assert isinstance(audit, Audit)
    return audit


@pytest.mark.usefixtures("added")
def test_an_added_key_is_read_and_kept_by_name(tmp_path: Path) -> None:
    path = _written(3)
    (component,) = load_manifest(path).components
    audit = _audit(component)
    assert (audit.by, audit.level, str(audit.where)) == ("somebody", 3, "m.yaml:7")
    for _ in range(2):  # read, and from the cache
        assert read_manifest(path, tmp_path / "cache") == load_manifest(path)


@pytest.mark.usefixtures("added")
def test_a_mistake_in_an_added_key_has_its_place() -> None:
    with pytest.raises(BadInputError) as caught:
        load_manifest(_written(12))
    assert str(caught.value) == "m.yaml:7: components.demo.audit[1].level: 12 is out of range"
    properties = json_schema()["properties"]["components"]["additionalProperties"]["properties"]
    assert properties["audit"]["description"] == "Who looked at the component."


def test_without_the_extension_its_key_is_refused(tmp_path: Path) -> None:
    """Also where the manifest was read with it, and is kept."""
    path, cache = _written(3), tmp_path / "cache"
    with extended():
        read_manifest(path, cache)
    with pytest.raises(BadInputError, match=r"demo\.audit is an unknown key"):
        read_manifest(path, cache)


@pytest.mark.usefixtures("added")
def test_an_added_key_is_written() -> None:
    (component,) = load_manifest(_written(3)).components
    assert struct_data(component)["audit"] == [{"by": "somebody", "level": 3}]
    audit = _audit(component)
    without = replace(component, more={"audit": (replace(audit, level=1),)})
    assert struct_data(without)["audit"] == [{"by": "somebody"}]


def test_a_manifest_has_keys_of_its_own_and_of_no_extension() -> None:
    assert all(
        field.attribute for kind in (Manifest, Component) for field in record_of(kind).fields
    )


def test_an_extension_is_asked_where_its_key_is_met() -> None:
    def gone() -> type[AuditKeys]:
        raise AssertionError("nobody needs it")

    Path("m.yaml").write_text(_TEXT.partition("    audit:")[0])
    with extended():
        ADDED[Component]["audit"] = gone
        record_of.cache_clear()
        assert load_manifest(Path("m.yaml")).components[0].more == {}
        path = _written(3)
        with pytest.raises(AssertionError):
            load_manifest(path)
