"""The ways to carry a patch that are compared: ours in this process, the others as programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.carry.came_through import carried_files
from bench.carry.cases import Case, Truth
from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.process import git_version, sealed_environment
from patchkit.model.diff_parse import split_lines
from patchkit.model.mail import parse_patch
from patchkit.model.outcome import FileResult
from patchkit.model.tree import Overlay, Tree
from patchkit.stack.build import SeriesPatch, build_stack


@dataclass(frozen=True)
class Answer:
    """Path -> contents of what was carried; a path that is not there is a conflict.

    `outcomes` are our own words about each path.
    """

    files: Mapping[str, bytes | None]
    outcomes: Mapping[str, FileResult] = field(default_factory=dict)


Strategy = Callable[[Case], Answer]

#: Our engine with the merges that it only proposes: for calibration.
PROPOSALS = "patchkit, proposals taken"
#: Those of the table of docs/carry.md, as far as they are here.
COMPARED = (
    "patchkit",
    "git apply",
    "git apply --3way",
    "git merge-tree",
    "patch, fuzz 2",
    "wiggle",
    "mergiraf",
)


def patchkit(case: Case, *, careful: bool = False, proposals: bool = False) -> Answer:
    """Our engine, which knows whether it merges or carries; `proposals`: it takes these as well."""
    patch = SeriesPatch("x.patch", parse_patch(case.patch, name="x"))
    bases = case.old_base, case.new_base
    old, new = bases[0].commit, bases[1].commit
    past = Between(case.repository, old, new)
    report = carry_stack(
        case.reader,
        *bases,
        [patch],
        CarryOptions(
            past=past,
            careful=careful,
            patch_first=case.merges,
            take_proposals=["x.patch"] if proposals else [],
        ),
    )
    (outcome,) = report.outcomes
    named = {each.carried_to or each.path: each for each in outcome.files}
    return Answer(carried_files(report, case.reader, "x.patch"), named)


def proposing(case: Case) -> Answer:
    """Our engine, with what it is likelier wrong about as well."""
    return patchkit(case, proposals=True)


def careful(case: Case) -> Answer:
    """Our engine, conflicts instead of flags."""
    return patchkit(case, careful=True)


def git_apply(*options: str) -> Strategy:
    """`git apply` in an index of the new base, each file by itself."""

    def carry(case: Case) -> Answer:
        files = {}
        for truth in case.truths:
            with tempfile.TemporaryDirectory() as folder:
                extra = {"GIT_INDEX_FILE": f"{folder}/index"}
                _git(case, "read-tree", case.new_base.commit, extra=extra)
                one = ["--cached", "--whitespace=nowarn", f"--include={truth.source}", *options]
                code, _ = _git(case, "apply", *one, "-", stdin=case.patch, extra=extra)
                unmerged = _git(case, "ls-files", "-u", extra=extra)[1]
                if code == 0 and not unmerged:
                    files[truth.source] = _git(case, "show", f":{truth.source}", extra=extra)[1]
        return Answer(files)

    return carry


def git_merge_tree(case: Case) -> Answer:
    """git's three-way merge of trees, with renames; the old base is the base."""
    patched = build_stack(
        case.reader, case.old_base, [SeriesPatch("x.patch", parse_patch(case.patch, name="x"))]
    )
    write_objects(case.repository, patched.objects)
    base = _git(case, "commit-tree", case.old_base.tree, "-m", "base")[1].decode().strip()
    tips = [
        _git(case, "commit-tree", tree, "-p", base, "-m", "tip")[1].decode().strip()
        for tree in (case.new_base.tree, patched.tree)
    ]
    _, out = _git(case, "merge-tree", "--write-tree", "-z", "--name-only", *tips)
    tree, *rest = out.split(b"\0")
    clashing = {name.decode() for name in rest[: rest.index(b"")]} if b"" in rest else set()
    files: dict[str, bytes | None] = {}
    for truth in case.truths:
        code, data = _git(case, "cat-file", "blob", f"{tree.decode()}:{truth.path}")
        if code == 0 and not {truth.path, truth.source} & clashing:
            files[truth.path] = data
    return Answer(files)


def gnu_patch(fuzz: int) -> Strategy:
    """GNU patch on the new file, where it has the same name."""

    def carry(case: Case) -> Answer:
        files = {}
        for truth, _, upstream, _ in sides_of(case):
            with tempfile.TemporaryDirectory() as folder:
                target = Path(folder, "file")
                target.write_bytes(upstream)
                part = Path(folder, "part")
                part.write_bytes(_part_of(case.patch, truth.source))
                options = ["-s", "-N", "-f", "-r", "-", f"-F{fuzz}", "--no-backup-if-mismatch"]
                code, _ = _run(["patch", *options, str(target), str(part)], folder)
                if code == 0:
                    files[truth.source] = target.read_bytes()
        return Answer(files)

    return carry


def by_file(command: list[str]) -> Strategy:
    """A program that merges three files, {base}, {upstream} and {patch}, to its stdout."""

    def carry(case: Case) -> Answer:
        files = {}
        for truth, base, upstream, patch in sides_of(case):
            with tempfile.TemporaryDirectory() as folder:
                ending = Path(truth.source).suffix
                names = {}
                for side, data in (("base", base), ("upstream", upstream), ("patch", patch)):
                    names[side] = f"{side}{ending}"
                    Path(folder, names[side]).write_bytes(data)
                code, out = _run([each.format(**names) for each in command], folder)
                if code == 0:
                    files[truth.source] = out
        return Answer(files)

    return carry


def strategies() -> dict[str, Strategy | str]:
    """Name -> strategy, or the reason why it cannot be fetched here."""
    merge_tree: Strategy | str = git_merge_tree
    if git_version() < (2, 38):
        merge_tree = "git is older than 2.38"
    return {
        "patchkit": patchkit,
        "patchkit --no-fuzz": careful,
        PROPOSALS: proposing,
        "git apply": git_apply(),
        "git apply --3way": git_apply("--3way"),
        "git merge-tree": merge_tree,
        "patch, fuzz 2": _needs("patch", gnu_patch(2)),
        "patch, fuzz 3": _needs("patch", gnu_patch(3)),
        "wiggle": _needs("wiggle", by_file(["wiggle", "-q", "{upstream}", "{base}", "{patch}"])),
        "mergiraf": _needs(
            "mergiraf", by_file(["mergiraf", "merge", "{base}", "{upstream}", "{patch}"])
        ),
    }


def _needs(program: str, strategy: Strategy) -> Strategy | str:
    return strategy if shutil.which(program) else f"{program} is not installed"


def sides_of(case: Case) -> list[tuple[Truth, bytes, bytes, bytes]]:
    """(truth, old file, new one, patched old one) of the files that kept their names."""
    patched = build_stack(
        case.reader, case.old_base, [SeriesPatch("x.patch", parse_patch(case.patch, name="x"))]
    )
    source = Overlay(case.reader, patched.objects)
    found = []
    for truth in case.truths:
        trees = (case.old_base.tree, case.new_base.tree, patched.tree)
        entries = [Tree(source, tree).entry(truth.source) for tree in trees]
        sides = [source.read(entry.oid, "blob") for entry in entries if entry is not None]
        if len(sides) == len(trees):
            found.append((truth, sides[0], sides[1], sides[2]))
    return found


def _part_of(patch: bytes, path: str) -> bytes:
    """The part of a patch that changes one file, which begins at its `---`."""
    part: list[bytes] = []
    inside = False
    lines = split_lines(patch)
    for line, after in zip(lines, [*lines[1:], b""], strict=True):
        if line.startswith(b"diff --git "):
            inside = False
        if line.startswith(b"--- ") and after.startswith(b"+++ "):
            names = (each[4:].split(b"\t")[0].strip().partition(b"/")[2] for each in (line, after))
            inside = path.encode() in names
        if inside:
            part.append(line)
    return b"".join(part)


def _git(
    case: Case, *args: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    environment = sealed_environment() | dict(extra or {})
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "x", f"GIT_{role}_EMAIL": "x@x"}
        environment[f"GIT_{role}_DATE"] = "1700000000 +0000"
    command = ["git", f"--git-dir={case.repository.git_dir}", *args]
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout


def _run(command: list[str], folder: str) -> tuple[int, bytes]:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=20, env=dict(os.environ), check=False
        )
    except subprocess.TimeoutExpired:
        return 1, b""
    return done.returncode, done.stdout
