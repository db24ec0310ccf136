"""The list of small mistakes: its seed draws them, and those passed over change nothing."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from simulate import mistakes
from simulate.mistakes import Mistake
from stack_tests.conftest import ROOT, Stack
from stack_tests.sglang_scenarios import MODEL
from stack_tests.test_bridge import (
    BLOCK,
    MAPPING,
    MINDSPEED,
    QWEN3_VL,
    TRANSFORMER_ENGINE,
    Tensor,
    forward,
    parallelism,
)
from stack_tests.test_real_torch import GRIDS, interpolated
from tests.support.repos import git_in
from tests.support.upstreams import reaching_upstreams

pytestmark = pytest.mark.upstream
OWNERS = mistakes.owners()
STACKS = {
    "qwen3-vl-npu": "git_stack",
    "verl-npu-index": "index_stack",
    "verl-mindspeedllm-npu": "mindspeedllm_stack",
    "verl-qwen3-235b-fully-async-npu": "fully_async_stack",
}


@pytest.fixture(scope="session", params=STACKS)
def listed(request: pytest.FixtureRequest) -> dict[str, tuple[Stack, list[Mistake]]]:
    """The patches of a manifest, with the stack and the mistakes that the list has of them."""
    stack = request.getfixturevalue(STACKS[request.param])
    found: dict[str, tuple[Stack, list[Mistake]]] = {}
    for mistake in mistakes.listed():
        if OWNERS[mistake.patch].manifest == request.param:
            found.setdefault(mistake.patch, (stack, []))[1].append(mistake)
    return found


def test_the_seed_draws_what_is_listed(
    listed: dict[str, tuple[Stack, list[Mistake]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in reaching_upstreams().items():
        monkeypatch.setenv(name, value)
    assert listed
    for patch, (stack, rows) in listed.items():
        last = max(each.draw for each in rows)
        drawn = list(itertools.islice(mistakes.drawn(patch, stack.workspace), last + 1))
        assert [drawn[each.draw] for each in rows] == rows
        for skipped in drawn[: rows[0].draw]:
            assert skipped.name in mistakes.SAME or not mistakes.applies(skipped, OWNERS[patch])


class Same:
    """A file with all patches, and the same with a mistake that is said to change nothing."""

    def __init__(self, stack: Stack, checkout: str, name: str, path: str, folder: Path) -> None:
        patch, _, draw = name.rpartition("/")
        file = f"patches/{patch}.patch"
        [mistake] = itertools.islice(
            mistakes.drawn(file, stack.workspace), int(draw), int(draw) + 1
        )
        home = stack.workspace / checkout
        wanted = ("log", "-1", "--format=%H", f"--grep=Patchkit-Patch: {Path(file).name}")
        commit = git_in(home, *wanted).decode().strip()
        changed = folder / path
        changed.parent.mkdir(parents=True)
        changed.write_bytes(git_in(home, "show", f"{commit}^:{path}"))
        text = (ROOT / file).read_text()
        (folder / "damaged.patch").write_text(mistakes.damaged(text, mistake))
        git_in(folder, "apply", "damaged.patch")
        self.without = git_in(home, "show", f"{commit}:{path}").decode()
        self.with_it = changed.read_text()
        assert self.without != self.with_it


def test_a_line_of_a_docstring(git_stack: Stack, tmp_path: Path) -> None:
    name = "megatron-bridge/qwen3-vl-takes-loss-mask/1"
    same = Same(git_stack, "Megatron-Bridge", name, QWEN3_VL, tmp_path)
    assert without_docstrings(same.without) == without_docstrings(same.with_it)


def without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.dump(tree)


def test_a_default_that_only_must_be_neither_column_nor_row(
    git_stack: Stack, tmp_path: Path
) -> None:
    name = "megatron-bridge/mindspeed-module-types/0"
    same = Same(git_stack, "Megatron-Bridge", name, MAPPING, tmp_path)
    asked: list[tuple[str, str, dict[str, object]]] = [
        (*each, {}) for each in (*MINDSPEED, *TRANSFORMER_ENGINE)
    ]
    asked += [("TELinear", "weight", {"parallel_mode": mode}) for mode in ("column", "row", "")]
    for kind, parameter, attributes in asked:
        assert parallelism(same.without, kind, parameter, **attributes) == parallelism(
            same.with_it, kind, parameter, **attributes
        )


@pytest.mark.parametrize("embeds", [None, [], [Tensor("a"), Tensor("b")]])
@pytest.mark.parametrize("method", ["uniform", "block"])
def test_a_tuple_that_is_empty_or_not(
    git_stack: Stack, tmp_path: Path, embeds: list[Tensor] | None, method: str
) -> None:
    name = "megatron-bridge/deepstack-checkpoint-tensors/0"
    same = Same(git_stack, "Megatron-Bridge", name, BLOCK, tmp_path)
    assert forward(same.without, embeds, method) == forward(same.with_it, embeds, method)


@pytest.mark.parametrize("grids", GRIDS)
def test_an_index_of_an_int_and_a_long(
    git_stack: Stack, tmp_path: Path, grids: list[list[int]]
) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    name = "sglang/position-embeddings-on-npu/3"
    same = Same(git_stack, "sglang", name, MODEL, tmp_path)
    table = torch.nn.Embedding(48 * 48, 8)
    without, with_it = (
        interpolated(source, "npu", grids, table) for source in (same.without, same.with_it)
    )
    assert torch.equal(without, with_it)
