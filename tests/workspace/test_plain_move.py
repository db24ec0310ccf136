"""A move by our own hand leaves the files, the index and the state that git's own would leave."""

from __future__ import annotations

import os
import random
import re
import subprocess
from hashlib import sha1
from pathlib import Path

import pytest

from patchkit.gitcmd.trees import tree_changes
from patchkit.model.objects import CommitId
from patchkit.workspace.enter import Action, Stacked
from patchkit.workspace.plain_move import _edited_index, date_new_files, stage_plainly
from tests.support.laws import share
from tests.support.repos import File, Files, Submodule, Symlink, executable
from tests.workspace.bench import BASE, Bench, committed_files, disk_files
from tests.workspace.killing import hooks

#: A setting that changes nothing, and that patchkit does not know: git does the work then.
_UNKNOWN = ("config", "core.bigFileThreshold", "512m")
_NAMES = (
    "a",
    "a.b",
    "a/b",
    "a-b",
    "b",
    "b/c/d",
    "b/c/e",
    "b/é",
    "z/y",
    "z" * 200,
    "x/y/z/w",
    "q\nq",
)


def rows(bench: Bench) -> list[str]:
    """The rows of the index, with all that they say of files but their times and inodes."""
    shown = bench.git("ls-files", "--stage", "--debug", "-z")
    return re.findall(r"(?m)^\d{6} .*$|size: \d+", shown.replace("\0", "\n"))


def is_plain(bench: Bench, stack: Stacked, scratch: Path) -> bool:
    """Whether a move to the stack would be done by our own hand."""
    changes = tree_changes(bench.checkout.repository, CommitId("HEAD"), stack.tip)
    blobs = {each.oid: each.payload for each in stack.objects}
    scratch.mkdir()
    return stage_plainly(bench.checkout, changes, blobs, scratch) is not None


def settle_clock(bench: Bench) -> None:
    """Let all files be older than the index, as they are a second later."""
    old = (bench.path / ".git/index").stat().st_mtime - 10
    for path in bench.path.rglob("*"):
        if ".git" not in path.parts and path.is_file() and not path.is_symlink():
            os.utime(path, (old, old))
    bench.git("update-index", "-q", "--refresh")


@pytest.mark.slow
@pytest.mark.hypothesis  # by this mark `make faults` selects laws
@pytest.mark.parametrize("seed", range(share(50)))
def test_both_ways_end_in_one_place(bench: Bench, seed: int) -> None:
    dice = random.Random(seed)
    base: dict[str, str] = {}
    for name in _NAMES:  # no file is another's folder
        if dice.random() < 0.6 and not any(f"{name}/".startswith(f"{each}/") for each in base):
            base[name] = f"{name}\n"
    if seed % 3 == 0:
        base[".gitattributes"] = "*.md linguist-documentation\n*.bin binary\n"
    change: dict[str, str | File | None] = {}
    for name in dice.sample(sorted(base), min(len(base), 3)):
        if name != ".gitattributes":
            change[name] = dice.choice((None, "changed\n", executable("run\n")))
    change |= {f"new/{dice.randrange(3)}": "new\n", "n": executable("#!/bin/sh\n")}
    stack = bench.stack({**base, "keep": "keep\n"}, change)
    start = bench.stacked(stack.base, stack.base)
    ends = []
    for setting in ((), _UNKNOWN):
        bench.enter(start)
        settle_clock(bench)
        if setting:
            bench.git(*setting)
        moved = bench.enter(stack)
        assert moved.action is Action.MOVED
        bench.assert_at(stack)
        bench.git("fsck", "--no-dangling")
        assert bench.git("status", "--porcelain") == ""
        ends.append((rows(bench), disk_files(bench.path), moved.changed))
        bench.enter(start)
    assert ends[0] == ends[1]
    assert disk_files(bench.path) == committed_files(bench.path, start.tip)


@pytest.mark.parametrize(
    ("base", "change", "plain"),
    [
        (BASE, {"a.py": "1\n"}, True),
        (BASE, {"l": Symlink("a.py")}, False),
        (BASE, {".gitattributes": "* text\n"}, False),
        ({**BASE, ".gitattributes": "*.py diff=python\n"}, {"a.py": "1\n"}, True),
        ({**BASE, ".gitattributes": "*.py eol=crlf\n"}, {"a.py": "1\n"}, False),
        ({**BASE, "sub/.gitattributes": "* filter=x\n"}, {"sub/c.py": "1\n"}, False),
        ({**BASE, "sub/.gitattributes": "* filter=x\n"}, {"a.py": "1\n"}, True),
    ],
)
def test_what_is_plain(
    bench: Bench, tmp_path: Path, base: Files, change: Files, *, plain: bool
) -> None:
    stack = bench.stack(base, change)
    bench.enter(bench.stacked(stack.base, stack.base))
    assert is_plain(bench, stack, tmp_path / "move") is plain
    bench.enter(stack)
    bench.assert_at(stack)


@pytest.mark.parametrize(
    "setting",
    [
        ("config", "core.autocrlf", "true"),
        ("config", "core.fileMode", "false"),
        ("config", "include.path", "/nowhere"),
        ("config", "filter.x.smudge", "cat"),
        ("config", "extensions.worktreeConfig", "true"),
        ("update-index", "--index-version", "4"),
        ("update-index", "--assume-unchanged", "a.py"),
        ("update-index", "--skip-worktree", "a.py"),
        ("rm", "--cached", "-q", "a.py"),
    ],
)
def test_what_is_odd_is_left_to_git(bench: Bench, tmp_path: Path, setting: tuple[str, ...]) -> None:
    stack = bench.stack(BASE, {"a.py": "1\n"})
    bench.enter(bench.stacked(stack.base, stack.base))
    assert is_plain(bench, stack, tmp_path / "before")
    bench.git(*setting)
    assert not is_plain(bench, stack, tmp_path / "after")


@pytest.mark.slow
def test_an_edit_right_after_is_seen(bench: Bench) -> None:
    """However fast: of the same size, within the second in which the index was written."""
    stack = bench.stack(BASE, {"a.py": "aaa\n", "b.py": "bbb\n"})
    start = bench.stacked(stack.base, stack.base)
    bench.enter(start)
    for _ in range(5):
        bench.enter(stack)
        for name in ("a.py", "sub/c.py"):
            size = (bench.path / name).stat().st_size
            kept = (bench.path / name).read_bytes()
            (bench.path / name).write_bytes(b"X" * size)
            assert bench.look().edited == (name,)
            (bench.path / name).write_bytes(kept)
        bench.enter(start)


def test_an_edit_of_another_file_before_the_move_stays_seen(bench: Bench) -> None:
    """Its row is as old as the index was; in the new index it must not pass for unedited."""
    stack = bench.stack(BASE, {"a.py": "aaa\n"})
    bench.enter(bench.stacked(stack.base, stack.base))
    stamp = (bench.path / ".git/index").stat()
    bench.git("update-index", "--force-remove", "b.py")
    bench.write("b.py", "two\n")
    os.utime(bench.path / "b.py", ns=(stamp.st_mtime_ns, stamp.st_mtime_ns))
    bench.git("update-index", "--add", "b.py")
    index = bench.path / ".git/index"
    second = int((bench.path / "b.py").stat().st_mtime)
    os.utime(index, (second, second))  # the file is as new as the index
    snapshot = bench.look()
    assert snapshot.edited == ()
    data = index.read_bytes()
    edited = _edited_index(data, {}, second)
    assert edited is not None
    assert [path for path, _ in edited.fresh] == [b"b.py"]
    (bench.path / "b.py").write_bytes(b"tWo\n")
    os.utime(bench.path / "b.py", (second, second))
    edited.smudge(bench.path, second + 5)
    (bench.path / ".git/index").write_bytes(
        bytes(edited.index[:-20]) + sha1(edited.index[:-20]).digest()
    )
    assert bench.look().edited == ("b.py",)


def test_the_cache_of_trees_stays_but_for_what_changed(bench: Bench) -> None:
    base = {f"d{i}/f{j}": f"{i} {j}\n" for i in range(3) for j in range(3)}
    stack = bench.stack(base, {"d1/f1": "new\n"})
    bench.enter(bench.stacked(stack.base, stack.base))
    bench.enter(stack)
    index = (bench.path / ".git/index").read_bytes()
    at = index.index(b"TREE")
    cache = index[at + 8 : at + 8 + int.from_bytes(index[at + 4 : at + 8], "big")]
    assert cache.startswith(b"\x00-1 3\n")
    assert b"d0\x003 0\n" in cache
    assert b"d1\x00-1 0\n" in cache
    trace = {**os.environ, "GIT_TRACE2": "0"}
    done = subprocess.run(
        ["git", "-C", str(bench.path), "status", "--porcelain"],
        capture_output=True,
        env=trace,
        check=True,
    )
    assert done.stdout == b""


def test_a_moved_checkout_takes_few_processes(bench: Bench, tmp_path: Path) -> None:
    """status before, diff-tree, update-ref; each is two milliseconds and more."""
    stack = bench.stack()
    bench.enter(bench.stacked(stack.base, stack.base))
    calls: list[str] = []

    def note(event: str, args: tuple[object, ...]) -> None:
        if event == "subprocess.Popen":
            calls.append(next(a for a in args[1] if a in _VERBS))  # type: ignore[attr-defined]

    hooks.append(note)
    bench.enter(stack)
    hooks.remove(note)
    assert calls == ["status", "diff-tree", "update-ref"]


_VERBS = {
    *("status", "for-each-ref", "diff-tree", "update-ref", "cat-file", "checkout-index"),
    *("read-tree", "update-index", "check-attr", "ls-files", "hash-object", "rev-parse"),
}


def _stats(bench: Bench) -> dict[str, list[str]]:
    """Path -> what the index says of its file on disk."""
    shown = bench.git("ls-files", "--debug", "-z").split("\0")
    numbers = [re.findall(r"[a-z]+: ([0-9a-f:]+)", each) for each in shown]
    return {
        path.rpartition("flags: 0\n")[2]: of for path, of in zip(shown, numbers[1:], strict=False)
    }


@pytest.mark.parametrize(
    "attributes", ["*.md linguist-documentation\n", "*.none eol=crlf\n"], ids=["our own", "git's"]
)
def test_of_a_new_checkout_git_reads_no_file(bench: Bench, attributes: str) -> None:
    """Whoever notes what is on disk: it is what is there, and older than the index."""
    base: Files = {
        **BASE,
        ".gitattributes": attributes,
        "run": executable("#!/bin/sh\n"),
        "link": Symlink("sub/c.py"),
        "folder": Symlink("sub"),
        "é/" + "z" * 200: "",
        "module": Submodule("1" * 40),
    }
    stack = bench.stack(base, {"a.py": "aaa\n"})
    assert bench.enter(stack).changed == len(base)
    index = (bench.path / ".git/index").stat()
    noted = _stats(bench)
    assert noted.keys() == base.keys()
    for path, (*_, device, inode, uid, gid, size, _flags) in noted.items():
        here = (bench.path / path).lstat()
        assert int(here.st_mtime) < int(index.st_mtime) or path == "module"
        if path != "module":
            ctime, mtime = noted[path][:2]
            assert mtime == f"{here.st_mtime_ns // 10**9}:{here.st_mtime_ns % 10**9}"
            assert ctime.split(":")[0] == str(here.st_ctime_ns // 10**9)
            assert (int(inode), int(uid), int(gid)) == (here.st_ino, here.st_uid, here.st_gid)
            assert (int(device), int(size)) == (here.st_dev, here.st_size)
    assert bench.git("diff-files", "--name-only") == ""
    assert bench.git("write-tree") == bench.git("rev-parse", f"{stack.tip}^{{tree}}")


def test_an_edit_of_a_new_checkout_is_seen(bench: Bench) -> None:
    """However fast, of the same size."""
    bench.enter(bench.stack())
    for name in ("a.py", "b.py"):
        kept = (bench.path / name).read_bytes()
        (bench.path / name).write_bytes(b"X" * len(kept))
        assert bench.look().edited == (name,)
        (bench.path / name).write_bytes(kept)
    assert bench.look().edited == ()


def test_a_file_that_is_not_what_git_wrote_is_not_noted(bench: Bench) -> None:
    bench.enter(bench.stack())
    edited = bench.path / "b.py"
    (bench.path / "b.py").unlink()
    edited.write_bytes(b"tWo\n")
    now = (bench.path / "a.py").stat().st_mtime_ns
    assert date_new_files(bench.checkout.repository, now)
    stats = _stats(bench)
    assert (stats["b.py"][-2], stats["a.py"][-2]) == ("0", "4")
    assert bench.look().edited == ("b.py",)
