"""A file of several mails in a series: whatever is done to it, no mail of it is lost."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.support.laws import share
from tests.support.projects import Project, write_files
from tests.support.repos import Content, Upstream, git_in, make_patch
from tests.support.stacked import lines

SIGNED = "Signed-off-by: S1 <s1@example.com>"
BASE: dict[str, Content] = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}


def mail(number: int, before: dict[str, Content], after: dict[str, Content]) -> bytes:
    """A mail as git format-patch writes it, with an author and trailers of its own."""
    patch = make_patch(
        before,
        after,
        subject=f"Mail {number} of several",
        body=f"Reason {number}.\n\nSigned-off-by: S{number} <s{number}@example.com>",
        author=f"Author {number} <a{number}@example.com>",
        date=f"Wed, 15 Nov 2023 10:0{number}:00 +0000",
    )
    head, *others = re.split(rb"^(?=diff )", patch, flags=re.MULTILINE)
    patch = head + b"\nBetween the files.\n\n".join(others)
    line = b"From %040d Mon Sep 17 00:00:00 2001\n" % number
    return line + patch.replace(b"\n\ndiff ", b"\n---\n a note\n\ndiff ", 1) + b"-- \n2.39.5\n\n"


def several(random: Random) -> tuple[bytes, list[dict[str, Content]]]:
    """A file of several mails that change lines of files in turn, and the states they lead to."""
    states = [BASE]
    for number in range(1, random.randrange(3, 5)):
        states.append(states[-1])
        for path in random.choice((["a.txt"], ["a.txt"], ["b.txt"], ["a.txt", "b.txt"])):
            rows = str(states[-1][path]).splitlines(keepends=True)
            at = random.randrange(2, 38)
            rows[at : at + random.randrange(2)] = [f"mail {number}\n"]
            states[-1] = states[-1] | {path: "".join(rows)}
    pairs = enumerate(pairwise(states), 1)
    return b"".join(mail(number, *pair) for number, pair in pairs), states


def words(data: bytes) -> set[bytes]:
    """What mails say: authors, subjects, dates, reasons, trailers, notes, text between files."""
    kept = rb"^(?:From|Subject|Date|Signed-off-by): .*|^Reason .*|^ a note|^Between.*"
    return set(re.findall(kept, data, re.MULTILINE))


def stored(project: Project) -> bytes:
    files = project.files()
    names = files["patches/demo/series"].decode().split()
    return b"".join(files[f"patches/demo/{name}"] for name in names)


def texts(project: Project) -> dict[str, str]:
    folder = project.checkout("demo")
    return {path: (folder / path).read_text() for path in BASE}


def gives(project: Project) -> dict[str, str]:
    """The checkout as the patch files make it, on the base."""
    folder = project.checkout("demo")
    git_in(folder, "checkout", "-q", "-f", "refs/patchkit/base")
    for name in project.files()["patches/demo/series"].decode().split():
        git_in(folder, "apply", str(project.root / "patches/demo" / name))
    made = texts(project)
    git_in(folder, "checkout", "-q", "-f", "patchkit")
    return made


def sent(project: Project, mailbox: Path) -> dict[str, str]:
    """What git am makes of a mailbox on the base, with every author."""
    folder = project.checkout("demo")
    git_in(folder, "checkout", "-q", "-f", "refs/patchkit/base")
    git_in(folder, "am", "-q", "--keep-cr", str(mailbox))
    made = texts(project)
    names = git_in(folder, "log", "--format=%ae", "refs/patchkit/base..HEAD").split()
    assert len(names) == len(set(names))
    git_in(folder, "checkout", "-q", "-f", "patchkit")
    return made


def edited(project: Project, random: Random) -> None:
    """Change a line of a file, at times one of a mail's."""
    path = random.choice(("a.txt", "b.txt", "c.txt"))
    file = project.checkout("demo") / path
    rows = file.read_text().splitlines(keepends=True)
    ours = [at for at, row in enumerate(rows) if row.startswith("mail")]
    at = random.choice(ours) if ours and random.random() < 0.7 else random.randrange(len(rows))
    rows[at] = "edited\n" if random.random() < 0.7 else ""
    file.write_text("".join(rows))


@pytest.mark.slow
@pytest.mark.hypothesis  # by this mark `make faults` selects laws
@pytest.mark.parametrize("seed", range(share(12)))
def test_no_mail_is_lost(project: Project, upstream: Upstream, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    data, states = several(random)
    project.component("demo", upstream, upstream.commit(BASE, "The base"), {"all.patch": data})
    project.run("apply").ok()
    steps = random.choices(("edit", "canonical", "bump", "amend"), k=3)
    for step in steps:
        if step == "edit":
            edited(project, random)
            now = texts(project)
            project.run("refresh", "--patch", "all").ok()
            assert texts(project) == now
        elif step == "canonical":
            project.run("refresh", "--canonical").ok()
        elif step == "bump":
            rows = str(states[0]["a.txt"]).splitlines(keepends=True)
            rows.insert(random.choice((0, 1, 40)), f"upstream's {random.random()}\n")
            new = upstream.commit({"a.txt": "".join(rows)}, "Go on")
            states[0] = states[0] | {"a.txt": "".join(rows)}
            project.run("bump", "demo", "--to", new).ok()
        else:
            project.run(
                "edit", "all", "--message", f"Mail 1 of several\n\nReason 1.\nMore.\n\n{SIGNED}"
            ).ok()
        assert gives(project) == texts(project)
        assert words(data) <= words(stored(project))
    for form in ("mbox", "quilt", "yocto", "rpm"):
        target = tmp_path / ("all.mbox" if form == "mbox" else form)
        options = () if form == "mbox" else ("--format", form)
        project.run("export", *options, "--output", str(target)).ok()
        files = [target] if form == "mbox" else target.rglob("*.patch")
        assert words(data) <= words(b"".join(path.read_bytes() for path in files))
    assert sent(project, tmp_path / "all.mbox") == gives(project)
    count = len([*(tmp_path / "quilt").glob("*.patch")])
    assert count == len(states) - 1 or (count > 1 and "edit" in steps)  # which may empty a mail


@pytest.fixture
def one_file(project: Project, upstream: Upstream) -> dict[str, Content]:
    """Two mails in all.patch, both on a.txt: line 5 is the first one's, line 30 the second's."""
    first = BASE | {"a.txt": lines({5: "mail 1\n"})}
    second = BASE | {"a.txt": lines({5: "mail 1\n", 30: "mail 2\n"})}
    data = mail(1, BASE, first) + mail(2, first, second)
    base = upstream.commit(BASE, "The base")
    project.component("demo", upstream, base, {"all.patch": data})
    project.prepare("apply").ok()
    return second


def mails(project: Project) -> list[bytes]:
    """The mails of the series, without the ids of blobs."""
    return re.split(rb"(?m)^(?=From 0)", re.sub(rb"(?m)^index .*\n", b"", stored(project)))[1:]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_an_edit_goes_to_the_mail_whose_line_it_is(
    project: Project, one_file: dict[str, Content], number: int
) -> None:
    """The other mail stays as it is."""
    before = mails(project)
    file = project.checkout("demo") / "a.txt"
    file.write_text(str(one_file["a.txt"]).replace(f"mail {number}\n", "edited\n"))
    project.run("refresh").ok()
    before[number - 1] = before[number - 1].replace(b"+mail %d" % number, b"+edited")
    assert mails(project) == before


@pytest.mark.slow
def test_a_bump_merges_the_joint_change(
    project: Project, upstream: Upstream, one_file: dict[str, Content]
) -> None:
    """Upstream changed lines beside both: neither mail applies as it is."""
    before = stored(project)
    rows = {3: "upstream 3\n", 32: "upstream 32\n"}
    new = upstream.commit({"a.txt": lines(rows)}, "Go on")
    ran = project.run("bump", "demo", "--to", new).ok()
    assert "twice" not in ran.out
    assert words(before) <= words(stored(project))
    assert gives(project)["a.txt"] == lines(rows | {5: "mail 1\n", 30: "mail 2\n"})


@pytest.mark.slow
def test_a_file_whose_mails_are_all_upstream_is_absorbed(
    project: Project, upstream: Upstream, one_file: dict[str, Content]
) -> None:
    """In upstream's own commits, and with other changes around them."""
    new = upstream.commit({"a.txt": "upstream\n" + str(one_file["a.txt"])}, "Take both")
    project.run("bump", "demo", "--to", new).ok().shows("absorbed")
    assert not project.files()["patches/demo/series"].strip()


@pytest.mark.slow
def test_a_conflict_resolved_by_hand_keeps_the_mails(
    project: Project, upstream: Upstream, one_file: dict[str, Content]
) -> None:
    before = stored(project)
    new = upstream.commit({"a.txt": lines({5: "upstream's\n"})}, "Go on")
    project.run("bump", "demo", "--to", new).ends(3)
    wanted = lines({5: "both\n", 30: "mail 2\n"})
    (project.checkout("demo") / "a.txt").write_text(wanted)
    project.run("continue").ok()
    assert words(before) <= words(stored(project))
    assert gives(project)["a.txt"] == wanted


@pytest.mark.slow
def test_an_import_makes_one_file_a_mail(
    project: Project, upstream: Upstream, one_file: dict[str, Content], tmp_path: Path
) -> None:
    write_files(tmp_path, {"all.patch": stored(project), "series": "all.patch\n"})
    project.component("other", upstream, upstream.commit(BASE, "The base"), manifest="other")
    project.run("import", str(tmp_path), "-m", "other").ok()
    names = project.files()["patches/other/series"].decode().split()
    assert names == ["all.patch", "mail-2-of-several.patch"]
