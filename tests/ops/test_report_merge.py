"""Jobs of a matrix, and their results joined again."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.drift.lines import edit, numbered
from tests.ops.test_version_sets import at_two_pins
from tests.support.projects import Project
from tests.support.repos import Upstream

BASE = numbered()
OURS = edit("a.py", BASE, l6="ours")


@pytest.fixture
def many(project: Project, upstream: Upstream) -> Project:
    """Two manifests with three components: one fits, one is broken upstream, one at its pin."""
    pin = upstream.commit({"a.py": BASE})
    tip = upstream.commit({"a.py": numbered(l6="theirs")}, "Break ::error::it (#9)")
    patches = {"ours.patch": OURS}
    project.component("fits", upstream, pin, patches, manifest="one")
    project.component("drifts", upstream, pin, patches, manifest="one", track="main")
    project.component("drifts", upstream, tip, patches, manifest="two")
    return project


def _run_jobs(project: Project, *options: str) -> list[str]:
    """What a CI system does with a matrix; the names of the results."""
    jobs = project.run("ci", "--matrix", "--format", "github", *options).ok().json["include"]
    results = []
    for job in jobs:
        results.append(f"results/{job['name']}.json")
        selection = job["options"].split()
        project.run("ci", *selection, "--format", "json", "--output", results[-1])
    return results


@pytest.mark.slow
@pytest.mark.parametrize("most", ["200", "2", "1"])
def test_law_the_jobs_together_are_the_whole(many: Project, most: str) -> None:
    many.run("ci")  # what check knows of other bases depends on what is in the cache
    whole = many.run("ci", "--json")
    results = _run_jobs(many, "--jobs", most)
    assert len(results) == {"200": 3, "2": 2, "1": 1}[most]

    merged = many.run("ci", "--merge", *results, "--json")

    assert merged.code == whole.code == 1
    assert merged.json == whole.json
    many.write({"again.json": merged.out})
    assert many.run("ci", "--merge", "again.json", "--json").json == merged.json


@pytest.mark.slow
def test_law_eight_jobs_on_a_template_are_one_run_to_the_byte(
    project: Project, upstream: Upstream
) -> None:
    """Of three manifests, one with a component at two pins, in every form."""
    at_two_pins(project, upstream)
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break it (#9)")
    for number in range(7):
        more = {"manifest": "two", "track": "main"} if number % 2 else {"manifest": "one"}
        project.component(f"c{number}", upstream, pin, {"ours.patch": OURS}, **more)
    project.run("ci")  # what check knows of other bases depends on what is in the cache
    project.write({"jobs.json": project.run("ci", "--matrix", "--jobs", "8", "--json").ok().out})
    results = _run_jobs(project, "--jobs", "8")
    assert len(results) == 8
    for form in ("text", "json", "github", "junit", "markdown", "sarif"):
        whole = project.run("ci", "--format", form)
        merged = project.run("ci", "--merge", "jobs.json", *results, "--format", form)
        assert merged.code == whole.code == 1
        assert merged.out == whole.out
    assert "demo: lib" in project.run("ci", "--merge", *results).out


@pytest.mark.slow
def test_a_merged_report_has_every_form(many: Project) -> None:
    results = _run_jobs(many)
    junit = ElementTree.fromstring(many.run("ci", "--merge", *results, "--format", "junit").out)
    assert (junit.get("tests"), junit.get("failures")) == ("4", "2")
    github = many.run("ci", "--merge", *results, "--format", "github").out.splitlines()
    assert [line.partition(",")[0] for line in github if line.startswith("::error")] == [
        "::error file=patches/drifts/ours.patch",
        "::error file=patches/drifts/ours.patch",
    ]
    many.run("ci", "--merge", *results, "--format", "markdown").shows("ours.patch")
    many.run("ci", "--merge", *results, "--format", "html", "-o", "r.html").ends(1)
    assert "ours.patch" in (many.root / "r.html").read_text(encoding="utf-8")
    sarif = many.run("ci", "--merge", *results, "--format", "sarif").json
    rules = {each["ruleId"] for each in sarif["runs"][0]["results"]}
    assert rules >= {"does-not-apply", "broken-upstream"}


def test_drift_is_allowed_where_every_job_says_so(many: Project) -> None:
    for name, *more in (("a", "--allow-drift"), ("b",)):
        many.run("ci", "-m", "one", *more, "--format", "json", "-o", f"{name}.json")
    many.run("ci", "--merge", "a.json").ok()
    many.run("ci", "--merge", "b.json").ends(1)


def test_a_job_that_died_is_missed(many: Project) -> None:
    many.write({"jobs.json": many.run("ci", "--matrix", "--json").out})
    results = _run_jobs(many)
    good = results[0]
    many.run("ci", "--merge", good).ok()
    many.run("ci", "--merge", good, "jobs.json").ends(
        5, "one: drifts: no file has a result for it", "two: drifts: no file has a result for it"
    )
    many.run("ci", "--merge", *results, "jobs.json").ends(1)


def test_an_error_of_a_job_is_the_reports_error(many: Project) -> None:
    failed = many.run("ci", "-m", "three", "--json")
    many.write({"broken.json": failed.out})
    ran = many.run("ci", "--merge", "broken.json", _run_jobs(many, "-c", "fits")[0])
    assert (ran.code, failed.code) == (2, 2)
    ran.says("three")


def test_nothing_counts_twice(many: Project) -> None:
    many.write({"a.json": many.run("check", "-m", "one", "--json").out})
    many.write({"b.json": many.run("check", "-m", "one", "-c", "fits", "--json").out})
    many.run("ci", "--merge", "a.json", "b.json").ends(
        4, "b.json: one: fits is in another file, too"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "is not JSON"),
        ("[]", "is not a patchkit result"),
        ('{"schema": "patchkit/ci/1"}', "has version 1 of the schema"),
        ('{"schema": "patchkit/apply/2"}', "is a result of `patchkit apply`"),
        ('{"schema": "patchkit/check/2"}', "object missing required field `strict`"),
        ('{"schema": "patchkit/check/2", "strict": 1}', "strict: expected `bool`, got `int`"),
        (
            '{"schema": "patchkit/drift/2", "components": [3]}',
            "components[0]: expected `object`, got `int`",
        ),
        (
            '{"schema": "patchkit/drift/2", "components": '
            '[{"manifest": "m", "name": "n", "pin": "p", "exit_code": 99}]}',
            "components[0].exit_code: invalid enum value 99",
        ),
    ],
)
def test_what_is_no_result_is_refused(project: Project, text: str, said: str) -> None:
    project.write({"x.json": text})
    project.run("ci", "--merge", "x.json", "absent.json").ends(
        4, f"x.json: {said}", "absent.json: "
    )


def test_a_pipeline_for_gitlab(many: Project) -> None:
    pipeline = yaml.safe_load(many.run("ci", "--matrix", "--format", "gitlab").ok().out)
    assert pipeline["include"] == [{"local": "ci/gitlab.yml"}]
    assert pipeline["report"]["extends"] == ".patchkit-report"
    bump = yaml.safe_load(many.run("ci", "--matrix", "--format", "gitlab", "--only", "bump").out)
    assert bump.keys() == {"include", "patchkit"}
    assert len(bump["patchkit"]["parallel"]["matrix"]) == 1
    rows = pipeline["patchkit"]["parallel"]["matrix"]
    assert [row["PATCHKIT_SELECTION"] for row in rows] == [
        "--manifest one --component fits",
        "--manifest one --component drifts",
        "--manifest two --component drifts",
    ]
    url = "https://example.com/ci.yml"
    other = many.run("ci", "--matrix", "--format", "gitlab", "--include", url).ok().out
    assert yaml.safe_load(other)["include"] == [{"remote": url}]


def test_a_cache_key_says_what_is_fetched(many: Project, upstream: Upstream) -> None:
    jobs = many.run("ci", "--matrix", "--json").json["jobs"]
    same, also, other = jobs
    assert len({job["cache_like"] for job in jobs}) == 1  # one upstream
    assert all(job["cache"].startswith(job["cache_like"]) for job in jobs)
    assert other["cache"] != also["cache"]  # another pin
    assert len({job["name"] for job in jobs}) == 3
    elsewhere = Upstream.create(Path(upstream.path).parent / "else.git")
    many.component("fits", elsewhere, {"a.py": BASE}, {"ours.patch": OURS}, manifest="one")
    assert many.run("ci", "--matrix", "--json").json["jobs"][0]["cache_like"] != same["cache_like"]


def test_names_that_no_job_can_pass_on(project: Project, upstream: Upstream) -> None:
    path = project.component("demo", upstream, {"a.py": BASE}, {"ours.patch": OURS}, manifest="a b")
    project.run("ci", "--matrix", "-m", str(path.relative_to(project.root))).ends(
        4, "a b has characters in its name"
    )
    project.run("ci", "--matrix", "-m", "a b", "--jobs", "0").ends(2)
