"""`check --only tests`: what of upstream's tests breaks is told test by test, by whose fault."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from patchkit.ops.upstream_tests import read_junit
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

_RUNNER = """\
import os, pathlib
rows = []
for line in pathlib.Path("cases").read_text().split():
    name, _, outcome = line.partition("=")
    inner = {"ok": "", "bad": "<failure/>", "err": "<error/>", "skip": "<skipped/>"}[outcome]
    rows.append(f'<testcase classname="t" name="{name}">{inner}</testcase>')
text = "<testsuites><testsuite>%s</testsuite></testsuites>" % "".join(rows)
open(os.environ["PATCHKIT_JUNIT"], "w").write(text)
"""
_CASES = "one=ok\ntwo=ok\nthree=bad\nfour=skip\nfive=ok\nsix=ok\n"
_BASE = {"cases": _CASES, "run.py": _RUNNER}


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A patch that breaks one test of upstream's."""
    pin = upstream.commit(_BASE, "Begin")
    changed = {**_BASE, "cases": _CASES.replace("two=ok", "two=err")}
    patch = make_patch(_BASE, changed, subject="Break two")
    tests = {"run": "test $WORD = yes; python3 run.py", "variables": {"WORD": "yes"}}
    patches = {"one.patch": patch}
    project.component("demo", upstream, pin, patches, track="main", upstream_tests=tests)
    return project


@pytest.mark.slow
def test_learnt_then_broken_by_upstream_and_by_patches(
    demo: Project, upstream: Upstream, golden: Golden
) -> None:
    golden("test-learn", demo.run("check", "--only", "tests", "--accept"))
    record = json.loads(demo.read("manifests/demo.tests.json"))
    assert record["components"]["demo"]["unpatched"]["t::two"] == "passed"
    assert record["components"]["demo"]["patched"]["t::two"] == "failed"
    demo.run("check", "--only", "tests").ok().shows("✓ passed  demo")
    moved = "one=ok\ntwo=ok\nthree=ok\nfour=skip\nfive=bad\n"
    upstream.commit({"cases": moved}, "Break five, leave out six, mend three")
    demo.run("bump", "demo", "--to", "latest").ok()
    golden("test-broken", demo.run("check", "--only", "tests"))


@pytest.mark.slow
def test_a_patch_that_breaks_what_passed(demo: Project) -> None:
    demo.run("check", "--only", "tests", "--accept").ok()
    worse = {**_BASE, "cases": _CASES.replace("two=ok", "two=err").replace("one=ok", "one=bad")}
    demo.series("demo", {"one.patch": make_patch(_BASE, worse, subject="Worse")})
    demo.run("check", "--only", "tests", "-o", "out.xml").ends(1).shows(
        "✗ broken  t::one  fails because of the patches"
    )
    assert read_junit((demo.root / "out.xml").read_bytes())["t::one"] == "failed"
    assert not demo.checkout("demo").exists()


def test_nothing_learnt_nothing_compared(demo: Project) -> None:
    ran = demo.run("check", "--only", "tests", "--json")
    assert (ran.code, ran.component["result"]) == (1, "not learnt")
    assert ran.component["counts"] == {"passed": 3, "skipped": 1, "failed": 2}


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("true", "the command ends well, and writes no JUnit"),
        ("exit 7", "the command exits with 7, and writes no JUnit"),
        ("echo '<a/>' > $PATCHKIT_JUNIT", "its root is 'a'"),
        ("echo '<' > $PATCHKIT_JUNIT", "no XML"),
        ("printf '<!DOCTYPE x><testsuite/>' > $PATCHKIT_JUNIT", "it has a document type"),
    ],
)
def test_a_command_without_junit(project: Project, upstream: Upstream, run: str, said: str) -> None:
    project.component("demo", upstream, _BASE, {}, upstream_tests={"run": run})
    project.run("check", "--only", "tests", "--accept").ends(5, said)
    assert not (project.root / "manifests/demo.tests.json").exists()


@pytest.mark.parametrize(
    ("ending", "cases", "said"),
    [
        (
            "exit 3",
            "one=ok",
            "the command exits with 3, and its JUnit file has 0 tests that failed",
        ),
        ("exit 5", "", "the command exits with 5, and its JUnit file has 0 tests that failed"),
        ("kill -9 $$", "one=ok", "is killed by signal 9, and its JUnit file has 0 tests"),
        ("kill -9 $$", "one=bad", "is killed by signal 9, and its JUnit file has 1 test that"),
        ("sh -c 'kill -9 $$'; true", "one=bad", "the command exits with 137, and"),
    ],
)
def test_a_good_junit_file_and_a_bad_end(
    project: Project, upstream: Upstream, ending: str, cases: str, said: str
) -> None:
    """Neither verdict nor record; the file is not handed on as a good one."""
    tests = {"run": f"python3 run.py; {ending}"}
    project.component(
        "demo", upstream, {"cases": cases, "run.py": _RUNNER}, {}, upstream_tests=tests
    )
    project.run("check", "--only", "tests", "--accept", "-o", "out.xml").ends(5, said).shows(
        "✗ failed"
    )
    assert not (project.root / "manifests/demo.tests.json").exists()
    assert not (project.root / "out.xml").exists()


def test_the_command_runs_in_its_directory_of_the_workspace_that_is_named(
    project: Project, upstream: Upstream
) -> None:
    base = {"inner/cases": "one=ok\n", "inner/run.py": _RUNNER, "cases": "two=ok\n"}
    tests = {"run": f"python3 run.py; pwd > '{project.root}/pwd'", "directory": "inner"}
    project.component("demo", upstream, base, {}, upstream_tests=tests)
    project.run("check", "--only", "tests", "--accept", "--workspace", "elsewhere").ok()
    place = Path(project.read("pwd").rstrip("\n"))
    assert place.name == "inner"
    assert (project.root / "elsewhere").resolve() in place.parents
    assert not (project.root / "workspace").exists()
    record = json.loads(project.read("manifests/demo.tests.json"))
    assert record["components"]["demo"]["patched"] == {"t::one": "passed"}


def test_a_failed_test_explains_an_exit_code(project: Project, upstream: Upstream) -> None:
    tests = {"run": "python3 run.py; exit 1"}
    project.component(
        "demo", upstream, {"cases": "one=bad", "run.py": _RUNNER}, {}, upstream_tests=tests
    )
    assert (
        project.run("check", "--only", "tests").code,
        project.run("check", "--only", "tests", "--accept").code,
    ) == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 2, "components": {}}',
        "\0",
        '{"version": 1, "components": {"\udcff": 1}}',
    ],
)
def test_a_damaged_record(demo: Project, text: str) -> None:
    demo.write({"manifests/demo.tests.json": text.encode(errors="surrogateescape")})
    demo.run("check", "--only", "tests").ends(4)


def test_without_any_tests(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    project.component("demo", upstream, _BASE, {})
    project.run("check", "--only", "tests").ok().says("no component has tests of upstream's")
    assert project.run("check", "--only", "tests", "--json").json["components"] == []


@pytest.mark.slow
def test_several_components_write_one_junit(demo: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"cases": "seven=ok\n"}, "Another")
    demo.component("other", upstream, pin, {}, upstream_tests={"run": "python3 run.py"})
    demo.component("worse", upstream, pin, {}, upstream_tests={"run": "exit 3"})
    ran = demo.run("check", "--only", "tests", "--accept", "--output", "out.xml", "--json")
    rows = {each["name"]: each for each in ran.json["components"]}
    assert (ran.code, rows["worse"]["result"]) == (5, "failed")
    assert "exits with 3, and writes no JUnit" in rows["worse"]["problems"][0]["what"]
    learnt = json.loads(demo.read("manifests/demo.tests.json"))["components"]
    assert sorted(learnt) == ["demo", "other"]
    root = ElementTree.parse(demo.root / "out.xml").getroot()
    assert [each.get("name") for each in root] == ["demo", "other"]
    cases = {**learnt["demo"]["patched"], **learnt["other"]["patched"]}
    assert read_junit((demo.root / "out.xml").read_bytes()) == cases
