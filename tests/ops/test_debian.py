"""debian/patches as it is: names in folders and of any ending, -p0, empty patches, DEP-3."""

from __future__ import annotations

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.support.stacked import lines

_SERIES = """\
# from upstream
upstream/5-fix.diff
# ours
seven -p0 # no prefix
0003-empty.patch
04_nothing.dpatch
"""
_HEADER = b"""\
Description: Say five
 The reason is told below the subject.
Author: Jo Doe <jo@example.org>
Forwarded: not-needed
Last-Update: 2024-01-02

---
"""


@pytest.mark.slow
def test_a_debian_series_in_place(project: Project, upstream: Upstream) -> None:
    base = {"a.c": lines(), "src/c.c": lines()}
    five = make_patch(base, {"a.c": lines({5: "five\n"})}, subject=None)
    seven = make_patch(base, {"src/c.c": lines({7: "seven\n"})}, subject=None)
    folder = "debian/patches"
    project.write(
        {
            f"{folder}/series": _SERIES,
            f"{folder}/upstream/5-fix.diff": _HEADER + five,
            f"{folder}/seven": seven.replace(b" a/", b" ").replace(b" b/", b" "),
            f"{folder}/0003-empty.patch": "Description: Nothing\nAuthor: Jo <jo@example.org>\n",
            f"{folder}/04_nothing.dpatch": "",
        }
    )
    project.component("pkg", upstream, base, [{"series": f"{folder}/series"}])
    before = project.files("debian")
    project.prepare("apply").ok()
    assert (project.checkout("pkg") / "src/c.c").read_text() == lines({7: "seven\n"})
    project.run("refresh").ok()
    assert project.files("debian") == before
    checked = project.run("check").out
    assert "5-fix.diff:1" not in checked, "a DEP-3 header says who and why"
    assert "04_nothing.dpatch\n    changes no file" in checked

    file = project.checkout("pkg") / "a.c"
    file.write_text(file.read_text().replace("five", "FIVE"))
    project.run("refresh").ok()
    after = project.files("debian")
    changed = [name for name in before if after.get(name) != before[name]]
    assert changed == [f"{folder}/upstream/5-fix.diff"]
    assert after.keys() == before.keys()
    assert after[changed[0]].startswith(_HEADER)
    new = upstream.commit({"a.c": "first\n" + lines()})
    project.run("bump", "pkg", "--to", new).ok()
    assert project.files("debian").keys() == before.keys()
    assert project.files("debian")[f"{folder}/series"] == _SERIES.encode()
    project.prepare("apply").ok()
