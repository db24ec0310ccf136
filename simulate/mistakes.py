"""Small mistakes in our patches, drawn with a seed: what tests must notice.

A mistake changes added lines of one patch, or leaves some out; the patch still applies, and what it
makes still parses. Places are found in the syntax tree of the file as it is after the patch, in a
checkout; in files of other languages a line is left out. `mistakes.tsv` is the list that was drawn
before any test was changed for it.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import itertools
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from simulate import workspaces

SEED = 31
LIST = Path(__file__).resolve().parent / "mistakes.tsv"
#: Mistakes that were drawn and change no behaviour, and why; the seed's next stand for them.
#: stack_tests/test_mistakes.py shows it.
SAME: dict[str, str] = {
    "megatron-bridge/deepstack-checkpoint-tensors/0": (
        "embeddings are a tuple there, never None, and of an empty one none is asked for"
    ),
    "megatron-bridge/mindspeed-module-types/0": (
        "whatever is neither column nor row is replicated, as the default is"
    ),
    "megatron-bridge/qwen3-vl-takes-loss-mask/1": "the hunk is a line of a docstring",
    "sglang/position-embeddings-on-npu/3": (
        "int and long are added before they are an index, which makes long; both count patches"
    ),
}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
_NAMES = {
    "npu": "cuda",
    "cuda": "npu",
    "NPU": "GPU",
    "GPU": "NPU",
    "hccl": "nccl",
    "nccl": "hccl",
    "ASCEND_RT_VISIBLE_DEVICES": "CUDA_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES": "ASCEND_RT_VISIBLE_DEVICES",
}
_DTYPES = {
    "long": "int",
    "int": "long",
    "float": "half",
    "FloatTensor": "HalfTensor",
    "HalfTensor": "BFloat16Tensor",
    "BFloat16Tensor": "HalfTensor",
}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
}
_WITH_DIM = ("cat", "flatten", "select", "size", "softmax", "split", "squeeze", "stack", "sum")
_WITH_DIMS = ("transpose", "unsqueeze", "view", "repeat")


@dataclasses.dataclass(frozen=True)
class Mistake:
    """Lines of a patch file, counted from 1, and what they become: other text, or nothing.

    A line that starts a hunk stands for the whole hunk, which is left out.
    """

    patch: str  # as in patches/
    draw: int  # the how many of this patch
    kind: str
    file: str  # what the patch changes
    becomes: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        """PATCH/DRAW: what a command takes."""
        return f"{self.patch.removeprefix('patches/').removesuffix('.patch')}/{self.draw}"


@dataclasses.dataclass(frozen=True)
class Added:
    """A line that a patch adds: its number in the patch, in the file that it makes, its text."""

    at: int
    line: int
    text: str


@dataclasses.dataclass
class Part:
    """What a patch does to one file: where its hunks start, and the lines that it adds."""

    file: str
    hunks: list[int] = dataclasses.field(default_factory=list)
    added: list[Added] = dataclasses.field(default_factory=list)


def parts(patch: str) -> list[Part]:
    """The files of a patch."""
    found: list[Part] = []
    line = left = 0
    for at, text in enumerate(patch.splitlines(), start=1):
        if not left and text.startswith("diff --git "):
            found.append(Part(text.partition(" b/")[2]))
        elif not left and (hunk := _HUNK.match(text)):
            line, left = int(hunk[3]), int(hunk[2] or 1) + int(hunk[4] or 1)
            found[-1].hunks.append(at)
        elif left and text[:1] in ("+", "-", " ", ""):
            left -= 1 if text[:1] in ("+", "-") else 2
            if text.startswith("+"):
                found[-1].added.append(Added(at, line, text[1:]))
            line += not text.startswith("-")
    return found


def damaged(patch: str, mistake: Mistake) -> str:
    """The patch with the mistake in it; counts of hunks are made right."""
    lines = patch.splitlines(keepends=True)
    for at, text in sorted(mistake.becomes, reverse=True):
        if lines[at - 1].startswith("@@"):
            _leave_out(lines, at - 1)
        elif text:
            lines[at - 1] = f"+{text}\n"
        else:
            del lines[at - 1]
    return "".join(_counted(lines))


def _leave_out(lines: list[str], start: int) -> None:
    """A hunk, and the head of its file where it is the only one."""
    end = start + 1
    while end < len(lines) and not lines[end].startswith(("@@", "diff --git ", "-- \n")):
        end += 1
    last = end == len(lines) or not lines[end].startswith("@@")
    while last and not lines[start].startswith("diff --git "):
        if lines[start - 1].startswith(("+", "-", " ")) and not lines[start - 1].startswith(
            ("+++ ", "--- ")
        ):
            break  # hunks of the same file stand before it
        start -= 1
    del lines[start:end]


def _counted(lines: list[str]) -> Iterator[str]:
    shift = 0
    for number, text in enumerate(lines):
        hunk = _HUNK.match(text)
        if text.startswith("diff --git "):
            shift = 0
        if not hunk:
            yield text
            continue
        old = new = 0
        for each in lines[number + 1 :]:
            if each.startswith(("@@", "diff --git ")) or each == "-- \n":
                break
            old += each[:1] in ("-", " ", "\n")
            new += each[:1] in ("+", " ", "\n")
        start = int(hunk[1]) + shift if int(hunk[1]) else 1
        yield f"@@ -{hunk[1]},{old} +{start},{new} @@{hunk[5]}"
        shift += new - old


Change = tuple[str, tuple[tuple[int, str], ...]]  # a kind of mistake, what lines of the file become


def draws(seed: int, patch: str, text: str, files: dict[str, str]) -> Iterator[Mistake]:
    """Mistakes in a patch, in the order of the seed; files are as they are after the patch."""
    by_kind: dict[str, list[Mistake]] = {}
    for part in parts(text):
        for kind, becomes in _places(part, files[part.file]):
            at = {each.line: each.at for each in part.added}
            lines = tuple((at.get(line, -line), made) for line, made in becomes)
            by_kind.setdefault(kind, []).append(Mistake(patch, 0, kind, part.file, lines))
        if sum(len(each.hunks) for each in parts(text)) > 1:
            kept = by_kind.setdefault("forgotten hunk", [])
            kept += [
                Mistake(patch, 0, "forgotten hunk", part.file, ((at, ""),)) for at in part.hunks
            ]
    choose = random.Random(f"{seed} {patch}")
    number = 0
    while by_kind:
        kind = choose.choice(sorted(by_kind))
        found = by_kind[kind].pop(choose.randrange(len(by_kind[kind])))
        if not by_kind[kind]:
            del by_kind[kind]
        if _parses(found.file, text, found, files[found.file]):
            yield dataclasses.replace(found, draw=number)
            number += 1


def _parses(file: str, patch: str, mistake: Mistake, after: str) -> bool:
    if not file.endswith(".py") or mistake.kind == "forgotten hunk":
        return True  # a hunk is put on or left out as a whole; `apply` has the last word
    [part] = [each for each in parts(patch) if each.file == file]
    line = {each.at: each.line for each in part.added}
    lines = after.splitlines(keepends=True)
    for at, text in sorted(mistake.becomes, reverse=True):
        lines[line[at] - 1 : line[at]] = [f"{text}\n"] if text else []
    try:
        ast.parse("".join(lines))
    except SyntaxError:
        return False
    return True


def _places(part: Part, source: str) -> Iterator[Change]:
    if not part.file.endswith(".py"):
        for each in part.added:
            if each.text.strip() and not each.text.lstrip().startswith("#"):
                yield "forgotten line", ((each.line, ""),)
        return
    added = {each.line: each.text for each in part.added if each.text.isascii()}
    tree = ast.parse(source)
    words = _strings_that_are_text(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            words |= set(ast.walk(node))  # places in them are not told before Python 3.12
    for node in ast.walk(tree):
        if node not in words:
            yield from _mistakes_of(node, added)


def _strings_that_are_text(tree: ast.Module) -> set[ast.AST]:
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _mistakes_of(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    for change in (_statement, _call, _elements, _condition, _constant, _attribute, _operation):
        yield from change(node, added)


class _Span:
    """The text of a node on one added line."""

    def __init__(self, node: ast.AST, added: dict[int, str]) -> None:
        self.line = getattr(node, "lineno", 0)
        end = getattr(node, "end_lineno", -1)
        self.whole = added.get(self.line, "") if self.line == end else ""
        self.start, self.end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        self.text = self.whole[self.start : self.end]

    def becomes(self, text: str) -> tuple[tuple[int, str], ...]:
        """The line with other text in its place."""
        return ((self.line, self.whole[: self.start] + text + self.whole[self.end :]),)


def _swapped(a: _Span, b: _Span) -> tuple[tuple[int, str], ...]:
    if a.line != b.line:
        return a.becomes(b.text) + b.becomes(a.text)
    between = a.whole[a.end : b.start]
    return ((a.line, a.whole[: a.start] + b.text + between + a.text + a.whole[b.end :]),)


def _statement(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    kinds = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert)
    span = _Span(node, added)
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, kinds) and not text and span.text and span.text == span.whole.strip():
        yield "forgotten line", ((span.line, ""),)


def _call(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    if not isinstance(node, ast.Call):
        return
    given = [*node.args, *(each.value for each in node.keywords)]
    for group in (node.args, [each.value for each in node.keywords]):
        yield from _pairs(group, added)
    for keyword in node.keywords:
        span = _Span(keyword, added)
        value = _Span(keyword.value, added)
        if keyword.arg == "device" and value.text:
            yield "wrong device", value.becomes('"cpu"')
        if keyword.arg in ("dim", "axis") and value.text:
            yield "wrong dim", value.becomes("0" if value.text != "0" else "-1")
        if span.text and span.whole.strip() == f"{span.text},":
            yield "forgotten argument", ((span.line, ""),)
    name = getattr(node.func, "attr", "")
    if name in _WITH_DIM + _WITH_DIMS:
        for argument in given:
            span = _Span(argument, added)
            if isinstance(argument, ast.Constant) and span.text.isdigit():
                yield "wrong dim", span.becomes("1" if span.text == "0" else "0")


def _pairs(group: list[ast.expr], added: dict[int, str]) -> Iterator[Change]:
    spans = [_Span(each, added) for each in group]
    for a, b in itertools.pairwise(spans):
        if a.text and b.text and a.text != b.text and not a.text.startswith("*"):
            yield "swapped argument", _swapped(a, b)


def _elements(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for _, becomes in _pairs(node.elts, added):
            yield "swapped elements", becomes


def _condition(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        span = _Span(node, added)
        if span.text:
            yield "wrong condition", span.becomes(_Span(node.operand, added).text)
    if isinstance(node, ast.BoolOp):
        a, b = (_Span(each, added) for each in node.values[:2])
        if a.text and a.line == b.line:
            between = a.whole[a.end : b.start]
            other = (
                between.replace("and", "or") if "and" in between else between.replace("or", "and")
            )
            line = a.whole[: a.end] + other + a.whole[b.start :]
            yield "wrong condition", ((a.line, line),)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        a, b = _Span(node.left, added), _Span(node.comparators[0], added)
        if a.text and a.line == b.line:
            line = f"{a.whole[: a.end]} {_COMPARED[type(node.ops[0])]} {a.whole[b.start :]}"
            yield "wrong condition", ((a.line, line),)
    if isinstance(node, (ast.If, ast.IfExp)):
        span = _Span(node.test, added)
        if span.text and isinstance(node.test, (ast.Call, ast.Name, ast.Attribute)):
            yield "wrong condition", span.becomes(f"not {span.text}")


def _constant(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    span = _Span(node, added)
    if not isinstance(node, ast.Constant) or not span.text:
        return
    if isinstance(node.value, bool):
        yield "wrong value", span.becomes(str(not node.value))
    elif isinstance(node.value, int):
        yield "off by one", span.becomes(str(node.value + 1))
    elif isinstance(node.value, str) and node.value in _NAMES:
        yield "wrong device", span.becomes(span.text.replace(node.value, _NAMES[node.value]))
    elif isinstance(node.value, str) and len(node.value) > 3 and span.text[0] in "\"'":
        yield "wrong name", span.becomes(f"{span.text[:-2]}{span.text[-1]}")


def _attribute(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    span = _Span(node, added)
    if not isinstance(node, ast.Attribute) or not span.text:
        return
    owner = span.text[: -len(node.attr)]
    if node.attr in ("npu", "cuda"):
        yield "wrong device", span.becomes(owner + _NAMES[node.attr])
    if node.attr in _DTYPES:
        yield "wrong dtype", span.becomes(owner + _DTYPES[node.attr])
    if node.attr == "dtype":
        yield "wrong dtype", span.becomes("torch.float32")


def _operation(node: ast.AST, added: dict[int, str]) -> Iterator[Change]:
    if isinstance(node, ast.AugAssign):
        target, value = _Span(node.target, added), _Span(node.value, added)
        if target.text and value.text and target.line == value.line:
            line = f"{target.whole[: target.end]} = {target.whole[value.start :]}"
            yield "wrong operator", ((target.line, line),)
            if value.text != "1":
                yield "off by one", value.becomes("1")
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        a, b = _Span(node.left, added), _Span(node.right, added)
        if a.text and a.line == b.line:
            between = re.sub(r"[-+*/%]+", _OPERATORS[type(node.op)], a.whole[a.end : b.start])
            yield "wrong operator", ((a.line, a.whole[: a.end] + between + a.whole[b.start :]),)


def written(mistakes: list[Mistake]) -> str:
    """The list as a table: a row for each line that is changed."""
    rows = ["patch\tdraw\tkind\tfile\tline\tbecomes"]
    for each in mistakes:
        for at, text in each.becomes:
            rows.append(
                "\t".join([each.patch, str(each.draw), each.kind, each.file, str(at), text])
            )
    return "\n".join(rows) + "\n"


@functools.cache
def listed(path: Path = LIST) -> tuple[Mistake, ...]:
    """The mistakes of the list."""
    found: dict[tuple[str, str], Mistake] = {}
    for row in path.read_text().splitlines()[1:]:
        patch, draw, kind, file, line, becomes = row.split("\t")
        before = found.get((patch, draw))
        lines = (*(before.becomes if before else ()), (int(line), becomes))
        found[patch, draw] = Mistake(patch, int(draw), kind, file, lines)
    return tuple(found.values())


@dataclasses.dataclass(frozen=True)
class Owner:
    """Who has a patch in its stack: a manifest, a component of it."""

    manifest: str
    component: str


def owners() -> dict[str, Owner]:
    """By patch, the first manifest that has it; in the order of the series."""
    found: dict[str, Owner] = {}
    for path in sorted((workspaces.PROJECT / "manifests").glob("*.yaml")):
        for name, component in yaml.safe_load(path.read_text())["components"].items():
            for entry in component.get("patches", ()):
                series = workspaces.PROJECT / entry.get("series", "-")
                if series.suffix or not series.is_file():
                    continue
                for line in series.read_text().splitlines():
                    if patch := line.partition("#")[0].strip():
                        where = (series.parent / patch).relative_to(workspaces.PROJECT)
                        found.setdefault(str(where), Owner(path.stem, name))
    return found


def draw(folder: Path, count: int = 60) -> list[Mistake]:
    """One of each patch, the rest kind by kind; `folder` gets the checkouts.

    A mistake that changes no behaviour is passed over: see SAME.
    """
    have = owners()
    for owner in sorted(set(have.values()), key=lambda each: (each.manifest, each.component)):
        manifest = workspaces.PROJECT / "manifests" / f"{owner.manifest}.yaml"
        workspaces.apply(manifest, folder / owner.manifest, {owner.component})
    of = {
        patch: list(drawn(patch, folder / owner.manifest)) for patch, owner in sorted(have.items())
    }
    by_kind: dict[str, list[Mistake]] = {}
    for mistake in [each for found in of.values() for each in found]:
        by_kind.setdefault(mistake.kind, []).append(mistake)
    choose = random.Random(SEED)
    for kind in sorted(by_kind):
        choose.shuffle(by_kind[kind])
    made: list[Mistake] = []

    def first(found: list[Mistake]) -> Iterator[Mistake]:
        for each in found:
            if each not in made and each.name not in SAME and applies(each, have[each.patch]):
                yield each
                return

    for found in of.values():
        made += first(found)
    kinds = sorted(by_kind)
    choose.shuffle(kinds)
    for kind in itertools.cycle(kinds):
        if len(made) >= count:
            break
        made += first(by_kind[kind])
    return made


def drawn(patch: str, workspace: Path) -> Iterator[Mistake]:
    """Mistakes in a patch of the project's, which is applied in a workspace; by the seed."""
    text = (workspaces.PROJECT / patch).read_text()
    files = {}
    for part in parts(text):
        for checkout in (each.parent for each in workspace.glob("*/.git")):
            found = _after(checkout, Path(patch).name, part.file)
            if found is not None:
                files[part.file] = found
    return draws(SEED, patch, text, files)


def _after(checkout: Path, patch: str, file: str) -> str | None:
    git = ["git", "-C", str(checkout)]
    wanted = [*git, "log", "-1", "--format=%H", f"--grep=^Patchkit-Patch: {patch}$"]
    commit = subprocess.run(wanted, capture_output=True, text=True, check=True).stdout.strip()
    while commit and file:
        shown = subprocess.run(
            [*git, "show", f"{commit}:{file}"], capture_output=True, text=True, check=False
        )
        if not shown.returncode:
            return shown.stdout
        file = file.partition("/")[2]  # a distribution has fewer folders than the repository
    return None


@contextlib.contextmanager
def project_with(mistake: Mistake) -> Iterator[Path]:
    """A copy of manifests and patches with the mistake in it, and without locks."""
    with tempfile.TemporaryDirectory(prefix="simulate-mistake-") as made:
        project = Path(made)
        for part in ("manifests", "patches"):
            shutil.copytree(workspaces.PROJECT / part, project / part)
        for lock in (project / "manifests").glob("*.lock.json"):
            lock.unlink()
        path = project / mistake.patch
        path.write_text(damaged(path.read_text(), mistake))
        yield project


def applies(mistake: Mistake, owner: Owner) -> bool:
    """Whether the stack is applied with the mistake in it, and what comes out parses."""
    with project_with(mistake) as project:
        manifest = project / "manifests" / f"{owner.manifest}.yaml"
        try:
            workspaces.apply(manifest, project / "workspace", {owner.component})
        except SystemExit:
            return False
        for path in project.glob(f"workspace/*/{mistake.file}"):
            if path.suffix == ".py":
                ast.parse(path.read_text())
    return True
