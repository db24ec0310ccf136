"""The real upstream trees of the shipped manifests, before and after our patches.

These tests are about the patches in patches/, not about patchkit, whose tests are in tests/.

They come through patchkit itself: one `apply` per manifest and process of a test run, in a copy of
manifests/ and patches/, all from one cache. Without a package index (or, for git upstreams, without
PATCHKIT_TEST_UPSTREAM=1 in the environment) the tests that need them are skipped, and say so.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from patchkit.errors import ExitCode
from tests.conftest import _sealed, shared_cache  # noqa: F401
from tests.support.commands import run_process
from tests.support.repos import git_in
from tests.support.upstreams import reaching_upstreams, skip_without_upstreams

ROOT = Path(__file__).parents[1]
PUBLISHED = """\
version: 1
components:
  slime:
    source: {git: "https://github.com/THUDM/slime.git"}
    pin: 2432b3db2c0c9cfd9004c46e14cf2d60860440b6
"""


@dataclass(frozen=True)
class Stack:
    """A workspace in which a manifest's stacks are applied."""

    workspace: Path

    def before(self, checkout: str, path: str) -> str:
        """A file as upstream has it, without any patch."""
        return self._show(checkout, "refs/patchkit/base", path)

    def before_ours(self, checkout: str, path: str) -> str:
        """A file with the base patches that stay by reference, and none of ours."""
        argv = ("log", "-1", "--format=%H", "--grep=^Patchkit-Patch: base-", "HEAD")
        base = git_in(self.workspace / checkout, *argv).decode().strip()
        return self._show(checkout, base or "refs/patchkit/base", path)

    def after(self, checkout: str, path: str) -> str:
        """A file with all patches of the stack."""
        return self._show(checkout, "HEAD", path)

    def _show(self, checkout: str, revision: str, path: str) -> str:
        return git_in(self.workspace / checkout, "show", f"{revision}:{path}").decode()


@dataclass(frozen=True)
class Tree:
    """One checkout of a stack."""

    stack: Stack
    checkout: str

    def before(self, path: str) -> str:
        """A file without any patch."""
        return self.stack.before(self.checkout, path)

    def after(self, path: str) -> str:
        """A file with all patches."""
        return self.stack.after(self.checkout, path)


#: Parameters of a fixture that gives the tree of either stack.
TREES = [
    pytest.param("index_stack", marks=pytest.mark.index),
    pytest.param("git_stack", marks=pytest.mark.upstream),
]


def tree(request: pytest.FixtureRequest, in_index: str, in_git: str) -> Tree:
    """The checkout, by its name in the stack that the parameter names."""
    checkout = {"index_stack": in_index, "git_stack": in_git}[request.param]
    return Tree(request.getfixturevalue(request.param), checkout)


class Applied(Protocol):
    """Applies a manifest's stacks; `git`: they come from real git upstreams."""

    def __call__(self, manifest: str, *components: str, git: bool = False) -> Stack: ...


@pytest.fixture(scope="session")
def applied(
    tmp_path_factory: pytest.TempPathFactory,
    shared_cache: Path,  # noqa: F811
) -> Applied:
    """Applies a manifest of the project's, or some of its components, in a copy of the project."""

    def make(manifest: str, *components: str, git: bool = False) -> Stack:
        if git:
            skip_without_upstreams()
        folder = tmp_path_factory.mktemp(manifest)
        for name in ("manifests", "patches"):
            shutil.copytree(ROOT / name, folder / name)
        return _apply(folder, shared_cache, manifest, components)

    return make


@pytest.fixture(scope="session")
def index_stack(applied: Applied) -> Stack:
    """verl-npu-index.yaml, applied."""
    return applied("verl-npu-index")


@pytest.fixture(scope="session")
def git_stack(applied: Applied) -> Stack:
    """qwen3-vl-npu.yaml, applied."""
    return applied("qwen3-vl-npu", git=True)


@pytest.fixture(scope="session")
def next_stack(applied: Applied) -> Stack:
    """qwen3-vl-npu-next.yaml, applied."""
    return applied("qwen3-vl-npu-next", git=True)


@pytest.fixture(scope="session")
def sglang_stack(applied: Applied) -> Stack:
    """SGLang of verl-mindspeedllm-npu.yaml, which comes from the package index."""
    return applied("verl-mindspeedllm-npu", "sglang")


@pytest.fixture(scope="session")
def mindspeedllm_stack(applied: Applied) -> Stack:
    """verl-mindspeedllm-npu.yaml, applied."""
    return applied("verl-mindspeedllm-npu", git=True)


@pytest.fixture(scope="session")
def fully_async_stack(applied: Applied) -> Stack:
    """verl-qwen3-235b-fully-async-npu.yaml, applied."""
    return applied("verl-qwen3-235b-fully-async-npu", git=True)


@pytest.fixture(scope="session")
def quickstart_stack(applied: Applied) -> Stack:
    """verl-quickstart-npu.yaml, applied."""
    return applied("verl-quickstart-npu", git=True)


@pytest.fixture(scope="session")
def published_slime(
    tmp_path_factory: pytest.TempPathFactory,
    shared_cache: Path,  # noqa: F811
) -> Path:
    """slime's checkout at the commit that brought its NPU patches and scripts."""
    folder = tmp_path_factory.mktemp("published-slime")
    (folder / "manifests").mkdir()
    (folder / "manifests/slime.yaml").write_text(PUBLISHED)
    skip_without_upstreams()
    return _apply(folder, shared_cache, "slime", ()).workspace / "slime"


def _apply(folder: Path, cache: Path, manifest: str, components: tuple[str, ...]) -> Stack:
    chosen = [argument for name in components for argument in ("--component", name)]
    argv = ("apply", "--manifest", manifest, *chosen, "--cache", str(cache))
    ran = run_process(*argv, cwd=folder, environment=reaching_upstreams(), timeout=300)
    if ran.code == ExitCode.ENVIRONMENT:
        pytest.skip(f"the upstreams cannot be reached: {ran.err.strip()}")
    ran.ok()
    return Stack(folder / "workspace")
