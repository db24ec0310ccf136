"""`import --3way`: patches that were made for another commit stop in a bump's conflict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ops.test_resume import Bumping
from tests.support.projects import Project, write_files
from tests.support.repos import Content, Upstream, git_in, make_patch
from tests.support.stacked import Stacked, lines

pytestmark = pytest.mark.slow

_PIN: dict[str, Content] = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}
_LATER = {"a.txt": lines({5: "upstream five\n"}), "b.txt": lines({30: "upstream thirty\n"})}
#: What two commits on top of the later version make of it; the first conflicts with the pin.
_FIX = {"a.txt": lines({5: "upstream five, mended\n", 6: "six\n"})}
_NEXT = {"b.txt": lines({10: "ten\n", 30: "upstream thirty\n"}), "new.txt": "new\n"}
_RESOLVED = lines({5: "line 5, mended\n", 6: "six\n"})
_FACTS = "%an <%ae>%n%ad%n%B"


@pytest.fixture
def mails(upstream: Upstream, tmp_path: Path) -> list[Path]:
    """Two mails that `git format-patch` made on a later version than the pin."""
    pin = upstream.commit(_PIN, "The pin")
    upstream.tag("v1", pin)
    later = upstream.commit(_LATER, "Upstream moves on")
    upstream.tag("v2", later)
    clone = tmp_path / "clone"
    git_in(tmp_path, "clone", "-q", str(upstream.path), "clone")
    for number, files in enumerate((_FIX, _NEXT), 1):
        for name, text in files.items():
            (clone / name).write_text(text)
        git_in(clone, "add", "-A")
        message = f"Mend number {number}\n\nFor a test.\n\nSigned-off-by: Zoë <zoe@example.org>"
        git_in(
            clone,
            *("-c", "user.name=c", "-c", "user.email=c@example.org", "commit", "-q"),
            *("--author=Zoë <zoe@example.org>", "--date=2024-03-04T05:06:07+0200", "-m", message),
        )
    git_in(clone, "format-patch", "-q", "-2", "-o", str(tmp_path / "mails"))
    return sorted((tmp_path / "mails").iterdir())


@pytest.fixture
def stack(project: Project, upstream: Upstream, mails: list[Path]) -> Bumping:
    """A checkout at the pin with one patch on another file; the branch has the later version."""
    assert mails
    patch = make_patch(_PIN, {"c.txt": lines({9: "nine\n"})}, subject="Own patch")
    pin = upstream.at("refs/tags/v1")
    project.component("demo", upstream, pin, {"own.patch": patch}, track="main")
    return Bumping.applied(project)


def _am(upstream: Upstream, folder: Path, mails: list[Path]) -> Path:
    """A clone at the pin in which `git am -3` stopped, was resolved, and went on."""
    git_in(folder, "clone", "-q", str(upstream.path), "am")
    clone = folder / "am"
    git_in(clone, "config", "user.name", "c")
    git_in(clone, "config", "user.email", "c@example.org")
    git_in(clone, "checkout", "-q", "v1")
    git_in(clone, "am", "-3", "-q", *map(str, mails), accept=(1, 128))
    (clone / "a.txt").write_text(_RESOLVED)
    git_in(clone, "add", "a.txt")
    git_in(clone, "am", "-q", "--continue")
    return clone


@pytest.mark.parametrize("base", [(), ("--base", "v2")])
def test_the_outcome_is_that_of_git_am(
    stack: Bumping, upstream: Upstream, mails: list[Path], tmp_path: Path, base: tuple[str, ...]
) -> None:
    stack.run("import", str(mails[0].parent), "--3way", *base).ends(
        3, "patchkit continue -m demo -c demo"
    )
    assert "||||||| base" in stack.read("a.txt")
    assert stack.series == ["own.patch"]
    stack.write("a.txt", _RESOLVED)
    stack.run("continue").ok().shows("imported  demo")
    assert stack.series == ["own.patch", "Mend-number-1.patch", "Mend-number-2.patch"]
    clone = _am(upstream, tmp_path, mails)
    for path in ("a.txt", "b.txt", "new.txt"):
        assert stack.read(path) == (clone / path).read_text()
    wanted = git_in(clone, "log", "-2", f"--format={_FACTS}").decode()
    ours = stack.git("log", "-2", f"--format={_FACTS}")
    assert re.sub(r"Patchkit-Patch: .*\n", "", ours + "\n").split() == wanted.split()
    stack.settled()
    stack.run("check").ok().shows("ok")
    stack.run("undo").ok()
    assert stack.series == ["own.patch"]
    assert not (stack.checkout / "new.txt").exists()
    stack.settled()


def test_what_does_not_conflict_needs_no_stop(stack: Bumping, mails: list[Path]) -> None:
    stack.run("import", str(mails[1]), "--3way").ok()
    assert stack.series == ["own.patch", "mend-number-2.patch"]
    assert stack.patch("mend-number-2.patch").startswith(b"From ")
    stack.settled()
    stack.run("undo").ok()
    stack.settled()


def test_abort_and_undo_give_back_everything(stack: Bumping, mails: list[Path]) -> None:
    before = stack.state
    for way in ("abort", "undo"):
        stack.run("import", str(mails[0].parent), "--3way").ends(3)
        for verb in ("status", "apply", "refresh"):
            ran = stack.run(verb)
            assert "in the middle of an import" in ran.out + ran.err
            assert "bump" not in ran.out + ran.err
        stack.run(way).ok()
        assert stack.state == before


def test_a_skipped_patch_does_not_come_in(stack: Bumping, mails: list[Path]) -> None:
    stack.run("import", str(mails[0].parent), "--3way").ends(3)
    stack.run("skip").ok()
    assert stack.series == ["own.patch", "Mend-number-2.patch"]
    assert sorted(p.name for p in (stack.project.root / "patches/demo").iterdir()) == [
        "Mend-number-2.patch",
        "own.patch",
        "series",
    ]
    stack.settled()


def test_all_skipped_leaves_the_series(stack: Bumping, mails: list[Path]) -> None:
    before = stack.product
    stack.run("import", str(mails[0]), "--3way").ends(3)
    stack.run("skip").ok()
    assert stack.product == before
    stack.settled()


def test_a_patch_of_the_series_is_merged_where_it_stands(stack: Bumping, mails: list[Path]) -> None:
    """The way that `check` prints for a patch that does not fit, typed as it is printed."""
    folder = stack.project.root / "patches" / "demo"
    write_files(folder, {"fix.patch": mails[0].read_bytes(), "series": "fix.patch\nown.patch\n"})
    ran = stack.run("check").ends(1)
    command = next(row for row in ran.out.splitlines() if "--3way" in row).split()
    stack.run(*command[command.index("patchkit") + 1 :]).ends(3)
    stack.write("a.txt", _RESOLVED)
    stack.run("continue").ok()
    assert stack.series == ["fix.patch", "own.patch"]
    assert b"=?UTF-8?q?Zo=C3=AB?= <zoe@example.org>" in stack.patch("fix.patch")
    stack.settled()


@pytest.mark.parametrize("index", [rb"index 1234567..\1", rb""])
def test_without_a_base_in_sight_it_is_resolved_by_hand(
    stack: Bumping, mails: list[Path], tmp_path: Path, index: bytes
) -> None:
    """Nothing can be merged; the author stays all the same, and --base is named."""
    odd = tmp_path / "odd.patch"
    odd.write_bytes(re.sub(rb"index [0-9a-f]+\.\.(.*\n)", index, mails[0].read_bytes()))
    stack.run("import", str(odd), "--3way").ends(3, "--base COMMIT")
    stack.run("continue").says("nothing of")
    stack.write("a.txt", _RESOLVED)
    stack.run("continue").ok()
    assert stack.git("log", "-1", "--format=%an %ae") == "Zoë zoe@example.org"
    stack.settled()
    stack.run("undo").ok()
    stack.run("import", str(odd), "--3way", "--base", "v2").ends(3)
    assert "||||||| base" in stack.read("a.txt")


def test_edits_in_the_checkout_come_first(stack: Bumping, mails: list[Path]) -> None:
    stack.write("b.txt", lines({1: "mine\n"}))
    stack.run("import", str(mails[0]), "--3way").ends(1, "takes its edits up")
    assert stack.read("b.txt") == lines({1: "mine\n"})


def test_without_a_checkout_one_is_made_for_the_conflict(
    project: Project, upstream: Upstream, mails: list[Path]
) -> None:
    project.component("demo", upstream, upstream.at("refs/tags/v1"), {}, track="main")
    project.run("import", str(mails[0]), "--3way", "--dry-run").ends(3)
    assert not project.checkout("demo").exists()
    project.run("import", str(mails[0]), "--3way").ends(3)
    (project.checkout("demo") / "a.txt").write_text(_RESOLVED)
    project.run("continue").ok()
    Stacked(project, project.checkout("demo")).settled()
