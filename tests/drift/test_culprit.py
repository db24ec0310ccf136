"""The commit that is named for a state: there applying gives that state, and at its parents not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from patchkit.drift.drift_report import Interval
from patchkit.model.finding import Landed
from patchkit.model.outcome import Status
from tests.drift.lines import Branch, edit, numbered
from tests.support.projects import Project
from tests.support.repos import Upstream

BASE = numbered(16)
OURS = edit("a.py", BASE, l6="ours now")
_FITS = (Status.UNCHANGED, Status.SHIFTED)


class MadeHistory:
    """A branch on which upstream takes a change, takes it back, reworks it, by commits and merges.

    Merges take each side's lines where the other left them alone, as git does; a few take what
    neither side has.
    """

    def __init__(self, upstream: Upstream, random: Random) -> None:
        self.upstream, self.random = upstream, random
        self.texts: dict[str, list[str]] = {}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.pin = self._commit(BASE.split("\n"), ())

    def grow(self, commits: int) -> str:
        """More commits on main; its tip."""
        tip, open_branches = self.pin, list[tuple[str, str]]()
        for _ in range(commits):
            step = self.random.random()
            if step < 0.3 or not open_branches:
                start = self.random.choice([tip, tip, self.pin])
                open_branches.append((start, self._edited(start)))
            elif step < 0.5:
                number = self.random.randrange(len(open_branches))
                start, end = open_branches[number]
                open_branches[number] = (start, self._edited(end))
            elif step < 0.75:
                start, end = open_branches.pop(self.random.randrange(len(open_branches)))
                tip = self._merged(start, tip, end)
            else:
                tip = self._edited(tip)
        self.upstream.branch("main", tip)
        return tip

    def _edited(self, parent: str) -> str:
        lines = list(self.texts[parent])
        at = next((n for n, line in enumerate(lines) if line in ("l6", "ours now", "theirs")), 5)
        kind = self.random.random()
        if kind < 0.5:
            lines[at] = self.random.choice(["l6", "ours now", "ours now", "theirs"])
        elif kind < 0.7:
            lines[at + 1] = self.random.choice(["l7", "near"])
        elif kind < 0.85:
            lines.insert(0, f"top {self.random.randrange(100)}")
        else:
            lines[-3] = f"far {self.random.randrange(100)}"
        return self._commit(lines, (parent,))

    def _merged(self, start: str, main: str, side: str) -> str:
        base, ours, theirs = (_by_name(self.texts[each]) for each in (start, main, side))
        body = {n: theirs[n] if theirs[n] != base[n] else ours[n] for n in range(1, 17)}
        if self.random.random() < 0.15:
            body[6] = self.random.choice(["l6", "ours now", "theirs"])
        lines = [*_top(self.texts[main]), *body.values(), ""]
        return self._commit(lines, (main, side))

    def _commit(self, lines: list[str], parents: tuple[str, ...]) -> str:
        number = len(self.texts)
        files = {"a.py": "\n".join(lines), "number": f"{number}\n"}
        commit = self.upstream.commit(files, f"Step {number} of many", branch="x", parents=parents)
        self.texts[commit], self.parents[commit] = lines, parents
        return commit


def _top(lines: list[str]) -> list[str]:
    return lines[: lines.index("l1")]


def _by_name(lines: list[str]) -> dict[int, str]:
    return dict(enumerate(lines[lines.index("l1") :][:16], 1))


@pytest.fixture
def state_at(tmp_path: Path) -> Callable[[MadeHistory, str], str]:
    """What git makes of the patch on a commit: it fits, or is there already, or does neither."""
    folder = tmp_path / "applying"
    folder.mkdir()
    known: dict[str, str] = {}

    def applies(text: str, *options: str) -> bool:
        (folder / "a.py").write_text(text)
        command = ["git", "apply", "--check", *options]
        done = subprocess.run(command, check=False, input=OURS, cwd=folder, capture_output=True)
        return done.returncode == 0

    def state(made: MadeHistory, commit: str) -> str:
        text = "\n".join(made.texts[commit])
        if text not in known:
            there = "absorbed" if "ours now" in made.texts[commit] else "broken"
            known[text] = "fits" if applies(text) else there
            assert known[text] == "absorbed" or not applies(text, "-R")
        return known[text]

    return state


def _state(interval: Interval) -> str:
    if interval.status in _FITS:
        return "fits"
    return "absorbed" if interval.status is Status.ABSORBED else "broken"


def _turns(intervals: tuple[Interval, ...]) -> Iterator[tuple[Status, str, Landed]]:
    """Each other state that git tells from the one before, with the commit that is named."""
    for before, interval in pairwise(intervals):
        assert interval.since is not None
        if _state(before) != _state(interval):
            yield interval.status, _state(interval), interval.since


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_the_commit_named_is_the_first_with_the_state(
    project: Project,
    upstream: Upstream,
    state_at: Callable[[MadeHistory, str], str],
    seed: int,
) -> None:
    made = MadeHistory(upstream, Random(seed))
    made.grow(30)

    branch = Branch(project, upstream, made.pin, {"ours.patch": OURS})

    patch = branch.patch()

    for status, state, named in _turns(patch.intervals):
        assert state_at(made, named.commit) == state
        first, *others = made.parents[named.commit]
        if state_at(made, first) == state == "broken":  # merged there, and in conflict here
            assert branch.look(to=first).patches[0].status is not status
            continue
        assert state_at(made, first) != state
        for other in others:  # a branch may have had it all along
            start = other
            while state_at(made, start) == state and made.parents[start]:
                start = made.parents[start][0]
            held = not made.parents[start] or _is_before(made, start, first)
            assert state_at(made, other) != state or held
    if patch.fate_by is not None and patch.fate == "landed in part":
        assert "ours now" in made.texts[patch.fate_by.commit]
        assert "ours now" not in made.texts[made.parents[patch.fate_by.commit][0]]


def _is_before(made: MadeHistory, commit: str, tip: str) -> bool:
    todo = [tip]
    while todo:
        known = todo.pop()
        if known == commit:
            return True
        todo += made.parents[known]
    return False
