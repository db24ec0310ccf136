"""From a patch to the recipe that makes it: found only if it regenerates the patch."""

from __future__ import annotations

import pytest

from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

MANY = (
    "import os\n\n\n@fuser\ndef f(x):\n    return x\n\n\n"
    "class A:\n    @fuser  # fast\n    def g(self): ...\n"
)
CALLS = "init(backend='nccl', size=2)\ngroup = new(ranks, backend='nccl')\nother = 'nccl'\n"


def induced(project: Project, upstream: Upstream, old: Files, new: Files, *argv: str) -> bytes:
    """What `recipe induce` prints for the change; the project is ready for refresh."""
    patch = make_patch(old, new, subject="Change it", body="For a reason.")
    project.component("demo", upstream, upstream.commit(old, "base"), {"x.patch": patch})
    project.run("refresh", "--canonical")
    return project.run("recipe", "induce", "x", *argv).ok().stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            {"src/a.py": MANY, "src/b/c.py": "@fuser\ndef h(): ...\n"},
            {
                "src/a.py": MANY.replace("@fuser\n", "").replace("    @fuser  # fast\n", ""),
                "src/b/c.py": "def h(): ...\n",
            },
            ["remove: lines", "src/**/*.py", "expect: 3", "pattern: fuser"],
        ),
        (
            {"a.py": CALLS},
            {"a.py": CALLS.replace("backend='nccl'", "backend=name()")},
            ["selector: keyword_argument", "fix: backend=name()", "expect: 2"],
        ),
        (
            {"a.py": "é = '€'\nx = old(1)\n"},
            {"a.py": "é = '€'\nx = new(1)\n"},
            ["pattern: old", "fix: new"],
        ),
        (
            {"Dockerfile": "FROM cuda\nRUN make\nFROM other\n"},
            {"Dockerfile": "FROM cann\nRUN make\nFROM other\n"},
            ["text:", "find: |", "FROM cann"],
        ),
        (
            {"run.txt": "a\nmake\nb\nmake\nc\n"},
            {"run.txt": "a\nmake\nb\nbuild\nc\n"},
            ["text:", "      b\n      make\n"],
        ),
    ],
    ids=["decorators", "keywords", "not-ascii", "text", "text-with-lines-around"],
)
def test_a_recipe_is_found_and_used(
    project: Project, upstream: Upstream, old: Files, new: Files, said: list[str]
) -> None:
    text = induced(project, upstream, old, new).decode()
    for each in said:
        assert each in text
    patch = project.root / "patches/demo/x.patch"
    diff = patch.read_bytes().partition(b"diff --git")[2]
    project.run("recipe", "induce", "x", "--write").ok()
    assert (project.root / "patches/demo/x.recipe.yml").read_text() == text
    assert b"\nFor a reason.\n\nRecipe: x.recipe.yml\n" in patch.read_bytes()
    assert patch.read_bytes().partition(b"diff --git")[2] == diff
    before = patch.read_bytes()
    project.run("apply", "--update-lock").ok()
    assert "unchanged" in project.run("refresh").ok().out
    assert patch.read_bytes() == before
    project.run("check").ok()


def test_the_other_places_stay_as_they_are(project: Project, upstream: Upstream) -> None:
    """One of two equal places changed: a rule on the piece alone would change both."""
    old = {"a.py": "f(x)\ng(y)\nf(x)\n"}
    patch = make_patch(old, {"a.py": "h(x)\ng(y)\nf(x)\n"}, subject="S", body="B")
    project.component("demo", upstream, upstream.commit(old, "base"), {"x.patch": patch})
    ran = project.run("recipe", "induce", "x")
    assert (ran.code, ran.out) == (1, "")
    assert "no rule changes a.py:1 and nothing else" in ran.err


def test_a_patch_of_two_kinds_names_what_is_no_rule(project: Project, upstream: Upstream) -> None:
    old = {"a.py": "@fuser\ndef f(): ...\n", "b.py": "x = 1\n"}
    new = {"a.py": "def f(): ...\n", "b.py": "x = 1\ny = 2\n"}
    project.component(
        "demo", upstream, upstream.commit(old, "base"), {"x.patch": make_patch(old, new)}
    )
    ran = project.run("recipe", "induce", "x")
    assert ran.code == 1
    assert "lines are added before b.py:2, and none replaced" in ran.err
    assert "a.py" not in ran.err


def test_a_whole_function_is_no_rule(project: Project, upstream: Upstream) -> None:
    """Only all of f tells its empty line from the others."""
    body = "".join(f"    x = {n}\n" for n in range(20))
    old = f"def f():\n{body}\n    return x\n\n\ndef g(): ...\n"
    new = old.replace("\n\n    return x", "\n    import os\n    return x")
    patch = make_patch({"a.py": old}, {"a.py": new})
    project.component("demo", upstream, upstream.commit({"a.py": old}, "base"), {"x.patch": patch})
    ran = project.run("recipe", "induce", "x")
    assert (ran.code, "no rule changes a.py:22 and nothing else" in ran.err) == (1, True)


def test_many_places_without_a_rule_are_counted(project: Project, upstream: Upstream) -> None:
    old = "".join(f"{n}\n" for n in range(60))
    new = "".join(f"{n}\n" + "more\n" * (n % 8 == 0) for n in range(60))
    old_files, new_files = {"a.txt": old}, {"a.txt": new}
    patch = make_patch(old_files, new_files)
    project.component("demo", upstream, upstream.commit(old_files, "base"), {"x.patch": patch})
    ran = project.run("recipe", "induce", "x")
    assert [line for line in ran.err.splitlines() if line.startswith("error")][5:] == [
        "error: and 3 more"
    ]


def test_no_such_patch(project: Project, upstream: Upstream) -> None:
    old = {"a.py": "x = 1\n"}
    project.component("demo", upstream, upstream.commit(old, "base"), {})
    ran = project.run("recipe", "induce", "y")
    assert (ran.code, "y.patch: no such patch of demo" in ran.err) == (2, True)


@pytest.mark.parametrize("place", ["", "---\n a.py | 2 +-\n\n"], ids=["plain", "with-stat"])
def test_the_trailer_goes_to_the_others(project: Project, upstream: Upstream, place: str) -> None:
    old, new = {"a.py": "x = old(1)\n"}, {"a.py": "x = new(1)\n"}
    head = b"Subject: S\n\nWhy.\n\nUpstream-Status: Pending\n" + (place or "\n").encode()
    diff = make_patch(old, new, subject=None)
    project.component("demo", upstream, upstream.commit(old, "base"), {"x.patch": head + diff})
    project.run("recipe", "induce", "x", "--write").ok()
    patch = (project.root / "patches/demo/x.patch").read_bytes()
    trailers = b"Upstream-Status: Pending\nRecipe: x.recipe.yml\n"
    assert patch == head.replace(b"Upstream-Status: Pending\n", trailers) + diff


def test_what_is_there_is_not_overwritten(project: Project, upstream: Upstream) -> None:
    old, new = {"a.py": "x = old(1)\n"}, {"a.py": "x = new(1)\n"}
    induced(project, upstream, old, new)
    project.write({"patches/demo/x.recipe.yml": "mine"})
    before = project.files("patches")
    ran = project.run("recipe", "induce", "x", "--write")
    assert (ran.code, "x.recipe.yml is there already" in ran.err) == (2, True)
    assert project.files("patches") == before
