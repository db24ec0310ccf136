"""A project is found from below, and components and manifests by whatever word names them."""

from __future__ import annotations

import json

import pytest

from patchkit.errors import ExitCode
from tests.support.commands import run
from tests.support.projects import Project
from tests.support.repos import Upstream


@pytest.fixture
def one(project: Project, upstream: Upstream) -> Project:
    """A project with one component, `app`, in one manifest, `demo`, applied."""
    project.patched(
        upstream,
        {"a": "1\n", "sub/b": "1\n"},
        {"a": "2\n"},
        name="app",
        patch="two.patch",
        body="Because.",
    )
    project.prepare("apply").ok()
    return project


def _components(text: str) -> list[str]:
    return [each["name"] for each in json.loads(text)["components"]]


def test_a_project_is_found_from_a_checkout(one: Project) -> None:
    (one.checkout("app") / "a").write_text("3\n")
    for folder in (one.checkout("app"), one.checkout("app") / "sub", one.root / "patches" / "app"):
        run("status", cwd=folder).ok().shows("edited")
    run("refresh", cwd=one.checkout("app") / "sub").ok().shows("two.patch")
    assert b"+3" in one.files()["patches/app/two.patch"]
    assert run("apply", cwd=one.root).ok()
    assert not list((one.checkout("app")).rglob("workspace"))


def test_dash_c_goes_to_a_folder_first(one: Project) -> None:
    run("-C", str(one.root), "status").ok().shows("applied")
    run("-C", str(one.root.parent), "-C", one.root.name, "status").ok().shows("applied")
    run("-C", str(one.root / "absent"), "status").ends(ExitCode.USAGE, "No such file")
    run("-C").ends(ExitCode.USAGE)


def test_without_a_project_the_hint_names_the_ways_to_one(tmp_path: object) -> None:
    ran = run("status", cwd=tmp_path)  # type: ignore[arg-type]
    ran.ends(
        ExitCode.USAGE,
        "hint: `patchkit init NAME --git URL --ref TAG` starts one; elsewhere: --manifest",
    )


@pytest.mark.parametrize(
    "words", [["app"], ["-c", "app"], ["demo"], ["demo", "app"], ["-mdemo", "app"]]
)
def test_components_and_manifests_are_named_with_and_without_options(
    words: list[str], one: Project
) -> None:
    for command in ("status", "check", "fetch"):
        assert _components(one.run(command, "--json", *words).ok().out) == ["app"]


def test_a_single_component_need_not_be_named(one: Project, upstream: Upstream) -> None:
    upstream.commit({"a": "1\n", "c": "1\n"})
    for words in ([], ["app"], ["-c", "app"], ["demo"]):
        one.run("bump", *words, "--to", "main", "--dry-run").ok().shows("would bump")


def test_in_a_checkout_its_component_and_manifest_are_meant(
    one: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"z": "1\n"})
    one.component("other", upstream, pin, {}, manifest="second")
    one.component("third", upstream, pin, {}, manifest="second")
    one.run("apply", "second").ok()
    one.run("status").ends(ExitCode.USAGE)
    assert _components(run("status", "--json", cwd=one.checkout("app")).ok().out) == ["app"]
    shown = run("bump", "--to", "main", "--dry-run", cwd=one.checkout("third")).ok().shows("third")
    assert "other" not in shown.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "appp"], "did you mean app?"),
        (["status", "-m", "demo", "demo"], "demo is a manifest"),
        (["status", "nothing"], "there is app"),
        (["status", "--resolved", "demo", "-m", "demo"], "one manifest at a time"),
    ],
)
def test_a_wrong_name_gets_a_hint(words: list[str], said: str, one: Project) -> None:
    one.run(*words).ends(ExitCode.USAGE, said)


def test_several_manifests_are_named_that_have_the_component(
    one: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"z": "1\n"})
    one.component("other", upstream, pin, {}, manifest="second")
    one.component("other", upstream, pin, {}, manifest="third")
    one.run("status", "other").says("choose with -m: second, third")
    one.run("status", "oter").says("did you mean other?")
    assert _components(one.run("status", "second", "--json").ok().out) == ["other"]
    assert len(_components(one.run("check", "second", "third", "--json").ok().out)) == 2
