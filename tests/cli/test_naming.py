"""What holds for every command alike, generated from their list: how components and patches are
named, and that no dry run refuses over edits in a checkout.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from patchkit.cli.catalog import all_commands
from patchkit.errors import ExitCode
from tests.support.commands import run
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch
from tools.help_pages import CommandParameter, parameters

#: What a command needs beside its names, so that it comes to look at them.
_NEEDED = {
    "bump": ("--to", "main"),
    "export": ("--format", "quilt", "--output", "quilt"),
    "bisect": ("--to", "latest", "--run", "true"),
    "move": ("--to", "2"),
    "split": ("--file", "sub/b"),
    "edit": ("--message", "Other words"),
}
_VALUES = {"PATCH": "first", "PATCH|COMMIT": "fix-two", "NAME": "another", "DIR|PYTHON": "."}


def _words(command: str, but: CommandParameter | None = None, value: str = "") -> list[str]:
    """A line of the command with all that it needs; `but` has that value there."""
    elsewhere = but is not None and but.keyword in ("before", "after")  # in place of --to
    words = [*command.split(), *(() if elsewhere else _NEEDED.get(command, ()))]
    for each in parameters(command):
        if _is(each, but) or (each.required and each.keyword != "names"):
            given = value if _is(each, but) else _VALUES.get(each.metavar, "x")
            words += [*each.names[:1], given]
    return words


def _is(one: CommandParameter, other: CommandParameter | None) -> bool:
    return other is not None and one.keyword == other.keyword


def _keywords(command: str) -> set[str]:
    return {each.keyword for each in parameters(command)}


def _taking_components() -> Iterator[tuple[str, bool]]:
    """Each command that works on components, and whether it takes them as arguments."""
    for command in all_commands():
        known = {each.keyword: each for each in parameters(command)}
        if "component" in known and "-c" in known["component"].names:
            yield command, "names" in known


def _taking_patches() -> Iterator[tuple[str, CommandParameter]]:
    for command in all_commands():
        for each in parameters(command):
            if each.metavar.startswith("PATCH"):
                yield command, each


#: A few hundred starts of commands, one for each way to name things.
pytestmark = pytest.mark.slow


@pytest.fixture
def project(project: Project, upstream: Upstream) -> Project:
    """Two components; `app` has two patches."""
    files = {"a": "1\n", "sub/b": "1\n"}
    after = {"a": "2\n", "sub/b": "2\n"}
    patches = {
        "first.patch": make_patch(after, {**after, "c": "1\n"}, body="Because."),
        "fix-two.patch": make_patch(files, after, body="Because."),
    }
    pin = upstream.commit(files)
    project.component("app", upstream, pin, patches)
    project.component("tools", upstream, pin, {})
    return project


@pytest.mark.parametrize(("command", "argument"), [*_taking_components()])
def test_components_are_named_alike(command: str, argument: bool, project: Project) -> None:
    ways = [("-c", "ap"), ("--component", "ap"), *([("ap",)] if argument else [])]
    for way in ways:
        run(*_words(command), *way, cwd=project.root).ends(
            ExitCode.USAGE, "ap: no such component", "did you mean app?"
        )


@pytest.mark.parametrize(
    ("command", "where"),
    [pytest.param(*each, id=f"{each[0]} {each[1].keyword}") for each in _taking_patches()],
)
def test_patches_are_named_alike(command: str, where: CommandParameter, project: Project) -> None:
    """By number, its file, a beginning that only it has, with the ending or not; did-you-mean."""
    project.prepare("apply").ok()
    (project.checkout("app") / "new").write_text("1\n")
    git_in(project.checkout("app"), "add", "new")
    dry = ["--dry-run"] if "dry_run" in _keywords(command) else []

    def ran(value: str) -> tuple[int, str, str]:
        done = project.run(*_words(command, where, value), "-c", "app", *dry)
        return done.code, done.out, done.err

    said = ran("fix-two.patch")
    assert "no such patch" not in said[2]
    names = ("2", "fix-t", "fix-two", "patches/app/fix-two.patch")
    assert [ran(value) for value in names] == [said] * 4
    for value, word in (("fix-tow", "did you mean fix-two.patch?"), ("9", "no such patch")):
        code, _, err = ran(value)
        assert (code, word in err) == (ExitCode.USAGE, True), err


@pytest.mark.parametrize(
    "command", [each for each in all_commands() if "dry_run" in _keywords(each)]
)
@pytest.mark.parametrize("work", ["edits", "commits"])
def test_a_dry_run_does_not_refuse_over_edits(
    command: str, work: str, project: Project, upstream: Upstream
) -> None:
    """But for `apply`, whose answer is what is in its way."""
    if command == "apply":
        pytest.skip("it says what is in the way")
    upstream.commit({"other": "1\n"})
    project.prepare("apply").ok()
    checkout, words = project.checkout("app"), [*_words(command), "--dry-run"]
    words += ["-c", "app"] if "component" in _keywords(command) else []
    clean = project.run(*words)
    (checkout / "a").write_text("mine\n")
    if work == "commits":
        git_in(checkout, "commit", "-qam", "Mine")
    before = project.files(), git_in(checkout, "status", "--porcelain")
    ran = project.run(*words)
    assert (project.files(), git_in(checkout, "status", "--porcelain")) == before
    if command != "refresh":  # these are about the edits
        assert ran.code == clean.code, ran.err
    assert ran.code != ExitCode.FINDING or clean.code == ExitCode.FINDING, ran.err
