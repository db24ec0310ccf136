"""One component at several pins: read, named, checked side by side, and each edited by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import ExitCode
from patchkit.manifest.load import inspect_manifest, load_manifest
from patchkit.model.progress import Silent
from patchkit.ops.new_pin import nearest_pin
from patchkit.upstream.store import Store
from tests.support.projects import Project
from tests.support.repos import Content, Files, Upstream, make_patch
from tests.support.stacked import ONE, lines

BASE: dict[str, Content] = {"a.txt": lines(), "b.txt": lines()}
NEWER: dict[str, Content] = {"a.txt": "a new top\n" + lines(), "b.txt": lines(ONE)}
MANIFEST = """\
version: 1
components:
  lib:
    source: {{git: "{url}"}}
    track: main
    pins:
      v1:
        pin: {v1}  # v1
        patches:
          # ours
          - series: patches/lib/v1/series
      latest: {{pin: {v2}, patches: [{{series: patches/lib/latest/series}}]}}
"""


def changed(before: Files, path: str, text: str, subject: str) -> bytes:
    """A patch that puts another text into a file."""
    return make_patch(before, {**before, path: text}, subject=subject, body="For a test.")


def at_two_pins(project: Project, upstream: Upstream) -> str:
    """A component at v1 with three patches and at a later commit with two; returns its manifest."""
    v1, v2 = upstream.commit(BASE, "The base"), upstream.commit(NEWER, "Go on")
    upstream.tag("v1", v1)
    upstream.tag("v2", v2)
    twenty = {20: "twenty\n"}
    project.series(
        "lib/v1",
        {
            "0001-twenty.patch": changed(BASE, "a.txt", lines(twenty), "Say twenty"),
            "0002-five.patch": changed(BASE, "b.txt", lines(ONE), "Say five"),
            "0003-new.patch": changed(BASE, "c.txt", "c\n", "Add c"),
            "0004-last.patch": changed(BASE, "b.txt", lines({40: "the last\n"}), "Say last"),
        },
    )
    top = "a new top\n"
    project.series(
        "lib/latest",
        {
            "0001-twenty.patch": changed(NEWER, "a.txt", top + lines(twenty), "Say twenty"),
            "0002-end.patch": changed(NEWER, "b.txt", lines(ONE | {40: "the end\n"}), "Say last"),
        },
    )
    text = MANIFEST.format(url=upstream.url, v1=v1, v2=v2)
    project.write({"manifests/demo.yaml": text})
    return text


def problems(project: Project, text: str) -> list[tuple[int, str, str]]:
    """Line, what and hint of all that is wrong with a manifest."""
    project.write({"manifests/demo.yaml": text})
    found = inspect_manifest(project.root / "manifests/demo.yaml").problems
    return [(int(each.where.rpartition(":")[2]), each.what, each.hint) for each in found]


def test_each_pin_is_a_component_with_the_keys_beside(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    one, latest = load_manifest(project.root / "manifests/demo.yaml").components
    assert (one.name, one.family, one.label) == ("lib@v1", "lib", "v1")
    assert (latest.name, latest.family, latest.label) == ("lib@latest", "lib", "latest")
    assert one.track == latest.track == "main"
    assert (one.checkout, one.where.line, one.pin_where.line) == ("lib@v1", 7, 8)
    assert one.source == latest.source
    assert one.series is not None
    assert one.series.path == "patches/lib/v1/series"


def test_what_is_resolved_loads_again_to_the_same(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    text = project.run("status", "--resolved").ok().out
    project.write({"manifests/again.yaml": text})
    assert project.run("status", "--resolved", "-m", "again").ok().out == text


def test_a_part_has_the_source_and_the_manifest_the_pins(
    project: Project, upstream: Upstream
) -> None:
    text = at_two_pins(project, upstream)
    head, _, rest = text.partition("    track: main\n")
    project.write({"manifests/parts/lib.yaml": head})
    whole = f"version: 1\nextends: [parts/lib.yaml]\ncomponents:\n  lib:\n{rest}"
    project.write({"manifests/demo.yaml": whole})
    assert [
        each.name for each in load_manifest(project.root / "manifests/demo.yaml").components
    ] == [
        "lib@v1",
        "lib@latest",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "what", "hint"),
    [
        (
            "    pins:",
            f"    pin: {'a' * 40}\n    pins:",
            6,
            "lib has pin and pins",
            "write it below `pins:`, under a name of its own",
        ),
        (
            "latest:",
            "v1:",
            12,
            "components.lib.pins.v1 is given twice, first in line 7",
            "delete one",
        ),
        (
            "latest:",
            "release/1:",
            12,
            "components.lib.pins: release/1 cannot name a pin",
            "folders are called so: letters, digits and . _ + - inside, at most 64, like v0.5.9",
        ),
        (
            "latest:",
            "0.5:",
            12,
            "the key components.lib.pins.0.5 is a decimal number to YAML",
            'quote it: "0.5"',
        ),
        (
            "{{pin",
            "{{pins: {{}}, pin",
            12,
            "components.lib.pins.latest.pins is an unknown key",
            "did you mean pin?",
        ),
    ],
)
def test_what_is_wrong_with_pins(  # noqa: PLR0917
    project: Project, upstream: Upstream, old: str, new: str, line: int, what: str, hint: str
) -> None:
    text = at_two_pins(project, upstream)
    old, new = old.replace("{{", "{"), new.replace("{{", "{").replace("}}", "}")
    assert problems(project, text.replace(old, new)) == [(line, what, hint)]


def test_no_pin_among_them_is_missing(project: Project, upstream: Upstream) -> None:
    head = at_two_pins(project, upstream).partition("    pins:")[0]
    ((line, what, _),) = problems(project, f"{head}    pins: {{}}\n")
    assert (line, what) == (4, "components.lib.pin is missing")


def test_what_is_wrong_beside_them_is_told_once(project: Project, upstream: Upstream) -> None:
    text = at_two_pins(project, upstream).replace("track: main", "track: a..b")
    ((line, what, _),) = problems(project, text)
    assert (line, what) == (5, "components.lib.track: a..b cannot name a branch or tag")


def test_two_of_them_may_not_share_a_series(project: Project, upstream: Upstream) -> None:
    text = at_two_pins(project, upstream).replace("lib/latest/", "lib/v1/")
    ((line, what, _),) = problems(project, text)
    assert (line, what) == (
        12,
        "series patches/lib/v1/series of lib@latest is the series of lib@v1, too",
    )


# -- on the command line ----------------------------------------------------------------------


def test_the_name_without_a_pin_is_all_of_them(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    rows = project.run("apply", "lib", "--json").ok().json["components"]
    assert [row["name"] for row in rows] == ["lib@v1", "lib@latest"]
    assert (project.checkout("lib@v1") / "c.txt").exists()
    (row,) = project.run("status", "lib@v1", "--json").ok().json["components"]
    assert row["name"] == "lib@v1"
    ran = project.run("refresh", "-c", "lib", "--new", "more").ends(ExitCode.USAGE)
    ran.says("lib has several pins", "name one with -c: lib@v1, lib@latest")


def test_each_pin_is_edited_bumped_and_undone_by_itself(
    project: Project, upstream: Upstream
) -> None:
    text = at_two_pins(project, upstream)
    project.run("apply").ok()
    before = project.product
    (project.checkout("lib@v1") / "c.txt").write_text("more\n")
    project.run("refresh").ok()
    new = project.product
    differ = {path for path in before if before[path] != new[path]}
    assert differ == {"patches/lib/v1/0003-new.patch", "manifests/demo.lock.json"}
    project.run("undo").ok()
    assert project.product == before
    (project.checkout("lib@v1") / "c.txt").write_text("c\n")
    v3 = upstream.commit({"d.txt": "d\n"}, "Say d")
    upstream.tag("v3", v3)
    upstream.tag("v0", "v1")
    project.run("bump", "lib@latest", "--to", "v3").ok()
    assert project.read("manifests/demo.yaml") == text.replace(upstream.at("v2"), v3)
    project.run("bump", "lib@v1", "--to", "v2").ok()
    wanted = text.replace(upstream.at("v2"), v3).replace(upstream.at("v1"), upstream.at("v2"))
    assert project.read("manifests/demo.yaml") == wanted.replace("# v1", "# v2")


def test_a_pin_without_patches_gets_a_series_of_its_own(
    project: Project, upstream: Upstream
) -> None:
    text = at_two_pins(project, upstream)
    bare = text.replace(", patches: [{series: patches/lib/latest/series}]", "")
    project.write({"manifests/demo.yaml": bare})
    project.run("apply").ok()
    (project.checkout("lib@latest") / "a.txt").write_text("other\n")
    (project.root / "patches/lib/latest/series").unlink()
    # written in braces it cannot be added to
    project.run("refresh", "lib@latest", "--new", "one").ends(ExitCode.BAD_INPUT)
    lines_of = bare.replace("latest: {pin:", "latest:\n        pin:").replace("}\n", "\n", 2)
    project.write(
        {"manifests/demo.yaml": lines_of.replace(f'{upstream.url}"', f'{upstream.url}"}}')}
    )
    project.run("refresh", "lib@latest", "--new", "one").ok()
    assert project.read("patches/lib/latest/series") == "one.patch\n"
    assert "patches/lib/latest/series" in project.read("manifests/demo.yaml")


# -- side by side -----------------------------------------------------------------------------


def test_a_check_shows_which_pin_has_which_patches(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    ran = project.run("check", "--json").ok()
    (matrix,) = ran.json["versions"]
    assert matrix == {
        "manifest": "demo",
        "component": "lib",
        "pins": ["v1", "latest"],
        "families": {
            "0001-twenty.patch": ["applies", "applies"],
            "0002-five.patch": ["applies", "absorbed"],
            "0003-new.patch": ["applies", "missing"],
            "0002-end.patch": ["applies", "differing"],
        },
    }
    shown = project.run("check").ok().out
    assert (
        """
demo: lib          v1       latest
0001-twenty.patch  applies  applies
0002-five.patch    applies  absorbed
0003-new.patch     applies  missing
0002-end.patch     applies  differing
"""
        in shown
    )
    markdown = project.run("check", "--format", "markdown").ok().out
    assert "\n| demo: lib | v1 | latest |\n|---|---|---|\n" in markdown
    assert "\n| 0003-new.patch | applies | missing |\n" in markdown
    assert project.run("check", "lib@v1", "--json").ok().json["versions"] == []
    assert (
        project.run("ci", "--allow-drift").ok().out.count("\ndemo: lib          v1       latest\n")
        == 1
    )
    assert "\n| 0003-new.patch | applies | missing |\n" in _ci_markdown(project)
    project.run("ci", "--format", "json", "-o", "one.json").ends(1)
    (joined,) = project.run("ci", "--merge", "one.json", "--json").ends(1).json["check"]["versions"]
    assert joined == matrix


def _ci_markdown(project: Project) -> str:
    return project.run("ci", "--format", "markdown").ends(1).out


def test_a_patch_with_other_lines_around_it_is_carried(
    project: Project, upstream: Upstream
) -> None:
    at_two_pins(project, upstream)
    before = {**NEWER, "a.txt": "a new top\n" + lines({19: "upstream\n"})}
    pin = upstream.commit(before, "Say more")
    old = project.read("manifests/demo.yaml")
    project.write({"manifests/demo.yaml": old.replace(upstream.at("v2"), pin)})
    after = "a new top\n" + lines({19: "upstream\n", 20: "twenty\n"})
    patch = changed(before, "a.txt", after, "Another subject")
    project.write({"patches/lib/latest/0001-twenty.patch": b""})
    project.series("lib/latest", {"0007-twenty.patch": patch})
    (matrix,) = project.run("check", "--json").json["versions"]
    assert matrix["families"]["0007-twenty.patch"] == ["applies", "carried"]


def test_patches_that_do_not_apply_or_cannot_be_read_say_so(
    project: Project, upstream: Upstream
) -> None:
    at_two_pins(project, upstream)
    bad = changed({**BASE, "a.txt": "x\n"}, "a.txt", "y\n", "Say twenty")
    project.write({"patches/lib/latest/0001-twenty.patch": bad})
    (matrix,) = project.run("check", "--json").ends(ExitCode.FINDING).json["versions"]
    assert matrix["families"]["0001-twenty.patch"] == ["applies", "conflicted"]


def test_a_drift_shows_what_becomes_of_each(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    upstream.commit({"a.txt": "a new top\n" + lines({20: "twenty\n"})}, "Say twenty, too")
    project.run("fetch").ok()
    ran = project.run("drift", "--json").ends(ExitCode.FINDING)
    (matrix,) = ran.json["versions"]
    assert matrix["families"]["0001-twenty.patch"] == ["absorbed", "absorbed"]
    assert matrix["families"]["0002-five.patch"] == ["absorbed", "absorbed"]
    assert "0003-new.patch     applies   missing" in project.run("drift").out


def test_its_place_is_the_workspace_of_its_name(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply", "lib@latest").ok()
    assert [
        each.name for each in (project.root / "workspace").iterdir() if each.name[0] != "."
    ] == ["lib@latest"]
    assert Path(project.checkout("lib@latest"), "a.txt").read_text().startswith("a new top\n")


# -- a further pin ----------------------------------------------------------------------------


def with_v3(project: Project, upstream: Upstream) -> str:
    """The component at v1 and v2, and a tag v3 beyond; returns the manifest."""
    text = at_two_pins(project, upstream)
    text = text.replace("latest: {", "v2: {").replace("/latest/", "/v2/")
    (project.root / "patches/lib/latest").rename(project.root / "patches/lib/v2")
    text = text.replace("patches: [{series: patches/lib/v2/series}]}", "\n" + " " * 8 + "}")
    text = text.replace("v2: {pin: ", "v2:\n        pin: ").replace(
        ", \n        }", "  # v2\n        patches:\n          - series: patches/lib/v2/series"
    )
    project.write({"manifests/demo.yaml": text, "patches/lib/v2/series": "# theirs\n"})
    names = "0001-twenty.patch\n0002-end.patch\n"
    project.write({"patches/lib/v2/series": f"# ours\n{names}"})
    changes = {"a.txt": "a new top\n" + lines({22: "upstream\n"}), "d.txt": "d\n"}
    upstream.tag("v3", upstream.commit(changes, "Go on and on"))
    return text


def test_a_new_pin_starts_as_the_nearest_and_is_carried(
    project: Project, upstream: Upstream
) -> None:
    text = with_v3(project, upstream)
    before = project.product
    ran = project.run("bump", "lib", "--add", "v3", "--json").ok()
    ran.says("starts as a copy of lib@v2")
    assert (ran.component["name"], ran.component["old"]["name"]) == ("lib@v3", "v2")
    assert project.read("manifests/demo.yaml") == (
        f"{text}      v3:\n        pin: {upstream.at('v3')}\n"
        "        patches:\n          - series: patches/lib/v3/series\n"
    )
    assert project.read("patches/lib/v3/series").startswith("# ours\n0001-twenty.patch\n")
    now = project.product
    assert {path: now[path] for path in before if "yaml" not in path} == {
        path: data for path, data in before.items() if "yaml" not in path
    }
    project.run("apply", "lib@v3").ok()
    (matrix,) = project.run("check", "--json").json["versions"]
    assert matrix["families"]["0001-twenty.patch"] == ["applies", "applies", "carried"]


def test_a_folder_that_is_there_is_left_alone(project: Project, upstream: Upstream) -> None:
    with_v3(project, upstream)
    project.write({"patches/lib/v3/series": "# mine\n"})
    with project.untouched():
        ran = project.run("bump", "lib", "--add", "v3").ends(ExitCode.USAGE)
    ran.says("manifests/demo.yaml:12: patches/lib/v3 is there already", "move it away")


def test_pins_of_a_part_are_added_to_there(project: Project, upstream: Upstream) -> None:
    text = with_v3(project, upstream)
    project.write({"manifests/parts/lib.yaml": text})
    project.write({"manifests/demo.yaml": "version: 1\nextends: [parts/lib.yaml]\n"})
    with project.untouched():
        ran = project.run("bump", "lib", "--add", "v3").ends(ExitCode.BAD_INPUT)
    ran.says("`pins` of lib is not in this file", "change it in the file that sets it")


def test_one_undo_takes_a_new_pin_back(project: Project, upstream: Upstream) -> None:
    with_v3(project, upstream)
    before = project.product
    project.run("bump", "lib", "--add", "v3").ok()
    project.run("undo").ok()
    now = project.product
    now.pop("manifests/demo.lock.json", None)
    assert now == before


@pytest.mark.parametrize(
    ("ref", "like"), [("v3", "v2"), ("v2.1", "v1"), ("v1.5", "v2"), ("main", "v2")]
)
def test_the_nearest_is_by_commits(
    project: Project, upstream: Upstream, ref: str, like: str
) -> None:
    """v2.1 is of a release branch that left the line at v1, v1.5 came after v2."""
    with_v3(project, upstream)
    upstream.tag("v1.5", upstream.at("v3"))
    release = upstream.commit({"e.txt": "e\n"}, branch="release", parents=(upstream.at("v1"),))
    upstream.tag("v2.1", release)
    before = project.product
    ran = project.run("bump", "lib", "--add", ref, "--dry-run", "--json").ok()
    ran.says(f"starts as a copy of lib@{like}")
    assert ran.component["name"] == f"lib@{like}"
    assert project.product == before
    project.run("bump", "lib@v1", "--add", ref, "--dry-run").ok().says("a copy of lib@v1")


@pytest.mark.parametrize(
    ("ref", "like"), [("v3", "v2"), ("v1.5", "v1"), ("v0", "v1"), ("main", "v2")]
)
def test_the_nearest_is_by_version_without_a_history(
    project: Project, upstream: Upstream, ref: str, like: str
) -> None:
    with_v3(project, upstream)
    pins = load_manifest(project.root / "manifests/demo.yaml").named("lib")
    store = Store(project.root / "no-cache", offline=True)
    assert nearest_pin(pins, ref, store, Silent()).label == like


def test_a_new_pin_that_the_patches_do_not_fit_waits_for_a_checkout(
    project: Project, upstream: Upstream
) -> None:
    with_v3(project, upstream)
    upstream.tag("v4", upstream.commit({"a.txt": lines({20: "zwanzig\n"})}, "Say it in German"))
    ran = project.run("bump", "lib", "--add", "v4").ends(ExitCode.HALTED)
    ran.says("patchkit apply -m demo -c lib@v4")
    project.run("apply", "lib@v4").ok()
    again = project.run("bump", "lib", "--add", "v4").ends(ExitCode.USAGE)
    again.says("lib@v4 is there already", "patchkit bump -m demo -c lib@v4 --to v4  moves it")
    project.run("bump", "-m", "demo", "-c", "lib@v4", "--to", "v4").ends(ExitCode.HALTED)
    project.run("skip", "lib@v4").ok()
    assert project.read("patches/lib/v4/series") == "# ours\n0002-end.patch\n"
    assert f"pin: {upstream.at('v4')}" in project.read("manifests/demo.yaml")


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["lib", "--add", "v2"], "manifests/demo.yaml:12: lib@v2 is there already"),
        (["lib", "--add", "v9"], "has no branch or tag v9"),
        (["lib", "--add", "release/1"], "release/1 cannot name a pin"),
        (["other", "--add", "v3"], "manifests/demo.yaml:16: other has no patches in a folder"),
        (["--add", "v3"], "--add is for one component"),
    ],
)
def test_what_cannot_be_added(
    project: Project, upstream: Upstream, argv: list[str], what: str
) -> None:
    text = with_v3(project, upstream)
    upstream.tag("release/1", upstream.at("v3"))
    other = f'  other:\n    source: {{git: "{upstream.url}"}}\n    pin: {upstream.at("v1")}\n'
    project.write({"manifests/demo.yaml": text + other})
    with project.untouched():
        ran = project.run("bump", *argv)
    assert ran.code in (ExitCode.USAGE, ExitCode.BAD_INPUT)
    ran.says(what)


# -- one edit at all pins ---------------------------------------------------------------------


def edit(project: Project, name: str, path: str, old: str, new: str) -> None:
    file = project.checkout(name) / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def statuses(project: Project) -> dict[str, list[str]]:
    (matrix,) = project.run("check", "--json").ok().json["versions"]
    found: dict[str, list[str]] = matrix["families"]
    return found


def test_an_edit_at_one_pin_is_carried_to_the_others(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    before = project.product
    edit(project, "lib@v1", "a.txt", "twenty\n", "twenty and more\n")
    edit(project, "lib@v1", "c.txt", "c\n", "c\nd\n")
    rows = project.run("refresh", "lib@v1", "--all-pins", "--json").ok().json["components"]
    assert [(row["name"], row["result"]) for row in rows] == [
        ("lib@v1", "refreshed"),
        ("lib@latest", "carried"),
    ]
    assert "+twenty and more\n" in project.read("patches/lib/v1/0001-twenty.patch")
    assert "+twenty and more\n" in project.read("patches/lib/latest/0001-twenty.patch")
    assert "+d\n" in project.read("patches/lib/v1/0003-new.patch")
    # of one that is not there nothing is carried
    assert project.read("patches/lib/latest/series") == "0001-twenty.patch\n0002-end.patch\n"
    assert not (project.checkout("lib@latest") / "c.txt").exists()
    assert "twenty and more" in (project.checkout("lib@latest") / "a.txt").read_text()
    assert statuses(project)["0001-twenty.patch"] == ["applies", "applies"]
    project.run("undo").ok()
    assert project.product == before
    assert "and more" not in (project.checkout("lib@latest") / "a.txt").read_text()
    assert "and more" in (project.checkout("lib@v1") / "a.txt").read_text()


def test_a_patch_that_differs_keeps_what_is_its_own(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    edit(project, "lib@v1", "b.txt", "line 30\n", "thirty\n")
    project.run("refresh", "lib@v1", "--all-pins", "--patch", "0004-last").ok()
    text = project.read("patches/lib/latest/0002-end.patch")
    assert "+thirty\n" in text
    assert "+the end\n" in text
    assert statuses(project)["0002-end.patch"] == ["applies", "differing"]


def test_a_new_patch_goes_to_all_pins(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    edit(project, "lib@latest", "a.txt", "line 9\n", "nine\n")
    argv = ("--new", "say-nine", "--message", "Say nine")
    project.run("refresh", "lib@latest", "--all-pins", *argv).ok()
    assert project.read("patches/lib/v1/series").endswith("0004-last.patch\nsay-nine.patch\n")
    assert statuses(project)["say-nine.patch"] == ["applies", "applies"]
    project.run("undo").ok()
    assert not (project.root / "patches/lib/v1/say-nine.patch").exists()


def test_a_conflict_at_another_pin_waits_there(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    before = project.product
    edit(project, "lib@v1", "b.txt", "the last\n", "the very last\n")
    ran = project.run("refresh", "lib@v1", "--all-pins", "--json").ends(ExitCode.HALTED)
    one, other = ran.json["components"]
    assert (one["result"], other["result"]) == ("refreshed", "conflicted")
    assert (other["halted"]["patch"], other["halted"]["unknown"]) == ("edit-0004-last.patch", "")
    file = project.checkout("lib@latest") / "b.txt"
    assert "<<<<<<<" in file.read_text()
    assert project.product["patches/lib/latest/series"] == before["patches/lib/latest/series"]
    file.write_text(lines(ONE | {40: "the very end\n"}))
    project.run("continue", "lib@latest").ok()
    assert project.read("patches/lib/latest/series") == "0001-twenty.patch\n0002-end.patch\n"
    assert "+the very end\n" in project.read("patches/lib/latest/0002-end.patch")
    project.run("undo").ok()
    end = "patches/lib/latest/0002-end.patch"
    assert project.product[end] == before[end]


def test_an_edit_goes_behind_later_patches_of_the_other_pin(
    project: Project, upstream: Upstream
) -> None:
    """It is carried where its patch stands, and those behind that follow."""
    at_two_pins(project, upstream)
    before = {**NEWER, "a.txt": "a new top\n" + lines({20: "twenty\n"})}
    after = "a new top\n" + lines({20: "twenty\n", 21: "and one\n"})
    own = changed(before, "a.txt", after, "Say one more")
    project.write(
        {
            "patches/lib/latest/one-more.patch": own,
            "patches/lib/latest/series": "0001-twenty.patch\none-more.patch\n0002-end.patch\n",
        }
    )
    project.run("apply").ok()
    edit(project, "lib@v1", "a.txt", "line 19\ntwenty\n", "nineteen\ntwenty\n")
    project.run("refresh", "lib@v1", "--all-pins", "--patch", "0001-twenty").ok()
    text = (project.checkout("lib@latest") / "a.txt").read_text()
    assert "nineteen\ntwenty\nand one\n" in text
    assert "+nineteen\n" in project.read("patches/lib/latest/0001-twenty.patch")
    assert " nineteen\n" in project.read("patches/lib/latest/one-more.patch")
    assert "and one" not in project.read("patches/lib/latest/0001-twenty.patch").split("@@")[-1]


def test_a_conflict_at_another_pin_is_aborted(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    before = project.product
    edit(project, "lib@v1", "b.txt", "the last\n", "the very last\n")
    project.run("refresh", "lib@v1", "--all-pins").ends(ExitCode.HALTED)
    project.run("abort", "lib@latest").ok()
    assert "the end\n" in (project.checkout("lib@latest") / "b.txt").read_text()
    project.run("undo", "lib@v1").ok()
    assert project.product == before


def test_what_is_there_already_is_not_carried(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    for name in ("lib@latest", "lib@v1"):
        edit(project, name, "a.txt", "twenty\n", "zwanzig\n")
    project.run("refresh", "lib@latest").ok()
    before = project.files("patches/lib/latest")
    project.run("refresh", "lib@v1", "--all-pins").ok()
    assert project.files("patches/lib/latest") == before


def test_a_dry_run_at_all_pins_writes_nothing(project: Project, upstream: Upstream) -> None:
    at_two_pins(project, upstream)
    project.run("apply").ok()
    edit(project, "lib@v1", "a.txt", "twenty\n", "zwanzig\n")
    with project.untouched():
        project.run("refresh", "lib@v1", "--all-pins", "--dry-run").ok()


def test_what_cannot_be_refreshed_at_all_pins(project: Project, upstream: Upstream) -> None:
    text = at_two_pins(project, upstream)
    other = f'  other:\n    source: {{git: "{upstream.url}"}}\n    pin: {upstream.at("v1")}\n'
    project.write({"manifests/demo.yaml": text + other})
    project.run("apply", "lib@v1", "other").ok()
    edit(project, "lib@v1", "a.txt", "twenty\n", "zwanzig\n")
    with project.untouched():
        ran = project.run("refresh", "-c", "other", "--all-pins").ends(ExitCode.USAGE)
        ran.says("manifests/demo.yaml:13: other has one pin", "refresh it without --all-pins")
        ran = project.run("refresh", "-c", "lib", "--all-pins").ends(ExitCode.USAGE)
        ran.says("lib has several pins", "name one with -c: lib@v1, lib@latest")
        ran = project.run("refresh", "-c", "lib@v1", "--all-pins").ends(ExitCode.USAGE)
        ran.says("lib@latest: has no checkout for a conflict")
        ran.says("patchkit apply -m demo -c lib@latest  makes it")
    project.run("apply", "-m", "demo", "-c", "lib@latest").ok()
    project.run("refresh", "-c", "lib@v1", "--all-pins").ok()


def with_a_near_patch(project: Project) -> None:
    """The same with a patch at v1 that has lines of the first one around its own."""
    twenty = {20: "twenty\n"}
    before = {**BASE, "a.txt": lines(twenty)}
    near = changed(before, "a.txt", lines(twenty | {22: "near\n"}), "Say near")
    series = project.read("patches/lib/v1/series")
    project.write({"patches/lib/v1/near.patch": near})
    project.write({"patches/lib/v1/series": f"{series}near.patch\n"})
    project.run("apply").ok()


def test_an_edit_that_is_between_lines_of_another_patch(
    project: Project, upstream: Upstream
) -> None:
    at_two_pins(project, upstream)
    with_a_near_patch(project)
    edit(project, "lib@v1", "a.txt", "twenty\n", "zwanzig\n")
    project.run("refresh", "lib@v1", "--all-pins").ok()
    assert " zwanzig\n" in project.read("patches/lib/v1/near.patch")
    assert "+zwanzig\n" in project.read("patches/lib/latest/0001-twenty.patch")
    assert project.read("patches/lib/latest/series") == "0001-twenty.patch\n0002-end.patch\n"


def test_edits_that_cannot_be_told_apart_are_carried_one_by_one(
    project: Project, upstream: Upstream
) -> None:
    at_two_pins(project, upstream)
    with_a_near_patch(project)
    before = project.product
    edit(project, "lib@v1", "a.txt", "twenty\n", "zwanzig\n")
    edit(project, "lib@v1", "a.txt", "near\n", "nah\n")
    ran = project.run("refresh", "lib@v1", "--all-pins").ends(ExitCode.FINDING)
    ran.says("lib@v1: 0001-twenty.patch and near.patch changed together")
    ran.says("patchkit undo  brings the edits back")
    project.run("undo").ok()
    assert project.product == before
    assert "nah\n" in (project.checkout("lib@v1") / "a.txt").read_text()


@pytest.mark.parametrize("strip", [0, 2])
def test_edits_of_patches_in_another_layout(
    project: Project, upstream: Upstream, strip: int
) -> None:
    at_two_pins(project, upstream)
    text = project.read("manifests/demo.yaml")
    project.write({"manifests/demo.yaml": text.replace("track:", f"strip: {strip}\n    track:")})
    for path, data in project.files("patches").items():
        old, new = (b"--- a/", b"--- ") if strip == 0 else (b"--- a/", b"--- a/top/")
        side = (b"+++ b/", b"+++ " if strip == 0 else b"+++ b/top/")
        rows = data.replace(old, new).replace(*side).split(b"\n")
        kept = [row for row in rows if not row.startswith((b"diff --git", b"index "))]
        project.write({path: b"\n".join(kept)})
    project.run("apply").ok()
    edit(project, "lib@v1", "a.txt", "twenty\n", "zwanzig\n")
    project.run("refresh", "lib@v1", "--all-pins").ok()
    assert "+zwanzig\n" in project.read("patches/lib/latest/0001-twenty.patch")
    assert "zwanzig\n" in (project.checkout("lib@latest") / "a.txt").read_text()


def test_a_pin_changed_by_hand_is_no_edit(project: Project, upstream: Upstream) -> None:
    text = at_two_pins(project, upstream)
    project.run("apply").ok()
    before = project.files("patches/lib/latest")
    pin = upstream.commit({"a.txt": "a new top\n" + lines({18: "upstream\n"})}, "More")
    project.write({"manifests/demo.yaml": text.replace(upstream.at("v1"), pin)})
    project.run("refresh", "lib@v1", "--all-pins").ok()
    assert project.files("patches/lib/latest") == before
