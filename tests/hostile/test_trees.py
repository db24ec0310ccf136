"""Upstreams whose trees no checkout must have: every command refuses them, with the same words."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from patchkit.parallel import in_parallel
from tests.support.objects import Objects
from tests.support.projects import Project
from tests.support.repos import Symlink, Upstream, make_patch

pytestmark = pytest.mark.slow

PATCH = {"a.patch": make_patch({"a": "1\n"}, {"a": "2\n"}, body="So.")}


def tree_with(upstream: Upstream, name: str) -> str:
    """A commit whose tree has `name` beside the file a; git refuses to make it otherwise."""
    blob = upstream.git("hash-object", "-w", "--stdin", stdin=b"1\n").decode().strip()
    rows = b"".join(
        b"100644 %s\x00%s" % (each, bytes.fromhex(blob)) for each in sorted([name.encode(), b"a"])
    )
    arguments = ("hash-object", "-w", "-t", "tree", "--literally", "--stdin")
    return committed(upstream, upstream.git(*arguments, stdin=rows).decode().strip())


def committed(upstream: Upstream, tree: str) -> str:
    commit = upstream.git("commit-tree", "-m", "x", tree).decode().strip()
    upstream.git("update-ref", "refs/heads/main", commit)
    return commit


def deep(upstream: Upstream, depth: int) -> str:
    """A commit with the file a, and one below so many folders."""
    objects = Objects(upstream.path)
    blob = objects.write(b"blob", b"1\n")
    tree = objects.write(b"tree", b"100644 x\0" + bytes.fromhex(blob))
    for _ in range(depth - 1):
        tree = objects.write(b"tree", b"40000 d\0" + bytes.fromhex(tree))
    rows = b"100644 a\0" + bytes.fromhex(blob) + b"40000 d\0" + bytes.fromhex(tree)
    return committed(upstream, objects.write(b"tree", rows))


def refused(project: Project, said: str) -> None:
    for argv in (["check"], ["apply"], ["fetch"], ["ci"]):
        ran = project.run(*argv)
        assert (ran.code, said in ran.out + ran.err) == (4, True), (argv, ran.out, ran.err)
    assert not project.checkout("demo").exists()


@pytest.mark.parametrize("name", [".git", ".g\u200cit", "git~1", ".."])
def test_names_that_lead_out_or_into_git(project: Project, upstream: Upstream, name: str) -> None:
    project.component("demo", upstream, tree_with(upstream, name), PATCH)
    refused(project, "the upstream has a tree that is refused at ")


def test_names_and_paths_too_long_for_a_disk(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, tree_with(upstream, "n" * 256), PATCH)
    refused(project, "name of more than 255 bytes")
    objects = Objects(upstream.path)
    oid = objects.write(b"tree", b"100644 x\0" + bytes.fromhex(objects.write(b"blob", b"1\n")))
    for _ in range(20):
        oid = objects.write(b"tree", b"40000 %s\0" % (b"d" * 200) + bytes.fromhex(oid))
    project.component("demo", upstream, committed(upstream, oid), PATCH)
    refused(project, "path of more than 3000 bytes")


@pytest.mark.parametrize("here", [True, False])
def test_a_file_with_the_id_of_what_is_no_file(
    project: Project, upstream: Upstream, here: bool
) -> None:
    """The other object is one of the tree's own folders, or nothing that this commit needs."""
    objects = Objects(upstream.path)
    blob = bytes.fromhex(objects.write(b"blob", b"1\n"))
    upstream.commit({"other/y": "1\n"})
    other = upstream.git("rev-parse", "HEAD" if not here else "HEAD:other").decode().strip()
    rows = b"100644 a\0" + blob + b"100644 b\0" + bytes.fromhex(other)
    if here:
        rows += b"40000 d\0" + bytes.fromhex(other)
    project.component("demo", upstream, committed(upstream, objects.write(b"tree", rows)), PATCH)
    for verb in ("check", "apply"):
        ran = project.run(verb)
        # a server's own git finds the folder that is a file as well, and gives nothing
        assert ran.code == (5 if here else 4), ran.err
    assert not project.checkout("demo").exists()


@pytest.mark.parametrize("target", [b"", b"x" * 4096])
def test_symlinks_that_no_disk_takes(project: Project, upstream: Upstream, target: bytes) -> None:
    objects = Objects(upstream.path)
    ids = (objects.write(b"blob", data) for data in (b"1\n", target))
    rows = b"100644 a\0%s120000 b\0%s" % tuple(map(bytes.fromhex, ids))
    project.component("demo", upstream, committed(upstream, objects.write(b"tree", rows)), PATCH)
    refused(project, f"symlink with a target of {len(target)} bytes")


def test_patches_that_make_what_no_disk_takes(project: Project, upstream: Upstream) -> None:
    """check and apply say the same of them."""
    pin = upstream.commit({"a": "1\n"})
    for path, entry in (
        ("n" * 256, "1\n"),
        ("d/" * 499 + "n" * 250, "1\n"),
        ("b", Symlink("x" * 4096)),
        ("b", Symlink("")),
        ("c", Symlink("x" * 4095)),
    ):
        patch = make_patch({"a": "1\n"}, {"a": "1\n", path: entry}, body="So.")
        project.component("demo", upstream, pin, {"a.patch": patch})
        checked, applied = project.run("check"), project.run("apply", "--accept")
        assert checked.code == applied.code, (path[:9], checked.out, applied.out + applied.err)


def test_folders_in_each_other_without_end(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, deep(upstream, 600), PATCH)
    refused(project, "more than 500 folders in each other")


def test_a_few_objects_that_stand_for_any_number_of_files(
    project: Project, upstream: Upstream
) -> None:
    """Ten trees of ten rows each: nobody lists what they come to."""
    blob = upstream.git("hash-object", "-w", "--stdin", stdin=b"1\n").decode().strip()
    rows = "".join(f"100644 blob {blob}\t{n}\n" for n in range(10))
    for _ in range(10):
        tree = upstream.git("mktree", stdin=rows.encode()).decode().strip()
        rows = "".join(f"040000 tree {tree}\t{n}\n" for n in range(10))
    project.component("demo", upstream, committed(upstream, tree), PATCH)
    refused(project, "more than 2000000 files")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_of_another_user_says_how_to_share_it(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    project.component("demo", upstream, {"a": "1\n"}, PATCH)
    project.run("fetch").ok()
    project.component("demo", upstream, {"a": "1\n", "b": ""}, PATCH)
    for lock in (tmp_path / "home" / "cache" / "locks").iterdir():
        lock.chmod(0o444)
    project.run("fetch").ends(5, "chgrp -R GROUP")


def test_where_the_system_gives_no_more_threads() -> None:
    before = threading.stack_size()
    threading.stack_size(1 << 46)  # more than any address space has room for twice
    try:
        assert in_parallel(lambda n: n * n, range(5), jobs=3) == (0, 1, 4, 9, 16)
    finally:
        threading.stack_size(before)
