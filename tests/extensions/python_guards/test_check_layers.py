"""`check` of a manifest that lies upon another one: what both change, and which of them wins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extensions.python_guards.test_overrides import CORE as SMALL
from tests.extensions.python_guards.test_overrides import RULES, RULES_FILE, overriding
from tests.support.golden import Golden
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch

_BODY = "".join(f"    x = step({number}, x)\n" for number in range(12))
OPS = f"def scale(x, by=2):\n{_BODY}    return x * by\n\n\ndef shift(x):\n{_BODY}    return x + 1\n"
OPS += f"\n\nclass Norm:\n    def norm(self, x):\n        return x\n\n\n{'# end' * 3}\n"
CORE = {**SMALL, "core/ops.py": OPS}


def _patch(old: str, new: str) -> bytes:
    after = OPS.replace(old, new, 1)
    assert after != OPS
    body = "Because.\n\nUpstream-Status: Pending"
    return make_patch(CORE, {**CORE, "core/ops.py": after}, subject="Change ops", body=body)


@dataclass
class Layers:
    """Manifest `vendor` with a patch, and `demo` upon it with another one."""

    project: Project
    core: Upstream

    def add(self, manifest: str, patch: bytes, name: str, *upon: str, pin: str = "") -> None:
        """A manifest with a patch of core, on its first commit or on `pin`."""
        path = f"patches/{manifest}/{name}.patch"
        self.project.write({path: patch})
        pin = pin or self.core.commit({**CORE}, parents=(), minute=1)
        self.project.component("core", self.core, pin, [{"patch": path}], manifest=manifest)
        self.upon(manifest, *upon)

    def two(self, below: bytes, above: bytes) -> None:
        self.add("vendor", below, "below")
        self.add("demo", above, "above", "vendor")

    def upon(self, manifest: str, *names: str) -> None:
        """Put a manifest upon others."""
        path = self.project.root / "manifests" / f"{manifest}.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "upon": [*names]}))

    def found(self, component: str = "core") -> list[dict[str, Any]]:
        """What `check` of demo says of layers and overrides."""
        ran = self.project.run("check", "-m", "demo", "-c", component, "--json")
        (checked,) = ran.json["components"]
        kinds = ("layers", "override-patched", "override-wrapped")
        return [each for each in checked["findings"] if each["code"].startswith(kinds)]


@pytest.fixture
def layers(project: Project, tmp_path: Path) -> Layers:
    """No manifest yet."""
    return Layers(project, Upstream.create(tmp_path / "core.git"))


_LAST = ("return x + 1", "return x + 2")
_FIRST = ("def shift(x):\n", "def shift(x):\n    x = abs(x)\n")


_SCALE = ("return x * by", "return by * x")


def test_one_function_changed_twice(layers: Layers) -> None:
    layers.two(_patch(*_LAST), _patch(*_FIRST))
    (only,) = layers.found()
    what = "shift is changed by vendor: below.patch and by demo: above.patch: both run"
    assert (only["code"], only["severity"], only["what"]) == ("layers-both", "note", what)
    assert only["where"] == "core: core/ops.py:17"
    layers.project.run("check", "-m", "demo", "--strict", "--offline").ok()


def test_two_that_do_not_go_together(layers: Layers, golden: Golden) -> None:
    """Each applies to the pin; the one on top has its place taken, which `install` says, too."""
    layers.two(_patch(*_LAST), _patch("return x + 1", "return x + 3"))
    project = layers.project
    golden("check-upon", project.run("check", "-m", "demo"))
    (only,) = layers.found()
    what = "demo: above.patch does not apply on top of vendor: below.patch"
    assert (only["code"], only["severity"], only["what"]) == ("layers-conflict", "error", what)
    write_files(project.root / "site", CORE)
    project.run("install", "site", "-m", "vendor").ok()
    ran = project.run("install", "site", "-m", "demo", "--json")
    assert [each["result"] for each in ran.json["components"]] == ["conflicted"]


def test_the_same_patch_twice(layers: Layers) -> None:
    layers.two(_patch(*_LAST), _patch(*_LAST))
    (only,) = layers.found()
    what = "demo: above.patch is vendor: below.patch again, and does not apply on top of it"
    assert only["what"] == what


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_LAST, _SCALE),
        (("def scale", "import os\n\n\ndef scale"), ("# end", "import re\n# end")),
        (("def shift(x):\n", "def shift(x):\n    # why\n"), _LAST),
        (("        return x\n", "        return x\n\n    def new(self):\n        pass\n"), _LAST),
    ],
)
def test_two_functions_are_no_alarm(
    layers: Layers, one: tuple[str, str], other: tuple[str, str]
) -> None:
    """Nor two imports, nor a comment."""
    layers.two(_patch(*one), _patch(*other))
    assert layers.found() == []


def test_another_pin(layers: Layers) -> None:
    layers.add("vendor", _patch(*_LAST), "below")
    layers.add("demo", _patch(*_LAST), "above", "vendor", pin=layers.core.commit({"x": "x\n"}))
    (only,) = layers.found()
    assert (only["code"], only["severity"]) == ("layers-pin", "warning")


def test_a_lower_manifest_replaces_what_is_patched_above(
    layers: Layers, upstream: Upstream
) -> None:
    """And the other way round: its patches are off where a component above replaces a function."""
    layers.project.write({RULES_FILE: yaml.safe_dump(RULES)})
    layers.two(_patch(*_SCALE), _patch(*_LAST))
    text = "def register(m):\n"
    text += "    m.replace('core.ops.scale', mine)\n    m.replace('core.ops.shift', mine)\n"
    for manifest in ("vendor", "demo"):
        pin = upstream.commit({"speed/features.py": text, "of": manifest}, "speed")
        declared = [overriding()]
        layers.project.component("speed", upstream, pin, manifest=manifest, overrides=declared)
    layers.upon("demo", "vendor")
    (only,) = layers.found()
    shift = "core.ops.shift is changed by above.patch and replaced by"
    assert only["what"] == f"{shift} vendor: speed, which wins"
    assert sorted(each["where"] + " " + each["what"] for each in layers.found("speed")) == [
        f"core: core/ops.py:17 {shift} speed, which wins",
        "vendor: core: core/ops.py:1 core.ops.scale is changed by below.patch and replaced by "
        "speed, which wins",
    ]


@pytest.mark.parametrize(
    ("vendor", "demo", "said"),
    [
        ((), ("nowhere",), "upon: nowhere: no such manifest"),
        (("demo",), ("vendor",), "is layered on itself: demo -> vendor -> demo"),
        ((), ("demo",), "is layered on itself: demo -> demo"),
        ((), ("../vendor",), "../vendor"),
    ],
)
def test_bad_input(
    layers: Layers, vendor: tuple[str, ...], demo: tuple[str, ...], said: str
) -> None:
    layers.two(_patch(*_LAST), _patch(*_LAST))
    layers.upon("vendor", *vendor)
    layers.upon("demo", *demo)
    layers.project.run("check", "-m", "demo").ends(4, said)


def test_three_layers(layers: Layers) -> None:
    """Each stands on those beneath: `middle` lies upon `vendor`, and is named alone."""
    layers.add("vendor", _patch(*_LAST), "below")
    layers.add("middle", _patch(*_SCALE), "m", "vendor")
    layers.add("demo", _patch(*_FIRST), "above", "middle")
    (only,) = layers.found()
    assert "vendor: below.patch and by demo: above.patch" in only["what"]
