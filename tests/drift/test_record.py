"""The record of what reports saw: bounded, and whole whatever happened to a writer."""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from patchkit.drift.record import Line, Seen, SeenPatch, compare, note_seen, read_record
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Status


def _seen(number: int, component: str = "demo", **patches: Status) -> Seen:
    states = {name: SeenPatch(status, f"{number:040x}") for name, status in patches.items()}
    at = f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z"
    return Seen(at, "m", component, "main", "p", CommitId(f"{number:040x}"), states)


def _record(*seen: Seen) -> dict[Line, Seen]:
    return {each.line: each for each in seen}


def test_what_is_noted_is_read_again(tmp_path: Path) -> None:
    record = tmp_path / "new" / "m.jsonl"
    assert read_record(record) == {}
    patches = {"ä\udcff": SeenPatch(Status.MERGED)}
    one = Seen("t", "m", "c", "x\n\u2028y", "p", CommitId("q"), patches, ("n\udcff",))
    note_seen(record, [one, _seen(1)])
    note_seen(record, [_seen(2, a=Status.CONFLICTED)])
    assert read_record(record) == _record(one, _seen(2, a=Status.CONFLICTED))
    assert len(record.read_bytes().splitlines()) == 2


@given(data=st.data())
def test_law_a_torn_or_foreign_line_costs_only_itself(
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "m.jsonl"
        note_seen(record, [_seen(number, f"c{number}") for number in range(3)])
        whole = record.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        junk = data.draw(st.sampled_from([b"", b"[]\n", b'{"at":1}\n', b"\xff\n"]))
        record.write_bytes(junk + whole[:cut])
        note_seen(record, [_seen(7)])
        complete = whole[:cut].count(b"\n") + (cut > 0 and whole[cut : cut + 1] == b"\n")
        assert read_record(record) == _record(
            *(_seen(n, f"c{n}") for n in range(complete)), _seen(7)
        )


def _note_many(record: Path, component: str) -> None:
    for number in range(30):
        note_seen(record, [_seen(number, f"{component}{number}", patch=Status.MERGED)])


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    record = tmp_path / "m.jsonl"
    context = multiprocessing.get_context("fork")
    names = ("one", "two")
    writers = [context.Process(target=_note_many, args=(record, name)) for name in names]
    for each in writers:
        each.start()
    for each in writers:
        each.join(30)
    assert len(record.read_bytes().splitlines()) == len(read_record(record)) == 60


@given(
    was=st.dictionaries(st.sampled_from("abc"), st.sampled_from(list(Status)), max_size=3),
    now=st.dictionaries(st.sampled_from("abc"), st.sampled_from(list(Status)), max_size=3),
)
def test_law_the_same_is_no_change_and_changes_are_of_patches_that_differ(
    was: dict[str, Status], now: dict[str, Status]
) -> None:
    assert compare(_seen(1, **was), _seen(1, **was)).is_empty
    since = compare(_seen(1, **was), _seen(1, **now))
    for change in since.changes:
        assert (change.status, change.was) == (now.get(change.patch), was.get(change.patch))
        assert change.status is not change.was
    assert since.is_worse <= (not since.is_empty)
    assert {change.patch for change in since.changes} >= was.keys() ^ now.keys()


def test_a_first_report_tells_what_does_not_fit() -> None:
    since = compare(None, _seen(1, a=Status.SHIFTED, b=Status.CONFLICTED))
    assert [change.patch for change in since.changes] == ["b"]
    assert since.is_worse
    assert not since.at
