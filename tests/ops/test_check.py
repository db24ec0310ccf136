"""`patchkit check`: verdict, explanation, lint and exit code, without a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.projects import Project, reference
from tests.support.repos import Files, Symlink, Upstream, make_patch

BODY = "Because it has to be.\n\nUpstream-Status: Pending"
TEXT = "".join(f"value_{n} = compute({n})\n" for n in range(1, 41))
BASE: Files = {"pkg/core.py": TEXT, "pkg/other.py": "import os\n"}


def edited(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new)
    return text


FAST = edited(("compute(20)", "compute(20, fast=True)"))
ONE = make_patch(BASE, {"pkg/core.py": FAST}, subject="Compute 20 fast", body=BODY)
TWO = make_patch(
    {"pkg/core.py": FAST},
    {"pkg/core.py": FAST.replace("fast=True", "fast=device")},
    subject="Ask the device",
    body=BODY,
)


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A component `demo` with a patch that fits and one that needs it."""
    pin = upstream.commit(BASE, "base")
    project.component("demo", upstream, pin, {"one.patch": ONE, "two.patch": TWO})
    return project


def test_all_is_well(demo: Project, golden: Golden) -> None:
    with demo.untouched():
        golden("check-ok", demo.run("check", "--jobs", "1"))
        assert demo.run("check", "--strict", "--quiet").ok().out == ""
        checked = demo.run("check", "--json").component
    demo.prepare("apply").ok()
    assert f'"tree": "{checked["tree"]}"' in demo.read("manifests/demo.lock.json")


def test_patch_that_does_not_apply_is_explained(
    demo: Project, upstream: Upstream, golden: Golden
) -> None:
    moved = "# licence\n" * 3 + edited(("value_21 = compute(21)", "value_21 = None"))
    pin = upstream.commit({"pkg/core.py": moved}, "upstream moves on")
    demo.component("demo", upstream, pin, {"one.patch": ONE, "two.patch": TWO})
    golden("check-conflicted", demo.run("check", "--jobs", "1"))
    found = demo.run("check", "--json").ends(1)
    first, second = found.component["patches"]
    assert (first["outcome"]["status"], second["outcome"]["status"]) == ("conflicted", "conflicted")
    assert first["explanation"]["files"][0]["hunks"][0]["place"]["start"] == 20


def test_renaming_that_went_over_a_patch(
    project: Project, upstream: Upstream, golden: Golden
) -> None:
    text = "import os\nfrom app.utils.log import start\nfrom app.utils.misc import Box\n\nrun()\n"
    before: Files = {"app/train.py": text, "app/utils/misc.py": "Box = 1\n"}
    patch = make_patch(before, {"app/train.py": text.replace("run()", "run(npu=True)")}, body=BODY)
    patch = patch.replace(b" from app.utils", b" from app.observability")
    project.component("app", upstream, before, {"train.patch": patch})
    golden("check-renamed", project.run("check", "--jobs", "1"))


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"src/lib/core.py": TEXT}, "check-missing-file"),
        ({**BASE, "pkg/core.py": FAST}, "check-contained"),
    ],
)
def test_another_way_on_is_looked_for(
    project: Project, upstream: Upstream, golden: Golden, files: Files, name: str
) -> None:
    project.component("demo", upstream, files, {"one.patch": ONE})
    golden(name, project.run("check", "--jobs", "1"))


def test_made_for_another_base(project: Project, upstream: Upstream, golden: Golden) -> None:
    """The context fits, the blob does not: the patch was made on top of another one."""
    other = edited(("compute(1)", "compute(1, first=True)"))
    first = make_patch(BASE, {"pkg/core.py": other}, body=BODY)
    second = make_patch(
        {"pkg/core.py": other},
        {"pkg/core.py": other.replace("compute(20)", "compute(20, fast=True)")},
        body=BODY,
    )
    pin = upstream.commit(BASE)
    project.component("whole", upstream, pin, {"first.patch": first, "second.patch": second})
    project.component("without", upstream, pin, {"second.patch": second})
    golden("check-another-base", project.run("check", "--jobs", "1"))
    project.run("check", "-c", "without", "--strict").ends(1)
    project.run("check", "-c", "whole", "--strict").ok()


def test_lint_findings_and_strict(project: Project, upstream: Upstream, golden: Golden) -> None:
    raw = make_patch(BASE, {"pkg/core.py": FAST}, subject=None)
    short = make_patch(
        {"pkg/other.py": "import os\n"}, {"pkg/other.py": "import sys\n"}, body="Why."
    )
    project.component(
        "demo", upstream, BASE, {"raw.patch": raw, "short.patch": short + b"-- \n2.3\n"}
    )
    project.write({"patches/demo/forgotten.patch": raw})
    project.run("check").ok()
    golden("check-strict", project.run("check", "--strict", "--jobs", "1"))


@pytest.mark.parametrize(("path", "said"), [("config", ".git/config"), ("link/a", "symlink")])
def test_unsafe_path(project: Project, upstream: Upstream, path: str, said: str) -> None:
    """Git's own folder, and beyond a link."""
    data = make_patch({}, {f"a/{path}": "x\n"}, body=BODY).replace(b"a/config", b".git/config")
    project.component("demo", upstream, {"a/link": Symlink("/tmp")}, {"bad.patch": data})
    project.run("check").ends(1).shows(said)


def test_corrupt_patch_is_bad_input_and_the_rest_is_checked(
    demo: Project, upstream: Upstream, golden: Golden
) -> None:
    corrupt = ONE.replace(b"@@ -17,7 +17,7 @@", b"@@ -17,7 +17,9 @@")
    assert corrupt != ONE
    demo.component("corrupt", upstream, {}, {"one.patch": corrupt})
    golden("check-corrupt", demo.run("check", "--jobs", "1"))


@pytest.mark.parametrize("verb", ["apply", "log", "refresh", "drop", "edit", "import"])
def test_a_name_that_cannot_be_is_the_same_answer_for_all(demo: Project, verb: str) -> None:
    """The file that the line names is no file that nobody lists; to rename both mends it."""
    folder = demo.root / "patches/demo"
    (folder / "two.patch").rename(folder / "t?wo.patch")
    series = folder / "series"
    series.write_text(series.read_text().replace("two.patch", "t?wo.patch"))
    demo.write({"new/three.patch": TWO})
    checked = demo.run("check")
    said = checked.err[checked.err.index("error: ") :]
    assert "patches/demo/series:2: t?wo.patch is not a valid patch name\nhint: rename" in said
    assert (checked.code, "is not listed" in checked.out) == (4, False)
    argv = {
        "drop": ("t?wo.patch",),
        "edit": ("t?wo.patch", "--name", "two.patch"),
        "import": (str(demo.root / "new/three.patch"),),
    }
    ran = demo.run(verb, *argv.get(verb, ()))
    assert (ran.code, ran.err[ran.err.index("error: ") :]) == (4, said)
    (folder / "t?wo.patch").rename(folder / "two.patch")
    series.write_text(series.read_text().replace("t?wo.patch", "two.patch"))
    demo.run("check").ok()


def test_lock_that_says_otherwise(demo: Project) -> None:
    demo.prepare("apply").ok()
    demo.run("check").ok()
    series = demo.root / "patches/demo/series"
    series.write_text("one.patch\n#two.patch\n")
    demo.run("check").ok().shows("two.patch is in the lock and not in the series")
    demo.run("check", "--strict").ends(1)
    demo.run("ci").ends(1)
    (demo.root / "manifests/demo.lock.json").unlink()
    series.write_text("one.patch\n")
    demo.run("ci").ok()
    demo.run("ci", "--strict").ends(1)


def test_so_many_components_at_once(demo: Project, upstream: Upstream) -> None:
    """One is looked at after the other, and no less than one can be."""
    for name in ("second", "third"):
        demo.component(name, upstream, {"f": name}, {})
    (demo.root / "manifests/demo.lock.json").unlink(missing_ok=True)
    begun = [line.partition(":")[0] for line in demo.run("ci", "--jobs", "1").ok().err.splitlines()]
    assert begun == sorted(begun, key=["demo", "second", "third"].index)
    demo.run("ci", "--jobs", "0").ends(2)


def test_broken_lock(demo: Project) -> None:
    demo.write({"manifests/demo.lock.json": "{"})
    demo.run("check").ends(4)


def test_patch_without_changes(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, BASE, {"empty.patch": b"Subject: nothing\n\n"})
    ran = project.run("check", "--json")
    codes = [f["code"] for f in ran.component["patches"][0]["findings"]]
    assert "empty-patch" in codes


def test_what_cannot_be_read_or_reached_stops_no_other(demo: Project, tmp_path: Path) -> None:
    demo.component("lost", Upstream(tmp_path / "gone.git"), "1" * 40, {"one.patch": ONE})
    demo.run("check").ends(5, "lost").shows("2 patches apply")
    demo.write({"manifests/broken.yaml": "version: 2\n"})
    demo.run("check").ends(4, "lost", "broken.yaml").shows("2 patches apply")


def test_pinned_patch_of_another_repository(
    project: Project, upstream: Upstream, tmp_path: Path, golden: Golden
) -> None:
    """Somebody else's file: no lint of its form, and other ways out."""
    raw = make_patch(BASE, {"pkg/core.py": FAST}, subject=None)
    entry = reference(Upstream.create(tmp_path / "publisher.git"), "patches/fast.patch", raw)
    project.component("demo", upstream, BASE, [entry])
    project.run("check", "--strict").ok()
    project.component(
        "demo",
        upstream,
        {"pkg/core.py": edited(("value_21 = compute(21)", "value_21 = None"))},
        [entry],
    )
    golden("check-pinned", project.run("check", "--jobs", "1"))


def test_patches_for_other_bases_are_one_message_whatever_is_cached(
    project: Project, upstream: Upstream
) -> None:
    files = {f"{name}.py": edited() for name in "abc"}
    pin = upstream.commit(files)
    patches = {
        f"{name}.patch": make_patch({f"{name}.py": edited()}, {f"{name}.py": FAST}, subject=name)
        for name in "abc"
    }
    later = upstream.commit({name: f"# first\n{text}" for name, text in files.items()})
    project.component("demo", upstream, pin, patches=patches)
    project.run("check").ok()
    project.component("demo", upstream, later, patches=patches)
    said = project.run("check").ok().out
    assert said.count("made for another base") == 1
    assert "  ! warning  3 places:\n      patches/demo/a.patch  1 of 1 file differs\n" in said
    warm = project.run("check", "--json").json
    fresh = project.run("check", "--json", "--cache", str(project.root / "fresh")).json
    assert warm == fresh  # other pins in the cache show in nothing


def test_why_a_patch_does_not_apply_is_said_whatever_is_cached(
    project: Project, upstream: Upstream
) -> None:
    """Neither other pins nor the history that drift brings show: a new cache has none of them."""
    before = edited(("compute(21)", "compute(21, slow=True)"))
    gone = make_patch({"old.py": "a\nb\n"}, {"old.py": "a\nb\nc\n"}, subject="Gone")
    made_for = upstream.commit({"pkg/core.py": before, "old.py": "a\nb\n"})
    upstream.commit({"old.py": None, "new.rs": "a\nb\n#\n"}, "Rename it")
    pin = upstream.commit({"pkg/core.py": edited(), "new.rs": "a\nb\n#\n#\n"})
    made = make_patch({"pkg/core.py": before}, {"pkg/core.py": before.replace("t(20)", "t(20, 1)")})
    patches = {"made.patch": made, "gone.patch": gone}
    for each in (made_for, pin):
        project.component("demo", upstream, each, patches=patches, track="main")
        project.run("check")
        project.run("drift")
    warm = project.run("check", "--json")
    fresh = project.run("check", "--json", "--cache", str(project.root / "fresh"))
    warm.ends(1)
    assert warm.json == fresh.json


@pytest.mark.parametrize(
    ("reviewed", "code", "said"),
    [
        ([], 1, "made for another base"),
        (["pkg/core.py"], 0, ""),
        (["pkg/other.py"], 1, "made for another base"),
        (["pkg/core.py", "pkg/other.py"], 1, "other_base lists pkg/other.py"),
    ],
)
def test_a_reviewed_file_of_another_base(
    project: Project, upstream: Upstream, reviewed: list[str], code: int, said: str
) -> None:
    patch = make_patch({"pkg/core.py": TEXT + "end = 1\n"}, {"pkg/core.py": FAST + "end = 1\n"})
    other = [{"file": file, "reason": "only its end differs"} for file in reviewed]
    entry = reference(upstream, "fix.patch", patch) | {"other_base": other}
    project.component("demo", upstream, BASE, [entry])

    project.run("check", "--strict").ends(code).shows(said)


@pytest.mark.parametrize(
    ("repair", "code", "said"),
    [
        ([], 4, "lacks only the newline"),
        (["last newline"], 0, "1 patch applies"),
        (["last newline", "last newline"], 4, "nothing there is damaged so"),
        (["the last newline"], 4, "is not a mend"),
    ],
)
def test_a_damaged_patch_by_reference_is_mended_when_it_is_read(
    project: Project, upstream: Upstream, repair: list[str], code: int, said: str
) -> None:
    damaged = make_patch(BASE, {"pkg/core.py": FAST}).removesuffix(b"\n")
    entry = reference(upstream, "fix.patch", damaged) | {"repair": repair}
    project.component("demo", upstream, BASE, [entry])

    ran = project.run("check")
    assert (ran.code, said in ran.out + ran.err) == (code, True), ran.err


def test_a_retired_stack_says_so(demo: Project) -> None:
    manifest = demo.root / "manifests/demo.yaml"
    manifest.write_text("retired: upstream took it out; holds until 0.9\n" + manifest.read_text())

    said = "demo: retired: upstream took it out; holds until 0.9"
    assert demo.run("check").ok().err.count(said) == 1
    [problem] = demo.run("check", "--json").ok().json["retired"]
    assert f"{problem['where']}: {problem['what']}" == said


@pytest.mark.parametrize("ci", ["", "1"])
@pytest.mark.parametrize("left", [b"", b"Subject: Ask the device\n\nBecause.\n"])
def test_a_patch_that_lost_its_change_is_an_error(
    demo: Project, monkeypatch: pytest.MonkeyPatch, ci: str, left: bytes
) -> None:
    """No command takes it into the lock unasked; taken off the series it is an edit like others."""
    demo.prepare("apply").ok()
    path, lock = demo.root / "patches/demo/two.patch", demo.root / "manifests/demo.lock.json"
    locked = lock.read_bytes()
    path.write_bytes(left)
    monkeypatch.setenv("CI", ci)
    checked = demo.run("check", "--json")
    errors = {f["code"]: f["where"] for f in checked.component["findings"]}
    assert (checked.code, errors["emptied-patch"]) == (1, "patches/demo/two.patch:1")
    assert "--accept" not in demo.run("check").out
    for argv in (["apply"], ["apply", "--dry-run"], ["refresh"], ["move", "2", "--to", "1"]):
        ran = demo.run(*argv)
        assert "--accept" not in ran.err, argv  # it would take the loss for an answer
        ran.ends(1, "patches/demo/two.patch:1: changes no file")
    assert lock.read_bytes() == locked
    drop = demo.run("apply").err.partition("patchkit drop ")[2].split("\n")[0]
    assert demo.run("drop", *drop.split()).ok().out.count("two.patch is off the series") == 1
    demo.run("check").ok()
    demo.run("apply").ok()


def test_an_emptied_patch_is_not_bumped_away(demo: Project, upstream: Upstream) -> None:
    demo.prepare("apply").ok()
    (demo.root / "patches/demo/two.patch").write_bytes(b"")
    pin = upstream.commit({"new.py": "x\n"})
    with demo.untouched():
        demo.run("bump", "demo", "--to", pin).ends(1, "two.patch:1: changes no file")


def test_what_was_empty_in_the_lock_may_stay_so(demo: Project, upstream: Upstream) -> None:
    pin = upstream.commit(BASE, "base")
    demo.component("demo", upstream, pin, {"one.patch": ONE, "none.patch": b"Subject: None\n"})
    demo.run("apply").ok()
    codes = [f["code"] for f in demo.run("check", "--json").component["findings"]]
    assert codes == ["unlisted-patch"]
    demo.run("apply").ok()
