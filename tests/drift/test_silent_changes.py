"""Patches that still apply, and perhaps no longer do their job."""

from __future__ import annotations

import json

import pytest

from patchkit.drift.drift_report import Suspicion
from patchkit.errors import ExitCode
from patchkit.model.merging.scopes import enclosing, find_enclosure
from patchkit.model.objects import CommitId
from tests.drift.lines import look
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

CODE = """import os
from lib import device_of


class Engine:
    def start(self, name):
        device = device_of(name)
        first = 1
        second = 2
        third = 3
        self.run(device)
        fourth = 4
        fifth = 5
        return first + second + third + fourth + fifth

    def stop(self):
        return None


def unrelated():
    return os.name
"""
OURS = CODE.replace("        self.run(device)\n", "        self.run(device_of(name))\n")
PATCH = make_patch({"engine.py": CODE}, {"engine.py": OURS}, subject="Run elsewhere")


def _suspicions(
    project: Project, upstream: Upstream, *versions: str
) -> tuple[tuple[Suspicion, ...], list[CommitId]]:
    pin = upstream.commit({"engine.py": CODE})
    ids = [upstream.commit({"engine.py": code}, f"Version {n}") for n, code in enumerate(versions)]
    found = look(project, upstream, pin, {"ours.patch": PATCH})
    (patch,) = found.patches
    assert patch.forecast is not None
    # a suspicion is for reading; what a bump flags for review is a finding
    assert found.exit_code is (ExitCode.FINDING if patch.forecast.review else ExitCode.OK)
    return found.patches[0].suspicions, ids


def test_the_function_around_a_hunk_has_changed(project: Project, upstream: Upstream) -> None:
    far = CODE.replace("return os.name", "return os.sep")
    near = far.replace("def start(self, name):", "def start(self, name, fast):")
    (one,), ids = _suspicions(project, upstream, far, near)
    assert (one.kind, one.hunk, one.what) == (
        "scope-changed",
        1,
        "Engine.start has changed around it",
    )
    assert one.by is not None
    assert one.by.commit == ids[1]


def test_a_hunk_that_lands_in_another_function(project: Project, upstream: Upstream) -> None:
    moved = CODE.replace("def start(self, name):", "def begin(self, name):")
    (one,), ids = _suspicions(project, upstream, moved)
    assert one.kind == "another-scope"
    assert one.what == "lands in Engine.begin, was made in Engine.start"
    assert one.by is not None
    assert one.by.commit == ids[0]


def test_a_name_that_upstream_took_away(project: Project, upstream: Upstream) -> None:
    gone = CODE.replace("import device_of", "import where").replace(
        "device = device_of(name)", "device = where(name)"
    )
    found, _ = _suspicions(project, upstream, gone)
    assert [each.kind for each in found] == ["scope-changed", "name-gone"]
    assert found[1].what.startswith("device_of is used by added lines")


def test_a_function_that_takes_other_arguments(project: Project, upstream: Upstream) -> None:
    helper = "\n\ndef device_of(name):\n    return name\n"
    local = CODE.replace("from lib import device_of\n", "") + helper
    ours = local.replace("self.run(device)", "self.run(device_of(name))")
    patch = make_patch({"engine.py": local}, {"engine.py": ours}, subject="Run elsewhere")
    pin = upstream.commit({"engine.py": local})
    upstream.commit({"engine.py": local.replace("os.name", "os.sep")}, "Elsewhere")
    wider = upstream.commit(
        {"engine.py": local.replace("device_of(name):", "device_of(name, index=0, *, kind):")},
        "Wider (#5)",
    )
    (one,) = look(project, upstream, pin, {"ours.patch": patch}).patches[0].suspicions
    assert (one.kind, one.hunk) == ("name-changed", 1)
    assert one.what == (
        "device_of is called by added lines, and takes (name, index=0, *, kind) now"
    )
    assert one.by is not None
    assert one.by.commit == wider


def test_a_patched_function_that_nobody_uses_any_more(project: Project, upstream: Upstream) -> None:
    used = CODE.replace("return os.name", "return Engine().start('x')")
    ours = used.replace("self.run(device)", "self.run(device_of(name))")
    patch = make_patch({"engine.py": used}, {"engine.py": ours}, subject="Run elsewhere")
    pin = upstream.commit({"engine.py": used})
    upstream.commit({"engine.py": f"# more\n{used}"}, "A line")
    gone = upstream.commit({"engine.py": used.replace("Engine().start('x')", "0")}, "Without")
    (one,) = look(project, upstream, pin, {"ours.patch": patch}).patches[0].suspicions
    assert (one.kind, one.what) == (
        "not-called",
        "start, which it patches, is not used in the file any more",
    )
    assert one.by is not None
    assert one.by.commit == gone


def test_changes_elsewhere_are_no_reason(project: Project, upstream: Upstream) -> None:
    found, _ = _suspicions(project, upstream, "# more\n\n" + CODE.replace("os.name", "os.sep"))
    assert found == ()


def test_suspicions_are_warnings_in_reports(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"engine.py": CODE})
    project.component("demo", upstream, pin, {"ours.patch": PATCH}, track="main")
    upstream.commit({"engine.py": CODE.replace("(self, name):", "(self, name, x):")}, "Wider")
    sarif = json.loads(project.run("drift", "--format", "sarif").ok().out)
    (result,) = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("applies-perhaps-wrong", "warning")
    assert "perhaps" in project.run("drift").ok().out


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (0, None),
        (4, "Engine"),
        (5, "Engine.start"),
        (10, "Engine.start"),
        (14, "Engine"),
        (16, "Engine.stop"),
        (20, "unrelated"),
    ],
)
def test_which_function_a_line_stands_in(line: int, name: str | None) -> None:
    lines = [each.encode() + b"\n" for each in CODE.split("\n")]
    found = enclosing(lines, line)
    assert (found.name if found is not None else None) == name
    if found is not None:
        assert find_enclosure(lines, found.name) == found


def test_a_signature_of_several_lines_is_seen_through() -> None:
    lines = [
        line.encode() + b"\n"
        for line in ["def f(", "    a,", "    b,", ") -> int:", "    # x", "    return 1", "y = 2"]
    ]
    found = enclosing(lines, 5)
    assert found is not None
    assert (found.name, len(found.lines)) == ("f", 6)
    assert enclosing(lines, 6) is None
