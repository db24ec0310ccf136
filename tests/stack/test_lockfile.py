"""The lock file: round trip, comparison, refusal of what is no lock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchkit.errors import BadInputError
from patchkit.manifest.values import LocalSeries
from patchkit.model.objects import FILE_MODE, Base, CommitId, TreeEntry, TreeId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.patch import PatchFile
from patchkit.stack.build import Stack, StackFile
from patchkit.stack.lock_differences import compare
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    LockedPatch,
    ReviewedTarget,
    load_lock,
    lock_bytes,
    lock_component,
    merge_lock,
    recorded_in,
    write_lock,
)
from patchkit.stack.series import LoadedPatch, LoadedSeries
from tests.support.components import WHERE

_ORIGIN = LocalSeries("patches/demo/series", WHERE)
ONE = LockedPatch("one.patch", "1" * 64, "1" * 40)
TWO = LockedPatch("two.patch", "2" * 64, "2" * 40)
DEMO = LockedComponent(CommitId("a" * 40), "b" * 40, (ONE, TWO), "2" * 40)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "demo.lock.json"
    assert load_lock(path) is None
    assert write_lock(path, Lock({"demo": DEMO}))
    assert load_lock(path) == Lock({"demo": DEMO})


def test_the_same_lock_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "demo.lock.json"
    write_lock(path, Lock({"demo": DEMO}))
    before = path.stat()
    assert not write_lock(path, Lock({"demo": DEMO}))
    assert path.stat() == before


def test_the_bytes_do_not_depend_on_the_order() -> None:
    assert lock_bytes(Lock({"a": DEMO, "b": DEMO})) == lock_bytes(Lock({"b": DEMO, "a": DEMO}))


def test_the_layout_is_promised() -> None:
    lines = lock_bytes(Lock({"demo": DEMO})).decode().splitlines()
    assert lines[:3] == ["{", '  "components": {', '    "demo": {']
    assert lines[-2:] == ['  "version": 1', "}"]


def test_the_lock_of_a_stack_names_the_tree_after_each_patch() -> None:
    """A patch that changes nothing has no tree of its own: the one before it stays."""
    empty = PatchFile(b"", b"", b"", None, ())
    series = [LoadedPatch(n, n.encode(), empty, _ORIGIN, None, n, 1, "") for n in "abc"]
    trees = [TreeId("1" * 40), None, TreeId("3" * 40)]
    outcomes = tuple(
        PatchResult(patch.name, Status.UNCHANGED, tree=tree)
        for patch, tree in zip(series, trees, strict=True)
    )
    base = Base(CommitId("a" * 40), TreeId("b" * 40), "0 +0000")
    made = StackFile("new.py", ("b",), (None, TreeEntry(FILE_MODE, "4" * 40)))
    stack = Stack(base, outcomes, CommitId("c" * 40), TreeId("3" * 40), (), (made,))
    locked = lock_component(stack, LoadedSeries(tuple(series)))
    assert (locked.commit, locked.tree, locked.result) == ("a" * 40, "b" * 40, "3" * 40)
    assert [(p.name, p.tree) for p in locked.patches] == [
        ("a", "1" * 40),
        ("b", "1" * 40),
        ("c", "3" * 40),
    ]
    assert locked.files == {"new.py": {"": None, "b": f"100644 {'4' * 40}"}}
    assert locked.stack_files == (made,)
    with pytest.raises(ValueError, match="zip"):
        lock_component(stack, LoadedSeries(tuple(series[:2])))


def test_what_is_recorded_of_a_component() -> None:
    assert recorded_in(Lock({"demo": DEMO}), "demo") == DEMO
    assert recorded_in(Lock({"demo": DEMO}), "other") is None
    assert recorded_in(None, "demo") is None


def test_merging_keeps_what_is_not_named() -> None:
    other = LockedComponent(CommitId("c" * 40), "d" * 40, (), "d" * 40)
    lock = Lock({"demo": DEMO, "old": DEMO})
    assert merge_lock(lock, {"new": other}, drop=["old"]) == Lock({"demo": DEMO, "new": other})
    assert merge_lock(None, {"new": other}) == Lock({"new": other})


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (LockedComponent(CommitId("a" * 40), "b" * 40, (ONE, TWO), "2" * 40), []),
        (
            LockedComponent(CommitId("c" * 40), "b" * 40, (ONE, TWO), "2" * 40),
            [f"the base is {'c' * 10}, the lock says {'a' * 10}"],
        ),
        (
            LockedComponent(CommitId("a" * 40), "b" * 40, (ONE,), "1" * 40),
            ["two.patch is in the lock and not in the series"],
        ),
        (
            LockedComponent(CommitId("a" * 40), "b" * 40, (TWO, ONE), "1" * 40),
            ["the patches are in another order: two.patch now comes before one.patch"],
        ),
        (
            LockedComponent(
                CommitId("a" * 40),
                "b" * 40,
                (ONE, LockedPatch("two.patch", "3" * 64, "3" * 40)),
                "3" * 40,
            ),
            [f"two.patch has changed: sha256 {'3' * 10}, the lock says {'2' * 10}"],
        ),
        (
            LockedComponent(CommitId("a" * 40), "b" * 40, (ONE, TWO), "4" * 40),
            [f"the resulting tree is {'4' * 10}, the lock says {'2' * 10}"],
        ),
        (
            LockedComponent(CommitId("a" * 40), "c" * 40, (ONE, TWO), "4" * 40),
            [f"the base's tree is {'c' * 10}, the lock says {'b' * 10}"],
        ),
        (
            LockedComponent(
                CommitId("a" * 40),
                "b" * 40,
                (ONE, LockedPatch("new.patch", "3" * 64, "3" * 40), TWO),
                "1" * 40,
            ),
            ["new.patch is not in the lock"],
        ),
    ],
)
def test_differences_name_what_is_there_and_what_the_lock_says(
    actual: LockedComponent, said: list[str]
) -> None:
    assert [each.what for each in compare(DEMO, actual)] == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(version=2), "version 2 of the lock; this patchkit knows 1"),
        (lambda d: d.pop("version"), "missing required field `version`"),
        (
            lambda d: d.update(components=[]),
            r"the lock: Expected `object`, got `array` - at `\$.components`",
        ),
        (lambda d: d["components"].update(demo=[]), "demo: Expected `object`, got `array`"),
        (
            lambda d: d["components"]["demo"].update(patches={}),
            r"demo: Expected `array`, got `object` - at `\$.patches`",
        ),
        (
            lambda d: d["components"]["demo"]["patches"][0].update(name=1),
            r"demo: Expected `str`, got `int` - at `\$.patches\[0\].name`",
        ),
        (
            lambda d: d["components"]["demo"]["patches"][1].update(sha256="x"),
            r"demo: .* - at `\$.patches\[1\].sha256`",
        ),
        (
            lambda d: d["components"]["demo"].update(extra=1),
            "demo: Object contains unknown field `extra`",
        ),
    ],
)
def test_what_is_no_lock_is_refused(tmp_path: Path, change: object, said: str) -> None:
    document = json.loads(lock_bytes(Lock({"demo": DEMO})))
    assert callable(change)
    change(document)
    path = tmp_path / "demo.lock.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInputError, match=said):
        load_lock(path)


def test_a_torn_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "demo.lock.json"
    path.write_bytes(lock_bytes(Lock({"demo": DEMO}))[:-20])
    with pytest.raises(BadInputError, match=r"demo\.lock\.json:\d+: not JSON"):
        load_lock(path)


@pytest.mark.parametrize("text", ['{"version": ' + "9" * 5000 + "}", "[" * 100_000, "\udcff", "[]"])
def test_what_json_cannot_read_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "demo.lock.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(BadInputError) as error:
        load_lock(path)
    assert error.value.problems[0].where == str(path)


REVIEWED = {
    ("speed", "core"): {
        "core.scale": ReviewedTarget("a" * 40, "function", "(x, by=2)", "00ff"),
        "core.ops.shift": ReviewedTarget("b" * 40, "function", "(x)", "11ff"),
    }
}


def test_reviews_are_written_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "demo.lock.json"
    lock = Lock({"demo": DEMO}, REVIEWED)
    write_lock(path, lock)
    assert load_lock(path) == lock
    assert merge_lock(lock, {}).overrides == REVIEWED
    assert merge_lock(lock, {}, drop=["core"]).overrides == {}


def test_a_lock_without_reviews_has_no_word_of_them() -> None:
    assert b"overrides" not in lock_bytes(Lock({"demo": DEMO}))


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        {"a": 1},
        {"a": {"b": {"short": {}}}},
        {"a": {"b": {"a" * 40: {"x": {"kind": "f"}}}}},
        *(
            {"a": {"b": {"a" * 40: {"x": {"kind": "", "signature": "", "body": "", key: 1}}}}}
            for key in ("kind", "signature", "body")
        ),
    ],
)
def test_reviews_that_are_none_are_refused(tmp_path: Path, overrides: object) -> None:
    path = tmp_path / "demo.lock.json"
    path.write_text(json.dumps({"version": 1, "components": {}, "overrides": overrides}))
    with pytest.raises(BadInputError):
        load_lock(path)


def test_a_lock_that_a_merge_left_in_conflict_says_so(tmp_path: Path) -> None:
    path = tmp_path / "demo.lock.json"
    path.write_text('{\n<<<<<<< HEAD\n  "a": 1\n=======\n  "a": 2\n>>>>>>> other\n}\n')
    with pytest.raises(BadInputError, match=r"demo\.lock\.json:2: has git's conflict markers"):
        load_lock(path)
