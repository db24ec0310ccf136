"""What a bump would make of a patch on every commit where it does not apply."""

from __future__ import annotations

import shutil

import pytest

from patchkit.drift.drift_report import PatchForecast
from patchkit.errors import ExitCode
from patchkit.model.outcome import Status
from tests.drift.lines import BASE, OURS, Branch, by, edit, numbered, states
from tests.extensions.recipes.kitchen import DROP, made_patch, recipe_text
from tests.support.repos import make_patch

CODE = "@fuser\ndef f(x):\n    return x\n"
RENAMED = CODE.replace("f(x)", "renamed(x, y)")
RECIPE = recipe_text({**DROP, "expect": ">=1"})


def test_a_patch_on_one_that_merges_is_carried_with_it(branch: Branch) -> None:
    second = edit("a.py", numbered(l6="ours"), ours="ours again")
    branch.patches = {"1.patch": OURS, "2.patch": second}
    near = branch.becomes("Near", l4="theirs")
    branch.becomes("The same line", l6="theirs")

    one, two = branch.look().patches

    assert states(one) == [("unchanged", 0), ("merged", 1), ("conflicted", 2)]
    assert states(two) == [("unchanged", 0), ("merged", 1), ("waiting", 2)]
    one, two = branch.look(to=near).patches
    assert by(one.broken_by) == by(two.broken_by) == near


def test_one_file_in_conflict_is_enough(branch: Branch) -> None:
    """And a later patch in another file stands without the one that is left out there."""
    ours = numbered(l6="ours")
    branch.patches = {
        "1.patch": make_patch({"a.py": BASE, "b.py": BASE}, {"a.py": ours, "b.py": ours}),
        "2.patch": edit("b.py", ours, l11="on it"),
        "3.patch": edit("b.py", numbered(l6="ours", l11="on it"), ours="ours again"),
    }
    files = {"a.py": numbered(l6="theirs"), "b.py": numbered(l9="theirs")}
    branch.upstream.commit(files, "Both")

    one, two, three = branch.look().patches

    assert (one.status, two.status) == (Status.CONFLICTED, Status.MERGED)
    assert (three.status, three.waits_for) == (Status.WAITING, ("1.patch",))


def test_a_forecast_has_the_files_of_a_patch(branch: Branch) -> None:
    branch.patches = {
        "near.patch": OURS,
        "same.patch": edit("b.py", BASE, l6="ours"),
        "far.patch": edit("a.py", numbered(l6="ours"), l30="ours"),
    }
    files = {"a.py": numbered(l3="theirs"), "b.py": numbered(l6="theirs")}
    branch.upstream.commit(files, "Break both")

    near, same, far = [each.forecast for each in branch.look().patches]

    assert near is not None
    assert same is not None
    assert far is not None
    assert near.status is Status.MERGED
    assert (same.status, same.conflicts) == (Status.CONFLICTED, ("b.py",))
    (file,) = far.files
    assert (file.status, file.confidence, file.review) == (Status.UNCHANGED, 1.0, False)


@pytest.mark.slow
def test_a_forecast_is_kept_and_a_damaged_one_is_made_anew(branch: Branch) -> None:
    branch.becomes("Break", l3="theirs")
    first = branch.patch()
    cache = branch.project.root / "cache"
    (kept,) = (cache / "trials").iterdir()
    for harm in (b"", kept.read_bytes()[:-9], kept.read_bytes().replace(b"merged", b"mended")):
        kept.write_bytes(harm)
        shutil.rmtree(cache / "walks")
        assert branch.patch() == first
        assert kept.read_bytes() != harm
    data = kept.read_bytes()
    assert (branch.patch(), kept.read_bytes()) == (first, data)


@pytest.mark.slow
def test_a_recipe_makes_a_patch_anew_as_long_as_it_finds_something(branch: Branch) -> None:
    project, upstream = branch.project, branch.upstream
    upstream.git("config", "uploadpack.allowFilter", "true")
    branch.pin = upstream.commit({"src/a.py": CODE, "src/b.py": "x = 1\n"})
    project.component("demo", upstream, branch.pin, {"drop-fuser.patch": b""}, track="main")
    branch.patches = {"drop-fuser.patch": made_patch(project, RECIPE)}
    renamed = upstream.commit({"src/a.py": RENAMED}, "Rename")
    upstream.commit({"src/a.py": RENAMED.replace("@fuser\n", "")}, "Drop it")
    upstream.commit({"src/b.py": CODE}, "Use it elsewhere")
    gone = upstream.commit({"src/a.py": "y = 1\n"}, "Nothing is left")
    upstream.commit({"src/b.py": "x = 1\n"}, "Nor there")
    upstream.commit({"src/a.py": "z = 1\n"}, "And on")

    found = branch.patch()

    # at 3 no file of the patch changes: nobody looks; at 4 the recipe finds the other file
    first = [("unchanged", 0), ("regenerated", 1), ("conflicted", 2), ("regenerated", 4)]
    assert states(found) == [*first, ("conflicted", 6)]
    assert by(found.intervals[3].since) == gone
    there = branch.look(to=renamed)
    assert (there.exit_code, there.patches[0].status) == (ExitCode.OK, Status.REGENERATED)
    forecast = there.patches[0].forecast
    assert forecast is not None
    assert forecast.status is Status.REGENERATED


@pytest.mark.slow
def test_a_recipe_reads_what_earlier_patches_leave(branch: Branch) -> None:
    """Also in files that its own patch does not touch."""
    project, upstream = branch.project, branch.upstream
    branch.pin = upstream.commit({"src/a.py": CODE, "src/c.py": BASE})
    series = {"one.patch": edit("src/c.py", BASE, l6="ours"), "drop-fuser.patch": b""}
    project.component("demo", upstream, branch.pin, series, track="main")
    branch.patches = series | {"drop-fuser.patch": made_patch(project, RECIPE)}
    upstream.commit({"src/a.py": RENAMED}, "Rename")
    upstream.commit({"src/c.py": numbered(l4="theirs")}, "Change what the recipe reads")
    upstream.commit({"src/a.py": CODE}, "Rename it back")

    one, made = branch.look().patches

    assert states(one) == [("unchanged", 0), ("merged", 2)]
    assert states(made) == [("unchanged", 0), ("regenerated", 1), ("unchanged", 3)]


def test_the_words_for_a_patch_that_waits() -> None:
    waiting = PatchForecast("c.patch", Status.WAITING, waits_for=("a.patch",))
    assert waiting.words == "carries it once a.patch is resolved"
    both = PatchForecast("c.patch", Status.WAITING, waits_for=("a.patch", "b.patch"))
    assert both.words == "carries it once a.patch and b.patch are resolved"
