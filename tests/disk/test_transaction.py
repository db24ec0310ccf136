"""Sets of files that change together: all of them or none, whatever happens on the way."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from patchkit.disk.files import DRAFT, JOURNAL
from patchkit.disk.transaction import recover, runs, write_set
from patchkit.errors import BadInputError, SurroundingsError
from tests.workspace.killing import failing_at, just_before, killed_at

OLD = {"patches/a/one.patch": b"1\n", "patches/a/two.patch": b"2\n", "patches/a/series": b"s\n"}
NEW = {
    "patches/a/one.patch": b"one\n",
    "patches/a/series": b"new\n",
    "patches/a/three.patch": b"3\n",
    "patches/b/deep/four.patch": b"4\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with OLD in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    _fill(folder)
    return folder


def _fill(root: Path) -> None:
    for name, data in OLD.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _writes(root: Path) -> dict[Path, bytes | None]:
    writes: dict[Path, bytes | None] = {root / name: data for name, data in NEW.items()}
    return writes | {root / "patches/a/two.patch": None}


def _seen(root: Path) -> dict[Path, bytes | None]:
    """What there was to see before `_writes`."""
    return {root / name: data for name, data in OLD.items()}


def _write(root: Path) -> None:
    """OLD to NEW, by what is there."""
    write_set(root, _writes(root), {path: _bytes(path) for path in _writes(root)})


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _files(root: Path) -> dict[str, bytes]:
    """Everything but what a killed writer may leave beside."""
    found = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".patchkit-tmp")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def test_a_set_is_written_and_leaves_nothing_behind(root: Path) -> None:
    _write(root)
    assert _files(root) == NEW
    assert not list(root.rglob("*.patchkit-tmp"))


@pytest.mark.slow
def test_killed_anywhere_the_set_is_old_or_new(tmp_path: Path) -> None:
    outcomes = set()
    for point in range(1, 200):
        root = tmp_path / str(point)
        root.mkdir()
        _fill(root)
        killed = killed_at(point, partial(_write, root))
        rolled = recover(root)
        files = _files(root)
        assert files in (OLD, NEW), f"a mixture after a kill at {point}"
        assert not (rolled and files == OLD)
        assert not list(root.rglob("*.patchkit-tmp"))
        assert files == NEW or not (root / "patches/b").exists()
        outcomes.add((files == NEW, rolled))
        _write(root)
        assert _files(root) == NEW
        if not killed:
            break
    else:
        pytest.fail("the work never came to its end")
    # killed before the journal, after it, and not at all or after the last step
    assert outcomes == {(False, False), (True, True), (True, False)}


@pytest.mark.slow
def test_a_kill_while_recovering_is_recovered_from(tmp_path: Path) -> None:
    for first in range(1, 200):
        root = tmp_path / str(first)
        root.mkdir()
        _fill(root)
        if not killed_at(first, partial(_write, root)):
            break
        if not (root / JOURNAL).exists():
            continue
        for point in range(1, 50):
            if not killed_at(point, partial(recover, root)):
                break
        assert _files(root) == NEW


def test_whatever_fails_the_set_is_old_or_new(tmp_path: Path) -> None:
    """A failure is no kill: what stands half-way is taken back, unless it can be finished."""
    outcomes = set()
    for point in range(1, 200):
        root = tmp_path / str(point)
        root.mkdir()
        _fill(root)
        failed = failing_at(point, partial(_write, root), OSError(errno.ENOSPC, "no space"))
        if failed in (True, False):
            assert _files(root) == NEW
            assert not (root / JOURNAL).exists()
            if failed:
                continue
            break
        assert isinstance(failed, (OSError, SurroundingsError))
        waits = (root / JOURNAL).exists()
        if waits and isinstance(failed, SurroundingsError):
            assert "again" in str(failed.problems[0].hint)
        if not waits:
            assert _files(root) == OLD, f"not taken back after a failure at {point}"
            assert not list(root.rglob("*.patchkit-tmp"))
            assert not (root / "patches/b").exists()
        assert recover(root) == waits
        assert _files(root) == (NEW if waits else OLD)
        outcomes.add(waits)
    assert outcomes == {False, True}


def test_the_same_bytes_are_not_written(root: Path) -> None:
    path = root / "patches/a/series"
    other = root / "patches/a/one.patch"
    before = path.stat().st_ino
    write_set(root, {path: b"s\n", other: b"one\n"}, {path: b"s\n", other: b"1\n"})
    assert path.stat().st_ino == before
    assert other.read_bytes() == b"one\n"


def test_nothing_outside_of_the_project_is_written(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs\n")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    inside = root / "patches/a/series"
    for path in (outside / "file", root / "../outside/file", root / "folder/file", root / "file"):
        with pytest.raises(BadInputError, match="is outside of the project"):
            write_set(
                root, {inside: b"new\n", path: b"ours\n"}, {inside: b"s\n", path: b"theirs\n"}
            )
    with pytest.raises(BadInputError, match="is outside of the project"):
        write_set(root, {root / "folder/file": None}, {root / "folder/file": b"theirs\n"})
    assert (outside / "file").read_bytes() == b"theirs\n"
    assert inside.read_bytes() == b"s\n"
    write_set(root, {root / "file": None}, {root / "file": b"theirs\n"})  # the link is ours
    assert (outside / "file").exists()


def test_what_a_killed_writer_left_is_swept_away_after_a_minute(root: Path) -> None:
    names = (".one.patch.0123456789ab.patchkit-tmp", ".two.patch.0123456789ab.patchkit-tmp")
    old, young = (root / "patches/a" / name for name in names)
    mine = root / "patches/a/mine.patchkit-tmp"
    for path in (old, young, mine):
        path.write_bytes(b"")
    for path in (old, mine):
        os.utime(path, (path.stat().st_mtime - 61,) * 2)
    _write(root)
    assert [path.exists() for path in (old, young, mine)] == [False, True, True]


def test_modes_and_links_stay(root: Path) -> None:
    real, link = root / "patches/a/series", root / "linked"
    real.chmod(0o640)
    link.symlink_to(real)
    assert not runs(real)
    write_set(root, {link: b"through\n"}, {link: b"s\n"})
    assert link.is_symlink()
    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (b"through\n", 0o640)


def test_a_link_goes_without_its_target(root: Path) -> None:
    real, link = root / "patches/a/series", root / "linked"
    link.symlink_to(real)
    write_set(root, {link: None}, {link: b"s\n"})
    assert not link.is_symlink()
    assert real.read_bytes() == b"s\n"


def test_a_folder_that_is_left_empty_goes(root: Path) -> None:
    write_set(root, {root / name: None for name in OLD}, _seen(root))
    assert not (root / "patches").exists()


def test_a_full_disk_changes_nothing(root: Path) -> None:
    """A limit on the size of files stands in for the disk: the third file is too large for it."""
    program = (
        "import sys; from pathlib import Path; from patchkit.disk.transaction import write_set\n"
        "from patchkit.errors import SurroundingsError\n"
        "root = Path(sys.argv[1])\n"
        "writes = {root / 'patches/a/one.patch': b'x', root / 'n/e/w': b'x',"
        " root / 'patches/a/series': b'y' * 100_000}\n"
        "seen = {path: path.read_bytes() for path in writes if path.exists()}\n"
        "try: write_set(root, writes, seen)\n"
        "except SurroundingsError as error: print(error)\n"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(root)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert "series cannot be written: File too large" in done.stdout
    assert _files(root) == OLD
    assert not list(root.rglob("*.patchkit-tmp"))
    assert not (root / "n").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_changes_nothing(root: Path) -> None:
    (root / "patches/a").chmod(0o500)
    with pytest.raises(SurroundingsError):
        _write(root)
    (root / "patches/a").chmod(0o700)
    assert _files(root) == OLD


def test_nothing_to_recover_is_nothing(root: Path) -> None:
    assert not recover(root)
    assert not recover(root / "absent")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"version": 1, "steps": []}',
        '{"version": 2}',
        '{"version": 2, "steps": [{"path": "a"}]}',
        '{"version": 2, "steps": [{"path": 1, "beside": null, "old": null, "new": null}]}',
    ],
)
def test_a_journal_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(BadInputError, match=JOURNAL) as error:
        recover(tmp_path)
    assert error.value.problems[0].hint
    assert (tmp_path / JOURNAL).exists()


def test_a_set_that_another_patchkit_finishes_first_is_no_news(root: Path) -> None:
    """It is there when looked for, and gone when it is our turn."""
    (root / JOURNAL).write_text("another patchkit holds the folder")
    with just_before("fcntl.flock", (root / JOURNAL).unlink):
        assert recover(root) is False


@pytest.mark.parametrize("beside", [".one.patch.0.patchkit-tmp", "../a/one.patch", None])
def test_a_planted_draft_removes_unfinished_files_at_most(root: Path, beside: str | None) -> None:
    rows = [{"path": "patches/a/one.patch", "beside": beside, "old": None, "new": None}]
    (root / DRAFT).write_text(json.dumps({"version": 2, "steps": rows}))
    assert recover(root) is False
    assert (_files(root), (root / DRAFT).exists()) == (OLD, False)


def _step(path: str, beside: str | None, old: bytes | None, new: bytes | None) -> dict[str, object]:
    old_hash, new_hash = (None if each is None else sha256(each).hexdigest() for each in (old, new))
    return {"path": path, "beside": beside, "old": old_hash, "new": new_hash}


def _plant(root: Path, *steps: dict[str, object]) -> None:
    (root / JOURNAL).write_text(json.dumps({"version": 2, "steps": steps}))


EVIL = ".x.sh.0123456789ab.patchkit-tmp"


@pytest.mark.parametrize(
    ("path", "beside"),
    [
        ("../precious", None),
        ("../precious", f"../{EVIL}"),
        ("patches/../../precious", None),
        (".git/hooks/post-checkout", f".git/hooks/{EVIL}"),
        ("patches/.GIT/hooks/post-checkout", f"patches/.GIT/hooks/{EVIL}"),
        ("git/hooks/post-checkout", f"git/hooks/{EVIL}"),  # a link to .git
        ("patches/a/one.patch", f"patches/{EVIL}"),
        ("patches/a/one.patch", "patches/a/evil.sh"),
        ("patches/a/one.patch", "patches/a/.evil.sh"),
        ("patches/a/one.patch", "patches/a/evil.patchkit-tmp"),
        ("patches/a/one.patch", None),
    ],
)
def test_a_planted_journal_is_not_believed(root: Path, path: str, beside: str | None) -> None:
    """It came with a project: it may neither leave it, nor reach git, nor move any file."""
    data = b"#!/bin/sh\necho evil\n"
    (root.parent / "precious").write_bytes(b"!")
    for folder in (".git/hooks", "patches/.GIT/hooks"):
        (root / folder).mkdir(parents=True)
    (root / "git").symlink_to(".git")
    for place in {beside, "patches/a/evil.sh"} - {None}:
        (root / str(place)).write_bytes(data)
    _plant(root, _step(path, beside, _bytes(root / path), data))
    before = _files(root.parent)
    with pytest.raises(BadInputError, match="was not written by patchkit"):
        recover(root)
    assert _files(root.parent) == before


def test_a_planted_journal_cannot_touch_what_the_user_wrote(root: Path) -> None:
    """Who plants one knows what came with the project, not what was written since."""
    beside = "patches/a/.one.patch.0123456789ab.patchkit-tmp"
    (root / beside).write_bytes(b"theirs\n")
    for step in (
        _step("patches/a/one.patch", beside, b"1\n", b"theirs\n"),
        _step("patches/a/one.patch", None, b"1\n", None),
    ):
        _plant(root, step)
        (root / "patches/a/one.patch").write_bytes(b"mine\n")
        with pytest.raises(SurroundingsError, match=r"one\.patch was changed") as error:
            recover(root)
        hint = error.value.problems[0].hint
        assert f"{step['beside'] or 'nothing'} was to replace it" in str(hint)
        assert (root / "patches/a/one.patch").read_bytes() == b"mine\n"


@pytest.mark.slow
def test_what_was_written_after_a_kill_is_not_overwritten(tmp_path: Path) -> None:
    """The journal stands, the user edits a file that it names: the rest is not done without it."""
    seen = 0
    for point in range(1, 200):
        root = tmp_path / str(point)
        root.mkdir()
        _fill(root)
        if not killed_at(point, partial(_write, root)):
            break
        if not (root / JOURNAL).exists():
            continue
        seen += 1
        (root / "patches/a/series").write_bytes(b"mine\n")
        before = _files(root)
        with pytest.raises(SurroundingsError, match="series was changed"):
            recover(root)
        assert _files(root) == before
    assert seen


def test_a_set_is_not_written_over_what_changed_since_it_was_planned(root: Path) -> None:
    path = root / "patches/a/series"
    path.write_bytes(b"saved by an editor meanwhile\n")
    before = _files(root)
    with pytest.raises(SurroundingsError, match=r"patches/a/series was changed meanwhile") as error:
        write_set(root, _writes(root), _seen(root))
    assert error.value.problems[0].hint == "run the command again"
    assert _files(root) == before


def test_a_set_is_not_written_where_what_it_rests_on_changed(root: Path) -> None:
    """One of the files that the plan was made from; the set itself leaves it alone."""
    one, two = root / "patches/a/one.patch", root / "patches/a/two.patch"
    with pytest.raises(SurroundingsError, match=r"two\.patch was changed meanwhile"):
        write_set(root, {one: b"new\n"}, {one: b"1\n", two: b"not this\n"})
    assert _files(root) == OLD


def test_a_file_that_nobody_saw_must_not_be_there(root: Path) -> None:
    new = root / "patches/a/three.patch"
    new.write_bytes(b"somebody else made it\n")
    with pytest.raises(SurroundingsError, match=r"three\.patch was changed meanwhile"):
        write_set(root, _writes(root), _seen(root))
    assert new.read_bytes() == b"somebody else made it\n"


def test_folders_are_on_disk_before_the_journal_is(root: Path) -> None:
    """A power cut must not keep the journal and lose a file that it names."""
    program = (
        "import os, sys; from pathlib import Path; from patchkit.disk import transaction\n"
        "root = Path(sys.argv[1])\n"
        "def hook(event, arguments):\n"
        "    if event == 'open' and arguments[2] & os.O_ACCMODE == os.O_RDONLY"
        " and Path(arguments[0]).is_dir():\n"
        "        print('folder', os.path.relpath(arguments[0], root))\n"
        "    if event == 'os.rename' and str(arguments[1]).endswith(transaction.JOURNAL):\n"
        "        print('journal')\n"
        "sys.addaudithook(hook)\n"
        "transaction.write_set(root, {root / 'new/deep/x': b'x', root / 'patches/a/y': b'y'}, {})\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(root)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    before, journal, _ = done.stdout.partition("journal\n")
    assert journal
    opened = {line.removeprefix("folder ") for line in before.splitlines()}
    assert opened >= {".", "new", "new/deep", "patches/a"}
