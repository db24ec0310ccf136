"""A small sample of `make faults`: commands that are struck, and the laws that hold afterwards.

PATCHKIT_TEST_FAULTS=N tries N points, PATCHKIT_TEST_SEED=S others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.faults.calls import fault_of
from bench.faults.running import Harness
from bench.faults.sandbox import Sandbox, Scene, sandbox
from bench.faults.scenes import SCENES
from bench.faults.tracing import Tracer, unavailable

pytestmark = pytest.mark.slow

POINTS = int(os.environ.get("PATCHKIT_TEST_FAULTS", "5"))
SEED = int(os.environ.get("PATCHKIT_TEST_SEED", "1"))


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Sandbox]:
    if why := unavailable():
        pytest.skip(why)
    with sandbox(tmp_path) as made:
        yield made


def test_every_law_holds_at_a_few_points(box: Sandbox) -> None:
    scenes = ["apply --force", "import"]
    found = Harness(box, SEED, scenes).strike(POINTS, tell=print)
    assert found.sum() >= POINTS - 4  # a count may differ by a few from run to run
    assert not found.broken, f"seed {SEED}"


def test_files_that_are_rendered_change_together(box: Sandbox) -> None:
    harness = Harness(box, SEED, ["export --format machine --force"], ["term", "full"])
    found = harness.strike(POINTS, tell=print)
    assert found.sum() >= POINTS - 2
    assert not found.broken, f"seed {SEED}"


def test_what_an_editor_saves_meanwhile_is_not_lost(box: Sandbox) -> None:
    harness = Harness(box, SEED, ["abort", "apply"])
    edits = harness.edit(POINTS * 2, tell=print)
    assert edits.sum() + edits.missed >= POINTS * 2
    assert edits.sum() > 0
    assert not edits.broken, f"seed {SEED}"


def test_the_harness_sees_that_a_file_was_overwritten(box: Sandbox) -> None:
    """A command that looks at a file, and replaces it whatever was saved since."""

    def prepare(box: Sandbox) -> None:
        upstream = box.upstream("careless")
        pin = upstream.commit({"a.txt": "a\n"})
        box.project.component("demo", upstream, pin, {})
        box.project.run("apply").ok()

    def careless() -> int:
        place = box.project.checkout("demo") / "a.txt"
        place.read_bytes()
        for step in ("one", "two"):
            (box.project.root / step).touch()
        place.write_bytes(b"b\n")
        return 0

    scene = Scene("careless", ("careless",), prepare)
    box.command = lambda argv: careless  # type: ignore[method-assign]
    harness = Harness(box, SEED, scenes=[], extra=[scene])
    edits = harness.edit(20, ways=["in place", "renamed over"], file="a.txt", tell=print)
    said = "\n".join(line for _, lines in edits.broken for line in lines)
    assert "what was saved in a.txt is nowhere; no ref was named" in said


def test_every_scene_has_a_name_of_its_own() -> None:
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_the_harness_sees_what_is_broken(box: Sandbox) -> None:
    """It would be easy to find nothing."""

    def prepare(box: Sandbox) -> None:
        box.project.write({"patches/one": "1\n", "patches/two": "2\n"})

    scene = Scene("careless", ("careless",), prepare)

    def careless() -> int:
        os.chdir(box.project.root)
        for name in ("one", "two"):
            Path("patches", name).write_text("new\n")
        return 0

    box.command = lambda argv: careless  # type: ignore[method-assign]
    harness = Harness(box, SEED, faults=["kill"], scenes=[], extra=[scene])
    found = harness.strike(1000, tell=print)
    said = "\n".join(line for _, lines in found.broken for line in lines)
    assert found.sum() == 4  # two files, each opened and written
    assert "patches/one is neither old nor new" in said  # it was empty for a moment


def test_a_call_that_fails_is_told_to_whoever_made_it(box: Sandbox) -> None:
    def work() -> int:
        try:
            (box.root / "file").write_text("text")
        except OSError as error:
            return error.errno or 1
        return 0

    fault = fault_of("full-once")
    assert [Tracer(fault, point).run(work).code for point in (1, 2, 3)] == [28, 28, 0]
    assert Tracer(None, 0).run(work).points(fault) == 2
