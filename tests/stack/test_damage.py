"""Patches damaged on their way: what is mended gives the tree that the whole patch gives, or it is
refused; never another tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from itertools import combinations, product

import pytest

from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import TreeView
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId, TreeId
from patchkit.stack.build import Base, SeriesPatch, build_stack
from patchkit.stack.damage import PatchRepair, repair_patch
from tests.support.repos import Files, Upstream, make_patch

_CODE = """\
def load(path, *, strict=True):
    if not path:
        raise ValueError("no path & no name")

    with open(path) as file:
        for line in file:
            yield line.strip()

    return


def main():
    print("<main>")
    return 0
"""
_MAKE = "all: one two\n\t@echo done\n\nset:\n\tif test -n x; then \\\n\t\techo y; \\\n\tfi\n"
_LIST = "# a list\nitems:\n- one\n- two\n+ three\n- four\n\n- five\n  - six\n"
BASE: Files = {
    "src/load.py": _CODE,
    "Makefile": _MAKE,
    "list.yml": _LIST,
    "page.html": "<p>A &amp; B</p>\n<p>&nbsp;</p>\n<p>C</p>\n",
    "dos.bat": "echo one\r\necho two\r\necho three\r\necho four\r\n",
    "last": "no newline\nat its end",
}
#: What patches make of it.
CHANGES: dict[str, Files] = {
    "code": {
        "src/load.py": _CODE.replace("for line", "for number, line").replace(
            "    return\n", "    if strict:\n        check(path, a < b)\n"
        )
    },
    "tabs": {"Makefile": _MAKE.replace("\t\techo y; \\\n", "\t\techo y; \\\n\t\techo z; \\\n")},
    "list": {"list.yml": _LIST.replace("- two\n", "").replace("- five\n", "- 5\n- 6\n")},
    "page": {
        "page.html": "<p>A &amp; B</p>\n<p>&nbsp;&lt;</p>\n<p>C</p>\n<b>\N{NO-BREAK SPACE}</b>\n"
    },
    "dos": {"dos.bat": "echo one\r\necho 2\r\necho three\r\necho four\r\n"},
    "taken off": {"src/load.py": _CODE.replace("    return\n\n\n", "\n")},
    "new": {"new.py": "import os\n\nprint(os)\n", "last": "no newline\n"},
}


def _unmarked(data: bytes, *, all_lines: bool) -> bytes:
    """The context lines of hunks without their space: all, or the empty ones."""
    start, rest = data.partition(b"\n@@")[0], data[len(data.partition(b"\n@@")[0]) :]
    return start + (re.sub(rb"\n ", b"\n", rest) if all_lines else rest.replace(b"\n \n", b"\n\n"))


def _miscounted(data: bytes) -> bytes:
    return re.sub(rb"@@ -(\d+),(\d)", lambda m: b"@@ -%b,%d" % (m[1], int(m[2]) + 1), data)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "last newline": lambda data: data.removesuffix(b"\n"),
    "counts": _miscounted,
    "empty lines": lambda data: _unmarked(data, all_lines=False),
    "spaces": lambda data: _unmarked(data, all_lines=True),
    "mail": lambda data: data.replace(b"\n", b"\r\n"),
    "entities": lambda data: escape(data.decode(), quote=False).encode(),
    "quoted": lambda data: escape(data.decode()).encode(),
    "indentation": lambda data: re.sub(rb"^(?=.)", b"    ", data, flags=re.MULTILINE),
    "tabs": lambda data: data.expandtabs(8),
    "narrow tabs": lambda data: data.replace(b"\t", b"    "),
    "no-break": lambda data: data.replace(b" ", "\N{NO-BREAK SPACE}".encode()),
    "trimmed": lambda data: re.sub(rb"[ \t]+$", b"", data, flags=re.MULTILINE),
}
#: With the whole ids of git, and with none, as from another tool.
FORMS: dict[str, Callable[[bytes], bytes]] = {
    "git": lambda data: data,
    "plain": lambda data: re.sub(rb"^index .*\n", b"", data, flags=re.MULTILINE),
}


class Ground:
    """The upstream that the patches are for."""

    def __init__(self, upstream: Upstream) -> None:
        commit = upstream.commit(BASE)
        self.base = Base(CommitId(commit), TreeId(upstream.tree(commit)), "1700000060 +0000")
        self.repository = Repository(upstream.path)

    def tree(self, data: bytes) -> str | None:
        """The tree that a patch gives."""
        patch = SeriesPatch("x.patch", parse_patch(data, name="x"))
        with reading(self.repository) as reader:
            stack = build_stack(reader, self.base, [patch])
        return stack.tree if stack.clean and stack.outcomes[0].commit else None

    def repair(self, data: bytes) -> PatchRepair | None:
        with reading(self.repository) as reader:
            return repair_patch(data, TreeView(reader, self.base.tree), "x.patch", 1, "")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(Upstream.create(tmp_path_factory.mktemp("damage") / "r.git"))


#: What is always mended where there are blob ids, to the byte.
CERTAIN = [
    *product(["code"], ["last newline", "counts", "spaces", "mail", "entities", "quoted"]),
    *product(["code", "tabs", "dos", "new"], ["indentation", "no-break"]),
    *product(["tabs"], ["tabs", "narrow tabs"]),
]


@pytest.mark.parametrize(("change", "kind"), CERTAIN)
def test_what_one_kind_of_damage_did_is_undone(ground: Ground, change: str, kind: str) -> None:
    whole = make_patch(BASE, CHANGES[change])
    damaged = DAMAGES[kind](whole)
    repair = ground.repair(damaged)
    assert repair is not None and repair.problem is None
    assert damaged != whole == repair.data


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_mended_gives_the_tree_of_the_whole_patch(
    ground: Ground, change: str, form: str
) -> None:
    """Of each kind of damage, and of each two: else it is refused."""
    whole = FORMS[form](make_patch(BASE, CHANGES[change]))
    wanted = ground.tree(whole)
    assert wanted is not None
    asked = ground.repair(whole)
    assert asked is None or asked.problem is not None  # U+00A0 that nobody can tell from a space
    for kinds in [*((kind,) for kind in DAMAGES), *combinations(DAMAGES, 2)]:
        damaged = whole
        for kind in kinds:
            damaged = DAMAGES[kind](damaged)
        repair = ground.repair(damaged)
        if repair is not None and repair.problem is None:
            assert ground.tree(repair.data) == wanted, (kinds, repair.mends)
