"""`patchkit plan`: how far, at what cost, alone and together."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from tests.drift.lines import edit, numbered
from tests.extensions.recipes.kitchen import DROP, made_patch, recipe_text
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.support.servers import silent_server

BASE = numbered(20)
OURS = edit("a.py", BASE, l9="ours")
CODE = "@fuser\ndef f(x):\n    return x\n"
RENAMED = CODE.replace("f(x)", "renamed(x, y)")
RECIPE = recipe_text({**DROP, "expect": ">=1"})
needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="reads pyproject.toml")


@pytest.fixture
def underway(project: Project, upstream: Upstream) -> Project:
    """Two patches, and a branch that first passes by, then comes near, then clashes."""
    project.component("demo", upstream, *on_the_way(upstream), track="main")
    return project


def on_the_way(upstream: Upstream) -> tuple[str, dict[str, bytes]]:
    """The pin and the patches."""
    pin = upstream.commit({"a.py": BASE, "b.py": BASE})
    upstream.commit({"a.py": numbered(20, l1="far")}, "Pass by (#1)")
    upstream.commit({"c.py": "c\n"}, "Do something else")
    upstream.commit({"a.py": numbered(20, l1="far", l10="near\nl10")}, "Come near (#2)")
    upstream.commit({"b.py": numbered(20, l9="theirs")}, "Clash in b (#3)")
    upstream.commit({"a.py": numbered(20, l9="theirs")}, "Clash in a, too (#4)")
    upstream.commit({"c.py": "d\n"}, "End")
    return pin, {"one.patch": OURS, "two.patch": edit("b.py", BASE, l9="2")}


@pytest.mark.slow
def test_how_far_each_amount_of_work_reaches(underway: Project, golden: Golden) -> None:
    golden("plan-one", underway.run("plan"))
    (plan,) = underway.run("plan", "--json").json["components"]
    assert [(s["first"], s["last"]) for s in plan["stretches"]] == [(0, 2), (3, 3), (4, 4), (5, 6)]
    assert as_bumps_have_it(underway) == [
        ("unchanged", 2, 0),
        ("flagged", 3, 0),
        ("conflicted", 4, 1),
        ("conflicted", 6, 2),
    ]


@pytest.mark.slow
def test_what_an_earlier_plan_found_is_believed_unless_it_is_damaged(underway: Project) -> None:
    first = underway.run("plan", "--json").ok().json
    kept = [p for kind in ("verdicts", "trials") for p in underway.root.parent.rglob(f"{kind}/*")]
    assert len(kept) == 2
    for each in kept:
        body = each.read_bytes().partition(b"\n")[2].replace(b'"conflicted"', b'"unchanged"')
        each.write_bytes(sha256(body).hexdigest().encode() + b"\n" + body)
    assert underway.run("plan", "--json", "--offline").ok().json != first
    for each in kept:
        each.write_text("damaged")
    assert underway.run("plan", "--json", "--offline").ok().json == first


@pytest.mark.slow
def test_a_patch_of_a_recipe_is_no_hand_work(project: Project, upstream: Upstream) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    pin = upstream.commit({"src/a.py": CODE})
    project.component("demo", upstream, pin, {"drop-fuser.patch": b""}, track="main")
    made_patch(project, RECIPE)
    upstream.commit({"src/a.py": RENAMED}, "Rename (#3)")
    (plan,) = project.run("plan", "--json").ok().json["components"]
    assert [(r["grade"], r["behind"]) for r in plan["reaches"]] == [("unchanged", 1), ("merged", 0)]


def as_bumps_have_it(project: Project) -> list[tuple[str, int, int]]:
    """The plan's reaches; what each says is what a bump to that commit comes to."""
    (plan,) = project.run("plan", "--json").ok().json["components"]
    for reach in plan["reaches"]:
        commit = reach["commit"]["commit"]
        report = project.run("bump", plan["name"], "--to", commit, "--dry-run", "--json").json
        (row,) = report["components"]
        carried = {each["name"]: each for each in row["patches"]}
        if row["result"] == "unchanged":  # the pin itself
            assert not reach["patches"]
            continue
        if not carried:  # a recipe gives nothing to be used
            assert (row["result"], reach["grade"]) == ("conflicted", "conflicted")
            continue
        for patch in reach["patches"]:
            files = carried[patch["name"]]["files"]
            conflicts = [f["path"] for f in files if f["status"] == "conflicted"]
            assert patch["conflicts"] == (conflicts or patch["conflicts"]), commit
            assert patch["review"] == [f["path"] for f in files if f["review"]], commit
            assert patch["status"] == carried[patch["name"]]["status"], commit
        told = {each["name"] for each in reach["patches"]}
        for name in carried.keys() - told:
            assert carried[name]["status"] in ("unchanged", "shifted", "empty"), commit
    return [(r["grade"], r["position"], r["effort"]["conflicts"]) for r in plan["reaches"]]


@pytest.mark.slow
def test_a_file_that_upstream_takes_apart_is_in_conflict(
    project: Project, upstream: Upstream
) -> None:
    """Into parts of which none is the file itself, renamed."""
    parts = {"head.py": BASE}
    parts |= {f"{x}.py": "".join(f"{x}_{n} = {n}\n" for n in range(20)) for x in "bcd"}
    whole = "".join(parts.values())
    pin = upstream.commit({"whole.py": whole})
    patch = edit("whole.py", whole, l9="ours")
    project.component("demo", upstream, pin, {"one.patch": patch}, track="main")
    upstream.commit({"other.py": "x\n"}, "Do something else")
    upstream.commit({"whole.py": None, **parts}, "Take it apart (#2)")
    upstream.commit({"b.py": parts["b.py"] + "more = 1\n"}, "Go on")
    assert as_bumps_have_it(project) == [("unchanged", 1, 0), ("conflicted", 3, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_patches_behind_one_of_a_recipe_meet_what_it_makes(
    project: Project, upstream: Upstream, *, broken: bool
) -> None:
    """Its recipe is run where upstream changed the file; one that finds nothing makes nothing."""
    upstream.git("config", "uploadpack.allowFilter", "true")
    pin = upstream.commit({"src/a.py": f"{CODE}\n\n{BASE}"})
    without = f"{CODE}\n\n{BASE}".replace("@fuser\n", "")
    patches = {"drop-fuser.patch": b"", "two.patch": edit("src/a.py", without, l3="ours")}
    project.component("demo", upstream, pin, patches, track="main")
    made_patch(project, RECIPE)
    renamed = f"{RENAMED}\n\n{BASE}"
    upstream.commit({"src/a.py": renamed}, "Rename (#3)")
    end = renamed.replace("@fuser\n", "") if broken else f"{renamed}z = 1\n"
    upstream.commit({"src/a.py": end})
    assert as_bumps_have_it(project)[-1] == (("conflicted", 2, 1) if broken else ("merged", 2, 0))


@pytest.fixture
def trainer(tmp_path: Path) -> Upstream:
    """The upstream of a second component."""
    return Upstream.create(tmp_path / "trainer.git")


def pyproject(name: str, version: str, *needs: str) -> str:
    wanted = ", ".join(f'"{need}"' for need in needs)
    return f'[project]\nname = "{name}"\nversion = "{version}"\ndependencies = [{wanted}]\n'


@pytest.mark.slow
@needs_toml
def test_together_as_far_as_metadata_allows(
    project: Project, upstream: Upstream, trainer: Upstream
) -> None:
    """The engine's 2.0 fits as it is, but the trainer asks for 1.* until it clashes."""
    pin = upstream.commit({"pyproject.toml": pyproject("engine", "1.0", "lib<2"), "a.py": BASE})
    upstream.commit({"pyproject.toml": pyproject("engine", "1.1", "lib<2")}, "Release 1.1")
    upstream.commit({"pyproject.toml": pyproject("engine", "2.0", "lib<2")}, "Release 2.0")
    old = pyproject("trainer", "7", "engine==1.*")
    other = trainer.commit({"pyproject.toml": old, "b.py": BASE})
    trainer.commit({"c.py": "c\n"}, "Do something else")
    trainer.commit({"b.py": numbered(20, l9="theirs")}, "Clash")
    trainer.commit({"pyproject.toml": pyproject("trainer", "8", "engine>=2")}, "Move on")
    two = {"two.patch": edit("b.py", BASE, l9="ours")}
    project.component("engine", upstream, pin, {"one.patch": OURS}, track="main")
    project.component("trainer", trainer, other, two, track="main")

    report = project.run("plan", "--json").ok().json
    combined = report["combinations"]
    assert [each["effort"]["conflicts"] for each in combined] == [0, 1]
    versions = [[each["version"] for each in one["choices"]] for one in combined]
    assert versions == [["1.1", "7"], ["2.0", "8"]]
    assert report["clashes"] == []
    shown = project.run("plan").ok().out.partition("Together")[2].splitlines()
    assert [line.split()[-1] for line in shown if line.startswith("      ")][:2] == ["1.1", "7"]


def test_what_a_patch_takes_out_of_the_metadata_is_not_asked_for(
    project: Project, upstream: Upstream, trainer: Upstream
) -> None:
    """The engine's 2.0 may come: the trainer's patch takes out `engine==1.*`, on each commit."""
    setup = 'from setuptools import setup\n\nsetup(\n    name="{}",\n    version="{}",\n    {})\n'
    needs = 'install_requires=["engine==1.*"],\n'
    pin = upstream.commit({"setup.py": setup.format("engine", "1.0", ""), "a.py": BASE})
    upstream.commit({"setup.py": setup.format("engine", "2.0", "")}, "Release 2.0")
    old = setup.format("trainer", "7", needs)
    other = trainer.commit({"setup.py": old})
    trainer.commit({"setup.py": "# A comment\n" + old}, "A line above")
    patch = make_patch({"setup.py": old}, {"setup.py": setup.format("trainer", "7", "")})
    project.component("engine", upstream, pin, {"one.patch": OURS}, track="main")
    project.component("trainer", trainer, other, {"needs.patch": patch}, track="main")

    (first, *more) = project.run("plan", "--json").ok().json["combinations"]

    assert [c["version"] for c in first["choices"]] == ["2.0", "7"]
    assert (first["days"], more) == (0, [])


@pytest.mark.slow
@needs_toml
def test_a_version_of_tags_counts(project: Project, upstream: Upstream, trainer: Upstream) -> None:
    """The trainer takes the engine's 1.* only; what is behind the tag 2.0 does not fit it."""
    upstream.git("config", "uploadpack.allowFilter", "true")
    text = '[build-system]\nrequires = ["setuptools-scm"]\n[project]\nname = "engine"\n'
    pin = upstream.commit({"pyproject.toml": f'{text}dynamic = ["version"]\n', "a.py": BASE})
    upstream.tag("v1.0", pin)
    last = upstream.commit({"b.py": "b\n"}, "Before 2.0")
    upstream.tag("v2.0", upstream.commit({"c.py": "c\n"}, "Release 2.0"))
    upstream.commit({"d.py": "d\n"}, "Go on")
    other = trainer.commit({"pyproject.toml": pyproject("trainer", "7", "engine==1.*")})
    project.component("engine", upstream, pin, {}, track="main")
    project.component("trainer", trainer, other, {}, track="main")
    for argv in ((), ("--offline",)):
        report = project.run("plan", "--json", *argv).ok().json
        (combined,) = report["combinations"]
        chosen, engine = combined["choices"][0], report["components"][0]
        assert (chosen["commit"]["commit"], chosen["version"]) == (last, "1.1.dev0")
        assert (engine["version"], engine["tip_version"]) == ("1.0", "2.1.dev0")


@needs_toml
def test_what_the_pins_break_already_is_told(
    project: Project, upstream: Upstream, trainer: Upstream
) -> None:
    pin = upstream.commit({"pyproject.toml": pyproject("engine", "1.0", "lib==1")})
    side = trainer.commit({"pyproject.toml": pyproject("side", "1.0", "lib==2")})
    project.component("engine", upstream, pin, {}, track="main")
    project.component("side", trainer, side, {}, track="main")
    ran = project.run("plan").ok()
    assert "engine needs lib==1, side has ==2" in ran.out or "side needs lib==2" in ran.out


def test_to_goes_with_one_component(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    project.component("one", upstream, pin, {})
    project.component("two", upstream, pin, {})
    project.run("plan", "--to", "main").ends(2, "patchkit plan one --to main")
    project.run("plan", "two", "--to", "main").ok()


def test_one_that_cannot_be_looked_at_stops_no_other(
    project: Project, upstream: Upstream, trainer: Upstream
) -> None:
    for name, each in {"here": upstream, "gone": trainer}.items():
        project.component(name, each, each.commit({"a": "b\n"}), {}, track="main")
    shutil.rmtree(trainer.path)
    project.run("plan").ends(5, "gone").shows("here  main to")


@pytest.mark.slow
def test_the_cheap_ones_come_first(project: Project, tmp_path: Path) -> None:
    patches = {"one.patch": OURS, "two.patch": edit("a.py", BASE, l2="2")}
    for name, given in {"large": patches, "small": {}, "smaller": {}}.items():
        upstream = Upstream.create(tmp_path / f"{name}.git")
        pin = upstream.commit({"a.py": BASE})
        upstream.commit({"b.py": BASE})
        project.component(name, upstream, pin, given, track="main")
    ran = project.run("plan").ok()
    begun = [row.partition(":")[0] for row in ran.err.splitlines() if "fetching the hist" in row]
    assert sorted(begun) == ["large", "small", "smaller"]
    assert begun[-1] == "large"
    rows = [row.split()[0] for row in ran.out.splitlines() if " main to " in row]
    assert rows == ["small", "smaller", "large"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "ends", "row"),
    [
        ("plan", "demo: looked at", "demo  main to"),
        ("drift", "demo: looked at", "demo  main to"),
        ("fetch", "demo: fetched", ""),
        ("apply", "demo: created", ""),
        ("check", "demo: checked", ""),
        ("ci", "demo: checked", ""),
        ("bump --all", "dead: ", "✗ conflicted  ahead  "),
    ],
)
def test_what_is_known_when_it_is_interrupted_is_printed(
    command: str, ends: str, row: str, project: Project, upstream: Upstream
) -> None:
    """The component with an answer comes behind one whose server never gives any; the commands that
    say all at the end say nothing (row "").
    """
    pin, patches = on_the_way(upstream)
    with silent_server() as port:
        dead = {"git": f"git://127.0.0.1:{port}/r.git"}
        if command == "bump --all":
            project.component("ahead", upstream, pin, patches, track="main")
        project.component("dead", upstream, pin, patches, track="main", source=dead)
        failing = command != "bump --all"
        gone = {"git": (project.root / "gone.git").as_uri()}
        if failing:
            project.component("gone", upstream, pin, patches, track="main", source=gone)
        project.component("demo", upstream, pin, patches, track="main")
        before = project.files()
        process = _start(project, *command.split())
        assert process.stderr is not None
        seen, waited = "", [ends, "gone: failed"][: 1 + failing]
        while waited := [each for each in waited if each not in seen]:
            seen += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, bool(out)) == (130, bool(row))
    assert row in out
    left = "dead, demo" if command == "bump --all" else "dead"
    manifest = "demo: " if command == "drift" else ""
    assert (f"error: no answer yet for {manifest}{left}\n" in err) == bool(row)
    assert err.count("does not appear to be a git repository") == (failing and bool(row))
    assert err.endswith("error: interrupted\n")
    assert (project.files(), list(_scratch().iterdir()), _started_here()) == (before, [], [])


@pytest.mark.slow
def test_an_interrupt_in_the_drift_part_of_ci(underway: Project, upstream: Upstream) -> None:
    """What was checked before it stays said; nothing runs on, nothing is half-written."""
    underway.run("fetch").ok()
    before = underway.files("")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        url = f"git://127.0.0.1:{server.getsockname()[1]}/r.git"
        (Path.home() / ".gitconfig").write_text(f'[url "{url}"]\n\tinsteadOf = {upstream.url}\n')
        process = _start(underway, "ci")
        with server.accept()[0]:  # of the git that asks what main is
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
    assert (process.returncode, "demo  2 patches apply" in out) == (130, True), out
    assert err.endswith("error: interrupted\n")
    assert "Traceback" not in err
    assert (underway.files(""), list(_scratch().iterdir()), _started_here()) == (before, [], [])
    (Path.home() / ".gitconfig").write_text("")
    underway.run("ci").ends(1)


def _start(project: Project, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "patchkit", *argv],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )


def _scratch() -> Path:
    return Path.home() / "cache" / "scratch"


def _started_here() -> list[bytes]:
    """Command lines of the processes that have this test's home, and are not this one."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            home = b"HOME=" + os.fsencode(Path.home())
            if home in (each / "environ").read_bytes().split(b"\0"):
                found.append((each / "cmdline").read_bytes())
    return found
