"""`check --only overrides`, and what `check` says of code that another component replaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from patchkit.stack.lockfile import load_lock
from tests.support.commands import Ran
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
RULES_FILE = "patches/calls.rules.yml"
RULE = {
    "id": "replace-call",
    "language": "python",
    "files": ["speed/**"],
    "rule": {"pattern": "$_.replace($TARGET, $$$)"},
}
RULES = {"version": 1, "description": "calls that replace something", "rules": [RULE]}
REASON = {"name": "core.ops.fused", "reason": "speed adds it"}


UNUSED = {"name": "core.layer.*", "reason": "we do not use it"}


def overriding(*absent: dict[str, str]) -> dict[str, object]:
    declared: dict[str, object] = {"target": "core", "rule": RULES_FILE, "packages": ["core"]}
    return declared | {"absent": list(absent)}


@dataclass
class Pair:
    """A component `speed` that replaces functions of a component `core`."""

    project: Project
    core: Upstream
    speed: Upstream

    def look(self, *argv: str) -> Ran:
        """What `check --only overrides` says."""
        return self.project.run("check", "--only", "overrides", *argv)

    def accept(self, *argv: str) -> Ran:
        """Accept what is there as reviewed."""
        return self.look(*argv, "--accept")

    def core_is(self, files: Files, patches: dict[str, bytes] | None = None) -> str:
        """Pin core to a commit with these files; the commit."""
        pin = self.core.commit(files)
        self.project.component("core", self.core, pin, patches)
        return pin

    def core_patched(self, path: str, old: str, new: str) -> None:
        """Let a patch change core."""
        patch = make_patch(CORE, {path: CORE[path].replace(old, new)})
        self.core_is({**CORE}, {"ops.patch": patch})

    def declare(
        self,
        *absent: dict[str, str],
        files: Files = SPEED,
        patches: dict[str, bytes] | None = None,
        **keys: object,
    ) -> None:
        """Pin speed to a commit with these files, whose calls a rule finds."""
        pin = self.speed.commit(files, parents=())
        given = {key: value for key, value in (overriding(*absent) | keys).items() if value}
        declared = [given | {"absent": list(absent)}]
        self.project.component("speed", self.speed, pin, patches, overrides=declared)

    def rule(self, **keys: object) -> None:
        """Give the rule other keys."""
        rules = RULES | {"rules": [RULE | keys]}
        self.project.write({RULES_FILE: yaml.safe_dump(rules)})

    def verdicts(self, *argv: str) -> dict[str, str]:
        """What each target is said to be."""
        found = self.look(*argv, "--json").json["overrides"][0]["targets"]
        return {each["name"]: each["verdict"] for each in found}

    def findings(self, *argv: str) -> list[dict[str, str]]:
        """What `check` says of speed."""
        checked = self.project.run("check", "-c", "speed", "--json", *argv).json
        return list(checked["components"][0]["findings"])

    def codes(self, *argv: str) -> list[tuple[str, str]]:
        return [(each["code"], each["severity"]) for each in self.findings(*argv)]

    def patched(self) -> list[dict[str, str]]:
        """Of what `check` says, what is about patches."""
        others = ("override-new", "override-body")
        return [each for each in self.findings() if each["code"] not in others]


@pytest.fixture
def pair(project: Project, upstream: Upstream, tmp_path: Path) -> Pair:
    """A pair of which nobody has reviewed anything."""
    made = Pair(project, Upstream.create(tmp_path / "core.git"), upstream)
    made.rule()
    made.core_is({**CORE})
    made.declare(REASON)
    return made


def test_what_nobody_has_looked_at_is_new(pair: Pair, golden: Golden) -> None:
    golden("overrides-new", pair.look())
    assert pair.codes() == [("override-new", "warning")]
    pair.project.run("check").ok()
    pair.project.run("check", "--strict").ends(1)


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
    pair: Pair, speed: Files, rule: dict[str, object], code: str
) -> None:
    found = [code] if code else []
    pair.rule(**rule)
    pair.declare(files=speed)
    errors = [error for error, severity in pair.codes() if severity == "error"]
    assert [error for error in errors if error != "override-not-there"] == found
    ran = pair.look().ends(len(found))
    assert "since reviewed" not in ran.out  # nobody has reviewed anything
    told = pair.look("--json").json["overrides"][0]["findings"]
    assert [finding["code"] for finding in told] == found


def test_packages_that_no_name_is_in_are_an_error(pair: Pair) -> None:
    pair.declare(packages=["heart"])
    assert pair.codes() == [("override-packages", "error")]
    pair.look().ends(1)


def test_accepting_records_and_is_done(pair: Pair) -> None:
    pair.accept().ok().says("recorded 4 as reviewed")
    assert pair.codes() == []
    assert pair.look("--quiet").ok().out == ""
    before = pair.project.files("manifests")
    pair.accept().ok()
    assert pair.project.files("manifests") == before

    short, whole = pair.look().ok().out, pair.look("--all").ok().out
    for target in ("core.scale", "core.ops.norm", "core.ops.shift", "core.layer.Layer.forward"):
        assert (target in short, target in whole) == (False, True), target
    assert whole.count("replaced at speed/features.py:") == 5
    assert "replaced at speed/features.py:2 in register" in whole
    assert "replaced at" not in short


def test_the_modules_of_a_target_are_below_its_root(pair: Pair) -> None:
    files: dict[str, str | None] = dict.fromkeys(CORE)
    pair.core_is({**files, **{f"src/{name}": text for name, text in CORE.items()}})
    pair.look().shows("there is no package core")
    pair.declare(REASON, root="src")
    pair.accept().ok()
    assert pair.codes() == []


def test_what_changed_since_is_told_until_it_is_accepted_or_explained(
    pair: Pair, golden: Golden
) -> None:
    pair.accept().ok()
    pair.core_is(MOVED)
    assert pair.verdicts() == {
        "core.layer.Layer.forward": "gone",
        "core.ops.fused": "declared",
        "core.ops.norm": "same",
        "core.ops.shift": "body",
        "core.scale": "signature",
    }
    golden("overrides-moved", pair.look())
    golden("overrides-diff", pair.look("core.ops.*", "--diff"))
    golden("check-overrides", pair.project.run("check", "-c", "speed", "--jobs", "1"))
    gone = ("override-gone", "error")
    changed = [("override-signature", "error"), ("override-body", "warning")]
    assert pair.codes() == [gone, *changed]

    pair.accept("core.scale").says("recorded 1 as")
    left = pair.verdicts()
    assert (left["core.scale"], left["core.ops.shift"]) == ("same", "body")

    pair.accept().ends(1)
    assert pair.codes() == [gone]
    pair.declare(REASON, UNUSED)
    pair.accept().ok()
    assert pair.codes("--strict") == []


def test_a_reason_that_nothing_needs_is_told(pair: Pair) -> None:
    pair.declare(REASON, {"name": "core.ops.shift", "reason": "gone, we thought"})
    pair.accept()
    assert pair.codes() == [("override-unused", "warning")]


def test_the_lock_keeps_reviews_whoever_writes_it(pair: Pair) -> None:
    pair.accept().ok()
    path = pair.project.root / "manifests" / "demo.lock.json"
    reviewed = load_lock(path)
    pair.project.run("apply").ok()
    pair.core_is(MOVED)
    pair.project.run("apply", "--accept").ok()
    after = load_lock(path)
    assert reviewed is not None
    assert after is not None
    assert after.overrides == reviewed.overrides
    assert set(after.components) == {"core", "speed"}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["core.nothing"], "speed replaces no core.nothing in core"),
        (["speed"], "speed is a component: -c speed"),
    ],
)
def test_what_cannot_be_asked(pair: Pair, argv: list[str], message: str) -> None:
    pair.look(*argv).ends(2, message)


def test_a_rule_that_edits_is_refused(pair: Pair) -> None:
    pair.rule(fix="pass")
    pair.look().ends(4, f"{RULES_FILE}:6: replace-call would edit")


def test_a_call_that_is_not_plain_is_told(pair: Pair) -> None:
    more = {"speed/more.py": "def go(m, name):\n    m.replace(name, 1)\n"}
    pair.declare(REASON, files={**SPEED, **more})
    pair.accept()
    assert pair.codes() == [("override-uncertain", "warning")]


def test_calls_that_a_patch_adds_count(pair: Pair) -> None:
    text = SPEED["speed/features.py"]
    more = text.replace("fast_add)\n", "fast_add)\n    manager.replace('core.ops.fold', fold)\n")
    patch = make_patch(SPEED, {"speed/features.py": more}, body="Upstream-Status: Pending")
    pair.declare(patches={"fold.patch": patch})
    assert pair.verdicts()["core.ops.fold"] == "not there"


def test_where_nothing_is_replaced_nothing_is_wrong(pair: Pair) -> None:
    pair.look("-c", "core").ok().says("no component replaces code of another")


def test_the_target_is_judged_with_its_patches(pair: Pair) -> None:
    """What runs is the patched code: that is what the replacement has to fit."""
    pair.core_is({**CORE}, {})
    pair.accept().ok()
    assert pair.codes() == []
    pair.core_patched("core/ops.py", "scale(x, by=2)", "scale(x, by=2, group=None)")
    pair.look().ends(1).shows("signature  core.scale")
    assert ("override-signature", "error") in pair.codes()
    broken = make_patch({"core/ops.py": "x\n"}, {"core/ops.py": "y\n"}, subject="No", body="No.")
    pair.core_is({**CORE}, {"wider.patch": broken})
    assert pair.codes() == [("overrides-unseen", "warning")]
    pair.look().ends(4, "wider.patch does not apply")


def test_a_patched_function_that_is_replaced_is_told(pair: Pair, golden: Golden) -> None:
    pair.core_patched("core/ops.py", "return x + 1", "return x + 2")
    golden("check-layers", pair.project.run("check", "-c", "speed"))
    (found,) = pair.patched()
    what = "core.ops.shift is changed by ops.patch and replaced by speed, which wins"
    assert (found["code"], found["severity"]) == ("override-patched", "warning")
    assert (found["what"], found["where"]) == (what, "core: core/ops.py:5")
    pair.accept().ok()
    assert [each["severity"] for each in pair.patched()] == ["note"]
    pair.project.run("check", "--strict", "-c", "speed").ok()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x\n", "return x  # a comment\n"),
        ("def norm", "def other():\n    return 0\n\n\ndef norm"),
        ("def shift(x):\n", 'def shift(x):\n    """Says what it does."""\n'),
    ],
)
def test_a_patch_beside_what_is_replaced_is_no_alarm(pair: Pair, old: str, new: str) -> None:
    pair.core_patched("core/ops.py", old, new)
    assert pair.patched() == []


def test_what_wraps_a_patched_function_lets_it_run(pair: Pair) -> None:
    text = "def register(manager):\n    manager.replace('core.ops.shift',\n        shift_wrapper)\n"
    pair.declare(files={"speed/features.py": text})
    pair.core_patched("core/ops.py", "return x + 1", "return x + 2")
    (found,) = pair.patched()
    assert (found["code"], found["severity"]) == ("override-wrapped", "note")


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("def backward(self):\n        return 0\n", "override-wrapped"),
        ("def forward(self, x):\n        return 2 * x\n", "override-patched"),
    ],
)
def test_a_class_that_inherits_from_a_patched_one_keeps_what_it_leaves(
    pair: Pair, inside: str, code: str
) -> None:
    swap = f"from core.layer import Layer as Real\n\n\nclass Swap(Real):\n    {inside}"
    text = (
        "def register(manager):\n    from speed.swap import Swap\n"
        "    manager.replace('core.layer.Layer',\n                    Swap)\n"
    )
    pair.declare(files={"speed/features.py": text, "speed/swap.py": swap, "speed/__init__.py": ""})
    pair.core_patched("core/layer.py", "return x", "return x + 1")
    (found,) = pair.patched()
    assert found["code"] == code, found
    assert ("extended by speed: both run" in found["what"]) is (code == "override-wrapped")


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


def test_what_a_plugin_assigns_is_replaced(pair: Pair) -> None:
    """`module.name = ours`, by whatever import the module came; nothing of the plugin's own."""
    pair.rule(rule={"pattern": "$TARGET = $_"})
    pair.declare(files=PLUGIN)
    assert pair.verdicts() == {
        "core.layer.Layer.forward": "new",
        "core.ops.gone": "not there",
        "core.ops.norm": "new",
        "core.ops.scale": "new",
        "core.ops.shift": "new",
    }
    assert pair.look("--json").json["overrides"][0]["findings"] == []
    pair.core_patched("core/ops.py", "return x + 1", "return x + 2")
    (found,) = [each for each in pair.patched() if each["code"] == "override-patched"]
    assert found["what"].startswith("core.ops.shift is changed by ops.patch and replaced by speed")
    pair.core_patched("core/ops.py", "return x\n", "return x, 1\n")
    assert "override-wrapped" in [each["code"] for each in pair.patched()]


def test_what_a_file_adds_and_reads_itself_is_meant(pair: Pair) -> None:
    """A mark, and a method of its own; not a name that is misspelt, nor one that nobody reads."""
    text = (
        "import core.ops\nimport core.layer as layer\n\n\ndef install():\n"
        "    if getattr(core.ops, '_marked', False):\n        return\n"
        "    core.ops._marked = True\n    layer.Layer._own = own\n"
        "    edit(layer.Layer, 'forward', 'return x', 'return self._own(x)')\n"
        "    core.ops.scael = fast\n    layer.Lyaer._own = own\n"
    )
    pair.rule(rule={"pattern": "$TARGET = $_"})
    pair.declare(files={"speed/features.py": text})
    assert pair.verdicts() == {
        "core.layer.Layer._own": "declared",
        "core.layer.Lyaer._own": "not there",
        "core.ops._marked": "declared",
        "core.ops.scael": "not there",
    }


def test_a_name_that_a_module_makes_while_it_runs_is_no_error(pair: Pair) -> None:
    pair.core_is({**CORE, "core/lazy.py": "def __getattr__(name):\n    return make(name)\n"})
    calls = "m.replace('core.lazy.x', f)\nm.replace('core.y', f)\n"
    pair.declare(files={"speed/features.py": calls})
    assert pair.verdicts() == {"core.lazy.x": "declared", "core.y": "not there"}


def test_a_part_of_a_shared_folder_that_is_not_here_is_anothers(pair: Pair) -> None:
    pair.core_is({"shared/core.py": "def f(): pass\n"})
    calls = [f"    m.replace('shared.{name}', g)\n" for name in ("core.f", "core.g", "bridge.f")]
    pair.declare(files={"speed/features.py": f"def f(m):\n{''.join(calls)}"}, packages=["shared"])
    assert pair.verdicts() == {
        "shared.bridge.f": "declared",
        "shared.core.f": "new",
        "shared.core.g": "not there",
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("vllm_ascend/patch/a.py", "import core.ops\ncore.ops.scale = f\ncore.ops.gone = f\n"),
        ("vllm_gaudi/a.py", "import core.ops as o\no.scale = f\no.gone = f\n"),
        ("primus/backends/megatron/a.py", "from core import ops\nops.scale = f\nops.gone = f\n"),
        ("mindspeed/a.py", "f = m.register_patch\nm.register_patch('core.ops.scale', f)\n"
         "m.register_patch('core.ops.gone')\n"),
        (
            "vllm_metax/patch/a.py",
            "M = 'core.ops'\n@patch(M)\ndef scale(x): pass\npatch(M, 'gone')(f)\n",
        ),
        (
            "vllm_metax_plugin/a.py",
            "@register_patch('core', 'ops.scale')\ndef f(): pass\n"
            "@register_patch('core.ops', 'gone')\n@staticmethod\ndef g(): pass\n",
        ),
    ],
)  # fmt: skip
def test_rules_for_known_plugins_are_brought(pair: Pair, path: str, text: str) -> None:
    pair.declare(files={path: text}, rule=None)
    assert pair.verdicts() == {"core.ops.gone": "not there", "core.ops.scale": "new"}


def test_where_no_brought_rule_finds_something_that_is_an_error(pair: Pair) -> None:
    pair.declare(files=SPEED, rule=None)
    assert pair.codes() == [("override-rules", "error")]
    pair.declare(files={"vllm_metax/patch/a.py": "patch(name(), 'x')(f)\n"}, rule=None)
    assert pair.codes() == [("override-uncertain", "warning")]
