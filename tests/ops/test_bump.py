"""`patchkit bump`: the pin and the patches for it are written together, or nothing is."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchkit.disk.files import JOURNAL
from patchkit.disk.result_cache import recall_packed, remember_packed
from patchkit.stack.lockfile import load_lock
from tests.support.archives import digest, make_tar
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Content, Upstream, make_patch
from tests.support.servers import HttpServer, Reply, http_server
from tests.support.stacked import STATES, Stacked, lines, published, small_patches

MANIFEST = "manifests/demo.yaml"


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Stacked:
    """The small stack, applied, in a manifest with comments and quotes of its own."""
    stack = Stacked.of(project, upstream, small_patches())
    pin = upstream.resolve("main")
    path = project.root / MANIFEST
    text = path.read_text().replace(f"pin: {pin}", f"pin:   '{pin}'  # v1.0, of last year")
    path.write_text("# ours\n" + text.replace("    patches:", "    track: main\n    patches:"))
    stack.prepare("apply").ok()
    return stack


def bump(stack: Stacked, to: str = "latest", *argv: str) -> Ran:
    return stack.run("bump", "demo", "--to", to, *argv)


def further(upstream: Upstream, **files: Content) -> str:
    """A commit that puts a line before the others in a.txt, and the files given."""
    changes: dict[str, Content] = {"a.txt": "a new first line\n" + lines()}
    changes |= {name.replace("_", "."): content for name, content in files.items()}
    return upstream.commit(changes, "Say more")


# -- what is written -------------------------------------------------------------------------


def test_pin_patches_and_lock_move_together(stack: Stacked, upstream: Upstream) -> None:
    project = stack.project
    before, heads = project.product, stack.git("show-ref", "--heads")
    old = upstream.resolve("main")
    new = further(upstream)
    ran = (
        bump(stack)
        .ok()
        .shows(f"bumped  demo  {str(old)[:10]} -> main {new[:10]}", "shifted  one.patch")
    )
    after = project.product
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {
        MANIFEST,
        "manifests/demo.lock.json",
        "patches/demo/one.patch",
        "patches/demo/two.patch",
    }
    assert after[MANIFEST] == before[MANIFEST].replace(str(old).encode(), new.encode())
    lock = load_lock(project.root / "manifests/demo.lock.json")
    assert lock is not None
    assert lock.components["demo"].commit == new
    assert not (project.root / JOURNAL).exists()
    # the checkout is there, as after a conflict that was resolved
    assert stack.git("status", "--porcelain") == ""
    assert stack.git("rev-parse", "refs/patchkit/base") == new
    assert "patchkit apply" not in ran.err
    stack.settled()
    # what is done next is taken up at once
    (stack.checkout / "mine.txt").write_text("mine\n")
    stack.git("add", "mine.txt")
    stack.run("refresh", "--rest", "mine").ok()
    stack.run("undo").ok()
    stack.git("rm", "-qf", "mine.txt")
    stack.run("undo").ok()
    assert (project.product, stack.git("show-ref", "--heads")) == (before, heads)


def test_a_pin_that_is_there_already_takes_patches_that_are_behind(
    stack: Stacked, upstream: Upstream
) -> None:
    """Somebody wrote the pin, or a bump was killed once it stood in git's index."""
    old, new = str(upstream.resolve("main")), further(upstream)
    stack.project.write({MANIFEST: stack.project.read(MANIFEST).replace(old, new)})
    bump(stack, new).ok().shows(f"{old[:10]} -> {new[:10]}", "shifted  one.patch")
    assert stack.git("rev-parse", "refs/patchkit/base") == new
    stack.settled()


@pytest.fixture
def behind(stack: Stacked, upstream: Upstream) -> Stacked:
    """Another one bumped, and the project was pulled: the checkout is at the base before."""
    further(upstream)
    bump(stack).ok()
    pulled = stack.project.product
    stack.run("undo").ok()
    stack.project.write(pulled)
    return stack


@pytest.mark.slow
def test_edits_on_the_base_before_are_merged_onto_the_new_one(behind: Stacked) -> None:
    file = behind.checkout / "b.txt"
    file.write_text("mine\n" + file.read_text())
    (behind.checkout / "new.txt").write_text("new\n")
    behind.git("add", "new.txt")
    before = behind.everything()
    with behind.untouched():
        behind.run("apply").says("patchkit refresh")
        behind.run("refresh", "--dry-run").ends(1)
    ran = behind.run("refresh", "--rest", "mine").ok()
    assert "+mine" in behind.patch("mine.patch").decode()
    assert "+new" in behind.patch("mine.patch").decode(), ran.out
    behind.settled()
    behind.run("undo").ok()
    assert behind.git("status", "--porcelain").split("\n") == ["M b.txt", "A  new.txt"]
    assert behind.everything()[:2] == before[:2]
    assert str(before[2]) in behind.git("show-ref")
    assert file.read_text().startswith("mine\n")


@pytest.mark.slow
def test_edits_that_conflict_with_the_new_patches_wait_and_go_back(behind: Stacked) -> None:
    (file,) = behind.checkout.glob("b.txt")
    mine = file.read_text().replace("ten\n", "mine\n")
    file.write_text(mine)
    before = behind.git("show-ref")
    behind.project.write({"patches/demo/three.patch": _other_three(behind)})
    behind.run("refresh").ends(1, "b.txt: has other changes at the same lines: ")
    assert "<<<<<<< the patches" in file.read_text()
    behind.run("status").says(f"git -C {behind.checkout} add --update")
    behind.run("apply").ends(1)
    behind.run("undo").ok()
    assert (file.read_text(), behind.git("show-ref")) == (mine, before)
    behind.run("refresh").ends(1)
    file.write_text(mine)
    behind.git("add", "--update")
    behind.run("refresh", "--patch", "three.patch").ok()
    assert "+mine" in behind.patch("three.patch").decode()
    behind.settled()


def _other_three(stack: Stacked) -> bytes:
    return stack.patch("three.patch").replace(b"+ten\n", b"+other ten\n")


def test_an_untracked_file_in_the_way_is_named_before_anything_is_written(
    stack: Stacked, upstream: Upstream
) -> None:
    further(upstream, mine_txt="upstream's\n")
    (stack.checkout / "mine.txt").write_text("mine\n")
    with stack.untouched():
        bump(stack).ends(5, "untracked and in the way: mine.txt")
    (stack.checkout / "mine.txt").unlink()
    bump(stack).ok()
    stack.settled()


def test_a_dry_run_tells_the_same_and_writes_nothing(stack: Stacked, upstream: Upstream) -> None:
    """But for what goes with a pin that moved; and a second bump has nothing to do."""
    stack.project.write({"rendered/demo/env.sh": ""})
    further(upstream)
    with stack.untouched():
        forecast = bump(stack, "latest", "--dry-run").ok()
    assert "rendered" not in forecast.err
    done = (
        bump(stack)
        .ok()
        .says(
            "stays as it is: # v1.0, of last year",
            "warning: rendered/demo: was rendered for the old pin",
            "patchkit export --format machine -m demo",
        )
    )
    assert forecast.out.replace("would bump", "bumped") == done.out
    with stack.untouched():
        bump(stack).ok().shows("is at main")


def test_it_is_what_an_edit_by_hand_and_refresh_come_to(stack: Stacked, upstream: Upstream) -> None:
    start = stack.project.product
    old, new = upstream.at("main"), further(upstream)
    stack.project.write({MANIFEST: start[MANIFEST].replace(old.encode(), new.encode())})
    stack.run("refresh").ok()
    by_hand = stack.project.product
    stack.project.write(start)
    bump(stack).ok()
    assert stack.project.product == by_hand


def test_no_checkout_is_needed(project: Project, upstream: Upstream) -> None:
    path = project.component("demo", upstream, STATES[0], small_patches())
    new = further(upstream)
    project.run("bump", "demo", "--to", "main").ok()
    assert f"pin: {new}\n" in path.read_text()
    assert not project.checkout("demo").exists()
    project.run("check").ok()


# -- where to ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_that_a_git_upstream_has(stack: Stacked, upstream: Upstream) -> None:
    commits = {}
    for tag in ("v1.9", "v1.10rc1", "v1.10", "nightly-2"):
        commits[tag] = upstream.commit({"d.txt": tag}, tag)
        upstream.git("tag", "-a", "-m", tag, tag, commits[tag])
    upstream.commit({"d.txt": "on"})
    for wanted, tag in (("v1.*", "v1.10"), ("v1.9", "v1.9"), ("refs/tags/nightly-2", "nightly-2")):
        ran = bump(stack, wanted, "--json", "--dry-run").ok()
        assert ran.component["new"] == {
            "pin": commits[tag],
            "name": tag,
            "lasting": True,
        }
    assert (
        bump(stack, commits["v1.10rc1"], "--json").ok().component["new"]["pin"]
        == commits["v1.10rc1"]
    )


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("v1.1", "has no branch or tag v1.1\nhint: it has v1.10, v1.1rc"),
        ("v1.4x", "has no branch or tag v1.4x\nhint: it has v1.9.4, v1.4.2, v1.4.1, v1.10"),
        ("w*", "has no branch or tag w*"),
        ("deadbeef", "hint: a commit id must be given in full"),
        ("both", "both is both a branch and a tag"),
        ("--upload-pack=x", "has no branch or tag --upload-pack=x"),
    ],
)
def test_a_name_that_is_not_there(
    stack: Stacked, upstream: Upstream, wanted: str, said: str
) -> None:
    pin = upstream.at("main")
    for tag in ("v1.10", "v1.1rc", "v1.4.1", "v1.4.2", "v1.9.4", "both"):
        upstream.tag(tag, pin)
    upstream.branch("both", upstream.commit({"d.txt": "d\n"}))
    with stack.untouched():
        stack.run("bump", "demo", f"--to={wanted}").ends(2, said)


def test_latest_needs_a_track(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    project.run("bump", "demo", "--to", "latest").ends(4, "demo.yaml:3: demo tracks no branch")


def test_offline_only_a_commit_that_is_cached_will_do(stack: Stacked, upstream: Upstream) -> None:
    new = further(upstream)
    bump(stack, "main", "--offline").ends(
        5,
        "what main is upstream now",
        "hint: run it without --offline; or name a commit that was fetched before",
    )
    bump(stack, new, "--offline").ends(5)
    bump(stack, new, "--dry-run").ok()
    upstream.vanish()
    bump(stack, new, "--offline").ok()
    assert new in stack.project.read(MANIFEST)


def test_a_dry_run_says_a_conflict_again_as_long_as_nothing_changed(
    stack: Stacked, upstream: Upstream
) -> None:
    changed = {5: "another five\n"}
    new = upstream.commit({"a.txt": lines(changed)}, "Change it, too")
    first = bump(stack, new, "--dry-run").ends(3).shows("✗ conflicted  one.patch").out
    (kept,) = stack.project.root.parent.rglob("trials/*")
    told = recall_packed(kept, dict[str, Any])
    assert told is not None
    told["carried"][0]["files"][0]["reasons"] = ["as it was kept"]
    remember_packed(kept, told)
    bump(stack, new, "--dry-run").ends(3).shows("as it was kept")
    # what it follows from is another question; a bump that writes asks none that was answered
    asked = [bump(stack, new, "--dry-run", "--no-fuzz").ends(3).out]
    for file in ("one.patch", "three.patch"):
        text = stack.project.read(f"patches/demo/{file}")
        stack.project.write({f"patches/demo/{file}": text.replace("For a test.", "For two.")})
        asked.append(bump(stack, new, "--dry-run").ends(3).out)
    assert asked == 3 * [first]
    newer = upstream.commit({"a.txt": lines({**changed, 40: "the end\n"})}, "Change the end")
    asked = [bump(stack, newer, *argv).ends(3).out for argv in (["--dry-run"], [])]
    assert not [each for each in asked if "as it was kept" in each or "one.patch" not in each]


def test_offline_latest_is_what_a_dry_run_found(stack: Stacked, upstream: Upstream) -> None:
    """Also where no patch needs upstream's history, and another command asked in between."""
    first = further(upstream)
    bump(stack, "latest", "--dry-run").ok()
    upstream.vanish()
    bump(stack, "latest", "--dry-run", "--offline").ok().shows(f"-> main {first[:10]}")
    upstream.vanish()
    second = further(upstream, c_txt="more\n")
    bump(stack, "latest", "--dry-run").ok()
    upstream.vanish()
    bump(stack, "latest", "--offline").ok()
    assert second in stack.project.read(MANIFEST)


@pytest.mark.slow
def test_upstreams_history_is_followed(project: Project, upstream: Upstream) -> None:
    """What the cache has are two commits; a file that went by way of two others is found."""
    upstream.git("config", "uploadpack.allowFilter", "true")
    project.component("demo", upstream, STATES[0], small_patches())
    text = {n: f"upstream {n}\n" for n in range(22, 34)}
    first = {n: line for n, line in text.items() if n < 29}
    upstream.commit({"a.txt": None, "middle.txt": lines(first)}, "Rename, and rewrite half")
    upstream.commit({"middle.txt": None, "end.txt": lines(text)}, "Rename again")
    more = {n: f"more {n}\n" for n in (1, 2, 8, 9, 10, 11, 12, 13, 14, 15)}
    tip = upstream.commit({"end.txt": lines({**text, **more})}, "Rewrite")
    ran = project.run("bump", "demo", "--to", tip, "--dry-run").shows(
        "upstream renamed a.txt to end.txt"
    )
    assert "histor" not in ran.err
    for folder in (project.root.parent).rglob("histories"):
        folder.rename(folder.with_name("gone"))
    ran = project.run("bump", "demo", "--to", tip, "--dry-run", "--offline")
    assert "a.txt to end.txt" not in ran.out
    ran.says("warning: demo: upstream's history is not known, so no renames")


def test_a_short_id_will_do_once_it_is_known(stack: Stacked, upstream: Upstream) -> None:
    """As `plan` shows them."""
    new = further(upstream)
    further(upstream)
    bump(stack, new[:10]).ends(2, "a commit id must be given in full")
    stack.run("plan", "demo", "--to", "main").ok()
    bump(stack, new[:10], "--dry-run").ok()
    bump(stack, "f" * 10).ends(2)


# -- the package index ------------------------------------------------------------------------


@pytest.fixture
def index(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """An index with versions 1.0 and 1.1 of `thing`, and a candidate of 2.0; 1.0 is pinned."""
    texts = {"1.0": lines(), "1.1": "first\n" + lines(), "2.0rc1": lines({6: "candidate\n"})}
    with http_server() as server:
        links = []
        for version, text in texts.items():
            files = {f"thing-{version}/{name}": text for name in ("a.txt", "PKG-INFO")}
            archive = make_tar(files)
            server.replies[f"/files/thing-{version}.tar.gz"] = Reply(archive)
            links.append(f"/files/thing-{version}.tar.gz#sha256={digest(archive)}")
        page = "".join(f'<a href="{link}">x</a>' for link in links)
        server.replies["/simple/thing/"] = Reply(page.encode(), "text/html")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple")
        project.series("thing", {"one.patch": small_patches()["one.patch"]})
        text = (
            "version: 1\ncomponents:\n  thing:\n    source: {index: thing}\n"
            f'    pin: {{version: "1.0", sha256: {links[0][-64:]}}}  # stays\n'
            "    patches: [{series: patches/thing/series}]\n"
        )
        project.write({MANIFEST: text})
        yield server


@pytest.mark.slow
def test_a_version_of_the_index(project: Project, index: HttpServer) -> None:
    path = project.root / MANIFEST
    before = path.read_text()
    project.run("bump", "thing", "--to", "latest").ok().shows("bumped  thing  1.0 -> 1.1")
    reply = index.reply("/files/thing-1.1.tar.gz")
    assert reply is not None
    after = before.replace('"1.0"', '"1.1"')
    old = before.partition("sha256: ")[2][:64]
    assert path.read_text() == after.replace(old, digest(reply.body))
    project.run("check").ok()
    project.run("bump", "thing", "--to", "2.0rc1", "--dry-run").ends(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [("1.2", 5, "it has 1.0, 1.1, 2.0rc1"), ("main", 2, "main is no version")],
)
def test_a_version_that_the_index_does_not_have(
    project: Project, index: HttpServer, wanted: str, code: int, said: str
) -> None:
    asked = len(index.requests)
    with project.untouched():
        project.run("bump", "thing", "--to", wanted).ends(code, said)
    project.run("bump", "thing", "--to", "1.1", "--offline").ends(5)
    assert len(index.requests) <= asked + 2


# -- archives ---------------------------------------------------------------------------------


@pytest.fixture
def packed(project: Project) -> tuple[Project, dict[str, str]]:
    """A component of an archive, 1.0, and the digests of 1.0, 1.1 (shifted) and 1.2 (conflict)."""
    texts = {"1.0": lines(), "1.1": "first\n" + lines(), "1.2": lines({5: "upstream five\n"})}
    digests = {}
    for version, text in texts.items():
        data = make_tar({f"thing-{version}/{name}": text for name in ("a.txt", "b.txt")})
        project.write({f"files/v{version}/thing-{version}.tar.gz": data})
        digests[version] = digest(data)
    project.series("thing", {"one.patch": small_patches()["one.patch"]})
    text = (
        "version: 1\ncomponents:\n  thing:\n    source:\n"
        "      archive: ./files/v1.0/thing-1.0.tar.gz  # the release\n"
        '      mirrors: ["./mirror/thing-1.0.tar.gz"]\n'
        f"    pin: {{sha256: {digests['1.0']}}}  # stays\n"
        "    patches: [{series: patches/thing/series}]\n"
    )
    project.write({MANIFEST: text})
    project.run("apply").ok()
    return project, digests


@pytest.mark.slow
def test_an_archive_moves_by_its_version(packed: tuple[Project, dict[str, str]]) -> None:
    project, digests = packed
    path = project.root / MANIFEST
    before, files = path.read_text(), project.product
    argv = ("bump", "thing", "--to", "1.1", "--sha256", digests["1.1"])
    with project.untouched():
        project.run(*argv, "--dry-run").ok().shows("shifted  one.patch")
    project.run(*argv, "-o", "page.md").ok().shows(
        f"bumped  thing  1.0 sha256:{digests['1.0'][:10]} -> 1.1 sha256:"
    )
    wanted = before.replace("1.0", "1.1").replace(digests["1.0"], digests["1.1"])
    assert path.read_text() == wanted
    page = project.read("page.md")
    assert "Bump thing from 1.0 to 1.1" in page
    project.run("apply").ok()
    assert (project.checkout("thing") / "a.txt").read_text().startswith("first\n")
    project.run("check").ok()
    project.run("refresh").ok()
    project.run("undo").ok()
    assert project.product == files
    project.run("apply").ok()


def test_a_url_that_was_edited_by_hand_is_left_to_bump(
    packed: tuple[Project, dict[str, str]],
) -> None:
    project, digests = packed
    path = project.root / MANIFEST
    text = path.read_text().replace("1.0", "1.1")
    path.write_text(text.replace(digests["1.0"], digests["1.1"]))
    ran = project.run("refresh")
    again = re.search(r"then: (patchkit bump .*)$", ran.err, re.MULTILINE)
    assert (ran.code, again is not None) == (5, True), ran.err
    assert again is not None
    path.write_text(path.read_text().replace("1.1", "1.0").replace(digests["1.1"], digests["1.0"]))
    project.run(*shlex.split(again[1])[1:]).ok()


def test_an_archive_moves_to_a_url(packed: tuple[Project, dict[str, str]]) -> None:
    project, digests = packed
    project.write(
        {"other/renamed.tgz": (project.root / "files/v1.1/thing-1.1.tar.gz").read_bytes()}
    )
    argv = ("bump", "--to", "./other/renamed.tgz", "--sha256", digests["1.1"])
    project.run(*argv).ok()
    text = project.read(MANIFEST)
    assert "archive: ./other/renamed.tgz  # the release" in text
    assert "./mirror/thing-1.0.tar.gz" in text
    project.run("apply").ok()
    project.run(*argv).ok().shows("is at")


@pytest.mark.slow
def test_a_conflict_of_an_archive_is_resolved(packed: tuple[Project, dict[str, str]]) -> None:
    project, digests = packed
    files = project.product
    ran = project.run("bump", "--to", "1.2", "--sha256", digests["1.2"])
    assert (ran.code, project.product) == (3, files)
    (project.checkout("thing") / "a.txt").write_text(lines({5: "both fives\n", 6: "six\n"}))
    project.run("continue").ok()
    project.run("bump", "-o", "body.md").ok()
    assert "+upstream five" in project.read("body.md")
    text = project.read(MANIFEST)
    assert ("./files/v1.2/thing-1.2.tar.gz" in text, digests["1.2"] in text) == (True, True)
    project.run("check").ok()
    project.run("apply").ok().shows("unchanged")
    project.run("undo").ok()
    assert project.product == {**files, **resolutions(project)}


def resolutions(project: Project) -> dict[str, bytes]:
    return {name: data for name, data in project.product.items() if name.endswith(".resolution")}


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("--to", "1.1"), 2, "needs --sha256"),
        (("--to", "latest"), 2, "there is nothing to look a new one up in"),
        (("--to", "next", "--sha256", "0" * 64), 2, "--to next is not a URL"),
        (("--to", "1.1", "--sha256", "12"), 2, "is no SHA-256"),
        (("--to", "/abs/x.zip", "--sha256", "0" * 64), 2, "is a path, not a URL"),
        (("--to", "1.1", "--sha256", "0" * 64), 4, "0000"),
        (("--to", "9.9", "--sha256", "0" * 64), 5, "thing-9.9.tar.gz"),
    ],
)
def test_an_archive_that_cannot_be_moved_there(
    packed: tuple[Project, dict[str, str]], argv: tuple[str, ...], code: int, said: str
) -> None:
    with packed[0].untouched():
        packed[0].run("bump", "thing", *argv).ends(code, said)


def test_a_digest_goes_with_an_archive_only(stack: Stacked) -> None:
    stack.run("bump", "demo", "--to", "main", "--sha256", "0" * 64).ends(
        2, "--sha256 goes with an archive"
    )


# -- what stops it ----------------------------------------------------------------------------


def test_edits_in_the_checkout_come_first(stack: Stacked, upstream: Upstream) -> None:
    further(upstream)
    stack.edit("a.txt", "five\n", "5\n")
    with stack.untouched():
        bump(stack).ends(1, "its edits are for the old pin")
        foreseen = bump(stack, "latest", "--dry-run").ok().says("its edits are for the old pin")
    foreseen.shows("would bump")
    stack.run("refresh").ok()
    bump(stack).ok()


def test_a_pin_that_was_moved_by_hand_comes_first(stack: Stacked, upstream: Upstream) -> None:
    old, new = upstream.at("main"), further(upstream)
    text = stack.project.read(MANIFEST)
    stack.project.write({MANIFEST: text.replace(old, new)})
    upstream.commit({"d.txt": "d\n"})
    bump(stack).ends(1, "the patches are still those for")
    stack.run("refresh").ok()
    bump(stack).ok()


def test_a_pin_of_several_manifests_is_not_moved_for_one(
    stack: Stacked, upstream: Upstream
) -> None:
    further(upstream)
    stack.project.write({"manifests/other.yaml": "version: 1\nextends: [demo.yaml]\n"})
    with stack.untouched():
        stack.run("bump", "-m", "demo", "demo", "--to", "main").ends(
            4,
            "is also that of other.yaml",
            "patchkit refresh -m demo -c demo",
            "patchkit refresh -m other -c demo",
        )


def test_a_stack_that_shares_the_series_is_asked(stack: Stacked, upstream: Upstream) -> None:
    pin = upstream.at("main")
    entry = [{"series": "patches/demo/series"}]
    stack.project.component("demo", upstream, pin, entry, manifest="other", checkout="other")
    upstream.commit({"a.txt": lines({4: "line 4, upstream\n"})}, "Say more")
    with stack.untouched():
        stack.run("bump", "-m", "demo", "demo", "--to", "main").ends(1, "copy the patches")
    shutil.copytree(stack.project.root / "patches/demo", stack.project.root / "patches/own")
    text = stack.project.read(MANIFEST).replace("patches/demo/series", "patches/own/series")
    stack.project.write({MANIFEST: text})
    stack.run("apply", "-m", "demo").ok()
    stack.run("bump", "-m", "demo", "demo", "--to", "main").ok()
    stack.run("check", "-m", "demo").ok()
    stack.run("check", "-m", "other").ok()


@pytest.mark.slow
def test_a_published_patch_is_never_rewritten(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    project.component("demo", upstream, STATES[0], [published(tmp_path)])
    with project.untouched():
        merged = upstream.commit({"a.txt": lines({4: "line 4, upstream\n"})})
        project.run("bump", "demo", "--to", merged).ends(3, "belongs to another repository")
        absorbed = upstream.commit(STATES[1])
        project.run("bump", "demo", "--to", absorbed).ends(3, "take its entry off the manifest")
    # at other lines it fits as it is
    project.run("bump", "demo", "--to", further(upstream)).ok()
    project.run("check").ok()


# -- what becomes of the patches ----------------------------------------------------------------


def test_a_patch_that_the_new_pin_contains_leaves_the_series(
    stack: Stacked, upstream: Upstream
) -> None:
    upstream.commit(STATES[3], "Say ten")
    bump(stack).ok().shows("absorbed  three.patch")
    assert stack.series == ["one.patch", "two.patch"]
    assert not (stack.project.root / "patches/demo/three.patch").exists()
    stack.prepare("apply").ok()
    stack.settled()


@pytest.mark.parametrize("verb", ["bump", "refresh"])
def test_a_patch_that_fits_keeps_the_hunks_it_has(
    project: Project, upstream: Upstream, verb: str
) -> None:
    """Whether upstream or an earlier patch moves its lines; no diff has such hunks by itself."""
    first = make_patch({"a.txt": lines()}, {"a.txt": lines({1: "first\n"})})
    own = make_patch({"a.txt": lines()}, {"a.txt": lines({14: "more\n"})})
    own = own.replace(b"\n line 15\n", b"\n-line 15\n+line 15\n")
    project.component(
        "demo", upstream, {"a.txt": lines()}, {"first.patch": first, "own.patch": own}
    )
    if verb == "bump":
        further(upstream)
        ran = project.run("bump", "demo", "--to", "main").ok()
    else:
        project.run("apply").ok()
        project.checkout("demo").joinpath("a.txt").write_text(
            lines({1: "first\nand a half\n", 14: "more\n"})
        )
        ran = project.run("refresh").ok()
    assert re.search(r"shifted +(first.patch, )?own.patch", ran.out)
    now = (project.root / "patches/demo/own.patch").read_bytes()
    hunk = own[own.index(b"@@") :].replace(b"-11,", b"-12,").replace(b"+11,", b"+12,")
    assert now.endswith(hunk)


@pytest.mark.parametrize(("count", "by"), [(1, "[0-9a-f]{8,} Take 1"), (2, "2 commits")])
def test_a_patch_that_upstream_has_is_one_line_however_many_files_it_has(
    project: Project, upstream: Upstream, count: int, by: str
) -> None:
    old = {f"{name}.txt": lines() for name in "abcd"}
    new = {name: lines({4: "more\n"}) for name in old}
    project.patched(upstream, old, new, patch="all.patch")
    for number in range(count):
        taken = {name: new[name] for name in sorted(new)[number::count]}
        upstream.commit(taken, f"Take {number + 1}")
    args = ("-o", "body.md", "-o", "page.html")
    out = project.run("bump", "demo", "--to", "main", *args).ok().out
    assert re.search(rf"^  - absorbed  all.patch  by {by}$", out, re.M)
    assert ".txt" not in out
    body, page = ((project.root / name).read_text() for name in ("body.md", "page.html"))
    for text in (body, page):
        assert [text.count(f"Take {number + 1}") for number in range(count)] == [1] * count


def test_a_patch_that_is_dropped_without_being_sure_is_to_review(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.txt": lines()})
    patched = lines({4: "the fourth line, with more\n"})
    taken = upstream.commit({"a.txt": patched}, "Say more")
    patch = make_patch(
        {"a.txt": lines()}, {"a.txt": patched}, body=f"(cherry picked from commit {taken})"
    )
    upstream.commit({"a.txt": lines({4: "something else there\n"})}, "Say something else")
    project.component("demo", upstream, pin, {"more.patch": patch})
    project.run("bump", "demo", "--to", "main", "-o", "body.md").ok().shows("flagged  more.patch")
    body = project.read("body.md")
    assert "### To review (1)" in body
    assert "Upstream now" not in body
    assert not (project.root / "patches/demo/more.patch").exists()


def test_a_generated_patch_is_made_anew(project: Project, upstream: Upstream) -> None:
    example = {"before": "put(1)\n", "after": "put(2)\n"}
    rule = {"id": "put", "language": "python", "rule": {"pattern": "put(1)"}, "fix": "put(2)"}
    sites = {"files": ["*.py"], "expect": ">= 1", "examples": [example]}
    recipe = {"version": 1, "description": "Put two", "rules": [{**rule, **sites}]}
    project.write({"patches/demo/put.recipe.yml": json.dumps(recipe)})
    project.patched(
        upstream,
        {"a.py": "put(1)\n"},
        {"a.py": "put(2)\n"},
        patch="put.patch",
        subject="Put",
        body="Recipe: put.recipe.yml",
    )
    upstream.commit({"a.py": "put(1)\n", "b.py": "x = 1\nput(1)\n"})
    project.run("bump", "demo", "--to", "main").ok().shows("regenerated  put.patch")
    assert b"+++ b/b.py" in (project.root / "patches/demo/put.patch").read_bytes()
    project.run("check").ok()


@pytest.mark.parametrize("argv", [(), ("--dry-run",)])
def test_an_older_version_is_said_to_be_one(
    project: Project, upstream: Upstream, argv: tuple[str, ...]
) -> None:
    """A file that comes later is not there yet: upstream did not delete it."""
    old = upstream.commit({"a.txt": lines()})
    pin = upstream.commit({"b.txt": lines()})
    new = upstream.commit({"c.txt": lines()})
    patch = make_patch({"b.txt": lines()}, {"b.txt": lines({4: "more\n"})})
    project.component("demo", upstream, pin, {"b.patch": patch})
    assert "goes back" not in project.run("bump", "demo", "--to", new, "--dry-run").ok().err
    ran = (
        project.run("bump", "demo", "--to", old, *argv)
        .ends(3, "demo: goes back: the new pin is an ancestor of the old one")
        .shows("the file does not exist there yet")
    )
    assert "deleted" not in ran.out + ran.err
    for verb in ("drift", "plan"):
        project.run(verb, "--to", old).shows("an ancestor of the pin")
        assert "an ancestor of the pin" not in project.run(verb, "--to", new).out


# -- the summary --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_summary_is_sorted_by_what_a_reviewer_must_look_at(
    stack: Stacked, upstream: Upstream
) -> None:
    moved = {4: "line 4\nline 4, upstream\n"}
    upstream.commit({"a.txt": "first\n" + lines(moved), **STATES[3]}, "Say <b>more</b> (#7)")
    upstream.tag("v2", "main")
    ran = bump(stack, "latest", "--dry-run", "--output", "body.md").ok()
    body = stack.project.read("body.md")
    headings = [line for line in body.splitlines() if line.startswith("### ")]
    assert headings == [
        "### Left to do",
        "### To review (1)",
        "### Dropped, as upstream has them (1)",
    ]
    assert "<summary>At other lines (1)</summary>\n\n- `two.patch`" in body
    old = upstream.at("main~1")[:10]
    assert body.startswith(f"## Bump demo from {old} to v2\n")
    assert body.endswith(
        f"Commit message:\n\n    Bump demo from {old} to v2\n\n    To review: 1 (one.patch)\n"
        "    At other lines: 1\n    Dropped, as upstream has them: 1 (three.patch)\n"
    )
    assert "- [ ] `one.patch` Patch one\n  - `a.txt`: merged, " in body
    assert "<b>" not in body
    assert ran.out != ""


# -- several components -------------------------------------------------------------------------


@pytest.fixture
def several(project: Project, upstream: Upstream, tmp_path: Path) -> Project:
    """`demo` and `second` track main, `third` a branch that is gone, `fourth` nothing."""
    second = Upstream.create(tmp_path / "second.git")
    pins = [upstream.commit(STATES[0]), second.commit(STATES[0])]
    project.component("demo", upstream, pins[0], small_patches(), track="main")
    project.component("second", second, pins[1], small_patches(), track="main")
    project.component("third", second, pins[1], track="gone")
    project.component("fourth", second, pins[1])
    further(upstream)
    second.commit({"a.txt": lines({5: "upstream was here\n"})}, "Be here (#7)")
    return project


@pytest.mark.slow
def test_all_components_each_to_its_track(several: Project, upstream: Upstream) -> None:
    before = several.files()
    with several.untouched():
        several.run("bump", "--all", "--to", "latest", "--dry-run").ends(4).shows(
            "would bump  demo"
        )
    several.run("bump", "--all", "-o", "body.md").ends(4, "has no branch or tag gone").shows(
        f"bumped  demo  {upstream.at('main~1')[:10]} -> main ",
        "conflicted  second",
        "failed  third",
        "skipped  fourth  has no `track`",
    )
    text = (several.root / MANIFEST).read_text()
    assert text.count(upstream.at("main")) == 1
    after = several.files()
    changed = {name.split("/")[1] for name in after if after[name] != before[name]}
    assert changed == {"demo"}
    body = several.read("body.md")
    old, new = (upstream.at(each)[:10] for each in ("main~1", "main"))
    assert [line for line in body.splitlines() if line.startswith(("# ", "## "))] == [
        f"# Bump demo from {old} to {new}",
        f"## Bump demo from {old} to {new}",
        "## second stays where it is",
        "## third stays where it is",
    ]
    assert "passed over: `fourth`" in body
    several.run("check", "-c", "demo").ok()


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("demo",),
        ("--to", "main"),
        ("demo", "--all"),
        ("--all", "--to", "main"),
    ],
)
def test_what_does_not_go_together(several: Project, argv: tuple[str, ...]) -> None:
    with several.untouched():
        several.run("bump", *argv).ends(2)


def test_a_history_that_is_at_hand_and_of_no_use_is_not_to_be_fetched_again(
    stack: Stacked, upstream: Upstream
) -> None:
    """Another root: no way leads from pin to pin, and none will tomorrow."""
    new = upstream.commit({"a.txt": None, "d.txt": "d\n"}, "Begin anew", branch="new", parents=())
    ran = bump(stack, new, "--dry-run").says(
        "no renames or moves are followed: ", "has no common ancestor with the pin"
    )
    assert "run it again" not in ran.err
