"""What a bump to the tip would do about a patch that the branch has broken."""

from __future__ import annotations

import shutil

import pytest

from patchkit.errors import ExitCode
from patchkit.model.outcome import Status
from tests.drift.lines import edit, look, numbered
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.support.projects import Project
from tests.support.repos import Upstream

BASE = numbered()


def test_the_carry_engine_says_what_it_would_do(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE, "b.py": BASE})
    patches = {
        "near.patch": edit("a.py", BASE, l6="ours"),
        "same.patch": edit("b.py", BASE, l6="ours"),
    }
    upstream.commit({"a.py": numbered(l3="theirs"), "b.py": numbered(l6="theirs")}, "Break both")

    near, same = look(project, upstream, pin, patches).patches

    assert near.forecast is not None
    assert same.forecast is not None
    assert (near.status, near.forecast.status) == (Status.MERGED, Status.MERGED)
    assert (same.forecast.status, same.forecast.conflicts) == (Status.CONFLICTED, ("b.py",))


def test_a_patch_that_fits_is_carried_as_well(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": BASE + "more\n"}, "More")
    (patch,) = look(project, upstream, pin, {"p.patch": edit("a.py", BASE, l6="ours")}).patches
    assert patch.forecast is not None
    (file,) = patch.forecast.files
    assert (file.status, file.confidence, file.review) == (Status.UNCHANGED, 1.0, False)


@pytest.mark.slow
def test_a_patch_that_its_recipe_makes_anew_is_no_finding(
    project: Project, upstream: Upstream
) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    code = "@fuser\ndef f(x):\n    return x\n"
    pin = upstream.commit({"src/a.py": code, "src/other.py": "x = 1\n"})
    project.component("demo", upstream, pin, {"drop-fuser.patch": b""}, track="main")
    (project.root / "patches/demo/drop-fuser.patch").unlink()
    recipe = recipe_text({**DROP, "expect": ">=1"})
    project.write({"patches/demo/drop-fuser.recipe.yml": recipe})
    project.run("refresh").ok()
    patch = (project.root / "patches/demo/drop-fuser.patch").read_bytes()
    upstream.commit({"src/a.py": code.replace("f(x)", "renamed(x, y)")}, "Rename (#3)")

    found = look(project, upstream, pin, {"drop-fuser.patch": patch})

    (drifted,) = found.patches
    assert (drifted.status, found.exit_code) == (Status.REGENERATED, ExitCode.OK)
    assert drifted.forecast is not None
    assert drifted.forecast.status is Status.REGENERATED


@pytest.mark.slow
def test_a_forecast_is_kept_and_a_damaged_one_is_made_anew(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l3="theirs")}, "Break")
    patches = {"near.patch": edit("a.py", BASE, l6="ours")}
    first = look(project, upstream, pin, patches)
    (kept,) = (project.root / "cache" / "trials").iterdir()
    for harm in (b"", kept.read_bytes()[:-9], kept.read_bytes().replace(b"merged", b"mended")):
        kept.write_bytes(harm)
        shutil.rmtree(project.root / "cache" / "walks")
        assert look(project, upstream, pin, patches).patches == first.patches
        assert kept.read_bytes() != harm
    data = kept.read_bytes()
    assert look(project, upstream, pin, patches).patches == first.patches
    assert kept.read_bytes() == data
