"""What a release is made of: metadata, README, man pages, digests, the documentation's site."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from patchkit import REPOSITORY, __version__
from patchkit.cli.catalog import all_commands
from patchkit.manifest.json_schema import schema_text
from patchkit.report.json import one_word
from tests.support.commands import run_process
from tests.support.projects import write_files
from tools.hatch_build import absolute_links, man_page, manual, urls
from tools.reference import reference_pages
from tools.release import changes, in_the_way

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def _yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


# -- links -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/b.md)", "[a](https://x/blob/v1/docs/b.md)"),
        ("[a](docs/b.md#c)", "[a](https://x/blob/v1/docs/b.md#c)"),
        ("![a](i.png)", "![a](https://x/raw/v1/i.png)"),
        ("[![a](i.png)](b.md)", "[![a](https://x/raw/v1/i.png)](https://x/blob/v1/b.md)"),
        ("[a](#b) [c](https://y/z)", "[a](#b) [c](https://y/z)"),
        ("```console\n[a](b)\n```", "```console\n[a](b)\n```"),
    ],
)
def test_relative_links_become_absolute(text: str, expected: str) -> None:
    assert absolute_links(text, "https://x", "v1") == expected


def test_no_link_of_the_readme_is_relative_on_the_package_index() -> None:
    text = absolute_links((ROOT / "README.md").read_text("utf-8"), REPOSITORY, "v1")
    links = re.findall(r"\]\(([^)\s]+)", re.sub(r"(?ms)^```.*?^```$", "", text))
    assert len(links) > 20
    assert [each for each in links if not re.match(r"https://|#", each)] == []
    inside = [each.split("/v1/")[1].partition("#")[0] for each in links if "/v1/" in each]
    assert [each for each in inside if not (ROOT / each).exists()] == []


def test_addresses_are_files_that_are_there() -> None:
    for address in urls(REPOSITORY, "v1").values():
        assert address.startswith(REPOSITORY)
        _, _, path = address.partition("/blob/v1/")
        assert (ROOT / path).exists()


def test_the_repository_is_named_in_one_place() -> None:
    """But for what is generated, and where a reader is told to fill it in."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "grep", "-l", "--fixed-strings", REPOSITORY],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 128:
        pytest.skip("no git checkout")
    written = {each for each in listed.stdout.split() if not each.endswith(".schema.json")}
    assert written == {"patchkit/__init__.py"}


@pytest.mark.parametrize("part", [False, True])
def test_a_schema_has_an_id_below_the_repository(*, part: bool) -> None:
    schema = yaml.safe_load(schema_text(part=part))
    name = schema["$id"].removeprefix(f"{REPOSITORY}/raw/main/")
    assert (ROOT / name).read_text(encoding="utf-8") == schema_text(part=part)


# -- man pages ---------------------------------------------------------------------------------


def test_every_command_has_a_man_page() -> None:
    titles = ["patchkit", *(one_word(f"patchkit {name}") for name in all_commands())]
    assert [*manual()] == [f"share/man/man1/{title}.1" for title in titles]


def test_a_help_page_becomes_a_man_page() -> None:
    page = (
        "Usage: patchkit try [OPTIONS] FILE\n\nTry a thing.\n\nIt's `new`:\nhere.\n\n"
        "Options:\n  -o, --output FILE       Where\n                          to.\n"
        "      --a-very-long-option NAME\n                          What.\n\n"
        "Examples:\n  patchkit try x\n      tries x\n\n"
        "Exit codes:\n  0  done\n  1  a long\n     text\n"
    )
    assert man_page(page, "patchkit-try", "1.2", ["patchkit"]).split("\n")[2:] == [
        ".nh",
        ".SH NAME",
        "patchkit\\-try \\- try a thing",
        ".SH SYNOPSIS",
        ".B patchkit try [OPTIONS] FILE",
        ".SH DESCRIPTION",
        "Try a thing.",
        ".PP",
        "It\\(aqs \\(ganew\\(ga:",
        "here.",
        ".SH OPTIONS",
        ".TP",
        ".B \\-o, \\-\\-output FILE",
        "Where",
        "to.",
        ".TP",
        ".B \\-\\-a\\-very\\-long\\-option NAME",
        "What.",
        ".SH EXAMPLES",
        ".TP",
        ".B patchkit try x",
        "tries x",
        ".SH EXIT STATUS",
        ".TP",
        ".B 0",
        "done",
        ".TP",
        ".B 1",
        "a long",
        "text",
        ".SH SEE ALSO",
        ".BR patchkit (1)",
        "",
    ]


def test_groff_has_nothing_to_say(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    for name, text in manual().items():
        (tmp_path / Path(name).name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [groff, "-man", "-Tascii", "-ww", *sorted(map(str, tmp_path.iterdir()))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "PATCHKIT-CONTINUE(1)" in done.stdout


# -- workflows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml", ROOT / "ci/bump/action.yml"])
def test_actions_of_others_are_pinned_by_digest(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = [each for each in re.findall(r"uses: (\S.*)", text) if not each.startswith("./")]
    loose = [each for each in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)]
    assert used and loose == []


def test_an_action_has_one_digest_everywhere() -> None:
    paths = [*WORKFLOWS, ROOT / "action.yml", ROOT / "ci/bump/action.yml"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    pins = set(re.findall(r"uses: ([^.\s@]\S*)@(\S+ # \S+)", text))
    assert len(pins) == len({name for name, _ in pins})


def test_only_jobs_that_publish_may_write() -> None:
    workflows = {path.stem: _yaml(f".github/workflows/{path.name}") for path in WORKFLOWS}
    for name, workflow in workflows.items():
        assert workflow["permissions"] == {"contents": "read"}, name
    jobs = workflows["release"]["jobs"]
    able = {name: job.get("permissions", {}) for name, job in jobs.items()}
    writing = {name for name, held in able.items() if held.get("contents") == "write"}
    assert writing == {"announce", "site"}
    assert able["publish"] == {"id-token": "write"}
    assert (jobs["publish"]["environment"], jobs["publish"]["needs"]) == ("release", "bare")


def test_ci_runs_on_what_the_classifiers_promise() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    promised = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text))
    for workflow, job in (("ci", "test"), ("release", "bare")):
        jobs = _yaml(f".github/workflows/{workflow}.yml")["jobs"]
        assert set(jobs[job]["strategy"]["matrix"]["python"]) == promised


# -- a release ---------------------------------------------------------------------------------


def _tree(folder: Path, repository: str, changelog: str) -> Path:
    text = f'__version__ = "1.2.3"\nREPOSITORY = "{repository}"\n'
    log = f"# Changelog\n\n{changelog}"
    write_files(folder, {"patchkit/__init__.py": text, "CHANGELOG.md": log})
    return folder


def test_what_is_in_the_way_of_a_release_is_named(tmp_path: Path) -> None:
    tree = _tree(tmp_path, "https://example.com/OWNER/x", "## Unreleased\n\n- a thing\n")
    assert in_the_way("v1.2.4", tree) == [
        "patchkit/__init__.py: the version is 1.2.3, the tag is v1.2.4",
        "patchkit/__init__.py: REPOSITORY is still to be filled in",
        "CHANGELOG.md: no section `## 1.2.3`",
        "CHANGELOG.md: `## Unreleased` is not empty",
    ]
    log = "## Unreleased\n\n## 1.2.3 (2026-11-22)\n\n- a thing\n\n## 1.2.2\n\n- another\n"
    ready = _tree(tmp_path, "https://example.com/you/x", log)
    assert in_the_way("v1.2.3", ready) == []
    assert changes(ready)["1.2.3"] == "- a thing\n"


def test_our_own_tree_lacks_only_what_a_person_does() -> None:
    left = in_the_way(f"v{__version__}")
    assert all("REPOSITORY" in each or "CHANGELOG" in each for each in left)


# -- the site ----------------------------------------------------------------------------------


def _menu(entries: Any) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    inner = entries.values() if isinstance(entries, dict) else entries
    return [page for each in inner for page in _menu(each)]


def test_every_page_is_in_the_menu_of_the_site() -> None:
    pages = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    pages |= reference_pages().keys()
    menu = _menu(_yaml("mkdocs.yml")["nav"])
    assert sorted(menu) == sorted(path.relative_to("docs").as_posix() for path in pages)


# -- systems -----------------------------------------------------------------------------------


def test_a_system_without_flock_is_refused_in_words() -> None:
    script = "import sys; sys.platform = 'win32'; sys.argv[1:] = ['status']\n"
    script += "from patchkit.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 5
    assert done.stderr.startswith("error: patchkit needs Linux or another POSIX system")
    assert run_process("--version").code == 0
