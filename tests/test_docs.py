"""Every console block in the documentation is run, and prints what the documentation shows.

Blocks of one file run in order in one shell, in an empty folder, after the scripts of examples/
that the page names first, as a reader would do it. `pytest --update-golden` writes what the
commands print into the files; read the difference before committing it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from patchkit.cli.catalog import all_commands, split_command
from patchkit.errors import ExitCode
from tests.support.commands import run_process
from tools.reference import reference_pages

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Run as they are: they make their own upstreams.
RUNNABLE = ["tutorial.md", *sorted(f"howto/{path.name}" for path in (DOCS / "howto").glob("*.md"))]
#: Show the shipped manifest on its real upstreams.
WITH_INDEX = ["README.md"]
PROSE = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "RELEASING.md"]

BLOCK = re.compile(r"(?ms)^```console\n(.*?)^```$")
_SETUP = re.compile(r"(?m)^(\.|sh) ~/patchkit/(examples/[a-z.-]+)$")
_MARK = "=====patchkit-docs====="
#: Plain progress lines: on a terminal these are bars, which are gone when the command has ended.
_PROGRESS = re.compile(
    r"(?!hint:)[a-z0-9._@-]+: (look|fetch|download|unpack|apply|check|mov|creat|unchanged|compar"
    r"|refresh|ambiguous|refused|differs|conflicted|asking|carried)[a-z]*( .*)?"
)
_UNSTABLE = (
    (re.compile(r"\b\d+(\.\d+)? (s|ms|MB|kB)\b"), "N"),
    (re.compile(r"\b\d{8}T\d{6}Z\b"), "STAMP"),
    # the key of a local upstream's cache: its folder is another each time
    (re.compile(r"\bpatchkit-1-[0-9a-f]{12}-([0-9a-f]{12})?"), "KEY"),
)


@dataclass(frozen=True)
class Step:
    """A command of a console block and the output that the document shows."""

    command: str
    output: str


def steps_of(block: str) -> list[Step]:
    """The steps of a console block: `$ ` starts a command, `> ` continues it."""
    steps: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:], ""))
        elif f"{line} ".startswith("> ") and not steps[-1].output:
            steps[-1] = Step(f"{steps[-1].command}\n{line[2:]}", "")
        else:
            steps[-1] = Step(steps[-1].command, f"{steps[-1].output}{line}\n")
    return steps


def run_steps(steps: list[Step], folder: Path, patchkit: str, setup: str = "") -> list[Step]:
    """The same commands with what they really print, stdout and stderr as on a terminal.

    `patchkit` is the text of that program.
    """
    after = f"\ncode=$?\necho; echo {_MARK}\n(exit $code)\n"
    script = "".join(step.command + after for step in steps)
    done = subprocess.run(
        ["sh", "-c", f"exec 2>&1\n{setup}\n{script}"],
        cwd=folder,
        env=os.environ | {"PATH": f"{_commands(folder.parent, patchkit)}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=300,
        check=False,
    )
    outputs = done.stdout.decode().split(f"\n{_MARK}\n")[:-1]
    assert len(outputs) == len(steps), done.stdout.decode()
    return [
        Step(step.command, _tidy(output, folder))
        for step, output in zip(steps, outputs, strict=True)
    ]


def _tidy(output: str, folder: Path) -> str:
    text = output.replace(str(folder), "/home/you").rstrip("\n")
    lines = [line.rstrip() for line in text.splitlines() if not _PROGRESS.fullmatch(line)]
    return "".join(f"{line}\n" for line in lines)


def _commands(folder: Path, patchkit: str) -> Path:
    """A folder with a `patchkit` command in it: the one under test."""
    path = folder / "bin" / "patchkit"
    path.parent.mkdir(exist_ok=True)
    path.write_text(patchkit)
    path.chmod(0o755)
    return path.parent


def _stable(output: str) -> str:
    for pattern, word in _UNSTABLE:
        output = pattern.sub(word, output)
    return output


def _same(one: Step, other: Step) -> bool:
    return _stable(_shown(one)) == _stable(_shown(other))


def _shown(step: Step) -> str:
    lines = "\n> ".join(step.command.split("\n")).split("\n")
    return "$ " + "\n".join(line.rstrip() for line in lines) + "\n" + step.output


def check_document(path: Path, folder: Path, patchkit: str, *, update: bool) -> None:
    """Run all console blocks of a document and compare, or write what they print."""
    text = path.read_text(encoding="utf-8")
    blocks = [steps_of(match[1]) for match in BLOCK.finditer(text)]
    assert blocks, f"{path.name} shows no command"
    setup = "".join(
        f". '{ROOT / match[2]}'\n"
        if match[1] == "."
        else f"sh '{ROOT / match[2]}' >../setup 2>&1 || exec cat ../setup\n"
        for match in _SETUP.finditer(text)
    )
    ran = run_steps([step for block in blocks for step in block], folder, patchkit, setup)
    shown = [step for block in blocks for step in block]
    if update:
        kept = iter(
            _shown(old if _same(old, new) else new) for old, new in zip(shown, ran, strict=True)
        )
        texts = iter(["".join(next(kept) for _ in block) for block in blocks])
        path.write_text(BLOCK.sub(lambda _: f"```console\n{next(texts)}```", text), "utf-8")
        return
    for old, new in zip(shown, ran, strict=True):
        assert _same(old, new), f"{_shown(new)}\nis shown as\n{_shown(old)}"


@pytest.mark.parametrize("name", RUNNABLE)
def test_commands_print_what_is_shown(
    name: str, tmp_path: Path, served_patchkit: str, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "you"
    folder.mkdir()
    check_document(
        DOCS / name, folder, served_patchkit, update=request.config.getoption("--update-golden")
    )


@pytest.mark.index
@pytest.mark.parametrize("name", WITH_INDEX)
def test_the_tour_prints_what_is_shown(
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    shared_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patchkit = request.getfixturevalue("served_patchkit")
    monkeypatch.setenv("PATCHKIT_CACHE", str(shared_cache))
    folder = tmp_path / "you"
    folder.mkdir()
    for part in ("manifests", "patches"):
        shutil.copytree(ROOT / part, folder / part)
    fetched = run_process("fetch", "--manifest", "verl-npu-index", cwd=folder, timeout=300)
    if fetched.code == ExitCode.ENVIRONMENT:
        pytest.skip(f"the package index cannot be reached: {fetched.err.strip()}")
    check_document(
        ROOT / name, folder, patchkit, update=request.config.getoption("--update-golden")
    )


@cache
def pages() -> dict[Path, str]:
    """The text of each page that is committed; what is generated is no file but in an sdist."""
    paths = [*(ROOT / name for name in PROSE), *sorted(DOCS.rglob("*.md"))]
    made = reference_pages()
    return {p: p.read_text(encoding="utf-8") for p in paths if p.relative_to(ROOT) not in made}


def test_commands_that_are_mentioned_exist() -> None:
    lines = re.compile(r"(?m)`(patchkit [a-z][^`]*)`|^\$ (patchkit [a-z].*)$")
    unknown = [
        (path.name, match[0])
        for path, text in pages().items()
        for match in lines.finditer(text)
        if split_command((match[1] or match[2]).split()[1:]) is None
    ]
    assert not unknown, f"commands: {', '.join(all_commands())}"


def _local_links(text: str) -> list[str]:
    links = re.findall(r"\]\(([^)#\s]+)", text)
    return [link for link in links if "://" not in link]


def test_links_lead_somewhere() -> None:
    """To a file of the repository; those of generated pages to one another, too. Where a page is
    read that is committed, generated ones are not there.
    """
    made = reference_pages()
    links = [
        (page, link, Path(os.path.normpath(page.parent / link)))
        for page, text in [*made.items(), *((p.relative_to(ROOT), t) for p, t in pages().items())]
        for link in _local_links(text)
    ]
    lost = [
        (page, link)
        for page, link, target in links
        if not (page in made if target in made else (ROOT / target).exists())
    ]
    assert lost == []


def test_every_example_is_of_a_page() -> None:
    scripts = {path.stem for path in (ROOT / "examples").glob("*.sh")} - {"shell"}
    named = {
        match[2].removeprefix("examples/").removesuffix(".sh")
        for name in RUNNABLE
        for match in _SETUP.finditer((DOCS / name).read_text(encoding="utf-8"))
    }
    assert named - {"shell"} == scripts


def test_the_index_has_every_page() -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    there = {path.relative_to(DOCS).as_posix() for path in pages() if DOCS in path.parents}
    listed = set(re.findall(r"\]\(([a-z][^)#]*)\)", text)) | {"README.md"}
    assert sorted(p for p in there if p not in listed and not p.startswith("stacks/")) == []


def test_architecture_names_what_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    places = set(re.findall(r"`((?!refs/)[a-z_/]+(?:\.py|/))`", text))
    assert len(places) > 20
    missing = [p for p in places if not ((ROOT / "patchkit" / p).exists() or (ROOT / p).exists())]
    assert missing == []
