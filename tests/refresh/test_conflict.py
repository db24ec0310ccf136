"""Resolutions that the project remembers: replayed anywhere, refused where they come to less."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchkit.errors import BadInputError
from patchkit.model.objects import TreeEntry
from patchkit.model.resolution import Resolution, format_resolution, parse_resolution
from tests.ops.test_resume import Bumping
from tests.support.projects import Project
from tests.support.repos import Content, Upstream
from tests.support.stacked import lines, small_patches

_ENTRIES = st.none() | st.builds(
    TreeEntry,
    st.sampled_from([0o100644, 0o100755, 0o120000]),
    st.text("0123456789abcdef").map(lambda text: (text + "0" * 40)[:40]),
)


@given(upstream=_ENTRIES, result=_ENTRIES, path=st.sampled_from(["a.txt", "a b/c", "é"]))
def test_law_what_is_written_is_read(
    upstream: TreeEntry | None, result: TreeEntry | None, path: str
) -> None:
    resolution = Resolution("ab" * 32, upstream, result, (), "x")
    data = format_resolution(resolution, "one.patch", path, b"")
    assert parse_resolution(data, "x") == resolution
    assert replace(resolution, key="cd" * 32) != parse_resolution(data, "x")


@pytest.mark.parametrize(
    "data",
    [b"", b"Subject: x\n\nConflict: abc\n", b"Subject: x\n\nConflict: " + b"a" * 64 + b"\n"],
)
def test_another_file_is_no_resolution(data: bytes) -> None:
    with pytest.raises(BadInputError):
        parse_resolution(data, "x.resolution")


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Bumping:
    """one.patch conflicted, was resolved, and the bump is through."""
    stack = Bumping.of(project, upstream, small_patches())
    upstream.commit({"a.txt": lines({5: "upstream five\n"})}, "Say five (#7)")
    return stack


def _bumped(stack: Bumping) -> tuple[object, ...]:
    """Bump with the conflict resolved by hand; the project then. Back to the start after it."""
    before = stack.product
    stack.bump().ends(3)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    stack.run("continue").ok()
    kept = {path.name: path.read_bytes() for path in _folder(stack).iterdir()}
    files, *rest = stack.product
    assert stack.run("undo").ok().err.count("stays: the next bump takes that resolution") == 1
    assert stack.state_but_kept[:2] == before
    # what a person did stays
    assert {path.name: path.read_bytes() for path in _folder(stack).iterdir()} == kept
    return (files, *rest)


def _folder(stack: Bumping) -> Path:
    return stack.project.root / "patches/demo/resolutions"


def _file(stack: Bumping) -> Path:
    (path,) = _folder(stack).iterdir()
    return path


@pytest.mark.slow
def test_a_colleague_need_not_resolve_it_again(stack: Bumping) -> None:
    by_hand = _bumped(stack)
    shutil.rmtree(stack.checkout)  # another machine
    ran = stack.bump().ok()
    name = _file(stack).name
    assert f"resolved as remembered in patches/demo/resolutions/{name}" in " ".join(ran.out.split())
    assert stack.product == by_hand
    stack.prepare("apply").ok()
    stack.settled()


@pytest.mark.slow
def test_it_holds_for_that_conflict_alone(stack: Bumping, upstream: Upstream) -> None:
    _bumped(stack)
    upstream.commit({"a.txt": lines({5: "upstream five again\n"})}, "Say it again (#8)")
    stack.bump().ends(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"+upstream FIVE\n", b"+upstream IV\n"),
        (b"-line 6\n", b"-line 7\n"),
        (b"Result: 1", b"R: "),
    ],
)
def test_a_replay_that_gives_another_result_is_refused(
    stack: Bumping, old: bytes, new: bytes
) -> None:
    _bumped(stack)
    path = _file(stack)
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    with stack.untouched():
        stack.bump().ends(
            4, f"patches/demo/resolutions/{path.name}", "delete it, and resolve the conflict again"
        )
    path.unlink()
    stack.bump().ends(3)


@pytest.mark.slow
def test_a_resolution_that_touches_more_files_is_not_remembered(stack: Bumping) -> None:
    stack.bump().ends(3)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.run("continue").ok()
    assert not _folder(stack).exists()


@pytest.mark.slow
def test_files_without_markers_are_remembered_too(project: Project, upstream: Upstream) -> None:
    """Both added, binary, deleted by the patch or by upstream: git decides each."""
    old: dict[str, Content] = {"image": b"\0old", "gone": "g\n", "lost": "l\n", "keep": "k\n"}
    new = {"image": b"\0patched", "gone": None, "both": "ours\n", "lost": "L\n", "keep": "K\n"}
    project.patched(upstream, old, new, subject="All kinds", body="For a test.")
    stack = Bumping.applied(project)
    upstream.commit({"image": b"\0upstream", "gone": "more\n", "both": "theirs\n", "lost": None})
    before = stack.state
    stack.bump().ends(3)
    assert (stack.read("keep"), stack.read("both")) == ("K\n", "theirs\n")
    stack.run("continue").says(
        *(f"{name}: is not decided" for name in ("image", "gone", "both", "lost"))
    )
    (stack.checkout / "image").write_bytes(b"\0both")
    stack.write("both", "theirs and ours\n")
    stack.git("add", "image", "both", "lost")
    stack.git("rm", "-q", "gone")
    stack.run("continue").ok()
    stack.settled()
    by_hand = stack.product
    assert len(list(_folder(stack).iterdir())) == 4
    stack.run("undo").ok()
    assert stack.state_but_kept == before
    stack.bump().ok()
    assert stack.product == by_hand
