"""`check --only calls`, and what `check` says of calls between components."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Ran
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

KERNELS = {
    "python/kernels/__init__.py": "",
    "python/kernels/norm.py": ("def rms_norm(x, hidden_size, eps, weight=None):\n    return x\n"),
}
ENGINE = {
    "engine/__init__.py": "",
    "engine/model.py": (
        "import torch\nfrom kernels.norm import rms_norm\n\n\n"
        "class Model:\n"
        "    def forward(self, x):\n"
        "        y = rms_norm(x, self.weight, self.hidden_size, self.eps)\n"
        "        return self.head(y, mask=None)\n\n"
        "    def load(self, name):\n"
        "        from kernels import loading\n\n"
        "        return open_fast(loading.read(name))\n"
    ),
}
FIXED = ENGINE["engine/model.py"].replace(
    "self.weight, self.hidden_size, self.eps", "self.hidden_size, self.eps, self.weight"
)
MESSAGE = "Because.\n\nUpstream-Status: Pending"
CALL = {"call": "self.head", "files": ["engine/*.py"], "to": "kernels.norm.rms_norm"}
ABSENT = {"name": "kernels.loading", "reason": "nothing loads here"}


@dataclass
class Pair:
    """A component `engine` that calls functions of a component `kernels`."""

    project: Project
    kernels: Upstream
    engine: Upstream

    def calls(self, *argv: str) -> Ran:
        """What `check --only calls` says."""
        return self.project.run("check", "--only", "calls", *argv)

    def declare(self, *, patched: bool = False, files: Files = ENGINE, **contracts: Any) -> None:
        """Pin the engine to a commit with these files, and say this of its calls."""
        patch = make_patch(ENGINE, {"engine/model.py": FIXED}, body=MESSAGE)
        declared = {"packages": ["engine"], **contracts}
        pin, patches = self.engine.commit(files), {"order.patch": patch} if patched else None
        self.project.component("engine", self.engine, pin, patches, contracts=declared)

    def codes(self, *argv: str) -> list[tuple[str, str]]:
        """What `check` says of the engine."""
        (checked,) = self.project.run("check", "-c", "engine", "--json", *argv).json["components"]
        return [(each["code"], each["severity"]) for each in checked["findings"]]


@pytest.fixture
def pair(project: Project, upstream: Upstream, tmp_path: Path) -> Pair:
    """The engine says which packages are its own, and no more."""
    made = Pair(project, Upstream.create(tmp_path / "kernels.git"), upstream)
    given = {"root": "python", "packages": ["kernels"]}
    project.component("kernels", made.kernels, made.kernels.commit(KERNELS), contracts=given)
    made.declare()
    return made


def test_what_does_not_fit_is_told(pair: Pair, golden: Golden) -> None:
    golden("contracts-broken", pair.calls())
    golden("check-contracts", pair.project.run("check", "-c", "engine", "--jobs", "1"))
    assert pair.codes() == [("contract-crossed", "error"), ("contract-name", "error")]
    assert pair.calls("--json").out == pair.calls("--json").out  # the second look reads no file


@pytest.mark.parametrize(
    ("condition", "declared", "findings"),
    [
        ("not is_npu()", {"holds": ["is_npu"]}, 0),
        ("not is_npu()", {"fails": ["is_npu"]}, 1),
        ("is_cuda()", {"fails": ["is_cuda"]}, 0),
        ("is_cuda()", {"holds": ["is_cuda"]}, 1),
    ],
)
def test_what_the_machine_does_not_run_is_not_looked_at(
    pair: Pair, condition: str, declared: dict[str, Any], findings: int
) -> None:
    text = (
        "from engine.device import is_npu, is_cuda\nfrom kernels.norm import rms_norm\n"
        f"if {condition}:\n    rms_norm(1)\n"
    )
    device = "def is_npu(): ...\ndef is_cuda(): ...\n"
    pair.declare(files={"engine/device.py": device, "engine/model.py": text}, **declared)
    assert len(pair.codes()) == findings


def test_what_is_patched_or_explained_may_stay(pair: Pair, golden: Golden) -> None:
    pair.declare(patched=True)
    assert pair.codes("--strict") == [("contract-name", "error")]
    pair.declare(patched=True, absent=[{**ABSENT, "name": "kernels.load*"}])
    assert pair.codes("--strict") == []
    golden("contracts-all", pair.calls("--all"))


def test_an_entry_for_nothing_is_told(pair: Pair) -> None:
    absent = [{"name": name, "reason": "x"} for name in ("kernels.*", "torch")]
    pair.declare(absent=absent, calls=[{**CALL, "call": "self.tail"}])
    assert pair.codes() == [("contract-unmatched", "error"), ("contract-unused", "warning")]
    said = "self.tail is there that could lead to kernels.norm.rms_norm"
    pair.calls().ends(1).shows(said)


def test_packages_and_entries_that_no_module_is_in_are_errors(pair: Pair) -> None:
    """Upstream renames a package, and nothing would be looked at any more."""
    gone: dict[str, Any] = {
        "packages": ["engine", "motor"],
        "entries": ["engine.model", "engine.start*"],
    }
    pair.declare(patched=True, absent=[ABSENT], outside=["torch"], **gone)
    assert pair.codes() == [("contract-idle", "error"), ("contract-idle", "error")]
    pair.calls().ends(1).shows("✗ names nothing  motor", "engine.start*")
    told = [{"name": name, "reason": "from 2.0 on"} for name in ("motor", "engine.start*")]
    pair.declare(patched=True, absent=[ABSENT, *told], outside=["torch"], **gone)
    assert pair.codes() == []
    pair.calls().ok()


def test_a_declared_call_is_held_to_its_target(pair: Pair) -> None:
    pair.declare(patched=True, absent=[ABSENT], calls=[CALL])
    (place,) = pair.calls("--json").json["components"][1]["broken"]
    assert place["what"].startswith("takes no argument mask")


def test_packages_that_nothing_brings_are_told_on_the_way_from_the_entries(pair: Pair) -> None:
    more: dict[str, Any] = {"patched": True, "absent": [ABSENT], "entries": ["engine.model"]}
    pair.declare(**more)
    assert pair.codes() == [("contract-package", "error")]
    other = pair.engine.commit({"requirements.txt": "torch"})
    pair.project.component("other", pair.engine, other)
    pair.declare(**more, outside=["torch"])
    assert pair.codes() == []


def test_a_broken_stack_elsewhere_is_an_error_not_a_green_light(pair: Pair) -> None:
    pin = pair.kernels.commit(KERNELS)
    wrong = {"wrong.patch": make_patch({"gone.py": "a\n"}, {"gone.py": "b\n"}, body=MESSAGE)}
    given = {"packages": ["kernels"]}
    pair.project.component("kernels", pair.kernels, pin, wrong, contracts=given)
    pair.calls().ends(4, "wrong.patch does not apply")
    assert pair.project.run("check").code != 0


def test_a_manifest_without_contracts_has_nothing_to_look_at(
    project: Project, upstream: Upstream
) -> None:
    project.component("engine", upstream, upstream.commit(ENGINE))
    ran = project.run("check", "--only", "calls").ok().says("no component has contracts")
    assert ran.out == ""
