"""`patchkit init`: the first manifest of a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import ArchivePin, Component, GitPin, IndexPin, LocalSeries
from patchkit.model.objects import CommitId
from patchkit.ops.manifest import component_name_of
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HASH = "a1" * 32
URL = "https://example.com/Some-Project.git"


def only_component(project: Project, name: str) -> Component:
    (component,) = load_manifest(project.root / "manifests" / f"{name}.yaml").components
    return component


def test_a_git_upstream_by_flags(project: Project, golden: Golden) -> None:
    golden("init-git", project.run("init", "demo", "--git", URL, "--ref", COMMIT))
    component = only_component(project, "demo")
    assert component.name == "some-project"
    assert component.pin == GitPin(CommitId(COMMIT))
    assert [entry.path for entry in component.patches] == ["patches/some-project/series"]
    assert isinstance(component.patches[0], LocalSeries)
    assert sorted(project.files()) == ["patches/some-project/series"]
    assert project.run("check", "--only", "manifest").ok().err == ""
    first = project.read("manifests/demo.yaml").partition("\n")[0]
    assert first == "# yaml-language-server: $schema=manifest.schema.json"
    assert (project.root / "manifests/manifest.schema.json").is_file()


def test_the_manifest_is_explained(project: Project) -> None:
    project.run("init", "demo", "--git", URL, "--ref", COMMIT).ok()
    text = project.read("manifests/demo.yaml")
    assert text.count("#") >= 10
    uncommented = text.replace("# extends: [profiles/NAME.yaml]\n", "")
    lines = [
        line.replace("# ", "", 1) if _is_example(line) else line
        for line in uncommented.splitlines()
    ]
    project.write({"manifests/demo.yaml": "\n".join(lines) + "\n"})
    manifest = load_manifest(project.root / "manifests/demo.yaml")
    assert manifest.environment.versions["torch"] == "==2.8.0"
    assert manifest.components[0].install[0].run == "pip install -e ."


def _is_example(line: str) -> bool:
    """A commented line that is YAML, not prose: it must be right, too."""
    words = ("environment:", "versions:", "variables:", "unsupported:", "install:", "- run:")
    return line.lstrip().startswith("#") and line.lstrip("# ").startswith(words)


def test_index_and_archive(project: Project) -> None:
    flags = ("--sha256", HASH)
    project.run("init", "one", "--archive", "demo==1.10", *flags).ok()
    assert only_component(project, "one").pin == IndexPin("1.10", HASH)
    project.run("init", "two", "--archive", "https://example.com/Notes-2.tar.gz", *flags).ok()
    component = only_component(project, "two")
    assert (component.name, component.pin) == ("notes-2", ArchivePin(HASH))


@pytest.mark.slow
def test_the_hash_is_what_the_index_says(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "index" / "demo" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="demo-1.10.tar.gz#sha256={HASH}">demo-1.10.tar.gz</a>')
    monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/index")
    project.run("init", "--archive", "demo==1.10").ok()
    assert only_component(project, "demo").pin == IndexPin("1.10", HASH)
    project.run("init", "other", "--archive", "demo==2.0").ends(5)


def test_a_branch_is_resolved_and_tracked(project: Project, upstream: Upstream) -> None:
    upstream.commit({"a": "1"})
    dev = upstream.commit({"a": "2"}, branch="dev")
    project.run("init", "--git", upstream.url, "--ref", "dev").ok()
    component = only_component(project, "upstream")
    assert (component.pin, component.track) == (GitPin(dev), "dev")


def test_a_ref_or_an_upstream_that_is_not_there(project: Project, upstream: Upstream) -> None:
    upstream.commit({"a": "1"})
    project.run("init", "--git", upstream.url, "--ref", "nope").ends(2, "has no branch or tag nope")
    project.run("init", "--git", f"{upstream.url}/none", "--ref", "main").ends(5)
    assert list(project.root.iterdir()) == []


@pytest.mark.parametrize("ending", [".yaml", ".yml"])
def test_a_manifest_that_is_there_is_never_overwritten(project: Project, ending: str) -> None:
    project.write({f"manifests/demo{ending}": "mine\n"})
    with project.untouched():
        project.run("init", "demo", "--git", URL, "--ref", COMMIT).ends(
            2, f"manifests/demo{ending} is there already"
        )


def test_a_series_that_is_there_stays(project: Project) -> None:
    project.write({"patches/demo/series": "one.patch\n"})
    project.run("init", "--git", URL, "--ref", COMMIT, "--component", "demo").ok()
    assert project.files() == {"patches/demo/series": b"one.patch\n"}


def test_a_project_with_a_schema_keeps_it(project: Project) -> None:
    project.write({"docs/manifest.schema.json": "{}"})
    project.run("init", "demo", "--git", URL, "--ref", COMMIT).ok()
    first = project.read("manifests/demo.yaml").partition("\n")[0]
    assert first.endswith("$schema=../docs/manifest.schema.json")
    assert [*project.files("manifests")] == ["manifests/demo.yaml"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "no upstream is given"),
        (("--git", URL), "--git needs --ref"),
        (("--git", "ext::sh", "--ref", COMMIT), "--git ext::sh names a remote helper"),
        (("--git", URL, "--archive", "a==1"), "give one of --git and --archive"),
        (("--archive", "demo==", "--sha256", HASH), "the version in --archive"),
        (
            ("--archive", "demo==1.*", "--sha256", HASH),
            "the version in --archive 1.* is no version",
        ),
        (("--archive", "https://example.com/a.zip"), "--archive needs --sha256"),
        (("--archive", "demo==1", "--sha256", "abc"), "--sha256 abc is no SHA-256"),
        (("--archive", "demo==1", "--sha256", HASH, "--ref", COMMIT), "--ref goes with --git"),
        (("--git", URL, "--ref", COMMIT, "--sha256", HASH), "goes with --archive"),
        (("--git", URL, "--ref", COMMIT, "--component", "A b"), "cannot name a component"),
        (("../x", "--git", URL, "--ref", COMMIT), "../x cannot name a manifest"),
        (("--git", URL, "--ref", "-x"), "--ref -x cannot name a branch or tag"),
    ],
)
def test_options_that_do_not_go_together(
    project: Project, flags: tuple[str, ...], message: str
) -> None:
    project.run("init", *flags).ends(2, message)
    assert list(project.root.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("https://example.com/org/Megatron-LM.git", "megatron-lm"),
        ("git@example.com:org/sgl_kernel.git/", "sgl_kernel"),
        ("git@example.com:tool.git", "tool"),
        ("https://example.com/a%20b", "a-20b"),
        ("https://example.com/x-1.0.tar.gz", "x-1.0"),
        ("https://example.com/..", ""),
        ("https://example.com/con", ""),
        ("ü", ""),
    ],
)
def test_component_names_come_from_upstreams(text: str, name: str) -> None:
    assert component_name_of(text) == name


# -- a further component ----------------------------------------------------------------------


@pytest.fixture
def tagged(upstream: Upstream) -> CommitId:
    """A commit with tags, as releases have them."""
    old = upstream.commit({"a": "1"})
    upstream.tag("core_v0.9.0", old)
    new = upstream.commit({"a": "2"})
    upstream.tag("core_v0.10.0", new)
    upstream.tag("other-3", new)
    return new


MINE = """# ours
version: 1
components:
    one:   # the first
        source: {git: "https://example.com/one.git"}
        pin: "0123456789abcdef0123456789abcdef01234567"
        # install: ...
# end
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_component_is_added_behind_the_others(
    project: Project, upstream: Upstream, tagged: CommitId, newline: str
) -> None:
    before = MINE.replace("\n", newline).encode()
    project.write({"manifests/demo.yaml": before})
    ran = project.run("add", "two", "--git", upstream.url, "--ref", "core_v0.10.0").ok()
    ran.shows("manifests/demo.yaml", "patches/two/series")
    after = (project.root / "manifests/demo.yaml").read_bytes()
    head, end = before.split(b"# end")
    assert after.startswith(head) and after.endswith(b"# end" + end)
    assert after.count(b"\n") == after.count(newline.encode())
    assert f"pin: {tagged}  # core_v0.10.0{newline}".encode() in after
    component = load_manifest(project.root / "manifests/demo.yaml").components[1]
    assert (component.name, component.pin) == ("two", GitPin(tagged))
    assert component.track == "core_v[0-9]*"
    project.run("fetch", "-c", "two").ok()
    assert project.run("bump", "two", "--to", "latest").ok().shows("unchanged")
    with project.untouched():
        project.run("add", "Two", "--git", upstream.url, "--ref", tagged).ends(2)
        ran = project.run("add", "two", "--git", upstream.url, "--ref", tagged)
        ran.ends(2, "two is there already")
        project.run("add", "three").ends(2, "add: no upstream is given", "patchkit add three --git")


def test_a_component_is_added_where_all_others_are_inherited(
    project: Project, upstream: Upstream, tagged: CommitId
) -> None:
    project.write({"shared/base.yaml": MINE})
    project.write({"manifests/demo.yaml": "version: 1\nextends: [../shared/base.yaml]"})
    with project.untouched():
        project.run("add", "one", "--git", upstream.url, "--ref", "main").ends(2)
    project.run("add", "two", "--git", upstream.url, "--ref", "main").ok()
    manifest = load_manifest(project.root / "manifests/demo.yaml")
    assert [(each.name, each.track) for each in manifest.components] == [
        ("one", None),
        ("two", "main"),
    ]
    one = f'{{source: {{git: "./a"}}, pin: "{COMMIT}"}}'
    braces = f"version: 1\ncomponents: {{one: {one}}}\n"
    project.write({"manifests/demo.yaml": braces})
    with project.untouched():
        ran = project.run("add", "two", "--git", upstream.url, "--ref", "main")
        ran.ends(4, "components is written in braces")
