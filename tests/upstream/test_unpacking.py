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
from patchkit.upstream.archive import Limits, Member, unpack
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


def _unpack(tmp_path: Path, data: bytes, limits: Limits | None = None) -> tuple[Member, ...]:
    archive = tmp_path / "archive"
    archive.write_bytes(data)
    return unpack(archive, limits)


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", ""])
def test_a_tar_is_unpacked(tmp_path: Path, compression: str) -> None:
    files = {name: content for name, content in TREE.items() if not name.endswith("/")}

    assert _unpack(tmp_path, make_tar(files, compression=compression)) == MEMBERS


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    assert _unpack(tmp_path, make_zip(TREE)) == MEMBERS


def test_order_times_and_owners_do_not_matter(tmp_path: Path) -> None:
    files = {name: content for name, content in TREE.items() if not name.endswith("/")}
    turned = dict(reversed(files.items()))

    assert _unpack(tmp_path, make_tar(turned, mtime=1234567890)) == MEMBERS


def test_only_a_folder_around_everything_is_taken_off(tmp_path: Path) -> None:
    members = _unpack(tmp_path, make_tar({"src/a": "1", "src/b": "2", "README": "3"}))

    assert [member.path for member in members] == ["README", "src/a", "src/b"]


def test_dots_in_names_are_nothing(tmp_path: Path) -> None:
    members = _unpack(tmp_path, make_tar({"./d/./a": "1", "d//b": "2"}))

    assert [member.path for member in members] == ["a", "b"]


def test_a_hard_link_becomes_a_copy(tmp_path: Path) -> None:
    data = tar_of(
        [
            tar_member("d/a", b"1", mode=0o755),
            tar_member("d/b", type=tarfile.LNKTYPE, linkname="d/a"),
        ]
    )

    assert _unpack(tmp_path, data)[1] == Member("b", EXECUTABLE_MODE, b"1")


def test_the_same_file_twice_is_one(tmp_path: Path) -> None:
    data = tar_of([tar_member("d/a", b"1"), tar_member("d/a", b"1")])

    assert _unpack(tmp_path, data) == (Member("a", FILE_MODE, b"1"),)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ([tar_member("../a", b"1")], "../a: path that leaves the tree"),
        ([tar_member("d/../../a", b"1")], "d/../../a: path that leaves the tree"),
        ([tar_member("/etc/passwd", b"1")], "/etc/passwd: absolute path"),
        ([tar_member("d/.git/config", b"1")], "d/.git/config: path inside a .git folder"),
        ([tar_member("d/.GIT/hooks/x", b"1")], ".git folder"),
        ([tar_member("d/git~1/x", b"1")], ".git folder"),
        ([tar_member("d/dev", type=tarfile.CHRTYPE)], "d/dev: device or pipe"),
        ([tar_member("d/pipe", type=tarfile.FIFOTYPE)], "d/pipe: device or pipe"),
        ([tar_member("d/l", type=tarfile.SYMTYPE, linkname="/etc/passwd")], "out of the archive"),
        ([tar_member("d/l", type=tarfile.SYMTYPE, linkname="../../x")], "out of the archive"),
        ([tar_member("d/l", type=tarfile.SYMTYPE, linkname="")], "out of the archive"),
        ([tar_member("d/h", type=tarfile.LNKTYPE, linkname="/etc/passwd")], "no file before it"),
        ([tar_member("d/h", type=tarfile.LNKTYPE, linkname="d/h")], "no file before it"),
        ([tar_member("d/a", b"1"), tar_member("d/a", b"2")], "a: twice in the archive"),
        ([tar_member("d/a", b"1"), tar_member("d/a/b", b"2")], "a: both a file and a folder"),
        (
            [
                tar_member("d/lib", type=tarfile.SYMTYPE, linkname="bin"),
                tar_member("d/lib/x", b"1"),
            ],
            "lib: both a file and a folder",
        ),
        (
            [
                tar_member("d/lib", type=tarfile.SYMTYPE, linkname="bin"),
                tar_member("d/LIB/x", b"1"),
            ],
            "LIB/x: differs only in case from the link lib",
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], complaint: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        _unpack(tmp_path, tar_of([tar_member("d/ok", b""), *members]))

    assert complaint in str(caught.value)
    assert "d/ok" not in str(caught.value)


def test_every_offender_is_named(tmp_path: Path) -> None:
    data = tar_of([tar_member("../a", b"1"), tar_member("/b", b"1"), tar_member("d/c", b"1")])

    with pytest.raises(BadInputError) as caught:
        _unpack(tmp_path, data)

    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("name", ["../a", "/a", "d/.git/x", "d\\..\\.git\\x"])
def test_a_zip_is_not_believed_either(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError):
        _unpack(tmp_path, make_zip({"d/ok": "", name: "1"}))


def test_an_archive_that_claims_too_much(tmp_path: Path) -> None:
    data = make_tar({f"d/{n}": b"\0" * (1 << 18) for n in range(5)})
    assert len(data) < 1 << 14

    with pytest.raises(BadInputError, match="unpacks to more than 1 MiB"):
        _unpack(tmp_path, data, Limits(size=1 << 20))


def test_an_archive_with_too_many_members(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="more than 3 members"):
        _unpack(tmp_path, make_zip({f"d/{n}": "" for n in range(4)}), Limits(members=3))


@pytest.mark.parametrize("cut", [0, 1, 30, 200])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_what_is_no_archive(tmp_path: Path, kind: str, cut: int) -> None:
    files = {f"d/{n}.txt": f"{n}\n" * 99 for n in range(20)}
    data = make_tar(files) if kind == "tar" else make_zip(files)

    with pytest.raises(BadInputError, match="not a readable archive"):
        _unpack(tmp_path, data[:cut])


def test_a_tar_that_ends_early(tmp_path: Path) -> None:
    whole = make_tar({"d/a": "x" * 5000}, compression="")

    with pytest.raises(BadInputError, match="not a readable archive"):
        _unpack(tmp_path, whole[:3000])


def test_a_zip_with_a_password(tmp_path: Path) -> None:
    data = bytearray(make_zip({"d/a": "1"}))
    for place in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1  # the flag for an encrypted member

    with pytest.raises(BadInputError, match="not a readable archive"):
        _unpack(tmp_path, bytes(data))


def test_a_damaged_member_of_a_zip(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("d/a", "some text that is stored")
    data = out.getvalue().replace(b"some text", b"same text")

    with pytest.raises(BadInputError, match="not a readable archive"):
        _unpack(tmp_path, data)
