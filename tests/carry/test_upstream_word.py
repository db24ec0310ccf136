"""What upstream's history says of a patch: taken by a commit, in part or whole; never doubled."""

from __future__ import annotations

import pytest

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.carry.upstream_word import share_of
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff_parse import parse_diff
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.outcome import Certainty, Fate, PatchResult, Status
from patchkit.stack.build import SeriesPatch
from tests.support.repos import Upstream, make_patch

TEXT = "".join(f"line {number}\n" for number in range(1, 31))
_SAFE = "    if length > limit:\n        raise TooLong(length)\n    count = length // size\n"
#: What upstream's commit makes of it, what it was turned into later, and the patch's own form.
TAKEN = TEXT.replace("line 15\n", f"line 15\n{_SAFE}")
REWRITTEN = TEXT.replace("line 15\n", "line 15\n    check(length, limit)\n    return size\n")
_ME = "Me Myself <me@example.com>"
_OTHER = "Date and Subject <other@example.com>"


def _patch(body: str = "", *, after: str = TAKEN, **header: str) -> bytes:
    header = {"subject": "Ours", "author": _ME, **header}
    return make_patch({"f": TEXT}, {"f": after}, body=body, **header)


def _carry(upstream: Upstream, old: str, new: str, patch: bytes) -> PatchResult:
    repository = Repository(upstream.path)
    before, after = (
        Base(CommitId(each), TreeId(upstream.tree(each)), "1700000000 +0000") for each in (old, new)
    )
    series = [SeriesPatch("x.patch", parse_patch(patch, name="x"))]
    with reading(repository) as reader:
        past = Between(repository, CommitId(old), CommitId(new))
        report = carry_stack(reader, before, after, series, CarryOptions(past=past))
    (outcome,) = report.outcomes
    if outcome.status in (Status.ABSORBED, Status.CONFLICTED):
        assert report.stack.tree == after.tree
    return outcome


@pytest.fixture
def old(upstream: Upstream) -> str:
    return upstream.commit({"f": TEXT, "g": TEXT})


def _taken(upstream: Upstream, message: str = "Check the length", author: str = _OTHER) -> str:
    return upstream.commit({"f": TAKEN}, message, author=author)


def _tip(upstream: Upstream) -> str:
    return str(upstream.resolve("refs/heads/main"))


@pytest.mark.parametrize(
    "body",
    [
        "(cherry picked from commit {id})",
        "Why.\n\n(cherry-picked from commit {id:.12})\nSigned-off-by: Me <me@example.com>",
        "Upstream-Status: Backport [https://example.com/x/commit/{id}]",
        "Upstream-Status: Backport [{id:.10}]",
        "Origin: upstream, https://example.com/x/commit/?id={id}",
        "Origin: backport, commit:{id:.9}",
        "commit {id} upstream.\n\nWhy.",
        "[ Upstream commit {id} ]\n\nWhy.",
    ],
)
def test_a_change_that_names_its_commit_is_absorbed(
    upstream: Upstream, old: str, body: str
) -> None:
    commit = _taken(upstream)
    patch = _patch(body.format(id=commit))
    assert not _carry(upstream, old, commit, patch).review
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    outcome = _carry(upstream, old, new, patch)
    assert outcome.status is Status.ABSORBED
    assert outcome.absorbed_by == (f"{commit[:10]} Check the length",)
    assert "this very change" in outcome.files[0].reasons[0]
    assert outcome.review  # a later commit may have taken back a part of it
    assert outcome.fate == Fate("landed", f"{commit[:10]} Check the length")
    assert "lacks" in outcome.files[0].reasons[1]


def test_what_nothing_but_lines_ties_to_a_commit_is_flagged(upstream: Upstream, old: str) -> None:
    commit = _taken(upstream)
    assert not _carry(upstream, old, commit, _patch()).review  # the file as the patch makes it
    new = upstream.commit({"f": TAKEN.replace("line 10\n", "line 10\nline more\n")}, "More")
    if (outcome := _carry(upstream, old, new, _patch())).files[0].confidence < 1:
        assert outcome.review
    further = TAKEN.replace(_SAFE, f"{_SAFE}    then(what, follows)\n")
    outcome = _carry(upstream, old, upstream.commit({"f": further}, "Go on"), _patch())
    assert outcome.status is Status.ABSORBED and outcome.review
    assert outcome.files[0].reasons[1] == "the patch names no commit; judged by its lines alone"
    assert outcome.fate == Fate("perhaps landed", f"{commit[:10]} Check the length")
    assert outcome.files[0].certainty is Certainty.LOOK


@pytest.mark.parametrize(
    "subject",
    ["Check the length", "[PATCH 2/3] Check the length", "check the  Length (#12)"],
)
def test_a_change_of_the_same_subject_is_absorbed(
    upstream: Upstream, old: str, subject: str
) -> None:
    _taken(upstream)
    assert not _carry(upstream, old, _tip(upstream), _patch(subject=subject)).review
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    outcome = _carry(upstream, old, new, _patch(subject=subject))
    assert outcome.status is Status.ABSORBED
    assert outcome.review  # nothing but the subject says so, and lines of it are gone
    assert "lacks" in outcome.files[0].reasons[1]


def test_a_change_of_the_same_author_and_date_is_absorbed(upstream: Upstream, old: str) -> None:
    commit = _taken(upstream)
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    when = upstream.git("log", "-1", "--format=%aD", commit).decode().strip()
    author = _OTHER.replace("other@", "Other@")
    (file,) = _carry(upstream, old, new, _patch(author=author, date=when)).files
    assert file.status is Status.ABSORBED
    assert file.reasons == (
        f"upstream made this very change ({commit[:10]} Check the length)",
        "upstream's file lacks 3 lines of it now",
    )


def test_a_change_that_only_its_lines_tie_to_a_commit_is_absorbed(
    upstream: Upstream, old: str
) -> None:
    commit = _taken(upstream)
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    outcome = _carry(upstream, old, new, _patch())
    assert outcome.status is Status.ABSORBED
    assert outcome.absorbed_by == (f"{commit[:10]} Check the length",)
    more = TAKEN.replace("    count =", "    log(length, limit)\n    count =")
    assert _carry(upstream, old, new, _patch(after=more)).status is not Status.ABSORBED


#: The change in the place of a line, what upstream had of it, and what it made of it later.
IN_PLACE = TEXT.replace("line 15\n", _SAFE)
_WITH_MORE = IN_PLACE.replace("line 13\n", "line thirteen\n")
_GONE_ON = TEXT.replace("line 15\n", "    check(length, limit)\n    return size\n")


@pytest.mark.parametrize("reverted", [False, True])
def test_a_change_that_a_commit_made_with_more_is_absorbed_by_it(
    upstream: Upstream, old: str, reverted: bool
) -> None:
    """Every hunk of the patch stands in the commit's own diff; however many commits came since."""
    commit = upstream.commit({"f": _WITH_MORE}, "Check the length, and more", author=_OTHER)
    if reverted:
        upstream.commit({"f": TEXT}, f"Undo\n\nThis reverts commit {commit}.")
    for number in range(70):
        upstream.commit({"f": _GONE_ON + f"end {number}\n"}, f"Say it {number}")
    outcome = _carry(upstream, old, _tip(upstream), _patch(after=IN_PLACE))
    (file,) = outcome.files
    if reverted:
        assert outcome.status is Status.CONFLICTED
        return
    assert (outcome.status, outcome.review) == (Status.ABSORBED, True)
    assert outcome.absorbed_by == (f"{commit[:10]} Check the length, and more",)
    assert file.reasons[1] == "upstream's file lacks 3 lines of it now"
    assert file.certainty is Certainty.LOOK


def test_what_two_commits_did_is_absorbed_by_neither(upstream: Upstream, old: str) -> None:
    """Both had their part; what upstream made of it since is for a person."""
    half = TEXT.replace("line 5\n", "    first_half_of(it)\n")
    upstream.commit({"f": half}, "The first half")
    upstream.commit({"f": half.replace("line 25\n", "    second_half_of(it)\n")}, "The second")
    new = upstream.commit({"f": half.replace("line 25\n", "    another(one)\n")}, "Go on")
    both = half.replace("line 25\n", "    second_half_of(it)\n")
    assert _carry(upstream, old, new, _patch(after=both)).status is Status.CONFLICTED


FOUR = dict.fromkeys("abcd", TEXT)
FOUR_TAKEN = {
    name: TEXT.replace("line 15\n", f"line 15\n    common(line)\n    of_{name}(alone)\n")
    for name in FOUR
}


@pytest.mark.parametrize("moved", ["d", "nothing"])
def test_a_patch_that_a_commit_is_leaves_as_a_whole(upstream: Upstream, moved: str) -> None:
    """Its patch-id is the commit's; the longest line stood in the file before, one file moved."""
    before = {**FOUR, "d": TEXT + "    common(line)\n"}
    after = {**FOUR_TAKEN, "d": FOUR_TAKEN["d"] + "    common(line)\n"}
    old = upstream.commit(before)
    upstream.commit({"d": "top\n" + before["d"]}, "Before it")
    commit = upstream.commit({**after, "d": "top\n" + after["d"]}, "Take all four")
    if moved == "d":
        upstream.commit({"d": None, "e": "another file\n" * 40}, "Move one away")
    new = upstream.commit({"a": REWRITTEN, "b": REWRITTEN}, "Go on")
    outcome = _carry(upstream, old, new, make_patch(before, after, author=_ME))
    assert outcome.status is Status.ABSORBED
    assert {file.absorbed_by for file in outcome.files} == {f"{commit[:10]} Take all four"}


def test_a_removal_that_a_commit_made_is_absorbed_by_it(upstream: Upstream) -> None:
    old = upstream.commit({"f": TAKEN})
    commit = upstream.commit({"f": TEXT}, "Take the check away", author=_OTHER)
    new = upstream.commit({"f": TEXT.replace("line 15\nline 16\n", "lines\n")}, "Go on")
    patch = make_patch({"f": TAKEN}, {"f": TEXT}, author=_ME)
    outcome = _carry(upstream, old, new, patch)
    assert outcome.absorbed_by == (f"{commit[:10]} Take the check away",)


@pytest.mark.parametrize("subject", ["Check the length", "Ours"])
def test_lines_that_a_commit_has_apart_are_no_hunk_of_it(
    upstream: Upstream, old: str, subject: str
) -> None:
    """A name, an author, a subject say where to look; what the commit does not do stays."""
    apart = TEXT
    for number, line in enumerate(_SAFE.splitlines(keepends=True)):
        apart = apart.replace(f"line {5 * number + 10}\n", f"line {5 * number + 10}\n{line}")
    upstream.commit({"f": apart}, "Check the length")
    new = upstream.commit({"f": apart.replace("line 16\n", "line sixteen\n")}, "Spell it")
    outcome = _carry(upstream, old, new, _patch(subject=subject))
    assert outcome.status is not Status.ABSORBED
    assert outcome.review or outcome.status is Status.CONFLICTED


def test_a_part_of_a_change_that_upstream_had_is_none_of_it(upstream: Upstream, old: str) -> None:
    upstream.commit({"f": _WITH_MORE}, "Check the length, and more", author=_OTHER)
    new = upstream.commit({"f": _GONE_ON}, "Say it shorter")
    more = IN_PLACE.replace("    count =", "    log(length, limit)\n    count =")
    assert _carry(upstream, old, new, _patch(after=more)).status is Status.CONFLICTED


def test_the_same_lines_in_another_place_are_another_change(upstream: Upstream, old: str) -> None:
    theirs = TEXT.replace("line 3\n", f"line 3\n{_SAFE}")
    upstream.commit({"f": theirs}, "Check the length elsewhere", author=_OTHER)
    new = upstream.commit({"f": theirs.replace("line 15\n", "line fifteen\n")}, "Spell it")
    outcome = _carry(upstream, old, new, _patch())
    assert outcome.review and "this very change" not in outcome.files[0].reasons[0]


def test_white_space_makes_no_other_change(upstream: Upstream, old: str) -> None:
    commit = _taken(upstream)
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    tabs = TAKEN.replace("    ", "\t")
    named = _patch(f"(cherry picked from commit {commit})", after=tabs)
    assert _carry(upstream, old, new, named).status is Status.ABSORBED


def test_what_was_reverted_is_not_upstream(upstream: Upstream, old: str) -> None:
    commit = _taken(upstream)
    words = f'Revert "Check the length"\n\nThis reverts commit {commit}.'
    reverted = upstream.commit({"f": TEXT}, words)
    patch = _patch(f"(cherry picked from commit {commit})")
    outcome = _carry(upstream, old, reverted, patch)
    assert outcome.status is Status.UNCHANGED
    assert outcome.fate == Fate("reverted", f'{reverted[:10]} Revert "Check the length"')
    again = f"Reapply it\n\nThis reverts commit {reverted}."
    back = upstream.commit({"f": TAKEN}, again)
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    assert _carry(upstream, old, back, patch).status is Status.ABSORBED
    assert _carry(upstream, old, new, patch).status is Status.ABSORBED


def test_a_line_counts_in_its_file_or_anywhere_in_a_file_of_another_name() -> None:
    changes = parse_diff(b"--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n-old\n kept\n+new\n+more\n")
    for path in "fg":
        share = share_of("told", changes, {path: (b"-old\n", b"+ new \n", b"+ore\n")})
        assert (share.left, share.added, share.known) == ({"f": (b"+more\n",)}, 2, 1)


def test_what_is_left_of_a_patch_is_said(upstream: Upstream, old: str) -> None:
    commit = _taken(upstream)
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    ours = TAKEN.replace("    count =", "    log(length, limit)\n    count =")
    outcome = _carry(
        upstream, old, new, _patch(f"(cherry picked from commit {commit})", after=ours)
    )
    assert outcome.status is Status.CONFLICTED
    told = outcome.files[0].reasons[0]
    assert told.startswith(f"3 of 4 added lines are upstream ({commit[:10]} Check the length)")
    assert told.endswith("left of the patch: +    log(length, limit)")


def test_a_file_that_upstream_has_is_absorbed_and_the_others_carried(
    upstream: Upstream, old: str
) -> None:
    commit = _taken(upstream)
    new = upstream.commit({"f": REWRITTEN}, "Say it shorter")
    after = {"f": TAKEN, "g": TEXT.replace("line 3\n", "our third line\n")}
    body = f"(cherry picked from commit {commit})"
    patch = make_patch({"f": TEXT, "g": TEXT}, after, body=body, author=_ME)
    outcome = _carry(upstream, old, new, patch)
    first, second = outcome.files
    assert (first.status, second.status) == (Status.ABSORBED, Status.UNCHANGED)
    assert outcome.status is Status.MERGED and second.review
    assert "3 of 4 added lines" in second.reasons[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Change f in two files", ""),
        ("Guard too_long, and check.py as well.", "check.py, too_long"),
        ("Guard our_part alone", ""),
    ],
)
def test_a_message_that_names_what_is_gone_is_flagged(
    upstream: Upstream, words: str, said: str
) -> None:
    """Upstream has one file of the patch; the other, where `our_part` is, stays."""
    own = TEXT.replace("line 3\n", "def our_part(one):\n    pass\n")
    before, taken = {"check.py": TEXT, "g": TEXT}, TEXT + "def too_long(one):\n    pass\n"
    old = upstream.commit(before)
    new = upstream.commit({"check.py": taken}, "Check the length")
    patch = make_patch(before, {"check.py": taken, "g": own}, subject="Ours", body=words)
    one, other = _carry(upstream, old, new, patch).files
    assert (one.status, other.status) == (Status.ABSORBED, Status.UNCHANGED)
    told = (f"the message names {said}, which upstream has: say what is left",) if said else ()
    assert (other.reasons, other.review) == (told, bool(said))


def test_a_message_that_names_a_hunk_that_is_gone_is_flagged(upstream: Upstream) -> None:
    """Git's merge is clean, and what is left is a change of another function."""

    def text(one: str, other: str) -> str:
        parts = f"def too_long(one):\n    {one}\n", f"def our_part(one):\n    {other}\n"
        return TEXT.join(("", *parts, ""))

    before, patched = text("pass", "pass"), text("return guard(one)", "return other(one)")
    old = upstream.commit({"f": before})
    new = upstream.commit({"f": "\n" + text("return guard(one)", "pass")}, "Guard")
    for words, flagged in (("Guard too_long.", True), ("Guard our_part.", False)):
        patch = make_patch({"f": before}, {"f": patched}, subject="Ours", body=words)
        (file,) = _carry(upstream, old, new, patch).files
        assert (file.status, file.review) == (Status.MERGED, flagged)
        told = "the message names too_long, which upstream has: say what is left"
        assert (told in file.reasons) is flagged


def test_nothing_is_added_again(upstream: Upstream, old: str) -> None:
    """Upstream has moved the lines; the patch's own place is free, and one line is not theirs."""
    moved = TEXT.replace("line 3\n", f"line 3\n{_SAFE}")
    commit = upstream.commit({"f": moved}, "Check the length", author=_OTHER)
    new = upstream.commit({"f": TEXT.replace("line 3\n", "line 3\ncheck(length)\n")}, "Shorter")
    ours = TAKEN.replace("    count =", "    log(length, limit)\n    count =")
    outcome = _carry(
        upstream, old, new, _patch(f"(cherry picked from commit {commit})", after=ours)
    )
    assert outcome.status is Status.CONFLICTED
    assert "it would add again what upstream has" in outcome.files[0].reasons[1]


def test_the_same_words_over_another_change_say_nothing(upstream: Upstream, old: str) -> None:
    new = upstream.commit({"g": TEXT.replace("line 3\n", "three\n")}, "Check the length")
    assert _carry(upstream, old, new, _patch(subject="Check the length")).status is Status.UNCHANGED


def test_a_commit_outside_of_the_range_says_nothing(upstream: Upstream, old: str) -> None:
    aside = upstream.commit({"f": TAKEN}, "On a branch", branch="aside", parents=(old,))
    new = upstream.commit({"g": REWRITTEN}, "Elsewhere")
    patch = _patch(f"(cherry picked from commit {aside})")
    assert _carry(upstream, old, new, patch).status is Status.UNCHANGED


def test_a_conflict_says_how_much_is_upstream(upstream: Upstream, old: str) -> None:
    """Nothing ties the patch to the commit but its lines."""
    lines = [f"    step_{number}(one, two, three)\n" for number in range(20)]
    theirs = TEXT.replace("line 15\n", "".join([*lines[:-1], "    other(one, two)\n"]))
    ours = TEXT.replace("line 15\n", "".join(lines))
    new = upstream.commit({"f": theirs}, "Take all steps")
    outcome = _carry(upstream, old, new, _patch(after=ours))
    assert outcome.status is Status.CONFLICTED
    told, part = outcome.files[0].reasons[0], outcome.files[0].upstream
    assert part is not None
    assert (part.known, part.added, part.commit) == (19, 20, f"{new[:10]} Take all steps")
    said = f"19 of 20 added lines are upstream ({new[:10]} Take all steps)"
    assert told == f"{said}, as in its line 25"
