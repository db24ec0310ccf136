"""Patches that still apply, and perhaps no longer do their job."""

from __future__ import annotations

import pytest

from patchkit.errors import ExitCode
from patchkit.model.merging.scopes import enclosing
from tests.drift.lines import Branch, by
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


def _ours(code: str) -> str:
    return code.replace("self.run(device)", "self.run(device_of(name))")


FAR = CODE.replace("return os.name", "return os.sep")
GONE = CODE.replace("import device_of", "import where").replace("= device_of", "= where")
LOCAL = CODE.replace("from lib import device_of\n", "")
LOCAL += "\n\ndef device_of(name):\n    return name\n"
USED = CODE.replace("return os.name", "return Engine().start('x')")


@pytest.mark.parametrize(
    ("versions", "suspicions"),
    [
        pytest.param((CODE, f"# more\n\n{FAR}"), [], id="elsewhere"),
        pytest.param(
            (CODE, FAR, FAR.replace("def start(self, name)", "def start(self, name, fast)")),
            [("scope-changed", "Engine.start has changed around it")],
            id="the function around it",
        ),
        pytest.param(
            (CODE, CODE.replace("def start(", "def begin(")),
            [],
            id="renamed",
        ),
        pytest.param(
            (CODE, GONE),
            [("scope-changed", "Engine.start has changed around it")],
            id="a name is gone",
        ),
        pytest.param(
            (
                LOCAL,
                LOCAL.replace("os.name", "os.sep"),
                LOCAL.replace("of(name):", "of(name, index=0, *, kind):"),
            ),
            [
                (
                    "name-changed",
                    "device_of is called by added lines, and takes (name, index=0, *, kind) now",
                )
            ],
            id="other arguments",
        ),
        pytest.param(
            (USED, f"# more\n{USED}", USED.replace("Engine().start('x')", "0")),
            [("not-called", "start, which it patches, is not used in the file any more")],
            id="nobody uses it any more",
        ),
    ],
)
def test_what_a_patch_that_applies_is_suspected_of(
    project: Project,
    upstream: Upstream,
    versions: tuple[str, ...],
    suspicions: list[tuple[str, str]],
) -> None:
    commits = [upstream.commit({"engine.py": code}) for code in versions]
    change = {"engine.py": versions[0]}, {"engine.py": _ours(versions[0])}
    found = Branch(project, upstream, commits[0], {"ours.patch": make_patch(*change)}).look()
    (patch,) = found.patches
    assert [(each.kind, each.what) for each in patch.suspicions] == suspicions
    assert {(each.hunk, by(each.by)) for each in patch.suspicions} <= {(1, commits[-1])}
    # a suspicion is for reading; what a bump flags for review is a finding
    assert patch.forecast is not None
    assert found.exit_code is (ExitCode.FINDING if patch.forecast.review else ExitCode.OK)


def test_suspicions_are_warnings_in_reports(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"engine.py": CODE})
    patch = make_patch({"engine.py": CODE}, {"engine.py": _ours(CODE)})
    project.component("demo", upstream, pin, {"ours.patch": patch}, track="main")
    upstream.commit({"engine.py": CODE.replace("(self, name):", "(self, name, x):")}, "Wider")
    (result,) = project.run("drift", "--format", "sarif").ok().json["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("applies-perhaps-wrong", "warning")
    project.run("drift").ok().shows("perhaps")


def test_a_signature_of_several_lines_is_seen_through() -> None:
    lines = [
        line.encode() + b"\n"
        for line in ["def f(", "    a,", "    b,", ") -> int:", "    # x", "    return 1", "y = 2"]
    ]
    found = enclosing(lines, 5)
    assert found is not None
    assert (found.name, len(found.lines)) == ("f", 6)
    assert enclosing(lines, 6) is None
