"""Lists of builders where they stand: what their own tool reads is what is read here, and an edit
changes what it is about, and no other byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.extensions.builders.recipe_lists import recipe_lines
from patchkit.extensions.builders.spec_lists import spec_lines
from patchkit.manifest.values import LocalSeries, Location
from patchkit.model.series_file import Series
from patchkit.stack.patch_lists import parse_list
from tests.support.laws import share
from tests.support.projects import write_files


def read(text: str, name: str) -> Series:
    return parse_list(text.encode(), LocalSeries(name, Location(Path("m.yaml"), 1)))


def recipe(text: str, name: str = "foo_1.2.bb") -> Series:
    return read(text, name)


def names(found: Series) -> list[tuple[str, int | None]]:
    return [(each.name, each.strip) for each in found.entries]


def left(found: Series) -> list[str]:
    notes = (*found.left_out, *found.unusable)
    return [f"{each.where}: {each.what.removeprefix('left out: ')}" for each in notes]


def test_a_recipe_lists_its_patches_in_order() -> None:
    found = recipe("""\
SUMMARY = "A thing"
SRC_URI = "https://example.com/${BP}.tar.gz \\
    file://0001-one.patch \\
    file://two.diff;striplevel=0 \\
    file://conf.txt \\
    file://plain.txt;apply=yes;striplevel=2 \\
    file://not.patch;apply=no \\
"
# SRC_URI += "file://comment.patch"
SRC_URI += 'file://three.patch'
""")
    expected = [("0001-one.patch", 1), ("two.diff", 0), ("plain.txt", 2), ("three.patch", 1)]
    assert names(found) == expected
    assert [each.line for each in found.entries] == [3, 4, 6, 10]
    assert left(found) == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('SRC_URI = "file://a.patch"\nSRC_URI:append = " file://b.patch"', "a b"),
        ('SRC_URI:append = " file://b.patch"\nSRC_URI = "file://a.patch"', "a b"),
        ('SRC_URI_append = " file://b.patch"\nSRC_URI = "file://a.patch"', "a b"),
        ('SRC_URI = "file://a.patch"\nSRC_URI:prepend = "file://b.patch "', "b a"),
        ('SRC_URI = "file://a.patch"\nSRC_URI =+ "file://b.patch"', "b a"),
        ('SRC_URI = "file://a.patch"\nSRC_URI ?= "file://b.patch"', "a"),
        ('SRC_URI ?= "file://b.patch"', "b"),
        ('SRC_URI = "file://a.patch file://b.patch"\nSRC_URI:remove = "file://a.patch"', "b"),
        ('SRC_URI = "file://a.patch"\nSRC_URI = "file://b.patch"', "b"),
    ],
)
def test_the_operators_of_bitbake(lines: str, expected: str) -> None:
    found = recipe(lines)
    assert [each.name for each in found.entries] == [f"{e}.patch" for e in expected.split()]
    as_listed = [name for name in re.findall(r"(\w)\.patch", lines) if name in expected.split()]
    assert bool(found.unusable) == ([*dict.fromkeys(as_listed)] != expected.split())


@pytest.mark.parametrize(
    ("lines", "said", "is_sometimes"),
    [
        ('SRC_URI:append:class-native = " file://a.patch"', "patches that only class-native", True),
        ('SRC_URI_append_arm = " file://a.patch"', "patches that only arm has", True),
        ('SRC_URI = "https://e.com/a.patch;name=a"', "e.com/a.patch is fetched from", False),
        ('SRC_URI = "file://${NO}.patch"', "${NO}.patch is not a known name", False),
        ('SRC_URI = "file://../../a.patch"', "../../a.patch is not a known name", False),
        ('SRC_URI = "file:///etc/passwd;apply=yes"', "/etc/passwd is not a known name", False),
        ('SRC_URI = "file://a.patch.gz"', "a.patch.gz is compressed", False),
        ('SRC_URI = "file://a.patch;patchdir=sub"', "a.patch has patchdir=sub", False),
        ('SRC_URI = "file://a.patch;minrev=3"', "a.patch has minrev", False),
        ('SRC_URI = "file://a.patch;striplevel=x"', "a.patch has striplevel=x", False),
        ("require foo.inc", "what foo.inc has", False),
    ],
)
def test_what_is_not_known_is_left_out_and_named(lines: str, said: str, is_sometimes: bool) -> None:
    found = recipe(lines)
    assert found.names == ()
    assert [each.startswith(f"foo_1.2.bb:1: {said}") for each in left(found)] == [True]
    assert bool(found.unusable) == (not is_sometimes)


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ({"foo.inc": 'NAME = "one"\nSRC_URI = "https://example.com/${BP}.tar.gz"\n'}, True),
        ({"foo.inc": "require ../up.inc\n", "../up.inc": 'NAME = "one"\n'}, True),
        ({"../shared/foo.inc": 'NAME = "one"\n'}, True),  # from the top of a layer
        ({"foo.inc": "require foo.inc\n"}, False),
        ({"foo.inc": 'SRC_URI += "file://two.patch"\n'}, False),
        ({"foo.inc": 'SRC_URI:remove = "file://one.patch"\n'}, False),
        ({"../../../foo.inc": 'NAME = "one"\n'}, False),  # no part of the project
        ({"foo.inc": "require ../../../up.inc\n", "../../../up.inc": "A = 'b'\n"}, False),
        ({}, False),
    ],
)
def test_what_another_file_assigns_is_taken_where_it_has_no_patch(
    tmp_path: Path, files: dict[str, str], taken: bool
) -> None:
    place = tmp_path / "project/layer/recipes/foo_1.2.bb"
    write_files(place.parent, files)
    name = "shared/foo.inc" if "../shared/foo.inc" in files else "foo.inc"
    text = f'require {name}\nSRC_URI += "file://one.patch file://${{NAME}}.txt"\n'
    where = Location(tmp_path / "project/manifests/m.yaml", 1)
    found = parse_list(text.encode(), LocalSeries("layer/recipes/foo_1.2.bb", where))
    assert names(found) == [("one.patch", 1)]
    said = [] if taken else [f"layer/recipes/foo_1.2.bb:1: what {name} has"]
    assert left(found) == said
    assert bool(found.unusable) != taken


def test_a_value_that_names_itself_ends() -> None:
    text = "".join(f'V{n} = "${{V{n + 1}}}${{V{n + 1}}}"\n' for n in range(40))
    assert recipe(f'{text}V40 = "${{V0}}"\nSRC_URI = "file://${{V0}}.patch"\n').names == ()
    long = f'A = "{"a" * 50_000}"\nSRC_URI = "file://{"${A}" * 20_000}.patch"\n'
    assert recipe(long).names == ()


def test_a_name_with_a_variable_is_not_edited() -> None:
    with pytest.raises(BadInputError, match=r"foo-one\.patch' is written with escapes"):
        recipe('SRC_URI = "file://${BPN}-one.patch"')


SPEC = """\
%global base foo
Name: foo
Version: 1.2
Patch0: 0001-one.patch
Patch10: two.patch
Patch: https://example.com/x/plain.diff#/three.diff
%description
Patch99: is no tag here
%prep
"""


@pytest.mark.parametrize(
    ("prep", "expected"),
    [
        ("%autosetup -p1", "0001-one.patch:1 two.patch:1 three.diff:1"),
        ("%autosetup -n %{name} -p 2", "0001-one.patch:2 two.patch:2 three.diff:2"),
        ("%autosetup -N\n%autopatch -p1 -m 5 -M 10", "two.patch:1"),
        ("%setup -q\n%patch10 -p0 -b .two\n%patch0", "two.patch:0 0001-one.patch:0"),
        ("%patch -P 11 -p1\n%patch -P0 -p1", "three.diff:1 0001-one.patch:1"),
        ("%patch 10 -p3", "two.patch:3"),
        ("%patch 0 10 -p1", "0001-one.patch:1 two.patch:1"),
        ("# %patch10 -p0\npatch -p1 < %{PATCH11}", "three.diff:1"),
        ("git am %{patches}", "0001-one.patch:1 two.patch:1 three.diff:1"),
    ],
)
def test_a_spec_says_in_prep_how(prep: str, expected: str) -> None:
    found = read(SPEC + prep + "\n%build\n%patch0 -p9\n", "foo.spec")
    assert [f"{name}:{strip}" for name, strip in names(found)] == expected.split()
    assert found.left_out == ()
    assert found.unusable  # one has no number


def test_a_patch_list_of_a_spec() -> None:
    text = "%patchlist\n# c\na.patch\nb.patch\n%prep\n%autosetup -p1\n"
    found = read(text, "foo.spec")
    assert names(found) == [("a.patch", 1), ("b.patch", 1)]
    after = found.append("c.patch").remove("a.patch").data.decode()
    assert after == text.replace("a.patch\nb.patch\n", "b.patch\nc.patch\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Patch0: a.patch\n%prep\n%if 1\n%patch0 -p1\n%endif\n", "a.patch is applied on some"),
        ("%if 1\nPatch0: a.patch\n%endif\n%prep\n%autosetup -p1", "a.patch is there on some"),
        ("Patch0: a.patch\n%prep\n%patch0 -R -p1\n", "a.patch is applied with -R"),
        ("Patch0: %{what}.patch\n%prep\n%patch0 -p1\n", "%{what}.patch is not a known name"),
        ("Patch0: a.patch.xz\n%prep\n%patch0 -p1\n", "a.patch.xz is compressed"),
    ],
)
def test_what_a_spec_does_sometimes_is_left_out(text: str, said: str) -> None:
    found = read(text, "foo.spec")
    assert found.names == ()
    assert said in left(found)[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Patch0: a.patch\n%prep\n%setup -q\n", "%prep applies none that can be seen"),
        ("Patch0: a.patch\n%prep\n%patch7 -p1\n", "no Patch7 is declared"),
    ],
)
def test_a_spec_that_does_not_add_up_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read(text, "foo.spec")
    assert said in caught.value.problems[0].what


def test_what_is_written_is_read_again() -> None:
    listed = ["one.patch", "sub/two.diff", "three.txt"]
    found = recipe(recipe_lines(listed), "foo_%.bbappend")
    assert names(found) == [(each, 1) for each in listed]
    spec = read(spec_lines(["a.patch", "b"]) + "%prep\n%autosetup -p1\n", "foo.spec")
    assert names(spec) == [("a.patch", 1), ("b", 1)]


# Edits: each form with a text that lists p1, p2 and p3, and how its own tool reads it.


class Form(NamedTuple):
    """A file's name, its text, and the patches that the tool takes of a text."""

    file: str
    text: str
    taken: Callable[[str], list[str]]


def _words(text: str) -> list[str]:
    return re.findall(r"file://([^\s;\"]+\.patch)", text)


def _portfile(text: str) -> list[str]:
    """As CMake takes the arguments behind PATCHES: without comments, to the next keyword."""
    plain = re.sub(r"#.*", "", text)
    called = plain[plain.index("PATCHES") + 7 : plain.index(")")]
    return called.replace('"', "").partition("HEAD_REF")[0].split()


def _conda(text: str) -> list[str]:
    found = re.search(r"patches:.*\n((?:\s+-.*\n|\s*#.*\n)*)", text)
    assert found is not None
    rows = [row.split() for row in found[1].splitlines() if "[win]" not in row]
    return [row[1].strip("'\"") for row in rows if row[0] == "-"]


def _cef(text: str) -> list[str]:
    """As Python reads the file, which it is."""
    told: dict[str, list[dict[str, str]]] = {}
    exec(text, told)
    return [f"{each['name']}.patch" for each in told["patches"] if "condition" not in each]


def _spec(text: str) -> list[str]:
    """As rpm applies them: by number, each that %prep names, or all."""
    listed = re.findall(r"(?m)^Patch(\d+):\s*(\S+)", text)
    assert len(dict(listed)) == len(listed)
    declared = {int(n): name for n, name in listed if name != "sometimes.patch"}
    rows = [int(n) for n in re.findall(r"(?m)^%patch(?: -P ?)?(\d+) -p1", text)]
    assert sorted(declared) == [*declared]  # both of rpm's orders are one
    assert "%autosetup" in text or sorted(rows) == sorted(declared)
    return [declared[number] for number in rows or sorted(declared)]


def _west(text: str) -> list[str]:
    return [patch["path"] for patch in yaml.safe_load(text)["patches"]]


FORMS = {
    "west": Form(
        "zephyr/patches.yml",
        "# why\npatches:\n  # first\n  - path: p1.patch\n    sha256sum: 0\n    module: a\n\n"
        "  - module: a # it\n    path: 'p2.patch'\n    sha256sum: 0\n"
        "  - path: p3.patch\n    sha256sum: 0\n    module: a\nclean-command: git clean\n",
        _west,
    ),
    "recipe": Form(
        "foo_1.bb",
        'SRC_URI = "https://e.com/f.tgz \\\n    file://p1.patch \\\n    file://conf \\\n'
        '    file://p2.patch;striplevel=1 \\\n    file://p3.patch"\nS = "${WORKDIR}"\n',
        _words,
    ),
    "recipe in several values": Form(
        "foo_1.bb",
        'SRC_URI = "file://p1.patch file://p2.patch"\nX = "1"\nSRC_URI += "file://p3.patch"\n'
        'SRC_URI:append:arm = " file://arm.patch"\n',
        lambda text: [name for name in _words(text) if name != "arm.patch"],
    ),
    "portfile": Form(
        "portfile.cmake",
        "vcpkg_from_github(\n    OUT_SOURCE_PATH SOURCE_PATH\n    REPO a/b\n    PATCHES\n"
        '        p1.patch # why.patch\n        "p2.patch"\n        p3.patch\n    HEAD_REF main\n'
        ")\nvcpkg_cmake_install()\n",
        _portfile,
    ),
    "conda": Form(
        "meta.yaml",
        '{% set version = "1" %}\nsource:\n  git_url: https://e.com/f.git\n  patches:\n'
        "    # first\n    - p1.patch\n    - win.patch  # [win]\n    - 'p2.patch'\n    - p3.patch\n"
        "build:\n  number: 0\n",
        _conda,
    ),
    "cef": Form(
        "patch.cfg",
        "patches = [\n  {\n    # It's {why}.\n    'name': 'p1',\n  },\n  {\n"
        "    'name': 'x',\n    'condition': 'Y',\n  },\n  {\n    'name': 'p2',\n  },\n"
        "  {\n    'name': 'p3',\n    'note': 'n',\n  },\n]\n",
        _cef,
    ),
    "spec that applies all": Form(
        "foo.spec",
        "Name: foo\nSource0: x\n# of 1\nPatch1:    p1.patch\nPatch5:    p2.patch\n# of 3\n"
        "Patch6:    p3.patch\n%if 0\nPatch7: sometimes.patch\n%endif\n%prep\n%autosetup -p1\n",
        _spec,
    ),
    "spec that applies each": Form(
        "foo.spec",
        "Name: foo\nPatch1: p1.patch\nPatch5: p2.patch\nPatch6: p3.patch\n%prep\n%setup -q\n"
        "%patch1 -p1\ntouch x\n%patch5 -p1 -b .two\n%patch -P 6 -p1\n%build\n",
        _spec,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_read_is_written_again(form: str) -> None:
    file, text, taken = FORMS[form]
    for given_text in (text, text.replace("\n", "\r\n")):
        series = read(given_text, file)
        assert series.data == given_text.encode()
        assert [*series.names] == taken(text) == ["p1.patch", "p2.patch", "p3.patch"]
        assert series.unusable == ()


@pytest.mark.parametrize("form", FORMS)
def test_to_drop_one_takes_its_words_alone(form: str) -> None:
    """All other lines stay as they are, and so does the order of what is left."""
    file, text, taken = FORMS[form]
    for name in ("p1", "p2", "p3"):
        after = read(text, file).remove(f"{name}.patch").data.decode()
        assert taken(after) == [f"{n}.patch" for n in ("p1", "p2", "p3") if n != name]
        assert f"{name}.patch" not in after
        assert f"'{name}'" not in after
        gone = len(text) - len(after)
        assert gone <= len(re.findall(rf"(?m)^.*{name}.*\n", text)[0]) + 40


def test_a_list_for_several_modules_is_one_for_each() -> None:
    blocks = (
        f"- module: {m}\n  path: {n}.patch\n  note: |\n    path: x\n  sha256sum: '0'\n"
        for m, n in ("ax", "by", "az")
    )
    text = f"patches:\n{''.join(blocks)}"
    where = Location(Path("m.yaml"), 1)
    with pytest.raises(BadInputError, match=r"patches\.yml:2: patches of several modules"):
        read(text, "zephyr/patches.yml")
    entry = LocalSeries("zephyr/patches.yml", where, target="a")
    found = parse_list(text.encode(), entry)
    assert [*found.names] == ["x.patch", "z.patch"]
    assert entry.beside("x.patch") == "zephyr/patches/x.patch"
    digest = sha256(b"data").hexdigest()
    problem = found.objection("z.patch", b"data")
    assert problem is not None
    assert digest in problem.hint
    after = found.with_bytes("z.patch", b"data")
    assert after.objection("z.patch", b"data") is None
    assert after.data.decode() == f"{text[:-3]}{digest}'\n"
    after = after.insert_after("x.patch", "new.patch").with_bytes("new.patch", b"data")
    rows = {row["path"]: row for row in yaml.safe_load(after.data)["patches"]}
    assert [*rows] == ["x.patch", "new.patch", "y.patch", "z.patch"]
    assert (rows["new.patch"]["module"], rows["new.patch"]["sha256sum"]) == ("a", digest)


@pytest.mark.parametrize("form", FORMS)
def test_a_rename_changes_the_name_alone(form: str) -> None:
    file, text, _ = FORMS[form]
    after = read(text, file).rename("p2.patch", "other.patch").data.decode()
    assert after == text.replace("p2", "other")


@settings(max_examples=share(200))
@given(
    st.permutations(["p1.patch", "p2.patch", "p3.patch", "new.patch", "other.patch"]),
    st.integers(1, 5),
    st.sampled_from(list(FORMS)),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_order_is_what_the_other_tool_reads(
    order: list[str], count: int, form: str, end: str
) -> None:
    file, text, taken = FORMS[form]
    wanted = order[:count]
    after = read(text.replace("\n", end), file).arrange(wanted).data.decode()
    assert taken(after.replace("\r\n", "\n")) == wanted
    assert after.count("\n") == after.count(end)
    assert [*read(after, file).names] == wanted
    back = read(after, file).arrange(["p1.patch", "p2.patch", "p3.patch"])
    assert taken(back.data.decode().replace("\r\n", "\n")) == ["p1.patch", "p2.patch", "p3.patch"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("portfile.cmake", "vcpkg_install()\n", "portfile.cmake:1: lists no patches"),
        ("portfile.cmake", "a(PATCHES x.patch)\nb(PATCHES y.patch)", "2 lists of patches"),
        ("portfile.cmake", "a(PATCHES ${X}/x.patch)", "is not a valid patch name"),
        ("meta.yaml", "source:\n  patches:\n    - {{ name }}.patch\n", "is not a valid patch name"),
        ("patch.cfg", "patches = [\n  {\n    'name': '../x',\n  },\n]\n", "leaves the folder"),
    ],
)
def test_what_is_not_understood_is_said(file: str, text: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        read(text, file)
    problem = raised.value.problems[0]
    assert said in f"{problem.where}: {problem.what}"


def test_a_list_that_became_empty_takes_patches_again() -> None:
    for file, text, taken in FORMS.values():
        if not file.endswith((".spec", ".yml")):
            emptied = read(text, file).arrange([])
            assert taken(emptied.data.decode()) == []
            again = read(emptied.data.decode(), file).append("a.patch").append("b.patch")
            assert taken(again.data.decode()) == ["a.patch", "b.patch"]
