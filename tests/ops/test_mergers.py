"""A merger beside the engine: asked for what is in conflict, checked, flagged, remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from patchkit.carry.carried import MergeRequest
from patchkit.carry.external import refused
from patchkit.manifest.values import ExternalMerger, Location
from patchkit.model.mail import parse_patch
from patchkit.ops.mergers import merger_of
from patchkit.stack.build import SeriesPatch
from tests.ops.test_resume import Bumping
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import lines, small_patches

# Upstream's side of each conflict, with the patch's sixth line.
GOOD = """\
sed -i -e '/^|||||||/,/^>>>>>>>/d' -e '/^<<<<<<< /d' -e 's/^line 6$/six/' "$PATCHKIT_RESULT"
"""
MERGED = lines({5: "upstream five\n", 6: "six\n", 30: "thirty\n"})


def with_mergers(stack: Bumping, run: str, *files: str, **more: object) -> None:
    """Name a merger in the manifest."""
    path = stack.project.root / "manifests" / "demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["mergers"] = [{"files": list(files) or ["a.txt"], "run": run, **more}]
    path.write_text(yaml.safe_dump(data, sort_keys=False))


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Bumping:
    """A stack of which one.patch and three.patch conflict."""
    stack = Bumping.of(project, upstream, small_patches())
    upstream.commit({"b.txt": lines({10: "X\n"})}, "Say ten (#8)")
    upstream.commit({"a.txt": lines({5: "upstream five\n", 30: "thirty\n"})}, "Say five (#7)")
    return stack


@pytest.fixture
def short(project: Project, upstream: Upstream) -> Bumping:
    """A stack of one.patch, which conflicts."""
    patches = small_patches()
    stack = Bumping.of(project, upstream, {"one.patch": patches["one.patch"]})
    upstream.commit({"a.txt": lines({5: "upstream five\n", 30: "thirty\n"})}, "Say five (#7)")
    return stack


@pytest.mark.slow
def test_a_result_is_flagged_and_remembered(short: Bumping) -> None:
    """And what is remembered stays flagged."""
    with_mergers(short, GOOD, name="sed")
    before = short.project.product
    short.bump("--run").ok().shows("merged by sed", "doubtful")
    first, after = short.patch("one.patch"), short.project.files()
    assert b"+six" in first and b" upstream five" in first
    (kept,) = [path for path in after if path.endswith(".resolution")]
    assert b"\nMerged-By: sed\n" in after[kept]
    short.project.write(before)
    with_mergers(short, "exit 3", name="sed")
    (patch,) = short.bump("--json", "--run").ok().component["patches"]
    assert patch["attention"] == "flagged"
    (file,) = patch["files"]
    assert (file["review"], file["merged_by"]) == (True, "sed")
    assert file["reasons"] == [f"merged by sed, as remembered in {kept}"]
    assert short.patch("one.patch") == first


def test_nothing_runs_unasked(short: Bumping, tmp_path: Path) -> None:
    ran_to = tmp_path / "ran"
    with_mergers(short, f"touch {ran_to}\n{GOOD}", name="sed")
    for more in ((), ("--run", "--no-fuzz")):
        short.bump("--dry-run", *more).ends(3)
        assert not ran_to.exists()
    ran = short.bump("--dry-run")
    assert "sed: was not run; read its command at demo.yaml:" in " ".join(ran.out.split())


@pytest.mark.slow
def test_a_refresh_asks_too_if_it_may(short: Bumping, upstream: Upstream) -> None:
    with_mergers(short, GOOD, name="sed")
    short.project.repin(upstream.at("main"))
    short.run("refresh", "--dry-run").ends(3)
    short.run("refresh", "--run").ok().shows("merged by sed")
    assert (b"+six" in short.patch("one.patch"), short.read("a.txt")) == (True, MERGED)
    short.settled()


def test_what_the_engine_merges_is_not_asked_for(stack: Bumping, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    with_mergers(stack, f'echo "$PATCHKIT_INPUT" >> {asked}; exit 1', "**/*.txt")
    stack.bump("--run", "--dry-run").ends(3)
    # a.txt of one.patch and b.txt of three.patch; two.patch is merged
    assert len(asked.read_text().splitlines()) == 2


@pytest.mark.slow
def test_going_on_does_not_ask_again(stack: Bumping, tmp_path: Path) -> None:
    """What a merger said holds while the rest is resolved, and is recorded at the end."""
    count = tmp_path / "count"
    with_mergers(stack, f"echo x >> {count}\n{GOOD}", name="sed")
    stack.bump("--run").ends(3, "stopped at three.patch")
    assert stack.read("a.txt") == MERGED.replace("line 20\n", "twenty\nand more\n")
    stack.resolve("b.txt", "X and ten\n")
    report = stack.run("continue", "--json").ok().json
    attention = {p["name"]: p["attention"] for p in report["components"][0]["patches"]}
    assert (attention["one.patch"], attention["three.patch"]) == ("flagged", "resolved")
    assert count.read_text() == "x\n"
    kept = [data for path, data in stack.project.files().items() if path.endswith(".resolution")]
    assert [b"Merged-By: sed" in data for data in sorted(kept)].count(True) == 1
    assert len(kept) == 2


def test_a_merger_gets_all_that_is_known(short: Bumping, tmp_path: Path) -> None:
    saved = tmp_path / "seen"
    saved.mkdir()
    with_mergers(
        short,
        f'cp "$PATCHKIT_BASE" "$PATCHKIT_UPSTREAM" "$PATCHKIT_PATCHED" {saved}\n'
        f'cp "$PATCHKIT_INPUT" {saved}\n{GOOD}',
    )
    short.bump("--run", "--dry-run").ok()
    texts = {path.name: path.read_text() for path in saved.iterdir()}
    assert texts["base.txt"] == lines()
    assert texts["upstream.txt"] == lines({5: "upstream five\n", 30: "thirty\n"})
    assert texts["patched.txt"] == lines({5: "five\n", 6: "six\n"})
    told = json.loads(texts["input.json"])
    assert told["patch"] == {"name": "one.patch", "subject": "Patch one", "reason": "For a test."}
    assert told["path"] == "a.txt"
    assert "+five\n" in told["hunks"][0]
    assert [each["subject"] for each in told["upstream_commits"]] == ["Say five (#7)"]
    assert "both sides change the same lines" in told["conflict"][0]


HOSTILE = {
    "hangs": ("sleep 600", "does not end within 1 seconds"),
    "fails": ("echo no idea; exit 7", "exits with 7: no idea"),
    "gives up": ("exit 1", "gave up"),
    "prints without end": ("yes", "is killed by signal"),
    "writes without end": ('yes > "$PATCHKIT_RESULT"', "exits with"),
    "garbage": (
        'head -c 300 /dev/urandom > "$PATCHKIT_RESULT"; printf "\\0" >> "$PATCHKIT_RESULT"',
        "gave a binary file",
    ),
    "large": ('head -c 9000000 /dev/zero > "$PATCHKIT_RESULT"', "left no result: is larger"),
    "deletes all": ('rm -rf "$PWD"', "left no result: "),
    "a folder": ('rm "$PATCHKIT_RESULT"; mkdir "$PATCHKIT_RESULT"', "left no result: "),
    "a link": ('ln -sf /etc/passwd "$PATCHKIT_RESULT"', "left a link in place of a result"),
    "nothing": (":", "left conflict markers, at line 5"),
    "empty": (': > "$PATCHKIT_RESULT"', "lost a line outside of the conflict: line 1"),
    "drops it": ('cp "$PATCHKIT_UPSTREAM" "$PATCHKIT_RESULT"', "the change would be lost"),
    "drops upstream": ('cp "$PATCHKIT_PATCHED" "$PATCHKIT_RESULT"', "lost a line outside"),
    "doubles": (GOOD + 'echo "line 7" >> "$PATCHKIT_RESULT"', "doubled a line: line 7"),
    "no such": ("no-such-merger", "exits with 127"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_merger_leaves_the_conflict(short: Bumping, kind: str) -> None:
    run, said = HOSTILE[kind]
    with_mergers(short, run, name="bad", seconds=1 if kind == "hangs" else 20)
    with short.untouched():
        ran = short.bump("--run", "--dry-run").ends(3)
    assert said in " ".join(ran.out.split())


@pytest.mark.slow
def test_a_merger_that_writes_into_the_project_stops_the_bump(short: Bumping) -> None:
    patch = short.project.root / "patches" / "demo" / "one.patch"
    with_mergers(short, f"{GOOD}echo '# by a merger' >> {patch}")
    lock = short.project.files("manifests")
    ran = short.bump("--run")
    assert ran.code != 0
    ran.says("one.patch")
    assert short.project.files("manifests") == lock


@pytest.mark.slow
def test_a_merger_that_writes_into_the_checkout_loses_nothing(stack: Bumping) -> None:
    note = stack.checkout / "a.txt"
    with_mergers(stack, f"{GOOD}echo 'an edit' >> {note}")
    ran = stack.bump("--run")
    assert ran.code != 0
    assert "an edit" in note.read_text()


def request(base: str, upstream: str, patched: str, *, path: str = "a.py") -> MergeRequest:
    """A conflict of three texts; markers are of no account here."""
    return MergeRequest(path, base.encode(), upstream.encode(), patched.encode(), b"", (), ())


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("def f():\n    return 3\n\n\nx = 1\n", ""),
        ("def f(:\n    return 3\n\n\nx = 1\n", "gave a file that does not parse"),
        ("def f():\n    return 3\n\n\ndef f():\n    return 2\n\n\nx = 1\n", "defines a name twice"),
        ("def f():\n    return 3\n", "lost a line outside of the conflict: x = 1"),
        ("def f():\n    return 3\n\n\nx = 1\nx = 1\n", "doubled a line: x = 1"),
        ("<<<<<<< mine\ndef f():\n    return 3\n\n\nx = 1\n", "left conflict markers, at line 1"),
    ],
)
def test_a_result_passes_every_check(result: str, said: str) -> None:
    base = "def f():\n    return 0\n\n\n"
    sides = base, base.replace("0", "1") + "x = 1\n", base.replace("0", "2")
    found = refused(request(*sides), result.encode())
    assert said in found
    assert bool(found) == bool(said)


def test_the_first_merger_for_a_path_is_asked() -> None:
    where = Location(Path("m.yaml"), 1)
    named = [
        ExternalMerger(("src/**/*.c",), "exit 1", where, "for-c"),
        ExternalMerger(("*.c",), "exit 1", where, "for-others"),
    ]
    merger = merger_of(named, run=False)
    assert merger is not None
    patch = SeriesPatch("x.patch", parse_patch(small_patches()["one.patch"], name="x"))
    asked = [merger(patch, request("", "", "", path=each)) for each in ("src/a.c", "a.c", "a.h")]
    assert [each and each.name for each in asked] == ["for-c", "for-others", None]
