"""bump, its page for a reviewer and drift name the same commit for the same thing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.drift.lines import BASE, Branch, numbered
from tests.support.repos import make_patch

pytestmark = pytest.mark.slow

#: The same three lines over and over.
AGAIN = "".join(f"name {n}\n  run: it\n  with: this\n" for n in range(6))
STEP = "name ours\n  run: it\n  with: this\n"
#: What a.py becomes one commit after the other, and at which of them the patch is taken over.
LINES: dict[str, tuple[int, list[dict[str, str]]]] = {
    "gone on beside it": (0, [{"l6": "ours"}, {"l6": "ours", "l9": "x"}]),
    "taken back and again": (2, [{"l6": "ours"}, {}, {"l6": "ours"}, {"l6": "ours", "l20": "x"}]),
    "conflict before": (1, [{"l6": "theirs"}, {"l6": "ours"}]),
}


def _by_two_commits(branch: Branch) -> str:
    both = {"a.py": numbered(l6="ours"), "b.py": numbered(l6="ours")}
    branch.patches = {"ours.patch": make_patch({"a.py": BASE, "b.py": BASE}, both)}
    branch.upstream.commit({"b.py": numbered(l6="ours")}, "Take half of it over")
    took = branch.becomes("Take the other half over", l6="ours")
    branch.upstream.commit({"b.py": numbered(l6="ours", l20="x")}, "Go on elsewhere")
    return took


def _merged(branch: Branch) -> str:
    upstream, parents = branch.upstream, (branch.pin,)
    took = upstream.commit({"a.py": numbered(l6="ours")}, "Take it", branch="side", parents=parents)
    main = branch.becomes("Go on elsewhere", l20="x")
    upstream.commit({"a.py": numbered(l6="ours", l20="x")}, "Merge side", parents=(main, took))
    return took


def _moved(branch: Branch) -> str:
    took = branch.becomes("Take it over", l6="ours")
    branch.upstream.commit({"a.py": None, "lib/a.py": numbered(l6="ours")}, "Move the file")
    return took


def _repeated_lines(branch: Branch) -> str:
    """A second copy of the lines would fit; a file that the patch adds is changed later."""
    branch.pin = branch.upstream.commit({"steps.yml": AGAIN})
    added = {"steps.yml": AGAIN + STEP, "ours.py": numbered(9)}
    patch = make_patch({"steps.yml": AGAIN}, added, subject="Add a step of ours")
    branch.patches = {"ours.patch": patch}
    took = branch.upstream.commit(added, "Add a step of ours")
    branch.upstream.commit({"ours.py": numbered(9, l3="x")}, "Rework the file")
    return took


def _among_trivial_lines(branch: Branch) -> str:
    """The lines that a hunk adds come one by one, and most of them again and again."""
    again = 'if [ -n "$1" ]; then\nfi\n'
    ours = numbered(l6='if [ -n "$1" ]; then\n  measure "$1"\nfi')
    branch.patches = {"ours.patch": make_patch({"a.sh": BASE}, {"a.sh": ours})}
    branch.pin, _, took, _ = (
        branch.upstream.commit({"a.sh": text}, f"Have {len(text)} bytes")
        for text in (BASE, BASE + again, ours + again, ours + again + again)
    )
    return took


def _reworked(branch: Branch) -> str:
    """Upstream's commit has the patch's own subject."""
    took = branch.becomes("Change a.py", l6="ours")
    branch.becomes("Near", l6="ours", l7="x")
    branch.becomes("Rework it", l6="reworked", l7="x")
    return took


def _ids(text: str) -> set[str]:
    return {each[:10] for each in re.findall(r"\b[0-9a-f]{10,40}\b", text)}


@pytest.mark.parametrize("name", LINES)
def test_one_commit_took_it(branch: Branch, name: str) -> None:
    at, versions = LINES[name]
    commits = [branch.becomes(f"Step {n}", **changed) for n, changed in enumerate(versions)]
    _all_name(branch, commits[at])


@pytest.mark.parametrize(
    "case", [_by_two_commits, _merged, _moved, _repeated_lines, _among_trivial_lines, _reworked]
)
def test_one_commit_took_what_is_more(branch: Branch, case: Callable[[Branch], str]) -> None:
    _all_name(branch, case(branch))


def _all_name(branch: Branch, took: str) -> None:
    project, pin = branch.project, branch.pin
    project.component("demo", branch.upstream, pin, branch.patches, track="main")
    (found,) = project.run("drift", "--json").json["components"][0]["patches"]
    bump = ("bump", "demo", "-n", "--to", "main")
    (done,) = project.run(*bump, "--json").json["components"][0]["patches"]

    assert found["status"] == done["status"] == "absorbed"
    assert found["absorbed_by"]["commit"] == found["since"]["commit"] == took
    named = {each["absorbed_by"].split()[0] for each in done["files"]}
    assert took[:10] in named
    for file in done["files"]:
        assert _ids(" ".join(file["reasons"])) <= {file["absorbed_by"][:10]}
    project.run(*bump, "-o", "body.md")
    assert named <= _ids(project.read("body.md"))
    tip = str(branch.upstream.resolve("refs/heads/main"))
    assert _ids(project.run(*bump).out) - {pin[:10], tip[:10]} <= named
    assert found["forecast"]["fate"] == done["fate"]
    assert found["fate_by"]["commit"][:10] in named


@pytest.mark.parametrize("merged", [False, True])
def test_one_commit_broke_it(branch: Branch, *, merged: bool) -> None:
    project, upstream, pin = branch.project, branch.upstream, branch.pin
    side, broken = "side" if merged else "main", numbered(l6="their line", l20="x")
    upstream.commit({"a.py": numbered(l20="x")}, "Elsewhere", branch=side, parents=(pin,))
    broke = upstream.commit({"a.py": broken}, "Break", branch=side)
    if merged:
        main = upstream.commit({"b.py": "1\n"}, parents=(pin,))
        upstream.commit({"a.py": broken}, "Merge side", parents=(main, broke))
    branch.becomes("Elsewhere again", l6="their line", l20="y")
    project.component("demo", upstream, pin, branch.patches, track="main")

    (found,) = project.run("drift", "--json").json["components"][0]["patches"]
    bump = ("bump", "demo", "-n", "--to", "main")

    assert found["since"]["commit"] == found["broken_by"]["commit"] == broke
    assert f"({broke[:10]} Break)" in project.run(*bump).out
    project.run(*bump, "-o", "body.md")
    assert broke[:10] in _ids(project.read("body.md"))
