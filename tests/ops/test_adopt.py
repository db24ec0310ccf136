"""Patches come in from wherever they were kept."""

from __future__ import annotations

import base64
import quopri
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch
from tests.support.stacked import NAMES, ONE, STATES, lines, small_patches


@pytest.fixture
def patches() -> dict[str, bytes]:
    return small_patches()


@pytest.fixture
def empty(project: Project, upstream: Upstream) -> Project:
    """A component `demo` at the small stack's base, without any patch."""
    project.component("demo", upstream, upstream.commit(STATES[0], "The base"))
    return project


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
    assert "unchanged" in project.run("refresh").ok().out


def test_leading_folders_are_taken_off(empty: Project, tmp_path: Path) -> None:
    before, after = {"src/a.txt": lines()}, {"src/a.txt": lines(ONE)}
    patch = tmp_path / "one.patch"
    patch.write_bytes(make_patch(before, after, subject="One"))
    assert empty.run("import", str(patch)).code == 1
    empty.run("import", str(patch), "--strip", "2").ok()
    assert empty.files()["patches/demo/series"] == b"one.patch -p2\n"
    empty.run("check").ok()


def test_a_folder_in_the_order_of_its_numbers(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    names = ("2-one.patch", "0010 Two!.diff", "0011-three.patch")
    for name, data in zip(names, patches.values(), strict=True):
        (folder / name).write_bytes(data)
    (folder / "README").write_text("not a patch\n")
    empty.run("import", str(folder)).ok().shows("applies  patches/demo/2-one.patch")
    assert _series(empty) == ["2-one.patch", "two.patch", "three.patch"]
    assert _stored(empty) == list(patches.values())
    text = (empty.root / "manifests/demo.yaml").read_text()
    assert "patches:\n      - {series: patches/demo/series}" in text
    _applies(empty)


def test_a_folder_in_the_order_asked_for(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    for name, new in zip(NAMES, ("z.patch", "m.patch", "a.patch"), strict=True):
        (folder / new).write_bytes(patches[name])
    order = [f"--order={name}" for name in ("z.patch", "m.patch", "a.patch")]
    empty.run("import", str(folder), *order).ok()
    assert _series(empty) == ["z.patch", "m.patch", "a.patch"]
    empty.run("import", str(folder), "--order", "nobody.patch").ends(
        2, "nobody.patch: no such patch"
    )


@pytest.mark.parametrize("given", ["", ".patches"])
def test_a_list_of_any_name_says_the_order(
    empty: Project, tmp_path: Path, patches: dict[str, bytes], given: str
) -> None:
    """Electron's is called `.patches`; by name, or by their numbers, these would not apply."""
    folder = tmp_path / "chromium"
    folder.mkdir()
    listed = dict(zip(NAMES, ("0003-z.patch", "0002-m.patch", "0001-a.patch"), strict=True))
    for name, new in listed.items():
        (folder / new).write_bytes(patches[name])
    (folder / ".patches").write_text("".join(f"{new}\n" for new in listed.values()))
    (folder / "README.md").write_text("Patches:\n\n0001-a.patch\n\nare ours, in this order.\n")
    empty.run("import", str(folder / given)).ok()
    assert _series(empty) == list(listed.values())
    assert _stored(empty) == [patches[name] for name in NAMES]
    _applies(empty)


def test_a_folder_that_gives_no_order_is_refused(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    """Some have no number, two the same one, or two files give an order."""
    for names in (("b.patch", "a.patch"), ("01-b.patch", "1-a.patch"), ("1-b.patch", "a.patch")):
        folder = tmp_path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(patches["one.patch"])
        empty.run("import", str(folder)).ends(2, "nothing says in which order")
        for list_ in (".patches", "series.conf"):
            (folder / list_).write_text("".join(f"{name}\n" for name in names))
        empty.run("import", str(folder)).ends(2, f"{folder / '.patches'}  goes by that one")


def test_a_list_in_place_is_a_series(project: Project, upstream: Upstream) -> None:
    patches = small_patches()
    folder = "patches/demo"
    project.component(
        "demo",
        upstream,
        upstream.commit(STATES[0], "The base"),
        patches=[{"series": f"{folder}/.patches"}],
    )
    listed = dict(zip(("one.patch", "two..patch", "c~3.patch"), patches.values(), strict=True))
    project.write({f"{folder}/{name}": data for name, data in listed.items()})
    project.write({f"{folder}/.patches": "".join(f"{name}\n" for name in listed)})
    project.run("apply").ok()
    (project.checkout("demo") / "more.txt").write_text("more\n")
    git_in(project.checkout("demo"), "add", "more.txt")
    project.run("refresh", "--rest", "more").ok()
    order = project.files()[f"{folder}/.patches"].decode().split()
    assert order == ["one.patch", "two..patch", "c~3.patch", "more.patch"]


def test_a_quilt_series(empty: Project, tmp_path: Path, patches: dict[str, bytes]) -> None:
    folder = tmp_path / "src" / "patches"
    (folder / "fixes").mkdir(parents=True)
    (folder / "one").write_bytes(patches["one.patch"])
    (folder / "fixes/two.diff").write_bytes(
        patches["two.patch"].replace(b" a/", b" ").replace(b" b/", b" ")
    )
    (folder / "three.patch").write_bytes(patches["three.patch"])
    (folder / "unused.patch").write_bytes(b"nonsense")
    (folder / "series").write_text("# mine\none\nfixes/two.diff -p0  # flat\n\nthree.patch -p1\n")
    empty.run("import", str(folder.parent)).ok()
    text = empty.files()["patches/demo/series"].decode()
    assert text == "one\nfixes/two.diff -p0\nthree.patch\n"
    _applies(empty)


def test_a_reversed_patch_of_a_quilt_series_is_refused(empty: Project, tmp_path: Path) -> None:
    (tmp_path / "series").write_text("one.patch -R\n")
    (tmp_path / "one.patch").write_bytes(b"")
    empty.run("import", str(tmp_path / "series")).ends(4, "has the option -R")


def _mail(data: bytes, number: int) -> bytes:
    return b"From %040d Mon Sep 17 00:00:00 2001\n" % number + data + b"-- \n2.39\n\n"


def test_a_mailbox(empty: Project, tmp_path: Path, patches: dict[str, bytes]) -> None:
    mails = [_mail(data, number) for number, data in enumerate(patches.values())]
    (tmp_path / "all.mbox").write_bytes(b"".join(mails))
    empty.run("import", str(tmp_path / "all.mbox")).ok()
    assert _series(empty) == ["patch-one.patch", "patch-two.patch", "patch-three.patch"]
    assert _stored(empty) == mails
    _applies(empty)


def test_a_mailbox_with_the_line_ends_of_its_transport(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    """CRLF in every line of a mail is not the patch's, as for git mailsplit."""
    mails = [_mail(data, number) for number, data in enumerate(patches.values())]
    (tmp_path / "all.mbox").write_bytes(b"".join(mails).replace(b"\n", b"\r\n"))
    empty.run("import", str(tmp_path / "all.mbox")).ok()
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


def test_a_range_of_commits(empty: Project, clone: Path, patches: dict[str, bytes]) -> None:
    empty.run("import", str(clone), "--git", "origin/main..HEAD").ok()
    assert _series(empty) == ["patch-one.patch", "patch-two.patch", "patch-three.patch"]
    assert _stored(empty) == list(patches.values())
    _applies(empty)


def test_a_checkout_gives_its_commits_and_its_edits(empty: Project, clone: Path) -> None:
    (clone / "c.txt").write_text("edited\n")
    (clone / "untracked").write_text("not told of\n")
    objects = sorted((clone / ".git/objects").rglob("*"))
    index = (clone / ".git/index").read_bytes()
    empty.run("import", str(clone), "--message", "Spell c").ok()
    assert _series(empty)[3:] == ["spell-c.patch"]
    assert b"untracked" not in _stored(empty)[3]
    assert _stored(empty)[3].startswith(b"From: Ursula User <user@example.com>\n")
    assert sorted((clone / ".git/objects").rglob("*")) == objects
    assert (clone / ".git/index").read_bytes() == index
    _applies(empty)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_git_was_told_not_to_see_is_taken(
    empty: Project, clone: Path, flag: str
) -> None:
    git_in(clone, "update-index", flag, "c.txt", "b.txt")
    (clone / "c.txt").write_text("edited\n")
    index = (clone / ".git/index").read_bytes()
    empty.run("import", str(clone), "--message", "Spell c").ok()
    assert b"+++ b/c.txt" in _stored(empty)[3]
    assert b"b.txt" not in _stored(empty)[3]
    assert (clone / ".git/index").read_bytes() == index
    _applies(empty)


def test_a_sparse_checkout_has_not_lost_the_rest(empty: Project, clone: Path) -> None:
    git_in(clone, "sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not (clone / "c.txt").exists()
    empty.run("import", str(clone)).ok()
    assert _series(empty) == ["patch-one.patch", "patch-two.patch", "patch-three.patch"]


def test_what_git_was_told_of_in_any_way_is_taken(empty: Project, clone: Path) -> None:
    """git add, git add --intent-to-add, git rm, rm, chmod."""
    (clone / "added").write_text("added\n")
    (clone / "intended").write_text("intended\n")
    git_in(clone, "add", "added")
    git_in(clone, "add", "--intent-to-add", "intended")
    git_in(clone, "rm", "--quiet", "c.txt")
    (clone / "added.txt").unlink()
    (clone / "b.txt").chmod(0o755)
    empty.run("import", str(clone)).ok()
    data = _stored(empty)[3]
    for text in (b"+added\n", b"+intended\n", b"-line 1\n", b"-new\n", b"new mode 100755"):
        assert text in data


@pytest.mark.parametrize(
    ("range_", "words"),
    [
        ("origin/main", "is no range"),
        ("HEAD...main", "is no range"),
        ("nobody..HEAD", "nobody: no such commit"),
        ("--output=x..HEAD", "no such commit"),
    ],
)
def test_a_range_that_is_none(empty: Project, clone: Path, range_: str, words: str) -> None:
    empty.run("import", str(clone), f"--git={range_}").ends(2, words)


def test_what_does_not_apply_is_not_written(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    (tmp_path / "two.patch").write_bytes(patches["two.patch"].replace(b"-line 20", b"-line xx"))
    (tmp_path / "three.patch").write_bytes(patches["three.patch"])
    (tmp_path / "series").write_text("two.patch\nthree.patch\n")
    before = empty.files(), empty.files("manifests")
    empty.run("import", str(tmp_path / "series")).ends(1, "--force").shows(
        "conflicted  patches/demo/two.patch"
    )
    assert (empty.files(), empty.files("manifests")) == before
    empty.run("import", str(tmp_path / "series"), "--force").ends(1)
    assert _series(empty) == ["two.patch", "three.patch"]


def test_where_a_patch_does_not_apply_the_same_line_merges_it(
    empty: Project, upstream: Upstream, clone: Path, patches: dict[str, bytes], tmp_path: Path
) -> None:
    text = str(STATES[0]["b.txt"]).replace("line 10\n", "upstream's\n")
    empty.component("demo", upstream, upstream.commit({"b.txt": text}))
    folder = tmp_path / "two words"
    folder.mkdir()
    for name, data in patches.items():
        (folder / name).write_bytes(data.replace(b" a/", b" x/a/").replace(b" b/", b" x/b/"))
    last = list(patches)[-1]
    for argv in (["--order", last, "--strip", "2"], ["--git", "HEAD~1..HEAD"]):
        source = clone if "--git" in argv else folder
        words = ["import", str(source), *argv]
        empty.run(*words).ends(1, "the same with --3way merges")
        assert not (empty.root / "patches").exists()
        empty.run(*words, "--3way").ends(3, "stopped at ")
        empty.run("abort").ok()
        assert empty.run(*words, "--force").code == 1
        assert _series(empty)[0].endswith("three.patch")
        empty.run("undo").ok()


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_a_listed_patch_that_cannot_be_read_stays_beside_what_comes_in(
    empty: Project, patches: dict[str, bytes], tmp_path: Path, how: str
) -> None:
    """It is named, keeps its line and its name, and the lock does not speak for the series."""
    first, second, _ = patches.items()
    (tmp_path / first[0]).write_bytes(first[1])
    empty.run("import", str(tmp_path / first[0])).ok()
    listed = empty.root / "patches/demo/series"
    listed.write_text(f"{first[0]} # kept\nbad.patch -p1 # mine\n")
    bad = empty.root / "patches/demo/bad.patch"
    if how == "damaged":
        bad.write_bytes(b"--- a/a.txt\n+++ b/a.txt\n@@ -1,9 +1,9 @@\n-one\n+two\n")
    before = empty.files()
    (tmp_path / "bad.patch").write_bytes(second[1])
    ran = empty.run("import", str(tmp_path / "bad.patch")).ok()
    where = "patches/demo/bad.patch:3" if how == "damaged" else "patches/demo/series:2"
    assert f"warning: {where}: " in ran.err
    (new,) = {name: data for name, data in empty.files().items() if name not in before}
    text = f"{first[0]} # kept\nbad.patch -p1 # mine\n{Path(new).name}\n"
    changed = {"patches/demo/series": text.encode(), new: second[1]}
    assert (empty.files(), Path(new).name != "bad.patch") == ({**before, **changed}, True)
    assert empty.run("check").code == empty.run("apply").code == 4
    empty.run("undo").ok()
    assert empty.files() == before


def test_a_dry_run_writes_nothing(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    (tmp_path / "one.patch").write_bytes(patches["one.patch"])
    before = empty.files(), empty.files("manifests")
    empty.run("import", str(tmp_path / "one.patch"), "--dry-run").ok()
    assert (empty.files(), empty.files("manifests")) == before


def test_names_do_not_collide_and_the_same_patch_comes_once(
    project: Project, upstream: Upstream, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    pin = upstream.commit(STATES[0])
    project.component("demo", upstream, pin, {"two.patch": patches["one.patch"]})
    project.write({"patches/demo/THREE.patch": b"unlisted\n"})
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.patch").write_bytes(patches[f"{name}.patch"])
    (tmp_path / "series").write_text("one.patch\ntwo.patch\nthree.patch\n")
    project.run("import", str(tmp_path / "series")).ok()
    assert _series(project) == ["two.patch", "two-2.patch", "three-2.patch"]
    assert project.files()["patches/demo/THREE.patch"] == b"unlisted\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no diff"),
        (b"Just words.\n", "holds no diff"),
        (b"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n", "one.patch:"),
    ],
)
def test_what_is_no_patch_is_refused(
    empty: Project, tmp_path: Path, data: bytes, words: str
) -> None:
    (tmp_path / "one.patch").write_bytes(data)
    empty.run("import", str(tmp_path / "one.patch")).ends(4, words)


def test_a_source_that_is_not_there(empty: Project, tmp_path: Path) -> None:
    assert empty.run("import", str(tmp_path / "nowhere")).code == 2
    (tmp_path / "hollow").mkdir()
    empty.run("import", str(tmp_path / "hollow")).ends(2, "holds no .patch")


def test_json_says_what_came_from_where(
    empty: Project, tmp_path: Path, patches: dict[str, bytes]
) -> None:
    (tmp_path / "one.patch").write_bytes(patches["one.patch"])
    document = empty.run("import", str(tmp_path / "one.patch"), "--json").ok().json
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
