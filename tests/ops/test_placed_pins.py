"""Pins that stay where other tools read them: read, resolved, bumped there, and taken back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from patchkit.disk.files import JOURNAL
from patchkit.manifest.cached import read_manifest
from patchkit.manifest.values import GitPin
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in
from tests.support.stacked import STATES, Stacked, lines, small_patches

DOCKERFILE = "FROM base\r\n# ours\r\nARG LIB_COMMIT=%s\r\nRUN git checkout ${LIB_COMMIT}\r\n"
ARG = {"file": "docker/Dockerfile", "arg": "LIB_COMMIT"}


def component(
    project: Project, upstream: Upstream, pin: Mapping[str, object], **extra: Any
) -> None:
    """Add a component with the small patches, whose pin is in another place."""
    extra = {"name": "demo", "source": {"git": upstream.url}, **extra}
    pin = dict(pin)  # yaml writes what is there twice with an anchor
    name = extra.pop("name")
    project.component(name, upstream, pin, small_patches(), **extra)  # type: ignore[arg-type]


def placed(
    project: Project, upstream: Upstream, pin: Mapping[str, object], text: str, **extra: Any
) -> Stacked:
    """The small stack, whose pin is `text` in a Dockerfile."""
    project.write({"docker/Dockerfile": DOCKERFILE % text})
    component(project, upstream, pin, **extra)
    return Stacked(project, project.checkout("demo"))


def moved(upstream: Upstream) -> str:
    """A further commit, tagged v2."""
    new = upstream.commit({"a.txt": "a new first line\n" + lines()}, "Say more")
    upstream.tag("v2", new)
    return new


@pytest.fixture
def base(upstream: Upstream) -> str:
    pin = upstream.commit(STATES[0], "The base")
    upstream.tag("v1", pin)
    return pin


# -- a file of the project's ------------------------------------------------------------------


def test_a_commit_in_a_dockerfile_is_bumped_there(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, base)
    stack.prepare("apply").ok()
    before, docker = project.product, project.read("docker/Dockerfile")
    new = moved(upstream)
    row = stack.run("bump", "demo", "--to", "v2", "--json").ok().component
    assert row["where"] == "docker/Dockerfile:3"
    assert "docker/Dockerfile" in row["files"]
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % new).encode()
    assert project.product["manifests/demo.yaml"] == before["manifests/demo.yaml"]
    stack.settled()
    stack.run("undo").ok()
    assert project.product == before
    assert project.read("docker/Dockerfile") == docker
    stack.settled()
    stack.run("undo", "--redo").ok()
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % new).encode()


def test_a_dry_run_and_a_failure_leave_the_file(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, base)
    stack.prepare("apply").ok()
    moved(upstream)
    with stack.untouched():
        stack.run("bump", "demo", "--to", "v2", "--dry-run").ok()
        stack.run("bump", "demo", "--to", "v3").ends(2)


@pytest.mark.slow
def test_a_version_without_what_tags_have_around_it(
    project: Project, upstream: Upstream, base: str
) -> None:
    upstream.tag("lib-1.0-stable", base)
    pin = {**ARG, "tag": "lib-*-stable"}
    stack = placed(project, upstream, pin, "1.0")
    stack.run("fetch").ok()
    stack.run("apply").ok()
    upstream.tag("lib-1.1-stable", moved(upstream))
    with stack.untouched():
        what = "v2 is no tag of the form lib-*-stable, as that place has them"
        stack.run("bump", "demo", "--to", "v2").ends(4, f"docker/Dockerfile:3: {what}")
    stack.run("bump", "demo", "--to", "lib-1.1-stable").ok()
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % "1.1").encode()
    stack.run("apply", "--locked").ok()


@pytest.mark.slow
def test_a_conflict_waits_and_is_gone_on_from(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, base)
    stack.prepare("apply").ok()
    new = upstream.commit({"b.txt": lines({10: "other\n"})}, "Clash")
    stack.run("bump", "demo", "--to", "main").ends(3)
    assert project.read("docker/Dockerfile") == DOCKERFILE.replace("\r", "") % base
    project.write({"docker/Dockerfile": (DOCKERFILE % base).replace("# ours", "# edited")})
    stack.run("continue").ends(1)
    project.write({"docker/Dockerfile": DOCKERFILE % base})
    file = stack.checkout / "b.txt"
    file.write_text(lines({10: "ten\n"}))
    stack.git("add", "b.txt")
    stack.run("continue").ok()
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % new).encode()
    stack.settled()


def test_a_tag_is_resolved_once_and_held_by_the_lock(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, "v1")
    ran = stack.run("apply").ends(4).says("docker/Dockerfile:3: the lock has no commit for v1")
    assert "patchkit fetch -m demo -c demo" in ran.err
    stack.run("fetch", "-m", "demo", "-c", "demo").ok()
    lock = json.loads(project.read("manifests/demo.lock.json"))
    assert lock["names"] == {"demo": {"v1": base}}
    stack.run("apply").ok()
    stack.settled()
    before = project.product
    new = moved(upstream)
    stack.run("bump", "demo", "--to", "v2").ok()
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % "v2").encode()
    lock = json.loads(project.read("manifests/demo.lock.json"))
    assert lock["names"] == {"demo": {"v1": base, "v2": new}}
    stack.settled()
    stack.run("undo").ok()
    stack.settled()
    assert {n: d for n, d in project.product.items() if "lock" not in n} == {
        n: d for n, d in before.items() if "lock" not in n
    }
    # where the bump goes to a branch, there is no name to write
    upstream.commit({"c.txt": "more\n"}, "More")
    stack.run("bump", "demo", "--to", "main").ok()
    at_main = DOCKERFILE % upstream.resolve("main")
    assert (project.root / "docker/Dockerfile").read_bytes() == at_main.encode()


def test_a_name_that_is_edited_by_hand_is_asked_for_and_carried(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, "v1")
    stack.run("fetch").ok()
    stack.run("apply").ok()
    new = moved(upstream)
    project.write({"docker/Dockerfile": DOCKERFILE % "v2"})
    stack.run("status").ends(4).says("the lock has no commit for v2")
    stack.run("fetch", "demo").ok()  # a word that is a manifest's and a component's
    stack.run("apply").ends(1).says("patchkit refresh")
    stack.run("refresh").ok()
    assert stack.git("rev-parse", "refs/patchkit/base") == new
    stack.settled()


def test_a_tag_that_was_moved_is_an_error_wherever_upstream_is_asked(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, "v1", track="main")
    stack.run("fetch").ok()
    stack.run("apply").ok()
    new = moved(upstream)
    upstream.tag("v1", new)
    said = f"v1 was moved: it is {new} upstream, and {base} in the lock"
    hint = f"patchkit bump demo --to {new}"
    elsewhere = ("--cache", str(project.root / "other-cache"))
    with stack.untouched():
        for command in (("drift",), ("ci",), ("bump", "demo", "--to", "v2")):
            ran = stack.run(*command)
            assert ran.code != 0, command
            assert said in ran.out + ran.err, (command, ran)
            assert hint in ran.out + ran.err, (command, ran)
        stack.run("check").ok()  # asks nobody
    for word in ("fetch", "apply"):
        ran = stack.run(word, *elsewhere)
        assert ran.code == 4, ran
        assert said in ran.out + ran.err
    stack.run("bump", "demo", "--to", new, *elsewhere).ok()
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % new).encode()
    stack.settled()


NAMES = [
    ("main", "main is a branch"),
    ("v9", "has no branch or tag v9"),
    ("v*", "v* is no commit id and no tag"),
    ("0123456789ABCDEF0123456789ABCDEF01234567", "is in upper case"),
    ("a..b", "a..b cannot name a branch or tag"),
]


@pytest.mark.parametrize(("name", "what"), NAMES, ids=[name for name, _ in NAMES])
def test_what_is_no_pin_is_refused_at_its_line(
    project: Project, upstream: Upstream, base: str, name: str, what: str
) -> None:
    stack = placed(project, upstream, ARG, name)
    stack.run("fetch").ends(4).says("docker/Dockerfile:3: ", what)
    assert not (project.root / "manifests/demo.lock.json").exists()


def test_an_annotated_tag_and_a_short_id_are_resolved_to_commits(
    project: Project, upstream: Upstream, base: str
) -> None:
    upstream.git("tag", "-a", "v1.0", "-m", "one", base)
    stack = placed(project, upstream, ARG, "v1.0")
    stack.run("fetch").ok()
    stack.run("apply").ok()
    assert stack.git("rev-parse", "refs/patchkit/base") == base
    project.write({"docker/Dockerfile": DOCKERFILE % base[:9]})
    stack.run("fetch").ok()
    stack.settled()


# -- two places -------------------------------------------------------------------------------


def test_two_places_must_agree_and_are_bumped_together(
    project: Project, upstream: Upstream, base: str
) -> None:
    make = "# LIB = v0\nLIB = %s\nOTHER = 1\n"
    project.write({"Makefile": make % base})
    pin = ARG | {"also": [{"file": "Makefile", "variable": "LIB"}]}
    stack = placed(project, upstream, pin, base)
    stack.prepare("apply").ok()
    new = moved(upstream)
    stack.run("bump", "demo", "--to", "v2").ok()
    assert project.read("Makefile") == make % new
    assert (project.root / "docker/Dockerfile").read_bytes() == (DOCKERFILE % new).encode()
    project.write({"Makefile": make % base})
    ran = stack.run("check").ends(4)
    assert f"Makefile:2: demo is at {base} here, at {new} elsewhere" in ran.err
    assert "docker/Dockerfile:3 says so" in ran.err


def test_a_place_that_two_pins_have_is_not_bumped_for_one(
    project: Project, upstream: Upstream, base: str
) -> None:
    stack = placed(project, upstream, ARG, base)
    component(project, upstream, ARG, name="other")
    moved(upstream)
    with stack.untouched():
        ran = stack.run("bump", "demo", "--to", "v2").ends(4)
    assert "the pin of demo is also that of other" in ran.err
    assert "patchkit refresh -m demo -c other" in ran.err


# -- files that are not there, or elsewhere ----------------------------------------------------


def test_files_of_others_are_not_read(project: Project, upstream: Upstream, base: str) -> None:
    stack = placed(project, upstream, ARG, base)
    outside = project.root.parent / "outside"
    outside.write_text(f"ARG LIB_COMMIT={base}\n")
    file = project.root / "docker/Dockerfile"
    stack.run("check").ok()
    data = file.read_bytes()
    file.unlink()
    stack.run("check").ends(4).says("docker/Dockerfile cannot be read: No such file")
    file.symlink_to(outside)
    stack.run("check").ends(4).says("leads out of the project by a symbolic link")
    file.unlink()
    os.mkfifo(file)
    stack.run("check").ends(4).says("is not a regular file")
    file.unlink()
    file.write_bytes(data)
    stack.run("check").ok()
    # what is kept of a manifest is not believed where the file that it was read from changed
    file.write_bytes(data.replace(b"LIB_COMMIT", b"LIB"))
    stack.run("check").ends(4).says("docker/Dockerfile has no arg LIB_COMMIT", "it has arg LIB")


def test_what_was_read_is_kept_with_the_file(
    project: Project, upstream: Upstream, base: str, tmp_path: Path
) -> None:
    placed(project, upstream, ARG, base)
    path = project.root / "manifests/demo.yaml"

    def commit() -> str:
        pin = read_manifest(path, tmp_path / "cache").components[0].pin
        assert isinstance(pin, GitPin)
        return pin.commit

    assert [commit(), commit()] == [base, base]
    project.write({"docker/Dockerfile": DOCKERFILE % ("1" * 40)})
    assert commit() == "1" * 40


# -- submodules -------------------------------------------------------------------------------


@pytest.fixture
def submodule(project: Project, upstream: Upstream, base: str) -> Stacked:
    """The project is a repository, with a submodule whose commit is the pin, and staged work."""
    root = project.root
    git_in(root, "init", "-q")
    git_in(root, "config", "core.fsmonitor", "touch fsmonitor-ran; false")
    (root / ".git/hooks/post-index-change").write_text("#!/bin/sh\ntouch hook-ran\n")
    (root / ".git/hooks/post-index-change").chmod(0o755)
    stage(project, base)
    project.write({"README": "ours\n", "staged.txt": "mine\n"})
    git_in(
        root, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "staged.txt"
    )
    component(project, upstream, {"submodule": "third_party/lib"})
    return Stacked.applied(project)


def stage(project: Project, commit: str) -> None:
    info = f"160000,{commit},third_party/lib"
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    git_in(project.root, *quiet, "update-index", "--add", "--cacheinfo", info)


def index(project: Project) -> dict[str, str]:
    rows = git_in(project.root, "-c", "core.fsmonitor=false", "ls-files", "-s").decode().split("\n")
    return {row.partition("\t")[2]: row.split()[1] for row in rows if row}


def test_a_gitlink_is_bumped_in_the_index_and_undone(
    submodule: Stacked, upstream: Upstream, base: str
) -> None:
    project = submodule.project
    before, product = index(project), project.product
    assert before["third_party/lib"] == base
    new = moved(upstream)
    row = submodule.run("bump", "demo", "--to", "v2", "--json").ok().component
    assert "third_party/lib" in row["files"]
    assert index(project) == before | {"third_party/lib": new}
    submodule.settled()
    submodule.run("undo").ok()
    assert (index(project), project.product) == (before, product)
    submodule.settled()
    submodule.run("undo", "--redo").ok()
    assert index(project) == before | {"third_party/lib": new}
    submodule.settled()
    assert not [path.name for path in project.root.glob("*-ran")]


def test_a_gitlink_is_read_each_time(submodule: Stacked, upstream: Upstream) -> None:
    new = moved(upstream)
    stage(submodule.project, new)
    submodule.run("apply").ends(1).says("patchkit refresh")
    git_in(
        submodule.project.root,
        "-c",
        "core.fsmonitor=false",
        "rm",
        "-q",
        "--cached",
        "third_party/lib",
    )
    submodule.run("check").ends(4).says("third_party/lib is no submodule in git's index")


def test_an_index_that_is_locked_stops_a_bump_with_nothing_changed(
    submodule: Stacked, upstream: Upstream
) -> None:
    moved(upstream)
    (submodule.project.root / ".git/index.lock").touch()
    with submodule.untouched():
        submodule.run("bump", "demo", "--to", "v2").ends(5).says("index.lock")


def test_a_disk_that_is_full_leaves_the_gitlink(
    submodule: Stacked, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(upstream)
    root, sync = submodule.project.root, os.fsync
    lock = root / ".git/index.lock"

    def full(descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        if file.is_file() and file.is_relative_to(root) and "workspace" not in file.parts:
            lock.touch()  # nor can git write its index any more
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with submodule.untouched():
        submodule.run("bump", "demo", "--to", "v2").ends(5).says("No space left")
        lock.unlink()


def test_a_journal_that_cannot_be_published_puts_the_gitlink_back(
    submodule: Stacked, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(upstream)
    rename = Path.replace

    def refused(self: Path, target: Path) -> Path:
        if target.name == JOURNAL:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    with submodule.untouched():
        submodule.run("bump", "demo", "--to", "v2").ends(5).says("Input/output error")


def test_a_project_below_the_root_of_its_repository(
    project: Project, upstream: Upstream, base: str
) -> None:
    above = Project(project.root / "tools")
    git_in(project.root, "init", "-q")
    info = f"160000,{base},tools/lib"
    git_in(project.root, "update-index", "--add", "--cacheinfo", info)
    component(above, upstream, {"submodule": "lib"})
    stack = Stacked.applied(above)
    new = moved(upstream)
    stack.run("bump", "demo", "--to", "v2").ok()
    assert index(project)["tools/lib"] == new


# -- what a person calls a literal pin ---------------------------------------------------------


def test_the_name_beside_a_pin_is_kept_true(
    project: Project, upstream: Upstream, base: str
) -> None:
    path = project.component("demo", upstream, base, small_patches())

    def comment(text: str) -> str:
        (line,) = (each for each in path.read_text().splitlines() if "pin:" in each)
        return line.partition("  ")[2].strip()

    for beside, after in (("# v1", "# v2"), ("#v1 ", "#v2"), ("# v1, of old", "# v1, of old")):
        path.write_text(path.read_text().replace(f"pin: {base}", f"pin: {base}  {beside}"))
        Stacked.applied(project)
        new = upstream.resolve("refs/tags/v2") or moved(upstream)
        ran = project.run("bump", "demo", "--to", "v2").ok()
        assert f"pin: {new}  {after}" in path.read_text()
        assert ("stays as it is" in ran.out + ran.err) == (beside == after)
        project.run("undo").ok()
        path.write_text(path.read_text().replace(f"  {beside}", ""))
    path.write_text(path.read_text().replace(f"pin: {base}", f"pin: {base}  # v1"))
    upstream.commit({"c.txt": "more\n"}, "More")
    project.run("bump", "demo", "--to", "main").ok()
    assert f"pin: {upstream.resolve('main')}\n" in path.read_text()
