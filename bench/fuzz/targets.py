"""What is fed, and what must hold: a target takes dice and raises if something does not."""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.header import Header as MailHeader
from itertools import pairwise
from pathlib import Path
from random import Random

from bench.fuzz.damage import damaged
from bench.fuzz.foreign import metadata, records
from bench.fuzz.recipes import recipe, text_rule
from bench.fuzz.rewriters import rewriters, sed
from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions, MergeRequest
from patchkit.carry.external import refused
from patchkit.disk.files import JOURNAL
from patchkit.disk.transaction import recover
from patchkit.errors import BadInputError, PatchkitError
from patchkit.extensions.installed.layer import (
    Layer,
    LayerFile,
    Receipt,
    RecordBefore,
    digest_of,
    packed,
    receipt_bytes,
)
from patchkit.extensions.installed.stacks_in_packages import attest, reverse_into
from patchkit.extensions.installed.wheel_record import edited
from patchkit.extensions.recipes.recipe_file import parse_recipe
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import LocalSeries, Location
from patchkit.model.header import clean_message, format_header
from patchkit.model.lint import lint_patch
from patchkit.model.mail import parse_patch
from patchkit.model.names import is_listed_name
from patchkit.model.objects import FILE_MODE, Base, CommitId, TreeId
from patchkit.model.outcome import Status
from patchkit.model.repair import repaired
from patchkit.model.resolution import parse_resolution
from patchkit.model.series_file import parse_series
from patchkit.ops.upstream_tests import read_junit, read_record
from patchkit.report.markdown import plan_issues
from patchkit.stack.build import SeriesPatch
from patchkit.stack.importing import ImportSource, readable
from patchkit.stack.lockfile import load_lock
from patchkit.stack.patch_lists import parse_list
from patchkit.stack.series import ImportedPatch
from patchkit.upstream.archive import Budget, unpack
from tests.extensions.installed.wheels import install
from tests.extensions.python_guards.test_agreement import CALLS, LIB
from tests.extensions.python_guards.trees import agreed
from tests.extensions.python_guards.trees import contracts as declare
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.model.oracle import Objects, git_diff, mailinfo, our_verdict
from tests.model.test_like_git import OPTIONS, Files, hold_to_git, some_edits, some_files
from tests.support.archives import Content, make_tar, make_zip
from tests.support.repos import Symlink

_ROOT = Path(__file__).parent.parent.parent
_MANIFESTS = tuple(
    path.read_bytes() for path in sorted(_ROOT.glob("tests/data/manifests/*/*.yaml"))
)
_ISSUE = (
    b'<!-- patchkit {"id": "pk-0123456789ab", "is_open": true, "rule": "broken-upstream", '
    b'"level": "error", "look": "drift", "of": ["demo: demo"], "title": "x"} -->\n# x\n\nA body.\n'
)
#: Python that calls from one component into another: our test's own.
_PYTHON = tuple(text.encode() for text in (*LIB.values(), *CALLS))
_PYTHON_WORDS = (
    *(
        b"import lib",
        b"from lib import *\n",
        b"lib.ops.scale",
        b"**d",
        b"*a",
        b"super()",
        b"lambda x:",
    ),
    *(b"class A(A):", b"@dataclass\n", b"x = x(x)\n", b"async ", b"self.", b"\t", b"    ", b"\\\n"),
    *(b"from . import lib\n", b"from ... import x\n", b"match x:\n case y: pass\n", b"(x := lib)"),
)
_YAML = (
    b"[",
    b"}",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"<<",
    b"'",
    b"#",
    b"|",
    b"!!python/name:os",
    b"~",
)
_DIFF = (
    *(b"@@ -1 +1 @@\n", b"@@ -0,0 +1 @@\n", b"diff --git a/a b/a\n", b"--- a/a\n", b"+++ b/b\n"),
    *(b"rename from a\n", b"rename to ../x\n", b"GIT binary patch\nliteral 1\n", b"delta 9\n"),
    *(b"new file mode 120000\n", b"index 1..2 160000\n", b"\\ No newline at end of file\n"),
    *(
        b"--- /dev/null\n",
        b'"a/\\056\\056/x"',
        b"-- \n2.39\n",
        b"old mode 100644\nnew mode 100755\n",
    ),
)
_MAIL = (
    *(b"From: a <b@c>\n", b"Subject: [PATCH 1/2] x\n", b"Date: Fri, 2 Jan 2026 03:04:05 +0000\n"),
    *(b"=?utf-8?q?=C3=A4?=", b"=?x?b?!?=", b"Content-Transfer-Encoding: base64\n", b"---\n"),
    *(b"Content-Type: text/plain; charset=utf-16\n", b"From 1 Mon Sep 17 00:00:00 2001\n", b" x\n"),
)
_CHANGE = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
_RECIPE = recipe_text(DROP, text=({"id": "t", "find": "a", "replace": "b"},)).encode()
_SERIES = b"# why\none.patch\ntwo.patch -p0 # here\n\nthree.patch\n"
_LISTS = {
    "series": b"# all\n\tone.patch\n+a\ttwo.patch -p0 # here\n-a three.patch\n- off.patch\n",
    "conandata.yml": b'sources:\n  "1.2": {url: ""}\npatches:\n  "1.2":\n    # why\n'
    b'    - patch_file: "patches/one.patch"\n      base_path: src\n\n'
    b"    - patch_file: patches/two.patch  # here\n  a:\n    - patch_file: patches/two.patch\n",
    "source.json": b'{\n    "patches": {\n        "one.patch": "sha256-x",\n'
    b'        "two.patch": "sha512-y"\n    },\n    "patch_strip": 1\n}\n',
}
_LOCK = (
    b'{"components": {"demo": {"base": {"commit": "%(o)s", "tree": "%(o)s"}, "patches": [{"name":'
    b' "a.patch", "sha256": "%(h)s", "tree": "%(o)s"}], "tree": "%(o)s"}}, "version": 1}'
) % {b"o": b"1" * 40, b"h": b"2" * 64}
_JSON = (b"{", b"}", b"[", b"]", b'"', b"null", b"true", b"1e999", b",", b":", b"NaN", b'"\\ud800"')


def patch(random: Random) -> None:
    """A damaged patch is read or refused; what is read gives its own bytes back."""
    before = some_files(random)
    clean = _header(random) + git_diff(before, some_edits(random, before), "--binary")
    data = damaged(random, clean, (*_DIFF, *_MAIL), (clean,))
    strip = random.choice([0, 1, 1, 1, 2])
    with suppress(BadInputError):
        found = parse_patch(data, name="x.patch", strip=strip)
        assert found.preamble + found.diff + found.signature == data
        lint_patch(found, name="x.patch", ours=True)
        our_verdict(before, data, strip)


def mends(random: Random) -> None:
    """A patch whose counts or last newline are spoiled is mended to what it was, or refused."""
    before = some_files(random)
    clean = git_diff(before, some_edits(random, before))
    lines = clean.split(b"\n")
    heads = [at for at, line in enumerate(lines) if line.startswith(b"@@ -")]
    names = []
    if heads:
        at = random.choice(heads)
        old, new = random.sample(range(3, 90), 2)
        lines[at] = re.sub(rb"(-\d+)\S* (\+\d+)\S*", rb"\g<1>,%d \g<2>,%d" % (old, new), lines[at])
        names = [f"counts of line {at + 1}"]
    data = b"\n".join(lines)
    if random.random() < 0.5 and data.endswith(b"\n"):
        data, names = data[:-1], ["last newline", *names]
    with suppress(BadInputError):
        found = parse_patch(repaired(data, names, "x.yaml:1"), name="x.patch")
        assert found.changes == parse_patch(clean, name="x.patch").changes


def patch_as_git(random: Random) -> None:
    """git's verdict on a damaged patch, and its tree."""
    hold_to_git(random, random.choice(OPTIONS), mutated=random.random() < 0.8)


def mail(random: Random) -> None:
    """A damaged mail header is read or refused; what was read and written again stays."""
    data = damaged(random, _header(random), _MAIL, (_header(random),))
    with suppress(BadInputError):
        header = parse_patch(data, name="x.patch").header
        if header is not None and header.message.strip():
            written = format_header(header)
            again = parse_patch(written + _CHANGE, name="x.patch").header
            assert again is not None
            assert format_header(again) == written
        readable(ImportSource("patch", (ImportedPatch("x.patch", data, "x"),)))


def mail_as_git(random: Random) -> None:
    """Author, address, subject, date and message of an odd mail are what git mailinfo finds."""
    against_mailinfo(odd_mail(random))


def odd_mail(random: Random) -> bytes:
    """A mail with fields in any order, folded, doubled, encoded, labelled and in the body."""
    eol = b"\n"
    lines = [_odd_field(random) for _ in range(random.choice([2, 3, 4, 6]))]
    lines += [_field(random, "From", _names(random)), _field(random, "Subject", _subjects(random))]
    random.shuffle(lines)
    if random.random() < 0.3:
        lines.insert(0, b"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001")
    body = [_odd_line(random) for _ in range(random.randrange(6))]
    text = [*lines, random.choice([b"", b"", b"", b" ", b"no field"]), *body]
    return eol.join([*text, b"---", _CHANGE])


def against_mailinfo(data: bytes) -> str:
    """Hold our reading of a mail to git's; a word for what came of it.

    Where git is not followed on purpose, docs/why-own-engine.md says why: tags that are none of
    `[PATCH]` stay, with the blanks in a subject; a line that is UTF-8 stays so under any label; a
    name stays a name though it is long or has an @; what names no address is no field in a body.
    """
    told = mailinfo(data)
    if told is None:
        return "refused by git"
    try:
        header = parse_patch(data, name="x.patch").header
    except BadInputError:
        return "refused by us"
    author = header.author if header is not None else None
    ours = (author.name, author.email) if author is not None else ("", "")
    message = header.message if header is not None else ""
    theirs = (_cleaned(told["Author"]), _cleaned(told["Email"]).replace(" ", ""))
    if theirs[1] and theirs[0] != theirs[1]:
        assert ours == theirs, (ours, theirs)
    subject = clean_message("\n".join([told["Subject"], "", *told["message"].split("\n")]))
    assert _flat(message) == _flat(subject), (message, subject)
    return "same"


def _flat(text: str) -> str:
    """A message without what may differ on purpose: blanks in its subject and at line ends."""
    subject, _, body = text.partition("\n\n")
    return " ".join(subject.split()) + "\n\n" + "\n".join(map(str.rstrip, body.split("\n")))


def _cleaned(name: str) -> str:
    """As git cleans an identity when it makes the commit."""
    return re.sub(r"[\n<>]", "", name).strip(" \t\r\n.,:;<>\"\\'")


def _names(random: Random) -> bytes:
    name = random.choice(["Ann Author", "Jörg Ä", "O. N. E", "名 前", "A-B C'D", "a", "Doe, J."])
    form = random.randrange(9)
    if form < 3 and not name.isascii():
        name = MailHeader(name, random.choice(["utf-8", "utf-8"])).encode()
    return (
        f"{name} <a@example.com>",
        f'"{name}" <a@example.com>',
        f"<a@example.com> ({name})",
        f"a@example.com ({name})",
        f"{name} (at work) <a@example.com>",
        f'{name} <a@example.com> (at "work")',
        "a@example.com",
        f"{name}\n <a@example.com>",
        f'"{name} \\"x\\"" <a@example.com>',
    )[form].encode()


def _subjects(random: Random) -> bytes:
    tags = ("[PATCH] ", "[PATCH v2 3/9] ", "[RFC PATCH]", "Re: ", "[PATCH]", "RE:", "[PATCH]\t", "")
    text = "".join(random.choices(tags, k=random.randrange(3)))
    words = random.choices(["Fix", "größe", "the", "x" * 30, "(#12)", "名", "a:b", "[x]"], k=4)
    shown = " ".join(words)
    if random.random() < 0.4:
        return MailHeader(text + shown).encode(maxlinelen=random.choice([40, 76])).encode()
    if random.random() < 0.3:
        shown = shown.replace(" ", random.choice(["\n ", "\n\t", " \n  ", "\n \n "]), 1)
    return (text + shown).encode()


def _field(random: Random, name: str, value: bytes) -> bytes:
    name = random.choice([name, name, name, name.lower(), name.upper()])
    return name.encode() + random.choice([b": ", b":", b":\t", b":  "]) + value


def _odd_field(random: Random) -> bytes:
    dates = (b"Fri, 2 Jan 2026 03:04:05 +0000", b"2026-01-02 03:04:05 +0100", b"never")
    return random.choice(
        (
            _field(random, "Date", random.choice(dates)),
            _field(random, "To", b"list@example.com,\n other@example.com"),
            b"X-Empty:",
            b"Message-Id: <1@example.com>",
            b"Content-Type: text/plain; charset="
            + random.choice([b"utf-8", b"us-ascii", b'"utf-8"']),
            b"X-Folded: a\n \n b",
            b"MIME-Version: 1.0",
            _field(random, "Subject", _subjects(random)),
            _field(random, "From", _names(random)),
        )
    )


def _odd_line(random: Random) -> bytes:
    return random.choice(
        (
            *(b"Why.", b"", b"", b"  set in", b"> quoted", b"trailing  ", "größe".encode()),
            *(b"Signed-off-by: A <a@b>", b"--", b"-- x", b">From x", b"[PATCH] in body"),
            *(b"[PATCH]\tin body", b"a---", b"Index", b"\tTab", b"X: y"),
            _field(random, "From", b"Body Author <body@example.com>"),
            _field(random, "Subject", _subjects(random)),
            _field(random, "Date", b"Fri, 2 Jan 2026 03:04:05 +0000"),
            b"From: Folded\n <folded@example.com>",
        )
    )


def manifest(random: Random) -> None:
    """A damaged manifest is loaded or refused."""
    data = damaged(random, random.choice(_MANIFESTS), _YAML, _MANIFESTS)
    with tempfile.TemporaryDirectory() as folder, suppress(BadInputError):
        path = Path(folder) / "manifests" / "demo.yaml"
        path.parent.mkdir()
        path.write_bytes(data)
        load_manifest(path)


def patch_lists(random: Random) -> None:
    """Damaged lists are read or refused, written as they were read, and take one patch more."""
    where = Location(Path("m.yaml"), 1)
    for name, sample in _LISTS.items():
        data = damaged(random, sample, (*_YAML, *_JSON, b"patch_file", b"+a "), (*_LISTS.values(),))
        entry = LocalSeries(name, where, target=random.choice(("", "a", "1.2")))
        with suppress(BadInputError):
            series = parse_list(data, entry)
            assert series.data == data
            before = series.names
            written = series.append("zz-new.patch").data
            assert parse_list(written, entry).names == (*before, "zz-new.patch")


def small_files(random: Random) -> None:
    """Damaged recipes, series, locks and journals are read or refused."""
    with suppress(BadInputError):
        parse_recipe(damaged(random, _RECIPE, _YAML, _MANIFESTS), Path("x.recipe.yml"))
    with suppress(BadInputError):
        data = damaged(random, _SERIES, (b"-p1", b"#", b"-p", b"../x.patch", b"-R"), (_SERIES,))
        series = parse_series(data, name="series")
        assert len(set(series.names)) == len(series.names)
    journal = b'{"version": 2, "steps": [{"path": "a", "beside": null, "old": null, "new": null}]}'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        folder.mkdir()
        (Path(name) / "kept").write_bytes(b"kept")
        (folder / "lock").write_bytes(damaged(random, _LOCK, _JSON, (_LOCK,)))
        (folder / JOURNAL).write_bytes(damaged(random, journal, (*_JSON, b"../kept"), (_LOCK,)))
        with suppress(BadInputError):
            load_lock(folder / "lock")
        with suppress(PatchkitError):
            recover(folder)
        assert (Path(name) / "kept").read_bytes() == b"kept"


def issues(random: Random) -> None:
    """A damaged issue is read, kept to its file's name, or refused."""
    name = "pk-0123456789ab.md"
    data = damaged(random, _ISSUE, (*_JSON, b"-->", b"closed", b"drift"), (_ISSUE,))
    with suppress(BadInputError):
        for each in plan_issues({}, {name: data.decode("utf-8", "replace")}):
            assert f"{each.issue.id}.md" == name  # nobody chooses where we write


def contracts(random: Random) -> None:
    """Two components of odd Python are looked at to the end, and twice with one answer."""
    files = {
        f"{tree}/{name}.py": damaged(random, random.choice(_PYTHON), _PYTHON_WORDS, _PYTHON)
        for tree in ("lib", "app")
        for name in ("__init__", "ops", "layer")
    }
    trees = [
        (tree, {path: data for path, data in files.items() if path.startswith(tree)}, declared)
        for tree, declared in (("lib", declare("lib")), ("app", declare("app lib.ops")))
    ]
    assert agreed(*trees) == agreed(*trees)


def carry(random: Random) -> None:
    """A stack comes through to any base: the same base as it was, its result as absorbed."""
    old = _plain(some_files(random))
    patched, new = (_plain(some_edits(random, old)) for _ in range(2))
    patches = _series(old, patched, _plain(some_edits(random, patched)))
    objects = Objects()
    trees = objects.tree(old), objects.tree(new)
    bases = [
        Base(CommitId(digit * 40), TreeId(tree), "0 +0000")
        for digit, tree in zip("12", trees, strict=True)
    ]
    same = carry_stack(objects, bases[0], bases[0], patches)
    assert {each.status for each in same.outcomes} <= {Status.UNCHANGED}
    for careful in (False, True):
        report = carry_stack(objects, bases[0], bases[1], patches, CarryOptions(careful=careful))
        assert len(report.outcomes) == len(patches)
        assert not (careful and any(each.review for each in report.outcomes))
    again = carry_stack(objects, bases[0], bases[1], patches, CarryOptions(careful=True))
    assert again.stack.tree == report.stack.tree


def archive(random: Random) -> None:
    """A damaged archive is unpacked into names inside it, or refused."""
    files: dict[str, Content] = {"d-1/a": "a\n", "d-1/b/c": "c\n" * 99, "d-1/link": Symlink("b/c")}
    made = random.choice([make_zip(files), make_tar(files, compression="")])
    data = damaged(random, made, (b"../x", b"/etc/x", b"d-1/link/x", b"1" * 8), (made,))
    if random.random() < 0.3:
        data = _odd_tar(random)
    with tempfile.TemporaryDirectory() as folder, suppress(BadInputError):
        path = Path(folder) / "archive"
        path.write_bytes(data)
        for member in unpack(path, Budget(size=1 << 22, members=1000)):
            parts = member.path.split("/")
            assert not {"", ".", "..", ".git"} & set(parts), member.path


def installed(random: Random) -> None:
    """A damaged receipt, or RECORD, is refused, or taken back inside its folder."""
    before, after = b"x = 1\n", b"x = 2\n"
    with tempfile.TemporaryDirectory() as name:
        site, kept = Path(name) / "site", Path(name) / "kept"
        kept.write_bytes(b"kept")
        record = install(site, {"demo/a.py": "x = 2\n", "demo/b.py": "y\n"})
        file = LayerFile("demo/a.py", ("one.patch",), (digest_of(before), digest_of(after)))
        layer = Layer("m", "demo", "1" * 40, "3" * 64, ("one.patch",), (file,))
        data, edits = edited(record.read_bytes(), "demo-1.0.dist-info/RECORD", {"demo/a.py": after})
        kept_before = (packed("demo/a.py", before, after),)
        receipt = Receipt(
            1, 1, layer, kept_before, (RecordBefore("demo-1.0.dist-info/RECORD", edits),)
        )
        good = receipt_bytes(receipt)
        (site / receipt.name).parent.mkdir()
        (site / receipt.name).write_bytes(damaged(random, good, (*_JSON, b"../kept"), (good, data)))
        record.write_bytes(damaged(random, data, (b",,", b'"', b"../kept,,\n"), (data,)))
        with suppress(PatchkitError):
            assert attest([site], None).folders == (str(site),)
            reverse_into(site, manifest=None, components=(), dry_run=False)
        assert kept.read_bytes() == b"kept"
        assert sorted(each.name for each in Path(name).iterdir()) == ["kept", "site"]


def test_results(random: Random) -> None:
    """Damaged JUnit XML, and a damaged record of tests, are read or refused."""
    data = damaged(random, _JUNIT, (b"<failure/>", b"&amp;", b"<!DOCTYPE", b"\xff"), (_JUNIT,))
    with suppress(ValueError):
        assert set(read_junit(data).values()) <= {"passed", "skipped", "failed"}
    learnt = (
        b'{"version": 1, "components": {"demo": {"base": "1", "run": "x",'
        b' "unpatched": {}, "patched": {"a::b": "passed"}}}}'
    )
    with tempfile.TemporaryDirectory() as name, suppress(BadInputError):
        path = Path(name) / "demo.tests.json"
        path.write_bytes(damaged(random, learnt, _JSON, (learnt,)))
        read_record(path)


def merger(random: Random) -> None:
    """Whatever a merger answers: what is taken has no markers, and loses and doubles no line."""
    lines = [f"line {n} {random.choice('abc')}\n".encode() for n in range(random.randint(1, 12))]
    sides = [[*lines], [*lines]]
    for side in sides:
        at = random.randrange(len(side) + 1)
        side[at : at + random.choice([0, 1, 2])] = [b"new %d\n" % random.randrange(3)]
    base, upstream, patched = (b"".join(each) for each in (lines, *sides))
    marked = b"<<<<<<< a\n" + upstream + b"=======\n" + patched + b">>>>>>> b\n"
    asked = MergeRequest("a.txt", base, upstream, patched, marked, (), ())
    for start in (marked, upstream + patched, upstream, patched):
        answer = damaged(random, start, (b"\n", b"=======\n", b"\0"), (marked, base))
        if refused(asked, answer):
            continue
        assert not re.search(rb"(?m)^(<{7}|>{7}) ", answer)
        there = answer.split(b"\n")
        both = [x for x in lines if x in sides[0] and x in sides[1]]
        assert all(line.strip() in {each.strip() for each in there} for line in both)
        for line in {each.strip() for each in lines}:
            most = sum(side.count(line + b"\n") for side in sides)
            assert [each.strip() for each in there].count(line) <= most


def package_lists(random: Random) -> None:
    """A damaged recipe or spec is read or refused; names stay inside, and what is left is named."""
    recipe = damaged(random, _RECIPE, _RECIPE_WORDS, (_RECIPE,))
    spec = damaged(random, _SPEC, _SPEC_WORDS, (_SPEC,))
    for name, data in (("foo_1.bb", recipe), ("foo.spec", spec)):
        with suppress(BadInputError):
            listed = parse_list(data, LocalSeries(name, Location(Path("m.yaml"), 1)))
            assert listed.unusable or listed.data == data
            for patch in listed.entries:
                assert is_listed_name(patch.name)
                assert patch.strip is not None
                assert 0 <= patch.strip <= 99
            notes = (*listed.left_out, *listed.unusable)
            assert all(note.where and note.hint for note in notes)


_RECIPE = b"""\
require foo.inc
X = "a"
SRC_URI = "https://e.com/${BP}.tgz file://${X}.patch \\
    file://b.diff;striplevel=0 \\
"
SRC_URI:append = " file://c.patch;apply=yes"
SRC_URI_append_arm = " file://d.patch"
FILESEXTRAPATHS:prepend := "${THISDIR}/x:"
"""
_RECIPE_WORDS = (b"${X}", b"../", b"/", b";", b'"', b"'", b" \\\n", b":remove", b"+=", b"${", b"}")
_SPEC = b"""\
%global x foo
Name: foo
Patch0: a.patch
Patch: https://e.com/%{x}.patch
%prep
%autosetup -p1
%patch -P 1 -p2
%build
"""
_SPEC_WORDS = (b"%if 1\n", b"%endif\n", b"%{x}", b"../", b"%", b"%patchlist\n", b"-R", b"99", b"\n")


def resolutions(random: Random) -> None:
    """A damaged record of a resolution is read or refused."""
    with suppress(BadInputError):
        found = parse_resolution(damaged(random, _RESOLUTION, (b"Merged-By: ",), (_PATCH,)), "x")
        assert "\n" not in found.by


_PATCH = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
_RESOLUTION = (
    b"Subject: Resolve x.patch in f\n\nConflict: " + b"0" * 64 + b"\nUpstream: 100644 "
    b"78981922613b2afb6025042ff6bd878ac1994e85\nResult: none\nMerged-By: me\n\n" + _PATCH
)

_JUNIT = (
    b'<?xml version="1.0"?><testsuites><testsuite name="a"><testcase classname="a.b" name="one"/>'
    b'<testcase classname="a.b" name="two"><failure message="x">y</failure></testcase>'
    b'<testcase name="three"><skipped/></testcase></testsuite></testsuites>'
)

TARGETS: dict[str, Callable[[Random], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        *(
            patch,
            patch_as_git,
            mail,
            mail_as_git,
            manifest,
            small_files,
            patch_lists,
            contracts,
            carry,
            archive,
        ),
        *(recipe, text_rule, metadata, records, installed, issues, test_results),
        *(merger, resolutions, package_lists, mends),
        *(rewriters, sed),
    )
}


def _header(random: Random) -> bytes:
    body = random.choice(
        ["", "Why.\n", "From: B <b@c.d>\n\nWhy.\n", "Subject: other\n", "> quoted\n"]
    )
    tag = random.choice(["", "[PATCH] ", "Re: [tag] "])
    end = random.choice(["---\n a | 2 +-\n\n", "---\n", "", "\n"])
    return (
        f"From: Ann Author <ann@example.com>\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n"
        f"Subject: {tag}Change the\n thing\n\n{body}{end}"
    ).encode()


def _plain(files: Files) -> Files:
    """Files only: what a submodule or a link is merged to is another matter."""
    return {path: what for path, what in files.items() if what[0] == FILE_MODE}


def _series(*trees: Files) -> Sequence[SeriesPatch]:
    pairs = [(old, new) for old, new in pairwise(trees) if old != new]
    diffs = [git_diff(old, new, "--binary", "--full-index", "-M") for old, new in pairs]
    return [
        SeriesPatch(f"{number}.patch", parse_patch(diff, name="x"))
        for number, diff in enumerate(diffs)
    ]


def _odd_tar(random: Random) -> bytes:
    out = io.BytesIO()
    names = (
        "a",
        "a/b",
        "../x",
        "/x",
        "a/../../x",
        ".git/config",
        "A",
        "link",
        "link/x",
        "a\\b",
        "",
    )
    kinds = (*[tarfile.REGTYPE] * 4, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE)
    kinds += (tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE, tarfile.CONTTYPE)
    with tarfile.open(fileobj=out, mode="w") as tar:
        for _ in range(random.choice([1, 3, 9])):
            info = tarfile.TarInfo(random.choice(names))
            info.type = random.choice(kinds)
            info.linkname = random.choice(["a", "../x", "/etc/passwd", "link", ".", ""])
            info.mode = random.choice([0o644, 0o755, 0o6777, 0])
            info.size = 2 if info.isreg() else 0
            tar.addfile(info, io.BytesIO(b"x\n"))
    return out.getvalue()
