"""Patches that want out: nothing beyond the checkout is written, and nothing that git obeys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Files, Submodule, Symlink, Upstream, make_patch

pytestmark = pytest.mark.slow

BASE: Files = {"a.txt": "one\ntwo\n", "sub/b.txt": "b\n"}


def adding(path: str, *, mode: str = "100644", text: str = "pwned") -> bytes:
    """A patch that adds a file of one line."""
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1 @@\n+{text}\n"
    ).encode() + (b"\\ No newline at end of file\n" if mode == "120000" else b"")


def quoted(path: str) -> bytes:
    """The same with a name in quotes, as git writes odd names."""
    return (
        adding("NAME")
        .replace(b"a/NAME", f'"a/{path}"'.encode())
        .replace(b"b/NAME", f'"b/{path}"'.encode())
    )


def renaming(old: str, new: str, how: str = "rename") -> bytes:
    return (
        f"diff --git a/{old} b/{new}\nsimilarity index 100%\n{how} from {old}\n{how} to {new}\n"
    ).encode()


NAMES = [
    "../outside.txt",
    "sub/../../outside.txt",
    "/tmp/patchkit-outside.txt",
    ".git/config",
    ".git/hooks/post-checkout",
    ".GIT/config",
    "sub/.git/config",
    ".git./config",
    ".git /config",
    "git~1/config",
    ".git::$INDEX_ALLOCATION/config",
    ".g\u200cit/config",
    "sub\\..\\..\\outside.txt",
    "..\\.git\\config",
    "./outside.txt",
    "sub//outside.txt",
    "sub/./outside.txt",
    "sub/../../../../../../../../../../../../tmp/patchkit-outside.txt",
]
# one odd name, on a system where "\\" is a character; a mode that git takes as 100755
HARMLESS = {"sub\\..\\..\\outside.txt", "a mode that is none"}

PATCHES = {name: adding(name) for name in NAMES} | {
    "escaped dots": quoted("\\056\\056/outside.txt"),
    "escaped git": quoted("\\056git/config"),
    "a NUL": quoted("sub\\000/x"),
    "rename out": renaming("a.txt", "../outside.txt"),
    "rename into git": renaming("a.txt", ".git/config"),
    "copy from outside": renaming("../outside.txt", "mine.txt", "copy"),
    "copy from git": renaming(".git/config", "mine.txt", "copy"),
    "delete outside": adding("../kept.txt").replace(b"new file", b"deleted file"),
    "a link for .gitmodules": adding(".gitmodules", mode="120000", text="../outside.txt"),
    "a submodule in git": adding(".git", mode="160000", text=f"Subproject commit {'1' * 40}"),
    "through its own link": adding("way", mode="120000", text="..") + adding("way/outside.txt"),
    "a file in a file": adding("a.txt/outside.txt"),
    "a mode that is none": adding("x", mode="777777"),
    "absurd counts": b"--- a/a.txt\n+++ b/a.txt\n@@ -1,99999999999999 +1,99999999999999 @@\n one\n",
    "absurd place": b"--- a/a.txt\n+++ b/a.txt\n@@ -" + b"9" * 5000 + b" +1 @@\n-one\n+1\n",
    "counts below nothing": b"--- a/a.txt\n+++ b/a.txt\n@@ -1,-1 +1,-1 @@\n one\n",
}


@pytest.fixture
def pin(upstream: Upstream) -> str:
    return upstream.commit(BASE)


def everything(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of all files below, links by where they lead; but for the project's own."""
    found = {}
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("project", "cache", "home")]
        for path in (Path(above, name) for name in names):
            found[str(path)] = (
                os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            )
    return found


def test_nothing_gets_out(project: Project, upstream: Upstream, pin: str, tmp_path: Path) -> None:
    """A component for each: one command judges them all."""
    (tmp_path / "kept.txt").write_text("pwned\n")
    project.write({"kept.txt": "pwned\n"})
    numbers = {f"c{number}": name for number, name in enumerate(PATCHES)}
    for component, name in numbers.items():
        project.component(component, upstream, pin, {"x.patch": PATCHES[name]})
    before = everything(tmp_path)
    for command in ("check", "apply"):
        ran = project.run(command, "--json").ends(4)
        assert "bug" not in ran.err
        codes = {numbers[each["name"]]: each["exit_code"] for each in ran.json["components"]}
        assert {name for name, code in codes.items() if code == 0} == HARMLESS
        assert set(codes.values()) == {0, 1, 4}
    assert everything(tmp_path) == before
    assert not Path("/tmp/patchkit-outside.txt").exists()
    assert project.read("kept.txt") == "pwned\n"
    made = {path.name for path in (project.root / "workspace").iterdir()} - {
        ".patchkit",
        ".gitignore",
    }
    assert {numbers[each] for each in made} == HARMLESS


def test_a_later_patch_does_not_write_through_a_link(
    project: Project, upstream: Upstream, pin: str, tmp_path: Path
) -> None:
    (tmp_path / "target").mkdir()
    link = adding("way", mode="120000", text=str(tmp_path / "target"))
    patches = {"link.patch": link, "through.patch": adding("way/pwned.txt")}
    project.component("demo", upstream, pin, patches)
    project.run("apply").ends(1)
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.parametrize("turned", ["folder to link", "link to folder"])
def test_a_link_in_the_checkout_leads_nothing_astray(
    project: Project, upstream: Upstream, tmp_path: Path, turned: str
) -> None:
    """Moving between a folder and a link of the same name, both ways."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("mine\n")
    folder: Files = {"a.txt": "one\n", "way/b.txt": "b\n", "way/c.txt": "c\n"}
    link: Files = {"a.txt": "one\n", "way": Symlink(str(outside))}
    old, new = (folder, link) if turned == "folder to link" else (link, folder)
    project.component("demo", upstream, old)
    project.run("apply").ok()
    second = upstream.commit(new, parents=())
    project.component("demo", upstream, second)
    project.run("apply", "--accept").ok()
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"b.txt": "mine\n"}
    assert project.git("status", "--porcelain") == b""


@pytest.mark.parametrize("force", [False, True])
def test_a_link_of_the_users_is_not_written_through(
    project: Project, upstream: Upstream, pin: str, tmp_path: Path, force: bool
) -> None:
    """An untracked link stands where the new stack has a folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    project.component("demo", upstream, pin, {})
    project.run("apply").ok()
    (project.checkout("demo") / "new").symlink_to(outside)
    project.series("demo", {"x.patch": make_patch(BASE, {"new/deep/x.txt": "x\n"})})
    project.run("apply", "--accept", *["--force"] * force).ends(0 if force else 1)
    assert list(outside.iterdir()) == []
    assert (project.checkout("demo") / "new").is_symlink() is not force


def test_submodules_are_never_fetched(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    evil = (
        "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c 'touch PWNED'\n\tupdate = !touch PWNED\n"
    )
    evil = evil.replace("PWNED", str(tmp_path / "pwned"))
    project.patched(
        upstream,
        {".gitmodules": evil, "x": Submodule("1" * 40)},
        {".gitmodules": evil + "\tignore = all\n"},
        patch="x.patch",
    )
    project.run("apply").ok()
    assert not (tmp_path / "pwned").exists()
    assert list((project.checkout("demo") / "x").iterdir()) == []


def test_attributes_and_configuration_of_the_upstream_run_nothing(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    evil: Files = {
        ".gitattributes": "* filter=evil diff=evil merge=evil\n",
        ".gitconfig": f'[filter "evil"]\n\tsmudge = touch {tmp_path}/pwned\n',
        "a.txt": "one\n",
    }
    patch = make_patch({"a.txt": "one\n"}, {"a.txt": "two\n"})
    project.component("demo", upstream, evil, {"x.patch": patch})
    for command in ("apply", "check", "log", "refresh", "status"):
        project.run(command).ok()
    assert not (tmp_path / "pwned").exists()
