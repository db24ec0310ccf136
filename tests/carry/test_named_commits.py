"""A commit is named by lines that hardly any other would have brought, else by the place."""

from __future__ import annotations

import re

import pytest

from patchkit.model.outcome import Status
from tests.carry.test_carry_file import carry, only_file
from tests.support.repos import Upstream, make_patch

TEXT = "".join(f"line {number}\n" for number in range(1, 31)).replace("line 15\n", "}\n")
TRIVIAL = ["fi\n", "}\n}\n", "else\n", 'if [ -n "$1" ]; then\n', "return None\n"]
RARE = "    measure_everything(value)\n"


def _named(upstream: Upstream, theirs: str, ours: str) -> tuple[set[str], str]:
    """The ids that are named of a conflict in the 15th line, and that of upstream's commit there.

    Upstream brings the lines of both sides again elsewhere, before and afterwards.
    """
    old = upstream.commit({"f": TEXT})
    more = "".join(TRIVIAL)
    upstream.commit({"f": TEXT + more}, "Before")
    text = TEXT.replace("}\n", theirs)
    took = upstream.commit({"f": text + more}, "Here")
    new = upstream.commit({"f": text + more + more}, "Afterwards")
    patch = make_patch({"f": TEXT}, {"f": TEXT.replace("}\n", ours)})
    file = only_file(carry(upstream, old, new, patch))
    assert file.status is Status.CONFLICTED or file.review
    part = file.upstream.commit if file.upstream is not None else ""
    said = " ".join((*file.reasons, file.absorbed_by, part))
    return set(re.findall(r"\b[0-9a-f]{10}\b", said)), took[:10]


@pytest.mark.parametrize("line", TRIVIAL)
def test_lines_that_stand_everywhere_name_what_made_the_place(
    upstream: Upstream, line: str
) -> None:
    """With those next to them; no other commit that brought one of them elsewhere."""
    named, took = _named(upstream, f"fi\n{line}else\n", f"{line}return None\n}}\nfi\n")
    assert named == {took}


def test_what_is_absorbed_by_such_lines_is_for_review(upstream: Upstream) -> None:
    """Upstream has them in the same place, and more of them."""
    old = upstream.commit({"f": TEXT})
    theirs = TEXT.replace("}\n", "fi\nelse\nreturn None\n")
    patch = make_patch({"f": TEXT}, {"f": TEXT.replace("}\n", "fi\nelse\n")})
    took = upstream.commit({"f": theirs})
    file = only_file(carry(upstream, old, took, patch))
    assert (file.status, file.review, file.absorbed_by) == (Status.ABSORBED, True, "")
    assert file.reasons == (
        f"lines 15-17 (15-16 as patched): nothing is there that it would change ({took[:10]} "
        "Change files): see that upstream does what it was for",
    )


@pytest.mark.parametrize("line", TRIVIAL)
def test_one_rare_line_among_them_names_its_commit(upstream: Upstream, line: str) -> None:
    theirs, ours = f"fi\n{RARE}{line}else\n", f"{line}{RARE}return None\n}}\nfi\n"
    named, took = _named(upstream, theirs, ours)
    assert named == {took}
