"""The last carry of a series, kept: the same report, draft and conflict as carried again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import CarryReport
from patchkit.carry.carried import CarryOptions
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import overlay
from patchkit.manifest.values import Component, GitPin, GitSource, LocalSeries, Location
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId
from patchkit.model.outcome import Status
from patchkit.model.resolution import Resolution
from patchkit.refresh.carry_onto import LastCarry, draft_carry
from patchkit.refresh.conflict import first_conflict
from patchkit.refresh.patch_plan import Draft, SeriesFolder
from patchkit.stack.series import LoadedPatch
from tests.support.repos import Upstream, make_patch

_HERE = Location(Path("demo.yaml"), 1)
_SERIES = LocalSeries("patches/demo/series", _HERE)


class Carrying(Struct, frozen=True):
    """A series that is carried with a memory of its own."""

    repository: Repository
    bases: tuple[Base, Base]
    patches: list[LoadedPatch]
    home: SeriesFolder
    cache: Path

    def last(self, worth: float = 0.0) -> LastCarry:
        return LastCarry(self.cache, ("demo.yaml", "demo"), worth)

    def carry(
        self, last: LastCarry | None, options: CarryOptions | None = None
    ) -> tuple[Draft | None, CarryReport, object]:
        with overlay(self.repository) as trial, reading(trial) as reader:
            asked = (reader, self.bases, self.patches, self.home)
            draft, report = draft_carry(*asked, options=options, last=last)
            conflict = None
            if draft is None:
                conflict = first_conflict(reader, report, self.patches)
            if last is not None:
                last.keep(report)
        return draft, report, conflict

    def is_known(self, options: CarryOptions | None = None) -> bool:
        known = self.last().known(self.bases, self.patches, options or CarryOptions())
        return known is not None


def _loaded(root: Path, name: str, data: bytes) -> LoadedPatch:
    file = root / "patches/demo" / name
    return LoadedPatch(name, data, parse_patch(data, name=name), _SERIES, file, name, 1, "")


def _made(upstream: Upstream, tmp_path: Path, seed: int, *, clean: bool) -> Carrying:
    """Random patches on three files, two of which upstream changed and one of which it moved."""
    chance = Random(seed)
    texts = {f"{name}.py": [f"{name}{n} = {n}\n" for n in range(40)] for name in "abc"}
    old = upstream.commit({name: "".join(rows) for name, rows in texts.items()})
    there = {name: list(rows) for name, rows in texts.items()}
    for name in ("a.py", "b.py"):
        for row in range(20):
            there[name][row] = f"upstream = {chance.random()}\n"
    moved = {name.replace("c", "d/c"): "".join(rows) for name, rows in there.items()}
    new = upstream.commit({"c.py": None, **moved})
    patches = []
    for number in range(8):
        name = chance.choice(sorted(texts))
        before = "".join(texts[name])
        texts[name][chance.randrange(24, 40) if clean else chance.randrange(18)] = (
            f"ours = {number}\n"
        )
        patch = make_patch({name: before}, {name: "".join(texts[name])})
        patches.append(_loaded(tmp_path, f"{number}.patch", patch))
    repository = Repository(upstream.path)
    source = GitSource(str(upstream.path), ())
    component = Component(
        name="demo", source=source, pin=GitPin(CommitId(old)), where=_HERE, pin_where=_HERE
    )
    home = SeriesFolder(tmp_path, _SERIES, component)
    bases = read_base(repository, old), read_base(repository, new)
    return Carrying(repository, bases, patches, home, tmp_path / "cache")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("clean", [True, False])
def test_what_is_kept_is_what_a_carry_comes_to(
    upstream: Upstream, tmp_path: Path, seed: int, clean: bool
) -> None:
    carrying = _made(upstream, tmp_path, seed, clean=clean)
    fresh = carrying.carry(None)
    assert (fresh[0] is not None) == clean == fresh[1].clean
    assert carrying.carry(carrying.last()) == fresh
    assert carrying.is_known()
    assert carrying.carry(carrying.last()) == fresh
    statuses = {each.status for each in fresh[1].outcomes}
    assert (Status.CONFLICTED in statuses) != clean


def test_it_is_another_carry_where_anything_is_another(upstream: Upstream, tmp_path: Path) -> None:
    carrying = _made(upstream, tmp_path, 0, clean=True)
    carrying.carry(carrying.last())
    assert carrying.is_known()
    other = replace(carrying.bases[1], commit=CommitId("1" * 40))
    edited = replace(carrying.patches[0], data=carrying.patches[0].data + b"\n")
    remembered = {"1" * 64: Resolution("1" * 64, None, None, (), "x.resolution")}
    assert not replace(carrying, bases=(carrying.bases[0], other)).is_known()
    assert not replace(carrying, patches=[edited, *carrying.patches[1:]]).is_known()
    assert not replace(carrying, patches=carrying.patches[1:]).is_known()
    assert not carrying.is_known(CarryOptions(careful=True))
    assert not carrying.is_known(CarryOptions(leave_out=["0.patch"]))
    assert not carrying.is_known(CarryOptions(remembered=remembered))
    assert carrying.is_known()


def test_one_that_took_no_time_or_is_damaged_is_carried(upstream: Upstream, tmp_path: Path) -> None:
    carrying = _made(upstream, tmp_path, 0, clean=True)
    fresh = carrying.carry(carrying.last(worth=60))
    assert not carrying.is_known()
    carrying.carry(carrying.last())
    (kept,) = (carrying.cache / "carries").iterdir()
    kept.write_bytes(kept.read_bytes()[:-9] + b"something")
    assert not carrying.is_known()
    assert carrying.carry(carrying.last()) == fresh
