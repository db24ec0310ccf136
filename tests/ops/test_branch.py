"""`refresh --from-branch`: a series follows the own commits of a fork's branch."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Content, Upstream, git_in
from tests.support.stacked import lines

pytestmark = pytest.mark.slow

_PIN: dict[str, Content] = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}
_FOLLOW = ("refresh", "--from-branch")
_SERIES = {"series": "patches/demo/series", "branch": "npu"}


class Forked:
    """An upstream with a pin and a later commit, and a fork of it with a branch on the pin."""

    def __init__(self, project: Project, upstream: Upstream, folder: Path) -> None:
        self.project, self.upstream = project, upstream
        self.pin = upstream.commit(_PIN, "The pin")
        self.later = upstream.commit({"a.txt": lines({30: "upstream thirty\n"})}, "Move on")
        self.fork = Upstream(shutil.copytree(upstream.path, folder / "fork"), 100)
        self.fork.branch("npu", self.pin)
        self.follow(self.pin)

    def follow(self, pin: str, **more: str) -> None:
        """Pin demo, whose series follows the branch."""
        entry = {**_SERIES, "of": self.fork.url, **more}
        self.project.component("demo", self.upstream, pin, [entry], track="main")
        if not (self.project.root / "patches").exists():
            self.project.write({"patches/demo/series": ""})

    def own(self, number: int, text: str, message: str, **more: str) -> str:
        """A commit of the branch that changes a line of c.txt."""
        data = self.fork.files("npu")["c.txt"].decode().split("\n")
        data[number - 1] = text
        author = more.get("author", "Zoë <zoe@example.org>")
        return self.fork.commit({"c.txt": "\n".join(data)}, message, branch="npu", author=author)

    @property
    def tree(self) -> str:
        """That of the stack, as the lock has it."""
        lock = json.loads(self.project.read("manifests/demo.lock.json"))
        assert lock["names"]["demo"]["heads/npu"] == self.fork.at("refs/heads/npu")
        return str(lock["components"]["demo"]["tree"])

    @property
    def names(self) -> list[str]:
        """The names that the series lists."""
        return self.project.read("patches/demo/series").split()


@pytest.fixture
def forked(project: Project, upstream: Upstream, tmp_path: Path) -> Forked:
    return Forked(project, upstream, tmp_path)


def test_new_commits_are_appended_and_rewritten_ones_keep_their_files(forked: Forked) -> None:
    first = forked.own(3, "three", "Spell three")
    forked.own(20, "twenty", "Spell twenty")
    assert "npu has 2 patches" in forked.project.run(*_FOLLOW).ok().out
    assert forked.names == ["spell-three.patch", "spell-twenty.patch"]
    assert forked.tree == forked.fork.tree("npu")
    forked.project.run("edit", "spell-twenty.patch", "--name", "numbers").ok()
    forked.project.run("apply").ok()
    before = forked.project.files()
    # on the branch: another message, a line more, and a commit in front
    forked.fork.branch("npu", first)
    forked.own(30, "thirty", "Spell thirty")
    forked.own(20, "twenty!", "Spell twenty, loudly")
    assert "! content    patches/demo/numbers.patch" in forked.project.run(*_FOLLOW).ok().out
    assert forked.names == ["spell-three.patch", "spell-thirty.patch", "numbers.patch"]
    assert forked.tree == forked.fork.tree("npu")
    after = forked.project.files()
    same = "patches/demo/spell-three.patch"
    assert after[same] == before[same]
    assert b"loudly" in after["patches/demo/numbers.patch"]
    assert forked.project.git("rev-parse", "HEAD^{tree}").decode().strip() == forked.tree
    forked.project.run("check").ok()
    forked.project.run("undo").ok()
    assert forked.project.files() == before


def test_what_is_gone_from_the_branch_stays_until_it_is_dropped(forked: Forked) -> None:
    first = forked.own(3, "three", "Spell three")
    forked.own(20, "twenty", "Spell twenty")
    forked.project.run(*_FOLLOW).ok()
    forked.fork.branch("npu", first)
    ran = forked.project.run(*_FOLLOW)
    ran.says("spell-twenty.patch is not on npu, and stays", "patchkit drop spell-twenty.patch")
    assert forked.names == ["spell-three.patch", "spell-twenty.patch"]
    forked.own(20, "zwanzig", "Spell it in German")
    forked.own(21, "one", "Spell one")
    ran = forked.project.run(*_FOLLOW)
    assert forked.names == ["spell-three.patch", "spell-twenty.patch", "spell-one.patch"]


def test_a_patch_in_the_way_is_named_and_nothing_is_written(forked: Forked) -> None:
    first = forked.own(3, "three", "Spell three")
    forked.own(20, "twenty", "Spell twenty")
    forked.own(25, "more", "Spell more")
    forked.project.run(*_FOLLOW).ok()
    forked.fork.branch("npu", first)
    forked.fork.commit({"c.txt": "another\nfile\n"}, "Write it anew", branch="npu")
    with forked.project.untouched():
        forked.project.run(*_FOLLOW).ends(
            1, "npu is in the way of", "patchkit refresh --from-branch --skip-conflicts"
        )
    before = forked.project.files()
    forked.project.run(*_FOLLOW, "--skip-conflicts").ok()
    assert forked.tree == forked.fork.tree("npu")
    assert forked.names == ["spell-three.patch", "write-it-anew.patch"]
    forked.project.run("undo").ok()
    assert forked.project.files() == before


def _merged(forked: Forked, message: str, **files: str) -> str:
    """A merge of upstream's later commit into the branch, with changes of its own."""
    ours, theirs = forked.fork.files("npu"), forked.fork.files(forked.later)
    made = {n: d.decode() for n, d in (ours | {"a.txt": theirs["a.txt"]}).items()}
    parents = (forked.fork.at("refs/heads/npu"), forked.later)
    whole = {**made, **{f"{name}.txt": text for name, text in files.items()}}
    return forked.fork.commit(whole, message, branch="npu", parents=parents)


def test_commits_before_a_merge_of_upstream_go_onto_what_it_merged(forked: Forked) -> None:
    forked.own(3, "three", "Spell three")
    _merged(forked, "Merge main into npu")
    forked.own(20, "twenty", "Spell twenty")
    ran = forked.project.run(*_FOLLOW).ends(4, "manifests/demo.yaml:")
    (hint,) = re.findall(r"hint: patchkit (.*?)  then", ran.err)
    forked.project.run(*hint.split()).ok()
    forked.project.run(*_FOLLOW).ok()
    assert forked.names == ["spell-three.patch", "spell-twenty.patch"]
    assert forked.tree == forked.fork.tree("npu")


def test_what_a_merge_changes_itself_is_a_patch_of_its_own(forked: Forked) -> None:
    """git's remerge-diff is not empty: the conflict, and a file more."""
    ours = {"a.txt": lines({30: "our thirty\n"}), "c.txt": lines({3: "three\n"})}
    forked.fork.commit(ours, "Change both", branch="npu")
    forked.own(40, "forty", "Spell forty")
    merge = _merged(forked, "Merge main into npu", a=lines({30: "both thirty\n"}), d="new\n")
    assert git_in(forked.fork.path, "show", "--remerge-diff", "--format=", merge)
    forked.own(20, "twenty", "Spell twenty")
    forked.follow(forked.later)
    forked.project.run(*_FOLLOW).says("is no patch: what it does is in the patch of a merge")
    assert forked.names == [
        "spell-forty.patch",
        "merge-main-into-npu.patch",
        "spell-twenty.patch",
    ]
    assert forked.tree == forked.fork.tree("npu")


def test_a_topic_is_one_line_and_what_upstream_has_is_no_patch(forked: Forked) -> None:
    base = forked.own(3, "three", "Spell three")
    topic = forked.own(20, "twenty", "Spell twenty")
    forked.fork.branch("npu", base)
    forked.fork.commit({"a.txt": lines({30: "upstream thirty\n"})}, "Move on", branch="npu")
    parents = (forked.fork.at("refs/heads/npu"), topic)
    data = forked.fork.files(topic)["c.txt"]
    forked.fork.commit({"c.txt": data}, "Merge topic", branch="npu", parents=parents)
    _merged(forked, "Merge main into npu")
    forked.follow(forked.later)
    forked.project.run(*_FOLLOW).says("is no patch: upstream has it")
    assert forked.names == ["spell-three.patch", "spell-twenty.patch"]
    assert forked.tree == forked.fork.tree("npu")


def test_pairs_are_those_of_range_diff(forked: Forked) -> None:
    """Whatever was rewritten, moved, dropped and added on the branch."""
    for number in range(5, 45, 5):
        forked.own(number, f"number {number}", f"Spell {number}\n\nFor {number} reasons.")
    old = forked.fork.at("refs/heads/npu")
    forked.project.run(*_FOLLOW).ok()
    names = forked.names
    forked.fork.branch("npu", forked.pin)
    for number in (10, 5, 20, 25, 38, 40, 35):
        text = f"number {number}" + (" again" if number % 4 else "")
        forked.own(number, text, f"Spell {number}\n\nFor {number} reasons.")
    spans = (f"{forked.pin}..{old}", f"{forked.pin}..npu")
    told = git_in(forked.fork.path, "range-diff", "-s", "--no-color", *spans).decode()
    pairs = re.findall(r"^ *(\d+): +\w+ [=!] +(\d+):", told, re.M)
    rewritten = {names[int(o) - 1] for o, _ in re.findall(r"^ *(\d+): +\w+ (!) ", told, re.M)}
    forked.project.run("drop", "spell-15.patch", "spell-30.patch").ok()
    ran = forked.project.run(*_FOLLOW, "--json")
    found = {name: place for place, name in enumerate(forked.names, 1) if name in names}
    assert {names[int(old) - 1]: int(new) for old, new in pairs}.items() <= found.items()
    # its lines have other neighbours: for git no pair, but its subject is the same
    assert found.keys() - {names[int(old) - 1] for old, _ in pairs} == {"spell-40.patch"}
    (done,) = ran.json["components"]
    changed = {each["name"] for each in done["patches"] if each["revision"] == "content"}
    assert changed == rewritten != set()


@pytest.mark.parametrize(
    ("branch", "says"),
    [
        ("npux", "has no branch or tag npux"),
        ("other", "other has no common ancestor with the pin"),
    ],
)
def test_a_branch_that_cannot_be_followed(forked: Forked, branch: str, says: str) -> None:
    forked.own(3, "three", "Spell three")
    forked.fork.commit({"x": "x\n"}, "Another world", branch="other", parents=())
    forked.follow(forked.pin, branch=branch)
    with forked.project.untouched():
        forked.project.run(*_FOLLOW).ends(4, "manifests/demo.yaml:", says)


def test_a_shallow_mirror_of_the_fork(forked: Forked, tmp_path: Path) -> None:
    forked.own(3, "three", "Spell three")
    forked.own(20, "twenty", "Spell twenty")
    clone = ("git", "clone", "-q", "--bare", "--depth=1", "--branch=npu", forked.fork.url)
    subprocess.run([*clone, str(tmp_path / "shallow")], check=True)
    forked.follow(forked.pin, of=f"file://{tmp_path}/shallow")
    forked.project.run(*_FOLLOW).ends(5, "shallow")


def test_only_a_series_that_follows_a_branch_is_read_from_one(
    project: Project, upstream: Upstream
) -> None:
    project.component("demo", upstream, _PIN, {})
    project.run(*_FOLLOW).ends(2, "`branch: NAME`")


def test_nothing_else_asks_the_fork(forked: Forked) -> None:
    forked.own(3, "three", "Spell three")
    forked.project.run(*_FOLLOW).ok()
    forked.fork.vanish()
    forked.project.run("check").ok()
    forked.project.run(*_FOLLOW, "--offline").ok()


def test_a_bump_of_a_pin_that_stands_elsewhere_keeps_the_branch_s_commit(forked: Forked) -> None:
    forked.upstream.tag("v1", forked.pin)
    forked.upstream.tag("v2", forked.later)
    forked.project.write({"VERSION": "v1\n"})
    entry, source = {**_SERIES, "of": forked.fork.url}, {"git": forked.upstream.url}
    placed: dict[str, Content] = {"file": "VERSION"}
    forked.project.component("demo", forked.upstream, placed, [entry], source=source, track="main")
    forked.own(3, "three", "Spell three")
    forked.project.run("fetch").ok()
    forked.project.run(*_FOLLOW).ok()
    forked.project.run("bump", "demo", "--to", "v2").ok()
    names = json.loads(forked.project.read("manifests/demo.lock.json"))["names"]["demo"]
    branch = forked.fork.at("refs/heads/npu")
    assert names == {"heads/npu": branch, "v1": forked.pin, "v2": forked.later}
