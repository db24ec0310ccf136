"""`mcp --only merge`: proposals for conflicts of other kinds, and what `check` says of them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.extensions.python_guards.test_contracts import KERNELS
from tests.extensions.python_guards.test_overrides import CORE, RULES, RULES_FILE, overriding
from tests.ops.test_import_3way import mails, stack
from tests.ops.test_resume import Bumping
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.support.stacked import lines

__all__ = ["mails", "stack"]

pytestmark = pytest.mark.slow

Propose = Callable[..., Ran]


@pytest.fixture
def propose(project: Project, monkeypatch: pytest.MonkeyPatch) -> Propose:
    """Proposes texts for the files of the conflict that waits."""

    def asked(files: Mapping[str, Sequence[str]], *dropped: str, component: str = "demo") -> Ran:
        found = project.run("mcp", "--only", "conflict", component).ok().json
        given = {"conflict": found["conflict"], "files": files, "dropped": dropped}
        said = io.TextIOWrapper(io.BytesIO(json.dumps(given).encode()))
        monkeypatch.setattr(sys, "stdin", said)
        return project.run("mcp", "--only", "merge", component, "--json")

    return asked


def test_an_import_that_waits_takes_one(
    stack: Bumping, mails: list[Path], propose: Propose
) -> None:
    stack.run("import", str(mails[0].parent), "--3way").ends(3)
    before = stack.state
    text = "line 5, mended\nsix\n"
    named = ("upstream five, mended", "line 5")
    assert "is gone" in propose({"a.txt": [text]}).ends(1).out
    assert stack.state == before
    done = propose({"a.txt": [text]}, *named).ok()
    assert len(done.component["imported"]) == 2
    assert "a proposal (held: lines of both sides" in done.out
    assert stack.read("a.txt") == lines({5: "line 5, mended\n", 6: "six\n"})


def test_a_file_that_upstream_took_away_is_for_a_person(
    project: Project, upstream: Upstream, propose: Propose
) -> None:
    base = {"a.txt": lines(), "b.txt": lines()}
    patch = make_patch(base, {"a.txt": lines({5: "five\n"}), "b.txt": lines({7: "seven\n"})})
    project.component("demo", upstream, base, {"one.patch": patch}, track="main")
    stack = Bumping.applied(project)
    upstream.commit({"a.txt": None, "b.txt": lines({7: "VII\n"})})
    stack.bump().ends(3)
    before = stack.state
    said = propose({"b.txt": ["VII, seven\n"]}, "seven", "VII").ends(1)
    (problem,) = said.component["problems"]
    assert problem["where"] == "one.patch"
    assert "does not fit" in problem["what"]
    assert stack.state == before


_CALL = "rms_norm(x, self.hidden_size, self.eps)"
_MODEL = f"""\
from kernels.norm import rms_norm


class Model:
    def forward(self, x):
        return {_CALL}
"""


def test_a_call_that_would_fit_no_more_holds_it_up(
    project: Project, upstream: Upstream, tmp_path: Path, propose: Propose
) -> None:
    kernels = Upstream.create(tmp_path / "kernels.git")
    given = {"root": "python", "packages": ["kernels"]}
    project.component("kernels", kernels, kernels.commit(KERNELS), contracts=given)
    base = {"engine/__init__.py": "", "engine/model.py": _MODEL}
    own = _MODEL.replace("rms_norm(x,", "rms_norm(x.npu(),")
    patch = make_patch(base, {"engine/model.py": own})
    declared = {"packages": ["engine"]}
    project.component("demo", upstream, base, {"one.patch": patch}, contracts=declared)
    stack = Bumping.applied(project)
    new = _MODEL.replace("self.eps)", "self.eps, self.weight)")
    upstream.commit({"engine/model.py": new})
    stack.bump().ends(3)
    before = stack.state
    dropped = [each.splitlines()[-1] for each in (own, new)]
    good = new.replace("rms_norm(x,", "rms_norm(x.npu(),").splitlines()[-1]
    bad = good.replace("self.weight)", "self.weight, bias=self.bias)")
    said = propose({"engine/model.py": [bad]}, *dropped).ends(1)
    (problem,) = said.component["problems"]
    assert "bias" in problem["what"] and "engine/model.py:6" in str(problem), problem
    assert stack.state == before
    propose({"engine/model.py": [good]}, *dropped).ok()


_REPLACE = "    manager.replace('core.scale', fast_scale)\n"


def test_a_function_that_is_not_there_to_be_replaced_holds_it_up(
    project: Project, upstream: Upstream, tmp_path: Path, propose: Propose
) -> None:
    core = Upstream.create(tmp_path / "core.git")
    project.component("core", core, core.commit(CORE), {})
    project.write({RULES_FILE: yaml.safe_dump(RULES)})
    old = {"speed/features.py": f"def register(manager):\n{_REPLACE}"}
    texts = [_REPLACE.replace("fast", "npu"), _REPLACE.replace("scale)", "scale, level=1)")]
    own, new = ({"speed/features.py": f"def register(manager):\n{text}"} for text in texts)
    patches = {"one.patch": make_patch(old, own)}
    project.component("demo", upstream, old, patches, overrides=[overriding()])
    stack = Bumping.applied(project)
    upstream.commit(new)
    stack.bump().ends(3)
    before = stack.state
    good = texts[0].replace("scale)", "scale, level=1)")
    bad = good.replace("core.scale", "core.scaled")
    said = propose({"speed/features.py": [bad]}, *texts).ends(1)
    assert "core.scaled" in str(said.component["problems"])
    assert stack.state == before
    propose({"speed/features.py": [good]}, *texts).ok()


@pytest.mark.parametrize("text", ["", "[]", '{"files": {"a": "b"}}', '{"conflict": "\\ud800"}'])
def test_what_is_no_proposal_is_said(
    stack: Bumping, mails: list[Path], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.run("import", str(mails[0].parent), "--3way").ends(3)
    before = stack.state
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    stack.run("mcp", "--only", "merge").ends(4, "stdin: is no proposal")
    assert stack.state == before
