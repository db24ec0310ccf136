"""`check --only calls`, and what `check` says of calls between components."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

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


@pytest.fixture
def kernels(tmp_path: Path) -> Upstream:
    return Upstream.create(tmp_path / "kernels.git")


@pytest.fixture
def pair(project: Project, upstream: Upstream, kernels: Upstream) -> Project:
    """A component `engine` that calls functions of a component `kernels`."""
    given = {"root": "python", "packages": ["kernels"]}
    project.component("kernels", kernels, kernels.commit(KERNELS, "one"), contracts=given)
    declare(project, upstream)
    return project


def declare(
    project: Project, engine: Upstream, *, patched: bool = False, **contracts: object
) -> None:
    pin = engine.commit(ENGINE, "engine")
    patch = make_patch(ENGINE, {"engine/model.py": FIXED}, body=MESSAGE)
    patches = {"order.patch": patch} if patched else None
    project.component(
        "engine", engine, pin, patches, contracts={"packages": ["engine"], **contracts}
    )


def codes(project: Project, *argv: str) -> list[tuple[str, str]]:
    checked = project.run("check", "-c", "engine", "--json", *argv).json["components"][0]
    return [(each["code"], each["severity"]) for each in checked["findings"]]


def test_what_does_not_fit_is_told(pair: Project, golden: Golden) -> None:
    ran = pair.run("check", "--only", "calls")
    golden("contracts-broken", ran)
    assert ran.code == 1
    golden("check-contracts", pair.run("check", "-c", "engine", "--jobs", "1"))
    assert codes(pair) == [("contract-crossed", "error"), ("contract-name", "error")]


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
    pair: Project, upstream: Upstream, condition: str, declared: dict[str, list[str]], findings: int
) -> None:
    text = (
        "from engine.device import is_npu, is_cuda\nfrom kernels.norm import rms_norm\n"
        f"if {condition}:\n    rms_norm(1)\n"
    )
    device = "def is_npu(): ...\ndef is_cuda(): ...\n"
    pin = upstream.commit({"engine/device.py": device, "engine/model.py": text}, "engine")
    pair.component("engine", upstream, pin, contracts={"packages": ["engine"], **declared})
    assert len(codes(pair)) == findings


def test_calls_are_looked_at_as_patches_leave_them(pair: Project, upstream: Upstream) -> None:
    declare(pair, upstream, patched=True)
    assert codes(pair, "--strict") == [("contract-name", "error")]


def test_what_is_explained_may_stay(pair: Project, upstream: Upstream, golden: Golden) -> None:
    declare(pair, upstream, patched=True, absent=[{**ABSENT, "name": "kernels.load*"}])
    assert codes(pair, "--strict") == []
    golden("contracts-all", pair.run("check", "--only", "calls", "--all"))


def test_an_entry_for_nothing_is_told(pair: Project, upstream: Upstream) -> None:
    call = {**CALL, "call": "self.tail"}
    absent = [{"name": "kernels.*", "reason": "x"}, {"name": "torch", "reason": "x"}]
    declare(pair, upstream, absent=absent, calls=[call])
    assert codes(pair) == [("contract-unmatched", "error"), ("contract-unused", "warning")]
    pair.run("check", "--only", "calls").ends(1).shows(
        "self.tail is there that could lead to kernels.norm.rms_norm"
    )


def test_packages_and_entries_that_no_module_is_in_are_errors(
    pair: Project, upstream: Upstream
) -> None:
    """Upstream renames a package, and nothing would be looked at any more."""
    gone = {"packages": ["engine", "motor"], "entries": ["engine.model", "engine.start*"]}
    declare(pair, upstream, patched=True, absent=[ABSENT], outside=["torch"], **gone)
    assert codes(pair) == [("contract-idle", "error"), ("contract-idle", "error")]
    pair.run("check", "--only", "calls").ends(1).shows("✗ names nothing  motor", "engine.start*")
    told = [{"name": name, "reason": "from 2.0 on"} for name in ("motor", "engine.start*")]
    declare(pair, upstream, patched=True, absent=[ABSENT, *told], outside=["torch"], **gone)
    assert codes(pair) == []
    pair.run("check", "--only", "calls").ok()


def test_a_declared_call_is_held_to_its_target(pair: Project, upstream: Upstream) -> None:
    declare(pair, upstream, patched=True, absent=[ABSENT], calls=[CALL])
    (place,) = pair.run("check", "--only", "calls", "--json").json["components"][1]["broken"]
    assert place["what"].startswith("takes no argument mask")


def test_packages_that_nothing_brings_are_told_on_the_way_from_the_entries(
    pair: Project, upstream: Upstream
) -> None:
    more = {
        "patched": True,
        "absent": [ABSENT],
        "entries": ["engine.model"],
    }
    declare(pair, upstream, **more)  # type: ignore[arg-type]
    assert codes(pair) == [("contract-package", "error")]
    pair.component("other", upstream, upstream.commit({"requirements.txt": "torch"}, "x"))
    declare(pair, upstream, **more, outside=["torch"])  # type: ignore[arg-type]
    assert codes(pair) == []


def test_the_second_look_reads_no_file(pair: Project) -> None:
    first = pair.run("check", "--only", "calls", "--json")
    assert pair.run("check", "--only", "calls", "--json").out == first.out


def test_a_broken_stack_elsewhere_is_an_error_not_a_green_light(
    pair: Project, kernels: Upstream
) -> None:
    pin = kernels.commit(KERNELS, "two")
    wrong = make_patch({"gone.py": "a\n"}, {"gone.py": "b\n"}, body=MESSAGE)
    pair.component(
        "kernels", kernels, pin, {"wrong.patch": wrong}, contracts={"packages": ["kernels"]}
    )
    pair.run("check", "--only", "calls").ends(4, "wrong.patch does not apply")
    assert pair.run("check").code != 0


def test_a_manifest_without_contracts_has_nothing_to_look_at(
    project: Project, upstream: Upstream
) -> None:
    project.component("engine", upstream, upstream.commit(ENGINE, "engine"))
    ran = project.run("check", "--only", "calls")
    assert (ran.code, ran.out) == (0, "")
    assert "no component has contracts" in ran.err
