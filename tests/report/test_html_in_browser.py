"""The page in a real browser: each commit is reached by mouse and by keys, on any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.report.html_page import report_page
from tests.report.lines import PAGE, component_drift, drift_report, landed
from tests.support.browser import look_at, print_page

pytestmark = pytest.mark.slow

_SUBJECTS = [
    f"Change {number} </script><img src=x onerror=document.title=1>" for number in range(8)
]
_PATCHES = {"one.patch": "uusxxuux", "a-patch-with-a-rather-long-name-on-npu.patch": "uuuuuuuu"}

_WALK = """
const tracks = [...document.querySelectorAll('.track')];
const tip = document.getElementById('tip');
const press = (track, key, shiftKey) =>
    track.dispatchEvent(new KeyboardEvent('keydown', {key, shiftKey, bubbles: true}));
const [one, two] = tracks;
const there = () => document.querySelector('.here').href;
press(one, 'Home');
const byKeys = [there()];
for (let n = 0; n < 8; n += 1) { press(one, 'ArrowRight'); byKeys.push(there()); }
press(one, 'Home');
const runs = [];
for (let n = 0; n < 5; n += 1) {
    press(one, 'ArrowRight', true);
    runs.push(Number(one.getAttribute('aria-valuenow')));
}
press(one, 'ArrowLeft', true);
const words = one.getAttribute('aria-valuetext');
let opened = '';
document.addEventListener('click', e => { opened = e.target.href; e.preventDefault(); });
press(one, 'Enter');
press(one, 'ArrowDown');
const below = document.activeElement === two && there();
press(two, 'Escape');
const closed = tip.hidden;
const box = two.getBoundingClientRect();
const byMouse = [];
for (let n = 0; n < 8; n += 1) {
    const clientX = box.left + box.width * (n + 0.5) / 8;
    two.dispatchEvent(new PointerEvent('pointermove', {clientX, pointerType: 'mouse'}));
    byMouse.push(there());
}
const hovered = tip.textContent;
two.dispatchEvent(new PointerEvent('pointerdown', {pointerType: 'touch'}));
const tap = new MouseEvent('click', {clientX: box.left + box.width * 2.5 / 8, cancelable: true});
two.dispatchEvent(tap);
const tapped = [tap.defaultPrevented, tip.querySelector('a').href];
return {byKeys, runs, words, opened, below, closed, byMouse, tip: hovered, tapped,
    role: one.getAttribute('role'), tabs: tracks.map(each => each.tabIndex),
    images: document.querySelectorAll('img').length, title: document.title};
"""

_LAYOUT = """
for (const each of document.querySelectorAll('details')) each.open = true;
const wide = [...document.querySelectorAll('body *')].filter(each =>
    each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('.scroll, .wide-table'));
const track = document.querySelector('.track');
const {left, width} = track.getBoundingClientRect();
track.dispatchEvent(new PointerEvent('pointermove', {clientX: left + width * 1234.5 / 2000 + 1}));
const met = track.getAttribute('aria-valuetext').slice(0, 26);
const bar = getComputedStyle(document.querySelector('.s-conflicts')).fill;
document.querySelector('button.in').click();
const [rows, scroll] = ['.rows', '.scroll'].map(each => document.querySelector(each).offsetWidth);
return {inner: innerWidth, width: document.documentElement.scrollWidth, zoomed: rows > scroll, met,
    wide: wide.map(e => e.className), paper: getComputedStyle(document.body).backgroundColor, bar,
    months: [...document.querySelectorAll('.names text')].filter(
        e => getComputedStyle(e).display !== 'none').length};
"""


def _page() -> str:
    return report_page(
        "patchkit drift", drift_report(component_drift(_PATCHES, _SUBJECTS)), (), "now"
    )


def test_every_commit_is_reached(tmp_path: Path) -> None:
    found = look_at(_page(), tmp_path, _WALK)
    links = [PAGE + landed(number).commit for number in range(8)]
    assert found["byKeys"] == [*links, links[-1]]
    assert found["byMouse"] == links
    assert found["runs"] == [2, 3, 5, 7, 7]
    assert (found["role"], found["tabs"]) == ("slider", [-1, 0])
    words = f"unchanged; commit 5 of 7; 2026-01-19, {landed(5).commit[:10]}, {_SUBJECTS[5]}"
    assert found["words"] == words
    assert (found["opened"], found["below"], found["closed"]) == (links[5], links[5], True)
    assert found["tapped"] == [True, links[2]]
    assert found["tip"].startswith(f"✓ unchanged for 8 commits{_SUBJECTS[7]}")
    assert (found["images"], found["title"]) == (0, "✗ patchkit drift")


def test_it_fits_a_phone_and_a_desk_by_day_and_night(tmp_path: Path) -> None:
    patches = {"one.patch": "u" * 1234 + "x" + "s" * 765, "two.patch": "s" * 2000}
    page = report_page("patchkit drift", drift_report(component_drift(patches)), (), "now")
    phone = look_at(page, tmp_path, _LAYOUT, width=375)
    desk = look_at(page, tmp_path, _LAYOUT, width=1280, dark=True)
    assert (phone["wide"], desk["wide"]) == ([], [])
    assert phone["width"] <= phone["inner"] == 375
    assert desk["width"] <= desk["inner"]
    assert phone["months"] < desk["months"]
    assert phone["zoomed"]
    assert desk["met"] == "conflicted; commit 1234 of"  # though it is half a pixel wide
    assert (phone["paper"], desk["paper"]) == ("rgb(251, 250, 247)", "rgb(20, 23, 27)")
    assert phone["bar"] != desk["bar"]


def test_it_prints(tmp_path: Path) -> None:
    assert print_page(_page(), tmp_path).startswith(b"%PDF-")
