"""The law of planning: on every commit it says what carrying there comes to."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from msgspec.structs import replace

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.drift.drift_report import PatchForecast
from patchkit.drift.walk import Walker, WatchedSeries
from patchkit.extensions.planning.combination import walk_stack
from patchkit.extensions.planning.plan_report import CommitRange, Effort
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.manifest.values import GitSource
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId, TreeEntry, make_object
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.progress import Silent
from patchkit.model.resolution import Resolution
from patchkit.stack.build import SeriesPatch
from patchkit.upstream.history import History, HistoryReader, HistoryRepository
from patchkit.upstream.store import Store
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

WORDS = ("alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa", "theta")


def text(random: Random, size: int = 24) -> str:
    return "".join(f"{random.choice(WORDS)}_{n} = call({n})\n" for n in range(size))


def edited(random: Random, old: str) -> str:
    """A line changed, added or taken away, or the file's end."""
    lines = old.splitlines(keepends=True)
    at = random.randrange(len(lines))
    deed = random.choice(("change", "insert", "delete", "append"))
    new = f"{random.choice(WORDS)} = fresh({random.randrange(99)})\n"
    if deed == "append":
        return old + new
    return "".join([*lines[:at], *([] if deed == "delete" else [new])]) + "".join(
        lines[at + (deed != "insert") :]
    )


def history_of(upstream: Upstream, pin: str, tip: str) -> History:
    repository = HistoryRepository(
        upstream.path,
        store=Store(upstream.path / "nothing", offline=True),
        source=GitSource(upstream.url, ()),
        name="demo",
        progress=Silent(),
    )
    return History(repository, "main", CommitId(pin), CommitId(tip))


def walked(history: History, series: list[SeriesPatch]) -> tuple[CommitRange, ...]:
    with ObjectReader(history.repository) as reader:
        along = HistoryReader(history, reader)
        return walk_stack(along, WatchedSeries(series))[1]


def stretch_at(stretches: tuple[CommitRange, ...], position: int) -> CommitRange:
    return next(each for each in stretches if each.first <= position <= each.last)


class _PastOfAWalk(Between):
    """Without the versions of files, which a walk does not ask for (see RoutePast)."""

    def versions(self, path: str) -> tuple[tuple[str, bytes], ...]:
        return ()


def outcomes_at(
    history: History, series: list[SeriesPatch], commit: str
) -> tuple[PatchResult, ...]:
    past = _PastOfAWalk(history.repository, history.pin, CommitId(commit))
    with ObjectReader(history.repository) as reader:
        bases = history.base(history.pin), history.base(CommitId(commit))
        return carry_stack(reader, *bases, series, CarryOptions(past=past)).outcomes


def _seen(
    patch: PatchResult | PatchForecast, conflicts: Collection[str], review: Collection[str]
) -> tuple[object, ...]:
    """What both say of a patch: how it fits is told only where it is work."""
    fits = patch.status in (Status.UNCHANGED, Status.SHIFTED, Status.EMPTY)
    left_out = patch.status in (Status.ABSORBED, Status.CONFLICTED, Status.WAITING)
    status = left_out and patch.status
    return patch.name, fits, status, patch.waits_for, set(conflicts), set(review)


def told(outcomes: tuple[PatchResult, ...]) -> list[tuple[object, ...]]:
    return [
        _seen(
            each,
            [f.path for f in each.files if f.status is Status.CONFLICTED],
            [f.path for f in each.files if f.review],
        )
        for each in outcomes
    ]


def forecast(stretch: CommitRange) -> list[tuple[object, ...]]:
    return [_seen(each, each.conflicts, each.review) for each in stretch.patches]


def assert_agrees(history: History, series: list[SeriesPatch]) -> None:
    stretches = walked(history, series)
    line = history.line
    assert stretches[0].first == 0
    assert stretches[-1].last == len(line.commits)
    for position, commit in enumerate((line.start, *line.commits)):
        expected = told(outcomes_at(history, series, commit))
        assert forecast(stretch_at(stretches, position)) == expected, (position, commit)


def assert_misses_nothing(history: History, series: list[SeriesPatch]) -> None:
    """A quick walk judges what may have become another; judged at every commit it is the same."""
    with ObjectReader(history.repository) as reader:
        along = HistoryReader(history, reader)
        walker, afresh = (
            Walker(along, WatchedSeries(series), quick=True, sampled=sampled)
            for sampled in (True, False)
        )
        at = dict(afresh.judge_all())
        for position, verdicts in walker.judge_all():
            expected = at[position]
            for one, other in zip(verdicts, expected, strict=True):
                told, there = one.forecast, other.forecast
                same = replace(there, conflicts=told.conflicts, review=told.review)  # not all
                assert (told, one.faults) == (same, other.faults), position
                assert bool(told.conflicts) == bool(there.conflicts), position


def patch(name: str, old: dict[str, str], new: dict[str, str]) -> SeriesPatch:
    data = make_patch(old, new, subject=f"Change {name}")
    return SeriesPatch(f"{name}.patch", parse_patch(data, name=name))


# in 39 and 51 a merge that a person should look at waits for an earlier patch
@pytest.mark.parametrize("seed", [*range(4), 39, 51])
def test_law_as_trying_each_commit(upstream: Upstream, seed: int) -> None:
    random = Random(seed)
    files = {name: text(random) for name in ("a.py", "lib/b.py", "lib/c.py", "lib/d.txt")}
    pin = upstream.commit(files)
    one = {**files, "a.py": edited(random, files["a.py"]), "lib/b.py": edited(random, "x\n" * 9)}
    one["lib/b.py"] = edited(random, edited(random, files["lib/b.py"]))
    two = {**one, "a.py": edited(random, one["a.py"]), "lib/new.py": text(random, 5)}
    series = [patch("one", files, one), patch("two", one, two)]
    now = dict(files)
    for _ in range(14):
        path = random.choice(sorted(now))
        deed = random.choice(("edit", "edit", "edit", "edit", "take", "move", "delete"))
        if deed == "edit":
            now[path] = edited(random, now[path])
            upstream.commit({path: now[path]}, "Edit")
        elif deed == "take" and path in two:
            now[path] = random.choice((one, two)).get(path, now[path])
            upstream.commit({path: now[path]}, "Take what the patch makes")
        elif deed == "move":
            new = f"{random.choice(('lib', 'src'))}/{random.randrange(99)}{path[-3:]}"
            now[new] = now.pop(path)
            upstream.commit({path: None, new: now[new]}, "Move")
        elif len(now) > 2:
            del now[path]
            upstream.commit({path: None}, "Delete")
    tip = upstream.resolve("refs/heads/main")
    assert tip is not None
    assert_agrees(history_of(upstream, pin, tip), series)
    assert_misses_nothing(history_of(upstream, pin, tip), series)


def test_a_folder_that_moves_takes_added_files_along(upstream: Upstream) -> None:
    random = Random(3)
    files = {f"old/{name}.py": text(random) for name in "abc"}
    pin = upstream.commit(files)
    upstream.commit({"other": "x\n"})
    upstream.commit({**dict.fromkeys(files), **{f"new/{p[4:]}": t for p, t in files.items()}})
    tip = upstream.commit({"other": "y\n"})
    series = [patch("add", files, {**files, "old/extra.py": "x = 1\n"})]
    history = history_of(upstream, pin, tip)
    assert_agrees(history, series)
    assert_misses_nothing(history, series)
    assert [(each.first, each.effort) for each in walked(history, series)] == [
        (0, Effort()),
        (2, Effort(0, 1, 1)),
    ]


def test_what_fails_elsewhere_decides_of_a_file_as_well(upstream: Upstream) -> None:
    """The second patch has its lines from the first, which conflicts, until upstream has them."""
    files = {name: text(Random(name)) for name in ("a.py", "b.py")}
    a, b = (files[name].splitlines(keepends=True) for name in ("a.py", "b.py"))
    one = {
        "a.py": files["a.py"].replace(a[9], "ours = 1\n"),
        "b.py": files["b.py"].replace(b[9], b[9] + "one = 1\n"),
    }
    two = one | {"b.py": one["b.py"].replace("one = 1\n", "one = 1\ntwo = 2\n")}
    pin = upstream.commit(files)
    upstream.commit({"a.py": files["a.py"].replace(a[9], "theirs = 1\n")})
    upstream.commit({"b.py": "first = 1\n" + files["b.py"]})
    block = "".join([*b[6:10], "one = 1\n", *b[10:13]])
    tip = upstream.commit({"b.py": "first = 1\n" + files["b.py"] + 9 * "more = 1\n" + block})
    series = [patch("one", files, one), patch("two", one, two)]
    assert_misses_nothing(history_of(upstream, pin, tip), series)


def test_a_folder_that_is_left_later_takes_added_files_along(upstream: Upstream) -> None:
    """Its last file goes with an edit of a file to which nothing else happens."""
    files = {f"old/{number}.py": text(Random(number), 5) for number in range(10, 31)}
    *moved, last = sorted(files)
    base = text(Random(1))
    pin = upstream.commit({**files, "a.py": base})
    upstream.commit({**dict.fromkeys(moved), **{f"new/{p[4:]}": files[p] for p in moved}})
    upstream.commit({"a.py": base + "more = 1\n"})
    tip = upstream.commit({"a.py": base + "yet = 1\n", last: None})
    at_pin = {"a.py": base}
    ours = {"a.py": base.replace("\n", "\nours = 1\n", 9), "old/extra.py": "x = 1\n"}
    assert_misses_nothing(history_of(upstream, pin, tip), [patch("one", at_pin, ours)])


def test_a_break_that_is_mended_is_passed(upstream: Upstream) -> None:
    """The newest commit without work is behind the break, and the break is not hidden."""
    base = text(Random(5))
    lines = base.splitlines(keepends=True)
    ours, theirs = (base.replace(lines[9], f"{who} = 1\n") for who in ("ours", "theirs"))
    pin = upstream.commit({"a.py": base})
    upstream.commit({"a.py": theirs})
    upstream.commit({"a.py": base})
    tip = upstream.commit({"b.py": "x\n"})
    history = history_of(upstream, pin, tip)
    series = [patch("one", {"a.py": base}, {"a.py": ours})]
    assert [(s.first, s.last, s.effort.conflicts) for s in walked(history, series)] == [
        (0, 0, 0),
        (1, 1, 1),
        (2, 3, 0),
    ]
    assert_agrees(history, series)


def test_a_conflict_that_is_remembered_is_none(upstream: Upstream) -> None:
    """For that version of upstream's file only; one that comes to something else stays."""
    base = text(Random(11))
    line = base.splitlines(keepends=True)[9]
    texts = {who: base.replace(line, f"{who} = 1\n") for who in ("ours", "theirs", "both")}
    pin = upstream.commit({"a.py": base})
    met = upstream.commit({"a.py": texts["theirs"]})
    tip = upstream.commit({"a.py": texts["theirs"] + "more = 1\n"})
    history = history_of(upstream, pin, tip)
    series = [patch("one", {"a.py": base}, {"a.py": texts["ours"]})]
    with ObjectReader(history.repository) as reader:
        carried = carry_stack(reader, history.base(pin), history.base(met), series)
        (file,) = carried.conflicts["one.patch"]
        for result, conflicts in ((texts["both"], 0), ("another\n", 1)):
            blob = make_object("blob", result.encode())
            data = make_patch({"a.py": texts["theirs"]}, {"a.py": texts["both"]})
            changes = parse_patch(data, name="x").changes
            entry = TreeEntry(0o100644, blob.oid)
            kept = {file.key: Resolution(file.key, file.sides[1], entry, changes, "kept")}
            along = HistoryReader(history, reader)
            _, found = walk_stack(along, WatchedSeries(series, remembered=kept))
            assert [each.effort.conflicts for each in found] == [0, conflicts, 1][: len(found)]
            assert len(found) == 3 - conflicts


def test_a_pin_that_is_on_another_branch(upstream: Upstream) -> None:
    base = text(Random(7))
    fork = upstream.commit({"a.py": base, "b.py": base})
    pin = upstream.commit({"b.py": base + "aside = 1\n"}, branch="side", parents=(fork,))
    upstream.commit({"b.py": None, "c.py": base})
    tip = upstream.commit({"a.py": edited(Random(1), base)})
    at_pin = {"a.py": base, "b.py": base + "aside = 1\n"}
    changed = {"a.py": base + "ours = 1\n", "b.py": "first = 1\n" + at_pin["b.py"]}
    assert_agrees(history_of(upstream, pin, tip), [patch("one", at_pin, changed)])
