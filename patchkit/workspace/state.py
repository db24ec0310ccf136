"""In which state a checkout is. Looking writes nothing and costs one git process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.gitcmd.process import GitFailureError, NoAnswerError
from patchkit.gitcmd.repository import Repository
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId, TreeId, Treeish, decode_path
from patchkit.model.text import counted, with_article
from patchkit.workspace.checkout import (
    APPLIED_REF,
    BASE_REF,
    BRANCH,
    HALT_REF,
    SAVED_REFS,
    Checkout,
    Purpose,
    read_purpose,
)
from patchkit.workspace.contents import Contents, contents_at
from patchkit.workspace.journal import read_journal

_STATUS = (
    "status",
    "--porcelain=v2",
    "--branch",
    "--no-ahead-behind",
    "-z",
    "--untracked-files=normal",
    "--no-renames",
    "--ignore-submodules=dirty",
)

# What git leaves in its directory while an operation waits for the user.
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "cherry-pick or revert",
    "BISECT_LOG": "bisect",
}

#: The same, names only.
OPERATION_FILES = tuple(_OPERATIONS)


#: The operation of a checkout that holds a conflict of a bump, or of a refresh over a moved pin.
BUMP = "bump"

#: That of one that holds a conflict of an import.
IMPORT = "import"

#: That of one whose index has unmerged files, and nothing that git waits for.
UNMERGED = "conflict"


class CheckoutState(str, Enum):
    """What stands between a checkout and the next `apply`."""

    ABSENT = "absent"  # nothing there, or an empty folder
    UNPATCHED = "unpatched"  # at the base, clean
    APPLIED = "applied"  # at the stack that patchkit made last, clean
    EDITED = "edited"  # at the base or the stack, with uncommitted changes of tracked files
    EXTRA_COMMITS = "extra commits"  # the user's commits on the stack or in its place
    CONFLICTED = "conflicted"  # a bump, rebase, merge or am waits for the user
    OTHER_BRANCH = "other branch"  # not patchkit's, or on another branch
    INTERRUPTED = "interrupted"  # patchkit was killed while it moved the checkout

    @property
    def movable(self) -> bool:
        """Whether a stack may be put there without asking."""
        return self in (CheckoutState.ABSENT, CheckoutState.UNPATCHED, CheckoutState.APPLIED)


class Snapshot(Struct, frozen=True):
    """What was found in a checkout.

    `head` is the commit checked out; `branch` the full name of the branch it is on; `base` and
    `applied` what patchkit's refs say; None where there is none. `edited` are tracked paths that
    differ from `head` in the index or on disk, `untracked` paths that git neither tracks nor
    ignores (a folder ends in "/"). `ahead` counts commits of `head` that are not in the stack,
    `dropped` those of the stack that are not in `head`. `manifest` names the one that the checkout
    was last made for.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"halt", "ours", "index"})

    state: CheckoutState  # in one word
    detail: str = ""  # more words to `state`; "" for none
    head: CommitId | None = None
    branch: str | None = None
    base: CommitId | None = None
    applied: CommitId | None = None
    edited: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    ahead: int = 0
    dropped: int = 0
    operation: str = ""  # of git or patchkit that waits there, such as "rebase"; "" for none
    saved: tuple[str, ...] = ()  # refs of work that was set aside, by name
    manifest: str | None = None
    # what it waits for
    halt: CommitId | None = None
    ours: bool = False  # a repository that patchkit made
    index: tuple[int, ...] = ()  # its `index_mark`


#: Path -> rows of an index ("mode id stage").
Rows = Mapping[str, Sequence[str]]


class Place(Struct, frozen=True):
    """Where a checkout is, was, or goes: on which stack, and what its files and its index hold."""

    base: CommitId  # the upstream commit
    tip: CommitId  # the last patch's commit
    files: TreeId = TreeId("")  # what its files hold, where that is not the tip's tree
    index: Rows = {}  # the rows that are other ones than the files' tree has

    @property
    def tree(self) -> Treeish:
        """What leads to the tree of its files."""
        return self.files or self.tip

    @property
    def stack(self) -> tuple[CommitId, CommitId]:
        """(base, tip)."""
        return self.base, self.tip


class Held(Struct, frozen=True):
    """What a checkout holds that is in a commit or saved: only that may be replaced.

    `tree` is its tracked files, `recorded` what a commit of them has, `in_the_way` are untracked
    ones. Of the index it is what these trees have, and the `rows`; all of it where `staged` is its
    `staged_id`.
    """

    tree: Treeish
    recorded: TreeId = TreeId("")
    in_the_way: Mapping[str, Contents | None] = {}
    rows: Rows = {}
    staged: str = ""


def index_mark(checkout: Checkout) -> tuple[int, ...]:
    """What changes whenever an index is written, as git writes a new file every time; () for none.

    The other way round it says nothing: git may note that a file was touched.
    """
    try:
        index = (checkout.git_dir / "index").stat()
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return index.st_ino, index.st_size, index.st_mtime_ns


def inspect(checkout: Checkout) -> Snapshot:
    """The state of a checkout."""
    early = _without_git(checkout)
    if early is not None:
        return early
    repository = checkout.repository
    try:
        return _read(checkout, repository)
    except (GitFailureError, NoAnswerError):
        pass  # ask again: a moment without memory must not make a checkout look like a stranger's
    try:
        return _read(checkout, repository)
    except (GitFailureError, NoAnswerError) as error:
        return Snapshot(CheckoutState.OTHER_BRANCH, f"git cannot read it: {error}")


def _read(checkout: Checkout, repository: Repository) -> Snapshot:
    mark = index_mark(checkout)
    status = _parse_status(checkout.path, repository.git(*_STATUS).out)
    if status.head is None and status.branch is not None and repository.ref(status.branch):
        raise NoAnswerError(f"git cannot open {status.branch}")  # it calls it unborn
    return replace(_judge(checkout, status, repository.refs("refs/patchkit/")), index=mark)


def _without_git(checkout: Checkout) -> Snapshot | None:
    """The answer where git need not be asked, None otherwise."""
    path = checkout.path
    if not path.is_symlink() and not path.exists():
        return Snapshot(CheckoutState.ABSENT)
    if not path.is_dir():
        return Snapshot(CheckoutState.OTHER_BRANCH, "not a folder")
    if not any(path.iterdir()):
        return Snapshot(CheckoutState.ABSENT, "an empty folder")
    if not checkout.git_dir.is_dir() or not checkout.repository.exists:
        return Snapshot(CheckoutState.OTHER_BRANCH, "not a git repository of its own")
    return None


class _Status(Struct, frozen=True):
    head: CommitId | None  # None before the first commit
    branch: str | None  # its full name; None: detached
    edited: tuple[str, ...]  # tracked paths that differ, on disk or in the index
    untracked: tuple[str, ...]  # paths that git neither tracks nor ignores
    unmerged: bool  # the index has conflicts


def _judge(checkout: Checkout, status: _Status, refs: Mapping[str, str]) -> Snapshot:
    operation = _halted(checkout) if HALT_REF in refs else _operation(checkout)
    operation = operation or (UNMERGED if status.unmerged else "")
    purpose = read_purpose(checkout.own_folder)
    state, detail = _place(status, refs, operation)
    if stranger := _stranger(checkout, purpose):
        state, detail = CheckoutState.OTHER_BRANCH, stranger
    ahead = dropped = 0
    if state is CheckoutState.EXTRA_COMMITS:
        ahead, dropped = _distance(checkout.repository, CommitId(refs[APPLIED_REF]))
        detail = _words(ahead, dropped)
    if read_journal(checkout.own_folder) is not None:
        state, detail = CheckoutState.INTERRUPTED, "an apply was interrupted"
    return Snapshot(
        state,
        detail,
        head=status.head,
        branch=status.branch,
        base=_commit(refs, BASE_REF),
        applied=_commit(refs, APPLIED_REF),
        halt=_commit(refs, HALT_REF),
        edited=status.edited,
        untracked=status.untracked,
        ahead=ahead,
        dropped=dropped,
        operation=operation,
        saved=tuple(name for name in sorted(refs) if name.startswith(SAVED_REFS)),
        ours=BASE_REF in refs and APPLIED_REF in refs and not stranger,
        manifest=purpose.manifest if purpose is not None else None,
    )


def _place(status: _Status, refs: Mapping[str, str], operation: str) -> tuple[CheckoutState, str]:
    base, applied = _commit(refs, BASE_REF), _commit(refs, APPLIED_REF)
    if base is None or applied is None:
        return CheckoutState.OTHER_BRANCH, "not made by patchkit"
    if operation:
        return CheckoutState.CONFLICTED, f"in the middle of {with_article(operation)}"
    if status.branch != BRANCH or status.head is None:
        return CheckoutState.OTHER_BRANCH, _other_place(status)
    if status.head not in (base, applied):
        return CheckoutState.EXTRA_COMMITS, ""
    if status.edited:
        return CheckoutState.EDITED, ""
    return (CheckoutState.UNPATCHED if status.head == base else CheckoutState.APPLIED), ""


def _stranger(checkout: Checkout, purpose: Purpose | None) -> str:
    """What the checkout is if another manifest made it of another upstream, else nothing."""
    if purpose is None or checkout.purpose is None or not purpose.clashes(checkout.purpose):
        return ""
    return f"manifest {purpose.manifest} made it, of another upstream: {purpose.upstream}"


def _commit(refs: Mapping[str, str], name: str) -> CommitId | None:
    return CommitId(refs[name]) if name in refs else None


def _other_place(status: _Status) -> str:
    if status.branch == BRANCH:
        return "its branch has no commit"
    if status.branch is not None:
        return f"on branch {status.branch.removeprefix('refs/heads/')}"
    return f"HEAD is detached at {short_id(status.head or 'nothing')}"


def _distance(repository: Repository, applied: CommitId) -> tuple[int, int]:
    """(own commits, dropped commits) between the stack and HEAD."""
    out = repository.git("rev-list", "--left-right", "--count", f"{applied}...HEAD", "--").out
    dropped, ahead = out.split()
    return int(ahead), int(dropped)


def _words(ahead: int, dropped: int) -> str:
    own = counted(ahead, "own commit")
    if not dropped:
        return f"{own} on top"
    gone = f"{counted(dropped, 'commit')} of the stack"
    return f"{own} in place of {gone}" if ahead else f"{gone} dropped"


def _halted(checkout: Checkout) -> str:
    says = checkout.repository.git("log", "-1", "--format=%s", HALT_REF, "--").out
    return IMPORT if IMPORT.encode() in says else BUMP


def _operation(checkout: Checkout) -> str:
    return next(
        (words for name, words in _OPERATIONS.items() if (checkout.git_dir / name).exists()),
        "",
    )


def _parse_status(root: Path, out: bytes) -> _Status:
    """The answer of `git status --porcelain=v2 --branch -z`."""
    head: CommitId | None = None
    branch: str | None = None
    edited: list[str] = []
    untracked: list[str] = []
    unmerged = False
    for row in decode_path(out).split("\0"):
        kind, _, rest = row.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.oid" and value != "(initial)":
                head = CommitId(value)
            elif name == "branch.head" and value != "(detached)":
                branch = f"refs/heads/{value}"
        elif kind == "1":
            edited += filter(None, [_edited_path(root, rest)])
        elif kind == "u":
            unmerged = True
            edited.append(rest.split(" ", 9)[9])
        elif kind == "?":
            untracked.append(rest)
    return _Status(head, branch, tuple(edited), tuple(untracked), unmerged)


def _edited_path(root: Path, row: str) -> str:
    """The path of a changed entry; empty if nobody edited it."""
    changed, submodule, _, mode, mode_on_disk, _, oid, path = row.split(" ", 7)
    if changed[0] == "." and submodule[0] == "S":
        return ""  # another commit checked out in a submodule; we never touch what is in there
    if changed == ".M" and mode == mode_on_disk:
        # Attributes may ask for line ends that the upstream's own blob does not have: git then
        # calls the file modified right after writing it.
        actual = contents_at(root, path)
        if actual is not None and actual.oid == oid:
            return ""
    return path
