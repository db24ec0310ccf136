"""`patchkit check --only sites`, and what `check` says about sites that no patch covers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Upstream

FUSED = "@fuser\ndef {}(x):\n    return x\n"
BASE: Files = {
    "src/ops.py": FUSED.format("scale"),
    "tests/test_ops.py": FUSED.format("test_scale"),
    "lite/ops.py": "class Ops:\n    @fuser\n    def shift(self, x):\n        return x\n",
    "run.py": 'device = "cuda"\n',
}
RULES = {
    "version": 1,
    "description": "devices by name",
    "rules": [
        {
            "id": "device",
            "language": "python",
            "files": ["**/*.py"],
            "rule": {"kind": "string", "regex": '^"cuda"$'},
        }
    ],
}


class Scanned:
    """A component with a recipe for src/ and a rule file."""

    def __init__(self, project: Project, upstream: Upstream) -> None:
        self.project = project
        self.upstream = upstream
        recipe = recipe_text(DROP)
        project.write({"patches/demo/unfuse.recipe.yml": recipe})
        project.write({"patches/demo/series": "unfuse.patch\n"})
        project.write({"patches/cuda.rules.yml": yaml.safe_dump(RULES)})
        self.pin(BASE)
        project.run("refresh").ok()

    def pin(self, files: Files) -> None:
        commit = self.upstream.commit(files, "next")
        entries = [{"series": "patches/demo/series"}]
        rules = {"rules": ["patches/cuda.rules.yml"]}
        self.project.component("demo", self.upstream, commit, entries, residual=rules)

    def sites(self, *argv: str) -> dict[str, str]:
        report = self.project.run("check", "--only", "sites", "--all", "--json", *argv).json
        found = report["components"][0]["sites"]
        return {f"{each['path']}:{each['line']} {each['within']}": each["state"] for each in found}

    def codes(self) -> list[str]:
        checked = self.project.run("check", "--json").json["components"][0]
        codes = [each["code"] for each in checked["findings"]]
        return [code for code in codes if code != "lock"]

    @property
    def baseline(self) -> str:
        return (self.project.root / "patches/demo/residual.yml").read_text()


@pytest.fixture
def scanned(project: Project, upstream: Upstream) -> Scanned:
    return Scanned(project, upstream)


def test_sites_beyond_the_recipe_are_named(scanned: Scanned, golden: Golden) -> None:
    golden("residual-new", scanned.project.run("check", "--only", "sites"))
    assert scanned.sites() == {
        "lite/ops.py:2 Ops.shift": "new",
        "run.py:1 ": "new",
        "tests/test_ops.py:1 test_scale": "new",
    }
    assert scanned.codes() == ["residual-new", "residual-new"]
    golden("check-residual", scanned.project.run("check", "--jobs", "1"))
    assert scanned.project.run("check").code == 0
    assert scanned.project.run("check", "--strict").code == 1


def test_what_is_accepted_is_silent_and_what_comes_new_speaks(scanned: Scanned) -> None:
    project = scanned.project
    areas = 'version: 1\nareas:\n  - {rule: "*", path: "tests/**", reason: not run}\n'
    project.write({"patches/demo/residual.yml": areas})
    project.run("check", "--only", "sites", "--accept", "--reason", "looked at").ok().says(
        "2 sites recorded as reviewed"
    )
    assert scanned.codes() == []
    assert project.run("check", "--only", "sites", "--quiet").ok().out == ""
    moved = "# a line more\n" + str(BASE["lite/ops.py"]) + "\n" + FUSED.format("fold")
    scanned.pin({"lite/ops.py": moved, "tests/new.py": FUSED.format("test_new")})
    assert scanned.sites() == {
        "lite/ops.py:3 Ops.shift": "reviewed",
        "lite/ops.py:7 fold": "new",
        "run.py:1 ": "reviewed",
        "tests/new.py:1 test_new": "reviewed",
        "tests/test_ops.py:1 test_scale": "reviewed",
    }


def test_the_baseline_is_stable(scanned: Scanned) -> None:
    project = scanned.project
    project.run("check", "--only", "sites", "--accept", "--reason", "looked at").ok()
    text = scanned.baseline
    assert '  - {rule: device, path: run.py, text: "\\"cuda\\"", reason: "looked at"}\n' in text
    project.run("check", "--only", "sites", "--accept", "--reason", "another").ok()
    assert scanned.baseline == text


def test_the_baseline_is_where_the_manifest_says(scanned: Scanned) -> None:
    project = scanned.project
    path = project.root / "manifests/demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["components"]["demo"]["residual"]["baseline"] = "reviewed/demo.yml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    project.run("check", "--only", "sites", "--accept", "--reason", "looked at").ok()
    assert not (project.root / "patches/demo/residual.yml").exists()
    assert "looked at" in (project.root / "reviewed/demo.yml").read_text()
    assert scanned.codes() == []


def test_only_what_is_asked_for_is_accepted(scanned: Scanned) -> None:
    scanned.project.run(
        "check", "--only", "sites", "--rule", "device", "--accept", "--reason", "x"
    ).ends(1)
    assert scanned.sites()["run.py:1 "] == "reviewed"
    assert scanned.sites()["lite/ops.py:2 Ops.shift"] == "new"


def test_a_rule_or_component_in_the_wrong_place_is_told(scanned: Scanned) -> None:
    project = scanned.project
    project.run("check", "--only", "sites", "--rule", "devcie", "--accept", "--reason", "x").ends(
        2, "devcie: no such rule", "device"
    )
    assert (
        "demo is a component, and was taken for a file: -c demo"
        in project.run("check", "--only", "sites", "demo").err
    )


def test_reasons_run_out(scanned: Scanned) -> None:
    scanned.project.run("check", "--only", "sites", "--accept", "--reason", "for now").ok()
    path = scanned.project.root / "patches/demo/residual.yml"
    path.write_text(path.read_text().replace('now"}', 'now", until: "2020-12-31"}'))
    assert set(scanned.sites().values()) == {"expired"}
    assert scanned.codes() == ["residual-expired", "residual-expired"]
    scanned.project.run("check", "--only", "sites", "--accept", "--reason", "for ever").ok()
    assert "2020" not in scanned.baseline


def test_entries_that_match_nothing_are_told(scanned: Scanned) -> None:
    project = scanned.project
    project.run("check", "--only", "sites", "--accept", "--reason", "looked at").ok()
    scanned.pin({"run.py": "device = best()\n"})
    assert scanned.codes() == ["residual-unmatched"]
    (line,) = [n for n, each in enumerate(scanned.baseline.splitlines(), 1) if "run.py" in each]
    gone = f"no site any more for patches/demo/residual.yml:{line}"
    assert gone in project.run("check", "--only", "sites").err


def test_what_a_recipe_allows_is_no_residual(scanned: Scanned) -> None:
    allowed = {**DROP, "allow": [{"path": "lite/**", "reason": "never compiled"}]}
    scanned.project.write({"patches/demo/unfuse.recipe.yml": recipe_text(allowed)})
    assert "lite/ops.py:2 Ops.shift" not in scanned.sites()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--accept"], "--accept needs a reason"),
        (["./tests"], "./tests does not start at the root"),
    ],
)
def test_what_cannot_be_asked(scanned: Scanned, argv: list[str], message: str) -> None:
    scanned.project.run("check", "--only", "sites", *argv).ends(2, message)


def test_nothing_to_look_for(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, upstream.commit(BASE, "base"), {})
    project.run("check", "--only", "sites").ok().says("no recipe and no rule to match")


def test_looking_changes_nothing(scanned: Scanned) -> None:
    before = scanned.project.files("patches")
    scanned.sites()
    scanned.codes()
    assert scanned.project.files("patches") == before


def test_a_rule_file_that_edits_is_refused(scanned: Scanned) -> None:
    rules: Any = json.loads(json.dumps(RULES))
    rules["rules"][0]["fix"] = "device()"
    scanned.project.write({"patches/cuda.rules.yml": yaml.safe_dump(rules)})
    scanned.project.run("check", "--only", "sites").ends(4, "device would edit")


def test_a_scan_is_kept_for_the_same_tree_and_rules_only(
    scanned: Scanned, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = scanned.sites()
    monkeypatch.setenv("PYTHONHASHSEED", "7")  # the key must not hang on the order of sets
    kept = list(Path.home().rglob("scans/*.json"))
    assert scanned.sites() == first
    assert list(Path.home().rglob("scans/*.json")) == kept

    other = yaml.safe_dump(RULES).replace('"cuda"', '"rocm"')
    assert other != yaml.safe_dump(RULES)
    scanned.project.write({"patches/cuda.rules.yml": other})
    assert "run.py:1 " not in scanned.sites()

    for path in Path.home().rglob("scans/*.json"):
        path.write_bytes(b"rot")
    scanned.project.write({"patches/cuda.rules.yml": yaml.safe_dump(RULES)})
    assert scanned.sites() == first


def test_what_nobody_looked_at_is_known_and_not_reviewed(scanned: Scanned) -> None:
    project = scanned.project
    project.run("check", "--only", "sites", "tests/**", "--accept", "--reason", "not run")
    project.run("check", "--only", "sites", "--record").ok().says("sites recorded as known")
    assert "known:\n" in scanned.baseline
    found = project.run("check", "--only", "sites", "--json").ok().json["components"][0]
    assert (found["new"], found["known"], found["reviewed"]) == (0, 2, 1)
    out = project.run("check", "--only", "sites").ok().out
    assert "· known     2" in out
    assert "✓ reviewed  1" in out
    assert scanned.codes() == []
    before = scanned.baseline
    project.run("check", "--only", "sites", "--record").ok()
    assert scanned.baseline == before
    project.run("check", "--only", "sites", "run.py", "--accept", "--reason", "read").ok()
    assert sorted(scanned.sites().values()) == ["known", "reviewed", "reviewed"]
    scanned.pin({**BASE, "run.py": 'device = "cuda"\nother = "cuda"\n'})
    assert project.run("check", "--only", "sites").code == 1


def test_a_rule_file_whose_files_are_gone_is_an_error(scanned: Scanned) -> None:
    """But for a recipe's rules, which are looked for everywhere: of these its own run says so."""
    rules = yaml.safe_load(yaml.safe_dump(RULES))
    rules["rules"][0]["files"] = ["gone/**"]
    scanned.project.write({"patches/cuda.rules.yml": yaml.safe_dump(rules)})
    assert "residual-files" in scanned.codes()
    scanned.project.run("check", "--only", "sites", "--record")
    scanned.project.run("check", "--only", "sites").ends(1).shows(
        "device: no file is there that gone/** names"
    )
    rules["rules"][0]["optional"] = "only where there is a GPU"
    scanned.project.write({"patches/cuda.rules.yml": yaml.safe_dump(rules)})
    scanned.project.run("check", "--only", "sites").ok()
    assert scanned.codes() == []


def test_recording_takes_no_reason(scanned: Scanned) -> None:
    scanned.project.run("check", "--only", "sites", "--record", "--reason", "x").ends(
        2, "--record takes no reason"
    )
