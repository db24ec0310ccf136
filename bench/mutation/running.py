"""Run mutmut on a group, in a copy of the tree, with a sample of its mutants."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mutmut.stats import status_by_exit_code

from bench.mutation.groups import Group
from bench.mutation.mutants import Mutant, mutants_of

#: Results and copies of the tree; a folder that git does not track.
FOLDER = Path("build/mutation")

#: Added to [tool.mutmut] of pyproject.toml.
_OF_GROUP = """\
only_mutate = {modules}
do_not_mutate = {leaves_out}
pytest_add_cli_args_test_selection = {tests}
"""
#: What tests read from the tree, besides themselves.
_NEEDED = ("patchkit", "tests", "docs", "manifests", "patches", "bench", "demo", "rendered", "ci")
#: mutmut's words; all but these are a mutant that was not noticed.
_NOTICED = ("killed", "timeout", "segfault", "suspicious")


@dataclass(frozen=True)
class Verdict:
    """A mutant, and what became of it: killed, survived, timeout, no tests."""

    mutant: Mutant
    word: str

    @property
    def is_noticed(self) -> bool:
        """Whether a test failed, or did not come to an end."""
        return self.word in _NOTICED


@dataclass(frozen=True)
class Run:
    """A group's last run: `available` mutants, of which these were tried, chosen by `seed`."""

    group: str
    seed: int
    available: int
    verdicts: tuple[Verdict, ...]

    def save(self) -> None:
        """For the page, and for `--again`."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        _stored(self.group).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def last_run(group: str) -> Run | None:
    """What was saved, if anything was."""
    if not _stored(group).exists():
        return None
    data = json.loads(_stored(group).read_text(encoding="utf-8"))
    verdicts = tuple(Verdict(Mutant(**each["mutant"]), each["word"]) for each in data["verdicts"])
    return Run(data["group"], data["seed"], data["available"], verdicts)


def _stored(group: str) -> Path:
    return FOLDER / f"{group}.json"


def run_group(group: Group, *, sample: int | None, seed: int, again: bool, children: int) -> Run:
    """Try a sample of a group's mutants.

    With `again` the last run's, but those that the code no longer has, and those for which a test
    failed then; what has come into the sample instead is tried, too.
    """
    tree = _copy_tree(group)
    mutants = sorted(
        (each for path in _modules(tree, group) for each in mutants_of(tree, path)),
        key=lambda mutant: mutant.name,
    )
    before = last_run(group.name) if again else None
    if before:
        seed, sample = before.seed, sample or len(before.verdicts)
    chosen = _sample(mutants, sample, seed)
    # by what they change: mutmut's numbers move with the code
    known = before.verdicts if before else ()
    failed = {str(each.mutant) for each in known if each.word == "killed"}
    tried = [mutant for mutant in chosen if str(mutant) not in failed]
    if tried:
        _mutmut(tree, [mutant.name for mutant in tried], children)
    verdicts = _verdicts(tree, tried)
    verdicts += [Verdict(each, "killed") for each in chosen if str(each) in failed]
    run = Run(group.name, seed, len(mutants), tuple(verdicts))
    run.save()
    return run


def _sample(mutants: list[Mutant], sample: int | None, seed: int) -> list[Mutant]:
    """Chosen by what each changes: other code that is edited leaves most of the choice as it was.

    Else every commit would come to other mistakes, and no run could be held against the last.
    """
    by_chance = sorted(mutants, key=lambda mutant: _number(f"{seed} {mutant}"))
    return by_chance[:sample]


def _number(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _modules(tree: Path, group: Group) -> list[Path]:
    found = {path for pattern in group.modules for path in tree.glob(pattern)}
    found -= {path for pattern in group.leaves_out for path in tree.glob(pattern)}
    return sorted(path.relative_to(tree) for path in found)


def _copy_tree(group: Group) -> Path:
    tree = FOLDER / group.name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in _NEEDED:
        shutil.copytree(name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    words = {name: json.dumps(getattr(group, name)) for name in ("modules", "leaves_out", "tests")}
    configuration = Path("pyproject.toml").read_text(encoding="utf-8")
    head, mark, tail = configuration.partition("[tool.mutmut]\n")
    (tree / "pyproject.toml").write_text(
        head + mark + _OF_GROUP.format_map(words) + tail, encoding="utf-8"
    )
    return tree


def _mutmut(tree: Path, names: list[str], children: int) -> None:
    """Let mutmut try these mutants; ^C ends it early, and what was tried by then counts."""
    mutmut = Path(sys.executable).parent / "mutmut"
    log = tree / "mutmut.log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [mutmut.absolute(), "run", "--max-children", str(children), *names],
            cwd=tree,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        sys.exit(f"mutmut failed: see {log}")


def _verdicts(tree: Path, chosen: Sequence[Mutant]) -> list[Verdict]:
    """What mutmut noted of the mutants that it has tried."""
    codes: dict[str, int | None] = {}
    for meta in (tree / "mutants").rglob("*.meta"):
        codes |= json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
    found = ((mutant, codes.get(mutant.name)) for mutant in chosen)
    return [Verdict(each, status_by_exit_code[code]) for each, code in found if code is not None]
