"""The size of the house: `python -m tools.figures` prints it; `size` is what the law asks.

Counted are the nodes of the syntax trees of what the wheel installs: lines can be joined, and
comments deleted.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

from patchkit.cli.main import run

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "patchkit"
EXTENSIONS = PACKAGE / "extensions"

#: Runs a command and says which files of patchkit it loaded, and how many functions stood upon each
#: other at most, each counted once: recursion is no depth that a reader has to hold.
_WATCHED = """\
import sys, threading
import patchkit.cli.main as main
home = main.__file__.removesuffix("cli/main.py")
deepest = 0
def watch(frame, event, _):
    global deepest
    if event == "call" and frame.f_code.co_filename.startswith(home):
        codes = set()
        while frame is not None:
            if frame.f_code.co_filename.startswith(home):
                codes.add(frame.f_code)
            frame = frame.f_back
        deepest = max(deepest, len(codes))
threading.setprofile(watch)
sys.setprofile(watch)
try:
    main.run(sys.argv[1:])
finally:
    sys.setprofile(None)
    files = (getattr(each, "__file__", None) or "" for each in list(sys.modules.values()))
    print("", *(each for each in files if each.startswith(home)), sep="\\n", file=sys.stderr)
    print(deepest, file=sys.stderr)
"""

#: The daily commands: whoever changes them has to hold the modules that they load.
_DAILY = (
    ("status",),
    ("apply",),
    ("bump", "--to", "latest", "--dry-run"),
    ("refresh", "--dry-run"),
)


@cache
def nodes(path: Path) -> int:
    """How many nodes the syntax tree of a Python file has."""
    return sum(1 for _ in ast.walk(ast.parse(path.read_bytes())))


def size(*, core: bool = False) -> int:
    """The nodes of patchkit/; with `core` without those of its extensions."""
    modules = (m for m in PACKAGE.rglob("*.py") if not core or EXTENSIONS not in m.parents)
    return sum(map(nodes, modules))


def _total(paths: Iterable[Path]) -> str:
    files = list(paths)
    lines = sum(each.read_bytes().count(b"\n") for each in files)
    return f"{sum(map(nodes, files)):>9,} nodes {lines:>7,} lines {len(files):>4} modules"


def _structs() -> int:
    walks = (ast.walk(ast.parse(m.read_bytes())) for m in PACKAGE.rglob("*.py"))
    classes = (n for walk in walks for n in walk if isinstance(n, ast.ClassDef))
    return sum("Struct" in map(ast.unparse, each.bases) for each in classes)


def _run(*argv: str, cwd: Path) -> str:
    """What a program prints; CalledProcessError where it fails."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


def words_and_options() -> dict[str, frozenset[str]]:
    """The commands that --help lists, and their forms -> the long options of each, as its help
    lists them.
    """
    found: dict[str, frozenset[str]] = {}
    for word in re.findall(r"^  ([a-z]+(?: [a-z]+)?) {2,}", _help(), re.M):
        forms = re.findall(rf"^  ({word} --[a-z-]+(?: [a-z]+)?) {{2,}}", _help(word), re.M)
        found |= {name: options_of(name) for name in (word, *forms)}
    return found


def options_of(word: str = "") -> frozenset[str]:
    """The long options of a command, or of patchkit itself, as its help lists them."""
    return frozenset(re.findall(r"^ {2,6}(?:-\w, +)?(--[a-z0-9-]+)", _help(*word.split()), re.M))


def _help(*words: str) -> str:
    os.environ["COLUMNS"] = "200"
    page = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(page):
        run([*words, "--help"])
    page.seek(0)
    return page.read()


def _watched() -> Iterable[str]:
    with tempfile.TemporaryDirectory() as place:
        os.environ["PATCHKIT_CACHE"] = f"{place}/cache"
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        _run("sh", str(ROOT / "examples" / "bump.sh"), cwd=Path(place))
        project = Path(place) / "project"
        edited = project / "workspace" / "greeter" / "greet.py"
        for command in _DAILY:
            if command == _DAILY[-1]:
                edited.write_text(edited.read_text() + "\n\nEDITED = True\n")
            argv = (sys.executable, "-c", _WATCHED, *command)
            done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
            *said, deepest = done.stderr.strip().split("\n")
            if done.returncode > 1 or not deepest.isdigit():
                raise SystemExit(done.stderr)
            loaded = {Path(each) for each in said if each.endswith(".py")}
            yield f"  {' '.join(command):32} {_total(loaded)}, {deepest} frames deep"


def main() -> None:
    """Print all figures."""
    everything = sorted(PACKAGE.rglob("*.py"))
    print(f"patchkit/    {_total(everything)}, {_structs()} structs")
    if EXTENSIONS.is_dir():
        print(f"  core       {_total(m for m in everything if EXTENSIONS not in m.parents)}")
    folders = sorted({*PACKAGE.glob("*/"), *EXTENSIONS.glob("*/")})
    for folder in folders:
        if any(folder.rglob("*.py")):
            name = folder.relative_to(PACKAGE).as_posix()
            print(f"    {name:24} {_total(folder.rglob('*.py'))}")
    print(f"tests/       {_total((ROOT / 'tests').rglob('*.py'))}")
    pages = _run("git", "ls-files", "docs/*.md", cwd=ROOT).split()
    lines = sum((ROOT / p).read_bytes().count(b"\n") for p in pages)
    print(f"docs/        {lines:,} lines on {len(pages)} pages")
    words = words_and_options()
    names = frozenset[str]().union(*words.values())
    listed = [word for word in words if " --" not in word]
    print(f"surface      {len(listed)} words, {len(names)} option names")
    print("loaded by")
    for line in _watched():
        print(line)


if __name__ == "__main__":
    main()
