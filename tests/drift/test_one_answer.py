"""bump, its page for a reviewer and drift name the same commit for the same thing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.drift.lines import edit, numbered
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

BASE = numbered(30)
#: The same three lines over and over.
AGAIN = "".join(f"name {n}\n  run: it\n  with: this\n" for n in range(6))
STEP = "name ours\n  run: it\n  with: this\n"


def _absorbed(upstream: Upstream) -> tuple[str, bytes, str]:
    pin = upstream.commit({"a.py": BASE, "b.py": BASE})
    took = upstream.commit({"a.py": numbered(30, l6="ours")}, "Take it over")
    upstream.commit({"a.py": numbered(30, l6="ours", l9="x")}, "Go on beside it")
    return pin, edit("a.py", BASE, l6="ours"), took


def _by_two_commits(upstream: Upstream) -> tuple[str, bytes, str]:
    pin = upstream.commit({"a.py": BASE, "b.py": BASE})
    upstream.commit({"b.py": numbered(30, l6="ours")}, "Take half of it over")
    took = upstream.commit({"a.py": numbered(30, l6="ours")}, "Take the other half over")
    upstream.commit({"b.py": numbered(30, l6="ours", l20="x")}, "Go on elsewhere")
    both = {"a.py": numbered(30, l6="ours"), "b.py": numbered(30, l6="ours")}
    return pin, make_patch({"a.py": BASE, "b.py": BASE}, both), took


def _taken_back_and_again(upstream: Upstream) -> tuple[str, bytes, str]:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(30, l6="ours")}, "Take it over")
    upstream.commit({"a.py": BASE}, "Not like this")
    took = upstream.commit({"a.py": numbered(30, l6="ours")}, "Like this after all")
    upstream.commit({"a.py": numbered(30, l6="ours", l20="x")}, "Go on elsewhere")
    return pin, edit("a.py", BASE, l6="ours"), took


def _merged(upstream: Upstream) -> tuple[str, bytes, str]:
    pin = upstream.commit({"a.py": BASE})
    took = upstream.commit(
        {"a.py": numbered(30, l6="ours")}, "Take it over", branch="side", parents=(pin,)
    )
    main = upstream.commit({"a.py": numbered(30, l20="x")}, "Go on elsewhere", parents=(pin,))
    text = numbered(30, l6="ours", l20="x")
    upstream.commit({"a.py": text}, "Merge side", parents=(main, took))
    return pin, edit("a.py", BASE, l6="ours"), took


def _moved(upstream: Upstream) -> tuple[str, bytes, str]:
    pin = upstream.commit({"a.py": BASE})
    took = upstream.commit({"a.py": numbered(30, l6="ours")}, "Take it over")
    upstream.commit({"a.py": None, "lib/a.py": numbered(30, l6="ours")}, "Move the file")
    return pin, edit("a.py", BASE, l6="ours"), took


def _conflict_before(upstream: Upstream) -> tuple[str, bytes, str]:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(30, l6="theirs")}, "Break it")
    took = upstream.commit({"a.py": numbered(30, l6="ours")}, "Take it over")
    return pin, edit("a.py", BASE, l6="ours"), took


def _repeated_lines(upstream: Upstream) -> tuple[str, bytes, str]:
    """A second copy of the lines would fit; a file that the patch adds is changed later."""
    subject = "Add a step of ours"
    pin = upstream.commit({"steps.yml": AGAIN})
    added = {"steps.yml": AGAIN + STEP, "ours.py": numbered(9)}
    took = upstream.commit(added, subject)
    upstream.commit({"ours.py": numbered(9, l3="x")}, "Rework the file")
    return pin, make_patch({"steps.yml": AGAIN}, added, subject=subject), took


def _among_trivial_lines(upstream: Upstream) -> tuple[str, bytes, str]:
    """The lines that a hunk adds come one by one, and most of them again and again."""
    again = 'if [ -n "$1" ]; then\nfi\n'
    pin = upstream.commit({"a.sh": BASE})
    upstream.commit({"a.sh": BASE + again}, "Before")
    ours = numbered(30, l6='if [ -n "$1" ]; then\n  measure "$1"\nfi')
    took = upstream.commit({"a.sh": ours + again}, "Measure")
    upstream.commit({"a.sh": ours + again + again}, "Afterwards")
    return pin, make_patch({"a.sh": BASE}, {"a.sh": ours}), took


def _reworked(upstream: Upstream) -> tuple[str, bytes, str]:
    subject = "Say ours in the sixth"
    pin = upstream.commit({"a.py": BASE})
    took = upstream.commit({"a.py": numbered(30, l6="ours")}, subject)
    upstream.commit({"a.py": numbered(30, l6="ours", l7="x")}, "Near")
    upstream.commit({"a.py": numbered(30, l6="reworked", l7="x")}, "Rework it")
    return pin, make_patch({"a.py": BASE}, {"a.py": numbered(30, l6="ours")}, subject=subject), took


Case = Callable[[Upstream], tuple[str, bytes, str]]


def _ids(text: str) -> set[str]:
    return {each[:10] for each in re.findall(r"\b[0-9a-f]{10,40}\b", text)}


@pytest.mark.parametrize(
    "case",
    [
        _absorbed,
        _by_two_commits,
        _taken_back_and_again,
        _merged,
        _moved,
        _conflict_before,
        _repeated_lines,
        _among_trivial_lines,
        _reworked,
    ],
)
def test_one_commit_took_it(project: Project, upstream: Upstream, case: Case) -> None:
    pin, patch, took = case(upstream)
    project.component("demo", upstream, pin, {"ours.patch": patch}, track="main")

    drift = json.loads(project.run("drift", "--json").out)
    (found,) = drift["components"][0]["patches"]
    bump = json.loads(project.run("bump", "demo", "-n", "--to", "main", "--json").out)
    (done,) = bump["components"][0]["patches"]
    form = ("--format", "markdown")
    review = project.run("bump", "demo", "-n", "--to", "main", *form)
    text = project.run("bump", "demo", "-n", "--to", "main").out

    assert found["status"] == done["status"] == "absorbed"
    assert found["absorbed_by"]["commit"] == found["since"]["commit"] == took
    named = {each["absorbed_by"].split()[0] for each in done["files"]}
    assert took[:10] in named
    for file in done["files"]:
        assert _ids(" ".join(file["reasons"])) <= {file["absorbed_by"][:10]}
    assert named <= _ids(review.out)
    assert _ids(text) - {pin[:10], str(upstream.resolve("main"))[:10]} <= named
    assert {each["by"]["commit"][:10] for each in found["absorbed"]} <= named


@pytest.mark.parametrize("merged", [False, True])
def test_one_commit_broke_it(project: Project, upstream: Upstream, *, merged: bool) -> None:
    pin = upstream.commit({"a.py": BASE})
    side = "side" if merged else "main"
    upstream.commit({"a.py": numbered(30, l20="x")}, "Elsewhere", branch=side, parents=(pin,))
    broke = upstream.commit({"a.py": numbered(30, l6="their line", l20="x")}, "Break", branch=side)
    if merged:
        main = upstream.commit({"b.py": "1\n"}, parents=(pin,))
        text = numbered(30, l6="their line", l20="x")
        upstream.commit({"a.py": text}, "Merge side", parents=(main, broke))
    upstream.commit({"a.py": numbered(30, l6="their line", l20="y")}, "Elsewhere again")
    patch = edit("a.py", BASE, l6="ours")
    project.component("demo", upstream, pin, {"ours.patch": patch}, track="main")

    drift = json.loads(project.run("drift", "--json").out)
    (found,) = drift["components"][0]["patches"]
    text = project.run("bump", "demo", "-n", "--to", "main").out
    review = ("--format", "markdown")
    page = project.run("bump", "demo", "-n", "--to", "main", *review).out

    assert found["since"]["commit"] == found["broken_by"]["commit"] == broke
    assert f"({broke[:10]} Break)" in text
    assert broke[:10] in _ids(page)
