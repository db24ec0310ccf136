"""Pins: whole, or not there; whatever somebody did to the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.pins import (
    is_damaged,
    is_sound,
    make_partial,
    read_base,
    read_pin,
    write_pin,
)
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.model.objects import (
    FILE_MODE,
    Base,
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    make_commit,
    make_object,
    make_tree,
)
from patchkit.model.patch import Identity

PIN = "refs/patchkit/pins/demo"
ANN = Identity("Ann", "ann@example.com", "1700000000 +0130")


def _objects(text: str = "1\n") -> list[GitObject]:
    blob = make_object("blob", text.encode())
    tree = make_tree({"a": TreeEntry(FILE_MODE, blob.oid)})
    commit = make_commit(tree=TreeId(tree.oid), parents=(), author=ANN, committer=ANN, message=text)
    return [blob, tree, commit]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return init_repository(tmp_path / "r.git")


@pytest.fixture
def base(repository: Repository) -> Base:
    """A pin in the repository."""
    objects = _objects()
    write_objects(repository, objects)
    pinned = read_base(repository, CommitId(objects[-1].oid))
    write_pin(repository, PIN, pinned)
    return pinned


@pytest.fixture
def pack(repository: Repository, base: Base) -> Path:
    """The only pack, of which the pin's objects are."""
    (found,) = (repository.git_dir / "objects" / "pack").glob("*.pack")
    found.chmod(0o644)
    return found


def test_a_pin_is_read_back_without_git(repository: Repository, base: Base) -> None:
    assert base == Base(CommitId(_objects()[2].oid), TreeId(_objects()[1].oid), "1700000000 +0130")
    program = (
        "import pathlib, sys; from patchkit.gitcmd.pins import *;"
        "print(read_pin(Repository(pathlib.Path(sys.argv[1])), sys.argv[2]))"
    )

    out = subprocess.check_output(
        [sys.executable, "-c", program, str(repository.git_dir), PIN],
        env={"PATH": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )

    assert read_pin(repository, PIN) == base
    assert out.strip() == str(base)


def test_without_a_ref_or_a_repository_there_is_no_pin(
    repository: Repository, tmp_path: Path
) -> None:
    write_objects(repository, _objects())
    nowhere = Repository(tmp_path / "nowhere.git")

    assert read_pin(repository, PIN) is None
    assert read_pin(nowhere, PIN) is None
    assert not is_damaged(nowhere, PIN)


def test_later_packs_do_not_matter_and_the_user_may_repack(
    repository: Repository, base: Base
) -> None:
    write_objects(repository, _objects("2\n"))
    assert read_pin(repository, PIN) == base
    assert not is_damaged(repository, PIN)

    repository.git("repack", "-a", "-d", "-q")
    assert not is_damaged(repository, PIN + "-another")
    assert read_pin(repository, PIN) == base
    assert is_sound(repository, PIN)


def test_a_lost_receipt_is_written_again_or_done_without(
    repository: Repository, base: Base
) -> None:
    (receipt,) = (repository.git_dir / "patchkit-pins").iterdir()
    for content in (None, "", "[]", '{"commit": 1}'):
        receipt.unlink()
        if content is not None:
            receipt.write_text(content)
        assert read_pin(repository, PIN) == base
    shutil.rmtree(receipt.parent)
    receipt.parent.touch()  # no folder can be made there
    assert read_pin(repository, PIN) == base


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_a_lost_pack_is_noticed(repository: Repository, pack: Path, ending: str) -> None:
    pack.with_suffix(ending).unlink()

    assert read_pin(repository, PIN) is None
    assert is_damaged(repository, PIN)
    assert is_damaged(repository, PIN + "-another")


def test_a_pack_cut_short_is_noticed_and_a_rotten_byte_by_reading_everything(
    repository: Repository, pack: Path
) -> None:
    data = bytearray(pack.read_bytes())
    data[20] ^= 0xFF
    pack.write_bytes(data)
    assert not is_sound(repository, PIN)

    pack.write_bytes(data[:-30])
    assert read_pin(repository, PIN) is None


def test_a_partial_repository_has_the_last_url_as_it_was(tmp_path: Path) -> None:
    repository = init_repository(tmp_path / "r.git")
    for url in ("https://example.org/first", 'file:///a b/ü#;c"d\\e'):
        assert make_partial(repository, url) == "upstream"
    assert repository.git("config", "--get-all", "remote.upstream.url").out.decode() == f"{url}\n"
    assert repository.git("config", "extensions.partialClone").out == b"upstream\n"


@pytest.mark.parametrize(
    "date", ["1700000000 +0130", "0 +0000", "7 -0000", "007 +0000", "99999999999 -0200", "7", ""]
)
def test_a_base_is_one_whoever_reads_it(repository: Repository, date: str) -> None:
    """Dates that git would not write, too."""
    blob, tree, _ = _objects()
    head = f"tree {tree.oid}\nauthor Ann <ann@example.com> 1 +0000\n"
    head += f"committer Ann <ann@example.com> {date}\n\nHello\n"
    commit = make_object("commit", head.encode())
    write_objects(repository, [blob, tree, commit])
    oid = CommitId(commit.oid)
    with reading(repository) as reader:
        assert read_base(repository, oid, reader) == read_base(repository, oid)
