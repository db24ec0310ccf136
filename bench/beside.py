"""The commit before patchkit was made smaller, and this one, side by side: do they do the same?

`python -m bench.beside` plays scenes with both. A scene is a script of examples/, and then commands
that look, change and report. Compared are exit codes, the facts in JSON, the bytes of the project's
files, and the state of each checkout. `--real` takes the shipped manifests on their real upstreams
instead: that takes minutes, and gigabytes in build/beside; git's configuration may name mirrors.

Scenes are written in the words of BEFORE; `tests/data/words.tsv` says what has become of them, and
`tests/data/facts.tsv` which facts and files are not what they were, and why. All others are equal.
A scene is played in one folder by both, one after the other, since results have paths in them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[1]
#: What a user could do with this commit, he can do now.
BEFORE = "1142c8e651b80ff06793c0de347dd3dd587a3b00"
PLACE = ROOT / "build" / "beside"
#: The exit code where an upstream cannot be reached.
ENVIRONMENT = 5
WORDS = ROOT / "tests" / "data" / "words.tsv"
FACTS = ROOT / "tests" / "data" / "facts.tsv"

#: A script of examples/ -> commands in the words of BEFORE; what begins with `$` is for the shell.
SCENES: dict[str, tuple[str, ...]] = {
    "adopt-patches": (
        "import ../old --manifest hello --component greeter",
        "check --manifest hello --json",
        "apply --manifest hello --json",
        "export --quilt ../quilt --manifest hello",
        "log --json",
        "init greet --git ../upstream --ref v1.0 --component greet",
        "import ../layer/recipes-greet/greet/greet_1.0.bb -m greet --json",
        "apply -m greet --json",
        "export --yocto ../bbappend -m greet",
        "export --rpm ../sources -m greet",
    ),
    "ask-a-merger": (
        "bump server --to v2 --dry-run --json",
        "bump server --to v2 --run --json",
        "status --json",
        "skip --json",
    ),
    "bump": (
        "bump greeter --to v1.9 --dry-run --json",
        "bump greeter --to latest --json --summary body.md",
        "status --json",
        "undo --json",
        "bump greeter --to v2.0 --json",
        "status --json",
        "skip --json",
        "undo --json",
        "abort --json",
        "drift --json",
        "plan --json",
        "bump greeter --to latest --review page.html --quiet",
        "check --json",
    ),
    "check-a-machine": (
        "doctor --python .venv/bin/python --ascend Ascend --only system --only packages --json",
        "doctor --only variables --set model_path=/data/model --json",
        "doctor --only metadata --json",
    ),
    "ci": (
        "check --json",
        "ci --manifest hello --json",
        "ci --manifest hello --quiet --format sarif -o ci.sarif",
        "ci --manifest hello --quiet --format junit -o ci.xml",
        "matrix --json",
    ),
    "contracts": ("contracts --json", "check --json -c engine"),
    "drive-from-a-program": (
        "bump server --to v2 --json",
        "$ ./resolver workspace/server/serve.py",
        "continue --json",
        "show answer-from-the-npu --json",
        "undo --list --json",
        "undo --json",
    ),
    "edit-a-patch": (
        "apply --manifest hello --json",
        "$ sed -i 's/Hello/Good day/' workspace/greeter/greet.py",
        "diff --json",
        "refresh --manifest hello --dry-run --json",
        "refresh --manifest hello --json",
        "log --json",
        "undo --json",
        "saved list --json",
    ),
    "find-what-broke-it": ("bisect --to latest --run 'python3 try.py 2>/dev/null' --json",),
    "generate-a-patch": ("recipe test --json", "check -m fast --json", "refresh -m fast --json"),
    "offline-and-mirrors": (
        "apply --manifest hello --offline --json",
        "fetch --manifest hello --json",
        "$ mv ../upstream ../gone",
        "apply --manifest hello --offline --json",
    ),
    "overrides": ("overrides --json", "check --json", "overrides --accept --quiet"),
    "patch-by-reference": (
        "$ printf 'version: 1\\ncomponents:\\n  greeter:\\n    source: {git: ../upstream}\\n"
        "    pin: %s\\n    patches:\\n      - git: ../publisher\\n        commit: %s\\n"
        "        path: patches/polite.patch\\n        sha256: %s\\n'"
        " $(git -C ../upstream rev-parse HEAD) $(git -C ../publisher rev-parse HEAD)"
        " $(sha256sum ../publisher/patches/polite.patch | cut -d ' ' -f 1) > manifests/hello.yaml",
        "apply --manifest hello --json",
        "vendor --json",
        "check --json",
    ),
    "patch-installed-packages": (
        "apply --into site-packages --json",
        "attest -m greeter --into site-packages --json",
        "apply --into site-packages --reverse --json",
    ),
    "plan-a-bump": ("plan --json", "drift --json"),
    "read-the-drift-report": (
        "drift --json",
        "ci --issues drift.json -o issues --json",
        "drift --format html -o drift.html --quiet",
    ),
    "render-install-files": (
        "render --json",
        "render --set model_path=/data/model --json",
        "render --set model_path=/data/model --check --json",
        "manifest lint --json",
        "manifest show --json",
    ),
    "reorder-and-drop": (
        "graph --manifest hello --json",
        "move part-politely --to 1 --json",
        "fold 2 --into 1 --message 'Be polite' --json",
        "rename 1 good-day --json",
        "edit 1 --message 'Greet well' --json",
        "drop good-day --json",
        "undo --json",
        "refresh --dry-run --json",
    ),
    "residual": ("scan --json", "check --json"),
    "resolve-a-conflict": (
        "bump server --to v2 --json",
        "status --json",
        "abort --json",
        "saved list --json",
    ),
    "run-upstreams-tests": ("test --json", "bump lib --to latest --dry-run --json"),
    "share-a-workspace": (
        "status --manifest stable --json",
        "apply --manifest next --json",
        "status --manifest stable --json",
        "apply --manifest rewrite --json",
    ),
    "verify": ("check --json", "check --run --json"),
    "watch-for-drift": ("drift --json", "ci --json"),
}

#: Examples of what BEFORE could not do.
LATER = frozenset({"follow-a-fork"})

#: What is asked of a shipped manifest, M.
REAL: tuple[str, ...] = (
    "check -m M --json",
    "apply -m M --json",
    "status -m M --json",
    "refresh -m M --dry-run --json",
    "log -m M --json",
    "drift -m M --json",
    "bump --all -m M --dry-run --json",
    "render -m M --json",
)

#: Keys whose values are of one run.
_OF_ONE_RUN = {"seconds", "when", "at", "log"}
#: In the names of saved work.
_TIME = re.compile(r"\d{8}T\d{6}Z")
#: What is not compared file by file: checkouts are by git, caches have no form, and the schema that
#: `init` writes beside a manifest has the words of the reference.
_LEFT_OUT = re.compile(r"(^|/)(workspace|\.git|\.venv|cache|__pycache__)/|manifest\.schema\.json$")


@dataclass(frozen=True)
class Step:
    """A line of a scene that was run: its exit code, and the facts that it printed as JSON."""

    line: str
    code: int
    facts: object


@dataclass
class Played:
    """What one of both did in a scene: step by step, and what is on disk at the end."""

    steps: list[Step] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    checkouts: dict[str, str] = field(default_factory=dict)


# The words of BEFORE, and those of today.

#: Words of a line as they were -> as they are now.
ChangedWords: TypeAlias = Mapping[tuple[str, ...], tuple[str, ...]]


def todays_words(words: Sequence[str], changed: ChangedWords) -> list[str]:
    """A command line in the words of BEFORE, in those of today.

    Of the changed words that the line has, the command first, the most decide what it becomes; its
    other words follow.
    """
    candidates = [old for old in changed if old[0] == words[0] and set(old) <= set(words)]
    if not candidates:
        return list(words)
    most = max(candidates, key=len)
    return [*changed[most], *(word for word in words if word not in most)]


@cache
def _changed_words() -> ChangedWords:
    rows = (row.split("\t") for row in WORDS.read_text("utf-8").split("\n")[1:-1])
    return {tuple(before.split()): tuple(now.split()) for before, now in rows if before != now}


# To play a scene.


def play(tree: Path, scene: str, *, real: bool) -> Played:
    """Play a scene with the patchkit of `tree`: ROOT, or the worktree of BEFORE."""
    home = PLACE / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    environment = _environment(tree, home, real=real)
    if real:
        project, lines = home, tuple(re.sub(r"\bM\b", scene, line) for line in REAL)
        for part in ("manifests", "patches", "rendered"):
            shutil.copytree(tree / part, home / part)
    else:
        script = tree / "examples" / f"{scene}.sh"
        project, lines = _begin(script, home, environment), SCENES[scene]
    steps = [_step(line, project, tree, environment) for line in lines]
    return Played(steps, dict(_files(project)), dict(_checkouts(project)))


def tree_of(commit: str) -> Path:
    """A worktree with an environment of its own, made once."""
    tree = PLACE / commit[:12]
    if not (tree / ".venv" / "bin" / "patchkit").exists():
        git = ("git", "-C", str(ROOT), "worktree", "add", "--force", "--detach", str(tree), commit)
        subprocess.run(git, check=True)
        subprocess.run(("make", "-C", str(tree), ".venv/.runs"), check=True)
    return tree


def _environment(tree: Path, home: Path, *, real: bool) -> dict[str, str]:
    """The variables of a scene; real upstreams need the user's home, for git's configuration."""
    date, side = "2026-01-01T00:00:00Z", "now" if tree == ROOT else tree.name
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PATCHKIT")}
    made = {
        "PATH": f"{tree / '.venv' / 'bin'}:{os.environ['PATH']}",
        # what one has found out about an upstream is nothing for the other to believe
        "PATCHKIT_CACHE": str((PLACE / f"cache-of-{side}") if real else (home / "cache")),
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
        "SOURCE_DATE_EPOCH": "1767225600",
        "COLUMNS": "80",
    }
    if not real:
        made["HOME"] = str(home)
        made |= {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "You"), ("EMAIL", "you@example.com"))
        }
    return kept | made


def _begin(script: Path, home: Path, environment: dict[str, str]) -> Path:
    """Run a script of examples/ in `home`; the folder of the project that the reader goes to."""
    argv = ("sh", "-c", '. "$0" >&2 && pwd', str(script))
    made = subprocess.run(argv, cwd=home, env=environment, capture_output=True, check=False)
    if made.returncode:
        raise SystemExit(f"{script}: {made.stderr.decode('utf-8', 'replace')}")
    ends = Path(made.stdout.decode().rstrip("\n"))
    if ends == home and not (home / "manifests").is_dir():
        ends = home / "project"
        ends.mkdir(exist_ok=True)
    return ends


def _step(line: str, folder: Path, tree: Path, environment: dict[str, str]) -> Step:
    words = shlex.split(line)
    today = todays_words(words, _changed_words())
    argv = ["patchkit", *(today if tree == ROOT else words)]
    done = subprocess.run(
        ["sh", "-c", line[2:]] if line.startswith("$ ") else argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    try:
        facts = _of_every_run(json.loads(done.stdout.replace(bytes(tree / ".venv"), b"VENV")))
    except ValueError:
        facts = None
    if today != words and isinstance(facts, dict):
        facts.pop("schema", None)  # it is named after the command
    return Step(line, done.returncode, facts)


def _of_every_run(value: object) -> object:
    """JSON without what is of one run only."""
    if isinstance(value, dict):
        return {key: _of_every_run(part) for key, part in value.items() if key not in _OF_ONE_RUN}
    if isinstance(value, list):
        return [_of_every_run(part) for part in value]
    return _TIME.sub("TIME", value) if isinstance(value, str) else value


def _files(project: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(project.rglob("*")):
        name = path.relative_to(project).as_posix()
        if path.is_file() and not _LEFT_OUT.search(name):
            yield name, path.read_bytes()


def _checkouts(project: Path) -> Iterator[tuple[str, str]]:
    """Of each checkout the tree at its HEAD, what git says of its files, and all edits."""
    for folder in sorted(path.parent for path in project.glob("workspace/*/.git")):
        questions = (("rev-parse", "HEAD^{tree}"), ("status", "--porcelain"), ("diff", "HEAD"))
        answers = [
            subprocess.run(("git", "-C", str(folder), *words), capture_output=True, check=False)
            for words in questions
        ]
        text = b"\n".join(answer.stdout for answer in answers)
        yield folder.name, text.decode("utf-8", "replace")


# To compare what both did.


@dataclass(frozen=True)
class ChangedFact:
    """A row of FACTS: a place in what a command prints as JSON, or in the project's files."""

    command: str  # its first word; `*` for all; `file` for files
    place: str  # as `fnmatch` reads it, after the indexes are taken out
    why: str

    def covers(self, command: str, place: str) -> bool:
        """Whether a difference at this place is the known one."""
        plain = re.sub(r"\[\d+\]", "[]", place).replace("[]", "")
        return self.command in ("*", command) and fnmatchcase(plain, self.place)


@cache
def changed_facts() -> tuple[ChangedFact, ...]:
    """The rows of FACTS."""
    rows = FACTS.read_text("utf-8").split("\n")[1:-1]
    return tuple(ChangedFact(*row.split("\t")) for row in rows)


def differences(
    before: Played,
    now: Played,
    known: Sequence[ChangedFact] = (),
    met: set[ChangedFact] | None = None,
) -> Iterator[str]:
    """What is not the same, a line each, but for `known` facts: `met` gets those that differ."""
    met = set() if met is None else met

    def is_new(command: str, place: str) -> bool:
        row = next((row for row in known if row.covers(command, place)), None)
        met.update(() if row is None else (row,))
        return row is None

    for old, new in zip(before.steps, now.steps, strict=True):
        if old.code != new.code:
            yield f"{old.line}: exit {old.code} before, {new.code} now"
            continue
        for place, text in _unlike(old.facts, new.facts, "$"):
            if is_new(old.line.split()[0], place):
                yield f"{old.line}: {place}: {text}"
    for name in sorted({*before.files, *now.files}):
        if before.files.get(name) != now.files.get(name) and is_new("file", name):
            yield f"file {name}: differs"
    for name in sorted({*before.checkouts, *now.checkouts}):
        if before.checkouts.get(name) != now.checkouts.get(name):
            yield f"checkout {name}: differs"


def _unlike(before: object, now: object, place: str) -> Iterator[tuple[str, str]]:
    """Where in JSON values differ, as jq would name it, and how; not where an empty fact came."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from _unlike(before.get(key), now.get(key), f"{place}.{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _unlike(old, new, f"{place}[{number}]")
    elif before != now and (before is not None or now not in ("", [], {})):
        yield place, f"{json.dumps(before)[:120]} before, {json.dumps(now)[:120]} now"


def main() -> int:
    """Play all scenes, or those that are named; 1 where one differs, or could not be compared."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenes", nargs="*", help="names of scripts in examples/, or of manifests")
    parser.add_argument("--real", action="store_true", help="the shipped manifests")
    parser.add_argument(
        "--before", metavar="COMMIT", default=BEFORE, help="another one to compare with"
    )
    chosen = parser.parse_args()
    shipped = sorted(path.stem for path in (ROOT / "manifests").glob("*.yaml"))
    scenes = chosen.scenes or (shipped if chosen.real else list(SCENES))
    tree, failed = tree_of(chosen.before), 0
    met: set[ChangedFact] = set()
    for scene in scenes:
        before = play(tree, scene, real=chosen.real)
        now = play(ROOT, scene, real=chosen.real)
        lines = list(differences(before, now, changed_facts(), met))
        codes = " ".join(str(step.code) for step in before.steps)
        unreached = chosen.real and any(step.code == ENVIRONMENT for step in before.steps)
        verdict = "differs" if lines else "same as far as upstreams answer" if unreached else "same"
        failed += verdict != "same"
        print(f"{scene}: {verdict} ({len(before.files)} files; exits {codes})")
        print("".join(f"  {line}\n" for line in lines), end="", flush=True)
    if met:
        print("facts that are not what they were, as facts.tsv says:")
    for row in sorted(met, key=lambda row: (row.command, row.place)):
        print(f"  {row.command} {row.place}: {row.why}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
