"""Small mistakes in patches, and what counts as noticing one; on a made-up project."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from simulate import __main__, mistakes, noticing, workspaces
from simulate.mistakes import Mistake, Owner
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch

OLD = {"tool.py": "import os\n\n\ndef size():\n    return 1\n" + "\n" * 9 + "NAME = 'a'\n"}
NEW = {
    "tool.py": """\
import os


def size(values, dim=0):
    \"\"\"A docstring is left alone.\"\"\"
    if values is not None and dim >= 0:
        total = os.path.join("npu", dim, values)
        return total[0], 1 + dim
    return 1
"""
    + "\n" * 9
    + "NAME = 'cuda'\n",
    "build.sh": "# a comment\nset -e\nmake\n",
}
PATCH = make_patch(OLD, NEW, subject="Give a size").decode()


def drawn(seed: int = 31) -> list[Mistake]:
    return list(mistakes.draws(seed, "patches/demo/one.patch", PATCH, NEW))


def test_the_seed_says_which() -> None:
    assert drawn() == drawn()
    assert drawn() != drawn(32)
    assert [each.draw for each in drawn()] == list(range(len(drawn())))
    assert {each.kind for each in drawn()} >= {
        *("forgotten hunk", "forgotten line", "swapped argument", "swapped elements"),
        *("off by one", "wrong condition", "wrong device", "wrong operator"),
    }


@pytest.mark.parametrize("mistake", drawn(), ids=lambda each: f"{each.draw}-{each.kind}")
def test_a_damaged_patch_is_a_patch(tmp_path: Path, mistake: Mistake) -> None:
    """git, which holds each hunk to its counts, applies it; what it makes parses, and differs."""
    for name, text in OLD.items():
        (tmp_path / name).write_text(text)
    damaged = mistakes.damaged(PATCH, mistake)
    (tmp_path / "damaged.patch").write_text(damaged)
    git_in(tmp_path, "apply", "damaged.patch")
    made = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name in NEW}
    assert made != NEW
    ast.parse(made["tool.py"])
    assert '"""A docstring' in made["tool.py"] or mistake.kind == "forgotten hunk"
    assert "# a comment" in made.get("build.sh", "# a comment")


def test_the_list_reads_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "list.tsv").write_text(mistakes.written(drawn()))
    assert mistakes.listed(tmp_path / "list.tsv") == tuple(drawn())


def test_every_row_is_of_a_shipped_patch(tmp_path: Path) -> None:
    """And none of one that changes nothing; git reads the damaged patches, which counts lines."""
    rows = mistakes.listed()
    assert len(rows) == len({each.name for each in rows}) == 60
    assert not {each.name for each in rows} & set(mistakes.SAME)
    for number, each in enumerate(rows):
        text = (workspaces.PROJECT / each.patch).read_text()
        (tmp_path / f"{number}.patch").write_text(mistakes.damaged(text, each))
        assert mistakes.damaged(text, each) != text
    git_in(tmp_path, "apply", "--numstat", *(f"{number}.patch" for number in range(60)))


TESTS: Mapping[str, str | bytes] = {
    "stack_tests/test_demo.py": """\
from pathlib import Path

PATCH = Path("patches/demo/one.patch").read_text()

def test_fails_in_any_case():
    assert False

def test_the_name():
    assert "+NAME = 'cuda'" in PATCH
"""
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "by"),
    [("NAME = 'cuda'", ["stack_tests/test_demo.py::test_the_name"]), ("    return 1", [])],
)
def test_what_fails_without_a_mistake_does_not_count(
    project: Project, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, line: str, by: list[str]
) -> None:
    old = {"tool.py": "SIZE = 1\n"}
    new = {"tool.py": "SIZE = 1\nNAME = 'cuda'\n\n\ndef size():\n    return 1\n"}
    patch = make_patch(old, new, subject="Give a size")
    project.component("demo", upstream, old, {"one.patch": patch})
    project.write(TESTS)
    git_in(project.root, "init", "-q")
    monkeypatch.setenv("PATCHKIT", str(Path(sys.executable).with_name("patchkit")))
    monkeypatch.setattr(workspaces, "PROJECT", project.root)
    monkeypatch.setattr(noticing, "ABOUT", {"demo": (("demo",), ())})
    noticing.failing_without.cache_clear()
    at = patch.decode().splitlines().index(f"+{line}") + 1
    becomes = line.replace("1", "2").replace("cuda", "npu")
    mistake = Mistake("patches/demo/one.patch", 0, "wrong", "tool.py", ((at, becomes),))
    assert noticing.noticed(mistake, Owner("demo", "demo"), only_tests=True) == by


def test_options_may_stand_before_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["list", "--quick", "megatron"]) == 0
    assert capsys.readouterr().out.startswith("megatron/tp1-fp32 ")
