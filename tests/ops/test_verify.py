"""`verify` steps in `check`: parsing, texts, rules, and commands that run only when asked to."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Symlink, Upstream, executable, make_patch

BODY = "Because it has to be.\n\nUpstream-Status: Pending"
BASE: Files = {
    "pkg/core.py": "@fuser\ndef f(x):\n    return x\n",
    "pkg/more.py": "import os\n",
    "conf/a.json": '{"a": 1}\n',
    "bin/go": executable("#!/bin/sh\n. ./settings\necho gone to $WHERE\n"),
    "settings": Symlink("conf/settings.sh"),
    "conf/settings.sh": "WHERE=here\n",
    "old.py": "print 'python 2'\n",
}


def edit(path: str, old: str, new: str) -> bytes:
    text = BASE[path]
    assert isinstance(text, str)
    assert old in text
    return make_patch(BASE, {**BASE, path: text.replace(old, new)}, subject="Edit", body=BODY)


UNFUSE = edit("pkg/core.py", "@fuser\n", "")


class Verified:
    """A component with patches and verify steps."""

    def __init__(self, project: Project, upstream: Upstream) -> None:
        self.project = project
        self.upstream = upstream
        self.pin = upstream.commit(BASE, "base")

    def check(self, *steps: dict[str, Any], argv: tuple[str, ...] = (), **patches: bytes) -> Any:
        named = {f"{name}.patch": data for name, data in (patches or {"one": UNFUSE}).items()}
        self.project.component("demo", self.upstream, self.pin, named, verify=list(steps))
        return self.project.run("check", "--json", *argv).json

    def found(self, *steps: dict[str, Any], **patches: bytes) -> list[tuple[str, str]]:
        findings = self.check(*steps, argv=(), **patches)["components"][0]["findings"]
        return [(each["code"], each["what"]) for each in findings if each["severity"] != "note"]


@pytest.fixture
def verified(project: Project, upstream: Upstream) -> Verified:
    return Verified(project, upstream)


def test_files_that_parsed_must_parse(verified: Verified) -> None:
    """And new ones, with the whole stack applied."""
    broken = edit("pkg/core.py", "def f(x):", "def f(x:")
    said = "pkg/core.py is no Python with the stack applied: cannot be parsed in line 2"
    assert verified.found(one=broken) == [("verify-parse", said)]
    ((code, what),) = verified.found(one=edit("conf/a.json", "1}", "1,}"))
    said = "conf/a.json is no JSON with the stack applied"
    assert (code, what.partition(":")[0]) == ("verify-parse", said)
    new = make_patch(BASE, {**BASE, "new.py": "def (\n"}, subject="Add", body=BODY)
    assert [code for code, _ in verified.found(one=new)] == ["verify-parse"]


def test_other_files_need_not(verified: Verified) -> None:
    """What did not parse before, or does not half-way; and nothing where a patch does not apply."""
    assert verified.found(one=edit("old.py", "python 2", "python two")) == []
    first = edit("pkg/more.py", "import os", "import (os")
    halfway = {**BASE, "pkg/more.py": "import (os\n"}
    done = {**BASE, "pkg/more.py": "import os, re\n"}
    second = make_patch(halfway, done, subject="Close", body=BODY)
    assert verified.found(one=first, two=second) == []
    bad = make_patch({"pkg/core.py": "other\n"}, {"pkg/core.py": "new\n"}, body=BODY)
    assert verified.found({"absent": "def", "files": ["**"]}, one=bad, two=second) == []


def test_what_parses_is_parsed_once(verified: Verified, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    compiled = compile

    def compile_and_tell(data: bytes | str, *arguments: Any, **options: Any) -> object:
        if isinstance(data, bytes):  # a command line's annotations are text
            parsed.append(data)
        return compiled(data, *arguments, **options)

    monkeypatch.setattr(builtins, "compile", compile_and_tell)
    broken = edit("pkg/more.py", "import os", "import (once")
    for _ in range(3):
        assert [code for code, _ in verified.found(one=UNFUSE, two=broken)] == ["verify-parse"]
    assert b"import (once\n" in parsed
    assert len(parsed) == len(set(parsed))


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ({"absent": "@fuser", "files": ["pkg/**"]}, []),
        ({"present": "def f(x):\n    return", "files": ["pkg/*.py"]}, []),
        (
            {"absent": "return x", "files": ["**/*.py"], "name": "nothing comes back"},
            [("verify-absent", "nothing comes back: is at pkg/core.py:2")],
        ),
        (
            {"present": "@fuser", "files": ["pkg/**"]},
            [("verify-present", "present: @fuser: none of 2 files has it")],
        ),
        (
            {"absent": "@fuser", "files": ["core/**"]},
            [("verify-files", "absent: @fuser: no file is there that core/** names")],
        ),
        ({"absent": "@fuser", "files": ["core/**"], "optional": "only in 2.x"}, []),
        (
            {"absent": "def", "files": ["pkg/**"], "optional": "x", "name": "no def"},
            [("verify-absent", "no def: is at pkg/core.py:1")],
        ),
        (
            {"absent": "x", "files": ["pkg/**"], "after": "two.patch"},
            [("verify-after", "absent: x: two.patch is not in the stack")],
        ),
    ],
)
def test_texts(verified: Verified, step: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert verified.found(step) == found


def test_the_tree_after_one_patch(verified: Verified) -> None:
    back = make_patch(
        {**BASE, "pkg/core.py": "def f(x):\n    return x\n"}, BASE, subject="Back", body=BODY
    )
    step = {"absent": "@fuser", "files": ["pkg/**"]}
    patches = {"one": UNFUSE, "two": back}
    assert [code for code, _ in verified.found(step, **patches)] == ["verify-absent"]
    assert verified.found({**step, "after": "one.patch"}, **patches) == []


def rules(project: Project, **rule: object) -> dict[str, Any]:
    one = {"id": "fused", "language": "python", "files": ["pkg/**"], "rule": {"pattern": "fuser"}}
    data = {"version": 1, "description": "fused functions", "rules": [{**one, **rule}]}
    project.write({"patches/demo/fused.rules.yml": yaml.safe_dump(data)})
    return {"rules": "patches/demo/fused.rules.yml"}


def test_rules_hold_or_not(verified: Verified, project: Project) -> None:
    assert verified.found(rules(project, expect=0)) == []
    assert verified.found(rules(project)) == [("verify-rules-dead-rule", "fused: matches nothing")]
    everything = rules(project, rule={"kind": "identifier"}, expect=1)
    assert verified.found(everything) == [
        (
            "verify-rules-count",
            "fused: matches 4 sites, not 1: "
            "pkg/core.py:1, pkg/core.py:1, pkg/core.py:2, pkg/more.py:1",
        )
    ]
    assert verified.found({"rules": "patches/none.yml"}) == [("verify-rules", "is not there")]


def test_a_command_is_not_run_unless_asked_for(verified: Verified, tmp_path: Path) -> None:
    marker = tmp_path / "was here"
    report = verified.check({"run": f"touch '{marker}'", "name": "leave a mark"})
    (finding,) = report["components"][0]["findings"]
    assert (finding["severity"], finding["what"]) == ("note", "not run: leave a mark")
    assert report["exit_code"] == 0
    assert not marker.exists()
    verified.check({"run": f"touch '{marker}'"}, argv=("--run",))
    assert marker.exists()


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        ({"run": "test ! -e pkg/none.py\n! grep -q fuser pkg/core.py"}, ""),
        ({"run": "test \"$(bin/go)\" = 'gone to here'"}, ""),
        ({"run": "grep -q return core.py", "directory": "pkg"}, ""),
        ({"run": "test -L settings"}, ""),
        ({"run": "false\ntrue"}, "false: exits with 1"),
        (
            {"run": "echo one; echo two >&2; exit 3", "name": "loud"},
            "loud: exits with 3: one / two",
        ),
        ({"run": "cat; exit 4"}, "cat; exit 4: exits with 4"),
        ({"run": "true", "directory": "nowhere"}, "true: cannot be started: No such file or"),
        ({"run": "grep fuser pkg/core.py", "after": "none.patch"}, "none.patch is not in the"),
    ],
)
def test_commands(verified: Verified, step: dict[str, Any], wrong: str) -> None:
    report = verified.check(step, argv=("--run",))
    findings = report["components"][0]["findings"]
    assert bool(findings) == bool(wrong)
    assert report["exit_code"] == bool(wrong)
    if wrong:
        assert wrong in findings[0]["what"]


def test_a_command_leaves_nothing_behind(
    verified: Verified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, said = tmp_path / "own", tmp_path / "said"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    verified.check({"run": f"pwd >{said}; (sleep 600 &) ; touch new; exit 1"}, argv=("--run",))
    assert Path(said.read_text()).is_relative_to(own)
    assert list(own.glob("patchkit-verify-*")) == []


def test_a_command_that_does_not_end(verified: Verified, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.guards.verify.PATIENCE", 0.3)
    report = verified.check({"run": "sleep 60"}, argv=("--run",))
    assert "does not end within 0 seconds" in report["components"][0]["findings"][0]["what"]


def test_what_is_shown(verified: Verified, project: Project, golden: Golden) -> None:
    verified.check(
        {"absent": "return x", "files": ["**/*.py"], "name": "nothing comes back"},
        {"run": "make test"},
        one=edit("pkg/more.py", "import os", "import (os"),
    )
    golden("check-verify", project.run("check", "--jobs", "1"))
