"""`patchkit check --only manifest`, `status --resolved` and `init --schema`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from patchkit.manifest.json_schema import json_schema
from patchkit.manifest.keys import struct_data
from patchkit.manifest.load import load_manifest
from tests.support.golden import Golden
from tests.support.projects import Project

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GOOD = f"""\
version: 1
components:
  demo:
    source: {{git: "https://example.com/demo.git"}}
    pin: {COMMIT}
    patches:
      - series: patches/demo/series
"""


@pytest.fixture
def good(project: Project) -> Project:
    """manifests/good.yaml with a series of one patch."""
    project.write({"manifests/good.yaml": GOOD})
    project.series("demo", {"one.patch": b"--- a/x\n+++ b/x\n"})
    return project


def test_all_is_well(good: Project, golden: Golden) -> None:
    with good.untouched():
        golden("manifest-lint-ok", good.run("check", "--only", "manifest"))


def test_every_mistake_of_every_manifest_is_told(good: Project, golden: Golden) -> None:
    good.write(
        {
            "manifests/bad.yaml": "version: 1\ncomponets: {}\ncomponents:\n  Demo:\n"
            "    source: {git: demo}\n    pin: 1234567\n",
            "manifests/broken.yaml": "version: 1\ncomponents: {\n",
            "manifests/profiles/part.yaml": "not looked at\n",
        }
    )
    golden("manifest-lint-bad", good.run("check", "--only", "manifest"))


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--strict",), 1)])
def test_warnings_count_with_strict(good: Project, flags: tuple[str, ...], code: int) -> None:
    secret = GOOD.replace("https://", "https://user:hunter2@")
    good.write({"manifests/good.yaml": secret})
    ran = good.run("check", "--only", "manifest", *flags).ends(
        code, "manifests/good.yaml:4: a URL has a user name or password in it"
    )
    assert "hunter2" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"patches/demo/series": None},
            "manifests/good.yaml:7: patches/demo/series is not there",
        ),
        (
            {"patches/demo/one.patch": None},
            "patches/demo/series:1: patches/demo/one.patch is not there",
        ),
        ({"patches/demo/series": "x\n"}, "patches/demo/series:1: patches/demo/x is not there"),
        (
            {"manifests/good.yaml": GOOD + "      - patch: patches/demo/two.patch\n"},
            "manifests/good.yaml:8: patches/demo/two.patch is not there",
        ),
        (
            {"manifests/good.yaml": GOOD + "      - patch: patches/demo/one.patch\n"},
            "one.patch is the name of the patch at patches/demo/series:1, too",
        ),
    ],
)
def test_series_and_patches_of_the_project_are_looked_at(
    good: Project, files: dict[str, str | None], message: str
) -> None:
    for name, text in files.items():
        if text is None:
            (good.root / name).unlink()
        else:
            good.write({name: text})
    good.run("check", "--only", "manifest").ends(4, message)


def test_lint_as_json(good: Project) -> None:
    good.write({"manifests/bad.yaml": GOOD.replace(COMMIT, "main")})
    ran = good.run("check", "--only", "manifest", "--json")
    assert ran.code == ran.json["exit_code"] == 4
    assert ran.json["schema"] == "patchkit/check-only-manifest/2"
    bad, fine = ran.json["manifests"]
    (problem,) = bad["problems"]
    assert problem["where"].endswith("manifests/bad.yaml:5")
    assert "main is not a commit id" in problem["what"]
    assert problem["hint"]
    assert fine["problems"] == fine["warnings"] == []
    assert fine["components"] == 1


def test_lint_of_named_manifests(good: Project) -> None:
    good.write({"manifests/bad.yaml": "version: 9\n", "elsewhere.yaml": GOOD})
    good.run("check", "--only", "manifest", "good").ok()
    good.run("check", "--only", "manifest", "good", "bad").ends(4)
    good.run("check", "--only", "manifest", "goood").ends(2)


def test_show_prints_a_manifest_that_means_the_same(good: Project) -> None:
    good.write(
        {
            "manifests/parts/p.yaml": 'version: 1\nenvironment: {versions: {python: ">=3.10"}}\n',
            "manifests/good.yaml": GOOD + "extends: [parts/p.yaml]\n",
        }
    )
    shown = good.run("status", "--resolved", "-m", "good").ok()
    assert "extends" not in shown.out
    document = good.run("status", "--resolved", "-m", "good", "--json").ok().json
    assert document["manifest"] == yaml.safe_load(shown.out)
    assert [Path(each).name for each in document["files"]] == ["good.yaml", "p.yaml"]
    good.write({"manifests/again.yaml": shown.out})
    again = load_manifest(good.root / "manifests" / "again.yaml")
    assert struct_data(again) == struct_data(load_manifest(good.root / "manifests/good.yaml"))
    assert again.environment.versions == {"python": ">=3.10"}


def test_show_of_a_bad_manifest_tells_all_problems(good: Project) -> None:
    good.write({"manifests/good.yaml": GOOD.replace(COMMIT, "main").replace("series:", "serie:")})
    ran = good.run("status", "--resolved").ends(4)
    assert ran.out == ""
    assert ran.err.count("error: ") == 2


@pytest.mark.parametrize("part", [False, True])
def test_schema(part: bool) -> None:
    project = Project(Path.cwd())
    ran = project.run("init", "--schema", "part" if part else "manifest").ok()
    assert json.loads(ran.out) == json_schema(part=part)
    assert ran.out.endswith("}\n")
