"""What `check` says to type next works as it is typed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import Ran
from tests.support.projects import Project, write_files
from tests.support.repos import Files, Upstream, make_patch

BODY = "Because it has to be."
TEXT = "".join(f"value_{n} = compute({n})\n" for n in range(1, 41))
FAST = TEXT.replace("compute(20)", "compute(20, fast=True)")
ONE = make_patch({"pkg/core.py": TEXT}, {"pkg/core.py": FAST}, subject="Go fast", body=BODY)


def commands(ran: Ran) -> list[str]:
    """The command lines among the next steps of the first patch that has any."""
    patches = [patch for each in ran.json["components"] for patch in each["patches"]]
    steps = next(patch["next_steps"] for patch in patches if patch["next_steps"])
    lines = [line for step in steps for line in step.splitlines()]
    return [x.strip() for x in lines if x.startswith(("  sed ", "  git ", "  patchkit "))]


def typed(project: Project, line: str) -> None:
    """Run a line as somebody types it in the project's folder."""
    if line.startswith("patchkit "):
        project.run(*line.split()[1:]).ok()
    else:
        accepted = (0, 1) if "--reject" in line else (0,)
        done = subprocess.run(
            ["sh", "-c", line], cwd=project.root, check=False, capture_output=True
        )
        assert done.returncode in accepted, done.stderr.decode()


@pytest.fixture
def gnu_sed() -> None:
    told = subprocess.run(["sed", "--version"], capture_output=True, check=False)
    if b"GNU" not in told.stdout:
        pytest.skip("the advice is for GNU sed")


def test_no_command_puts_another_name_into_a_patch(project: Project, upstream: Upstream) -> None:
    """Two options that both exist look like a renaming; only a person can say that it is one."""
    before = "if rebase.mergeCommits:\n    start()\n\n\n\n\nif rebase.mergeCommits:\n    stop()\n"
    after = before.replace("start()", "start(True)").replace("stop()", "stop(True)")
    there = before.replace("rebase.mergeCommits", "rebase.updateRefs")
    patch = make_patch({"a.py": before}, {"a.py": after}, body=BODY)
    project.component("app", upstream, {"a.py": there, "b.py": before}, {"a.patch": patch})
    assert "it was renamed after" not in project.run("check").ends(1).out
    assert not any(each.startswith("sed ") for each in commands(project.run("check", "--json")))


@pytest.mark.usefixtures("gnu_sed")
@pytest.mark.parametrize("patch_has", ["CRLF", "LF"])
def test_line_ends(project: Project, upstream: Upstream, patch_has: str) -> None:
    """Nothing but the ends differs: they are what to change, in all files of the patch."""
    other = "".join(f"other_{n}\n" for n in range(9))
    before = {"pkg/core.py": TEXT, "pkg/other.py": other}
    after = {"pkg/core.py": FAST, "pkg/other.py": other.replace("other_4", "fourth")}
    files = before
    if patch_has == "CRLF":
        before, after = (
            {n: t.replace("\n", "\r\n") for n, t in x.items()} for x in (before, after)
        )
    else:
        files = {n: t.replace("\n", "\r\n") for n, t in files.items()}
    patch = make_patch(before, after, body=BODY) + b"-- \n2.39\n"
    project.component("app", upstream, files, {"a.patch": patch})
    sed, check = commands(project.run("check", "--json"))
    assert sed.startswith("sed ")
    typed(project, sed)
    typed(project, check)


def test_no_rename_is_written_into_a_patch(project: Project, upstream: Upstream) -> None:
    """A file of the same name in another folder need not be the one: a merge follows history."""
    project.component("demo", upstream, {"src/lib/core.py": TEXT}, {"one.patch": ONE})
    assert commands(project.run("check", "--json"))[0].startswith("patchkit import ")


@pytest.mark.slow
@pytest.mark.parametrize("checkout", [False, True])
def test_merging_by_hand(project: Project, upstream: Upstream, *, checkout: bool) -> None:
    """A patch whose file is rewritten, and a later patch that builds on it; no base is known."""
    upstream.commit({"pkg/core.py": TEXT})
    more = make_patch(
        {"pkg/core.py": FAST}, {"pkg/core.py": FAST.replace("fast=True", "fast=2")}, body=BODY
    )
    patches = {"one.patch": ONE.replace(b"index ", b"index 1"), "more.patch": more}
    rewritten: Files = {"pkg/core.py": TEXT.replace("compute(2", "run(2")}
    pin = upstream.commit(rewritten)
    if checkout:
        project.component("demo", upstream, pin, {})
        project.run("apply").ok()
    project.component("demo", upstream, pin, patches)
    first, reject, go_on, check = commands(project.run("check", "--json"))
    project.run(*first.split()[1:]).ends(3)
    typed(project, reject)
    core = project.checkout("demo") / "pkg/core.py"
    rejected = core.with_name("core.py.rej")
    rejected.unlink()
    core.write_text(core.read_text().replace("run(20)", "run(20, fast=True)"))
    go_on = go_on.partition("  ")[0]
    assert project.run(*go_on.split()[1:]).code == 3  # the second one needs the same
    core.write_text(core.read_text().replace("fast=True", "fast=2"))
    typed(project, go_on)
    typed(project, check)
    subjects = project.git("log", "-2", "--format=%an %s").decode()
    assert subjects.splitlines()[1].endswith("Go fast")
    assert project.git("status", "--porcelain", "-uno") == b""


@pytest.mark.slow
def test_a_pin_that_was_moved(project: Project, upstream: Upstream) -> None:
    """What the carry engine can do comes before all that takes work by hand."""
    patches = {"one.patch": ONE}
    project.component("demo", upstream, {"pkg/core.py": TEXT}, patches)
    project.prepare("apply").ok()
    moved = TEXT.replace("compute(21)", "compute(21, slow=True)")
    project.component("demo", upstream, {"pkg/core.py": moved}, patches)
    ran = project.run("check").shows("hint: carry the patches to the new pin:")
    assert "by hand" not in ran.out
    project.run("apply").says("hint: why, and what to do: patchkit check -m demo -c demo")
    refresh, *_, check = commands(project.run("check", "--json"))
    typed(project, refresh)
    typed(project, check)


@pytest.mark.parametrize("where", ["the upstream", "an earlier patch"])
def test_a_change_that_is_there_already(project: Project, upstream: Upstream, where: str) -> None:
    there = where == "the upstream"
    patches = {"one.patch": ONE} if there else {"one.patch": ONE, "two.patch": ONE}
    project.component("demo", upstream, {"pkg/core.py": FAST if there else TEXT}, patches)
    ran = project.run("check").shows(f"{where} has the whole change")
    assert ("upstream has" in ran.out) == there
    typed(project, commands(project.run("check", "--json"))[0])
    project.run("check").ok()


def test_a_patch_made_for_the_base_alone_is_told_so(project: Project, upstream: Upstream) -> None:
    """Behind one that changes the same lines, its blob is the base's: no other pin would help,
    were it one with the same files.
    """
    base: Files = {"a.py": "one\ntwo\nthree\n", "b.py": "b\n"}
    first = make_patch(base, {"a.py": "one\nTWO\nthree\n"}, subject="First")
    second = make_patch(base, {"a.py": "one\n2\nthree\n"}, subject="Second")
    pin = upstream.commit(base)
    project.component("demo", upstream, pin, {"first.patch": first, "second.patch": second})
    for _ in range(2):
        ran = (
            project.run("check", "-c", "demo")
            .ends(1)
            .shows(
                "made for this base without the patches before it, which change a.py",
                "it was made for demo's pin without the patches before it",
            )
        )
        assert (pin in ran.out, "another base" in ran.out) == (False, False)
        project.component("other", upstream, {"b.py": "c\n"})
        project.run("fetch").ok()


@pytest.mark.parametrize("strip", [0, 2])
def test_a_wrong_strip_level_is_said(project: Project, upstream: Upstream, strip: int) -> None:
    project.component("demo", upstream, {"pkg/core.py": TEXT}, {"one.patch": ONE}, strip=strip)
    ran = project.run("check")
    assert "another base" not in ran.out
    ran.shows("with 1 folder off its paths", "one.patch -p1")
    project.write({"patches/demo/series": "one.patch -p1\n"})
    project.run("check").ok()


def test_every_patch_that_does_not_fit_is_told(project: Project, upstream: Upstream) -> None:
    """What only lacks an earlier one waits for it; what fails by itself is explained."""
    b, two = TEXT.replace("value", "other"), FAST.replace("compute(5)", "compute(five)")
    upstream.commit({"pkg/core.py": TEXT, "b.py": b, "c.py": "c\n"})
    patches = {
        "one.patch": make_patch({"pkg/core.py": TEXT}, {"pkg/core.py": two}, body=BODY),
        "more.patch": make_patch(
            {"pkg/core.py": two}, {"pkg/core.py": two.replace("fast=True", "fast=2")}, body=BODY
        ),
        "bad.patch": make_patch({"b.py": b}, {"b.py": b.replace("(30)", "(31)")}, body=BODY),
        "good.patch": make_patch({"c.py": "c\n"}, {"c.py": "d\n"}, body=BODY),
    }
    files: Files = {
        "pkg/core.py": TEXT.replace("value_3 ", "here_3 "),
        "b.py": b.replace("other_30 ", "there_30 "),
    }
    project.component("demo", upstream, files, patches)
    ran = project.run("check", "--json")
    (component,) = ran.json["components"]
    statuses = {each["name"]: each["outcome"]["status"] for each in component["patches"]}
    assert statuses == {
        "one.patch": "conflicted",
        "more.patch": "waiting",
        "bad.patch": "conflicted",
        "good.patch": "unchanged",
    }
    project.run("check").shows(
        "2 patches do not apply, 1 waiting", "more.patch  waits for one.patch"
    )
    assert re.search(r"waiting +more.patch", project.run("log").out)
    project.run("apply").ends(1)


def test_a_damaged_patch_does_not_hide_the_others(project: Project, upstream: Upstream) -> None:
    """It is a problem at its line; the others are judged, those that fail as well."""
    patches = {
        "good.patch": make_patch({"a.txt": "a\n"}, {"a.txt": "A\n"}, subject="Good"),
        "cut.patch": ONE.rpartition(b" ")[0],
        "bad.patch": make_patch({"b.txt": "c\n"}, {"b.txt": "C\n"}, subject="Bad"),
        "gone.patch": ONE,
    }
    project.component(
        "demo", upstream, {"pkg/core.py": TEXT, "a.txt": "a\n", "b.txt": "b\n"}, patches
    )
    (project.root / "patches/demo/gone.patch").unlink()
    with (project.root / "patches/demo/series").open("a") as file:
        file.write("../up.patch\n")
    ran = project.run("check", "--json")
    (component,) = ran.json["components"]
    statuses = {each["name"]: each["outcome"]["status"] for each in component["patches"]}
    assert statuses == {"good.patch": "unchanged", "bad.patch": "conflicted"}
    assert component["tree"] is None
    places = [each["where"] for each in component["problems"]]
    assert re.fullmatch(
        r"patches/demo/series:5 patches/demo/cut.patch:\d+ patches/demo/series:4", " ".join(places)
    )
    project.run("check").ends(4, *(f"error: {where}: " for where in places)).shows(
        "bad.patch does not apply"
    )


def test_an_import_judges_what_it_can_read(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    """Nothing comes in, not with --force, before the damaged patch is mended."""
    project.component("demo", upstream, {"pkg/core.py": TEXT, "a.txt": "a\n"})
    (tmp_path / "1-cut.patch").write_bytes(ONE.rpartition(b" ")[0])
    good = make_patch({"a.txt": "a\n"}, {"a.txt": "A\n"}, subject="Good")
    write_files(tmp_path, {"2-good.patch": good, "3-bad.patch": good})
    with project.untouched():
        for options in ([], ["--force"], ["--dry-run"]):
            ran = project.run("import", str(tmp_path), *options).ends(4)
            said = re.sub("  +", "  ", ran.out)
            assert "applies  patches/demo/2-good.patch" in said
            assert "conflicted  patches/demo/3-bad.patch" in said
            assert re.search(r"error: \S+1-cut\.patch:\d+: ", ran.err)
            assert "--force" not in ran.err
        project.run("import", str(tmp_path), "--3way").ends(4)
