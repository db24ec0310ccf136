"""The baseline file and the verdict on sites."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.extensions.recipes.residual_sites import (
    Baseline,
    ReviewedArea,
    ReviewedSite,
    baseline_bytes,
    fingerprint,
    known_by,
    load_baseline,
    review_sites,
)
from patchkit.extensions.recipes.sites import Site
from patchkit.manifest.values import Location

TODAY, HERE = date(2026, 11, 21), Location(Path("residual.yml"), 1)


def site(path: str = "a.py", text: str = "'cuda'", within: str = "f", line: int = 1) -> Site:
    return Site("cuda", path, line, 1, line * 100, line * 100 + 5, text, within, None, (0, 0))


def states(sites: list[Site], baseline: Baseline) -> list[str]:
    return [each.state.value for each in review_sites(sites, baseline, TODAY).sites]


def reviewed(count: int = 1, until: date | None = None, **key: str) -> ReviewedSite:
    a = fingerprint(site(**key))  # type: ignore[arg-type]
    about = {"rule": a.rule, "path": a.path, "within": a.within, "text": a.text}
    return ReviewedSite(where=HERE, **about, reason="why not", count=count, until=until)


def test_a_site_is_known_wherever_it_stands_in_its_function() -> None:
    baseline = Baseline((reviewed(),))
    assert states([site(line=90)], baseline) == ["reviewed"]
    assert states([site(text="'cuda' ")], baseline) == ["reviewed"]
    assert states([site(within="g")], baseline) == ["new"]
    assert states([site(path="b.py")], baseline) == ["new"]
    assert states([site(text="'cuda:0'")], baseline) == ["new"]


def test_a_reason_is_over_the_day_after() -> None:
    for until, state in ((TODAY, "reviewed"), (TODAY - timedelta(1), "expired")):
        assert states([site()], Baseline((reviewed(until=until),))) == [state]


def test_areas_are_of_a_rule_and_of_paths() -> None:
    def found(rule: str) -> list[str]:
        area = ReviewedArea(where=HERE, rule=rule, path="tests/**", reason="not run")
        return states([site("tests/x/y.py"), site("a.py")], Baseline((), (area,)))

    assert (found("*"), found("nccl")) == (["reviewed", "new"], ["new", "new"])


def test_entries_for_nothing_are_told() -> None:
    gone = reviewed(path="gone.py")
    area = ReviewedArea(where=HERE, rule="*", path="no/**", reason="not run")
    baseline = Baseline((reviewed(), gone), (area,))
    review = review_sites([site()], baseline, TODAY)
    assert review.unmatched == (gone, area)


def test_a_long_text_is_cut_and_told_apart() -> None:
    one, other = (fingerprint(site(text="x" * 300 + end)) for end in "ab")
    assert one.text.startswith("x" * 100 + "... ")
    assert one != other


_CHARACTERS = "aZ9 _./:*#'\"\\{}[]-,&!|>%@`äλ→"
_WORDS = st.text(_CHARACTERS, max_size=20).map(lambda text: f"a{text}".strip())


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            ReviewedSite,
            where=st.just(HERE),
            rule=_WORDS,
            path=_WORDS,
            within=st.just("") | _WORDS,
            text=_WORDS,
            reason=_WORDS.map(lambda text: " ".join(text.split())),
            count=st.integers(1, 9),
            until=st.none() | st.dates(),
        ),
        max_size=5,
        unique_by=known_by,
    )
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, sites: list[ReviewedSite]
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "residual.yml"
    data = baseline_bytes(Baseline(tuple(sites)))
    path.write_bytes(data)
    found = load_baseline(path.parent, "residual.yml")
    assert baseline_bytes(found) == data
    assert {(known_by(e), e.reason, e.count, e.until) for e in found.sites} == {
        (known_by(e), e.reason, e.count, e.until) for e in sites
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sites: []\n", "version is missing"),
        ("version: 1\nsites: [{rule: a, path: b, text: c}]\n", "reason is missing"),
        (
            "version: 1\nsites: [{rule: a, path: b, text: c, reason: d, until: 2026-11-31}]\n",
            "until",
        ),
        ("version: 1\nareas: [{rule: a, path: ./b, reason: d}]\n", "does not start at the root"),
        ("version: 1\nsights: []\n", "sights is an unknown key"),
    ],
)
def test_what_is_no_baseline(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "residual.yml"
    path.write_text(text)
    with pytest.raises(BadInputError, match=message):
        load_baseline(path.parent, "residual.yml")
