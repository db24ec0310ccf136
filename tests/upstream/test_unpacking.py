"""Archives are not believed: what is plain comes through, what is not is named."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from patchkit.errors import BadInputError
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    SYMLINK_MODE,
)
from patchkit.upstream.archive import Budget, Member, unpack
from tests.support.archives import Content, make_tar, make_zip, tar_member, tar_of
from tests.support.repos import Symlink, executable

TREE: dict[str, Content] = {
    "demo-1.0/": "",
    "demo-1.0/a.txt": "text\n",
    "demo-1.0/bin/run": executable("#!/bin/sh\n"),
    "demo-1.0/bin/link": Symlink("../a.txt"),
    "demo-1.0/ünï.txt": b"\x00\xff",
}
MEMBERS = (
    Member("a.txt", FILE_MODE, b"text\n"),
    Member("bin/link", SYMLINK_MODE, b"../a.txt"),
    Member("bin/run", EXECUTABLE_MODE, b"#!/bin/sh\n"),
    Member("ünï.txt", FILE_MODE, b"\x00\xff"),
)


def _unpack(tmp_path: Path, data: bytes, budget: Budget | None = None) -> tuple[Member, ...]:
    archive = tmp_path / "archive"
    archive.write_bytes(data)
    return unpack(archive, budget)


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", ""])
def test_a_tar_is_unpacked(tmp_path: Path, compression: str) -> None:
    """Order and times do not matter."""
    files = {name: content for name, content in TREE.items() if not name.endswith("/")}
    turned = make_tar(dict(reversed(files.items())), mtime=1234567890)

    assert _unpack(tmp_path, make_tar(files, compression=compression)) == MEMBERS
    assert _unpack(tmp_path, turned) == MEMBERS


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    assert _unpack(tmp_path, make_zip(TREE)) == MEMBERS


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        ({"src/a": "1", "src/b": "2", "README": "3"}, ["README", "src/a", "src/b"]),
        ({"./d/./a": "1", "d//b": "2"}, ["a", "b"]),
    ],
)
def test_only_dots_and_a_folder_around_everything_are_taken_off(
    tmp_path: Path, files: dict[str, Content], paths: list[str]
) -> None:
    assert [member.path for member in _unpack(tmp_path, make_tar(files))] == paths


def test_a_hard_link_becomes_a_copy_and_a_file_twice_is_one(tmp_path: Path) -> None:
    run = tar_member("d/a", b"1", mode=0o755)
    link = tar_member("d/b", type=tarfile.LNKTYPE, linkname="d/a")

    assert _unpack(tmp_path, tar_of([run, run, link])) == (
        Member("a", EXECUTABLE_MODE, b"1"),
        Member("b", EXECUTABLE_MODE, b"1"),
    )


BAD_PATHS = {
    "../a": "../a: path that leaves the tree",
    "d/../../a": "d/../../a: path that leaves the tree",
    "/etc/passwd": "/etc/passwd: absolute path",
    "d/.git/config": "d/.git/config: path inside a .git folder",
    "d/.GIT/hooks/x": ".git folder",
    "d/git~1/x": ".git folder",
}


def _link(target: str) -> tuple[tarfile.TarInfo, bytes]:
    return tar_member("d/l", type=tarfile.SYMTYPE, linkname=target)


def _hard_link(target: str) -> tuple[tarfile.TarInfo, bytes]:
    return tar_member("d/h", type=tarfile.LNKTYPE, linkname=target)


def test_every_offender_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        _unpack(tmp_path, tar_of([tar_member(each) for each in (*BAD_PATHS, "d/c")]))

    assert len(caught.value.problems) == len(BAD_PATHS)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        *(([tar_member(path)], said) for path, said in BAD_PATHS.items()),
        *(([_link(target)], "out of the archive") for target in ("/etc/passwd", "../../x", "")),
        ([tar_member("d/dev", type=tarfile.CHRTYPE)], "d/dev: device or pipe"),
        ([tar_member("d/pipe", type=tarfile.FIFOTYPE)], "d/pipe: device or pipe"),
        ([_hard_link("/etc/passwd")], "no file before it"),
        ([_hard_link("d/h")], "no file before it"),
        ([tar_member("d/a", b"1"), tar_member("d/a", b"2")], "a: twice in the archive"),
        ([tar_member("d/a", b"1"), tar_member("d/a/b", b"2")], "a: both a file and a folder"),
        ([_link("bin"), tar_member("d/l/x")], "l: both a file and a folder"),
        ([_link("bin"), tar_member("d/L/x")], "L/x: differs only in case from the link l"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], complaint: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        _unpack(tmp_path, tar_of([tar_member("d/ok", b""), *members]))

    assert complaint in str(caught.value)
    assert "d/ok" not in str(caught.value)


@pytest.mark.parametrize("name", ["../a", "/a", "d/.git/x", "d\\..\\.git\\x"])
def test_a_zip_is_not_believed_either(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError):
        _unpack(tmp_path, make_zip({"d/ok": "", name: "1"}))


def test_an_archive_that_claims_too_much(tmp_path: Path) -> None:
    data = make_tar({f"d/{n}": b"\0" * (1 << 18) for n in range(5)})
    assert len(data) < 1 << 14

    with pytest.raises(BadInputError, match="unpacks to more than 1 MiB"):
        _unpack(tmp_path, data, Budget(size=1 << 20))


def test_an_archive_with_too_many_members(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="more than 3 members"):
        _unpack(tmp_path, make_zip({f"d/{n}": "" for n in range(4)}), Budget(members=3))


def _locked(archive: bytes) -> bytes:
    """A zip that says that its only member is encrypted."""
    data = bytearray(archive)
    for place in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    return bytes(data)


def _stored() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("d/a", "some text that is stored")
    return out.getvalue()


FILES: dict[str, Content] = {f"d/{n}.txt": f"{n}\n" * 99 for n in range(20)}


@pytest.mark.parametrize(
    "data",
    [
        *(
            pytest.param(make(FILES)[:cut], id=f"{cut} bytes of {make.__name__}")
            for make in (make_tar, make_zip)
            for cut in (0, 1, 30, 200)
        ),
        pytest.param(make_tar({"d/a": "x" * 5000}, compression="")[:3000], id="ends early"),
        pytest.param(_locked(make_zip({"d/a": "1"})), id="has a password"),
        pytest.param(_stored().replace(b"some text", b"same text"), id="is damaged"),
    ],
)
def test_an_archive_that_cannot_be_read(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadInputError, match="not a readable archive"):
        _unpack(tmp_path, data)
