"""What is known of the commits between two bases, and what is not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from patchkit.gitcmd.commit_history import Between, that_touched
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import CommitId
from tests.support.repos import Upstream, git_in


def test_a_shallow_repository_blames_nobody(upstream: Upstream, tmp_path: Path) -> None:
    """The commit at which it was cut off seems to have brought every file."""
    old = upstream.commit({"a.txt": "a\n"})
    new = upstream.commit({"a.txt": "a\nmore\n"}, "Say more (#7)")
    whole = Between(Repository(upstream.path), old, new)
    told = f"{new[:10]} Say more (#7)"
    assert (_since(whole, b"more"), whole.changed_by("a.txt")) == (told, (told,))
    git_in(tmp_path, "init", "-q", "--bare", "cut")
    for commit in (old, new):
        git_in(tmp_path / "cut", "fetch", "-q", "--depth=1", upstream.url, commit)
    rootless = Between(
        Repository(upstream.path), old, upstream.commit({"a.txt": "b\n"}, parents=())
    )
    assert rootless.changed_by("a.txt") == ()
    cut = Between(Repository(tmp_path / "cut"), old, new)
    assert (_since(cut, b"more"), cut.changed_by("a.txt")) == ("", ())


def test_only_the_commits_that_touched_the_lines(upstream: Upstream) -> None:
    old = upstream.commit({"a.txt": "one\ntwo\n", "b.txt": "two\n"})
    said = upstream.commit({"a.txt": "ONE\ntwo\n"}, "Say ONE (#7)")
    upstream.commit({"a.txt": "ONE\nTWO\n"}, "Say TWO (#8)")
    new = upstream.commit({"b.txt": "TWO\n"}, "Say TWO elsewhere (#9)")
    repository = Repository(upstream.path)
    touches = Between(repository, old, new).touches("a.txt")
    assert [each.told.split(": ")[1] for each in touches] == ["Say TWO (#8)", "Say ONE (#7)"]
    # ids in full: they are asked for at the server
    assert all(len(oid) == 40 for each in touches for oid in each.blobs)
    (found,) = that_touched(repository, touches, [b"one"])
    assert found.told.startswith(f"{said[:10]} 2023-11-1")
    assert that_touched(repository, touches, [b"three"]) == ()
    again = upstream.commit({"a.txt": "ONE\nfi\n" + 6 * "TWO\n"}, "Say it over and over")
    touches = Between(repository, old, again).touches("a.txt")
    assert that_touched(repository, touches, [b"fi", b"TWO"]) == ()
    assert Between(repository, CommitId("0" * 39 + "1"), new).touches("a.txt") == ()


def _since(past: Between, line: bytes) -> str:
    return past.since(["a.txt"], lambda data: line in (data or b""))


def _counts(line: bytes, count: int, data: bytes | None) -> bool:
    return (data or b"").count(line) == count


def test_one_walk_answers_as_a_log_of_each_line_does(upstream: Upstream) -> None:
    """The oracle is `git log -S`, asked file by file and line by line."""
    lines = [f"line {n}\n" for n in range(6)]
    old = new = upstream.commit({"a.txt": "".join(lines), "b.txt": "".join(lines)})
    for step in range(12):
        name, at = "ab"[step % 2] + ".txt", (step * 5) % 6
        lines[at] = f"line {at}\n" if lines[at].startswith("x") else f"x line {at} line {at}\n"
        new = upstream.commit({name: "".join(lines)}, f"Step {step}")
    upstream.commit({"a.txt": None}, "Take a away")
    new = upstream.commit({"c.txt": "line 1\n"}, "Say c")
    past = Between(Repository(upstream.path), old, new, paths=["a.txt", "b.txt"])
    for path in ("a.txt", "b.txt", "c.txt"):
        text = git_in(upstream.path, "log", "-1", "--format=%H", "--", path).decode().strip()
        there = git_in(upstream.path, "show", f"{text}:{path}") if path != "a.txt" else b""
        for line in (b"line 1", b"x line 3 line 3", b"nowhere"):
            span = [f"-S{line.decode()}", f"{old}..{new}", "--", path]
            log = git_in(upstream.path, "log", "-1", "--format=%h %s", "--abbrev=10", *span)
            count = partial(_counts, line, there.count(line))
            assert past.since([path], count) == log.decode().strip()
    assert past.deleted_by("a.txt").endswith(" Take a away")
    assert [each.commit.subject for each in past.touches("c.txt")] == ["Say c"]


def test_a_file_is_followed_to_its_old_path(upstream: Upstream) -> None:
    old = upstream.commit({"old.txt": "a\n"})
    brought = upstream.commit({"old.txt": "a\nb\n"}, "Say b in it")
    new = upstream.commit({"old.txt": None, "a.txt": "a\nb\n"}, "Move the file")
    past = Between(Repository(upstream.path), old, new)
    assert _since(past, b"b") == f"{new[:10]} Move the file"
    there = past.since(["a.txt", "old.txt"], lambda data: b"b" in (data or b""))
    assert there == f"{brought[:10]} Say b in it"
