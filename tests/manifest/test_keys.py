"""Keys are declared by annotations, and an extension can add some."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from patchkit import entry_points
from patchkit.errors import BadInputError
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.json_schema import json_schema
from patchkit.manifest.keys import record_of, struct_data
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import Component, Manifest
from tests.support.projects import write_files

_TEXT = """\
version: 1
components:
  demo:
    source: {git: https://example.com/demo.git}
    pin: "1111111111111111111111111111111111111111"
    audit:
      - {by: somebody, level: %s}
    verify:
      - {mood: good}
"""

_KEYS = '''\
"""What an extension declares: a key of components, and what stands under it."""

from typing import Annotated

from msgspec import Struct

from patchkit.errors import Problem
from patchkit.manifest.types import Line, Number
from patchkit.manifest.values import Location, VerifyStep


class Audit(Struct, frozen=True):
    """Somebody looked."""

    by: Annotated[Line, "Who."]
    where: Location
    level: Annotated[int, Number(1, 9), "How closely."] = 1


class AuditKeys(Struct, frozen=True):
    """Keys that are added to a component's."""

    audit: Annotated[tuple[Audit, ...], "Who looked at the component."] = ()

    @staticmethod
    def problems(manifest):
        for by in manifest.scalars("components.*.audit.*.by"):
            if by.text == "nobody":
                yield Problem("nobody cannot look", str(by.where), "ask somebody")


class MoodStep(VerifyStep, frozen=True, kw_only=True):
    """How it must feel."""

    mood: Annotated[Line, "The mood."]
'''


@contextmanager
def extended(site: Path, keys: str = "audited:AuditKeys") -> Iterator[None]:
    """An extension's key is one of a component's."""
    points = f"[patchkit.keys]\ncomponent.audit = {keys}\nverify-step.mood = audited:MoodStep\n"
    files = {"audited.py": _KEYS, "audited-1.dist-info/entry_points.txt": points}
    write_files(site, files)
    sys.path.insert(0, str(site))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        shutil.rmtree(site)
        _forget()


def _forget() -> None:
    sys.modules.pop("audited", None)
    for cached in (entry_points.named, entry_points.texts, record_of):
        cached.cache_clear()


@pytest.fixture
def added(tmp_path: Path) -> Iterator[None]:
    """For a whole test."""
    with extended(tmp_path / "site"):
        yield


def _written(level: object) -> Path:
    Path("m.yaml").write_text(_TEXT % level)
    return Path("m.yaml")


def refused(read: Callable[[], object]) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        read()
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.usefixtures("added")
def test_an_added_key_is_read_typed_and_written(tmp_path: Path) -> None:
    from audited import AuditKeys, MoodStep  # type: ignore[import-not-found]  # noqa: PLC0415

    path = _written(3)
    (component,) = load_manifest(path).components
    (audit,) = component.added(AuditKeys).audit
    assert (audit.by, audit.level, str(audit.where)) == ("somebody", 3, "m.yaml:7")
    (step,) = component.verify
    assert isinstance(step, MoodStep)
    assert step.mood == "good"
    for _ in range(2):  # read, and from the cache
        assert read_manifest(path, tmp_path / "cache") == load_manifest(path)
    assert struct_data(component)["audit"] == [{"by": "somebody", "level": 3}]
    without = replace(component, more={"audit": (replace(audit, level=1),)})
    assert struct_data(without)["audit"] == [{"by": "somebody"}]


@pytest.mark.usefixtures("added")
def test_a_mistake_in_an_added_key_has_its_place() -> None:
    path = _written(12)
    what = "components.demo.audit[1].level: 12 is out of range"
    assert refused(partial(load_manifest, path)) == [f"m.yaml:7: {what}"]
    path.write_text(_TEXT.replace("somebody", "nobody") % 3)  # which the extension itself says
    assert refused(partial(load_manifest, path)) == ["m.yaml:7: nobody cannot look"]
    properties = json_schema()["properties"]["components"]["additionalProperties"]["properties"]
    assert properties["audit"]["description"] == "Who looked at the component."
    steps = properties["verify"]["items"]["oneOf"]
    (mood,) = (step for step in steps if step["title"] == "mood")
    assert mood["properties"]["mood"]["description"] == "The mood."


def test_without_the_extension_its_keys_are_refused(tmp_path: Path) -> None:
    """Also where the manifest was read with it, and is kept."""
    path, cache = _written(3), tmp_path / "cache"
    with extended(tmp_path / "site"):
        read_manifest(path, cache)
    assert refused(partial(read_manifest, path, cache)) == [
        "m.yaml:6: components.demo.audit is an unknown key",
        "m.yaml:9: components.demo.verify[1] says nothing of present, absent, run, rules",
    ]


def test_one_that_cannot_be_loaded_is_named_at_its_key(tmp_path: Path) -> None:
    path = _written(3)
    with extended(tmp_path / "site", "gone:AuditKeys"):
        what = "an extension cannot be loaded: No module named 'gone'"
        told = refused(partial(read_manifest, path, tmp_path / "cache"))
        assert told == [f"m.yaml:7: components.demo.audit: {what}"]
        path.write_text(path.read_text().partition("    audit:")[0])
        assert read_manifest(path, tmp_path / "cache").components[0].more == {}
        path.write_text(path.read_text() + "    adit: 1\n")
        with pytest.raises(BadInputError, match=r"demo\.adit is an unknown key"):
            read_manifest(path, tmp_path / "cache")


def test_a_manifest_is_read_again_by_another_version(tmp_path: Path) -> None:
    path, cache, site = _written(3), tmp_path / "cache", tmp_path / "site"
    with extended(site):
        read_manifest(path, cache)
        write_files(site, {"audited.py": _KEYS + "\n# a newer one\n"})
        path.chmod(0o644)
        files = {file: file.stat().st_mtime_ns for file in (cache / "manifests").iterdir()}
        read_manifest(path, cache)
        assert all(file.stat().st_mtime_ns > before for file, before in files.items())


def test_a_manifest_has_keys_of_its_own_and_of_no_extension() -> None:
    assert all(
        field.attribute for kind in (Manifest, Component) for field in record_of(kind).fields
    )
