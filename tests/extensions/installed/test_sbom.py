"""The bill of materials: valid CycloneDX, true to the lock, the same bytes every time."""

from __future__ import annotations

import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

_COMMIT = "ab" * 20


def _valid(text: str) -> dict[str, Any]:
    """The document, if CycloneDX's own schema takes it and every reference leads somewhere."""
    reason = "cyclonedx-python-lib is in the extra `dev`"
    reader = pytest.importorskip("cyclonedx.validation.json", reason=reason)
    schema = pytest.importorskip("cyclonedx.schema", reason=reason)
    assert reader.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(text) is None
    document: dict[str, Any] = json.loads(text)
    refs = {each["bom-ref"] for each in document["components"]}
    assert {ref for each in document["dependencies"] for ref in each["dependsOn"]} == refs
    return document


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Project:
    """A component with a patch that mends a hole, one picked from upstream, and one without any."""
    pin = upstream.commit({"a.py": "one\n", "b.py": "two\n"})
    hole = make_patch(
        {"a.py": "one\n"},
        {"a.py": "safe\n"},
        subject="Check the length",
        body="CVE-2026-12345: a long name ran over; CVE-2026-12345 again.\n\n"
        "Bug: https://example.com/bugs/7?a=1 2\nUpstream-Status: Pending",
    )
    picked = make_patch(
        {"b.py": "two\n"},
        {"b.py": "three\n"},
        subject="Count on",
        body="So that it goes on.\n\n(cherry picked from commit 0123456789abcdef)",
    )
    project.component("demo", upstream, pin, {"hole.patch": hole, "picked.patch": picked})
    project.prepare("apply", "--accept").ok()
    return project


def test_what_is_patched_has_its_pedigree(stack: Project, upstream: Upstream) -> None:
    document = _valid(stack.run("export", "--format", "sbom").ok().out)
    (demo,) = document["components"]
    lock = json.loads((stack.root / "manifests/demo.lock.json").read_text())["components"]["demo"]
    assert demo["modified"] is True
    assert demo["version"] == f"{lock['base']['commit']}+patchkit.{lock['tree'][:10]}"
    (ancestor,) = demo["pedigree"]["ancestors"]
    assert ancestor["version"] == lock["base"]["commit"]
    assert str(upstream.path) in ancestor["externalReferences"][0]["url"]
    hole, picked = demo["pedigree"]["patches"]
    assert (hole["type"], picked["type"]) == ("unofficial", "backport")
    assert hole["resolves"] == [
        {"type": "security", "id": "CVE-2026-12345"},
        {"type": "defect", "references": ["https://example.com/bugs/7?a=1"]},
    ]
    assert "resolves" not in picked
    assert hole["diff"] == {"url": "patches/demo/hole.patch"}
    told = {each["name"]: each["value"] for each in demo["properties"]}
    assert told["patchkit:patch:1:hole.patch"] == f"sha256:{lock['patches'][0]['sha256']}"
    assert told["patchkit:result:tree"] == lock["tree"]


def test_the_bytes_are_the_same_every_time_and_others_for_other_patches(stack: Project) -> None:
    first = stack.run("export", "--format", "sbom").ok().out
    assert stack.run("export", "--format", "sbom", "--output", "x/demo.cdx.json").ok().out == ""
    assert (stack.root / "x/demo.cdx.json").read_text() == first
    (stack.root / "patches/demo/series").write_text("hole.patch\n")
    stack.prepare("apply", "--accept").ok()
    other = stack.run("export", "--format", "sbom").ok().json
    assert other["serialNumber"] != json.loads(first)["serialNumber"]


@pytest.mark.slow
def test_diffs_are_the_files(stack: Project) -> None:
    document = _valid(stack.run("export", "--format", "sbom", "--diff").ok().out)
    (demo,) = document["components"]
    text = demo["pedigree"]["patches"][0]["diff"]["text"]["content"]
    data = b64decode(text)
    assert data == (stack.root / "patches/demo/hole.patch").read_bytes()
    told = {each["name"]: each["value"] for each in demo["properties"]}
    assert told["patchkit:patch:1:hole.patch"] == f"sha256:{sha256(data).hexdigest()}"


def test_a_stack_that_is_not_the_locks_is_refused(stack: Project) -> None:
    bill = ("export", "--format", "sbom", "--output", "demo.cdx.json")
    lock, manifest = (stack.root / f"manifests/demo{end}" for end in (".lock.json", ".yaml"))
    commit = json.loads(lock.read_text())["components"]["demo"]["base"]["commit"]
    stack.write({"patches/demo/series": "hole.patch\n"})
    stack.run(*bill).ends(
        1, "demo: its patches are not those of the lock", "apply -m demo -c demo --accept"
    )
    manifest.write_text(manifest.read_text().replace(commit, _COMMIT))
    stack.run(*bill).ends(1, f"demo is pinned to {_COMMIT[:10]}, the lock has {commit[:10]}")
    lock.unlink()
    stack.run(*bill).ends(1, "demo is not in the lock")
    assert not (stack.root / "demo.cdx.json").exists()


@pytest.mark.slow
def test_the_shipped_stacks_have_valid_bills(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    options = ("--format", "sbom", "--offline", "--cache", str(tmp_path))
    valid = 0
    for lock in sorted((root / "manifests").glob("*.lock.json")):
        done = run("export", *options, "-m", lock.name.removesuffix(".lock.json"), cwd=root)
        if done.code == 5:  # patches of another repository are not cached
            continue
        document = _valid(done.ok().out)
        kinds = {each["purl"].split("/")[0] for each in document["components"] if "purl" in each}
        assert kinds <= {"pkg:pypi", "pkg:github", "pkg:generic"}
        valid += 1
    assert valid >= 3
