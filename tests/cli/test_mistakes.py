"""A common mistake on the command line gets an error that says what is wrong, and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import ExitCode
from tests.support.commands import run
from tests.support.projects import Project
from tests.support.repos import Upstream


@pytest.fixture
def two(project: Project, upstream: Upstream) -> Project:
    """A project with two components, `app` and `tools`, of one manifest; not applied."""
    pin = project.patched(
        upstream,
        {"a": "1\n", "sub/b": "1\n"},
        {"a": "2\n"},
        name="app",
        patch="fix-two.patch",
        body="Because.",
    )
    project.component("tools", upstream, pin, {})
    return project


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        # what must be given is not
        ("new x", "new: no such command", "`patchkit refresh` makes a patch of edits, with --new"),
        ("refresh --new", "refresh: --new needs a value", "--new NAME"),
        ("refresh --new x -m text -c app", "text: no such manifest", "there are: demo"),
        ("refresh --new x -m dmo -c app", "dmo: no such manifest", "did you mean demo?"),
        ("refresh --new x -c app Say why", "one component at a time: Say, why, app", ""),
        ("refresh --new x", "demo.yaml has several components", "name one with -c: app, tools"),
        ("refresh --rest x --new y", "--patch, --new and --rest exclude each other", ""),
        ("move fix-two --to 3 -c app", "3: no such patch", "the series has 1 fix-two.patch"),
        ("split", "split: PATCH is missing", "`patchkit log` lists the patches"),
        ("split fix-two -c app", "split: --new is missing", "--new rope-tests --file"),
        (
            "split fix-two --new b -c app",
            "split: --file is missing: a file whose changes move there",
            "--file tests/test_rope.py",
        ),
        ("move fix-two -c app", "move: --to is missing", "patchkit move fix-rope --to"),
        ("fold fix-two", "fold: --to is missing", "patchkit fold fix-typo --to fix-rope"),
        (
            "export",
            "export: --output is missing: a new folder",
            "export --format quilt",
        ),
        ("import", "import: SOURCE is missing", "patchkit import ../fixes"),
        ("bump app", "bump: --to REF is missing", "--to latest"),
        ("apply -m", "apply: -m needs a value", "-m MANIFEST"),
        ("check --only installed", "DIR|PYTHON is missing", "check --only installed /usr/bin"),
        ("init https://example.com/x.git", "no upstream is given", "init --git https://example"),
        ("init demo", "no upstream is given", "init demo --git URL --ref main"),
        # an option that is spelt in another way
        ("apply --dryrun", "apply: no such option: --dryrun", "did you mean --dry-run?"),
        ("apply -f", "apply: no such option: -f", "see `patchkit apply --help`"),
        ("status --jason", "status: no such option: --jason", "did you mean --json?"),
        ("status --all", "status: no such option: --all", "see `patchkit status --help`"),
        ("--offline apply app", "--offline comes before a command", "patchkit apply app --offline"),
        ("apply --jobs 0", "apply: --jobs takes a number from 1, not 0", "apply --help"),
        ("ci --format xml", "ci: --format: 'xml' is not one of 'text'", "ci --help"),
        ("saev", "saev: no such command", "`patchkit --help` lists them"),
        # a word that is not a component
        ("bump app v2", "v2: no such component", "--to v2"),
        ("refresh fix-two", "fix-two: no such component", "a patch of app, and goes with --patch"),
        ("apply patches/app/fix-two.patch", "no such component", "it is a patch of app"),
        ("apply app,tools", "app,tools: no such component", "words of their own: app tools"),
        ("apply help", "help: no such component", "add --help"),
        ("apply workspace/ap", "workspace/ap: no such component", "did you mean app?"),
        ("drop 1", "demo.yaml has several components", "name one with -c: app, tools"),
        ("refresh --patch fix-tow", "fix-tow: no such patch", "did you mean fix-two.patch?"),
    ],
)
def test_a_mistake_gets_a_hint(words: str, error: str, hint: str, two: Project) -> None:
    ran = run(*words.split(), cwd=two.root).ends(ExitCode.USAGE)
    said, _, hinted = ran.err.partition("\nhint: ")
    assert error in said
    assert hint in hinted


def test_a_manifest_where_there_is_none_is_no_message(tmp_path: Path) -> None:
    run("refresh", "-m", "demo", cwd=tmp_path).says(
        "`patchkit init NAME --git URL --ref TAG` writes one"
    )


def test_in_a_checkout_its_component_is_meant(two: Project) -> None:
    two.run("apply").ok()
    below = two.checkout("app") / "sub"
    run("refresh", cwd=below).ok().shows("app")
    run("status", "workspace/tool", cwd=two.root).ends(2, "did you mean tools?")


@pytest.mark.slow
def test_a_patch_says_which_component_is_meant(two: Project, upstream: Upstream) -> None:
    run("drop", "fix-two", "--dry-run", cwd=two.root).ok().shows("is off the series")
    run("show", "fix-two.patch", cwd=two.root).ok().shows("Because.")
    two.series("tools", {"fix-two.patch": b"", "own.patch": b""})
    ran = run("fold", "own", "--to", "fix-two", "--dry-run", cwd=two.root)
    assert "failed  tools" in ran.out  # the one that has both
    run("show", "fix-two", cwd=two.root).says("several components")
