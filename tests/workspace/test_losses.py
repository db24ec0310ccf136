"""Whatever a user, or an editor at work, has in a checkout: it is kept, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.model.objects import CommitId
from patchkit.workspace.contents import contents_at
from patchkit.workspace.enter import Action, RefusalCause, Stacked
from patchkit.workspace.journal import MoveStep
from patchkit.workspace.move import settle
from patchkit.workspace.put_files import put_back, put_in_place, release
from patchkit.workspace.state import Place
from tests.support.powers import without_calls
from tests.support.repos import Files, Symlink
from tests.workspace.bench import BASE, STAMP, WHEN, Bench
from tests.workspace.killing import hooks, just_before

pytestmark = pytest.mark.slow

SAVED = f"refs/patchkit/saved/{STAMP}"


def blob_in(bench: Bench, ref: str, data: bytes) -> bool:
    """Whether a blob with these bytes can be reached from a ref."""
    oid = bench.git("hash-object", "--no-filters", "--stdin", stdin=data)
    return oid in bench.git("rev-list", "--objects", ref)


def moved(bench: Bench, files: Files) -> Stacked:
    """A stack that differs in these files."""
    return bench.stacked(bench.base, bench.upstream.commit(files))


# -- what git does not show -------------------------------------------------------------------


def _same_size_and_time(bench: Bench, name: str, text: str) -> None:
    path = bench.path / name
    status = path.stat()
    assert len(text) == status.st_size
    path.write_text(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_an_edit_of_the_same_size_and_time_is_seen(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.git("config", "core.checkStat", "minimal")
    _same_size_and_time(bench, "b.py", "TOW\n")
    assert bench.look().edited == ()
    stack = moved(bench, {"b.py": "2\n"})
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert (refused.refusal.cause, refused.refusal.paths) == (RefusalCause.EDITED, ("b.py",))
    assert (bench.path / "b.py").read_text() == "TOW\n"
    bench.enter(stack, force=True)
    bench.assert_at(stack)
    assert bench.git("show", f"{SAVED}:b.py") == "TOW"


def test_a_mode_that_git_was_told_not_to_see(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.git("update-index", "--assume-unchanged", "b.py")
    (bench.path / "b.py").chmod(0o755)
    stack = moved(bench, {"b.py": "2\n"})
    refused = bench.enter(stack)
    assert refused.refusal is not None
    assert refused.refusal.paths == ("b.py",)
    bench.enter(stack, force=True)
    assert bench.git("ls-tree", SAVED, "b.py").startswith("100755")


def test_where_modes_do_not_count_a_file_for_a_link_is_an_edit_all_the_same(bench: Bench) -> None:
    bench.enter(bench.stack({**BASE, "link": Symlink("a.py")}))
    bench.git("config", "core.fileMode", "false")
    (bench.path / "b.py").chmod(0o755)
    assert bench.enter(moved(bench, {"b.py": "2\n"})).action is Action.MOVED
    bench.git("update-index", "--assume-unchanged", "link")
    (bench.path / "link").unlink()
    bench.write("link", "a.py")
    refused = bench.enter(moved(bench, {"link": Symlink("b.py")}))
    assert refused.refusal is not None
    assert refused.refusal.paths == ("link",)


def test_a_file_that_stays_keeps_its_flag_and_its_edit(bench: Bench) -> None:
    bench.enter(bench.stack())
    for flag, name in (("--assume-unchanged", "b.py"), ("--skip-worktree", ".gitignore")):
        bench.git("update-index", flag, name)
        bench.write(name, "mine\n")
    before = bench.git("ls-files", "-v", "b.py", ".gitignore")
    assert bench.enter(moved(bench, {"a.py": "2\n"})).action is Action.MOVED
    assert bench.git("ls-files", "-v", "b.py", ".gitignore") == before
    assert (bench.path / "b.py").read_text() == "mine\n"


def test_line_ends_that_git_takes_for_the_same_are_an_edit(bench: Bench) -> None:
    """Neither the blob's bytes nor those of a checkout of it: only the user has them."""
    bench.enter(bench.stack({**BASE, ".gitattributes": "*.txt text eol=crlf\n", "x.txt": "1\n2\n"}))
    assert (bench.path / "x.txt").read_bytes() == b"1\r\n2\r\n"
    bench.write("x.txt", b"1\r\n2\n")
    stack = moved(bench, {"x.txt": "3\n"})
    assert bench.enter(stack).action is Action.REFUSED
    bench.enter(stack, force=True)
    assert blob_in(bench, SAVED, b"1\r\n2\n")


# -- bytes ------------------------------------------------------------------------------------

CONVERTED = {
    "mixed ends": ("* text=auto\n", b"1\r\n2\n3\r\n"),
    "crlf": ("* text eol=crlf\n", b"1\r\n2\r\nmine\r\n"),
    "ident": ("* ident\n", b"$Id: mine, and no other $\n"),
    "lossy filter": ("* filter=lossy\n", b"kept\n# secret\n"),
    "encoding": ("* working-tree-encoding=UTF-16LE\n", "mine\n".encode("utf-16-le")),
    "broken filter": ("* filter=broken\n", b"mine\n"),
}


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("tracked", [True, False])
def test_saved_work_has_the_bytes_that_were_written(
    bench: Bench, kind: str, *, tracked: bool
) -> None:
    attributes, data = CONVERTED[kind]
    bench.enter(bench.stack({**BASE, "x.txt": "0\n"}))
    (bench.path / ".git/info").mkdir(exist_ok=True)
    (bench.path / ".git/info/attributes").write_text(attributes.replace("*", "x.txt"))
    bench.git("config", "filter.lossy.clean", "grep -v secret")
    bench.git("config", "filter.broken.clean", "false")
    bench.git("config", "filter.broken.required", "true")
    if not tracked:
        bench.git("rm", "-q", "--cached", "x.txt")
        bench.git("commit", "-qm", "no x")
    bench.write("x.txt", data)
    saved = bench.enter(moved(bench, {"a.py": "3\n", "x.txt": None}), force=True).saved
    oid = bench.git("rev-parse", f"{saved}:x.txt")
    assert bench.git("hash-object", "--no-filters", "--stdin", stdin=data) == oid


def test_what_nobody_edited_is_saved_as_it_was_committed(bench: Bench) -> None:
    """A checkout with other line ends than the commit: the saved work is the edit alone."""
    text = {"x.txt": "1\n2\n", "y.txt": "1\n2\n", ".gitattributes": "*.txt text eol=crlf\n"}
    bench.enter(bench.stack({**BASE, **text}))
    bench.write("x.txt", b"1\r\nmine\r\n")
    saved = bench.enter(moved(bench, {"a.py": "3\n"}), force=True).saved
    assert bench.git("diff", "--name-only", f"{saved}^1", saved) == "x.txt"


# -- what the index alone holds ---------------------------------------------------------------


def _stage(bench: Bench, name: str, text: str) -> None:
    """Stage a text, and put the file back to what it was."""
    path = bench.path / name
    before = path.read_bytes() if path.exists() else None
    bench.write(name, text)
    bench.git("add", name)
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)


@pytest.mark.parametrize("name", ["a.py", "new.txt"])
def test_what_was_only_staged_is_kept_where_the_branch_alone_moves(bench: Bench, name: str) -> None:
    stack = bench.stack()
    bench.enter(stack)
    _stage(bench, name, "staged only\n")
    done = settle(
        bench.checkout,
        bench.look(),
        Place(CommitId(stack.base), CommitId(stack.tip)),
        when=WHEN,
    )
    assert done.saved == (SAVED,)
    assert blob_in(bench, SAVED, b"staged only\n")
    bench.assert_at(stack)


def test_what_is_on_disk_as_well_is_not_saved_once_more(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    bench.write("b.py", "edited\n")
    bench.write("noted.txt", "noted\n")
    bench.git("add", "b.py")
    bench.git("add", "--intent-to-add", "noted.txt")
    done = settle(
        bench.checkout,
        bench.look(),
        Place(CommitId(stack.base), CommitId(stack.tip)),
        when=WHEN,
    )
    assert done.saved == ()
    assert (bench.path / "b.py").read_text() == "edited\n"


def test_all_sides_of_a_conflict_are_saved(bench: Bench) -> None:
    """What `git apply --3way` left: blobs that no commit has."""
    stack = bench.stack()
    bench.enter(stack)
    oids = [bench.git("hash-object", "-w", "--stdin", stdin=f"{n}\n".encode()) for n in (1, 2, 3)]
    rows = "".join(f"100644 {oid} {stage}\tb.py\n" for stage, oid in enumerate(oids, 1))
    zero = "0" * 40
    bench.git("update-index", "--index-info", stdin=f"0 {zero}\tb.py\n{rows}".encode())
    _stage(bench, "a.py", "staged only\n")
    bench.enter(moved(bench, {"a.py": "3\n"}), force=True)
    for data in (b"1\n", b"2\n", b"3\n", b"staged only\n"):
        assert blob_in(bench, SAVED, data)


def test_what_is_staged_while_the_checkout_moves_is_kept(bench: Bench) -> None:
    bench.enter(bench.stack())
    stack = moved(bench, {"a.py": "3\n"})
    with just_before("os.link", lambda: _stage(bench, "b.py", "staged only\n")):
        done = bench.enter(stack)  # the link is git's lock on the index
    assert done.also_saved == (SAVED,)
    assert blob_in(bench, SAVED, b"staged only\n")
    bench.assert_at(stack)


# -- while files change places ----------------------------------------------------------------


class Places:
    """Three files to replace, one to add, one to remove, below a folder that is no repository."""

    def __init__(self, folder: Path) -> None:
        self.root, self.folder = folder / "checkout", folder / "move"
        (self.root / "deep").mkdir(parents=True)
        (self.folder / "new" / "deep").mkdir(parents=True)
        for name in ("a.py", "b.py", "deep/c.py", "gone.py"):
            (self.root / name).write_text("old\n")
        for name in ("a.py", "b.py", "deep/c.py", "added.py"):
            (self.folder / "new" / name).write_text("new\n")
        names = ("gone.py", "a.py", "b.py", "deep/c.py", "added.py")
        self.steps = [
            MoveStep(name, contents_at(self.root, name), contents_at(self.folder / "new", name))
            for name in names
        ]

    def put(self) -> None:
        put_in_place(self.root, self.folder, self.steps)

    def back(self) -> None:
        put_back(self.root, self.folder, self.steps)

    def texts(self) -> dict[str, str]:
        return {
            path.relative_to(self.root).as_posix(): path.read_text()
            for path in self.root.rglob("*")
            if path.is_file()
        }


OLD = dict.fromkeys(("a.py", "b.py", "deep/c.py", "gone.py"), "old\n")
NEW = dict.fromkeys(("a.py", "b.py", "deep/c.py", "added.py"), "new\n")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_files_change_places_and_back(places: Places) -> None:
    places.put()
    assert places.texts() == NEW
    places.back()
    assert places.texts() == OLD


@pytest.mark.parametrize("name", ["a.py", "b.py", "deep/c.py", "gone.py", "added.py"])
@pytest.mark.parametrize("number", range(8))
def test_a_file_saved_at_any_rename_stays_where_it_is(
    places: Places, name: str, number: int
) -> None:
    """By an editor that renames its own over it."""

    def save() -> None:
        (places.root / "editor~").write_text("mine\n")
        (places.root / "editor~").replace(places.root / name)

    left = [number]

    def happen(event: str, _: object) -> None:
        if event == "os.rename" and left:
            left[0] -= 1
            if left[0] < 0:
                left.clear()
                save()

    hooks.append(happen)
    try:
        places.put()
    except SurroundingsError as error:
        assert f"{name} was changed while" in str(error)
        places.back()
        assert places.texts() == {**OLD, name: "mine\n"}
    else:
        assert places.texts() == (NEW if left else {**NEW, name: "mine\n"})
    finally:
        hooks.remove(happen)


def test_what_is_written_to_a_file_that_was_open_is_found(places: Places) -> None:
    with (places.root / "b.py").open("a") as editor:
        places.put()
        editor.write("mine\n")
    written, still_open = release(places.folder, places.steps)
    assert still_open == {}
    assert {path: place.read_text() for path, place in written.items()} == {"b.py": "old\nmine\n"}


def test_a_file_that_stays_open_is_kept(places: Places) -> None:
    with (places.root / "b.py").open("a") as editor:
        places.put()
        written, still_open = release(places.folder, places.steps)
        assert (written, list(still_open)) == ({}, ["b.py"])
        editor.write("mine\n")
    assert still_open["b.py"].read_text() == "old\nmine\n"


def test_what_is_still_open_is_named(bench: Bench) -> None:
    bench.enter(bench.stack())
    with (bench.path / "b.py").open("a") as editor:
        (place,) = bench.enter(moved(bench, {"b.py": "2\n"})).also_saved
        editor.write("mine\n")
    assert Path(place).read_text() == "two\nmine\n"
    assert (bench.path / "b.py").read_text() == "2\n"


@pytest.mark.parametrize("work", ["put", "back"])
def test_a_system_that_cannot_exchange_files(places: Places, work: str) -> None:
    def run() -> bool:
        places.put()
        if work == "back":
            places.back()
        return places.texts() == (OLD if work == "back" else NEW)

    assert without_calls(["renameat2"], run)


def test_a_system_that_cannot_exchange_files_overwrites_nothing(places: Places) -> None:
    (places.root / "added.py").write_text("mine\n")

    def run() -> bool:
        try:
            places.put()
        except SurroundingsError:
            places.back()
        return places.texts() == {**OLD, "added.py": "mine\n"}

    assert without_calls(["renameat2"], run)


def test_a_folder_in_the_way_is_saved_file_by_file(bench: Bench) -> None:
    """What comes into it once it was saved stays there, and stops the move."""
    bench.enter(bench.stack())
    bench.write("e/f", "mine\n")
    stack = moved(bench, {"e": "theirs\n"})
    late = bench.path / "e/late"
    with (
        just_before("os.link", lambda: late.write_text("late\n")),
        pytest.raises((SurroundingsError, OSError)),
    ):
        bench.enter(stack, force=True)
    assert late.read_text() == "late\n"
    assert (bench.path / "e/f").read_text() == "mine\n"
    bench.enter(stack, force=True)
    assert blob_in(bench, f"{SAVED}-2", b"late\n")
    bench.assert_at(stack)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("mine")


Edit = Callable[[Bench], object]
EDITS: dict[str, Edit] = {
    "written": lambda bench: bench.write("b.py", "mine\n"),
    "renamed over": lambda bench: bench.write("b~", "mine\n").replace(bench.path / "b.py"),
    "replaced by a link": lambda bench: _link(bench.path / "b.py"),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("event", ["os.link", "os.rename"])
def test_what_is_saved_after_the_look_stops_the_move(bench: Bench, edit: str, event: str) -> None:
    bench.enter(bench.stack())
    stack = moved(bench, {"a.py": "2\n", "b.py": "2\n"})
    before = contents_at(bench.path, "b.py")
    try:
        with just_before(event, lambda: EDITS[edit](bench)):
            action = bench.enter(stack).action
    except SurroundingsError as error:
        assert "b.py was changed while" in str(error)
    else:
        assert action is Action.REFUSED
    assert contents_at(bench.path, "b.py") != before
    assert (bench.path / "a.py").read_text() == "ONE\n"
    assert not (bench.path / ".git/patchkit/move").exists()
