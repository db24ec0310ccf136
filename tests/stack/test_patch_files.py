"""Law 1 and law 8: export after apply gives the same bytes, whatever the user's git says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff_parse import parse_diff
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.outcome import Status
from patchkit.model.patch import Identity
from patchkit.stack.build import SeriesPatch, build_stack, parse_commit
from patchkit.stack.patch_files import (
    CommitChange,
    Layout,
    OriginalFile,
    PatchToWrite,
    canonical_diffs,
    export_patches,
    layout_of,
    plain_diffs,
    with_text,
)
from tests.support.nasty import hostile_attributes, nasty_stack
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

_HUNK = b"@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
_ANN = Identity("Ann Author", "ann@example.com", "1700042400 +0000")


@dataclass(frozen=True)
class Hostile:
    """A user whose git would write diffs in another way."""

    config: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    attributes: str = ""


def _configs(*settings: str) -> dict[str, Hostile]:
    return {setting: Hostile(config=(setting,)) for setting in settings}


def _environments(**variables: str) -> dict[str, Hostile]:
    return {
        f"{name}={value}": Hostile(environment={name: value}) for name, value in variables.items()
    }


HOSTILE = {
    **_configs(
        "diff.context=0",
        "diff.context=25",
        "diff.interHunkContext=20",
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "diff.srcPrefix=x/",
        "diff.dstPrefix=y/",
        "diff.relative=true",
        "diff.algorithm=minimal",
        "diff.algorithm=patience",
        "diff.algorithm=myers",
        "diff.indentHeuristic=false",
        "diff.renames=false",
        "diff.renames=copies",
        "diff.renameLimit=1",
        "diff.suppressBlankEmpty=true",
        "diff.orderFile=/ORDER",
        "diff.submodule=log",
        "diff.ignoreSubmodules=all",
        "diff.colorMoved=zebra",
        "diff.colorMovedWS=allow-indentation-change",
        "diff.wsErrorHighlight=all",
        "diff.wordRegex=.",
        "diff.external=false",
        "diff.statGraphWidth=3",
        "diff.dirstat=lines",
        "diff.autoRefreshIndex=false",
        "diff.odd.xfuncname=^row.*$",
        "diff.odd.binary=true",
        "diff.odd.textconv=rev",
        "diff.odd.command=false",
        "diff.odd.algorithm=patience",
        "diff.python.xfuncname=^nothing$",
        "diff.default.xfuncname=^line.*$",
        "core.abbrev=4",
        "core.quotePath=true",
        "core.autocrlf=true",
        "core.autocrlf=input",
        "core.eol=crlf",
        "core.whitespace=-trailing-space,cr-at-eol",
        "core.bigFileThreshold=10",
        "core.compression=0",
        "core.looseCompression=9",
        "core.pager=cat -A",
        "core.attributesFile=/ATTRIBUTES",
        "core.precomposeUnicode=true",
        "core.ignoreCase=true",
        "core.commentChar=d",
        "color.ui=always",
        "color.diff=always",
        "color.diff.meta=blue",
        "format.signature=me",
        "format.noprefix=true",
        "format.subjectPrefix=HELLO",
        "format.useAutoBase=true",
        "format.encodeEmailHeaders=false",
        "format.pretty=oneline",
        "format.notes=true",
        "i18n.commitEncoding=ISO-8859-1",
        "i18n.logOutputEncoding=UTF-16",
        "log.showSignature=true",
        "log.showRoot=false",
        "log.date=relative",
        "log.mailmap=true",
        "commit.gpgSign=true",
        "commit.cleanup=scissors",
        "apply.whitespace=fix",
        "apply.ignoreWhitespace=change",
        "merge.conflictStyle=zdiff3",
        "submodule.recurse=true",
        "user.name=Somebody Else",
        "trailer.separators=#",
    ),
    **_environments(
        GIT_DIFF_OPTS="--unified=1",
        GIT_EXTERNAL_DIFF="false",
        GIT_CONFIG_PARAMETERS="'diff.context'='1'",
        GIT_ATTR_SOURCE="HEAD",
        GIT_DIR="/nowhere",
        GIT_WORK_TREE="/nowhere",
        GIT_INDEX_FILE="/nowhere/index",
        GIT_OBJECT_DIRECTORY="/nowhere/objects",
        GIT_NAMESPACE="odd",
        GIT_LITERAL_PATHSPECS="1",
        GIT_ICASE_PATHSPECS="1",
        GIT_DEFAULT_HASH="sha256",
        GIT_PAGER="false",
        GIT_AUTHOR_NAME="Somebody Else",
        GIT_COMMITTER_DATE="1 +0000",
        LANG="de_DE.UTF-8",
        LC_ALL="C",
        LANGUAGE="fr",
        TERM="dumb",
        COLUMNS="20",
        TZ="Asia/Kathmandu",
        PAGER="false",
        LESS="-R",
        CLICOLOR_FORCE="1",
        TMPDIR=".",
    ),
    "GIT_CONFIG_COUNT": Hostile(
        environment={
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "diff.context",
            "GIT_CONFIG_VALUE_0": "1",
            "GIT_CONFIG_KEY_1": "diff.noprefix",
            "GIT_CONFIG_VALUE_1": "true",
        }
    ),
    "attributes": Hostile(attributes=hostile_attributes()),
    "attributes-with-drivers": Hostile(
        attributes=hostile_attributes(),
        config=("diff.odd.xfuncname=^row.*$", "diff.python.xfuncname=^nothing$"),
    ),
}


@pytest.fixture
def applied(project: Project, upstream: Upstream) -> Project:
    """The nasty stack, applied in workspace/demo."""
    base, patches = nasty_stack(upstream)
    project.component("demo", upstream, base, patches)
    project.prepare("apply").ok()
    return project


def _pairs(repository: Repository) -> list[tuple[str, str]]:
    out = repository.git("log", "--reverse", "--format=%T", "refs/patchkit/applied").out
    trees = out.decode().split()
    return list(pairwise(trees))


def _endure(hostile: Hostile, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the machine the hostile user's: global and local configuration, environment, files."""
    home = Path(os.environ["HOME"])
    order, attributes = home / "order", home / "attributes"
    order.write_text("run.sh\nlong.txt\n")
    attributes.write_text(hostile_attributes())
    for setting in hostile.config:
        name, _, value = setting.partition("=")
        value = value.replace("/ORDER", str(order)).replace("/ATTRIBUTES", str(attributes))
        for config in (home / ".gitconfig", checkout / ".git" / "config"):
            with config.open("a") as stream:
                stream.write(_setting(name, value))
    if hostile.attributes:
        (checkout / ".git" / "info").mkdir(exist_ok=True)
        for place in (
            checkout / ".git" / "info" / "attributes",
            home / ".config" / "git" / "attributes",
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(hostile.attributes)
    for name, value in hostile.environment.items():
        monkeypatch.setenv(name, value)


def _setting(name: str, value: str) -> str:
    section, _, rest = name.partition(".")
    driver, _, key = rest.rpartition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    head = f'[{section} "{driver}"]' if driver else f"[{section}]"
    return f'{head}\n\t{key} = "{quoted}"\n'


def test_every_change_comes_back_to_the_byte(applied: Project) -> None:
    repository = Repository(applied.checkout("demo") / ".git")
    files = applied.files()
    diffs = canonical_diffs(repository, _pairs(repository))
    names = files["patches/demo/series"].decode().split()
    stored = [parse_patch(files[f"patches/demo/{name}"], name=name).diff for name in names]
    assert diffs == stored


@pytest.mark.slow
def test_no_hostile_setting_changes_a_byte(
    applied: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(HOSTILE) >= 60
    checkout = applied.checkout("demo")
    repository = Repository(checkout / ".git")
    pairs = _pairs(repository)
    before = canonical_diffs(repository, pairs)
    files = applied.files()
    clean = {path: path.read_bytes() for path in (checkout / ".git" / "config",)}
    home = Path(os.environ["HOME"]) / ".gitconfig"
    changed = []
    for number, (name, hostile) in enumerate(HOSTILE.items(), 1):
        with monkeypatch.context() as patched:
            _endure(hostile, checkout, patched)
            if canonical_diffs(repository, pairs) != before:
                changed.append(name)
            # a refresh asks for the same diffs; it meets all of them at once below
            if number % 6 == 0:
                applied.run("refresh").ok()
                if applied.files() != files:
                    changed.append(f"refresh under {name}")
        for path, data in clean.items():
            path.write_bytes(data)
        home.write_bytes(b"")
        for path in (
            checkout / ".git" / "info" / "attributes",
            home.parent / ".config" / "git" / "attributes",
        ):
            path.unlink(missing_ok=True)
    assert changed == []


@pytest.mark.parametrize("edit", [False, True], ids=["right-after-apply", "after-an-edit"])
def test_refresh_writes_the_same_under_all_of_them_at_once(
    applied: Project, monkeypatch: pytest.MonkeyPatch, edit: bool
) -> None:
    checkout = applied.checkout("demo")
    if edit:
        text = (checkout / "long.txt").read_text()
        (checkout / "long.txt").write_text(text.replace("ten\n", "TEN\n"))
    before = applied.files()
    for name, hostile in HOSTILE.items():
        if not name.startswith(("GIT_DIR", "TMPDIR")):
            _endure(hostile, checkout, monkeypatch)
    applied.run("refresh").ok()
    after = applied.files()
    changed = sorted(name for name in after if after[name] != before[name])
    # whitespace.patch changes the same file: its blob ids follow
    assert changed == (
        ["patches/demo/far-hunks.patch", "patches/demo/whitespace.patch"] if edit else []
    )
    if edit:
        old, new = (files["patches/demo/far-hunks.patch"] for files in (before, after))
        assert _without_ids(new) == _without_ids(old.replace(b"+ten\n", b"+TEN\n"))


def _without_ids(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if not line.startswith(b"index ")]


def test_a_patch_in_another_form_keeps_its_bytes_while_it_does_the_same(
    upstream: Upstream,
) -> None:
    base = upstream.commit({"a": "1\n2\n3\n", "b": "x\n"})
    odd = b"Some words.\n\n--- a/a\t2020-01-01\n+++ b/a\t2020-01-02\n" + _HUNK
    wanted = _wanted(upstream, base, odd)
    elsewhere = upstream.commit({"b": "y\n"}, branch="other", parents=(base,))
    moved = _moved(upstream, wanted, elsewhere)
    assert export_patches(Repository(upstream.path), [wanted, moved]) == [odd, odd]


def test_a_patch_in_another_form_and_with_another_strip_keeps_its_bytes(
    upstream: Upstream,
) -> None:
    base = upstream.commit({"a": "1\n2\n3\n"})
    odd = parse_patch(b"--- a/x/a\n+++ b/x/a\n" + _HUNK, name="odd.patch", strip=2)
    there = _applied(upstream, base, b"--- a/a\n+++ b/a\n" + _HUNK)
    nowhere = CommitChange("", "", there.message, there.author)  # it did not apply
    moved = PatchToWrite(there, OriginalFile(odd, nowhere), Layout(2, folders="x/"))
    (data,) = export_patches(Repository(upstream.path), [moved])
    assert data == b"--- a/x/a\n+++ b/x/a\n" + _HUNK


@pytest.mark.parametrize("context", [1, 3, 9])
@pytest.mark.parametrize("algorithm", ["myers", "minimal", "patience", "histogram"])
def test_a_patch_that_fits_elsewhere_changes_in_numbers_alone(
    upstream: Upstream, algorithm: str, context: int
) -> None:
    """Law: whichever diff made it, and with how much context; and the numbers are right then."""
    options = (f"--diff-algorithm={algorithm}", f"-U{context}", "--no-indent-heuristic")
    random = Random(context)
    edge = [f"{number}\n" for number in range(12)]
    repository = Repository(upstream.path)
    for _ in range(4):
        old = [random.choice(["}\n", "\n", "  return x\n", "a\n", "b\n"]) for _ in range(40)]
        new = [random.choice([line, line, "", f"{line}b\n", "}\n\n"]) for line in old]
        files = {"a": "".join([*edge, *old, *edge]), "b": "x\n"}
        base = upstream.commit(files, parents=())
        files |= {"a": "".join([*edge, *new, *edge]), "c": "new\n"}
        after = upstream.commit(files, parents=(base,))
        diff = upstream.git("diff", *options, base, after)
        wanted = _wanted(upstream, base, b"Words.\n\n" + diff)
        there = upstream.commit({"a": "".join(["0\n", *edge, *old, *edge, "end\n"])}, parents=())
        moved = _moved(upstream, wanted, there)
        (data,) = export_patches(repository, [moved])
        assert _numberless(data) == _numberless(b"Words.\n\n" + diff)
        with reading(repository) as reader:
            patch = SeriesPatch("", parse_patch(data, name="a.patch"))
            (outcome,) = build_stack(reader, _base(upstream, there), [patch]).outcomes
        assert (outcome.status, outcome.tree) == (Status.UNCHANGED, moved.change.after)
        assert not outcome.made_for_another_base


def _numberless(data: bytes) -> bytes:
    return re.sub(rb"(?m)^(@@ -)\d+(\S* \+)\d+|^index [0-9a-f]{7,}\.\.[0-9a-f]{7,}", rb"\1\2", data)


def test_only_the_diff_is_written_again_when_the_change_is_another(upstream: Upstream) -> None:
    base = upstream.commit({"a": "1\n2\n3\n"})
    diff = b"--- a/a\n+++ b/a\n" + _HUNK
    head, tail = (
        b"From: A <a@b>\nSubject: [PATCH 1/2]  Odd\n\nWhy.\n---\n a | 2 +-\n\n",
        b"-- \n2.39\n\n",
    )
    wanted = _wanted(upstream, base, head + diff + tail)
    other = upstream.tree(upstream.commit({"a": "1\n2 2\n3\n"}, parents=(base,)))
    change = CommitChange(wanted.change.before, other, wanted.change.message, wanted.change.author)
    (data,) = export_patches(Repository(upstream.path), [PatchToWrite(change, wanted.original)])
    assert data.startswith(head + b"diff --git a/a b/a\nindex ")
    assert data.endswith(b"+2 2\n 3\n" + tail)


def test_written_again_it_keeps_its_header_and_signature(upstream: Upstream) -> None:
    base = upstream.commit({"a": "1\n2\n3\n"})
    odd = b"Words.\n\n--- a/a\n+++ b/a\n" + _HUNK + b"-- \n2.39\n\n"
    wanted = _wanted(upstream, base, odd)
    canonical = PatchToWrite(wanted.change, wanted.original, canonical=True)
    (data,) = export_patches(Repository(upstream.path), [canonical])
    assert data.startswith(b"Words.\n\ndiff --git a/a b/a\nindex ")
    assert data.endswith(_HUNK + b"-- \n2.39\n\n")


def test_an_amended_message_keeps_the_author(upstream: Upstream) -> None:
    base = upstream.commit({"a": "1\n2\n3\n"})
    data = make_patch({"a": "1\n2\n3\n"}, {"a": "1\n3\n"}, subject="Old")
    wanted = _wanted(upstream, base, data)
    change = CommitChange(wanted.change.before, wanted.change.after, "New", wanted.change.author)
    (amended,) = export_patches(Repository(upstream.path), [PatchToWrite(change, wanted.original)])
    assert amended.startswith(b"From: Ann Author <ann@example.com>\nDate: ")
    assert b"\nSubject: New\n\n" in amended


def test_an_amended_message_gives_a_new_header_and_the_old_diff(upstream: Upstream) -> None:
    base = upstream.commit({"a": "1\n2\n3\n"})
    diff = b"--- a/a\n+++ b/a\n" + _HUNK
    wanted = _wanted(upstream, base, b"Subject: Old\n\n" + diff)
    change = wanted.change
    amended = CommitChange(change.before, change.after, "New\n\nBecause.", change.author)
    (data,) = export_patches(Repository(upstream.path), [PatchToWrite(amended, wanted.original)])
    assert data == b"Subject: New\n\nBecause.\n\n" + diff


def test_a_new_patch_has_author_date_and_subject(upstream: Upstream) -> None:
    base = upstream.commit({"a": "1\n"})
    after = upstream.commit({"a": "2\n"})
    change = CommitChange(upstream.tree(base), upstream.tree(after), "Change a\n\nWhy.", _ANN)
    (data,) = export_patches(Repository(upstream.path), [PatchToWrite(change)])
    assert data.startswith(
        b"From: Ann Author <ann@example.com>\nDate: Wed, 15 Nov 2023 10:00:00 +0000\n"
        b"Subject: Change a\n\nWhy.\n\ndiff --git a/a b/a\nindex "
    )


@pytest.mark.parametrize(
    ("strip", "folder", "expected"),
    [
        (0, "", b"diff --git src/a src/a\n"),
        (2, "", b"diff --git a/x/src/a b/x/src/a\n"),
        (1, "src", b"diff --git a/a b/a\n"),
    ],
)
def test_paths_are_written_as_the_component_reads_them(
    upstream: Upstream, strip: int, folder: str, expected: bytes
) -> None:
    base = upstream.commit({"src/a": "1\n"})
    after = upstream.commit({"src/a": "2\n"})
    layout = Layout(strip, folder, "x/" * (strip - 1))
    pair = (upstream.tree(base), upstream.tree(after))
    (diff,) = canonical_diffs(Repository(upstream.path), [pair], layout)
    assert diff.startswith(expected)
    patch = SeriesPatch("a.patch", parse_patch(diff, name="a.patch"), strip, folder)
    with reading(Repository(upstream.path)) as reader:
        stack = build_stack(reader, _base(upstream, base), [patch])
    assert stack.tree == pair[1]


def test_the_folders_of_a_layout_come_from_the_patch_itself() -> None:
    data = make_patch({"python/sglang/a.py": "1\n"}, {"python/sglang/a.py": "2\n"})
    assert layout_of(parse_patch(data, name="x"), 2, "").folders == "python/"


def test_a_plain_diff_writes_a_rename_as_a_removal_and_an_addition(upstream: Upstream) -> None:
    base = upstream.commit({"a": "1\n2\n3\n"})
    pair = upstream.tree(base), upstream.tree(upstream.commit({"a": None, "b": "1\n2\n3\n"}))
    repository = Repository(upstream.path)
    (canonical,), (plain,) = canonical_diffs(repository, [pair]), plain_diffs(repository, [pair])
    assert b"rename from a\n" in canonical
    assert [each.path for each in parse_diff(plain)] == ["a", "b"]


_LATER = b"From: A <a@b>\nDate: Wed, 15 Nov 2023 11:00:00 +0000\nSubject: Ours\n\n"


@pytest.mark.parametrize(
    ("head", "written"),
    [
        (b"Ours.\n\n", b"Ours.\n\n"),
        (b"From: A <a@b>\nSubject: Ours\n\n", b"From: A <a@b>\nSubject: Ours\n\n"),
        (_LATER.replace(b"11:", b"10:"), _LATER),
    ],
)
def test_a_date_that_a_header_does_not_give_is_not_written_down(
    upstream: Upstream, head: bytes, written: bytes
) -> None:
    diff = b"--- a/a\n+++ b/a\n" + _HUNK
    wanted = _wanted(upstream, upstream.commit({"a": "1\n2\n3\n"}), head + diff)
    was = wanted.change.author
    later = replace(was, date=f"{int(was.date.split()[0]) + 3600} +0000")
    change = PatchToWrite(replace(wanted.change, author=later), wanted.original)
    assert export_patches(Repository(upstream.path), [change]) == [written + diff]


def test_text_between_the_files_of_a_diff_stays_where_it_is() -> None:
    one, two = (b"--- a/%c\n+++ b/%c\n" % (name, name) + _HUNK for name in b"ab")
    old = parse_patch(b"Subject: Ours\n\nWhy.\n---\n" + one + b"a word\n\n" + two, name="x")
    assert with_text(one + two, old) == one + b"a word\n\n" + two
    assert with_text(one, old) == one + b"a word\n\n"


def _base(upstream: Upstream, commit: str) -> Base:
    return Base(CommitId(commit), TreeId(upstream.tree(commit)), "1700000000 +0000")


def _applied(upstream: Upstream, base: str, data: bytes) -> CommitChange:
    """What a patch does on `base`; its objects are in the repository then."""
    file = parse_patch(data, name="odd.patch")
    repository = Repository(upstream.path)
    start = _base(upstream, base)
    with reading(repository) as reader:
        stack = build_stack(reader, start, [SeriesPatch("odd.patch", file)])
    write_objects(repository, stack.objects)
    (commit,) = (each for each in stack.objects if each.kind == "commit")
    words = parse_commit(commit.oid, commit.payload)
    return CommitChange(start.tree, stack.tree, words.message, words.author)


def _wanted(upstream: Upstream, base: str, data: bytes) -> PatchToWrite:
    """A patch that does just what its file says on `base`."""
    change = _applied(upstream, base, data)
    return PatchToWrite(change, OriginalFile(parse_patch(data, name="odd.patch"), change))


def _moved(upstream: Upstream, wanted: PatchToWrite, base: str) -> PatchToWrite:
    """The same patch on another base, whose other files differ."""
    assert wanted.original is not None
    trees = _applied(upstream, base, wanted.original.file.data)
    change = CommitChange(trees.before, trees.after, wanted.change.message, wanted.change.author)
    assert change.after != wanted.change.after
    return PatchToWrite(change, wanted.original)
