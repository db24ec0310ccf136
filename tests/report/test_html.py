"""The page says what the report says, and no text of others is more than text in it."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchkit.explain.explanation import (
    Cause,
    FileExplanation,
    HunkExplanation,
    Mismatch,
    Origin,
    PatchExplanation,
)
from patchkit.model.finding import Finding, Severity
from patchkit.model.outcome import Preimage, Reason
from patchkit.model.states import PATCH_STATES, state_of
from patchkit.model.text import clean
from patchkit.ops.check_report import CheckReport
from patchkit.ops.ci import CiReport
from patchkit.report.clashes import clash_of
from patchkit.report.findings import drift_outcomes
from patchkit.report.html_page import report_page, timeline_of
from patchkit.templates.environments import page_part
from tests.report.lines import PAGE, STATES, component_drift, drift_report
from tests.support.projects import Project
from tests.support.repos import Upstream

_NASTY = (
    "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)> \" ' & {{ 7*7 }} "
    "\u202e txt \u2028 \x1b[31m \x00 \ufeff \udcff ]]> &lt;"
)
_TEXT = st.text(max_size=40)
_FEW = st.integers(0, 3)


class _Page(HTMLParser):
    """What a browser would make of a page: elements with their attributes, data, text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._script: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._script.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self._script[-1] += data
        else:
            self.text += data

    @property
    def data(self) -> dict[str, dict[str, dict[str, list[object]]]]:
        """What the script is given."""
        found: dict[str, dict[str, dict[str, list[object]]]] = json.loads(self._script[0])
        return found

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """All elements but line breaks, with the names of their attributes."""
        return [(tag, sorted(names)) for tag, names in self.elements if tag != "br"]

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def _page(text: str) -> str:
    component = component_drift({f"{text}.patch": "uuxx"}, ["", text, text], author=text)
    found = Finding(
        Severity.WARNING, text, text, f"x{text}", f"x{text}", (text,), component.tip, text
    )
    component = replace(component, ref=text, manifest=text, name=text)
    component = replace(component, findings=(found,))
    report = drift_report(component, replace(component, tip=None, skipped=text))
    return report_page("patchkit drift", report, drift_outcomes(report), text)


@cache
def _plain_shape() -> list[tuple[str, list[str]]]:
    return _Page(_page("plain")).shape


@pytest.mark.slow
@given(text=_TEXT)
@example(text=_NASTY)
@example(text="x' onfocus=alert(1) autofocus='")
def test_text_of_others_is_text_and_nothing_else(text: str) -> None:
    written = _page(text)
    page, page_bytes = _Page(written), written.encode()  # lone surrogates would fail here

    assert page.shape == _plain_shape()
    links = [each["href"] or "" for each in page.tags("a")]
    assert all(link.startswith(("#component-", PAGE, "https://forge")) for link in links)
    assert clean(text) in page.text
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80[\xaa-\xae]", page_bytes)
    subjects = page.data["components"]["component-1"]["subjects"]
    assert subjects[1] == (clean(text[:160]) or "Change 1")


def test_nothing_is_loaded_and_nothing_but_our_script_may_run() -> None:
    page = _Page(_page(_NASTY))
    for _, attributes in page.elements:
        assert not {"src", "srcset", "action", "style", "poster"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert not page.tags("link")
    (policy,) = [m for m in page.tags("meta") if m.get("http-equiv")]
    assert (policy["content"] or "").startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in (policy["content"] or "")
    assert "@import" not in page_part("page.css")
    assert "url(" not in page_part("page.css")


@given(st.lists(st.text("usaex", min_size=5, max_size=5), min_size=1, max_size=3))
def test_law_each_cell_is_drawn_in_its_state_and_in_no_other(rows: list[str]) -> None:
    patches = {f"{number}.patch": states for number, states in enumerate(rows)}
    timeline = timeline_of(component_drift(patches))
    assert timeline.cells == 5
    for track, states in zip(timeline.tracks, rows, strict=True):
        drawn: dict[int, set[str]] = {}
        for key, path in track.shapes:
            for first, last in re.findall(r"M(\d+) \d+H(\d+)V", path):
                for cell in range(int(first), int(last)):
                    drawn.setdefault(cell, set()).add(key)
        keys = [{_key(letter)} for letter in states]
        assert [drawn[cell] for cell in range(5)] == keys


def _key(letter: str) -> str:
    return state_of(STATES[letter]).key


def test_states_differ_without_colour() -> None:
    assert len({look.bands for look in PATCH_STATES}) == len(PATCH_STATES)
    assert len({look.sign for look in PATCH_STATES}) == len(PATCH_STATES)


def test_months_are_where_they_begin() -> None:
    months = timeline_of(component_drift({"a.patch": "u" * 15})).months
    assert [(month.label, month.at) for month in months] == [
        ("Dec 2025", 0),
        ("Jan 2026", 2),
        ("Feb", 8),
        ("Mar", 12),
    ]
    assert all(month.wide for month in months)
    first, *whole = timeline_of(component_drift({"a.patch": "u" * 40})).months
    assert not first.wide and all(month.wide for month in whole)  # its label has no room


def test_a_date_that_nobody_can_believe_takes_no_month_away() -> None:
    component = component_drift({"a.patch": "u" * 15})
    odd = replace(component.line[3], date="9999-12-31T23:59:59Z")
    old = replace(component.line[10], date="1970-01-01T00:00:00Z")
    line = (*component.line[:3], odd, *component.line[4:10], old, *component.line[11:])
    months = timeline_of(replace(component, line=line)).months
    assert months == timeline_of(component).months


def test_a_clash_side_by_side() -> None:
    mismatch = Mismatch((b"a = old(1)\n", b"b\n"), (7, 8), (b"a = new(1)\n", b"other\n"), 30)
    hunk = HunkExplanation(1, 5, 20, Cause.CHANGED, "x.py", None, (mismatch,))
    file = FileExplanation("x.py", Reason.CONTEXT, Preimage.DIFFERS, 3, "", False, 2, (hunk,), ())
    clash = clash_of(PatchExplanation("p", False, (file,), Origin(0, ())))
    first, second = clash[1].rows
    assert (first.expects.number, first.stands.number) == (7, 30)
    assert (first.expects.text, first.stands.text) == ("a = old(1)", "a = new(1)")
    assert (second.expects.text, second.stands.text) == ("b", "other")
    long = replace(mismatch, expected=(b"x" * 10**6,), expected_lines=(7,))
    clash = clash_of(PatchExplanation("p", False, (_with(file, hunk, long),), Origin(0, ())))
    assert len(clash[1].rows[0].expects.text) < 2000


def _with(file: FileExplanation, hunk: HunkExplanation, mismatch: Mismatch) -> FileExplanation:
    return replace(file, hunks=(replace(hunk, mismatches=(mismatch,)),))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough(scheme: str) -> None:
    """WCAG 2.2 AA: 4.5 to 1 for text, 3 to 1 for what is drawn."""
    light, dark = re.findall(r":root \{(.*?)\n *\}", page_part("page.css"), re.DOTALL)[:2]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", dark))

    def ratio(one: str, other: str) -> float:
        high, low = sorted((_luminance(colours[one]), _luminance(colours[other])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    texts = ["ink", "soft", "link", "good", "bad", "note", "offsets", "merges", "anew", "absorbed"]
    poor = [(t, g, ratio(t, g)) for t in texts for g in ("paper", "card") if ratio(t, g) < 4.5]
    sides = ("expects", "stands")
    poor += [("ink", side, ratio("ink", side)) for side in sides if ratio("ink", side) < 4.5]
    drawn = ["applies", "offsets", "merges", "anew", "absorbed", "conflicts", "empty"]
    poor += [(d, "track", ratio(d, "track")) for d in drawn if ratio(d, "track") < 3]
    assert not poor


@pytest.mark.slow
def test_the_page_of_each_command(project: Project, upstream: Upstream) -> None:
    project.patched(
        upstream,
        {"a.py": "one\ntwo\nthree\n"},
        {"a.py": "one\n2\nthree\n"},
        patch="count.patch",
        subject="Count",
        track="main",
    )
    upstream.commit({"a.py": "one\n<b>zwei</b>\nthree\n"}, "Rework </script> (#7)")

    drift = _Page(project.run("drift", "--format", "html").out)
    assert "1 component, 1 patch, 1 conflicted" in drift.text
    assert "<b>zwei</b>" in drift.text
    assert drift.data["components"]["component-1"]["runs"] == [[[0, 1], [1, 7, ["a.py"]]]]
    project.run("check", "--format", "html", "--output", "out/check.html").ok().says(
        "wrote out/check.html"
    )
    page = _Page((project.root / "out" / "check.html").read_text(encoding="utf-8"))
    assert "1 component, 1 patch" in page.text
    both = _Page(project.run("ci", "--format", "html").out)
    assert "1 component, 1 patch." in both.text
    assert "1 component, 1 patch, 1 conflicted." in both.text
    for each in (drift, page, both):
        levels = [int(tag[1]) for tag, _ in each.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        ids = [names["id"] for _, names in each.elements if "id" in names]
        assert len(ids) == len(set(ids))


def test_without_its_line_a_timeline_knows_the_commits_that_changed_something() -> None:
    component = replace(component_drift({"a.patch": "uuxxs"}), line=())
    page = _Page(report_page("drift", drift_report(component), (), "now"))
    assert page.data["components"]["component-1"]["cells"] == [0, 2, 4]
    whole = component_drift({"a.patch": "u" * 14 + "x"})
    months = timeline_of(replace(whole, line=())).months
    assert [(month.label, month.at) for month in months] == [("Dec 2025", 0), ("Mar", 14)]


@pytest.mark.parametrize(
    ("states", "headline", "order"),
    [
        ("aaux", "4 patches, 1 conflicted, 2 absorbed", "3012"),
        ("uxax", "4 patches, 2 conflicted, 1 absorbed", "1320"),
        ("ua", "2 patches, 1 absorbed", "10"),
        ("us", "2 patches", "10"),
        ("x", "1 patch, 1 conflicted", "0"),
    ],
)
def test_the_headline_counts_states_and_the_worst_patch_stands_first(
    states: str, headline: str, order: str
) -> None:
    component = component_drift({f"{at}.patch": f"u{state}" for at, state in enumerate(states)})
    page = _Page(report_page("drift", drift_report(component), (), ""))
    text = re.sub(r"\s+", " ", page.text)
    assert f" 1 component, {headline} " in text
    table = text.partition("Patches at the tip")[2]
    places = {table.index(f"{at}.patch"): at for at in order}
    assert "".join(places[at] for at in sorted(places)) == order


def test_a_page_of_nothing_says_so() -> None:
    nothing = CiReport(CheckReport(strict=False, components=(), broken=()), drift_report())
    page = _Page(report_page("drift", nothing, (), ""))
    assert "0 components, 0 patches." in page.text
    assert "Verdict" not in page.text
