"""Whatever an upstream, a patch or a manifest says, a terminal is only told text."""

from __future__ import annotations

import re

import pytest

from tests.support.commands import Ran
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch, patch_header

pytestmark = pytest.mark.slow

#: A title, a clipboard, a link, a colour, a bell, text from right to left, one line written over
#: another, rich's markup.
ESCAPES = (
    "\x1b]0;t\x07 \x1b]52;c;cm0=\x07 \x1b]8;;http://x\x1b\\ \x1b[31m \x9b31m \x07 \x08"
    " \u202e \rover"
)
MARKUP = "[red]x[/red] [/nope] [link=file:///etc/passwd]y[/link] :boom:"
HOSTILE = f"{MARKUP} {ESCAPES}"

_STEERS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]")


@pytest.fixture
def evil(project: Project, upstream: Upstream) -> Project:
    """An upstream whose names, texts and authors steer terminals, and a patch that does, too."""
    name = f"odd{MARKUP.replace('/', '|')}\x1b[31m.txt"
    base = {name: f"one {ESCAPES}\ntwo\n", "code.py": f"def f():\n    return '{ESCAPES}'\n"}
    first = upstream.commit(base, HOSTILE, author="E\x1b[31mvil <e@x\x1b[0m>")
    upstream.commit({"code.py": f"def g():\n    return '{ESCAPES}'\n"}, HOSTILE)
    changed = {name: f"one {ESCAPES}\n2 {ESCAPES}\n", "code.py": "def f():\n    return 2\n"}
    diff = make_patch(base, changed, subject=None)
    head = patch_header(HOSTILE.replace("\r", ""), HOSTILE, "E\x1b[31mvil <e@x>")
    project.component("demo", upstream, first, {"evil.patch": head + diff}, track="main")
    return project


def _said(ran: Ran) -> bytes:
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("moved", [False, True])
def test_every_command_that_looks(evil: Project, upstream: Upstream, moved: bool) -> None:
    evil.run("apply").ok()
    checkout = evil.checkout("demo")
    write_files(
        checkout,
        {
            "code.py": f"def f():\n    return '{ESCAPES}3'\n",
            f"new\x1b[31m{MARKUP.replace('/', '|')}.txt": "x",
        },
    )
    if moved:
        tip = upstream.at("refs/heads/main")
        evil.component("demo", upstream, tip, {}, track="main")
        evil.write({"patches/demo/series": "evil.patch\n"})
    for words in (
        "check", "check --strict", "status", "log", "apply", "apply --dry-run",
        "drift", "refresh --dry-run", "fetch", "status --resolved", "apply --force",
    ):  # fmt: skip
        ran = evil.run(*words.split())
        assert ran.code in (0, 1, 3, 4, 5), ran.err
        assert not _STEERS.search(_said(ran)), (words, _STEERS.search(_said(ran)), _said(ran))


def test_forms_for_machines(evil: Project) -> None:
    for form in ("junit", "sarif", "github", "markdown", "json", "html"):
        for command in ("check", "drift"):
            ran = evil.run(command, "--format", form)
            assert ran.code in (0, 1, 2), ran.err
            assert not _STEERS.search(_said(ran)), (form, command)
            lines = ran.out.splitlines()
            if form == "github":
                assert all(re.match(r"::(error|warning|notice)\b", each) for each in lines)


def test_a_manifest_that_is_refused_is_quoted_harmlessly(project: Project) -> None:
    project.write({"manifests/demo.yaml": f'version: 1\n"{MARKUP}\\e[31m\\a": "x"\n'})
    for words in ("check", "check --only manifest", "status"):
        ran = project.run(*words.split()).ends(4)
        assert not _STEERS.search(_said(ran))
