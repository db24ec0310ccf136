"""Law 6: an edit changes exactly the characters that it is about, whatever the file looks like."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.manifest.edit import (
    TextEdit,
    add_patch,
    apply_edits,
    fold_patches,
    set_pin,
)
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import ArchivePin, GitPin, IndexPin, Manifest, Pin
from patchkit.model.objects import CommitId

FILE = Path("m.yaml")
DATA = Path(__file__).parent.parent / "data" / "manifests" / "valid"
OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "fedcba9876543210fedcba9876543210fedcba98"
HASH, OTHER_HASH = "a1" * 32, "b2" * 32


def load(data: bytes) -> Manifest:
    FILE.write_bytes(data)
    return load_manifest(FILE)


def pin_of(manifest: Manifest, name: str) -> Pin:
    component = manifest.component(name)
    assert component is not None
    return component.pin


commits = st.text("0123456789abcdef", min_size=40, max_size=40)
comments = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co"]), max_size=12
)


@st.composite
def manifests(draw: st.DrawFn) -> tuple[bytes, str]:
    """A manifest in some layout, and the pin as it is written there, without quotes."""
    quote = draw(st.sampled_from(["", "'", '"']))
    old = draw(commits)
    assume(quote or not old.replace("e", "").isdigit())
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    comment = "  # " + draw(comments)
    pin = f"{quote}{old}{quote}"
    source = '{git: "https://example.com/a.git"}'
    before = f"  b:\n    source: {source}\n    pin: {NEW}{comment}\n"
    layout = draw(st.sampled_from(["block", "pin first", "braces", "next line"]))
    body = {
        "block": f"  a:{comment}\n    source: {source}\n    pin:   {pin}{comment}\n    strip: 1\n",
        "pin first": f"  a:\n    pin: {pin}{comment}\n    source: {source}\n",
        "braces": f"  a: {{source: {source}, pin: {pin}, strip: 1}}{comment}\n",
        "next line": f"  a:\n    source: {source}\n    pin:{comment}\n      {pin}\n",
    }[layout]
    text = f"# {draw(comments)}\nversion: 1\ncomponents:\n{before}{body}"
    if draw(st.booleans()):
        text = text.rstrip("\n") if layout != "next line" else text
    mark = "\ufeff" if draw(st.booleans()) else ""
    return (mark + text.replace("\n", newline)).encode(), old


@pytest.mark.slow
@given(manifests(), commits)
def test_a_new_commit_changes_only_the_pins_characters(
    manifest: tuple[bytes, str], new: str
) -> None:
    data, old = manifest
    assume(new != old and not new.replace("e", "").isdigit())
    edited = set_pin(data, "a", GitPin(CommitId(new)), file=FILE)
    place = data.rindex(old.encode()) if old != NEW else data.index(old.encode(), data.index(b"a:"))
    assert edited == data[:place] + new.encode() + data[place + 40 :]
    assert pin_of(load(edited), "a") == GitPin(CommitId(new))
    assert pin_of(load(edited), "b") == GitPin(CommitId(NEW))


@given(manifests())
def test_setting_the_pin_that_is_there_changes_nothing(manifest: tuple[bytes, str]) -> None:
    data, old = manifest
    assert set_pin(data, "a", GitPin(CommitId(old)), file=FILE) == data


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_commit_of_digits_is_quoted(quote: str) -> None:
    old = f"{quote}{OLD}{quote}"
    data = f"version: 1\ncomponents:\n  a: {{source: {{git: ./a}}, pin: {old}}}\n".encode()
    pin = GitPin(CommitId("1234567890" * 4))
    assert pin_of(load(set_pin(data, "a", pin, file=FILE)), "a") == pin


def test_version_and_hash_change_together() -> None:
    data = f"""version: 1
components:
  a:
    source: {{index: demo}}
    pin:   # both
      sha256: {HASH}   # of the file
      version: '0.16.0'
""".encode()
    edited = set_pin(data, "a", IndexPin("0.17.0", OTHER_HASH), file=FILE)
    assert edited == data.replace(b"0.16.0", b"0.17.0").replace(HASH.encode(), OTHER_HASH.encode())
    assert pin_of(load(edited), "a") == IndexPin("0.17.0", OTHER_HASH)


def test_an_archives_hash_changes() -> None:
    data = f"""version: 1
components:
  a: {{source: {{archive: "https://example.com/a.zip"}}, pin: {{sha256: {HASH}}}}}
""".encode()
    edited = set_pin(data, "a", ArchivePin(OTHER_HASH), file=FILE)
    assert edited == data.replace(HASH.encode(), OTHER_HASH.encode())


MINIMAL = (DATA / "minimal.yaml").read_bytes()
PART = b"version: 1\nextends: [stack.yaml]\ncomponents: {second: {strip: 0}}\n"
BLOCK = (
    f"version: 1\ncomponents:\n  a:\n    source: {{git: ./a}}\n    pin: %s\n      {OLD}\n".encode()
)


@pytest.mark.parametrize(
    ("data", "component", "pin", "said"),
    [
        (MINIMAL, "a", IndexPin("1.0", HASH), "of another kind"),
        (MINIMAL, "a", ArchivePin(HASH), "of another kind"),
        (MINIMAL, "a", GitPin(CommitId("x}\nversion: 2")), "cannot be written there as it is"),
        (PART, "second", GitPin(CommitId(NEW)), "is not in this file"),
        (PART, "none", GitPin(CommitId(NEW)), "is not in this file"),
        (BLOCK % b"|", "a", GitPin(CommitId(NEW)), "in a block of text"),
        (BLOCK % b">-", "a", GitPin(CommitId(NEW)), "in a block of text"),
    ],
)
def test_a_pin_that_cannot_be_set_is_refused(
    data: bytes, component: str, pin: Pin, said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        set_pin(data, component, pin, file=FILE)


def test_what_does_not_stand_in_the_file_so_is_refused() -> None:
    with pytest.raises(BadInputError, match="is not in this file"):
        fold_patches(_REFERENCES, "c", [0], None, file=FILE)
    braces = (DATA / "braces.yaml").read_bytes()
    with pytest.raises(BadInputError, match="written in braces"):
        add_patch(braces, "a", {"series": "patches/a/series"}, file=FILE)


def test_edits_are_made_from_the_end_backwards() -> None:
    edits = [TextEdit(0, 1, "long"), TextEdit(4, 6, ""), TextEdit(2, 2, "+")]
    assert apply_edits("abcdefg", edits) == "longb+cdg"


HEAD = f"version: 1\ncomponents:\n  a:\n    source: {{git: ./a}}\n    pin: {OLD}  # keep\n"
TAIL = f"  b: {{source: {{git: ./b}}, pin: {NEW}}}\n"
LAYOUTS = {
    "none": "",
    "empty list": "    patches: []  # none yet\n",
    "null": "    patches:\n",
    "block": "    patches:\n      - series: patches/a/old  # last\n    # a comment\n",
    "block not indented": "    patches:\n    - patch: x/1.patch\n    - series: x/old\n",
    "block of braces": "    patches:\n      - {series: patches/a/old}\n\n    track: main\n",
    "brackets": "    patches: [{series: patches/a/old}]\n",
    "brackets over lines": "    patches: [\n      {series: patches/a/old}  # one, two\n    ]\n",
    "trailing comma": "    patches: [{series: patches/a/old},]\n",
}


@pytest.mark.parametrize("final", [TAIL, "", "no newline"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_patch_entry_is_added_at_the_end_of_the_stack(
    layout: str, newline: str, final: str
) -> None:
    text = HEAD + LAYOUTS[layout] + final.replace("no newline", "")
    text = text.removesuffix("\n") if final == "no newline" else text
    before = [] if layout == "null" else _paths(load(text.encode()), "a")
    data = text.replace("\n", newline).encode()
    edited = add_patch(data, "a", {"patch": "patches/a/new.patch"}, file=FILE)
    manifest = load(edited)
    assert _paths(manifest, "a") == [*before, "patches/a/new.patch"]
    assert (manifest.component("b") is not None) == (final == TAIL)
    assert _is_subsequence(data.replace(b"[]", b""), edited)
    assert (b"\r\n" in edited) == (newline == "\r\n")
    assert edited.count(b"\n") == edited.count(newline.encode())


def _paths(manifest: Manifest, name: str) -> list[str]:
    component = manifest.component(name)
    assert component is not None
    return [entry.path for entry in component.patches]


def _is_subsequence(small: bytes, large: bytes) -> bool:
    rest = iter(large)
    return all(byte in rest for byte in small)


@given(st.sampled_from(sorted(DATA.glob("*.yaml"))), commits)
def test_every_git_pin_of_every_valid_manifest_can_be_set(path: Path, new: str) -> None:
    assume(not new.replace("e", "").isdigit())
    manifest = load_manifest(path)
    data = path.read_bytes()
    for component in manifest.components:
        if component.pin_where.file == path and isinstance(component.pin, GitPin):
            edited = set_pin(data, component.name, GitPin(CommitId(new)), file=path)
            assert len(edited) == len(data)
            assert set_pin(edited, component.name, component.pin, file=path) == data


_REFERENCES = b"""\
version: 1
components:
  a:
    patches:
      # one
      - component: x  # note
        path: p
      # two
      - {series: s}   # mine
      - path: q

    install: []
  b:
    patches: [{path: p}, {path: q}, {series: s}]  # on one line
"""


@pytest.mark.parametrize(
    ("component", "gone", "series", "old", "new"),
    [
        ("a", [0], None, b"      - component: x  # note\n        path: p\n", b""),
        ("a", [2], None, b"      - path: q\n", b""),
        ("a", [2], "t/series", b"- path: q", b"- {series: t/series}"),
        ("a", [0], "t/series", b"component: x  # note\n        path: p", b"{series: t/series}"),
        ("b", [0, 1], None, b"{path: p}, {path: q}, ", b""),
        ("b", [0, 1], "t/series", b"{path: p}, {path: q}, ", b"{series: t/series}, "),
        ("b", [1], None, b", {path: q}", b""),
    ],
)
def test_entries_of_patches_are_folded(
    component: str, gone: list[int], series: str | None, old: bytes, new: bytes
) -> None:
    for data in (_REFERENCES, _REFERENCES.replace(b"\n", b"\r\n")):
        crlf = b"\r" in data
        before, after = (each.replace(b"\n", b"\r\n") if crlf else each for each in (old, new))
        assert data.count(before) >= 1
        wanted = data.replace(before, after, 1)
        assert fold_patches(data, component, gone, series, file=FILE) == wanted
