"""Patches come in from wherever they were kept."""

from __future__ import annotations

import base64
import quopri
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in, make_patch
from tests.support.stacked import ONE, STATES, lines, small_patches


@pytest.fixture
def patches() -> dict[str, bytes]:
    return small_patches()


@pytest.fixture
def empty(project: Project, upstream: Upstream) -> Project:
    """A component `demo` at the small stack's base, without any patch."""
    project.component("demo", upstream, upstream.commit(STATES[0], "The base"))
    return project


_OF_SUBJECTS = ["patch-one.patch", "patch-two.patch", "patch-three.patch"]


def _series(project: Project) -> list[str]:
    return project.files()["patches/demo/series"].decode().split()


def _stored(project: Project) -> list[bytes]:
    files = project.files()
    return [files[f"patches/demo/{name}"] for name in _series(project)]


def _applies(project: Project) -> None:
    """The series gives the small stack's tree, and the lock agrees."""
    project.prepare("apply").ok()
    checkout = project.checkout("demo")
    assert "twenty\nand more" in (checkout / "a.txt").read_text()
    assert (checkout / "added.txt").read_text() == "new\nfile\n"
    project.run("refresh").ok().shows("unchanged")


def test_leading_folders_are_taken_off(empty: Project, tmp_path: Path) -> None:
    before, after = {"src/a.txt": lines()}, {"src/a.txt": lines(ONE)}
    patch = tmp_path / "one.patch"
    patch.write_bytes(make_patch(before, after, subject="One"))
    empty.run("import", str(patch)).ends(1)
    empty.run("import", str(patch), "--strip", "2").ok()
    assert empty.files()["patches/demo/series"] == b"one.patch -p2\n"
    empty.run("check").ok()


def test_a_folder_in_the_order_of_its_numbers(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    names = ("2-one.patch", "0010 Two!.diff", "0011-three.patch")
    write_files(tmp_path / "raw", {**dict(zip(names, patches.values(), strict=True)), "README": ""})
    empty.run("import", str(tmp_path / "raw")).ok().shows("applies  patches/demo/2-one.patch")
    assert _series(empty) == ["2-one.patch", "two.patch", "three.patch"]
    assert _stored(empty) == list(patches.values())
    text = empty.read("manifests/demo.yaml")
    assert "patches:\n      - {series: patches/demo/series}" in text
    _applies(empty)


@pytest.mark.parametrize("given", ["", ".patches"])
def test_a_list_of_any_name_says_the_order(
    empty: Project, tmp_path: Path, patches: dict[str, bytes], given: str
) -> None:
    """Electron's is called `.patches`; by name, or by their numbers, these would not apply."""
    names = ["0003-z.patch", "0002-m.patch", "0001-a.patch"]
    folder = tmp_path / "chromium"
    write_files(folder, dict(zip(names, patches.values(), strict=True)))
    prose = "Patches:\n\n0001-a.patch\n\nare ours, in this order.\n"
    write_files(folder, {".patches": "\n".join([*names, ""]), "README.md": prose})
    empty.run("import", str(folder / given)).ok()
    assert _series(empty) == names
    assert _stored(empty) == list(patches.values())
    _applies(empty)


def test_a_folder_that_gives_no_order_is_refused(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    """Some have no number, two the same one, or two files give an order."""
    for names in (("b.patch", "a.patch"), ("01-b.patch", "1-a.patch"), ("1-b.patch", "a.patch")):
        folder = tmp_path / names[0]
        write_files(folder, dict.fromkeys(names, patches["one.patch"]))
        empty.run("import", str(folder)).ends(2, "nothing says in which order")
        write_files(folder, dict.fromkeys((".patches", "series.conf"), "\n".join([*names, ""])))
        empty.run("import", str(folder)).ends(2, f"{folder / '.patches'}  goes by that one")


def test_a_list_in_place_is_a_series(project: Project, upstream: Upstream) -> None:
    place = {"series": "patches/demo/.patches"}
    project.component("demo", upstream, upstream.commit(STATES[0], "The base"), [place])
    names = ["one.patch", "two..patch", "c~3.patch"]
    files = dict(zip(names, small_patches().values(), strict=True))
    write_files(project.root / "patches/demo", {**files, ".patches": "\n".join([*names, ""])})
    project.run("apply").ok()
    (project.checkout("demo") / "more.txt").write_text("more\n")
    project.git("add", "more.txt")
    project.run("refresh", "--rest", "more").ok()
    assert project.files()["patches/demo/.patches"].decode().split() == [*names, "more.patch"]


def test_a_quilt_series(empty: Project, tmp_path: Path, patches: dict[str, bytes]) -> None:
    rows = "# mine\none\nfixes/two.diff -p0  # flat\n\nthree.patch -p1\n"
    files = {
        "one": patches["one.patch"],
        "fixes/two.diff": patches["two.patch"].replace(b" a/", b" ").replace(b" b/", b" "),
        "three.patch": patches["three.patch"],
        "unused.patch": b"nonsense",
        "series": rows.encode(),
    }
    write_files(tmp_path / "src/patches", files)
    empty.run("import", str(tmp_path / "src")).ok()
    text = empty.files()["patches/demo/series"].decode()
    assert text == "one\nfixes/two.diff -p0\nthree.patch\n"
    _applies(empty)


def _mail(data: bytes, number: int) -> bytes:
    return b"From %040d Mon Sep 17 00:00:00 2001\n" % number + data + b"-- \n2.39\n\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_mailbox(empty: Project, tmp_path: Path, patches: dict[str, bytes], end: bytes) -> None:
    """CRLF in every line of a mail is not the patch's, as for git mailsplit."""
    mails = [_mail(data, number) for number, data in enumerate(patches.values())]
    (tmp_path / "all.mbox").write_bytes(b"".join(mails).replace(b"\n", end))
    empty.run("import", str(tmp_path / "all.mbox")).ok()
    assert _series(empty) == _OF_SUBJECTS
    assert _stored(empty) == mails
    _applies(empty)


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_a_mail_in_a_transfer_encoding_is_written_anew(
    empty: Project, tmp_path: Path, patches: dict[str, bytes], encoding: str
) -> None:
    encode = base64.encodebytes if encoding == "base64" else quopri.encodestring
    mails = []
    for number, data in enumerate(patches.values()):
        head, _, body = data.partition(b"\n\n")
        head += b"\nContent-Transfer-Encoding: " + encoding.encode()
        mails.append(_mail(head + b"\n\n" + encode(body), number).removesuffix(b"-- \n2.39\n\n"))
    (tmp_path / "all.mbox").write_bytes(b"\n".join(mails))
    empty.run("import", str(tmp_path / "all.mbox")).ok()
    assert b"\n+twenty\n" in _stored(empty)[1]
    _applies(empty)


@pytest.fixture
def clone(empty: Project, upstream: Upstream, tmp_path: Path, patches: dict[str, bytes]) -> Path:
    """A clone of the upstream with the small stack as commits."""
    git_in(tmp_path, "clone", "--quiet", str(upstream.path), "clone")
    for name, data in patches.items():
        (tmp_path / name).write_bytes(data)
        git_in(tmp_path / "clone", "am", "--quiet", str(tmp_path / name))
    return tmp_path / "clone"


def test_of_a_repository_git_writes_the_commits(
    empty: Project, clone: Path, tmp_path: Path
) -> None:
    ran = empty.run("import", str(clone)).ends(2, "which of its commits?")
    [command] = re.findall(r"hint: (git .* format-patch .*?)  writes those", ran.err)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    empty.run("import", str(tmp_path / "commits.mbox")).ok()
    assert _series(empty) == _OF_SUBJECTS
    _applies(empty)


def test_what_does_not_apply_is_not_written(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    bad = patches["two.patch"].replace(b"-line 20", b"-line xx")
    series = "two.patch\nthree.patch\n"
    write_files(
        tmp_path,
        {"two.patch": bad, "three.patch": patches["three.patch"], "series": series},
    )
    with empty.untouched():
        empty.run("import", str(tmp_path / "series")).ends(1, "--force").shows(
            "conflicted  patches/demo/two.patch"
        )
    empty.run("import", str(tmp_path / "series"), "--force").ends(1)
    assert _series(empty) == ["two.patch", "three.patch"]


def test_where_a_patch_does_not_apply_the_same_line_merges_it(
    empty: Project, upstream: Upstream, clone: Path, patches: dict[str, bytes], tmp_path: Path
) -> None:
    text = str(STATES[0]["b.txt"]).replace("line 10\n", "upstream's\n")
    empty.component("demo", upstream, {"b.txt": text})
    folder = tmp_path / "two words"
    folder.mkdir()
    for name, data in patches.items():
        (folder / name).write_bytes(data.replace(b" a/", b" x/a/").replace(b" b/", b" x/b/"))
    last = list(patches)[-1]
    git_in(clone, "format-patch", "-q", "-1", "-o", str(tmp_path / "mails"))
    for source, strip in ((folder / last, "2"), (tmp_path / "mails", "1")):
        words = ["import", str(source), "--strip", strip]
        empty.run(*words).ends(1, "the same with --3way merges")
        assert not (empty.root / "patches").exists()
        empty.run(*words, "--3way").ends(3, "stopped at ")
        empty.run("abort").ok()
        empty.run(*words, "--force").ends(1)
        assert _series(empty)[0].endswith("three.patch")
        empty.run("undo").ok()


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_a_listed_patch_that_cannot_be_read_stays_beside_what_comes_in(
    empty: Project, patches: dict[str, bytes], tmp_path: Path, how: str
) -> None:
    """It is named, keeps its line and its name, and the lock does not speak for the series."""
    (tmp_path / "one.patch").write_bytes(patches["one.patch"])
    empty.run("import", str(tmp_path / "one.patch")).ok()
    rows = "one.patch # kept\nbad.patch -p1 # mine\n"
    empty.write({"patches/demo/series": rows})
    if how == "damaged":
        empty.write({"patches/demo/bad.patch": "--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@\n-one\n+two\n"})
    before = empty.files()
    (tmp_path / "bad.patch").write_bytes(patches["two.patch"])
    where = "patches/demo/bad.patch:3" if how == "damaged" else "patches/demo/series:2"
    empty.run("import", str(tmp_path / "bad.patch")).ok().says(f"warning: {where}: ")
    (new,) = empty.files().keys() - {*before, "patches/demo/bad.patch"}
    text = f"{rows}{Path(new).name}\n"
    assert empty.files() == before | {
        "patches/demo/series": text.encode(),
        new: patches["two.patch"],
    }
    for verb in ("check", "apply"):
        empty.run(verb).ends(4)
    empty.run("undo").ok()
    assert empty.files() == before


def test_names_do_not_collide_and_the_same_patch_comes_once(
    project: Project, upstream: Upstream, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    project.component("demo", upstream, STATES[0], {"two.patch": patches["one.patch"]})
    project.write({"patches/demo/THREE.patch": b"unlisted\n"})
    write_files(tmp_path, {**patches, "series": "\n".join(patches)})
    project.run("import", str(tmp_path / "series")).ok()
    assert _series(project) == ["two.patch", "two-2.patch", "three-2.patch"]
    assert project.files()["patches/demo/THREE.patch"] == b"unlisted\n"


@pytest.mark.parametrize(
    ("source", "text", "code", "said"),
    [
        ("one.patch", "\n", 4, "holds no diff"),
        ("one.patch", "Just words.\n", 4, "holds no diff"),
        ("one.patch", "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n", 4, "one.patch:"),
        ("series", "README -R\n", 4, "README is to be applied in reverse"),
        ("", "", 2, "holds no .patch"),
        ("nowhere", "", 2, "nowhere"),
    ],
)
def test_what_is_no_patch_is_refused(
    empty: Project, source: str, text: str, code: int, said: str
) -> None:
    empty.write({"given/README": "no patch\n"})
    if text:
        empty.write({f"given/{source}": text})
    empty.run("import", f"given/{source}").ends(code, said)


def test_json_says_what_came_from_where(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    (tmp_path / "one.patch").write_bytes(patches["one.patch"])
    argv = ("import", str(tmp_path / "one.patch"), "--json")
    with empty.untouched():
        assert empty.run(*argv, "--dry-run").ok().json["written"] is False
        empty.run(*argv[:2], "--dry-run").ok().says("a dry run: nothing was written")
    document = empty.run(*argv).ok().json
    assert document["schema"] == "patchkit/import/2"
    assert document["written"] is True
    assert document["patches"] == [
        {
            "name": "one.patch",
            "source": str(tmp_path / "one.patch"),
            "file": "patches/demo/one.patch",
            "status": "unchanged",
        }
    ]
