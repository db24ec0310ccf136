from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.repository import init_repository
from patchkit.model.objects import (
    GitObject,
    TreeEntry,
    make_object,
    make_pack,
    make_tree,
)
from tests.support.laws import share
from tests.support.repos import git_in


def blobs(payloads: list[bytes]) -> list[GitObject]:
    return [make_object("blob", payload) for payload in dict.fromkeys(payloads)]


@pytest.mark.slow
def test_git_reads_back_what_was_written(tmp_path: Path) -> None:
    lines = [b"line %d\n" % number for number in range(4000)]
    payloads = [b"", b"x", bytes(range(256)) * 300]
    for number in range(0, 4000, 50):
        lines[number] = b"changed %d\n" % number
        payloads.append(b"".join(lines))
    objects = blobs(payloads)
    repository = init_repository(tmp_path / "r.git")
    write_objects(repository, objects)
    write_objects(repository, objects[:3])
    for each in objects:
        assert git_in(tmp_path / "r.git", "cat-file", "blob", each.oid) == each.payload
    assert git_in(tmp_path / "r.git", "fsck", "--full", "--strict", "--no-dangling") == b""


@settings(max_examples=share(50))
@given(st.lists(st.binary(max_size=40).map(lambda part: b"common" * 40 + part + b"end" * 40)))
def test_index_pack_makes_the_same_index(payloads: list[bytes]) -> None:
    pack = make_pack(blobs(payloads))
    folder = Path.cwd() / "r.git"
    if not folder.exists():
        init_repository(folder)
    git_in(folder, "index-pack", "--stdin", "--strict", stdin=pack.data)
    index = folder / "objects" / "pack" / f"pack-{pack.name}.idx"
    assert index.read_bytes() == pack.index


def test_what_repeats_is_stored_small_and_a_huge_folder_at_all(tmp_path: Path) -> None:
    names = {
        f"a-file-with-a-long-name-{number}": TreeEntry(0o100644, "1" * 40) for number in range(1200)
    }
    tree, blob = make_tree(names), make_object("blob", b"again\n" * 1000)
    repository = init_repository(tmp_path / "r.git")
    write_objects(repository, [tree, blob])
    assert git_in(tmp_path / "r.git", "cat-file", "tree", tree.oid) == tree.payload
    assert len(tree.payload) > 0xFFFF
    assert len(make_pack([blob]).data) < 200
