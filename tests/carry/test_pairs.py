"""Law: of two changes of one file, of whatever kinds, the result is `git merge-tree`'s, or flagged.

All pairs of the kinds below, one as upstream's change and one as the patch's, in both directions;
every fourth unless all examples are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import pytest

from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.process import git_version
from patchkit.gitcmd.repository import Repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId
from patchkit.stack.build import SeriesPatch
from tests.support.laws import SHARE
from tests.support.repos import Content, Submodule, Symlink, Upstream, executable

TEXT = "".join(f"line {number} of the file\n" for number in range(40))
TOP = TEXT.replace("line 3 ", "line three ")
OTHER_TOP = TEXT.replace("line 3 ", "the third line ")
BELOW = TEXT.replace("line 30 ", "line thirty ")
BINARY = b"\0" + bytes(range(200)) * 4
LINKS = Symlink("keep"), Symlink("f/x"), Symlink("../out")
MODULES = tuple(Submodule(digit * 40) for digit in "123")

Change = Mapping[str, Content]

#: What both sides start from -> what a side may make of it.
KINDS: Mapping[str, tuple[Change, Mapping[str, Change]]] = {
    "text": (
        {"d/f": TEXT, "d/o": "o\n"},
        {
            "nothing": {"keep": "kept\n"},
            "edit": {"d/f": TOP},
            "other edit": {"d/f": OTHER_TOP},
            "edit below": {"d/f": BELOW},
            "no last newline": {"d/f": TEXT[:-1]},
            "empty": {"d/f": ""},
            "delete": {"d/f": None},
            "rename": {"d/f": None, "d/g": TEXT},
            "rename elsewhere": {"d/f": None, "e/f": TEXT},
            "rename and edit": {"d/f": None, "d/g": BELOW},
            "rename and other edit": {"d/f": None, "h": OTHER_TOP},
            "mode": {"d/f": executable(TEXT)},
            "mode and edit": {"d/f": executable(TOP)},
            "rename and mode": {"d/f": None, "d/g": executable(TEXT)},
            "link": {"d/f": LINKS[0]},
            "other link": {"d/f": LINKS[1]},
            "binary": {"d/f": BINARY},
            "module": {"d/f": MODULES[0]},
            "folder": {"d/f": None, "d/f/x": "in it\n"},
            "moved into a folder of its name": {"d/f": None, "d/f/x": TEXT},
            "folder renamed": {"d/f": None, "d/o": None, "e/f": TEXT, "e/o": "o\n"},
            "file in the folder": {"d/n": "new\n"},
            "file for the folder": {"d/f": None, "d/o": None, "d": "a file\n"},
            "copy": {"d/g": TEXT},
        },
    ),
    "nothing": (
        {"keep": "kept\n"},
        {
            "text": {"f": TEXT},
            "other text": {"f": TOP},
            "program": {"f": executable(TEXT)},
            "empty": {"f": ""},
            "binary": {"f": BINARY},
            "link": {"f": LINKS[0]},
            "other link": {"f": LINKS[1]},
            "module": {"f": MODULES[0]},
            "other module": {"f": MODULES[1]},
            "folder": {"f/x": TEXT},
            "folder with more": {"f/x": TEXT, "f/y": "y\n"},
            "elsewhere": {"g": TEXT},
            "kept file moved there": {"keep": None, "f": "kept\n"},
        },
    ),
    "program": (
        {"f": executable(TEXT)},
        {
            "edit": {"f": executable(TOP)},
            "mode": {"f": TEXT},
            "mode and edit": {"f": BELOW},
            "mode and same edit": {"f": TOP},
            "delete": {"f": None},
            "rename": {"f": None, "g": executable(TEXT)},
            "link": {"f": LINKS[0]},
        },
    ),
    "binary": (
        {"f": BINARY},
        {
            "edit": {"f": BINARY + b"1"},
            "other edit": {"f": BINARY + b"2"},
            "text": {"f": TEXT},
            "delete": {"f": None},
            "rename": {"f": None, "g": BINARY},
            "rename and edit": {"f": None, "g": BINARY + b"1"},
            "mode": {"f": executable(BINARY)},
            "mode and edit": {"f": executable(BINARY + b"2")},
            "link": {"f": LINKS[0]},
        },
    ),
    "link": (
        {"f": LINKS[0]},
        {
            "edit": {"f": LINKS[1]},
            "other edit": {"f": LINKS[2]},
            "text": {"f": TEXT},
            "file of its target": {"f": "keep"},
            "delete": {"f": None},
            "rename": {"f": None, "g": LINKS[0]},
            "module": {"f": MODULES[0]},
            "folder": {"f": None, "f/x": "x\n"},
        },
    ),
    "module": (
        {"f": MODULES[0]},
        {
            "edit": {"f": MODULES[1]},
            "other edit": {"f": MODULES[2]},
            "text": {"f": TEXT},
            "delete": {"f": None},
            "rename": {"f": None, "g": MODULES[0]},
            "link": {"f": LINKS[0]},
            "folder": {"f": None, "f/x": "x\n"},
        },
    ),
    "empty": (
        {"f": ""},
        {
            "edit": {"f": TEXT},
            "other edit": {"f": TOP},
            "delete": {"f": None},
            "mode": {"f": executable("")},
            "rename": {"f": None, "g": ""},
        },
    ),
}


def _carry(upstream: Upstream, old: CommitId, new: CommitId, patch: bytes) -> CarryReport:
    repository = Repository(upstream.path)
    bases = read_base(repository, old), read_base(repository, new)
    series = [SeriesPatch("0.patch", parse_patch(patch, name="x"))]
    with reading(repository) as reader:
        past = Between(repository, old, new)
        return carry_stack(reader, *bases, series, CarryOptions(past=past))


def _merged_by_git(upstream: Upstream, one: str, other: str) -> str | None:
    """The tree of git's merge; None for a conflict.

    Whether what upstream adds to a folder follows the folder that the patch moves is no question
    about a file of the patch.
    """
    options = ("-c", "merge.directoryRenames=false")
    out = upstream.git(*options, "merge-tree", "--write-tree", "-z", one, other, accept=(0, 1))
    return None if b"CONFLICT" in out else out.partition(b"\0")[0].decode()


def _merged_path_by_path(upstream: Upstream, *commits: str) -> str | None:
    """The tree of a merge that knows no renames, of base and sides; None for a conflict."""
    listings = [upstream.git("ls-tree", "-r", commit).decode() for commit in commits]
    base, one, other = (
        {row.partition("\t")[2]: row for row in listing.split("\n") if row} for listing in listings
    )
    merged = {}
    for path in {*base, *one, *other}:
        before, ours, theirs = (side.get(path) for side in (base, one, other))
        if before not in (ours, theirs) and ours != theirs:
            return None
        entry = theirs if ours == before else ours
        if entry is not None:
            merged[path] = entry
    if any(path.startswith(f"{above}/") for path in merged for above in merged):
        return None
    upstream.git("read-tree", "--empty")
    upstream.git("update-index", "--index-info", stdin="\n".join(merged.values()).encode() + b"\n")
    return upstream.git("write-tree").decode().strip()


@pytest.mark.slow
@pytest.mark.hypothesis  # by this mark `make faults` selects laws
@pytest.mark.skipif(git_version() < (2, 38), reason="git merge-tree --write-tree")
@pytest.mark.parametrize("renames", ["true", "false"])
@pytest.mark.parametrize("start", KINDS)
def test_law_the_result_of_two_changes_is_gits_or_flagged(
    upstream: Upstream, start: str, renames: str
) -> None:
    """Of a patch that knows no renames it may be that of a merge that knows none."""
    base, kinds = KINDS[start]
    old = upstream.commit({"keep": "kept\n", **base})
    sides = {
        name: upstream.commit(change, name, branch=name.replace(" ", "-"), parents=(old,))
        for name, change in kinds.items()
    }
    form = ("-M", "--no-rename-empty") if renames == "true" else ("--no-renames",)
    step = 1 if SHARE >= 1 else 4
    wrong, agreed = [], 0
    for number, (own, commit) in enumerate(sides.items()):
        diff = ("diff-tree", "-p", "--full-index", "--binary", *form)
        patch = upstream.git(*diff, old, commit)
        for theirs, new in islice(sides.items(), number % step, None, step):
            report = _carry(upstream, old, new, patch)
            (outcome,) = report.outcomes
            if outcome.status.fails or outcome.review:
                continue
            trees = {_merged_by_git(upstream, new, commit)}
            if renames == "false":
                trees.add(_merged_path_by_path(upstream, old, new, commit))
            agreed += report.stack.tree in trees
            if report.stack.tree not in trees:
                wrong.append(f"upstream: {theirs}; patch: {own}: {outcome.status.value}")
    assert wrong == []
    assert agreed > 0
