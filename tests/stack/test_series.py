"""Loading a component's patches: every kind of entry, and every problem at once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchkit.errors import BadInputError, SurroundingsError
from patchkit.manifest.values import Component, LocalPatch, LocalSeries, PatchEntry, PinnedPatch
from patchkit.model.objects import CommitId
from patchkit.model.progress import Silent
from patchkit.stack.series import LoadedSeries, load_series
from patchkit.upstream.store import Store
from tests.support.archives import digest
from tests.support.components import WHERE, git_component, manifest_of
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

ONE = make_patch({"a": "1\n"}, {"a": "2\n"}, subject="One")
TWO = make_patch({"a": "2\n"}, {"a": "3\n"}, subject="Two")
DEEP = make_patch({"x/a": "1\n"}, {"x/a": "2\n"}, subject="Deep")
THREE = make_patch({"a": "3\n"}, {"a": "4\n"}, subject=None)

SERIES = LocalSeries("patches/demo/series", WHERE)


def _load(
    project: Project, *entries: PatchEntry, strip: int = 1, cache: str = "cache"
) -> LoadedSeries:
    component = replace(_component(*entries), strip=strip, subdirectory="python")
    manifest = manifest_of(component, root=project.root)
    store = Store(project.root.parent / cache)
    return load_series(manifest, component, store, Silent())


def _component(*entries: PatchEntry) -> Component:
    return git_component("https://git.invalid/r.git", "1" * 40, patches=entries)


def test_a_series_and_the_patches_around_it(project: Project, upstream: Upstream) -> None:
    project.series("demo", {"one.patch": ONE, "two.patch": TWO})
    project.write({"patches/three.patch": THREE})
    commit = upstream.commit({"docker/three.patch": DEEP})
    pinned = PinnedPatch(
        "docker/three.patch",
        digest(DEEP),
        WHERE,
        git=upstream.url,
        commit=commit,
        strip=2,
        name="theirs.patch",
    )

    loaded = _load(project, LocalPatch("patches/three.patch", WHERE), SERIES, pinned)

    assert [(p.name, p.where, p.strip, p.path) for p in loaded.patches] == [
        ("three.patch", "patches/three.patch", 1, project.root / "patches/three.patch"),
        ("one.patch", "patches/demo/one.patch", 1, project.root / "patches/demo/one.patch"),
        ("two.patch", "patches/demo/two.patch", 1, project.root / "patches/demo/two.patch"),
        ("theirs.patch", f"{upstream.url}:docker/three.patch", 2, None),
    ]
    assert [p.data for p in loaded.patches] == [THREE, ONE, TWO, DEEP]
    assert [p.sha256 for p in loaded.patches] == [digest(p.data) for p in loaded.patches]
    assert loaded.patches[1].origin is SERIES
    assert loaded.patches[1].file.header is not None
    assert loaded.patches[1].file.subject == "One"
    assert loaded.unlisted == ()


def test_what_the_stack_is_built_from(project: Project) -> None:
    project.series("demo", {"one.patch": DEEP})
    project.write({"patches/demo/series": "# first\none.patch -p2  # odd\n"})

    (patch,) = _load(project, SERIES, strip=3).series_patches

    assert (patch.name, patch.strip, patch.subdirectory) == ("one.patch", 2, "python")
    assert patch.file.strip == 2


def test_the_component_says_how_much_to_strip(project: Project) -> None:
    project.series("demo", {"one.patch": ONE})

    assert _load(project, SERIES, strip=0).patches[0].strip == 0


def test_patches_that_nobody_lists(project: Project) -> None:
    project.series("demo", {"one.patch": ONE})
    project.write(
        {
            "patches/demo/lost.patch": TWO,
            "patches/demo/named.patch": THREE,
            "patches/demo/notes.txt": "",
            "patches/other/x.patch": TWO,
        }
    )

    loaded = _load(project, SERIES, LocalPatch("patches/demo/named.patch", WHERE))

    assert loaded.unlisted == ("patches/demo/lost.patch",)


def test_a_comment_accounts_for_a_patch(project: Project) -> None:
    project.series("demo", {"one.patch": ONE})
    project.write(
        {
            "patches/demo/series": "one.patch  # not: three.patch\n"
            "# two.patch: upstream has it\n#  off.patch\n",
            "patches/demo/two.patch": TWO,
            "patches/demo/off.patch": TWO,
            "patches/demo/three.patch": THREE,
        }
    )

    assert _load(project, SERIES).unlisted == ("patches/demo/three.patch",)


def test_no_patches(project: Project) -> None:
    assert _load(project) == LoadedSeries(())


def test_every_problem_is_told_at_once(project: Project, upstream: Upstream) -> None:
    commit = upstream.commit({"x.patch": b"something else\n"})
    project.series("demo", {"one.patch": ONE, "bad.patch": ONE.replace(b"@@ -1", b"@@ -1,7")})
    project.write({"patches/demo/series": "gone.patch\none.patch\nbad.patch\n"})
    wrong = PinnedPatch("x.patch", "0" * 64, WHERE, git=upstream.url, commit=commit)

    with pytest.raises(BadInputError) as caught:
        _load(project, LocalPatch("patches/none.patch", WHERE), SERIES, wrong)

    problems = [str(problem) for problem in caught.value.problems]
    assert problems[0] == "manifests/demo.yaml:7: patches/none.patch is not there"
    assert problems[1] == "patches/demo/series:1: patches/demo/gone.patch is not there"
    assert problems[2].startswith("patches/demo/bad.patch:")
    assert problems[3].startswith("manifests/demo.yaml:7: x.patch has sha256")
    assert len(problems) == 4


def test_a_series_that_cannot_be_read(project: Project) -> None:
    project.write({"patches/demo/series": "../evil.patch\nno patch name\nNUL.patch\n"})

    with pytest.raises(BadInputError) as caught:
        _load(project, SERIES)

    assert len(caught.value.problems) == 3


def test_a_series_that_is_not_there(project: Project) -> None:
    with pytest.raises(BadInputError, match=r"demo\.yaml:7: patches/demo/series is not there"):
        _load(project, SERIES)


@pytest.mark.parametrize("other", ["one.patch", "ONE.patch"])
def test_one_name_for_two_patches(project: Project, other: str) -> None:
    project.series("demo", {"one.patch": ONE})
    project.write({f"patches/{other}": TWO})

    with pytest.raises(BadInputError, match="is the name of two patches"):
        _load(project, SERIES, LocalPatch(f"patches/{other}", WHERE))


def test_what_cannot_be_fetched_is_no_bad_input(project: Project) -> None:
    gone = PinnedPatch(
        "x.patch", "0" * 64, WHERE, git="file:///nothing.git", commit=CommitId("1" * 40)
    )

    with pytest.raises(SurroundingsError):
        _load(project, gone)
