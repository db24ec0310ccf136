"""The review of a bump: old patch beside new one, what upstream did, what is left to do."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from patchkit.disk.files import JOURNAL
from patchkit.errors import Problem
from patchkit.report.markdown import problem_rows
from patchkit.report.review_page import beside
from tests.support.browser import open_page
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.workspace.killing import killed_at

_BASE = "".join(f"line {number}\n" for number in range(1, 41))
#: What a summary says of the first patch.
_MERGED = "- [ ] `merged.patch` Say ten\n  - `a`: merged, look"
_RESOLVED = "### Resolved (1)\n\n- [ ] `merged.patch` Say ten"
_NASTY = "</style><script>alert(1)</script><img src=x> `a` @team #12 | {{ 7*7 }}"


def _with(**lines: str) -> str:
    text = _BASE
    for name, new in lines.items():
        text = text.replace(f"line {name[1:]}\n", f"{new}\n")
    return text


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


class Review(Struct):
    """A project whose upstream moved on: to `new`, and to `broken`, which the first patch fails."""

    project: Project
    new: str
    broken: str

    def bump(self, *words: str) -> Ran:
        return self.project.run("bump", "demo", "--to", self.new, *words)

    def resolve(self, *words: str) -> Ran:
        """Stop at the conflict of merged.patch, and resolve it; what the bump said."""
        ran = self.project.run("bump", "demo", "--to", self.broken, *words).ends(3)
        text = _with(l10="zehn, ten", l11="line eleven")
        (self.project.checkout("demo") / "a").write_text(text)
        return ran

    def read(self, name: str) -> str:
        return (self.project.root / name).read_text()


@pytest.fixture
def review(project: Project, upstream: Upstream) -> Review:
    """Three patches: one is merged, one absorbed, one moves; and a commit that breaks the first."""
    patches = {
        "merged.patch": make_patch({"a": _BASE}, {"a": _with(l10="ten")}, subject="Say ten"),
        "absorbed.patch": make_patch({"b": _BASE}, {"b": _with(l5="five")}, subject="Say five"),
        "moved.patch": make_patch({"c": _BASE}, {"c": _with(l30="thirty")}, subject="Say thirty"),
    }
    project.component("demo", upstream, {"a": _BASE, "b": _BASE, "c": _BASE}, patches)
    project.prepare("apply").ok()
    upstream.commit({"b": _with(l5="five")}, "Take five (#5)")
    new = upstream.commit(
        {"a": _with(l10="line 10\nline eleven"), "c": f"first\n{_BASE}"}, f"Eleven {_NASTY}"
    )
    broken = upstream.commit({"a": _with(l10="zehn", l11="line eleven")}, "Zehn")
    return Review(project, new, broken)


@pytest.mark.slow
def test_a_page_has_all_that_a_reviewer_needs(review: Review) -> None:
    review.bump("--output", "page.html").ok()
    text = review.read("page.html")
    page = _Page(text)
    for words in ("merged.patch", "Say ten", "look", "Old patch", "New patch"):
        assert words in page.text
    assert "line eleven" in page.text, "upstream's hunk"
    flat = " ".join(page.text.split())
    assert f"{review.new[:10]} 2023-11-14 Ann Author: Eleven {_NASTY}" in flat
    assert re.search(r"absorbed by\s+[0-9a-f]{10} Take five \(#5\)", page.text)
    assert "Check: 2 patches" in page.text
    assert not [tag for tag, _ in page.tags if tag in ("script", "img", "link")]
    assert not [names for _, names in page.tags if {"src", "style", "onclick"} & names.keys()]
    assert str(review.project.root) not in text
    opened = [names.get("id") for tag, names in page.tags if tag == "details" and "open" in names]
    assert len(opened) == 1, "of the rest nobody need read a line"
    assert page.text.index("Old patch") < page.text.index("Upstream in"), "the patch comes first"
    assert "✓ Bump" not in flat, "one is to be read"


@pytest.mark.slow
def test_a_page_ticks_off_only_what_nobody_has_to_read(review: Review) -> None:
    review.project.run("drop", "merged").ok()
    review.bump("-o", "plain.html").ok()
    assert "<title>✓ Bump demo" in review.read("plain.html")
    for _ in range(2):
        review.project.run("undo").ok()
    review.resolve()
    review.project.run("continue").ok()
    review.project.run("bump", "-o", "by-hand.html").ok()
    assert "<title>! Bump demo" in review.read("by-hand.html")


@pytest.mark.slow
def test_a_page_counts_what_check_counts(review: Review) -> None:
    """That a message gives no reason counts, that it has no Upstream-Status does not."""
    review.project.write({"patches/demo/left.patch": b"not listed"})
    review.bump("-o", "page.html").ok()
    page = _Page(review.read("page.html"))
    told = re.search(r"Check: (2 patches apply, .*)", page.text)
    assert told is not None
    review.project.run("check").ok().shows(told[1])
    levels = [names["class"] for _, names in page.tags if "level" in (names.get("class") or "")]
    assert told[1].endswith(f", {len(levels)} warnings")


@pytest.mark.slow
def test_the_last_bump_is_reviewed_later(review: Review) -> None:
    """Also when another one failed since."""
    review.project.run("bump", "-o", "page.html").ends(1)
    review.bump().ok()
    review.project.run("bump", "-o", "body.md").ok()
    text = review.read("body.md")
    with review.project.untouched():
        assert _MERGED in text
        assert f"- upstream, `a`: `{review.new[:10]}` 2023-11-14 Ann Author: Eleven" in text
        assert "<details><summary>At other lines (1)</summary>" in text
        journal = review.project.root / JOURNAL
        journal.mkdir()  # nothing can be written
        review.project.run("bump", "demo", "--to", f"{review.new}^").ends(5)
        journal.rmdir()
    review.project.run("bump", "--output", "later.md").ok()
    assert review.read("later.md") == text
    review.project.run("undo").ok()
    review.project.run("bump", "-o", "page.html").ends(1)


@pytest.mark.slow
@pytest.mark.parametrize("point", [1, 2, 6])
def test_a_bump_killed_behind_its_commit_point_is_reviewed_when_run_again(
    review: Review, point: int
) -> None:
    """What was done is recorded before the pin moves: no page says that no patch was carried."""
    before = review.read("manifests/demo.yaml")
    assert killed_at(
        point,
        lambda: review.bump("-o", "page.md"),
        once=lambda: review.read("manifests/demo.yaml") != before,
    )
    assert not (review.project.root / "page.md").exists()
    review.bump("-o", "page.md").ok()
    assert _MERGED in review.read("page.md")


@pytest.mark.slow
def test_a_continue_killed_behind_its_commit_point_tells_all_when_run_again(
    review: Review,
) -> None:
    review.resolve()
    before = review.read("manifests/demo.yaml")
    assert killed_at(
        1,
        lambda: review.project.run("continue"),
        once=lambda: review.read("manifests/demo.yaml") != before,
    )
    review.project.run("continue").ok()
    review.project.run("bump", "-o", "body.md").ok()
    assert _RESOLVED in review.read("body.md")


@pytest.mark.slow
def test_what_the_check_cannot_read_is_no_finding_of_a_page(review: Review, tmp_path: Path) -> None:
    """The component replaces code in another one, which is not in the cache."""
    project = review.project
    other = Upstream.create(tmp_path / "other.git")
    project.component("other", other, {"core.py": "def scale(): ...\n"})
    rule = {"id": "r", "language": "python", "rule": {"pattern": "$_.replace($TARGET, $$$)"}}
    rules = {"version": 1, "description": "replaces something", "rules": [rule]}
    project.write({"patches/calls.rules.yml": yaml.safe_dump(rules)})
    path = project.root / "manifests" / "demo.yaml"
    data = yaml.safe_load(path.read_text())
    declared = {"target": "other", "rule": "patches/calls.rules.yml", "packages": ["core"]}
    data["components"]["demo"]["overrides"] = [declared]
    path.write_text(yaml.safe_dump(data))
    review.bump().ok()
    page = ("bump", "demo", "-o", "page.html")
    project.run(*page, "--offline").ends(5, "other")
    assert not (project.root / "page.html").exists()
    project.run(*page).ok()
    assert (project.root / "page.html").exists()


@pytest.mark.slow
def test_what_is_left_to_do_and_what_is_done_then(review: Review) -> None:
    """No path of this machine is named; going on reports as a bump does."""
    review.resolve("-o", "left.md")
    left = review.read("left.md")
    assert "### Left to do\n\n- [ ] resolve merged.patch in a: " in left
    assert "### In conflict (1)\n\n- [ ] `merged.patch` Say ten\n" in left
    assert "Say five" in left
    assert str(review.project.root) not in left
    done = review.project.run("continue", "--diff").ok()
    review.project.run("bump", "-o", "page.html", "--output", "body.md").ok()
    done.shows("resolved", "--- old/merged.patch\n+++ new/merged.patch\n")
    page, body = (review.read(name) for name in ("page.html", "body.md"))
    assert "Check: 2 patches" in _Page(page).text
    assert "### Check: 2 patches" in body
    assert _RESOLVED in body
    assert "Left to do" not in body


def test_what_is_said_twice_is_one_row() -> None:
    broken = [Problem("breaks a call", f"demo src/a.py:{line}", "since 1a") for line in (7, 31, 7)]
    assert list(problem_rows([*broken, Problem("no place")])) == [
        "demo src/a.py:7: breaks a call",
        "demo src/a.py:31: breaks a call",
        "no place",
    ]


def test_a_dry_run_shows_what_a_confidence_stands_for(review: Review) -> None:
    ran = review.bump("--dry-run", "--diff", "-o", "page.html").ok()
    assert "\n+ line eleven\n" in ran.out.replace("\x1b", "")
    assert "moved.patch\n---" not in ran.out, "line numbers are no difference to read"
    page = review.read("page.html")
    assert "a dry run: nothing was written" in page
    assert "Check:" not in page


@pytest.mark.slow
def test_what_a_word_was_worth_is_said_on_demand(review: Review) -> None:
    assert "whose change people kept" not in review.bump("--dry-run").ok().err
    ran = review.bump("--dry-run", "--explain").ok().shows("  ~ merged  a, look")
    told = [line.partition(":")[0] for line in ran.err.splitlines() if "people kept" in line]
    assert told == ["look"]


@pytest.mark.slow
def test_who_shares_the_series_is_named(review: Review, upstream: Upstream) -> None:
    pin = upstream.git("rev-list", "--max-parents=0", "main").decode().strip()
    series = [{"series": "patches/demo/series"}]
    review.project.component("demo", upstream, pin, series, manifest="other")
    review.project.prepare("apply", "-m", "other", "--workspace", "elsewhere").ok()
    review.bump("-m", "demo", "--dry-run", "-o", "body.md")
    assert "The series is also that of demo of other.yaml." in review.read("body.md")


def test_a_file_whose_ending_names_no_form(review: Review) -> None:
    with review.project.untouched():
        review.bump("-o", "page.txt").ends(2, "ends neither in .html nor in .md")


def test_lines_that_give_way_stand_beside_those_that_come() -> None:
    change = b"--- old/p\n+++ new/p\n@@ -1,3 +1,4 @@\n one\n-two\n+zwei\n+drei\n@@ -9 +9 @@\n ten\n"
    rows = list(beside(change))
    words = [(row.expects.text, row.stands.text) for row in rows]
    assert words == [("one", "one"), ("two", "zwei"), ("", "drei"), ("ten", "ten")]
    assert [row.gap for row in rows] == [False, False, False, True]
    assert rows[2].expects.number is None


@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 820, 1500])
def test_it_fits_every_width(review: Review, tmp_path: Path, width: int) -> None:
    review.bump("-o", "page.html").ok()
    dom = open_page(review.read("page.html"), tmp_path, width=width)
    assert dom["inner"] == width
    assert dom["scroll"] <= width + 1, dom
    assert (dom["wide"], dom["low"]) == ([], 0)


@pytest.mark.slow
def test_of_a_file_that_upstream_emptied_only_what_is_near_is_shown(
    project: Project, upstream: Upstream
) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 301))
    patched = text.replace("line 150\n", "ours 150\n")
    patches = {"mine.patch": make_patch({"a": text}, {"a": patched}, subject="Ours")}
    project.component("demo", upstream, {"a": text}, patches)
    late = "".join(f"line {number}\n" for number in range(1, 261))
    far = upstream.commit({"a": late}, "Drop the end")
    new = upstream.commit({"a": "line 1\n" + "new\n" * 200}, "Empty it")
    files = ("-o", "body.md", "-o", "page.html")
    project.run("bump", "demo", "--to", new, "--dry-run", *files)
    body = project.read("body.md")
    shown = [f"-line {number}\n" in body for number in (120, 150, 210)]
    assert shown == [False, True, False]
    assert (new[:10] in body, far[:10] in body) == (True, False)
    assert "more lines of these hunks" in project.read("page.html")


def test_a_review_that_can_name_no_commit_says_so(review: Review) -> None:
    """It is a review all the same: exit code 0, and a warning beside the words on the page."""
    review.bump().ok()
    for folder in review.project.root.parent.rglob("histories"):
        folder.rename(folder.with_name("gone"))
    ran = review.project.run("bump", "-o", "body.md", "--offline").ok()
    assert ran.err.count("warning: demo: the review names no upstream commits: ") == 1
    assert "upstream, `a`" not in review.read("body.md"), "nor is it asked who did it"
    review.project.run("undo").ok()
    ran = review.bump("-o", "body.md", "--offline").ok()
    assert ran.err.count("warning: demo: ") == 1, "one cause, one message"


def test_a_file_of_the_patches_own_is_not_gone_upstream(
    project: Project, upstream: Upstream
) -> None:
    """Of one that an earlier patch adds, the page said that upstream had deleted it."""
    both = {"a": _with(l10="ten"), "ours": "2\n"}
    patches = {
        "add.patch": make_patch({}, {"ours": "1\n"}),
        "edit.patch": make_patch({"a": _BASE, "ours": "1\n"}, both),
    }
    project.component("demo", upstream, {"a": _BASE}, patches)
    project.prepare("apply").ok()
    new = upstream.commit({"a": _with(l10="zehn")}, "Zehn")
    project.run("bump", "demo", "--to", new, "--dry-run", "-o", "page.html")
    page = project.read("page.html")
    assert "Upstream in <code>a</code></h4>" in page
    assert "Upstream in <code>ours</code>" not in page
