"""The same archive gives the same base, on every machine and for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from patchkit.gitcmd.repository import init_repository
from patchkit.upstream.archive import commit_archive
from tests.support.archives import Content, make_tar, make_zip
from tests.support.repos import Symlink, executable, tree_files

FILES: Mapping[str, Content] = {
    "demo-1.0/a.txt": "text\n",
    "demo-1.0/bin/run": executable("#!/bin/sh\n"),
    "demo-1.0/bin/link": Symlink("../a.txt"),
    "demo-1.0/bin.txt": "sorts before the folder\n",
    "demo-1.0/deep/er/still/x": "1",
}

# Of patches, locks and reports: if this changes, raise UNPACKING in upstream/fetching.py.
BASE = "e6660f487ba656ebe165d95f2e8567efe3da5757"


@pytest.mark.parametrize("make", [make_tar, make_zip])
def test_the_base_never_changes(
    tmp_path: Path, make: Callable[[Mapping[str, Content]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    (Path.home() / ".gitconfig").write_text("[core]\n\tautocrlf = true\n\tfileMode = false\n")
    (tmp_path / "archive").write_bytes(make(FILES))
    repository = init_repository(tmp_path / "r.git")

    commit = commit_archive(tmp_path / "archive", "demo 1.0\n\nsha256: 123\n", repository)

    assert commit == BASE
    assert repository.git("fsck", "--strict", "--no-dangling").code == 0
    assert tree_files(repository.git_dir, commit)["deep/er/still/x"] == b"1"

    (tmp_path / "archive").write_bytes(make({}))
    empty = commit_archive(tmp_path / "archive", "nothing\n", repository)
    assert tree_files(repository.git_dir, empty) == {}
