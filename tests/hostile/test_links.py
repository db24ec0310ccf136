"""A file of the project that is a link out of it: refused by name, and nothing of it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream

pytestmark = pytest.mark.slow

_SECRET = "nothing-of-this-may-be-shown"
_COMMANDS = ("check", "apply", "status", "log", "show a.patch", "refresh", "check --only manifest")


@pytest.mark.parametrize("name", ["patches/app/a.patch", "patches/app/series"])
def test_a_link_out_of_the_project_is_refused(
    project: Project, upstream: Upstream, tmp_path: Path, name: str
) -> None:
    project.patched(
        upstream, {"a.txt": "one\ntwo\n"}, {"a.txt": "one\n2\n"}, name="app", patch="a.patch"
    )
    project.run("apply").ok()
    outside = tmp_path / "outside"
    outside.write_text(f"{_SECRET}\n")
    (project.root / name).unlink()
    (project.root / name).symlink_to(outside)
    for command in _COMMANDS:
        ran = project.run(*command.split())
        assert _SECRET not in ran.out + ran.err, command
        assert ran.code != 0, command
        assert name in ran.out + ran.err, command
        assert "leads out of the project" in ran.out + ran.err, command
