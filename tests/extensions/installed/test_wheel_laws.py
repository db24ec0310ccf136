"""Laws of `install` over generated wheels: one component as one to three of them, in folders
of their own and in shared ones.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.extensions.installed.wheels import contents, install, require_true
from tests.support.laws import share
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

pytestmark = pytest.mark.slow

#: Of a wheel: its top folder ("ns" is shared), how many files, and what happens to each.
_WHEEL = st.tuples(
    st.sampled_from(["own", "ns", "ns/deep"]),
    st.lists(st.sampled_from(["edit", "drop", "keep", "add", "edit"]), min_size=1, max_size=5),
)


def _layout(wheels: list[tuple[str, list[str]]]) -> tuple[Files, Files, list[dict[str, str]]]:
    """The upstream before and after the patch, and the files of each wheel as installed."""
    before: dict[str, str | None] = {"README.md": "one\n"}
    after: dict[str, str | None] = {"README.md": "two\n"}
    installed: list[dict[str, str]] = []
    for number, (top, fates) in enumerate(wheels):
        folder = f"own{number}" if top == "own" else top
        files = {f"{folder}/w{number}_stays.py": f"stays = {number}\n"}
        before[f"part{number}/{folder}/w{number}_stays.py"] = f"stays = {number}\n"
        after[f"part{number}/{folder}/w{number}_stays.py"] = f"stays = -{number}\n"
        for at, fate in enumerate(fates):
            path, text = f"{folder}/w{number}_{at}.py", f"x{at} = {number}\n"
            if fate != "add":
                before[f"part{number}/{path}"] = files[path] = text
            changed = {"drop": None, "keep": text}.get(fate, f"changed = {at}\n")
            after[f"part{number}/{path}"] = changed
        installed.append(files)
    return before, after, installed


def _looks(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in folder.rglob("*"):
        status = path.stat()
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid)
    return found


def _listed(record: Path) -> set[str]:
    return {row[0] for row in csv.reader(record.read_text().split("\n")) if row}


@settings(max_examples=share(30), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(wheels=st.lists(_WHEEL, min_size=1, max_size=3))
def test_each_record_is_true_of_its_own_files_and_of_no_others(
    wheels: list[tuple[str, list[str]]],
) -> None:
    """One wheel removed leaves the others whole; reversed, all is as before."""
    with tempfile.TemporaryDirectory() as place:
        _holds(Path(place), wheels)


def _holds(place: Path, wheels: list[tuple[str, list[str]]]) -> None:
    before, after, installed = _layout(wheels)
    project, upstream, site = Project(place / "p"), Upstream.create(place / "u"), place / "site"
    tops = {
        f"part{n}/{next(iter(f)).split('/')[0]}": next(iter(f)).split("/")[0]
        for n, f in enumerate(installed)
    }
    patches = {"one.patch": make_patch(before, after)}
    project.component("demo", upstream, upstream.commit(before), patches, layout=tops)
    records = [
        install(site, files, name=f"w{n}", compiled=n == 0) for n, files in enumerate(installed)
    ]
    for number, path in enumerate([site, *sorted(site.rglob("*"))]):
        if path.is_file():
            path.chmod((0o600, 0o640, 0o664, 0o755)[number % 4])
        if os.geteuid() == 0:
            os.chown(path, 1000 + number % 3 * path.is_file(), 2000)
    was, looked = contents(site), _looks(site)
    listed = [_listed(record) for record in records]
    project.run("install", str(site)).ok()
    for number, record in enumerate(records):
        require_true(record)
        now, part = _listed(record), f"part{number}/"
        gone = {p.removeprefix(part) for p in after if after[p] is None}
        code = {p for p in listed[number] if p.endswith(".pyc")} - {*contents(site)}
        assert now >= listed[number] - gone - code
        assert not now & gone
        assert all(path in now or path in contents(site) for path in now)
    every = [path for record in records for path in _listed(record)]
    assert len(every) == len(set(every)), "two wheels list one file"
    assert {p for p in contents(site) if not p.startswith(".patchkit/")} == set(every)
    _uninstalled_leaves_the_others(place, site, records)
    project.run("check", "--only", "installed", str(site), "-m", "demo").ok()
    project.run("install", str(site), "--reverse").ok()
    assert (contents(site), _looks(site)) == (was, looked)


def _uninstalled_leaves_the_others(place: Path, site: Path, records: list[Path]) -> None:
    for record in records:
        copy = place / f"without-{record.parent.name}"
        shutil.copytree(site, copy)
        for path in _listed(record):
            (copy / path).unlink()
        for other in records:
            if other != record:
                require_true(copy / other.relative_to(site))
