"""`check` of a manifest that lies upon another one: what both change, and which of them wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extensions.python_guards.test_overrides import CORE as SMALL
from tests.extensions.python_guards.test_overrides import RULES, overriding
from tests.support.golden import Golden
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch

_BODY = "".join(f"    x = step({number}, x)\n" for number in range(12))
OPS = f"def scale(x, by=2):\n{_BODY}    return x * by\n\n\ndef shift(x):\n{_BODY}    return x + 1\n"
OPS += f"\n\nclass Norm:\n    def norm(self, x):\n        return x\n\n\n{'# end' * 3}\n"
CORE = {**SMALL, "core/ops.py": OPS}


@pytest.fixture
def core(tmp_path: Path) -> Upstream:
    return Upstream.create(tmp_path / "core.git")


def _patch(old: str, new: str) -> bytes:
    after = OPS.replace(old, new, 1)
    assert after != OPS
    body = "Because.\n\nUpstream-Status: Pending"
    return make_patch(CORE, {**CORE, "core/ops.py": after}, subject="Change ops", body=body)


def _two(
    project: Project, core: Upstream, below: bytes, above: bytes, *, again: bool = False
) -> None:
    """Manifest `vendor` with a patch, and `demo` upon it with another one."""
    pin = core.commit(CORE, "one")
    vendors = [{"patch": "patches/vendor/below.patch"}]
    project.write({"patches/vendor/below.patch": below, "patches/own/above.patch": above})
    project.component("core", core, pin, vendors, manifest="vendor")
    pin = core.commit({"other": "x\n"}, "two") if again else pin
    project.component("core", core, pin, [{"patch": "patches/own/above.patch"}])
    upon(project, "demo", "vendor")


def upon(project: Project, manifest: str, *names: str) -> None:
    path = project.root / "manifests" / f"{manifest}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "upon": list(names)}))


def found(project: Project, component: str = "core") -> list[dict[str, Any]]:
    ran = project.run("check", "-m", "demo", "-c", component, "--json")
    (checked,) = ran.json["components"]
    return [
        each
        for each in checked["findings"]
        if "layers" in each["code"] or each["code"] in ("override-patched", "override-wrapped")
    ]


_LAST = ("return x + 1", "return x + 2")
_FIRST = ("def shift(x):\n", "def shift(x):\n    x = abs(x)\n")


def test_one_function_changed_twice(project: Project, core: Upstream) -> None:
    _two(project, core, _patch(*_LAST), _patch(*_FIRST))
    (only,) = found(project)
    assert (only["code"], only["severity"]) == ("layers-both", "note")
    assert only["what"] == (
        "shift is changed by vendor: below.patch and by demo: above.patch: both run"
    )
    assert only["where"] == "core: core/ops.py:17"
    project.run("check", "-m", "demo", "--strict", "--offline").ok()


def test_two_that_do_not_go_together(project: Project, core: Upstream, golden: Golden) -> None:
    """Each applies to the pin; the one on top has its place taken, which `install` says, too."""
    _two(project, core, _patch(*_LAST), _patch("return x + 1", "return x + 3"))
    golden("check-upon", project.run("check", "-m", "demo"))
    (only,) = found(project)
    assert (only["code"], only["severity"]) == ("layers-conflict", "error")
    installed = project.root / "site"
    write_files(installed, {name: str(text) for name, text in CORE.items()})
    project.run("install", "site", "-m", "vendor").ok()
    ran = project.run("install", "site", "-m", "demo", "--json")
    assert [each["result"] for each in ran.json["components"]] == ["conflicted"]
    assert only["what"] == "demo: above.patch does not apply on top of vendor: below.patch"


def test_the_same_patch_twice(project: Project, core: Upstream) -> None:
    _two(project, core, _patch(*_LAST), _patch(*_LAST))
    (only,) = found(project)
    assert only["what"] == (
        "demo: above.patch is vendor: below.patch again, and does not apply on top of it"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_LAST, ("return x * by", "return by * x")),
        (("def scale", "import os\n\n\ndef scale"), ("# end", "import re\n# end")),
        (("def shift(x):\n", "def shift(x):\n    # why\n"), _LAST),
        (("        return x\n", "        return x\n\n    def new(self):\n        pass\n"), _LAST),
    ],
)
def test_two_functions_are_no_alarm(
    project: Project, core: Upstream, one: tuple[str, str], other: tuple[str, str]
) -> None:
    """Nor two imports, nor a comment."""
    _two(project, core, _patch(*one), _patch(*other))
    assert found(project) == []


def test_another_pin(project: Project, core: Upstream) -> None:
    patch = _patch("return x + 1", "return x + 2")
    _two(project, core, patch, patch, again=True)
    (only,) = found(project)
    assert (only["code"], only["severity"]) == ("layers-pin", "warning")


def test_a_lower_manifest_replaces_what_is_patched_above(
    project: Project, core: Upstream, upstream: Upstream
) -> None:
    """And the other way round: its patches are off where a component above replaces a function."""
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    below = _patch("return x * by", "return by * x")
    above = _patch("return x + 1", "return x + 2")
    _two(project, core, below, above)
    text = "def register(m):\n"
    text += "    m.replace('core.ops.scale', mine)\n    m.replace('core.ops.shift', mine)\n"
    for manifest in ("vendor", "demo"):
        pin = upstream.commit({"speed/features.py": text, "of": manifest}, "speed")
        project.component("speed", upstream, pin, manifest=manifest, overrides=[overriding()])
    upon(project, "demo", "vendor")
    (only,) = found(project)
    assert only["what"] == (
        "core.ops.shift is changed by above.patch and replaced by vendor: speed, which wins"
    )
    said = sorted(each["where"] + " " + each["what"] for each in found(project, "speed"))
    assert said == [
        "core: core/ops.py:17 core.ops.shift is changed by above.patch and replaced by speed, "
        "which wins",
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
    project: Project, core: Upstream, vendor: tuple[str, ...], demo: tuple[str, ...], said: str
) -> None:
    patch = _patch("return x + 1", "return x + 2")
    _two(project, core, patch, patch)
    upon(project, "vendor", *vendor)
    upon(project, "demo", *demo)
    project.run("check", "-m", "demo").ends(4, said)


def test_three_layers(project: Project, core: Upstream) -> None:
    """Each stands on those beneath: `middle` lies upon `vendor`, and is named alone."""
    one = _patch("return x + 1", "return x + 2")
    two = _patch("def shift(x):\n", "def shift(x):\n    x = abs(x)\n")
    _two(project, core, one, two)
    three = _patch("return x * by", "return by * x")
    project.write({"patches/middle/m.patch": three})
    pin = core.commit(CORE, "one")
    for name in ("vendor", "demo"):
        files = {"vendor": "patches/vendor/below.patch", "demo": "patches/own/above.patch"}
        project.component("core", core, pin, [{"patch": files[name]}], manifest=name)
    project.component("core", core, pin, [{"patch": "patches/middle/m.patch"}], manifest="middle")
    upon(project, "middle", "vendor")
    upon(project, "demo", "middle")
    (only,) = found(project)
    assert "vendor: below.patch and by demo: above.patch" in only["what"]
