"""`check --only overrides`, and what `check` says of code that another component replaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from patchkit.stack.lockfile import load_lock
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

CORE = {
    "core/__init__.py": "from .ops import scale\n",
    "core/ops.py": (
        "def scale(x, by=2):\n    return x * by\n\n\ndef shift(x):\n    return x + 1\n\n\n"
        "def norm(x):\n    return x\n"
    ),
    "core/layer.py": "class Layer:\n    def forward(self, x):\n        return x\n",
}
#: `scale` takes more, `shift` does something else, `norm` looks otherwise, `forward` is gone.
MOVED = {
    "core/ops.py": (
        "def scale(x, by=2, group=None):\n    return x * by\n\n\n"
        "def shift(x):\n    return x - 1\n\n\n"
        'def norm(x):\n    """The same."""\n    return x  # as before\n'
    ),
    "core/layer.py": "class Layer:\n    def run(self, x):\n        return x\n",
}
SPEED = {
    "speed/features.py": (
        "def register(manager):\n"
        "    manager.replace('core.scale', fast_scale)\n"
        "    manager.replace('core.ops.norm', fast_norm)\n"
        "    for name in ['shift']:\n"
        "        manager.replace(f'core.ops.{name}', fast_shift)\n"
        "    manager.replace('core.layer.Layer.forward', fast_forward)\n"
        "    manager.replace('core.ops.fused', fused)\n"
        "    manager.replace('torch.add', fast_add)\n"
    ),
}
RULES = {
    "version": 1,
    "description": "calls that replace something",
    "rules": [
        {
            "id": "replace-call",
            "language": "python",
            "files": ["speed/**"],
            "rule": {"pattern": "$_.replace($TARGET, $$$)"},
        }
    ],
}
REASON = {"name": "core.ops.fused", "reason": "speed adds it"}


@pytest.fixture
def core(tmp_path: Path) -> Upstream:
    return Upstream.create(tmp_path / "core.git")


@pytest.fixture
def pair(project: Project, upstream: Upstream, core: Upstream) -> Project:
    """A component `speed` that replaces functions of a component `core`."""
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    project.component("core", core, core.commit(CORE, "one"))
    declare(project, upstream, REASON)
    return project


def declare(project: Project, speed: Upstream, *absent: dict[str, str]) -> None:
    pin = speed.commit(SPEED, "speed")
    project.component("speed", speed, pin, overrides=[overriding(*absent)])


def overriding(*absent: dict[str, str]) -> dict[str, object]:
    declared: dict[str, object] = {"target": "core", "rule": "patches/calls.rules.yml"}
    return declared | {"packages": ["core"], "absent": list(absent)}


def move(project: Project, core: Upstream) -> str:
    pin = core.commit(MOVED, "two")
    project.component("core", core, pin)
    return pin


def verdicts(ran: object) -> dict[str, str]:
    found = ran.json["overrides"][0]["targets"]  # type: ignore[attr-defined]
    return {each["name"]: each["verdict"] for each in found}


def codes(project: Project, *argv: str) -> list[tuple[str, str]]:
    checked = project.run("check", "-c", "speed", "--json", *argv).json["components"][0]
    return [(each["code"], each["severity"]) for each in checked["findings"]]


def test_what_nobody_has_looked_at_is_new(pair: Project, golden: Golden) -> None:
    ran = pair.run("check", "--only", "overrides")
    golden("overrides-new", ran)
    assert ran.code == 1
    assert codes(pair) == [("override-new", "warning")]
    assert pair.run("check").code == 0
    assert pair.run("check", "--strict").code == 1


@pytest.mark.parametrize(
    ("speed", "rule", "code"),
    [
        ({"fast/features.py": SPEED["speed/features.py"]}, {}, "override-files"),
        ({"speed/features.py": "def register(): pass\n"}, {}, "override-dead-rule"),
        (SPEED, {"expect": 2}, "override-count"),
        (SPEED, {"expect": 0, "files": ["gone/**"]}, "override-files"),
        ({"fast/features.py": "x\n"}, {"optional": "only in 2.x"}, ""),
    ],
)
def test_a_rule_that_finds_nothing_is_no_green_light(
    pair: Project, upstream: Upstream, speed: Files, rule: Files, code: str
) -> None:
    found = [code] if code else []
    rules = {**RULES, "rules": [{**RULES["rules"][0], **rule}]}  # type: ignore[index]
    pair.write({"patches/calls.rules.yml": yaml.safe_dump(rules)})
    pair.component("speed", upstream, upstream.commit(speed, parents=()), overrides=[overriding()])
    errors = [error for error, severity in codes(pair) if severity == "error"]
    assert [error for error in errors if error != "override-not-there"] == found
    ran = pair.run("check", "--only", "overrides").ends(len(found))
    assert "since reviewed" not in ran.out  # nobody has reviewed anything
    told = pair.run("check", "--only", "overrides", "--json").json["overrides"][0]["findings"]
    assert [finding["code"] for finding in told] == found


def test_packages_that_no_name_is_in_are_an_error(pair: Project, upstream: Upstream) -> None:
    declared = {**overriding(), "packages": ["heart"]}
    pair.component("speed", upstream, upstream.commit(SPEED), overrides=[declared])
    assert codes(pair) == [("override-packages", "error")]
    assert pair.run("check", "--only", "overrides").code == 1


def test_accepting_records_and_is_done(pair: Project) -> None:
    accepted = pair.run("check", "--only", "overrides", "--accept")
    assert "recorded 4 as reviewed" in accepted.ok().err
    assert codes(pair) == []
    assert pair.run("check", "--only", "overrides", "--quiet").ok().out == ""
    before = pair.files("manifests")
    pair.run("check", "--only", "overrides", "--accept").ok()
    assert pair.files("manifests") == before


def test_the_modules_of_a_target_are_below_its_root(
    pair: Project, core: Upstream, upstream: Upstream
) -> None:
    below = {f"src/{name}": text for name, text in CORE.items()}
    pair.component("core", core, core.commit(below, branch="src", parents=()))
    pin = upstream.commit({}, "Change nothing")
    pair.component("speed", upstream, pin, overrides=[overriding(REASON)])
    assert "there is no package core" in pair.run("check", "--only", "overrides").out
    declared = overriding(REASON) | {"root": "src"}
    pair.component("speed", upstream, pin, overrides=[declared])
    pair.run("check", "--only", "overrides", "--accept").ok()
    assert codes(pair) == []


def test_all_lists_what_is_as_it_was_reviewed_with_its_calls(pair: Project) -> None:
    pair.run("check", "--only", "overrides", "--accept").ok()
    short, whole = (
        pair.run("check", "--only", "overrides").ok().out,
        pair.run("check", "--only", "overrides", "--all").ok().out,
    )
    for target in ("core.scale", "core.ops.norm", "core.ops.shift", "core.layer.Layer.forward"):
        assert (target in short, target in whole) == (False, True), target
    assert whole.count("replaced at speed/features.py:") == 5
    assert "replaced at speed/features.py:2 in register" in whole
    assert "replaced at" not in short


def test_what_changed_since_is_told(pair: Project, core: Upstream, golden: Golden) -> None:
    pair.run("check", "--only", "overrides", "--accept").ok()
    move(pair, core)
    ran = pair.run("check", "--only", "overrides", "--json").ends(1)
    assert verdicts(ran) == {
        "core.layer.Layer.forward": "gone",
        "core.ops.fused": "declared",
        "core.ops.norm": "same",
        "core.ops.shift": "body",
        "core.scale": "signature",
    }
    golden("overrides-moved", pair.run("check", "--only", "overrides"))
    golden("overrides-diff", pair.run("check", "--only", "overrides", "core.ops.*", "--diff"))
    golden("check-overrides", pair.run("check", "-c", "speed", "--jobs", "1"))
    assert codes(pair) == [
        ("override-gone", "error"),
        ("override-signature", "error"),
        ("override-body", "warning"),
    ]


def test_one_can_be_accepted_by_itself(pair: Project, core: Upstream) -> None:
    pair.run("check", "--only", "overrides", "--accept").ok()
    move(pair, core)
    assert "recorded 1 as" in pair.run("check", "--only", "overrides", "core.scale", "--accept").err
    left = verdicts(pair.run("check", "--only", "overrides", "--json"))
    assert (left["core.scale"], left["core.ops.shift"]) == ("same", "body")


def test_what_is_gone_cannot_be_accepted_but_explained(
    pair: Project, core: Upstream, upstream: Upstream
) -> None:
    pair.run("check", "--only", "overrides", "--accept").ok()
    move(pair, core)
    assert pair.run("check", "--only", "overrides", "--accept").code == 1
    assert codes(pair) == [("override-gone", "error")]
    declare(pair, upstream, REASON, {"name": "core.layer.*", "reason": "we do not use it"})
    assert pair.run("check", "--only", "overrides", "--accept").code == 0
    assert codes(pair, "--strict") == []


def test_a_reason_that_nothing_needs_is_told(pair: Project, upstream: Upstream) -> None:
    declare(pair, upstream, REASON, {"name": "core.ops.shift", "reason": "gone, we thought"})
    pair.run("check", "--only", "overrides", "--accept")
    assert codes(pair) == [("override-unused", "warning")]


def test_the_lock_keeps_reviews_whoever_writes_it(pair: Project, core: Upstream) -> None:
    pair.run("check", "--only", "overrides", "--accept").ok()
    lock = pair.root / "manifests" / "demo.lock.json"
    reviewed = load_lock(lock)
    assert reviewed is not None
    pair.run("apply").ok()
    move(pair, core)
    pair.run("apply", "--accept").ok()
    after = load_lock(lock)
    assert after is not None
    assert after.overrides == reviewed.overrides
    assert set(after.components) == {"core", "speed"}


def test_two_commits_are_compared_without_a_review(
    pair: Project, core: Upstream, upstream: Upstream
) -> None:
    old = core.git("rev-parse", "main").decode().strip()
    new = move(pair, core)
    declare(pair, upstream, REASON, {"name": "core.layer.*", "reason": "we do not use it"})
    before = pair.files("manifests")
    since = verdicts(pair.run("check", "--only", "overrides", "--base", old, "--json"))
    assert since["core.layer.Layer.forward"] == "gone"
    back = verdicts(pair.run("check", "--only", "overrides", "--base", new, "--to", old, "--json"))
    assert back["core.layer.Layer.forward"] == "new"
    assert back["core.scale"] == "signature"
    assert pair.files("manifests") == before


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--base", "v1"], "v1 is not a full commit id"),
        (["--base", "0" * 40, "--accept"], "leave out --base and --to"),
        (["core.nothing"], "speed replaces no core.nothing in core"),
        (["speed"], "speed is a component: -c speed"),
    ],
)
def test_what_cannot_be_asked(pair: Project, argv: list[str], message: str) -> None:
    pair.run("check", "--only", "overrides", *argv).ends(2, message)


def test_a_rule_that_edits_is_refused(pair: Project) -> None:
    rules = json.loads(json.dumps(RULES))
    rules["rules"][0]["fix"] = "pass"
    pair.write({"patches/calls.rules.yml": yaml.safe_dump(rules)})
    pair.run("check", "--only", "overrides").ends(
        4, "patches/calls.rules.yml:6: replace-call would edit"
    )


def test_a_call_that_is_not_plain_is_told(pair: Project, upstream: Upstream) -> None:
    more = SPEED | {"speed/more.py": "def go(m, name):\n    m.replace(name, 1)\n"}
    pin = upstream.commit(more, "more")
    pair.component("speed", upstream, pin, overrides=[overriding(REASON)])
    pair.run("check", "--only", "overrides", "--accept")
    assert codes(pair) == [("override-uncertain", "warning")]


def test_calls_that_a_patch_adds_count(pair: Project, upstream: Upstream) -> None:
    text = SPEED["speed/features.py"]
    more = text.replace("fast_add)\n", "fast_add)\n    manager.replace('core.ops.fold', fold)\n")
    patch = make_patch(
        SPEED, {"speed/features.py": more}, body="Because.\n\nUpstream-Status: Pending"
    )
    pin = upstream.commit(SPEED, "speed")
    pair.component("speed", upstream, pin, {"fold.patch": patch}, overrides=[overriding()])
    assert (
        verdicts(pair.run("check", "--only", "overrides", "--json"))["core.ops.fold"] == "not there"
    )


def test_where_nothing_is_replaced_nothing_is_wrong(pair: Project) -> None:
    pair.run("check", "--only", "overrides", "-c", "core").ok().says(
        "no component replaces code of another"
    )


def test_the_target_is_judged_with_its_patches(
    project: Project, upstream: Upstream, core: Upstream
) -> None:
    """What runs is the patched code: that is what the replacement has to fit."""
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    pin = core.commit(CORE, "one")
    wider = str(CORE["core/ops.py"]).replace("def scale(x, by=2)", "def scale(x, by=2, group=None)")
    patch = make_patch(CORE, {**CORE, "core/ops.py": wider}, subject="Scale groups", body="So.")
    project.component("core", core, pin, {})
    declare(project, upstream, REASON)
    project.run("check", "--only", "overrides", "--accept").ok()
    assert codes(project) == []
    project.component("core", core, pin, {"wider.patch": patch})
    project.run("check", "--only", "overrides").ends(1).shows("signature  core.scale")
    assert ("override-signature", "error") in codes(project)
    upstreams = project.run("check", "--only", "overrides", "--base", pin)
    assert "signature" not in upstreams.out
    broken = make_patch({"core/ops.py": "x\n"}, {"core/ops.py": "y\n"}, subject="No", body="No.")
    project.component("core", core, pin, {"wider.patch": broken})
    assert codes(project) == [("overrides-unseen", "warning")]
    project.run("check", "--only", "overrides").ends(4, "wider.patch does not apply")


def _patched_core(project: Project, core: Upstream, old: str, new: str) -> None:
    changed = {"core/ops.py": CORE["core/ops.py"].replace(old, new)}
    patch = make_patch(CORE, {**CORE, **changed}, subject="Change ops")
    pin = core.commit(CORE, "again")
    project.component("core", core, pin, {"ops.patch": patch})


def _findings(project: Project) -> list[dict[str, str]]:
    found = project.run("check", "-c", "speed", "--json").json["components"][0]["findings"]
    return [each for each in found if each["code"] not in ("override-new", "override-body")]


def test_a_patched_function_that_is_replaced_is_told(
    pair: Project, core: Upstream, golden: Golden
) -> None:
    _patched_core(pair, core, "return x + 1", "return x + 2")
    golden("check-layers", pair.run("check", "-c", "speed"))
    (found,) = _findings(pair)
    assert (found["code"], found["severity"]) == ("override-patched", "warning")
    assert (
        found["what"] == "core.ops.shift is changed by ops.patch and replaced by speed, which wins"
    )
    assert found["where"] == "core: core/ops.py:5"
    pair.run("check", "--only", "overrides", "--accept").ok()
    assert [each["severity"] for each in _findings(pair)] == ["note"]
    pair.run("check", "--strict", "-c", "speed").ok()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x\n", "return x  # a comment\n"),
        ("def norm", "def other():\n    return 0\n\n\ndef norm"),
        ("def shift(x):\n", 'def shift(x):\n    """Says what it does."""\n'),
    ],
)
def test_a_patch_beside_what_is_replaced_is_no_alarm(
    pair: Project, core: Upstream, old: str, new: str
) -> None:
    _patched_core(pair, core, old, new)
    assert _findings(pair) == []


def test_what_wraps_a_patched_function_lets_it_run(
    pair: Project, upstream: Upstream, core: Upstream
) -> None:
    text = "def register(manager):\n    manager.replace('core.ops.shift',\n        shift_wrapper)\n"
    pin = upstream.commit({"speed/features.py": text}, "wraps")
    pair.component("speed", upstream, pin, overrides=[overriding()])
    _patched_core(pair, core, "return x + 1", "return x + 2")
    (found,) = _findings(pair)
    assert (found["code"], found["severity"]) == ("override-wrapped", "note")


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("def backward(self):\n        return 0\n", "override-wrapped"),
        ("def forward(self, x):\n        return 2 * x\n", "override-patched"),
    ],
)
def test_a_class_that_inherits_from_a_patched_one_keeps_what_it_leaves(
    pair: Project, upstream: Upstream, core: Upstream, inside: str, code: str
) -> None:
    swap = f"from core.layer import Layer as Real\n\n\nclass Swap(Real):\n    {inside}"
    text = (
        "def register(manager):\n    from speed.swap import Swap\n"
        "    manager.replace('core.layer.Layer',\n                    Swap)\n"
    )
    files: Files = {"speed/features.py": text, "speed/swap.py": swap, "speed/__init__.py": ""}
    pair.component("speed", upstream, upstream.commit(files), overrides=[overriding()])
    changed = {"core/layer.py": CORE["core/layer.py"].replace("return x", "return x + 1")}
    patch = make_patch({**CORE}, {**CORE, **changed})
    pair.component("core", core, core.commit({**CORE}, "again"), {"layer.patch": patch})
    (found,) = _findings(pair)
    assert found["code"] == code, found
    assert ("extended by speed: both run" in found["what"]) is (code == "override-wrapped")


def test_what_two_components_replace_is_told(pair: Project, tmp_path: Path) -> None:
    other = Upstream.create(tmp_path / "plugin.git")
    pin = other.commit({"speed/x.py": "m.replace('core.ops.norm', mine)\n"})
    pair.component("plugin", other, pin, overrides=[overriding()])
    (found,) = _findings(pair)
    assert found["code"] == "override-twice"
    said = "replaced by plugin, too: core.ops.norm; what is loaded last wins"
    assert (found["severity"], found["what"]) == ("note", said)
    assert found["hint"].endswith("and speed/x.py:1")


PLUGIN = {
    "speed/plugin.py": (
        "import os\n\nimport core\nimport core.ops as ops\nfrom core.layer import Layer\n\n"
        "from . import own\n\n\n"
        "def shift(x):\n    return x << 1\n\n\n"
        "core.ops.scale = shift\nops.shift = shift\nops.gone = shift\nLayer.forward = shift\n"
        "own.shift = shift\nos.sep = ':'\nlocal = shift\n\n\n"
        "def late(self):\n    from core import ops as inner\n"
        "    inner.norm = norm_wrapper(inner.norm)\n"
        "    self.norm = 1\n"
    ),
    "speed/__init__.py": "",
    "speed/own.py": "",
}


def test_what_a_plugin_assigns_is_replaced(
    pair: Project, upstream: Upstream, core: Upstream
) -> None:
    """`module.name = ours`, by whatever import the module came; nothing of the plugin's own."""
    rule = {"id": "put", "language": "python", "files": ["speed/**"]}
    rules = {**RULES, "rules": [{**rule, "rule": {"pattern": "$TARGET = $_"}}]}
    pair.write({"patches/calls.rules.yml": yaml.safe_dump(rules)})
    pin = upstream.commit(PLUGIN, "plugin")
    pair.component("speed", upstream, pin, overrides=[overriding()])
    ran = pair.run("check", "--only", "overrides", "--json")
    assert verdicts(ran) == {
        "core.layer.Layer.forward": "new",
        "core.ops.gone": "not there",
        "core.ops.norm": "new",
        "core.ops.scale": "new",
        "core.ops.shift": "new",
    }
    assert ran.json["overrides"][0]["findings"] == []
    _patched_core(pair, core, "return x + 1", "return x + 2")
    (found,) = [each for each in _findings(pair) if each["code"] == "override-patched"]
    assert found["what"].startswith("core.ops.shift is changed by ops.patch and replaced by speed")
    _patched_core(pair, core, "return x\n", "return x, 1\n")
    assert "override-wrapped" in [each["code"] for each in _findings(pair)]
