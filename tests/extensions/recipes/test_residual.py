"""`patchkit check --only sites`, and what `check` says about sites that no patch covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.support.commands import Ran
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
RULE = {
    "id": "device",
    "language": "python",
    "files": ["**/*.py"],
    "rule": {"kind": "string", "regex": '^"cuda"$'},
}
RULES = {"version": 1, "description": "devices by name", "rules": [RULE]}
REASON = ("--accept", "--reason", "looked at")


class Scanned:
    """A component with a recipe for src/ and a rule file."""

    def __init__(self, project: Project, upstream: Upstream) -> None:
        self.project = project
        self.upstream = upstream
        project.write({"patches/demo/series": "unfuse.patch\n"})
        self.recipe(DROP)
        self.rule()
        self.pin(BASE)
        project.run("refresh").ok()

    def recipe(self, rule: dict[str, Any]) -> None:
        self.project.write({"patches/demo/unfuse.recipe.yml": recipe_text(rule)})

    def rule(self, **keys: object) -> None:
        """Give the rule of the rule file other keys."""
        rules = RULES | {"rules": [RULE | keys]}
        self.project.write({"patches/cuda.rules.yml": yaml.safe_dump(rules)})

    def pin(self, files: Files, **keys: str) -> None:
        commit = self.upstream.commit(files, "next")
        entries = [{"series": "patches/demo/series"}]
        residual = {"rules": ["patches/cuda.rules.yml"], **keys}
        self.project.component("demo", self.upstream, commit, entries, residual=residual)

    def look(self, *argv: str) -> Ran:
        """What `check --only sites` says."""
        return self.project.run("check", "--only", "sites", *argv)

    def sites(self) -> dict[str, str]:
        found = self.look("--all", "--json").json["components"][0]["sites"]
        return {f"{each['path']}:{each['line']} {each['within']}": each["state"] for each in found}

    def codes(self) -> list[str]:
        checked = self.project.run("check", "--json").json["components"][0]
        codes = [each["code"] for each in checked["findings"]]
        return [code for code in codes if code != "lock"]

    @property
    def baseline(self) -> Path:
        return self.project.root / "patches/demo/residual.yml"


@pytest.fixture
def scanned(project: Project, upstream: Upstream) -> Scanned:
    return Scanned(project, upstream)


def test_sites_beyond_the_recipe_are_named(scanned: Scanned, golden: Golden) -> None:
    before = scanned.project.files("patches")
    golden("residual-new", scanned.look())
    assert scanned.sites() == {
        "lite/ops.py:2 Ops.shift": "new",
        "run.py:1 ": "new",
        "tests/test_ops.py:1 test_scale": "new",
    }
    assert scanned.codes() == ["residual-new", "residual-new"]
    golden("check-residual", scanned.project.run("check", "--jobs", "1"))
    scanned.project.run("check").ok()
    scanned.project.run("check", "--strict").ends(1)
    assert scanned.project.files("patches") == before  # looking changes nothing


def test_what_is_accepted_is_silent_and_what_comes_new_speaks(scanned: Scanned) -> None:
    areas = 'version: 1\nareas:\n  - {rule: "*", path: "tests/**", reason: not run}\n'
    scanned.baseline.write_text(areas)
    scanned.look(*REASON).ok().says("2 sites recorded as reviewed")
    assert scanned.codes() == []
    assert scanned.look("--quiet").ok().out == ""
    text = scanned.baseline.read_text()
    assert '  - {rule: device, path: run.py, text: "\\"cuda\\"", reason: "looked at"}\n' in text
    scanned.look("--accept", "--reason", "another").ok()
    assert scanned.baseline.read_text() == text
    moved = "# a line more\n" + str(BASE["lite/ops.py"]) + "\n" + FUSED.format("fold")
    scanned.pin({"lite/ops.py": moved, "tests/new.py": FUSED.format("test_new")})
    assert scanned.sites() == {
        "lite/ops.py:3 Ops.shift": "reviewed",
        "lite/ops.py:7 fold": "new",
        "run.py:1 ": "reviewed",
        "tests/new.py:1 test_new": "reviewed",
        "tests/test_ops.py:1 test_scale": "reviewed",
    }


def test_the_baseline_is_where_the_manifest_says(scanned: Scanned) -> None:
    scanned.pin({}, baseline="reviewed/demo.yml")
    scanned.look(*REASON).ok()
    assert not scanned.baseline.exists()
    assert "looked at" in (scanned.project.root / "reviewed/demo.yml").read_text()
    assert scanned.codes() == []


def test_only_what_is_asked_for_is_accepted(scanned: Scanned) -> None:
    scanned.look("demo", *REASON).says("demo is a component, and was taken for a file: -c demo")
    scanned.look("--rule", "device", *REASON).ends(1)
    sites = scanned.sites()
    assert (sites["run.py:1 "], sites["lite/ops.py:2 Ops.shift"]) == ("reviewed", "new")


def test_reasons_run_out(scanned: Scanned) -> None:
    scanned.look(*REASON).ok()
    text = scanned.baseline.read_text()
    scanned.baseline.write_text(text.replace('at"}', 'at", until: "2020-12-31"}'))
    assert set(scanned.sites().values()) == {"expired"}
    assert scanned.codes() == ["residual-expired", "residual-expired"]
    scanned.look("--accept", "--reason", "for ever").ok()
    assert "2020" not in scanned.baseline.read_text()


def test_entries_that_match_nothing_are_told(scanned: Scanned) -> None:
    scanned.look(*REASON).ok()
    scanned.pin({"run.py": "device = best()\n"})
    assert scanned.codes() == ["residual-unmatched"]
    lines = scanned.baseline.read_text().splitlines()
    (line,) = [n for n, each in enumerate(lines, 1) if "run.py" in each]
    scanned.look().says(f"no site any more for patches/demo/residual.yml:{line}")


def test_what_a_recipe_allows_is_no_residual(scanned: Scanned) -> None:
    scanned.recipe({**DROP, "allow": [{"path": "lite/**", "reason": "never compiled"}]})
    assert "lite/ops.py:2 Ops.shift" not in scanned.sites()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--accept"], "--accept needs a reason"),
        (["./tests"], "./tests does not start at the root"),
        (["--rule", "devcie", *REASON], "devcie: no such rule"),
        (["--record", "--reason", "x"], "--record takes no reason"),
    ],
)
def test_what_cannot_be_asked(scanned: Scanned, argv: list[str], message: str) -> None:
    scanned.look(*argv).ends(2, message)


def test_nothing_to_look_for(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, upstream.commit(BASE, "base"), {})
    project.run("check", "--only", "sites").ok().says("no recipe and no rule to match")


def test_a_rule_file_that_edits_is_refused(scanned: Scanned) -> None:
    scanned.rule(fix="device()")
    scanned.look().ends(4, "device would edit")


def test_a_scan_is_kept_for_the_same_tree_and_rules_only(
    scanned: Scanned, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = scanned.sites()
    monkeypatch.setenv("PYTHONHASHSEED", "7")  # the key must not hang on the order of sets
    kept = list(Path.home().rglob("scans/*.json"))
    assert scanned.sites() == first
    assert list(Path.home().rglob("scans/*.json")) == kept

    scanned.rule(rule={"kind": "string", "regex": '^"rocm"$'})
    assert "run.py:1 " not in scanned.sites()

    for path in Path.home().rglob("scans/*.json"):
        path.write_bytes(b"rot")
    scanned.rule()
    assert scanned.sites() == first


def test_what_nobody_looked_at_is_known_and_not_reviewed(scanned: Scanned) -> None:
    scanned.look("tests/**", *REASON)
    scanned.look("--record").ok().says("sites recorded as known")
    text = scanned.baseline.read_text()
    assert "known:\n" in text
    (found,) = scanned.look("--json").ok().json["components"]
    assert (found["new"], found["known"], found["reviewed"]) == (0, 2, 1)
    scanned.look().ok().shows("· known     2", "✓ reviewed  1")
    assert scanned.codes() == []
    scanned.look("--record").ok()
    assert scanned.baseline.read_text() == text
    scanned.look("run.py", *REASON).ok()
    assert sorted(scanned.sites().values()) == ["known", "reviewed", "reviewed"]
    scanned.pin({**BASE, "run.py": 'device = "cuda"\nother = "cuda"\n'})
    scanned.look().ends(1)


def test_a_rule_file_whose_files_are_gone_is_an_error(scanned: Scanned) -> None:
    """But for a recipe's rules, which are looked for everywhere: of these its own run says so."""
    scanned.rule(files=["gone/**"])
    assert "residual-files" in scanned.codes()
    scanned.look("--record")
    scanned.look().ends(1).shows("device: no file is there that gone/** names")
    scanned.rule(files=["gone/**"], optional="only where there is a GPU")
    scanned.look().ok()
    assert scanned.codes() == []
