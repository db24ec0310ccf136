"""What a bump would make of a patch on every commit where it does not apply."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchkit.drift.parts import related, split_series
from patchkit.drift.values import PatchDrift
from patchkit.model.mail import parse_patch
from patchkit.model.outcome import Status
from patchkit.stack import SeriesPatch
from tests.drift.lines import edit, look, numbered
from tests.recipes.kitchen import DROP, recipe_text
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

    assert _states(one) == _states(two) == [("unchanged", 0), ("merged", 1), ("conflicted", 2)]


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
        Status.CONFLICTED,
    ]


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


def test_the_tip_alone_tells_the_same_of_the_tip(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE, "b.py": BASE, "c.py": BASE})
    upstream.commit({"a.py": numbered(l4="theirs"), "c.py": numbered(l6="theirs")}, "Near")
    upstream.commit({"b.py": numbered(l6="theirs")}, "The same line")
    upstream.commit({"b.py": BASE}, "Back")
    taken = upstream.commit({"c.py": numbered(l6="ours", l8="theirs")}, "Taken")
    upstream.commit({"c.py": numbered(l6="ours", l5="more", l8="theirs")}, "And on")
    patches = {f"{n}.patch": edit(f"{n}.py", BASE, l6="ours") for n in "abc"}

    fast = look(project, upstream, pin, patches, every_state=False).patches
    slow = look(project, upstream, pin, patches).patches

    names = ["merged", "unchanged", "absorbed"]
    assert [each.status.value for each in fast] == [each.status.value for each in slow] == names
    assert [each.breaks for each in fast] == [each.breaks for each in slow]
    assert [each.forecast for each in fast] == [each.forecast for each in slow]
    assert fast[2].absorbed_by == slow[2].absorbed_by
    assert fast[2].absorbed_by is not None
    assert fast[2].absorbed_by.commit == taken


_names = st.lists(st.sampled_from(["a", "a/b", "a/b/c", "ab", "d", "d/e"]), min_size=1, max_size=3)


@given(st.lists(_names, max_size=8))
def test_groups_are_what_the_plain_rule_gives(sets: list[list[str]]) -> None:
    groups = related(sets)

    def touch(one: str, other: str) -> bool:
        return one == other or one.startswith(other + "/") or other.startswith(one + "/")

    known = list(range(len(sets)))
    for one in range(len(sets)):
        for other in range(one):
            if any(touch(x, y) for x in sets[one] for y in sets[other]):
                old, new = known[one], known[other]
                known = [new if each == old else each for each in known]
    for one in range(len(sets)):
        for other in range(one):
            assert (groups.find(one) == groups.find(other)) is (known[one] == known[other])


def test_a_series_falls_into_parts() -> None:
    both = make_patch({"a": "1\n", "b": "1\n"}, {"a": "2\n", "b": "2\n"})
    only = make_patch({"b": "2\n"}, {"b": "3\n"})
    patches = [
        SeriesPatch(name, parse_patch(data, name=name))
        for name, data in (("both", both), ("only", only))
    ]
    parts = {part.paths: sorted(part.patches) for part in split_series(patches)}
    assert parts == {("a",): [0], ("b",): [0, 1]}
    (whole,) = split_series(patches, {0})
    assert whole.paths == ("a", "b")
    assert [len(each.file.changes) for each in whole.patches.values()] == [2, 1]
