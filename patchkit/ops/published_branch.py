"""A component's stack as a branch of its checkout, to be pushed: pin and patches alone decide the
ids of its commits, so that they are the same on every machine.

Invariant: a branch is moved only from a commit to which this command moved it before, or forward;
`refs/patchkit/exported/NAME` has that commit.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.repository import NOT_HERE, RefChange, Repository
from patchkit.manifest.values import Component, GitSource, Manifest
from patchkit.model.names import short_id
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.ops.transfer import ExportReport
from patchkit.upstream.store import Store
from patchkit.workspace.checkout import checkout_of, locked

_EXPORTED = "refs/patchkit/exported/"


def export_branch(
    manifest: Manifest,
    component: Component,
    branch: str,
    *,
    workspace: Path,
    store: Store,
    progress: Progress,
) -> ExportReport:
    """Have a branch of the checkout be the stack as the patches make it; nothing is pushed.

    BadInputError where a patch does not apply, the checkout has not got that stack, or the branch
    has other commits or is checked out.
    """
    checkout = checkout_of(workspace, manifest, component)
    repository, there = checkout.repository, checkout.git_dir.is_dir()
    with built_stack(manifest, component, store, progress) as built:
        require_clean(built, manifest)
        stack = built.stack
    if not there or repository.commit(stack.commit) is None:
        hint = f"patchkit apply {manifest.options(component.name)}  makes it"
        what = "its checkout has not got the stack as the patches are now"
        raise BadInputError(Problem(what, component.name, hint))
    made = repository.ref(_EXPORTED + branch)
    with locked(checkout):
        before = repository.ref(f"refs/heads/{branch}")
        if before not in (None, made) and not _has(repository, stack.commit, before):
            what = f"branch {branch} has other work: {short_id(before)}"
            rename = f"git -C {checkout.path} branch -m {branch} my-{branch}"
            hint = f"give another name, or move it away: {rename}"
            raise BadInputError(Problem(what, component.name, hint))
        # git does not move a branch that is checked out somewhere
        move = ("branch", "--force", "--no-track", "--", branch, stack.commit)
        done = repository.git(*move, accept=(0, 128))
        if done.code:
            raise BadInputError(Problem(f"export: {done.message}"))
        exported = RefChange(_EXPORTED + branch, stack.commit)
        repository.update_refs([exported], reason=f"patchkit: export --branch {branch}")
    return ExportReport(
        component.name,
        "branch",
        checkout.path,
        stack.base.commit,
        stack.tree,
        tuple(each.name for each in stack.outcomes if each.commit is not None),
        branch=branch,
        commit=stack.commit,
        push=_push(component, repository, branch, stack.commit, made),
    )


def _push(
    component: Component, repository: Repository, branch: str, tip: str, made: str | None
) -> str:
    """The command that publishes a branch, "" where no repository is known.

    What was published before as `made` is replaced only where nobody moved it since.
    """
    source, series = component.source, component.series
    url = series.of if series is not None and series.of else None
    url = url or (source.url if isinstance(source, GitSource) else None)
    if url is None:
        return ""
    rewritten = made is not None and not _has(repository, tip, made)
    lease = [f"--force-with-lease={branch}:{made}"] if rewritten else []
    return shlex.join(["git", "-C", str(repository.work_tree), "push", *lease, url, branch])


def _has(repository: Repository, tip: str, commit: str) -> bool:
    """Whether a commit is in the history of another."""
    asked = ("merge-base", "--is-ancestor", commit, tip)
    return repository.ask(*asked, no=NOT_HERE) is not None
