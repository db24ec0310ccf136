"""Laws of the verbs on a series, over random patches that overlap and random verbs in a row."""

from __future__ import annotations

import itertools
import random
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.ops.test_series_edits import agrees, subjects, worktree
from tests.support.laws import share
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, git_in, make_patch

pytestmark = pytest.mark.slow

#: Where each patch edits a file of so few lines that patches meet often.
_EDIT = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 7), st.sampled_from("=+-"))
_PATCHES = st.lists(st.lists(_EDIT, min_size=1, max_size=3), min_size=3, max_size=5)
_LEFT_THE_FILES = ("edit", "rename", "move", "fold", "split")


def _states(patches: list[list[tuple[str, int, str]]]) -> list[Files]:
    """The files before the first patch and after each."""
    now = {name: [f"{name} {number}\n" for number in range(8)] for name in "ab"}
    states: list[Files] = [{name: "".join(rows) for name, rows in now.items()}]
    for number, edits in enumerate(patches):
        for name, line, how in edits:
            rows = now[name]
            at = min(line, len(rows) - 1)
            text = f"patch {number} at {line}\n"
            if how == "=" or len(rows) < 3:
                rows[at] = text
            elif how == "+":
                rows.insert(at, text)
            else:
                del rows[at]
        states.append({name: "".join(rows) for name, rows in now.items()})
    return states


def _series(names: list[str]) -> str:
    rows = [f"# above {name}\n{name} # beside {name}\n\n" for name in names]
    return "# the first line\n\n" + "".join(rows) + "# the last line\n"


def _listed(project: Project) -> list[str]:
    text = project.read("patches/demo/series")
    return [row.split()[0] for row in text.splitlines() if row and row[0] != "#"]


def _verb(
    project: Project, chance: random.Random, number: int, names: list[str]
) -> tuple[str, ...]:
    """A verb that the project's series may take, with what it needs."""
    one, other = chance.choice(names), chance.choice(names)
    verb = chance.choice(["edit", "rename", "drop", "move", "move", "fold", "fold", "split"])
    return {
        "edit": ("edit", one, "--message", f"Words {number}\n\nA reason."),
        "rename": ("edit", one, "--name", f"name-{number}"),
        "drop": ("drop", one),
        "move": ("move", one, "--to", str(chance.randint(1, len(names)))),
        "fold": ("fold", one, "--to", other),
        "split": ("split", one, "--new", f"part-{number}", "--file", f"{chance.choice('ab')}:1"),
    }[verb]


def _comments(project: Project) -> list[str]:
    text = project.read("patches/demo/series")
    return sorted(re.findall(r"# .*", text))


@settings(max_examples=share(6), phases=[Phase.explicit, Phase.generate])
@given(patches=_PATCHES, seed=st.integers(0, 2**16))
def test_every_verb_keeps_files_and_comments_and_is_undone(
    patches: list[list[tuple[str, int, str]]], seed: int
) -> None:
    """All but drop leave the last tree as it is; a refusal changes nothing; all can be undone."""
    states = _states(patches)
    pairs = [(n, b, a) for n, (b, a) in enumerate(itertools.pairwise(states)) if a != b]
    if not pairs:
        return
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.create(Path(folder) / "upstream.git")
        project = Project(Path(folder) / "project")
        made = {
            f"p{n}.patch": make_patch(before, after, subject=f"Patch {n}", body="For a law.")
            for n, before, after in pairs
        }
        project.component("demo", upstream, states[0], made)
        project.write({"patches/demo/series": _series([*made])})
        project.run("apply").ok()
        chance = random.Random(seed)
        for number in range(6):
            _one_verb(project, chance, number)
            if not subjects(project):
                return


def _one_verb(project: Project, chance: random.Random, number: int) -> None:
    argv = _verb(project, chance, number, _listed(project))
    before, files, tip = project.product, worktree(project), subjects(project)
    comments = _comments(project)
    ran = project.run(*argv)
    assert ran.code in (0, 1, 2), ran
    if ran.code != 0:
        assert (project.product, worktree(project), subjects(project)) == (before, files, tip)
        project.git("reset", "-q")
        return
    if argv[0] in _LEFT_THE_FILES:
        assert worktree(project) == files, argv
    gone = {argv[1]} if argv[0] in ("drop", "fold") else set()
    lost = {each for each in comments if each not in _comments(project)}
    assert lost <= {f"# beside {name}" for name in gone}, argv
    agrees(project)
    if project.product != before and chance.random() < 0.4:
        project.run("undo").ok()
        assert (project.product, worktree(project), subjects(project)) == (before, files, tip)


@settings(max_examples=share(8), phases=[Phase.explicit, Phase.generate])
@given(patches=_PATCHES, step=st.sampled_from([1, 1, 10]), seed=st.integers(0, 2**16))
def test_after_every_verb_git_am_takes_an_ordered_folder(
    patches: list[list[tuple[str, int, str]]], step: int, seed: int
) -> None:
    """`git am FOLDER/*` gives the checkout's tree; without --canonical no other number changes."""
    states = _states(patches)
    pairs = [(n, b, a) for n, (b, a) in enumerate(itertools.pairwise(states), 1) if a != b]
    if not pairs:
        return
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.create(Path(folder) / "upstream.git")
        project = Project(Path(folder) / "project")
        made = {
            f"here/{n * step:04}-p{n}.patch": make_patch(before, after, subject=f"Patch {n}")
            for n, before, after in pairs
        }
        project.write(made)
        project.component("demo", upstream, states[0], [{"folder": "here", "order": "name"}])
        project.run("apply").ok()
        chance = random.Random(seed)
        for number in range(5):
            _verb_on_folder(project, chance, number)
            if not subjects(project):
                return


def _verb_on_folder(project: Project, chance: random.Random, number: int) -> None:
    files = project.files("here")
    names = [path.rpartition("/")[2] for path in sorted(files)]
    argv = _verb(project, chance, number, names)
    anew = argv[0] in ("move", "split") and chance.random() < 0.4
    before, tip = project.product, subjects(project)
    ran = project.run(*argv, *["--canonical"] * anew)
    assert ran.code in (0, 1, 2, 4), ran
    if ran.code != 0:
        assert (project.product, subjects(project)) == (before, tip)
        assert ran.code != 4 or "no number is free" in ran.err, ran
        project.git("reset", "-q")
        return
    gone = files.keys() - project.files("here").keys()
    named = {"drop": 1, "fold": 1, "rename": 1, "edit": 1, "move": 1}.get(argv[0], 0)
    assert anew or len(gone) <= named, (argv, gone)
    agrees(project)
    own = project.root.parent / f"own-{number}"
    git_in(project.root, "clone", "-q", str(project.checkout("demo")), str(own))
    git_in(own, "fetch", "-q", "origin", "refs/patchkit/base")
    git_in(own, "checkout", "-q", "FETCH_HEAD")
    paths = [str(project.root / path) for path in sorted(project.files("here"))]
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    if paths:
        git_in(own, *who, "am", "-q", *paths)
    assert git_in(own, "rev-parse", "HEAD^{tree}") == project.git("rev-parse", "HEAD^{tree}")
