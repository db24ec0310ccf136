"""The journal: what is written is read; what cannot be understood is not guessed at."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from patchkit.errors import SurroundingsError
from patchkit.model.objects import CommitId
from patchkit.workspace.contents import Contents
from patchkit.workspace.journal import Journal, MoveStep, journal_path, read_journal, write_journal
from patchkit.workspace.recover import put_folders_back
from tests.workspace.bench import Bench

JOURNAL = Journal(
    head=CommitId("1" * 40),
    branch=None,
    applied=None,
    base_before=None,
    index="2" * 40,
    base=CommitId("3" * 40),
    tip=CommitId("4" * 40),
    steps=(
        MoveStep("plain", Contents("file", "5" * 40), None),
        MoveStep("odd \udcff\n\u00e4", None, Contents("link", "6" * 40)),
    ),
    folders=("module",),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_journal(tmp_path) is None
    journal_path(tmp_path).parent.mkdir()
    write_journal(tmp_path, JOURNAL)
    assert read_journal(tmp_path) == JOURNAL


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"version": 1}', "damaged"),
        ('{"version": 1, "steps": [], "folders": [], "dropped": [], "odd": 1}', "damaged"),
        ('{"version": 1, "steps": [7], "folders": [], "dropped": []}', "damaged"),
        ('{"version": 2}', "of another"),
    ],
)
def test_another_is_refused(tmp_path: Path, text: str, said: str) -> None:
    journal_path(tmp_path).parent.mkdir()
    journal_path(tmp_path).write_text(text)
    with pytest.raises(SurroundingsError, match=said) as error:
        read_journal(tmp_path)
    assert error.value.problems[0].hint


def test_a_file_in_the_place_of_a_submodule_stays_on_the_way_back(bench: Bench) -> None:
    bench.write("mine", "a file\n")
    journal = replace(JOURNAL, dropped=("mine", "mine/too", "vendor/module"))
    put_folders_back(bench.checkout, journal)
    assert (bench.path / "mine").read_text() == "a file\n"
    assert (bench.path / "vendor/module").is_dir()
