"""One text for each open cause: stable ids, closed when mended, nothing lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.drift.lines import numbered
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

BASE = numbered()


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Project:
    """Two patches, each on a file of its own, on a tracked branch."""
    body = "Because it has to be.\n\nUpstream-Status: Pending"
    patches = {
        f"{name}.patch": make_patch(
            {f"{name}.py": BASE}, {f"{name}.py": numbered(l6="ours")}, subject="Ours", body=body
        )
        for name in "ab"
    }
    project.component("demo", upstream, {"a.py": BASE, "b.py": BASE}, patches, track="main")
    return project


def _issues(stack: Project, *options: str) -> Ran:
    stack.run("drift", "--format", "json", "--output", "drift.json")
    return stack.run("ci", "--issues", "drift.json", "--output", "issues", *options)


def _rows(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    return list(ran.json["issues"])


def _texts(stack: Project) -> dict[str, str]:
    return {path.name: path.read_text() for path in (stack.root / "issues").glob("*")}


def test_what_one_commit_broke_is_one_issue(stack: Project, upstream: Upstream) -> None:
    theirs = numbered(l6="theirs")
    broke = upstream.commit({"a.py": theirs, "b.py": theirs}, "Change both")
    (row,) = _rows(_issues(stack, "--json"))
    assert (row["change"], row["is_open"], row["rule"]) == ("opened", True, "broken-upstream")
    assert row["of"] == ["demo: demo"]
    assert broke[:10] in row["title"] and "2 findings" in row["title"]
    (text,) = _texts(stack).values()
    first, title, *body = text.split("\n")
    assert json.loads(first[len("<!-- patchkit ") : -len(" -->")])["is_open"]
    assert title.replace("\\", "") == f"# {row['title']}"
    told = "\n".join(body).replace("\\", "")
    assert "patches/demo/a.patch:" in told and "patches/demo/b.patch:" in told


@pytest.mark.slow
def test_an_id_stays_while_upstream_goes_on(stack: Project, upstream: Upstream) -> None:
    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    (before,) = _rows(_issues(stack, "--json"))
    texts = _texts(stack)
    upstream.commit({"a.py": f"more\n{numbered(l6='theirs')}"}, "Move all lines")
    (after,) = _rows(_issues(stack, "--json"))
    assert after["id"] == before["id"] and after["change"] == "unchanged"
    assert _texts(stack) == texts
    upstream.commit({"b.py": numbered(l6="theirs")}, "And the other")
    rows = _rows(_issues(stack, "--json"))
    assert [row["change"] for row in rows] == ["unchanged", "opened"]


@pytest.mark.slow
def test_what_is_mended_is_closed_once_and_reopened(stack: Project, upstream: Upstream) -> None:
    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    (opened,) = _rows(_issues(stack, "--json"))
    found = (stack.root / "drift.json").read_bytes()
    upstream.commit({"a.py": BASE}, "Change it back")
    (closed,) = _rows(_issues(stack, "--json"))
    assert (closed["id"], closed["change"], closed["is_open"]) == (opened["id"], "closed", False)
    (text,) = _texts(stack).values()
    assert '"is_open": false' in text and "Mended:" in text
    (again,) = _rows(_issues(stack, "--json"))
    assert (again["change"], again["is_open"]) == ("unchanged", False)
    stack.write({"drift.json": found})
    words = ("ci", "--issues", "drift.json", "--output", "issues", "--json")
    (back,) = _rows(stack.run(*words))
    assert (back["id"], back["change"], back["is_open"]) == (opened["id"], "reopened", True)


def test_a_dry_run_and_people(stack: Project, upstream: Upstream) -> None:
    """Neither it nor a drift without a finding writes anything."""
    assert _rows(_issues(stack, "--json")) == []
    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    done = _issues(stack, "--dry-run")
    assert re.match(r"opened +pk-[0-9a-f]{12} +a", done.ok().out)
    assert done.out.endswith("1 issue: 1 open, 1 opened\n")
    assert not (stack.root / "issues").exists()


def test_what_was_not_looked_at_is_not_closed(stack: Project, upstream: Upstream) -> None:
    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    _issues(stack).ok()
    texts = _texts(stack)
    stack.run("check", "--format", "json", "--output", "check.json").ok()
    ran = stack.run("ci", "--issues", "check.json", "--output", "issues", "--json")
    assert [row["change"] for row in _rows(ran)] == ["unchanged"]
    upstream.vanish()
    lost = _issues(stack, "--json")
    assert [row["change"] for row in _rows(lost)] == ["unchanged"]  # and none for the network
    assert _texts(stack) == texts


def test_a_pin_that_a_patch_does_not_fit_is_an_issue_of_check(
    stack: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    stack.repin(pin)
    stack.run("check", "--format", "json", "--output", "check.json")
    ran = stack.run("ci", "--issues", "check.json", "--output", "issues", "--json")
    rows = _rows(ran)
    assert [(row["look"], row["rule"]) for row in rows] == [("check", "does-not-apply")]
    assert "a" in rows[0]["title"]


def test_an_issue_about_a_patch_names_it(stack: Project) -> None:
    for name in ("patches/demo/a.patch", "patches/demo/b.patch"):
        text = (stack.root / name).read_bytes()
        stack.write({name: text.replace(b"Because it has to be.\n\n", b"")})
    stack.run("check", "-o", "check.json").ok()
    ran = stack.run("ci", "--issues", "check.json", "--output", "issues", "--json")
    titles = [row["title"] for row in _rows(ran)]
    assert titles == [f"{name}.patch: the message gives no reason" for name in "ab"]


def test_other_files_in_the_folder_stay(stack: Project, upstream: Upstream) -> None:
    stack.write({"issues/README.md": "mine\n", "issues/notes.txt": "mine\n"})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    assert len(_rows(_issues(stack, "--json"))) == 1
    assert len(_texts(stack)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mine\n",
        "<!-- patchkit {} -->\n# x\n",
        "<!-- patchkit [1] -->\n# x\n",
        '<!-- patchkit {"id": "pk-000000000001", "is_open": true, "rule": "x", "level": "error",'
        ' "look": "drift", "of": []} -->\n# x\n',
        "<!-- patchkit " + "[" * 100_000 + " -->\n# x\n",
    ],
)
def test_a_file_that_is_no_issue_is_refused(stack: Project, text: str) -> None:
    stack.write({"issues/pk-000000000000.md": text})
    done = _issues(stack).ends(4)
    assert "pk-000000000000.md" in done.err and "Traceback" not in done.err
    assert _texts(stack) == {"pk-000000000000.md": text}


def test_words_of_others_stay_words(stack: Project, upstream: Upstream) -> None:
    subject = "--> <b>@all</b> [x](y) `z` #1"
    upstream.commit({"a.py": numbered(l6="theirs"), "b.py": numbered(l6="theirs")}, subject)
    (row,) = _rows(_issues(stack, "--json"))
    (text,) = _texts(stack).values()
    _, _, shown = text.partition("\n")
    assert "<b>" not in shown and "[x](y)" not in shown and "-->" not in shown
    assert text.count("-->") == 1 and subject in row["title"]


def test_the_folder_cannot_be_written(stack: Project, upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    stack.write({"file": "x\n"})
    stack.run("drift", "--format", "json", "--output", "drift.json")
    stack.run("ci", "--issues", "drift.json", "--output", "file/issues").ends(5, "file/issues")


_GH = """#!/bin/sh
echo "$*" >> "$LOG"
case $2 in
    list) grep -rl -- "$(echo "$*" | grep -o 'pk-[0-9a-f]*')" "$POSTED" | sed 's|.*/||' ;;
    create) for word in "$@"; do case $word in issues/pk-*) cp "$word" "$POSTED/7";; esac; done ;;
esac
"""
_GLAB = """#!/bin/sh
echo "$1 $2 $3 $4" >> "$LOG"
case $2 in
    list) if [ -f "$POSTED/7" ]; then echo '[{"iid": 7}]'; else echo '[]'; fi ;;
    create) echo "$*" > "$POSTED/7" ;;
esac
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "body"), [("github", "gh", _GH), ("gitlab", "glab", _GLAB)]
)
def test_the_examples_post_update_and_close(  # noqa: PLR0917
    name: str,
    program: str,
    body: str,
    stack: Project,
    upstream: Upstream,
    tmp_path: Path,
    served_patchkit: str,
) -> None:
    programs = tmp_path / "programs"
    posted = tmp_path / "posted"
    posted.mkdir()
    for each, text in ((program, body), ("patchkit", served_patchkit)):
        programs.mkdir(exist_ok=True)
        (programs / each).write_text(text)
        (programs / each).chmod(0o755)
    log = tmp_path / "log"
    around = {"LOG": str(log), "POSTED": str(posted), "PATH": f"{programs}:{os.environ['PATH']}"}
    script = Path(__file__).parents[2] / f"docs/examples/issues-{name}.sh"

    def post() -> str:
        log.write_text("")
        stack.run("drift", "--format", "json", "--output", "drift.json")
        done = subprocess.run(
            ["sh", str(script), "drift.json"],
            cwd=stack.root,
            env={**os.environ, **around},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return log.read_text()

    upstream.commit({"a.py": numbered(l6="theirs")}, "Change six")
    assert "issue create" in post()
    assert post() == ""
    upstream.commit({"a.py": BASE}, "Change it back")
    assert "issue close 7" in post()
