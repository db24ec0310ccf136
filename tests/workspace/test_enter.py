"""Bringing a checkout to a stack."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.pins import note_absent
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import CommitId
from patchkit.workspace import BRANCH, CheckoutState
from patchkit.workspace.changes import prepare_index
from patchkit.workspace.contents import blob_id
from patchkit.workspace.enter import Action, RefusalCause, Stacked
from tests.support.repos import Files, Submodule, Symlink, Upstream, executable, git_in
from tests.workspace.bench import BASE, CHANGE, STAMP, Bench, committed_files, disk_files

SAVED = f"refs/patchkit/saved/{STAMP}"


def traces(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What changes when a file is touched: inode, size and time of every file, .git included."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def test_first_time_makes_an_ordinary_repository_at_the_stack(bench: Bench) -> None:
    stack = bench.stack()
    entered = bench.enter(stack)
    assert (entered.action, entered.before.state) == (Action.CREATED, CheckoutState.ABSENT)
    bench.assert_at(stack)
    assert disk_files(bench.path) == committed_files(bench.path, stack.tip)
    assert bench.git("log", "--format=%s") == "patch 0\nbase"


def test_git_need_not_read_the_files_of_a_new_checkout_again(bench: Bench) -> None:
    """They are older than the index; what is edited in the same second is seen all the same."""
    bench.enter(bench.stack({**BASE, "d/link": Symlink("c"), "folder": Symlink("sub")}))
    written = int((bench.path / ".git/index").stat().st_mtime)
    shown = bench.git("ls-files", "--debug")
    times = [int(each) for each in re.findall(r"mtime: (\d+):", shown)]
    assert len(times) == len(bench.git("ls-files").splitlines())
    assert all(0 < each < written for each in times)
    bench.write("a.py", "0NE\n")
    assert bench.look().edited == ("a.py",)


@pytest.mark.slow
def test_an_edit_right_after_is_seen(bench: Bench) -> None:
    """However fast: of the same size, within the second in which the index was written."""
    stack = bench.stack(BASE, {"a.py": "aaa\n", "b.py": "bbb\n"})
    start = bench.stacked(stack.base, stack.base)
    bench.enter(start)
    for _ in range(5):
        bench.enter(stack)
        for name in ("a.py", "sub/c.py"):
            kept = (bench.path / name).read_bytes()
            bench.write(name, b"X" * len(kept))
            assert bench.look().edited == (name,)
            bench.write(name, kept)
        bench.enter(start)


def test_an_edit_of_another_file_stays_seen_after_a_move(bench: Bench) -> None:
    """Its row is as old as the index was: in the new index it must not pass for unedited."""
    bench.enter(bench.stack(BASE, {"a.py": "aaa\n"}))
    bench.git("update-index", "--force-remove", "b.py")
    second = int(bench.write("b.py", "two\n").stat().st_mtime) - 5
    os.utime(bench.path / "b.py", (second, second))
    bench.git("update-index", "--add", "b.py")
    index = bench.path / ".git/index"
    os.utime(index, (second, second))  # the file is as new as the index
    bench.write("b.py", "tWo\n")
    os.utime(bench.path / "b.py", (second, second))
    new = bench.path / ".git/index.new"
    prepare_index(bench.checkout.repository, index, new, CommitId("HEAD"))
    new.rename(index)
    assert bench.look().edited == ("b.py",)


def test_second_time_touches_nothing_at_all(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    before = traces(bench.checkout.workspace)
    assert bench.enter(stack).action is Action.UNCHANGED
    assert traces(bench.checkout.workspace) == before


def test_only_files_that_differ_are_written(bench: Bench) -> None:
    bench.enter(bench.stack())
    old = traces(bench.path)
    stack = bench.stacked(bench.base, bench.upstream.commit({"b.py": "TWO\n"}))
    entered = bench.enter(stack)
    assert (entered.action, entered.changed) == (Action.MOVED, 1)
    bench.assert_at(stack)
    new = traces(bench.path)
    touched = {name for name in new if new[name] != old.get(name) and "/.git" not in name}
    assert touched == {str(bench.path / "b.py")}


def test_moves_to_another_base_and_back(bench: Bench) -> None:
    first = bench.stack()
    bench.enter(first)
    second = bench.stack({"other.py": "x\n", "a.py": "one\n"}, {"a.py": "1\n"})
    bench.enter(second)
    bench.assert_at(second)
    assert disk_files(bench.path) == committed_files(bench.path, second.tip)
    bench.enter(first)
    bench.assert_at(first)
    assert disk_files(bench.path) == committed_files(bench.path, first.tip)


def test_the_checkout_is_whole_without_the_cache(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    git_in(bench.upstream.path, "update-ref", "-d", "refs/heads/main")
    git_in(bench.upstream.path, "gc", "-q", "--prune=now")
    assert bench.git("fsck", "--full", "--strict") == ""
    bench.assert_at(stack)


def test_folders_and_files_change_places(bench: Bench) -> None:
    first = bench.stack({"x": "file\n", "y/deep/z": "folder\n", "y/k": "k\n"}, {"a": "a\n"})
    bench.enter(first)
    second = bench.stack({"x/deep/z": "folder\n", "y": Symlink("x")}, {"a": "a\n"})
    bench.enter(second)
    bench.assert_at(second)
    assert disk_files(bench.path) == committed_files(bench.path, second.tip)
    bench.enter(first)
    bench.assert_at(first)


def test_modes_and_symlinks(bench: Bench) -> None:
    base: Files = {"run": "x\n", "link": Symlink("run"), "plain": executable("p\n")}
    bench.enter(bench.stack(base, {"a": "a\n"}))
    change: Files = {"run": executable("x\n"), "link": "no link\n", "plain": Symlink("/nowhere")}
    stack = bench.stacked(bench.base, bench.upstream.commit(change))
    bench.enter(stack)
    bench.assert_at(stack)
    assert os.access(bench.path / "run", os.X_OK)
    assert (bench.path / "plain").readlink() == Path("/nowhere")


def test_odd_names(bench: Bench) -> None:
    names = [
        "with space",
        "new\nline",
        'quo"te',
        "tab\there",
        "umlaut-\u00e4",
        "\udcff-raw",
        "-dash",
        ":c",
    ]
    base: Files = {f"{name}/{name}": "1\n" for name in names}
    first = bench.stack(base, {"a": "a\n"})
    bench.enter(first)
    change = {f"{n}/{n}": "2\n" for n in names} | {f"{n}.new": "3\n" for n in names}
    second = bench.stacked(bench.base, bench.upstream.commit(change))
    bench.enter(second)
    bench.assert_at(second)
    assert disk_files(bench.path) == committed_files(bench.path, second.tip)


def test_submodule_stays_an_empty_folder_and_its_contents_are_the_users(bench: Bench) -> None:
    one, two = "1" * 40, "2" * 40
    bench.enter(bench.stack({**BASE, "mod": Submodule(one)}, {"a.py": "x\n"}))
    assert list((bench.path / "mod").iterdir()) == []
    bench.write("mod/mine.txt", "mine\n")
    change = {"mod": Submodule(two), "other": Submodule(one)}
    stack = bench.stacked(bench.base, bench.upstream.commit(change))
    bench.enter(stack)
    bench.assert_at(stack)
    assert (bench.path / "mod/mine.txt").read_text() == "mine\n"
    assert (bench.path / "other").is_dir()


def test_line_ends_follow_the_attributes_of_the_new_tree(bench: Bench) -> None:
    base: Files = {".gitattributes": "*.bat eol=crlf\n", "x.bat": "1\n2\n", "zz.txt": "1\n"}
    first = bench.stack(base, {"z.bat": "3\n"})
    bench.enter(first)
    assert (bench.path / "x.bat").read_bytes() == b"1\r\n2\r\n"
    change = {".gitattributes": "*.txt eol=crlf\n", "z.bat": "4\n"}
    second = bench.stacked(bench.base, bench.upstream.commit(change))
    bench.enter(second)
    bench.assert_at(second)
    assert (bench.path / "x.bat").read_bytes() == b"1\n2\n"
    assert (bench.path / "zz.txt").read_bytes() == b"1\r\n"
    assert disk_files(bench.path) == committed_files(bench.path, second.tip)


def test_only_files_whose_form_changes_are_written_anew(bench: Bench) -> None:
    paths = ["kept.txt", "docs/told.txt", "docs/x.bin", "lib/a.txt"]
    base: Files = {".gitattributes": "*.txt text\n", **dict.fromkeys(paths, "1\n2\n")}
    bench.enter(bench.stack(base, {"z.py": "3\n"}))
    before = {path: (bench.path / path).stat().st_ino for path in paths}
    change = {"docs/.gitattributes": "*.txt eol=crlf\n*.bin -diff\n"}
    second = bench.stacked(bench.base, bench.upstream.commit(change))
    bench.enter(second)
    bench.assert_at(second)
    after = {path: (bench.path / path).stat().st_ino for path in paths}
    assert [path for path in paths if before[path] != after[path]] == ["docs/told.txt"]
    assert disk_files(bench.path) == committed_files(bench.path, second.tip)


@pytest.mark.parametrize("edit", ["worktree", "index", "deleted", "mode", "added"])
def test_edits_are_refused_over_and_saved_by_force(bench: Bench, edit: str) -> None:
    bench.enter(bench.stack())
    if edit == "mode":
        (bench.path / "b.py").chmod(0o755)
    elif edit == "deleted":
        (bench.path / "b.py").unlink()
    else:
        bench.write("mine.py" if edit == "added" else "b.py", "mine\n")
    if edit in ("index", "added"):
        bench.git("add", "--all")
    stack = bench.stacked(bench.base, bench.upstream.commit({"b.py": "TWO\n"}))
    before = (disk_files(bench.path), (bench.path / ".git/index").read_bytes())
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert (refused.action, refused.refusal.cause) == (Action.REFUSED, RefusalCause.EDITED)
    assert (disk_files(bench.path), (bench.path / ".git/index").read_bytes()) == before
    forced = bench.enter(stack, force=True)
    assert forced.saved == SAVED
    bench.assert_at(stack)
    assert committed_files(bench.path, SAVED) == before[0]
    if edit == "mode":
        assert bench.git("ls-tree", SAVED, "b.py").startswith("100755")


def test_what_is_saved_in_one_second_is_kept_apart(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    for text in ("first\n", "second\n"):
        bench.write("b.py", text)
        bench.enter(stack, force=True)
    assert [bench.git("show", f"{ref}:b.py") for ref in (SAVED, f"{SAVED}-2")] == [
        "first",
        "second",
    ]
    for text in ("third\n", "fourth\n"):
        shutil.rmtree(bench.path)
        bench.path.write_text(text)
        bench.enter(stack, force=True)
    asides = [bench.path.with_name(f"demo.saved-{STAMP}{more}") for more in ("", "-2")]
    assert [aside.read_text() for aside in asides] == ["third\n", "fourth\n"]


def test_own_commits_are_refused_over_and_saved(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.write("b.py", "mine\n")
    bench.git("commit", "-q", "-a", "-m", "mine")
    mine = bench.git("rev-parse", "HEAD")
    stack = bench.stacked(bench.base, bench.upstream.commit({"a.py": "1\n"}))
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert (refused.refusal.cause, refused.refusal.detail) == (
        RefusalCause.EXTRA_COMMITS,
        "1 own commit on top",
    )
    forced = bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert mine in bench.git("rev-list", SAVED)
    assert bench.git("rev-parse", f"{forced.saved}^1") == mine


def test_commits_that_are_not_the_stack_s_are_counted(bench: Bench) -> None:
    bench.enter(bench.stack(BASE, CHANGE, {"b.py": "1\n"}, {"b.py": "2\n"}))
    said = []
    for arguments in (
        ("commit", "-q", "--amend", "-m", "mine"),
        ("commit", "-q", "--allow-empty", "-m", "mine, too"),
        ("reset", "-q", "--hard", "HEAD~2"),
        ("reset", "-q", "--hard", "HEAD~1"),
        ("commit", "-q", "--allow-empty", "-m", "mine"),
    ):
        bench.git(*arguments)
        said.append(bench.look().detail)
    assert said == [
        "1 own commit in place of 1 commit of the stack",
        "2 own commits in place of 1 commit of the stack",
        "1 commit of the stack dropped",
        "2 commits of the stack dropped",
        "1 own commit in place of 2 commits of the stack",
    ]


def test_untracked_file_in_the_way(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.write("b.log", "mine\n")  # ignored, and in the way all the same
    bench.write("d", "mine\n")
    bench.write("e/f", "mine\n")
    bench.write("free.txt", "mine\n")
    before = disk_files(bench.path)
    change = {"b.log": "theirs\n", "d/x.py": "theirs\n", "e": "theirs\n"}
    stack = bench.stacked(bench.base, bench.upstream.commit(change))
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert refused.refusal.cause is RefusalCause.IN_THE_WAY
    assert set(refused.refusal.paths) == {"b.log", "d", "e/"}
    assert disk_files(bench.path) == before
    bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert before <= committed_files(bench.path, SAVED)
    assert (bench.path / "free.txt").read_text() == "mine\n"


def test_untracked_file_that_is_the_same_is_not_in_the_way(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.write("n.py", "same\n")
    stack = bench.stacked(bench.base, bench.upstream.commit({"n.py": "same\n"}))
    assert bench.enter(stack).action is Action.MOVED
    bench.assert_at(stack)


def test_a_repository_in_the_way_is_refused_even_by_force(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.write("tool/x", "mine\n")
    git_in(bench.path / "tool", "init", "-q")
    stack = bench.stacked(bench.base, bench.upstream.commit({"tool": "theirs\n"}))
    before = disk_files(bench.path)
    refused = bench.enter(stack, force=True)
    assert refused.refusal is not None
    assert refused.refusal.cause is RefusalCause.UNSAVABLE
    assert disk_files(bench.path) == before
    assert not (bench.path / ".git/patchkit/move").exists()


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_git_was_told_not_to_see(bench: Bench, flag: str) -> None:
    bench.enter(bench.stack())
    bench.git("update-index", flag, "b.py")
    bench.write("b.py", "mine\n")
    assert bench.look().state is CheckoutState.APPLIED
    stack = bench.stacked(bench.base, bench.upstream.commit({"b.py": "TWO\n"}))
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert (refused.refusal.cause, refused.refusal.paths) == (RefusalCause.EDITED, ("b.py",))
    bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert bench.git("show", f"{SAVED}:b.py") == "mine"


def test_a_rebase_that_waits_is_saved_with_the_branch(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.write("a.py", "mine\n")
    bench.git("commit", "-q", "-a", "-m", "mine")
    mine = bench.git("rev-parse", "HEAD")
    git_in(bench.path, "rebase", "--onto", bench.base, "HEAD~1", accept=(1,))
    stack = bench.stacked(bench.base, bench.upstream.commit({"b.py": "TWO\n"}))
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert refused.refusal.cause is RefusalCause.CONFLICTED
    conflicted = (bench.path / "a.py").read_bytes()
    bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert bench.look().state is CheckoutState.APPLIED
    assert bench.git("rev-parse", f"{SAVED}-branch") == mine
    assert bench.git("show", f"{SAVED}:a.py").encode() == conflicted.strip()


def test_another_branch_is_left_where_it_is(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.git("switch", "-q", "-c", "mine")
    bench.write("b.py", "mine\n")
    bench.git("commit", "-q", "-a", "-m", "mine")
    mine = bench.git("rev-parse", "HEAD")
    stack = bench.stacked(bench.base, bench.upstream.commit({"a.py": "1\n"}))
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert (refused.refusal.cause, refused.refusal.detail) == (
        RefusalCause.OTHER_BRANCH,
        "on branch mine",
    )
    bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert bench.git("rev-parse", "mine") == mine


@pytest.mark.parametrize("kind", ["folder", "repository", "file", "link"])
def test_what_is_not_patchkits_is_moved_aside_by_force(bench: Bench, kind: str) -> None:
    bench.checkout.workspace.mkdir()
    if kind == "file":
        bench.path.write_text("mine\n")
    elif kind == "link":
        bench.path.symlink_to("nowhere")
    else:
        bench.write("mine.txt", "mine\n")
    if kind == "repository":
        git_in(bench.path, "init", "-q")
    stack = bench.stack()
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert refused.refusal.cause is RefusalCause.OTHER_BRANCH
    forced = bench.enter(stack, force=True)
    bench.assert_at(stack)
    aside = forced.moved_aside
    assert aside == bench.path.with_name(f"demo.saved-{STAMP}")
    assert aside.is_symlink() or aside.is_file() or (aside / "mine.txt").read_text() == "mine\n"


def test_a_lock_of_git_is_respected(bench: Bench) -> None:
    bench.enter(bench.stack())
    before = disk_files(bench.path)
    bench.write(".git/index.lock", "")
    stack = bench.stacked(bench.base, bench.upstream.commit({"a.py": "1\n"}))
    with pytest.raises(SurroundingsError, match=r"index\.lock exists"):
        bench.enter(stack)
    assert disk_files(bench.path) == before
    (bench.path / ".git/index.lock").unlink()
    bench.enter(stack)
    bench.assert_at(stack)


def test_the_stack_itself_without_our_refs_is_taken_as_applied(bench: Bench) -> None:
    bench.enter(bench.stack())
    stack = bench.stacked(bench.base, bench.upstream.commit({"a.py": "1\n"}))
    bench.git("fetch", "-q", str(bench.upstream.path), "main")
    bench.git("reset", "-q", "--hard", stack.tip)
    assert bench.look().state is CheckoutState.EXTRA_COMMITS
    entered = bench.enter(stack)
    assert (entered.action, entered.changed) == (Action.MOVED, 0)
    bench.assert_at(stack)


def test_a_file_that_its_own_attributes_contradict_is_not_an_edit(bench: Bench) -> None:
    base = {".gitattributes": "*.txt text\n", "x.txt": "1\r\n2\r\n"}
    first = bench.stack(base, {"a.py": "a\n"})
    bench.enter(first)
    (bench.path / "x.txt").touch()
    assert bench.git("status", "--porcelain") == "M x.txt"  # says git
    assert bench.look().state is CheckoutState.APPLIED
    assert bench.enter(first).action is Action.UNCHANGED
    second = bench.stacked(bench.base, bench.upstream.commit({"x.txt": "1\r\n3\r\n"}))
    assert bench.enter(second).action is Action.MOVED
    assert (bench.path / "x.txt").read_bytes() == b"1\r\n3\r\n"
    assert bench.look().state is CheckoutState.APPLIED
    bench.write("x.txt", "mine\r\n")
    assert bench.look().state is CheckoutState.EDITED


def test_a_sparse_checkout_stays_one(bench: Bench) -> None:
    first = bench.stack({**BASE, "far/d.py": "d\n", "far/e.py": "e\n"}, CHANGE)
    change: Files = {"far/d.py": "D\n", "far/new.py": "new\n", "far/e.py": None, "b.py": "2\n"}
    second = bench.stacked(bench.base, bench.upstream.commit(change))
    bench.enter(first)
    bench.git("sparse-checkout", "set", "--no-cone", "/*", "!/far")
    for stack in (second, first, second):
        entered = bench.enter(stack)
        assert (entered.action, entered.left_out) == (Action.MOVED, ())
        assert bench.look().state is CheckoutState.APPLIED
        # git itself knows the patterns only when it is asked to apply them
        bench.git("sparse-checkout", "reapply")
        assert not (bench.path / "far").exists()
    bench.git("sparse-checkout", "disable")
    bench.assert_at(second)


def test_a_file_that_git_was_told_to_skip_is_moved_if_it_is_there(bench: Bench) -> None:
    bench.enter(bench.stack())
    stack = bench.stacked(bench.base, bench.upstream.commit({"b.py": "2\n"}))
    bench.git("sparse-checkout", "set", "--no-cone", "/*", "!/b.py")
    bench.write("b.py", "two\n")
    bench.enter(stack)
    assert (bench.path / "b.py").read_text() == "2\n"
    assert bench.look().state is CheckoutState.APPLIED


def test_a_branch_without_a_commit_is_foreign_and_force_goes_back(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    bench.git("update-ref", "-d", BRANCH)
    bench.write("b.py", "mine\n")
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert (refused.refusal.cause, refused.refusal.detail) == (
        RefusalCause.OTHER_BRANCH,
        "its branch has no commit",
    )
    forced = bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert bench.git("show", f"{forced.saved}:b.py") == "mine"


def test_contents_that_no_server_has_are_left_out(bench: Bench) -> None:
    first = bench.stack({**BASE, "lost.png": "lost\n", "later.png": "lost, too\n"}, CHANGE)
    change: Files = {"lost.png": None, "new.png": "lost again\n", "b.py": "2\n"}
    second = bench.stacked(bench.base, bench.upstream.commit(change))
    lost = ["lost\n", "lost, too\n", "lost again\n"]
    entered = bench.enter(damage(bench, first, lost))
    assert (entered.action, entered.left_out) == (Action.CREATED, ("later.png", "lost.png"))
    assert bench.look().state is CheckoutState.APPLIED
    sound = {path for path, _ in disk_files(bench.path)}
    assert sound == {b"a.py", b"b.py", b"new.py", b".gitignore"}
    entered = bench.enter(damage(bench, second, lost))
    assert (entered.action, entered.left_out) == (Action.MOVED, ("new.png",))
    assert bench.look().state is CheckoutState.APPLIED
    assert {path for path, _ in disk_files(bench.path)} == sound
    assert (bench.path / "b.py").read_text() == "2\n"


@pytest.mark.slow
def test_the_users_git_works_where_contents_are_missing(bench: Bench) -> None:
    """Commit, stash, collect garbage; and nothing that was there is gone afterwards."""
    base = {**BASE, "lost.png": "lost\n", "docs/lost.png": "lost, too\n", "docs/a.md": "a\n"}
    first = bench.stack(base, CHANGE)
    second = bench.stacked(bench.base, bench.upstream.commit({"b.py": "2\n"}))
    lost = ["lost\n", "lost, too\n"]
    bench.enter(damage(bench, first, lost))
    bench.write("b.py", "mine\n")
    for command in ("stash -q", "stash pop -q", "commit -q -a -m mine", "gc -q --prune=now"):
        bench.git(*command.split())
    bench.write("a.py", "mine, too\n")
    bench.git("commit", "-q", "-a", "--amend", "-m", "mine")
    for command in ("status", "fsck", "gc -q --prune=now", "repack -q -a -d", "fetch --all"):
        bench.git(*command.split())
    rows = bench.git("rev-list", "--objects", "--all", "--reflog", "--missing=print").splitlines()
    missing = {row[1:] for row in rows if row.startswith("?")}
    assert missing == {blob_id(text.encode()) for text in lost}
    entered = bench.enter(damage(bench, second, lost), force=True)
    assert entered.action is Action.MOVED
    bench.git("gc", "-q", "--prune=now")
    assert bench.git("show", f"{entered.saved}:b.py") == "mine"
    assert bench.git("show", "HEAD:b.py") == "2"
    assert bench.look().state is CheckoutState.APPLIED
    assert bench.git("status", "--porcelain") == ""


def damage(bench: Bench, stack: Stacked, lost: list[str]) -> Stacked:
    """The stack in a repository that has lost the blobs with these contents."""
    absent = {blob_id(text.encode()) for text in lost}
    listing = bench.upstream.git("rev-list", "--objects", "--no-object-names", stack.tip)
    kept = [oid for oid in listing.decode().split() if oid not in absent]
    source = Upstream.create(bench.upstream.path.with_name(f"{stack.tip}.git"))
    (source.path / "objects/pack").mkdir()
    bench.upstream.git(
        "pack-objects",
        "-q",
        f"{source.path}/objects/pack/pack",
        stdin="".join(f"{oid}\n" for oid in kept).encode(),
    )
    note_absent(Repository(source.path), absent)
    objects = tuple(each for each in stack.objects if each.oid not in absent)
    return replace(stack, source=Repository(source.path), objects=objects)
