"""`log --upstream`: what patches' headers say of upstream, and what became of them there."""

from __future__ import annotations

from typing import Any

import pytest

from patchkit.model.objects import CommitId
from patchkit.model.upstream_intent import intent_of, requests_named, requests_of
from tests.support.projects import Project
from tests.support.repos import Content, Upstream, make_patch
from tests.support.stacked import lines

pytestmark = pytest.mark.slow

_PR = "https://git.example.org/demo/pull/"


@pytest.mark.parametrize(
    ("message", "intent", "said", "requests"),
    [
        ("Fix\n\nUpstream-Status: Pending", "send", "Pending", ()),
        (f"Fix\n\nUpstream-Status: Submitted [{_PR}7]", "sent", f"Submitted [{_PR}7]", (7,)),
        ("Fix\n\nUpstream-Status: Inappropriate [ours]", "never", "Inappropriate [ours]", ()),
        ("Fix\n\nUpstream-Status: Backport [a1b2c3d4]", "taken", "Backport [a1b2c3d4]", ()),
        ("Fix\n\nupstream-status: denied", "never", "denied", ()),
        ("Fix\n\nForwarded: not-needed", "never", "not-needed", ()),
        ("Fix\n\nForwarded: no", "send", "no", ()),
        (
            "Fix\n\nForwarded: https://bugs.example.org/12",
            "sent",
            "https://bugs.example.org/12",
            (),
        ),
        ("Fix\n\nOrigin: vendor\nForwarded: yes", "sent", "yes", ()),
        ("Fix\n\nOrigin: upstream, 1.2", "taken", "upstream, 1.2", ()),
        ("Fix\n\nPR: #12", "sent", "#12", (12,)),
        ("Fix\n\nLink: https://lab.example.org/a/-/merge_requests/3", "sent", None, (3,)),
        ("Fix\n\nLink: https://lists.example.org/msg", "", "", ()),
        # what is said first is not what counts most
        (f"Fix\n\nUpstream-Status: Pending\nPR: {_PR}9", "sent", f"{_PR}9", (9,)),
        ("Fix\n\nPR: 12", "sent", "12", (12,)),
        ("Fix (#12)\n\nNothing of it, and not #13", "", "", (12,)),
    ],
)
def test_what_a_header_says(
    message: str, intent: str, said: str | None, requests: tuple[int, ...]
) -> None:
    found, text = intent_of(message)
    assert (found, requests_of(message)) == (intent, frozenset(requests))
    assert said in (None, text)


@pytest.mark.parametrize(
    ("body", "requests"),
    [
        ("PR: 12", {12}),
        ("PR: #12", {12}),
        ("PR-URL: https://github.com/a/b/pull/12", {12}),
        ("Merge pull request #12 from somebody/branch", {12}),
        ("See merge request group/sub/demo!12", {12}),
        ("Closes: https://lab.example.org/a/-/merge_requests/3", {3}),
        ("Based on initial work in PR #226", {226}),
        ("It came up as part\nof #226, and Pull Request #7 has more", {226, 7}),
        ("Fixes #12, see issue 13 and https://github.com/a/b/issues/14", set()),
        ("PR c++/12345", set()),
    ],
)
def test_what_a_commit_of_upstream_names(body: str, requests: set[int]) -> None:
    assert requests_named(body) == requests


class Ledger:
    """A stack of which each patch changes a file of its own, or one line of one."""

    def __init__(self, project: Project, upstream: Upstream) -> None:
        self.project, self.upstream = project, upstream
        upstream.git("config", "uploadpack.allowFilter", "true")  # histories come without files
        names = (
            "taken",
            "other",
            "undone",
            "again",
            "back",
            "part",
            "open",
            "plain",
            "ours",
            "number",
        )
        self.start: dict[str, Content] = {f"{name}.txt": lines() for name in names}
        self.pin = upstream.commit(self.start, "The pin")
        self.patches: dict[str, bytes] = {}

    def patch(self, name: str, header: str, change: dict[int, str], **before: Any) -> None:
        """A patch of NAME.txt with this line in its header, on top of `before`."""
        file = before.get("file", name)
        start = before.get("on", {})
        old, new = ({f"{file}.txt": lines(each)} for each in (start, {**start, **change}))
        body = f"For a test.\n\n{header}".strip()
        subject = before.get("subject", f"Change {name}")
        self.patches[f"{name}.patch"] = make_patch(old, new, subject=subject, body=body)

    def lands(self, name: str, change: dict[int, str], subject: str) -> str:
        """Upstream commits a change of NAME.txt; the commit."""
        return self.upstream.commit({f"{name}.txt": lines(change)}, subject)

    def rows(self, *options: str) -> dict[str, dict[str, Any]]:
        """The ledger, by the patch's name."""
        self.project.component("demo", self.upstream, self.pin, self.patches, track="main")
        ran = self.project.run("log", "--upstream", "--json", *options).ok()
        (component,) = ran.json["components"]
        return {each["name"].removesuffix(".patch"): each for each in component["patches"]}


@pytest.fixture
def ledger(project: Project, upstream: Upstream) -> Ledger:
    return Ledger(project, upstream)


def test_what_became_of_each(ledger: Ledger) -> None:
    five = {5: "five\n"}
    ledger.patch("taken", f"Upstream-Status: Submitted [{_PR}7]", five)
    ledger.patch("other", f"PR: {_PR}8", five)
    ledger.patch("undone", f"PR: {_PR}9", five)
    ledger.patch("again", f"PR: {_PR}14", five)
    three = {4: "number four\n", 5: "number five\n", 6: "number six\n"}
    ledger.patch("back", "Upstream-Status: Pending", three)
    ledger.patch("part", f"PR: {_PR}11", {**five, 30: "thirty\n"})
    ledger.patch("open", f"Forwarded: {_PR}12", five)
    ledger.patch("plain", "", five)
    ledger.patch("ours", "Upstream-Status: Inappropriate [ours]", five)
    ledger.patch("number", "Nothing of its way", five, subject="Change number (#15)")
    ledger.lands("taken", five, "Change what is taken (#7)")
    ledger.lands("other", {5: "fünf\n"}, "Change the other (#8)")
    ledger.lands("undone", {20: "twenty\n"}, "Change what is undone (#9)")
    ledger.lands("undone", {}, 'Revert "Change what is undone (#9)" (#19)')
    ledger.lands("again", {20: "twenty\n"}, "Change it again (#14)")
    ledger.lands("again", {}, 'Revert "Change it again (#14)" (#22)')
    ledger.lands("again", {20: "twenty\n"}, 'Revert "Revert "Change it again (#14)" (#22)" (#23)')
    ledger.lands("back", three, "Change what comes back (#10)")
    ledger.lands("back", {}, 'Revert "Change what comes back" (#20)')
    # of another file: a number that upstream gave to somebody else's request
    ledger.lands("plain", {20: "twenty\n"}, "Another change (#12)")
    ledger.lands("number", {5: "fünf\n"}, "Change a number (#15)")
    ledger.lands("part", {30: "thirty\n"}, "Change a part (#21)")
    rows = ledger.rows()
    told = {name: (row["intent"], row["fate"]) for name, row in rows.items()}
    assert told == {
        "taken": ("sent", "landed"),
        "other": ("sent", "landed differently"),
        "undone": ("sent", "reverted"),
        "again": ("sent", "landed differently"),
        "back": ("send", "reverted"),
        "part": ("sent", "landed in part"),
        "open": ("sent", "open"),
        "plain": ("", ""),
        "ours": ("never", ""),
        "number": ("", "landed differently"),
    }
    by = {name: row["by"]["request"] for name, row in rows.items() if row["by"]}
    assert by == {
        **{"taken": 7, "other": 8, "undone": 19, "again": 14, "back": 20, "part": 21},
        "number": 15,
    }
    assert rows["open"]["sent"] == f"{_PR}12"
    fates = {f"{name}.patch": row["fate"] for name, row in rows.items()}
    bump = ledger.project.run(
        "bump", "demo", "--to", "main", "--dry-run", "--skip-conflicts", "--json"
    )
    bumped = {each["name"]: each["fate"] for each in bump.component["patches"]}
    assert {name: fate["word"] if fate else "" for name, fate in bumped.items()} == fates
    # once more from the cache alone, as drift says it
    ledger.upstream.vanish()
    assert ledger.rows("--offline") == rows
    drift = ledger.project.run("drift", "--offline", "--json").ends(1).component["patches"]
    drifted = {each["name"]: each["forecast"]["fate"] for each in drift}
    assert {name: fate["word"] if fate else "" for name, fate in drifted.items()} == fates


def test_what_a_patch_needs_goes_first_and_is_printed(ledger: Ledger) -> None:
    five = {5: "five\n"}
    ledger.patch("open", f"PR: {_PR}12", five)
    ledger.patch("plain", "", five)
    ledger.patch("more", f"PR: {_PR}13", {6: "six\n"}, file="open", on=five)
    ledger.lands("open", {30: "thirty\n", 31: "more\n"}, "Something else (#13)")
    rows = ledger.rows()
    assert {name: row["needs"] for name, row in rows.items()} == {
        "open": [],
        "plain": [],
        "more": ["open.patch"],
    }
    out = ledger.project.run("log", "--upstream").ok().out
    assert f"       sent: {_PR}12\n       open\n" in out
    assert "       landed differently by " in out
    assert "       needs open.patch\n" in out


def test_what_cannot_be_looked_at_is_said_and_the_rest_told(ledger: Ledger) -> None:
    ledger.patch("open", f"PR: {_PR}12", {5: "five\n"})
    ledger.rows()
    ledger.project.component("demo", ledger.upstream, ledger.pin, ledger.patches)
    ran = ledger.project.run("log", "--upstream").ends(4, "demo tracks no branch")
    assert f"sent: {_PR}12" in ran.out


def fates(ledger: Ledger) -> dict[str, tuple[str, str]]:
    """By patch its fate, and the subject of the commit that is named for it."""
    rows = ledger.rows()
    return {name: (row["fate"], (row["by"] or {}).get("subject", "")) for name, row in rows.items()}


def test_what_upstream_names_below_the_subject_counts(ledger: Ledger) -> None:
    five, theirs = {5: "five\n"}, {5: "fünf\n"}
    ledger.patch("taken", f"Upstream-Status: Submitted [{_PR}7]", five)
    ledger.patch("other", f"PR: {_PR}8", five)
    ledger.patch("open", f"PR: {_PR}9", five)
    ledger.patch("back", f"Origin: upstream, {'a1b2c3d4' * 5}", five)
    ledger.patch("part", f"PR: {_PR}10", five)
    ledger.lands("taken", theirs, "Do it otherwise\n\nBased on work by others in PR #7")
    ledger.lands("other", theirs, "Do that, too\n\nSee merge request group/demo!8")
    ledger.lands("plain", theirs, "Another file\n\nPR: #9")
    picked = f"(cherry picked from commit {'a1b2c3d4' * 5})"
    ledger.lands("back", theirs, f"Bring it back here\n\n{picked}")
    ledger.lands("part", {30: "x\n"}, "Make room\n\nSo that pull request #10 finds some.")
    ledger.lands("part", {30: "x\n", **theirs}, "Do a part of it (#10)")
    assert fates(ledger) == {
        "taken": ("landed differently", "Do it otherwise"),
        "other": ("landed differently", "Do that, too"),
        "open": ("open", ""),
        "back": ("landed differently", "Bring it back here"),
        "part": ("landed differently", "Do a part of it (#10)"),
    }


def test_what_landed_before_the_pin_is_not_open(ledger: Ledger) -> None:
    five, theirs = {5: "five\n"}, {20: "zwanzig\n"}
    for number, name in enumerate(("taken", "other", "undone", "again", "open"), 7):
        ledger.patch(name, f"Upstream-Status: Submitted [{_PR}{number}]", five)
    ledger.lands("taken", theirs, "Do it otherwise (#7)")
    ledger.lands("other", theirs, "Do it\n\nPR: 8")
    ledger.lands("undone", theirs, "Do it here (#9)")
    ledger.lands("undone", {}, 'Revert "Do it here (#9)"')
    ledger.pin = CommitId(ledger.lands("again", theirs, "Do it again here (#10)"))
    ledger.lands("again", {}, 'Revert "Do it again here (#10)"')
    assert fates(ledger) == {
        "taken": ("landed differently", "Do it otherwise (#7)"),
        "other": ("landed differently", "Do it"),
        "undone": ("reverted", 'Revert "Do it here (#9)"'),
        "again": ("reverted", 'Revert "Do it again here (#10)"'),
        "open": ("open", ""),
    }
