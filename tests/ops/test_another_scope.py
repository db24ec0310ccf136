"""Lines that fit in another class or function than the one they were made in: nobody says ok."""

from __future__ import annotations

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

HEAD = '"""Several of one kind."""\n\n\n'


def a_class(name: str, limit: int = 100) -> str:
    """A class of the same lines as the others."""
    return (
        f"class {name}:\n    def __init__(self, size):\n        self.size = size\n"
        f"        self.name = ''\n        self.parts = []\n        self.known = {{}}\n"
        f"        self.limit = {limit}\n        self.open = True\n\n"
        f"    def grow(self):\n        return self.size + 1\n\n\n"
    )


def a_file(*classes: str) -> str:
    return HEAD + "".join(classes)


#: Alpha is no twin of the others: the lines that the patch needs stand once.
ALPHA = "class Alpha:\n    kind = 1\n\n\n"
OLD = a_file(ALPHA, a_class("Beta"))
PATCHED = a_file(ALPHA, a_class("Beta", 200))
PATCH = make_patch({"a.py": OLD}, {"a.py": PATCHED}, subject="Let Beta hold more", body="It does.")
#: What upstream may come to have.
NEW = {
    "behind": a_file(ALPHA, "class Gamma:\n    kind = 3\n\n\n", a_class("Zeta")),
    "in-front": a_file(a_class("Zeta"), ALPHA),
    "in-place": a_file(ALPHA, a_class("Zeta")),
}


@pytest.fixture(params=list(NEW))
def moved(request: pytest.FixtureRequest, project: Project, upstream: Upstream) -> Project:
    """A patch for Beta; upstream takes Beta away and has Zeta, with the same lines."""
    assert b"class Beta" in PATCH.split(b"@@")[2].split(b"\n")[0]
    project.component("demo", upstream, {"a.py": OLD}, {"more.patch": PATCH}, track="main")
    upstream.commit({"a.py": NEW[request.param]}, "Have Zeta for Beta")
    return project


def test_a_bump_asks_for_a_look(moved: Project) -> None:
    """With the strict option it is a conflict; a plan counts it."""
    said = "lands in Zeta.__init__ (line "
    argv = ("bump", "demo", "--to", "main", "--dry-run")
    (patch,) = moved.run(*argv, "--json").ok().component["patches"]
    (file,) = patch["files"]
    assert (file["review"], file["certainty"]) == (True, "look")
    (reason,) = [each for each in file["reasons"] if each.startswith(said)]
    assert reason.endswith("), was made in Beta.__init__: see that it belongs there")
    moved.run(*argv, "--no-fuzz").ends(3).shows(said)
    moved.run("plan", "demo").ok().shows("1 to look at")


def test_a_check_at_another_pin_finds_it(moved: Project, upstream: Upstream) -> None:
    """The patch alone tells: git wrote the class behind its @@."""
    moved.repin(upstream.at("main"))
    said = "a.py: hunk 1 lands in Zeta.__init__, was made in Beta"
    moved.run("check").ok().shows(said)
    moved.run("check", "--strict").ends(1).shows(said)
    moved.run("ci").shows(said)
