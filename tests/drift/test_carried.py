"""What a bump would make of a patch on every commit where it does not apply."""

from __future__ import annotations

import pytest

from patchkit.drift.drift_report import PatchDrift, PatchForecast
from patchkit.model.outcome import Status
from tests.drift.lines import edit, look, numbered
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

BASE = numbered()
CODE = "@fuser\ndef f(x):\n    return x\n"


def _states(patch: PatchDrift) -> list[tuple[str, int]]:
    return [(each.status.value, each.first) for each in patch.intervals]


def test_a_patch_merges_until_both_sides_meet(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE, "b.py": "x\n"})
    upstream.commit({"a.py": numbered(l4="theirs")}, "Near")
    upstream.commit({"b.py": "y\n"}, "Elsewhere")
    upstream.commit({"a.py": numbered(l4="theirs", l12="more")}, "Far")
    broke = upstream.commit({"a.py": numbered(l6="theirs")}, "The same line")

    (patch,) = look(project, upstream, pin, {"ours.patch": edit("a.py", BASE, l6="ours")}).patches

    assert _states(patch) == [("unchanged", 0), ("merged", 1), ("conflicted", 4)]
    assert patch.intervals[2].since is not None
    assert patch.intervals[2].since.commit == broke
    assert patch.broken_by is not None
    assert patch.broken_by.subject == "Near"  # from there on it does not apply as it is


def test_a_patch_on_one_that_merges_is_carried_with_it(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.py": BASE})
    first = edit("a.py", BASE, l6="ours")
    second = edit("a.py", numbered(l6="ours"), ours="ours again")
    upstream.commit({"a.py": numbered(l4="theirs")}, "Near")
    upstream.commit({"a.py": numbered(l6="theirs")}, "The same line")

    one, two = look(project, upstream, pin, {"1.patch": first, "2.patch": second}).patches

    assert _states(one) == [("unchanged", 0), ("merged", 1), ("conflicted", 2)]
    assert _states(two) == [("unchanged", 0), ("merged", 1), ("waiting", 2)]


def test_one_file_in_conflict_is_enough(project: Project, upstream: Upstream) -> None:
    """And a later patch in another file stands without the one that is left out there."""
    pin = upstream.commit({"a.py": BASE, "b.py": BASE})
    both = make_patch(
        {"a.py": BASE, "b.py": BASE}, {"a.py": numbered(l6="ours"), "b.py": numbered(l6="ours")}
    )
    on_it = edit("b.py", numbered(l6="ours"), l11="on it")
    beside = edit("b.py", numbered(l6="ours", l11="on it"), ours="ours again")
    upstream.commit({"a.py": numbered(l6="theirs"), "b.py": numbered(l9="theirs")}, "Both")

    patches = {"1.patch": both, "2.patch": on_it, "3.patch": beside}
    found = look(project, upstream, pin, patches).patches

    assert [each.status for each in found] == [
        Status.CONFLICTED,
        Status.MERGED,
        Status.WAITING,
    ]
    assert found[2].waits_for == ("1.patch",)


@pytest.mark.slow
def test_a_recipe_makes_a_patch_anew_as_long_as_it_finds_something(
    project: Project, upstream: Upstream
) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    pin = upstream.commit({"src/a.py": CODE, "src/b.py": "x = 1\n", "n": "0\n"})
    project.component("demo", upstream, pin, {"drop-fuser.patch": b""}, track="main")
    (project.root / "patches/demo/drop-fuser.patch").unlink()
    recipe = recipe_text({**DROP, "expect": ">=1"})
    project.write({"patches/demo/drop-fuser.recipe.yml": recipe})
    project.run("refresh").ok()
    patch = (project.root / "patches/demo/drop-fuser.patch").read_bytes()
    renamed = CODE.replace("f(x)", "renamed(x, y)")
    upstream.commit({"src/a.py": renamed}, "Rename")
    upstream.commit({"src/a.py": renamed.replace("@fuser\n", "")}, "Drop it")
    upstream.commit({"src/b.py": CODE}, "Use it elsewhere")
    gone = upstream.commit({"src/a.py": "y = 1\n"}, "Nothing is left")
    upstream.commit({"src/b.py": "x = 1\n"}, "Nor there")
    upstream.commit({"src/a.py": "z = 1\n"}, "And on")

    (found,) = look(project, upstream, pin, {"drop-fuser.patch": patch}).patches

    # at 3 no file of the patch changes: nobody looks; at 4 the recipe finds the other file
    states = [("unchanged", 0), ("regenerated", 1), ("conflicted", 2), ("regenerated", 4)]
    assert _states(found) == [*states, ("conflicted", 6)]
    assert found.intervals[3].since is not None
    assert found.intervals[3].since.commit == gone


@pytest.mark.slow
def test_a_recipe_reads_what_earlier_patches_leave(project: Project, upstream: Upstream) -> None:
    """Also in files that its own patch does not touch."""
    pin = upstream.commit({"src/a.py": CODE, "src/c.py": numbered()})
    series = {"one.patch": edit("src/c.py", numbered(), l6="ours"), "drop-fuser.patch": b""}
    project.component("demo", upstream, pin, series, track="main")
    (project.root / "patches/demo/drop-fuser.patch").unlink()
    recipe = recipe_text({**DROP, "expect": ">=1"})
    project.write({"patches/demo/drop-fuser.recipe.yml": recipe})
    project.run("refresh").ok()
    series["drop-fuser.patch"] = (project.root / "patches/demo/drop-fuser.patch").read_bytes()
    upstream.commit({"src/a.py": CODE.replace("f(x)", "renamed(x, y)")}, "Rename")
    upstream.commit({"src/c.py": numbered(l4="theirs")}, "Change what the recipe reads")
    upstream.commit({"src/a.py": CODE}, "Rename it back")

    one, made = look(project, upstream, pin, series).patches

    assert _states(one) == [("unchanged", 0), ("merged", 2)]
    assert _states(made) == [("unchanged", 0), ("regenerated", 1), ("unchanged", 3)]


def test_the_words_for_a_patch_that_waits() -> None:
    waiting = PatchForecast("c.patch", Status.WAITING, waits_for=("a.patch",))
    assert waiting.words == "carries it once a.patch is resolved"
    both = PatchForecast("c.patch", Status.WAITING, waits_for=("a.patch", "b.patch"))
    assert both.words == "carries it once a.patch and b.patch are resolved"
