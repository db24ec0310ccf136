"""Each reason for which a patch does not apply, on a real repository."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from patchkit.explain.diagnose import Results, explain_stack, find_moves, results_of
from patchkit.explain.explanation import Cause, PatchExplanation, percent
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import TreeView
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId
from patchkit.model.outcome import Preimage, Reason
from patchkit.stack.build import SeriesPatch, build_stack, patch_changes
from tests.support.repos import Files, Upstream, make_patch

LINES = [f"value_{n} = compute({n})\n" for n in range(1, 41)]
TEXT = "".join(LINES)
BASE: Files = {"pkg/core.py": TEXT, "pkg/other.py": "import os\n"}


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


PATCHED = changed(TEXT, ("value_20 = compute(20)\n", "value_20 = compute(20, fast=True)\n"))
PATCH = make_patch(BASE, {"pkg/core.py": PATCHED})


def explain(
    upstream: Upstream,
    pin: str,
    *patches: bytes,
    results: Results | None = None,
) -> PatchExplanation:
    """The explanation of the one patch that does not apply."""
    repository = Repository(upstream.path)
    tree = repository.tree(pin)
    assert tree is not None
    series = [SeriesPatch(f"{n}.patch", _parse(data)) for n, data in enumerate(patches, 1)]
    with ObjectReader(repository) as reader:
        stack = build_stack(reader, Base(CommitId(pin), tree, "1700000000 +0000"), series)
        _, (found,) = explain_stack(reader, stack, series, results=results)
    return found


def _parse(data: bytes):  # type: ignore[no-untyped-def]
    return parse_patch(data, name="test.patch")


def causes(explanation: PatchExplanation) -> list[Cause]:
    return [hunk.cause for hunk in explanation.hunks]


def test_changed_lines_are_found_where_they_moved(upstream: Upstream) -> None:
    text = "# new\n" * 7 + changed(TEXT, ("value_21 = compute(21)", "value_21 = None"))
    pin = upstream.commit({"pkg/core.py": text})
    explanation = explain(upstream, pin, PATCH)
    (file,) = explanation.files
    (hunk,) = file.hunks
    assert (file.path, file.reason, file.preimage) == (
        "pkg/core.py",
        Reason.CONTEXT,
        Preimage.DIFFERS,
    )
    assert (hunk.cause, hunk.recorded) == (Cause.CHANGED, 17)
    assert hunk.place is not None
    assert (hunk.place.start, hunk.place.end) == (24, 31)
    (mismatch,) = hunk.mismatches
    assert mismatch.expected == (b"value_21 = compute(21)\n",)
    assert (mismatch.found, mismatch.found_at) == ((b"value_21 = None\n",), 28)
    # the line of the patch file that expects it
    assert PATCH.splitlines()[mismatch.expected_lines[0] - 1] == b" value_21 = compute(21)"


def test_a_line_inserted_between_is_told(upstream: Upstream) -> None:
    text = changed(TEXT, (LINES[20], LINES[20] + "inserted = True\n"))
    explanation = explain(upstream, upstream.commit({"pkg/core.py": text}), PATCH)
    (mismatch,) = explanation.hunks[0].mismatches
    assert (mismatch.expected, mismatch.found) == ((), (b"inserted = True\n",))
    assert mismatch.found_at == 22


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PATCHED, Cause.CONTAINED),
        (TEXT.replace("\n", "\r\n"), Cause.LINE_ENDS),
        (TEXT.replace(" = ", "\t=  "), Cause.WHITESPACE),
        (changed(TEXT, ("value_21 = compute(21)", "value_21 = calculate(21)")), Cause.CHANGED),
    ],
)
def test_what_became_of_the_file(upstream: Upstream, text: str, cause: Cause) -> None:
    explanation = explain(upstream, upstream.commit({"pkg/core.py": text}), PATCH)
    assert causes(explanation) == [cause]
    assert explanation.contained == (cause is Cause.CONTAINED)


def test_one_hunk_is_contained(upstream: Upstream) -> None:
    after = changed(PATCHED, ("value_5 = compute(5)\n", "value_5 = 5\n"))
    pin = upstream.commit({"pkg/core.py": PATCHED})
    explanation = explain(upstream, pin, make_patch(BASE, {"pkg/core.py": after}))
    assert not explanation.contained
    (file,) = explanation.files
    assert (file.hunks_total, [hunk.number for hunk in file.hunks]) == (2, [2])
    assert causes(explanation) == [Cause.CONTAINED]


def test_lines_that_are_nowhere_are_gone(upstream: Upstream) -> None:
    pin = upstream.commit({"pkg/core.py": "print('rewritten')\n" * 30})
    (hunk,) = explain(upstream, pin, PATCH).hunks
    assert (hunk.cause, hunk.place) == (Cause.GONE, None)
    # what the hunk expects and what stands at the place that it names
    (mismatch,) = hunk.mismatches
    assert mismatch.expected[0] == LINES[16].encode()
    assert mismatch.found[0] == b"print('rewritten')\n"
    assert mismatch.found_at == 17


def test_what_is_not_all_is_never_100_per_cent() -> None:
    assert [percent(each) for each in (0, 0.5, 0.999, 1.0)] == ["0%", "50%", "99%", "100%"]


def test_hunk_that_must_stand_at_the_start(upstream: Upstream) -> None:
    patch = make_patch(BASE, {"pkg/core.py": "import torch\n" + TEXT})
    pin = upstream.commit({"pkg/core.py": "# licence\n" + TEXT})
    (hunk,) = explain(upstream, pin, patch).hunks
    assert hunk.cause is Cause.ANCHORED
    assert hunk.place is not None
    assert hunk.place.start == 2


def test_file_with_the_same_name_elsewhere(upstream: Upstream) -> None:
    pin = upstream.commit({"src/deep/core.py": changed(TEXT, ("(3)", "(33)")), "a/core.py": "x\n"})
    (file,) = explain(upstream, pin, PATCH).files
    assert file.reason is Reason.MISSING
    (move,) = file.moves
    assert (move.path, move.likeness, move.how) == ("src/deep/core.py", 1.0, "same name")
    (hunk,) = file.hunks
    assert (hunk.place_path, hunk.mismatches) == ("src/deep/core.py", ())


def test_file_with_the_same_contents_under_another_name(upstream: Upstream) -> None:
    pin = upstream.commit({"lib/engine.py": TEXT})
    (move,) = explain(upstream, pin, PATCH).files[0].moves
    assert (move.path, move.how) == ("lib/engine.py", "same contents")


def test_rename_that_git_knows_of(upstream: Upstream) -> None:
    upstream.commit(BASE)
    renamed = CommitId(upstream.commit({"pkg/core.py": None, "runtime/main.rs": "#\n" + TEXT}))
    pin = CommitId(upstream.commit({"runtime/main.rs": "#\n#\n" + TEXT}))
    repository, change = Repository(upstream.path), _parse(PATCH).changes[0]
    tree = repository.tree(pin)
    assert tree is not None
    with ObjectReader(repository) as reader:
        view = TreeView(reader, tree)
        (move,) = find_moves(view, change, lambda _: (renamed, "runtime/main.rs"))
        assert (move.path, move.how) == ("runtime/main.rs", f"renamed by {renamed}")
        # without history the other ending hides it
        assert find_moves(view, change) == ()


def test_file_to_add_is_there(upstream: Upstream) -> None:
    patch = make_patch({}, {"new.py": "one\ntwo\n"})
    same = explain(upstream, upstream.commit({"new.py": "one\ntwo\n"}), patch)
    assert same.contained
    assert [(f.reason, f.contained) for f in same.files] == [(Reason.EXISTS, True)]
    other = explain(upstream, upstream.commit({"new.py": "other\n"}), patch)
    assert [(f.reason, f.contained) for f in other.files] == [(Reason.EXISTS, False)]


def test_file_to_delete_is_gone(upstream: Upstream) -> None:
    patch = make_patch(BASE, {"pkg/other.py": None})
    explanation = explain(upstream, upstream.commit({"pkg/core.py": TEXT}), patch)
    assert explanation.contained


IMPORTS = """\
import os
from slime.utils.logging import configure
from slime.utils.misc import Box
from slime.ray.actor import Actor


def main(args):
    return configure(args)
"""


def renamed(text: str) -> str:
    return text.replace("slime.utils", "slime.observability")


def reworded(paths: Sequence[str]) -> tuple[Files, bytes]:
    """Files, and a patch of them over whose context a repository-wide rename went."""
    before: Files = dict.fromkeys(paths, IMPORTS) | {"slime/utils/misc.py": "Box = 1\n"}
    after = {path: IMPORTS.replace("Actor\n", "Actor\nimport torch\n") for path in paths}
    patch = make_patch(before, after)
    lines = [
        renamed(line.decode()).encode() if line[:1] == b" " else line
        for line in patch.splitlines(keepends=True)
    ]
    return before, b"".join(lines)


def test_a_patch_that_was_edited_since_it_was_made(upstream: Upstream) -> None:
    before, patch = reworded(["slime/train.py", "slime/rollout.py"])
    explanation = explain(upstream, upstream.commit(before), patch)
    assert causes(explanation) == [Cause.CHANGED, Cause.CHANGED]
    # the index lines still name the blobs that are there
    assert {file.preimage for file in explanation.files} == {Preimage.MATCHES}


def test_a_patch_made_for_the_base_without_those_before_it(upstream: Upstream) -> None:
    pin = upstream.commit({**BASE, "pkg/other.py": "import os\n"}, "Compute forty values")
    first = make_patch(BASE, {"pkg/core.py": changed(TEXT, ("value_20 =", "other_20 ="))})
    patch = make_patch(BASE, {"pkg/core.py": PATCHED})
    origin = explain(upstream, pin, first, patch).origin
    assert (origin.known, [each.path for each in origin.others]) == (1, ["pkg/core.py"])
    assert origin.commit == pin


def test_patch_that_is_missing_before_is_named(upstream: Upstream) -> None:
    first = make_patch(BASE, {"pkg/core.py": PATCHED})
    after = changed(PATCHED, ("fast=True", "fast=False"))
    second = make_patch({"pkg/core.py": PATCHED}, {"pkg/core.py": after})
    results = results_of([("first.patch", patch_changes(SeriesPatch("1", _parse(first))))])
    origin = explain(upstream, upstream.commit(BASE), second, results=results).origin
    assert origin.made_by == ("first.patch",)


def test_explained_on_the_tree_that_it_met(upstream: Upstream) -> None:
    third = make_patch(
        {"pkg/core.py": changed(TEXT, ("value_21", "nobody_21"))},
        {"pkg/core.py": changed(TEXT, ("value_21 = compute(21)", "nobody_21 = 1"))},
    )
    explanation = explain(upstream, upstream.commit(BASE), PATCH, third)
    assert explanation.name == "2.patch"
    found = [line for each in explanation.hunks[0].mismatches for line in each.found]
    assert b"value_21 = compute(21)\n" in found
    assert b"value_20 = compute(20, fast=True)\n" in found
