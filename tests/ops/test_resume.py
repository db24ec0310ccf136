"""A bump that stops at a conflict: the checkout holds it, and every way on or back is safe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patchkit.disk.files import UNFINISHED
from patchkit.stack.lockfile import load_lock
from tests.support.commands import Ran, run
from tests.support.projects import Project, write_files
from tests.support.repos import (
    Content,
    Submodule,
    Symlink,
    Upstream,
    executable,
    make_patch,
)
from tests.support.stacked import ONE, STATES, Stacked, lines, small_patches

MANIFEST = "manifests/demo.yaml"
MARKED = """\
<<<<<<< upstream {new}
upstream five
line 6
||||||| base {old}
line 5
line 6
=======
five
six
>>>>>>> one.patch: Patch one
"""


class Bumping(Stacked):
    """A stack whose upstream moved on so that one.patch and three.patch conflict."""

    @property
    def state(self) -> tuple[object, ...]:
        """All that a bump may change, and must give back."""
        return (
            *self.product,
            self.git("show-ref"),
            self.git("ls-files", "--stage"),
            self.git("status", "--porcelain"),
            (self.checkout / ".git/HEAD").read_text(),
            {path.name: path.read_bytes() for path in self.checkout.iterdir() if path.is_file()},
        )

    @property
    def product(self) -> tuple[object, ...]:
        """What is in the project, but for what a killed writer left beside a file."""
        found = self.project.files(), self.project.files("manifests")
        return tuple(
            {name: data for name, data in files.items() if not name.endswith(UNFINISHED)}
            for files in found
        )

    @property
    def state_but_kept(self) -> tuple[object, ...]:
        """The same, less what the way back leaves: saved refs, and recorded resolutions."""
        files, *rest = _without_saved(self.state)
        assert isinstance(files, dict)
        left = {name: each for name, each in files.items() if not name.endswith(".resolution")}
        return (left, *rest)

    def bump(self, *argv: str) -> Ran:
        return self.prepare("bump", "demo", "--to", "main", *argv)

    def write(self, name: str, text: str) -> None:
        (self.checkout / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.checkout / name).read_text()

    def resolve_one(self) -> Ran:
        """Resolve the conflict of one.patch, and go on to that of three.patch."""
        self.resolve("a.txt", "upstream FIVE\nsix\n")
        return self.run("continue").ends(3)

    def resolve(self, name: str, text: str) -> None:
        """Put `text` in the place of the conflict."""
        before = self.read(name)
        start, end = before.index("<<<<<<< "), before.index(">>>>>>> ")
        end = before.index("\n", end) + 1
        self.write(name, before[:start] + text + before[end:])


def _without_saved(state: tuple[object, ...]) -> tuple[object, ...]:
    rows = [row for row in str(state[2]).splitlines() if "/saved/" not in row]
    return (*state[:2], "\n".join(rows), *state[3:])


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Bumping:
    stack = Bumping.of(project, upstream, small_patches())
    upstream.commit({"a.txt": lines({5: "upstream five\n"}), "c.txt": "c\n"}, "Say five (#7)")
    upstream.commit({"b.txt": lines({10: "X\n"})}, "Say ten (#8)")
    text = lines({5: "upstream five\n", 30: "thirty\n"})
    upstream.commit({"a.txt": text}, "Say thirty (#9)")
    return stack


@pytest.fixture
def halted(stack: Bumping) -> Bumping:
    """A bump that waits at the conflict of one.patch."""
    stack.bump().ends(3)
    return stack


# -- on ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_checkout_holds_the_conflict(stack: Bumping, upstream: Upstream) -> None:
    before = stack.product
    with stack.untouched():
        foreseen = stack.bump("--dry-run").ends(3, "the checkout gets the conflict")
    foreseen.shows("conflicted  one.patch")
    ran = (
        stack.bump()
        .ends(
            3,
            "stopped at one.patch: its conflict is in",
            *(f"patchkit {each} -m demo -c demo" for each in ("continue", "skip", "abort")),
        )
        .shows(
            "one.patch: Patch one\n  For a test.\n  in conflict: a.txt",
            "later patches on these files: two.patch",
        )
    )
    # the commit that touched these lines, and not the others that touched the file
    told = ran.out.split("upstream: ")
    assert [each.splitlines()[0].partition(": ")[2] for each in told[1:]] == ["Say five (#7)"]
    assert "Ann Author" in told[1]
    names = {"new": upstream.at("main")[:10], "old": upstream.at("main~3")[:10]}
    assert MARKED.format(**names) in stack.read("a.txt")
    assert stack.read("c.txt") == "c\n"
    assert stack.git("ls-files", "--unmerged").count("a.txt") == 3
    assert stack.product == before


@pytest.mark.slow
def test_a_conflict_without_upstreams_history_says_so(stack: Bumping, upstream: Upstream) -> None:
    new = upstream.at("main")
    stack.run("bump", "demo", "--to", new, "--dry-run").ends(3)
    for folder in stack.project.root.parent.rglob("histories"):
        folder.rename(folder.with_name("gone"))
    ran = (
        stack.run("bump", "demo", "--to", new, "--offline")
        .ends(3)
        .shows(f"upstream's commits are not named: the history of {new} is not in the cache")
    )
    assert "upstream: " not in ran.out
    assert "<<<<<<<" in stack.read("a.txt")


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 2])
def test_a_committed_resolution_is_taken(halted: Bumping, commits: int) -> None:
    """As `git rebase --continue` does; it comes to the same as one that is not committed."""
    halted.resolve("a.txt", "upstream FIVE\nsix\n")
    template = halted.state
    halted.git("commit", "-qam", "Resolved")
    if commits == 2:
        halted.write("more.txt", "more\n")
        halted.git("add", "more.txt")
        halted.git("commit", "-qm", "And more")
    mine = halted.git("rev-parse", "HEAD")
    ran = halted.run("continue").ends(3)
    kept = halted.git("for-each-ref", "--format=%(refname)", "--points-at", mine, "refs/patchkit")
    assert kept.startswith("refs/patchkit/saved/")
    assert kept in ran.out + ran.err
    halted.write("b.txt", halted.read("b.txt").replace("X\n", "X, ten\n"))
    halted.resolve("b.txt", "X, ten\n")
    halted.git("commit", "-qam", "The second one")
    halted.run("continue").ok()
    patch = halted.patch("one.patch").decode()
    assert "+upstream FIVE" in patch
    assert "Subject: Patch one\n" in patch
    assert ("+more" in patch) == (commits == 2)
    halted.settled()
    halted.run("undo").ok()
    assert halted.product != template


@pytest.mark.slow
@pytest.mark.parametrize("way", ["skip", "abort", "undo"])
def test_a_commit_on_a_conflict_is_kept_by_every_way_off(stack: Bumping, way: str) -> None:
    before = stack.state_but_kept
    stack.bump().ends(3)
    stack.git("commit", "-qam", "Not resolved at all")
    mine = stack.git("rev-parse", "HEAD")
    stack.run(way)
    stack.run("abort")
    assert stack.git("for-each-ref", "--contains", mine, "refs/patchkit/saved")
    assert stack.state_but_kept == before


@pytest.mark.parametrize("how", ["amend", "other branch", "dropped"])
def test_commits_that_are_no_resolution_are_refused(
    halted: Bumping, upstream: Upstream, how: str
) -> None:
    halted.resolve("a.txt", "upstream FIVE\nsix\n")
    halted.git("add", "-A")
    if how == "amend":
        halted.git("commit", "-q", "--amend", "-m", "Upstream's own commit, changed")
    elif how == "other branch":
        halted.git("checkout", "-q", "-b", "mine")
        halted.git("commit", "-qm", "Elsewhere")
    else:
        halted.git("update-ref", "refs/heads/patchkit", upstream.at("main~3"))
    with halted.untouched():
        halted.run("continue").ends(1, "the commits in the checkout have changed", "reset --soft")


@pytest.mark.slow
def test_resolved_conflicts_become_the_patches(stack: Bumping, upstream: Upstream) -> None:
    before = stack.product
    stack.bump().ends(3)
    stack.resolve_one().says("stopped at three.patch")
    assert stack.product == before
    # what was carried of the patch is there, and two.patch is below it
    assert stack.read("added.txt") == "new\nfile\n"
    assert "twenty\nand more\n" in stack.read("a.txt")
    stack.resolve("b.txt", "ten\n")
    stack.run("continue").ok().shows("bumped  demo")
    assert b"+upstream FIVE\n" in stack.patch("one.patch")
    assert stack.series == ["one.patch", "two.patch", "three.patch"]
    assert upstream.at("main") in stack.project.read(MANIFEST)
    lock = load_lock(stack.project.root / "manifests/demo.lock.json")
    assert lock is not None
    assert lock.components["demo"].result == stack.git("rev-parse", "HEAD^{tree}")
    assert "refs/patchkit/halt" not in stack.git("show-ref")
    stack.settled()
    stack.run("check").ok()


@pytest.mark.slow
def test_conflict_markers_are_no_resolution(halted: Bumping) -> None:
    """Nor in a file that is added, nor in one that is committed."""
    with halted.untouched():
        halted.run("continue").ends(
            1,
            "a.txt:5: has conflict markers in lines 5, 8, 11, 14",
            "one.patch still waits: 1 file to resolve",
            "then: patchkit continue -m demo -c demo",
        ).shows("! waiting  demo")
    for step in (("add", "a.txt"), ("commit", "-qm", "Not resolved at all")):
        halted.git(*step)
        with halted.untouched():
            halted.run("continue").ends(1, "a.txt:5: has conflict markers in lines 5, 8, 11")


@pytest.mark.slow
@pytest.mark.parametrize("left", ["=======", "|||||||", "||||||| base", ">>>>>>> one.patch"])
def test_a_lone_marker_is_no_resolution(halted: Bumping, left: str) -> None:
    halted.resolve("a.txt", f"upstream FIVE\n{left}\nsix\n")
    halted.run("continue").ends(1, "a.txt:6: has conflict markers in line 6")


@pytest.mark.slow
def test_a_line_of_the_file_s_own_is_no_marker(project: Project, upstream: Upstream) -> None:
    """What underlines a title in reStructuredText looks like one."""
    text = "Title\n=======\n\nold\n"
    project.patched(upstream, {"doc.rst": text}, {"doc.rst": text.replace("old", "ours")})
    project.prepare("apply").ok()
    upstream.commit({"doc.rst": text.replace("old", "theirs")})
    stack = Bumping(project, project.checkout("demo"))
    stack.bump().ends(3)
    stack.write("doc.rst", text.replace("old", "theirs and ours"))
    stack.run("continue").ok()


@pytest.mark.slow
def test_all_that_is_left_is_named(stack: Bumping, upstream: Upstream) -> None:
    upstream.commit({"added.txt": "theirs\n", "b.txt": lines({10: "X\n"})}, "Add it")
    stack.bump().ends(3)
    stack.resolve_one()
    stack.run("continue").ends(
        1,
        "added.txt: is not decided",
        "b.txt:10: has conflict markers",
        "three.patch still waits: 2 files to resolve",
    )
    here = run("continue", cwd=stack.checkout)  # what it says to type has no ".."
    here.says(
        f"hint: keep it:      git -C {stack.checkout} add added.txt\n",
        f"or delete it: git -C {stack.checkout} rm added.txt\n",
    )


@pytest.mark.slow
def test_a_patch_of_which_nothing_is_left_is_asked_about(halted: Bumping) -> None:
    halted.resolve("a.txt", "upstream five\nline 6\n")
    halted.run("continue").ends(1, "nothing of one.patch is left")


@pytest.mark.slow
def test_what_was_merged_beside_a_conflict_is_still_to_review(
    stack: Bumping, upstream: Upstream
) -> None:
    """The pull request names it, though a person has resolved the patch's conflict."""
    upstream.commit(
        {"a.txt": lines(), "added.txt": "theirs\n", "b.txt": lines({9: "line 9\nnine\n"})}
    )
    stack.bump().ends(3).shows("b.txt, look")
    stack.write("added.txt", "new\nfile\nand theirs\n")
    stack.git("add", "added.txt")
    ran = stack.run("continue").ok()
    resolved = ran.out[ran.out.index("! resolved  three.patch") :]
    assert "added.txt\n        its conflict was resolved by hand" in resolved
    assert "b.txt, look" in resolved
    stack.settled()


@pytest.fixture
def away(project: Project, upstream: Upstream) -> Project:
    """A bump that waits at three.patch in the workspace `elsewhere`; two.patch is carried."""
    project.component("demo", upstream, STATES[0], small_patches())
    project.prepare("apply", "--workspace", "elsewhere").ok()
    text = lines({22: "upstream 22\n"})
    upstream.commit({"a.txt": text, "b.txt": lines({10: "X\n"})}, "Say ten (#8)")
    project.prepare("bump", "demo", "--to", "main", "--workspace", "elsewhere").ends(3)
    return project


@pytest.mark.slow
def test_skip_reports_as_a_bump_does(away: Project) -> None:
    away.run("skip").ends(1, "no bump")
    away.run("skip", "--diff", "--workspace", "elsewhere").ok().shows(
        "left out  three.patch", "--- old/three.patch\n+++ /dev/null\n"
    )
    away.run("bump", "--output", "body.md", "--workspace", "elsewhere").ok()
    text = away.read("body.md")
    assert text.startswith("## Bump demo from")
    assert "### Dropped (1)\n\n- `three.patch` Patch three" in text
    assert away.read("patches/demo/series") == "one.patch\ntwo.patch\n"


@pytest.mark.slow
def test_a_skipped_patch_leaves_the_series(halted: Bumping) -> None:
    halted.resolve("a.txt", "my own five\nline 6\n")
    ran = halted.run("skip").ends(3)
    saved = [row.split()[1] for row in halted.git("show-ref").splitlines() if "/saved/" in row]
    assert saved[0] in ran.out + ran.err
    assert "my own five" in halted.git("show", f"{saved[0]}:a.txt")
    halted.run("skip").ok().shows("2 earlier patches as reported before", "left out  three.patch")
    assert halted.series == ["two.patch"]
    assert not (halted.project.root / "patches/demo/one.patch").exists()
    halted.settled()


@pytest.mark.slow
def test_a_proposal_is_taken_on_demand(project: Project, upstream: Upstream) -> None:
    """Both sides change words of one line: no merge, as most such are wrong, but one to take."""
    one = make_patch({"a.txt": lines()}, {"a.txt": lines({5: "line 5 of mine\n"})}, subject="One")
    stack = Bumping.of(project, upstream, {"one.patch": one})

    upstream.commit({"a.txt": lines({5: "their line 5\n"})})
    ran = stack.bump().ends(3).shows("a merge is proposed: doubtful")
    assert "<<<<<<< " in stack.read("a.txt")
    ran.says("patchkit continue --accept -m demo -c demo")
    stack.run("status").ok().says("patchkit continue --accept -m demo -c demo")
    stack.resolve("a.txt", "my own\n")
    ran = stack.run("continue", "--accept").ok().shows("the proposed merge was taken")
    saved = [row.split()[1] for row in stack.git("show-ref").splitlines() if "/saved/" in row]
    assert "my own" in stack.git("show", f"{saved[0]}:a.txt")
    assert "their line 5 of mine\n" in stack.read("a.txt")
    ran.shows("a.txt, doubtful")
    stack.settled()


def test_where_nothing_is_proposed_nothing_is_taken(halted: Bumping) -> None:
    with halted.untouched():
        halted.run("continue", "--accept").ends(1, "there is no proposal for one.patch")


@pytest.mark.slow
def test_a_file_that_upstream_deleted_is_decided_by_git(stack: Bumping, upstream: Upstream) -> None:
    upstream.commit({"a.txt": lines()}, "No five")
    upstream.commit({"b.txt": None}, "No b")
    stack.bump().ends(3).shows("b.txt  no markers: git add or git rm it")
    stack.run("continue").ends(1, "b.txt: is not decided")
    stack.git("rm", "-q", "--cached", "b.txt")
    (stack.checkout / "b.txt").unlink()
    stack.run("continue").ok()
    assert b"added.txt" in stack.patch("three.patch")
    assert b"b.txt" not in stack.patch("three.patch")
    stack.settled()


@pytest.mark.slow
def test_new_files_count_once_git_was_told(stack: Bumping, upstream: Upstream) -> None:
    upstream.commit({"b.txt": lines()}, "No ten")
    stack.bump().ends(3)
    stack.resolve("a.txt", "five\nsix\n")
    stack.write("helper.txt", "help\n")
    stack.git("add", "helper.txt")
    stack.run("continue").ok()
    assert b"+help\n" in stack.patch("one.patch")
    stack.settled()


# -- back -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_abort_gives_back_every_byte(stack: Bumping) -> None:
    before = stack.state
    for steps in range(3):
        stack.bump().ends(3)
        if steps:
            stack.resolve_one()
        if steps > 1:
            stack.resolve("b.txt", "ten\n")
        stack.run("abort").ok()
        saved = [row for row in str(stack.state[2]).splitlines() if "/saved/" in row]
        # what was resolved, and what was done to the conflict after it
        assert len(saved) == steps
        assert stack.state_but_kept == before
        for row in saved:
            stack.git("update-ref", "-d", row.split()[1])


@pytest.mark.slow
def test_undo_goes_back_step_by_step(stack: Bumping) -> None:
    start = stack.state
    stack.bump().ends(3)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    stack.git("add", "a.txt")
    first = stack.state
    stack.run("continue").ends(3)
    stack.run("undo").ok().shows("waits at one.patch again")
    assert stack.state == first
    stack.run("continue").ends(3)
    stack.run("skip").ok()
    assert stack.state != start
    stack.run("undo").ok().shows("patches/demo/three.patch")
    assert stack.state_but_kept == start
    stack.run("undo").ends(1)


@pytest.mark.slow
def test_undo_gives_back_what_was_staged_and_what_was_not(halted: Bumping) -> None:
    """A conflict in two files, one of them resolved; a file staged and edited on, one removed."""
    halted.write("b.txt", "staged\n")
    halted.write("gone.txt", "staged, then away\n")
    halted.git("add", "b.txt", "gone.txt")
    halted.write("b.txt", "staged\nand more\n")
    (halted.checkout / "gone.txt").unlink()
    left = halted.state
    halted.run("skip").ends(3)
    halted.git("gc", "-q", "--prune=now")
    halted.run("undo").ok()
    assert halted.git("show", ":b.txt").strip() == "staged"
    assert _without_saved(halted.state) == left


@pytest.mark.slow
def test_a_link_in_the_place_of_a_conflict_is_not_followed(stack: Bumping, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(MARKED)
    stack.bump().ends(3)
    (stack.checkout / "a.txt").unlink()
    (stack.checkout / "a.txt").symlink_to(tmp_path / "elsewhere")
    assert "a.txt" not in stack.run("continue").err


def _everything(stack: Bumping) -> dict[str, tuple[int, bytes]]:
    """Mode and contents of every path below the checkout, git's own folder aside."""
    found = {}
    for path in sorted(stack.checkout.rglob("*")):
        if path.relative_to(stack.checkout).parts[0] != ".git":
            data = str(path.readlink()).encode() if path.is_symlink() else b""
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else data
            found[str(path.relative_to(stack.checkout))] = (path.lstat().st_mode, data)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("back", ["abort", "undo", "continue, undo", "skip, undo"])
def test_all_that_a_checkout_can_hold_comes_back(
    project: Project, upstream: Upstream, back: str
) -> None:
    """Untracked and ignored files, a submodule, modes, CRLF, a link; and work on the conflict."""
    base: dict[str, Content] = {
        **STATES[0],
        "crlf.txt": lines().replace("\n", "\r\n"),
        "run.sh": executable("#!/bin/sh\n"),
        "link": Symlink("run.sh"),
        "deep/er/file": "deep\n",
        ".gitignore": "build/\n*.o\n",
        ".gitattributes": "*.txt -text\n",
        "vendor": Submodule("1" * 40),
    }
    text = str(base["crlf.txt"])
    patched = {"crlf.txt": text.replace("line 5\r", "five\r"), "a.txt": lines(ONE)}
    project.patched(upstream, base, {**base, **patched}, subject="Patch one", body="For a test.")
    stack = Bumping.applied(project)
    theirs = text.replace("line 5\r", "5\r")
    upstream.commit({"crlf.txt": theirs, "run.sh": "no more\n", "deep/er/file": None})
    upstream.commit({"link": None, "deep/er": "a file now\n", "a.txt": lines({30: "thirty\n"})})
    write_files(
        stack.checkout,
        {"build/out.o": "ignored\n", "mine.o": "ignored, too\n", "notes.txt": "untracked\n"},
    )
    (stack.checkout / "notes.txt").chmod(0o755)
    before, state = _everything(stack), stack.state
    stack.bump().ends(3)
    marked = (stack.checkout / "crlf.txt").read_bytes()
    resolved = re.sub(rb"(?s)<<<<<<<.*>>>>>>>.*?\n", b"FIVE\r\n", marked)
    write_files(
        stack.checkout,
        {"crlf.txt": resolved, "b.txt": "staged\n", "build/more.o": "made on the way\n"},
    )
    stack.git("add", "b.txt")
    (stack.checkout / "c.txt").chmod(0o755)
    for command in back.split(", "):
        stack.run(command).ok()
    (stack.checkout / "build/more.o").unlink()
    assert _everything(stack) == before
    assert _without_saved(stack.state) == state


@pytest.mark.slow
def test_undo_of_a_bump_without_conflicts(stack: Bumping, upstream: Upstream) -> None:
    upstream.commit({"a.txt": "first\n" + lines(), "b.txt": lines()}, "Start over")
    before = stack.state
    stack.bump().ok()
    assert stack.product != before[:2]
    stack.run("undo").ok()
    assert stack.state == before
    stack.bump().ok()
    path = stack.project.root / "patches/demo/one.patch"
    path.write_bytes(b"X-Note: x\n" + path.read_bytes())
    stack.run("undo").ends(1, "changed since")


def test_nothing_waits(stack: Bumping) -> None:
    with stack.untouched():
        for command in ("continue", "skip", "abort"):
            stack.run(command).ends(1, "no bump or import is in progress")


@pytest.mark.parametrize("command", ["continue", "skip", "abort", "undo"])
def test_nothing_waits_in_any_component(project: Project, upstream: Upstream, command: str) -> None:
    """No component is to blame."""
    pin = upstream.commit(STATES[0])
    project.component("one", upstream, pin)
    project.component("two", upstream, pin)
    ran = project.run(command)
    assert (ran.code, ran.err.startswith("error: demo: ")) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["continue", "skip", "abort"])
def test_a_conflict_over_a_pin_edited_by_hand_is_gone_on_from_without_a_lock(
    stack: Bumping, upstream: Upstream, step: str
) -> None:
    """The lock is another time's: the conflict says which patches it is about."""
    stack.project.repin(upstream.at("main"))
    stack.run("refresh").ends(3)
    (stack.project.root / "manifests/demo.lock.json").unlink()
    if step == "abort":
        stack.run("abort").ok()
        assert not stack.git("for-each-ref", "refs/patchkit/halt")
        return
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    stack.run(step).ends(3)
    stack.run("skip").ok()
    assert stack.series == ["one.patch", "two.patch"][step == "skip" :]
    stack.settled()


def test_a_pin_moved_by_hand_waits_for_a_checkout(stack: Bumping, upstream: Upstream) -> None:
    old, new = upstream.at("main~3"), upstream.at("main")
    stack.project.repin(new)
    stack.run("refresh", "--dry-run").ends(3, "without --dry-run, the checkout gets the conflict")
    stack.run("refresh", "--workspace", "elsewhere").ends(
        3,
        f"put the pin back:     sed -i s/{new}/{old}/ {MANIFEST}",
        f"patchkit bump demo -m demo --to {new}",
    )


# -- what may not be ----------------------------------------------------------------------------


@pytest.mark.slow
def test_other_commands_leave_a_waiting_checkout_alone(halted: Bumping) -> None:
    with halted.untouched():
        status = (
            halted.run("status")
            .ok()
            .says("patchkit continue -m demo -c demo", "patchkit abort")
            .shows("in the middle of a bump")
        )
        for argv in (("apply",), ("refresh",), ("bump", "demo", "--to", "main")):
            halted.run(*argv).ends(1, "patchkit continue")
    assert "--accept" not in status.err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["check", "ci"])
def test_a_check_names_what_waits(halted: Bumping, verb: str) -> None:
    """Green patches hide no checkout that waits; the exit code is that of the patches."""
    before = halted.state
    ran = halted.run(verb, "--json").ok()
    (component,) = ran.json.get("check", ran.json)["components"]
    (note,) = [each for each in component["findings"] if each["code"] == "waiting"]
    assert (note["severity"], note["where"]) == ("note", "demo")
    ran = (
        halted.run(verb, "--strict")
        .says("in the middle of a bump, stopped at a conflict", note["hint"].split("\n")[0])
        .shows("a conflict waits in its checkout")
    )
    assert "waits" not in halted.run(verb, "--workspace", "elsewhere").out
    assert halted.state == before
    halted.run("abort", *ran.err.partition("patchkit abort ")[2].split("\n")[0].split()).ok()
    assert "waits" not in halted.run(verb).out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "said"), [("base", "another version of patchkit"), ("nothing", "is missing from")]
)
def test_a_damaged_record_of_a_conflict_changes_no_verdict(
    halted: Bumping, names: str, said: str
) -> None:
    git = halted.checkout / ".git"
    oid = (git / "refs/patchkit/base").read_text() if names == "base" else "1" * 40
    (git / "refs/patchkit/halt").write_text(oid)
    halted.run("check").ok().says(said).shows("ok: 1 component")


@pytest.mark.slow
def test_apply_with_force_saves_the_conflict_and_goes(stack: Bumping) -> None:
    start = stack.state
    stack.bump().ends(3)
    stack.prepare("apply", "--force").ok()
    assert stack.state[3:] == start[3:]
    assert "refs/patchkit/halt" not in stack.git("show-ref")
    assert "refs/patchkit/saved/" in stack.git("show-ref")


@pytest.mark.slow
def test_work_in_the_checkout_is_no_place_for_a_conflict(
    stack: Bumping, upstream: Upstream
) -> None:
    upstream.commit({"notes.txt": "theirs\n"}, "Note")
    stack.write("notes.txt", "mine\n")
    with stack.untouched():
        stack.bump().ends(5, "untracked and in the way: notes.txt")
    stack.edit("c.txt", "line 3\n", "three\n")
    with stack.untouched():
        stack.bump().ends(1)


@pytest.mark.slow
def test_patches_that_changed_meanwhile_stop_it(halted: Bumping) -> None:
    halted.resolve("a.txt", "five\nsix\n")
    path = halted.project.root / "patches/demo/two.patch"
    path.write_bytes(b"From: x\n" + path.read_bytes())
    with halted.untouched():
        halted.run("continue").ends(1, "patches/demo/two.patch changed since it stopped")
    halted.run("abort").ok()


@pytest.mark.slow
def test_without_a_checkout_nothing_is_written(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    upstream.commit({"a.txt": lines({5: "upstream five\n"})})
    with project.untouched():
        project.run("bump", "demo", "--to", "main").ends(3, "nothing was written")
    assert not (project.root / "workspace").exists()


def test_what_a_kill_at_the_very_end_left_is_tidied_though_nothing_waits(stack: Bumping) -> None:
    left = stack.checkout / ".git" / "patchkit" / "move"
    left.mkdir()
    stack.run("skip").ends(1)
    assert not left.exists()


@pytest.mark.slow
def test_partial_carries_what_fits_and_says_what_it_left_out(stack: Bumping) -> None:
    start = stack.state
    stack.bump("--skip-conflicts", "--dry-run").ends(1, "without --skip-conflicts it stops at each")
    assert stack.state == start
    stack.bump("--skip-conflicts").ends(
        1, "left out, as they do not fit the new pin: one.patch, three.patch"
    ).shows("left out  one.patch")
    assert stack.series == ["two.patch"]
    assert sorted(stack.project.files()) == ["patches/demo/series", "patches/demo/two.patch"]
    stack.prepare("apply").ok()
    stack.run("check").ok()
    stack.run("undo").ok()
    assert stack.state == start


@pytest.mark.slow
def test_partial_leaves_nothing_out_that_could_not_come_back(stack: Bumping) -> None:
    with stack.untouched():
        stack.run(
            *("bump", "demo", "--to", "main", "--skip-conflicts", "--workspace", "elsewhere")
        ).ends(3)
