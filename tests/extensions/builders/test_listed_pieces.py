"""Lists in conandata.yml and source.json: an edit changes what it is about, and no other byte."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256, sha512
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.manifest.values import LocalSeries, Location
from patchkit.model.series_file import Series
from patchkit.stack.patch_lists import parse_list
from tests.support.laws import share

CONAN = b"""\
sources:
  "1.2.3":  # the newest
    url: "https://example.com/demo-1.2.3.tar.gz"
    sha256: "00"
patches:
  "1.2.3":
    # first of all
    - patch_file: "patches/0001-one.patch"
      patch_description: "patches/0001-one.patch: shout, loudly"
      patch_type: "portability"

    # about two
    - base_path: "source_subfolder"
      patch_file: "patches/1.2/0002-two.patch"  # for a while
    - patch_file: patches/three.diff
  "1.2.2":
    - patch_file: "patches/0001-one.patch"
    - patch_file: 'patches/old.patch'
"""
BAZEL = b"""\
{
    "integrity": "sha256-Tcy/0iwN7xZMj0dFi9UODHFI89kgAs20WcKpamhJgkE=",
    "patch_strip": 1,
    "patches": {
        "one.patch": "sha256-g3+zmGs0YT2HKOVevZpN0Jet89Ylw90Cp9XsIAY8QqU=",
        "two.patch":   "sha512-O40qBUgKoP6aKLbgZRQhnd0h383YQAQG7up2zZHZ888=",
        "three.patch": "sha256-O40qBUgKoP6aKLbgZRQhnd0h383YQAQG7up2zZHZ888="
    },
    "url": "https://example.com/demo-1.2.3.tar.gz", "unknown": [1, {"patches": "no"}]
}
"""


def conan(data: bytes, target: str = "1.2.3") -> Series:
    where = Location(Path("m.yaml"), 1)
    return parse_list(data, LocalSeries("r/conandata.yml", where, target=target))


def bazel(data: bytes) -> Series:
    return parse_list(data, LocalSeries("r/source.json", Location(Path("m.yaml"), 1)))


def taken(data: bytes, target: str = "1.2.3") -> list[str]:
    """The files that Conan takes for a version."""
    entries = yaml.safe_load(data)["patches"][target]
    return [each["patch_file"] for each in entries]


def test_names_start_from_the_folder_of_patches() -> None:
    series = conan(CONAN)
    assert series.names == ("0001-one.patch", "1.2/0002-two.patch", "three.diff")
    assert [each.line for each in series.entries] == [8, 14, 15]
    assert series.others == {"0001-one.patch": "1.2.2", "old.patch": "1.2.2"}
    assert bazel(BAZEL).names == ("one.patch", "two.patch", "three.patch")
    assert [(each.line, each.strip) for each in bazel(BAZEL).entries] == [(5, 1), (6, 1), (7, 1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.rstrip(b"\n"),
        lambda data: b"\xef\xbb\xbf" + data,
    ],
)
def test_what_is_read_is_written_again(change: object) -> None:
    assert callable(change)
    for parse, data in ((conan, CONAN), (bazel, BAZEL)):
        assert parse(change(data)).data == change(data)


def test_one_line_of_json_is_a_list_too() -> None:
    data = b'{"patches":{"a.patch":"sha256-x","b.patch":"sha256-y"},"patch_strip":0}'
    series = bazel(data)
    assert (series.data, series.names) == (data, ("a.patch", "b.patch"))
    more = series.append("c,d.patch").remove("b.patch")
    assert more.data == data.replace(b'"b.patch":"sha256-y"', b'"c,d.patch": ""')


def test_a_patch_moves_with_its_fields_and_comment() -> None:
    series = conan(CONAN).arrange(["1.2/0002-two.patch", "0001-one.patch", "three.diff"])
    lines = CONAN.splitlines(keepends=True)
    first, second = lines[6:10], lines[11:14]
    assert series.data == b"".join([*lines[:6], *second, lines[10], *first, *lines[14:]])


def test_a_new_patch_is_written_as_its_neighbours_are() -> None:
    added = conan(CONAN).append("1.2/0003-more.patch")
    line = b'    - patch_file: "patches/1.2/0003-more.patch"\n'
    at = CONAN.index(b'  "1.2.2":')
    assert added.data == CONAN[:at] + line + CONAN[at:]
    dropped = added.remove("0001-one.patch")
    assert taken(dropped.data)[-1] == "patches/1.2/0003-more.patch"
    assert taken(dropped.data, "1.2.2") == taken(CONAN, "1.2.2")
    ended = CONAN.replace(b"\n", b"\r\n")
    assert conan(ended).append("x.patch").data.count(b"\r\n") == ended.count(b"\r\n") + 1


def test_a_rename_leaves_words_that_are_alike() -> None:
    renamed = conan(CONAN).rename("0001-one.patch", "loud.patch")
    assert renamed.data == CONAN.replace(b'"patches/0001-one.patch"', b'"patches/loud.patch"', 1)


def test_commas_and_hashes_follow() -> None:
    series = bazel(BAZEL).remove("three.patch").append("new.patch").with_bytes("new.patch", b"x")
    value = "sha256-" + b64encode(sha256(b"x").digest()).decode()
    old = b'"three.patch": "sha256-O40qBUgKoP6aKLbgZRQhnd0h383YQAQG7up2zZHZ888="'
    assert series.data == BAZEL.replace(old, f'"new.patch": "{value}"'.encode())
    other = bazel(BAZEL).with_bytes("two.patch", b"y")
    value = "sha512-" + b64encode(sha512(b"y").digest()).decode()
    assert json.loads(other.data)["patches"]["two.patch"] == value
    problem = other.objection("two.patch", b"z")
    assert problem is not None
    assert value in problem.what
    assert other.objection("two.patch", b"y") is None


@pytest.mark.parametrize("empty", [b"{}", b"{\n    }"])
def test_an_empty_object_takes_patches(empty: bytes) -> None:
    data = b'{\n    "patches": ' + empty + b',\n    "url": ""\n}\n'
    series = bazel(data)
    assert series.data == data
    both = series.append("a.patch").append("b.patch").with_bytes("a.patch", b"")
    assert json.loads(both.data)["patches"].keys() == {"a.patch", "b.patch"}


WRONG = {
    "no list": (conan, b"sources: {}\n", "r/conandata.yml:1: no list of patches"),
    "no version": (
        conan,
        b"patches:\n  '9':\n    - patch_file: patches/a.patch\n",
        "r/conandata.yml:2: no version 1.2.3",
    ),
    "elsewhere": (
        conan,
        b"patches:\n  - patch_file: ../a.patch\n",
        "r/conandata.yml:2: no patch of the recipe's own",
    ),
    "name": (
        conan,
        b"patches:\n  - patch_file: patches/../a.patch\n",
        "r/conandata.yml:2: ../a.patch leaves the folder of the series",
    ),
    "twice": (
        bazel,
        b'{"patches": {"a.patch": "",\n"A.patch": ""}}',
        "r/source.json:2: A.patch is in line 1 already",
    ),
    "escapes": (bazel, b'{"patches": {"\\u0061.patch": ""}}', "'a.patch' is written with escapes"),
    "strip": (bazel, b'{"patches": {}, "patch_strip": "x"}', "patch_strip is no number"),
    "a list": (bazel, b'{"patches": ["a.patch"]}', "r/source.json:1: patches is no mapping"),
    "no mapping": (bazel, b"[]", "r/source.json:1: lists no patches"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_understood_is_said_at_its_line(case: str) -> None:
    parse, data, message = WRONG[case]
    with pytest.raises(BadInputError) as raised:
        parse(data)
    assert message in f"{raised.value.problems[0].where}: {raised.value.problems[0].what}"


def test_what_a_list_cannot_say_is_refused() -> None:
    with pytest.raises(BadInputError, match="no patch would be left"):
        conan(CONAN, "1.2.2").arrange([])
    with pytest.raises(BadInputError, match="no patches to add to"):
        bazel(b'{"url": ""}').append("a.patch")
    with pytest.raises(BadInputError, match="all are taken with -p1 there"):
        bazel(BAZEL).with_strip("one.patch", 2)
    with pytest.raises(BadInputError, match="needs -p2"):
        conan(CONAN).with_strip("three.diff", 2)


ORDERS = st.permutations(["p1.patch", "p2.patch", "p3.patch", "x/new.patch", "other.patch"])


@settings(max_examples=share(300))
@given(ORDERS, st.integers(1, 5), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_any_order_is_what_the_other_tool_reads(
    order: list[str], count: int, end: bytes, one_line: bool
) -> None:
    """Arranged at will: what their own reader gives is asked for, and other values stay."""
    before = {f"p{number}.patch": f"sha256-{number}" for number in (1, 2, 3)}
    text = json.dumps({"a": 1, "patches": before, "z": [2]}, indent=None if one_line else 2)
    wanted = order[:count]
    after = bazel(text.encode().replace(b"\n", end)).arrange(wanted).data
    read = json.loads(after)
    assert (list(read["patches"]), read["a"], read["z"]) == (wanted, 1, [2])
    assert {n: v for n, v in read["patches"].items() if n in before} == {
        n: v for n, v in before.items() if n in wanted
    }
    blocks = "".join(f"    - patch_file: patches/{n}\n      is: {n}\n" for n in before)
    data = f"patches:\n  '1.2.3':\n{blocks}  '2':\n{blocks}# end\n".encode().replace(b"\n", end)
    new = conan(data).arrange(wanted).data
    assert taken(new) == [f"patches/{name}" for name in wanted]
    assert yaml.safe_load(new)["patches"]["2"] == yaml.safe_load(data)["patches"]["2"]
    assert new.endswith(b"# end" + end)
    fields = {e["patch_file"]: e.get("is") for e in yaml.safe_load(new)["patches"]["1.2.3"]}
    assert fields == {f"patches/{n}": n if n in before else None for n in wanted}
