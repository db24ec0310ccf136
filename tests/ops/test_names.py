"""One name, one commit: every spelling means the same to init, bump, drift, plan and ci."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from patchkit.errors import UsageError
from patchkit.manifest.values import GitSource
from patchkit.upstream.git import Refs, find_ref, list_refs
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import STATES, small_patches

pytestmark = pytest.mark.slow


class Named(Struct):
    """A project whose upstream has a branch v1 and a tag v1, and what every spelling names."""

    project: Project
    upstream: Upstream
    commits: Mapping[str, str]

    def asked(self, command: str, spelling: str) -> Ran:
        """The command with the spelling; it changes nothing but the cache."""
        if command == "init":
            manifest = f"n{len(list((self.project.root / 'manifests').iterdir()))}"
            url = self.upstream.url
            return self.project.run(
                "init", manifest, "--git", url, "--ref", spelling, "--component", "x", "--json"
            )
        chosen = ["-c", "demo"] if command == "drift" else ["demo"]
        options = ["--dry-run"] if command == "bump" else []
        return self.project.run(command, *chosen, "--to", spelling, "--json", *options)

    def answer(self, command: str, spelling: str) -> str:
        """The short name of the commit that the command took the spelling for."""
        ran = self.asked(command, spelling)
        assert ran.code in (0, 1), ran.err
        names = {commit: name for name, commit in self.commits.items()}
        return names[_COMMIT_OF[command](ran, self.project)]


def _of_init(ran: Ran, project: Project) -> str:
    manifest = yaml.safe_load((project.root / ran.json["manifest"]).read_text())
    return str(manifest["components"]["x"]["pin"])


def _of_tip(ran: Ran, project: Project) -> str:
    return str(ran.component["tip"]["commit"])


def _of_bump(ran: Ran, project: Project) -> str:
    return str(ran.component["new"]["pin"])


_COMMIT_OF: Mapping[str, Callable[[Ran, Project], str]] = {
    "init": _of_init,
    "bump": _of_bump,
    "drift": _of_tip,
    "plan": _of_tip,
}

#: Spelling -> the commit that it names.
MEANINGS = {
    "refs/heads/v1": "branch",
    "heads/v1": "branch",
    "refs/tags/v1": "tag",
    "tags/v1": "tag",
    "only": "only",
    "heads/only": "only",
    "refs/heads/only": "only",
    "v0.2": "v0.2",
    "tags/v0.2": "v0.2",
    "refs/tags/v0.2": "v0.2",
    "v0.*": "v0.10",
    "tags/v0.*": "v0.10",
    "refs/tags/v0.*": "v0.10",
    "refs/heads/on*": "only",
    "refs/pull/7/head": "pull",
}


@pytest.fixture
def named(project: Project, upstream: Upstream) -> Named:
    """main: pin - v0.2 - v0.10 - the tag v1; branches v1, only and a pull request beside it."""
    pin = upstream.commit(STATES[0])
    commits = {"pin": pin}
    for tag in ("v0.2", "v0.10", "tag"):
        commits[tag] = upstream.commit({"d.txt": tag}, tag)
    for tag in ("v0.2", "v0.10"):
        upstream.git("tag", "-a", "-m", tag, tag, commits[tag])
    upstream.git("tag", "-a", "-m", "v1", "v1", commits["tag"])
    for branch, name in (("v1", "branch"), ("only", "only"), ("pull", "pull")):
        commits[name] = upstream.commit({"d.txt": name}, name, branch=branch, parents=(pin,))
    upstream.git("update-ref", "refs/pull/7/head", commits["pull"])
    upstream.git("update-ref", "-d", "refs/heads/pull")
    project.component("demo", upstream, pin, small_patches())
    return Named(project, upstream, commits)


@pytest.mark.parametrize("command", list(_COMMIT_OF))
def test_a_spelling_means_one_commit_to_every_command(named: Named, command: str) -> None:
    found = {spelling: named.answer(command, spelling) for spelling in MEANINGS}
    assert found == MEANINGS
    for name in ("branch", "tag", "v0.10"):
        assert named.answer(command, named.commits[name]) == name
        assert named.answer(command, named.commits[name][:10]) == name


@pytest.mark.parametrize("command", list(_COMMIT_OF))
def test_a_branch_and_a_tag_of_one_name_are_not_guessed(named: Named, command: str) -> None:
    ran = named.asked(command, "v1")
    branch, tag = named.commits["branch"], named.commits["tag"]
    ran.ends(2)
    said = ran.err + ran.out
    assert "v1 is both a branch and a tag of " in said
    assert f"refs/heads/v1 ({branch[:10]}) and refs/tags/v1 ({tag[:10]})" in said
    assert "say refs/heads/v1 or refs/tags/v1" in said


def test_what_the_manifest_tracks_is_read_alike(named: Named) -> None:
    pin = named.commits["pin"]

    def track(name: str) -> None:
        named.project.component("demo", named.upstream, pin, small_patches(), track=name)

    for spelling in ("refs/tags/v1", "tags/v1", "heads/v1", "only", "v0.*"):
        track(spelling)
        for command in ("bump", "drift", "plan"):
            assert named.answer(command, "latest") == MEANINGS[spelling]
        ran = named.project.run("ci", "--json")
        assert (
            ran.json["drift"]["components"][0]["tip"]["commit"] == named.commits[MEANINGS[spelling]]
        )
    track("v1")
    for argv in (["bump", "demo", "--to", "latest"], ["drift"], ["plan", "demo"], ["ci"]):
        ran = named.project.run(*argv).ends(4)
        said = ran.out + ran.err
        assert "manifests/demo.yaml:3: v1 is both a branch and a tag" in said, said
        assert "say refs/heads/v1 or refs/tags/v1" in said


def test_offline_a_name_means_what_it_did_when_last_asked(named: Named) -> None:
    for spelling in ("heads/v1", "refs/tags/v1", "v0.*"):
        named.answer("drift", spelling)
    named.upstream.path.rename(named.upstream.path.with_name("elsewhere"))
    run = named.project.run
    for spelling in ("heads/v1", "refs/tags/v1", "v0.*"):
        for argv in (["drift", "-c", "demo"], ["plan", "demo"]):
            ran = run(*argv, "--to", spelling, "--offline", "--json")
            assert _of_tip(ran, named.project) == named.commits[MEANINGS[spelling]]
    ran = run("drift", "-c", "demo", "--to", "v1", "--offline")
    assert (ran.code, "what v1 is upstream now is not in the cache" in ran.out + ran.err) == (
        5,
        True,
    )


def test_init_writes_down_what_stays_plain(named: Named) -> None:
    """A branch that a tag could be taken for is tracked by its full name."""

    def tracked(spelling: str) -> object:
        ran = named.asked("init", spelling).ok()
        manifest = yaml.safe_load((named.project.root / ran.json["manifest"]).read_text())
        return manifest["components"]["x"].get("track")

    assert tracked("heads/v1") == "refs/heads/v1"
    assert tracked("only") == "only"
    assert tracked("tags/v1") == "v[0-9]*"
    assert tracked("v0.*") == "v0.*"
    named.asked("init", "latest").ends(2, "stands for `track`")


# -- the meaning alone --------------------------------------------------------------------------

ONE, TWO = "1" * 40, "2020010" + "2" * 33


def test_a_tag_that_looks_like_a_commit_is_not_guessed() -> None:
    refs = Refs("u", {"refs/tags/2020010": ONE, "refs/heads/main": TWO})
    with pytest.raises(UsageError) as caught:
        find_ref(refs, "2020010")
    assert f"refs/tags/2020010 (1111111111) and commit {TWO}" in str(caught.value)
    assert find_ref(refs, "2020010222").commit == TWO
    assert find_ref(refs, "2020011", lambda short: ONE).commit == ONE


def test_names_within_names() -> None:
    refs = Refs("u", {"refs/heads/v1": ONE, "refs/heads/heads/v1": TWO, "refs/heads/tags/x": TWO})
    with pytest.raises(UsageError) as caught:
        find_ref(refs, "heads/v1")
    assert "is more than one thing of u: refs/heads/v1" in str(caught.value)
    assert find_ref(refs, "tags/x").ref == "refs/heads/tags/x"
    assert find_ref(refs, "v1").commit == ONE


def test_a_branch_and_a_tag_at_one_commit_are_one_answer() -> None:
    refs = Refs("u", {"refs/heads/v1": ONE, "refs/tags/v1": ONE})
    assert find_ref(refs, "v1").commit == ONE


def test_lines_of_a_listing_end_at_line_feeds_only(tmp_path: Path) -> None:
    """A branch's name may have what Unicode takes for a line's end."""
    upstream = Upstream.create(tmp_path / "u.git")
    commit = upstream.commit({"a": "1"})
    upstream.branch("a\u2028b", commit)
    assert find_ref(list_refs(GitSource(upstream.url)), "a\u2028b").commit == commit
