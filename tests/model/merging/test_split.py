"""Edits of a file that upstream took apart."""

from __future__ import annotations

import pytest

from patchkit.model.merging.moved import merge_split

ONE = "".join(f"    one_{number} = call({number})\n" for number in range(4))
TWO = "".join(f"    two_{number} = call({number})\n" for number in range(4))
BASE = f"def one():\n{ONE}\n\ndef two():\n{TWO}"
OWN = BASE.replace("    one_2", "    own_1 = 1\n    one_2").replace(
    "    two_3", "    own_2 = 2\n    two_3"
)
PARTS = {"one.py": f"def one():\n{ONE}", "two.py": f"import x\n\n\ndef two():\n{TWO}"}


def split(
    candidates: dict[str, str], base: str = BASE, patch: str = OWN
) -> tuple[dict[str, str], tuple[str, ...]] | None:
    encoded = {path: text.encode() for path, text in candidates.items()}
    merge = merge_split(base.encode(), patch.encode(), encoded)
    if merge is None:
        return None
    return {path: data.decode() for path, data in merge.files.items()}, merge.names


def test_each_edit_goes_where_its_surroundings_are() -> None:
    assert split({**PARTS, "more.py": "x = 1\n"}) == (
        {
            "one.py": PARTS["one.py"].replace("    one_2", "    own_1 = 1\n    one_2"),
            "two.py": PARTS["two.py"].replace("    two_3", "    own_2 = 2\n    two_3"),
        },
        (),
    )


def test_names_that_the_part_does_not_have_are_told() -> None:
    patch = BASE.replace("    one_2", "    one_2 = two_1\n    one_2")
    found = split(PARTS, patch=patch)
    assert found is not None
    assert found[1] == ("two_1",)


@pytest.mark.parametrize(
    "candidates",
    [
        {},
        {"one.py": PARTS["one.py"]},  # no place for the second
        {**PARTS, "again.py": PARTS["one.py"]},  # two places
        {**PARTS, "two.py": PARTS["two.py"] + "\0"},
        {**PARTS, "one.py": PARTS["one.py"].replace("    ", "\t")},  # not to be indented so
    ],
)
def test_an_edit_without_one_place_is_a_conflict(candidates: dict[str, str]) -> None:
    assert split(candidates) is None


def test_a_part_that_would_not_parse_is_none() -> None:
    assert split(PARTS, patch=OWN.replace("own_1 = 1", "own_1 = (")) is None
    text = {path.replace(".py", ".txt"): data for path, data in PARTS.items()}
    assert split(text, patch=OWN.replace("own_1 = 1", "own_1 = (")) is not None


def test_binary_files_and_no_edits_are_none() -> None:
    assert split(PARTS, base=BASE + "\0") is None
    assert split(PARTS, patch=BASE) is None
