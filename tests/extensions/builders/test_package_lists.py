"""What a recipe's SRC_URI and a spec's Patch lines say, without BitBake and rpm."""

from __future__ import annotations

import pytest

from patchkit.errors import BadInputError
from patchkit.extensions.builders.package_lists import (
    PatchList,
    read_recipe,
    read_spec,
    recipe_lines,
    spec_lines,
)


def recipe(text: str, name: str = "foo_1.2.bb", **files: str) -> PatchList:
    return read_recipe(text, name, lambda each: files.get(each.removesuffix(".inc")))


def names(found: PatchList) -> list[tuple[str, int]]:
    return [(each.name, each.strip) for each in found.patches]


def left(found: PatchList) -> list[str]:
    return [f"{each.where}: {each.what.removeprefix('left out: ')}" for each in found.notes]


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
SRC_URI += 'file://${BPN}-three.patch'
""")
    expected = [("0001-one.patch", 1), ("two.diff", 0), ("plain.txt", 2), ("foo-three.patch", 1)]
    assert names(found) == expected
    assert [each.where for each in found.patches] == [
        *("foo_1.2.bb:3", "foo_1.2.bb:4", "foo_1.2.bb:6", "foo_1.2.bb:10"),
    ]
    assert found.folders[:2] == ("foo-1.2", "foo")
    assert found.notes == ()


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
        ('X = "b"\nSRC_URI = "file://${X}.patch"', "b"),
        ('require base.inc\nSRC_URI += "file://b.patch"', "a b"),
    ],
)
def test_the_operators_of_bitbake(lines: str, expected: str) -> None:
    found = recipe(lines, base='SRC_URI = "file://a.patch"')
    assert [each.name for each in found.patches] == [f"{e}.patch" for e in expected.split()]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('SRC_URI:append:class-native = " file://a.patch"', "patches that only class-native has"),
        ('SRC_URI_append_arm = " file://a.patch"', "patches that only arm has"),
        ('SRC_URI = "https://e.com/a.patch;name=a"', "e.com/a.patch is fetched from elsewhere"),
        ('SRC_URI = "file://${NO}.patch"', "${NO}.patch is not a known name"),
        ('SRC_URI = "file://../../a.patch"', "../../a.patch is not a known name"),
        ('SRC_URI = "file:///etc/passwd;apply=yes"', "/etc/passwd is not a known name"),
        ('SRC_URI = "file://a.patch.gz"', "a.patch.gz is compressed"),
        ('SRC_URI = "file://a.patch;patchdir=sub"', "a.patch has patchdir=sub"),
        ('SRC_URI = "file://a.patch;minrev=3"', "a.patch has minrev"),
        ('SRC_URI = "file://a.patch;striplevel=x"', "a.patch has striplevel=x"),
        ("require gone.inc", "gone.inc is not beside it"),
    ],
)
def test_what_is_not_known_is_left_out_and_named(lines: str, said: str) -> None:
    found = recipe(lines)
    assert found.patches == ()
    assert left(found) == [f"foo_1.2.bb:1: {said}"]


def test_a_value_that_names_itself_ends() -> None:
    text = "".join(f'V{n} = "${{V{n + 1}}}${{V{n + 1}}}"\n' for n in range(40))
    found = recipe(f'{text}V40 = "${{V0}}"\nSRC_URI = "file://${{V0}}.patch"\n')
    assert found.patches == ()
    long = f'A = "{"a" * 50_000}"\nSRC_URI = "file://{"${A}" * 20_000}.patch"\n'
    assert recipe(long).patches == ()


def test_files_that_include_each_other_end() -> None:
    found = recipe("require foo.inc", foo="require foo.inc\n" * 3)
    assert found.patches == ()
    assert "foo.inc:2: foo.inc, as 100 files were included before" in left(found)


def test_extra_folders_are_looked_in_first() -> None:
    found = recipe('FILESEXTRAPATHS:prepend := "${THISDIR}/npu:/etc:../x:"', "foo_%.bbappend")
    assert found.folders[0] == "npu"
    assert not any(".." in each or each.startswith("/") for each in found.folders)


SPEC = """\
%global base foo
Name: foo
Version: 1.2
Patch0: 0001-one.patch
Patch10: %{base}-two.patch
Patch: https://example.com/x/%{name}-%{version}.diff#/three.diff
%description
Patch99: is no tag here
%prep
"""


@pytest.mark.parametrize(
    ("prep", "expected"),
    [
        ("%autosetup -p1", "0001-one.patch:1 foo-two.patch:1 three.diff:1"),
        ("%autosetup -n %{name} -p 2", "0001-one.patch:2 foo-two.patch:2 three.diff:2"),
        ("%autosetup -N\n%autopatch -p1 -m 5 -M 10", "foo-two.patch:1"),
        ("%setup -q\n%patch10 -p0 -b .two\n%patch0", "foo-two.patch:0 0001-one.patch:0"),
        ("%patch -P 11 -p1\n%patch -P0 -p1", "three.diff:1 0001-one.patch:1"),
        ("%patch 10 -p3", "foo-two.patch:3"),
        ("# %patch10 -p0\npatch -p1 < %{PATCH11}", "three.diff:1"),
        ("git am %{patches}", "0001-one.patch:1 foo-two.patch:1 three.diff:1"),
    ],
)
def test_a_spec_says_in_prep_how(prep: str, expected: str) -> None:
    found = read_spec(SPEC + prep + "\n%build\n%patch0 -p9\n", "foo.spec")
    assert [f"{name}:{strip}" for name, strip in names(found)] == expected.split()
    assert found.notes == ()


def test_a_patch_list_of_a_spec() -> None:
    found = read_spec("%patchlist\n# c\na.patch\nb.patch\n%prep\n%autosetup -p1\n", "foo.spec")
    assert names(found) == [("a.patch", 1), ("b.patch", 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Patch0: a.patch\n%prep\n%if 1\n%patch0 -p1\n%endif\n", "5: a.patch is applied on some"),
        ("%if 1\nPatch0: a.patch\n%endif\n%prep\n%autosetup -p1", "2: a.patch is there on some"),
        ("Patch0: a.patch\n%prep\n%patch0 -R -p1\n", "3: a.patch is applied with -R"),
        ("Patch0: %{what}.patch\n%prep\n%patch0 -p1\n", "1: %{what}.patch is not a known name"),
        ("Patch0: a.patch.xz\n%prep\n%patch0 -p1\n", "1: a.patch.xz is compressed"),
    ],
)
def test_what_a_spec_does_sometimes_is_left_out(text: str, said: str) -> None:
    found = read_spec(text, "foo.spec")
    assert found.patches == ()
    (note,) = left(found)
    assert said.partition(": ")[2] in note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Patch0: a.patch\n%prep\n%setup -q\n", "%prep applies none that can be seen"),
        ("Patch0: a.patch\n%prep\n%patch7 -p1\n", "no Patch7 is declared"),
    ],
)
def test_a_spec_that_does_not_add_up_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_spec(text, "foo.spec")
    assert said in caught.value.problems[0].what


def test_what_is_written_is_read_again() -> None:
    listed = ["one.patch", "sub/two.diff", "three.txt"]
    found = recipe(recipe_lines(listed), "foo_%.bbappend")
    assert names(found) == [(each, 1) for each in listed]
    assert found.folders[0] == "files"
    spec = read_spec(spec_lines(["a.patch", "b"]) + "%prep\n%autosetup -p1\n", "foo.spec")
    assert names(spec) == [("a.patch", 1), ("b", 1)]
