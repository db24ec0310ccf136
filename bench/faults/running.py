"""Choose points, strike at them, collect what broke."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bench.faults.calls import FAULTS, Fault
from bench.faults.editor import MOMENTS, WAYS, Editor, Edits, Moment
from bench.faults.laws import BUG, Laws, state_of
from bench.faults.sandbox import Sandbox, Scene
from bench.faults.scenes import SCENES
from bench.faults.tracing import Traced, Tracer
from bench.figures import sums_table


@dataclass(frozen=True)
class Point:
    """A scene, a fault, and at which call that counts for it the fault strikes; from 1."""

    scene: Scene
    fault: Fault
    number: int

    def __str__(self) -> str:
        return f"--scene {self.scene.name!r} --fault {self.fault.name} --point {self.number}"


@dataclass
class Found:
    """What a run came to; `struck` counts (scene, fault), `calls` the calls that were hit."""

    seed: int
    available: int = 0
    struck: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    twice: int = 0
    broken: list[tuple[Point, list[str]]] = field(default_factory=list)

    def sum(self) -> int:
        """How many points were struck."""
        return self.struck.total()

    def table(self) -> str:
        """A table in Markdown: a column for each fault."""
        scenes = list(dict.fromkeys(scene for scene, _ in self.struck))
        names = [fault.name for fault in FAULTS]
        sums = [sum(self.struck[scene, name] for scene in scenes) for name in names]
        return sums_table(names, sums, len(scenes))


class Harness:
    """Scenes in a sandbox, made once each, and struck as often as wanted."""

    def __init__(
        self,
        box: Sandbox,
        seed: int,
        scenes: Sequence[str] | None = None,
        faults: Sequence[str] | None = None,
        *,
        extra: Sequence[Scene] = (),
    ) -> None:
        self._box, self._found, self._dice = box, Found(seed), random.Random(seed)
        self._scenes = [each for each in SCENES if scenes is None or each.name in scenes]
        self._scenes += extra
        self._faults = [each for each in FAULTS if not faults or each.name in faults]
        self._laws: dict[str, Laws] = {}
        self._ignored = frozenset(map(str, box.outputs))

    def strike(
        self, points: int, *, only: int | None = None, tell: Callable[[str], object]
    ) -> Found:
        """Strike at so many distinct points, or at point `only` of each scene and fault; `tell`
        hears of each scene that is done, and of each point that broke a law.
        """
        self._scenes = [scene for scene in self._scenes if not scene.once]
        counts = {scene.name: self._prepare(scene) for scene in self._scenes}
        every = [
            Point(scene, fault, number + 1)
            for scene in self._scenes
            for fault in self._faults
            for number in range(counts[scene.name].points(fault))
            if only in (None, number + 1)
        ]
        self._found.available = len(every)
        chosen = sorted(self._dice.sample(range(len(every)), min(points, len(every))))
        tell(f"{len(chosen)} of {len(every)} points in {len(self._scenes)} scenes")
        for name, mine in groupby((every[n] for n in chosen), lambda each: each.scene.name):
            self._strike_scene(name, list(mine), tell)
        return self._found

    def edit(
        self,
        edits: int,
        *,
        ways: Sequence[str] | None = None,
        file: str | None = None,
        only: int | None = None,
        tell: Callable[[str], object],
    ) -> Edits:
        """Save a file at so many distinct moments, or at point `only` of each scene and way; `tell`
        hears as for `strike`.
        """
        found = Edits(self._found.seed)
        for scene in self._scenes:
            traced = self._prepare(scene)
            points, files = traced.points(MOMENTS), self._laws[scene.name].files_of_demo()
            if not files or not points:
                continue
            chosen: dict[Moment, None] = {}
            share = edits // len(self._scenes) + 1
            began, before = time.monotonic(), len(found.broken)
            for draw in range(20 * share):  # there may not be so many
                way = (ways or WAYS)[draw % len(ways or WAYS)]
                number = only or self._dice.randint(1, points)
                moment = Moment(scene.name, way, file or self._dice.choice(files), number)
                chosen[moment] = None
                if len(chosen) == share:
                    break
            for moment in chosen:
                self._edit_at(scene, moment, found, tell)
            took, wrong = time.monotonic() - began, len(found.broken) - before
            tell(f"{scene.name}: {len(chosen)} edits in {took:.0f} s, {wrong} broke a law")
        return found

    def _edit_at(
        self, scene: Scene, moment: Moment, found: Edits, tell: Callable[[str], object]
    ) -> None:
        box, laws = self._box, self._laws[scene.name]
        box.restore(scene.name)
        root = box.project.root
        editor = Editor(root, box.project.checkout("demo"), moment)
        editor.begin()
        try:
            tracer = Tracer(
                MOMENTS, moment.number, ignored=self._ignored, timeout=180, act=editor.save
            )
            traced = tracer.run(box.command(scene.argv))
        finally:
            editor.end()
        if not editor.acted:
            found.missed += 1
            return
        found.struck[scene.name, moment.way] += 1
        found.ended[str(traced.code)] += 1
        said = "".join(box.said())
        broken = [f"at {traced.struck}: {each}" for each in laws.broken_by_edit(traced)]
        broken += editor.lost(said)
        box.run(scene.argv)
        again = "".join(box.said())
        broken += [f"after the next run: {each}" for each in editor.lost(said + again)]
        broken += [f"the next run says: {again}" for bug in BUG if bug in again]
        if broken:
            found.broken.append((moment, broken))
            tell(f"BROKEN {moment}\n" + "\n".join(f"    {each}" for each in broken))

    def _strike_scene(
        self, name: str, points: Sequence[Point], tell: Callable[[str], object]
    ) -> None:
        began, wrong = time.monotonic(), 0
        for point in points:
            if broken := self._at(point):
                wrong += 1
                self._found.broken.append((point, broken))
                tell(f"BROKEN {point}\n" + "\n".join(f"    {each}" for each in broken))
        took = time.monotonic() - began
        tell(f"{name}: {len(points)} points in {took:.0f} s, {wrong} broke a law")

    def _prepare(self, scene: Scene) -> Traced:
        """Make the scene, run it undisturbed; how often it does what a fault can strike at."""
        box = self._box
        box.begin()
        scene.prepare(box)
        old = state_of(box)
        box.keep(scene.name)
        box.restore(scene.name)
        traced = Tracer(None, 0, ignored=self._ignored).run(box.command(scene.argv))
        if "this is a bug" in (said := "".join(box.said())):
            raise SystemExit(f"{scene.name}, undisturbed: {said}")
        laws = Laws(box, scene, old, state_of(box), traced.code)
        for part in scene.parts:
            box.restore(scene.name)
            box.run(part)
            laws.between.append(state_of(box))
        self._laws[scene.name] = laws
        return traced

    def _at(self, point: Point) -> list[str]:
        box, laws = self._box, self._laws[point.scene.name]
        box.restore(point.scene.name)
        traced = self._run(point, point.number)
        if not traced.struck:
            return []
        self._found.struck[point.scene.name, point.fault.name] += 1
        self._found.calls[traced.struck] += 1
        broken = [f"at {traced.struck}: {each}" for each in laws.broken(point.fault, traced)]
        if point.fault.kills and self._dice.random() < 0.3:
            # and the run that puts things right is killed, too
            again = self._run(point, self._dice.randint(1, point.number))
            self._found.twice += bool(again.struck)
        if traced.code == 0 and point.scene.argv == ("undo",):
            return broken  # the next one takes back what came before
        return broken + laws.broken_later()

    def _run(self, point: Point, number: int) -> Traced:
        tracer = Tracer(point.fault, number, ignored=self._ignored)
        return tracer.run(self._box.command(point.scene.argv))
