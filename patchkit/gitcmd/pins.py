"""Pins of a cache repository: the ref that keeps one, and the proof that it is whole.

The ref is written when the last object is in place. Beside it a receipt notes the base and the
size of every pack, so that the next command knows with a few `stat` calls, and no git process,
that the pin is here and nobody took a pack away. Without a receipt that fits, git looks.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.partial import absent_blobs, missing_objects
from patchkit.gitcmd.repository import RefChange, Repository
from patchkit.model.base import Base
from patchkit.model.objects import lines_of

#: Below this are the refs of all pins.
PINS = "refs/patchkit/pins/"


def read_pin(repository: Repository, ref: str) -> Base | None:
    """The pinned commit if it is here with all its files, else None; never raises."""
    receipt = _read_receipt(_receipt_path(repository, ref))
    if receipt is not None and receipt[1].items() <= _packs(repository).items():
        return receipt[0] if repository.exists else None
    try:
        return _examine(repository, ref)
    except SurroundingsError:  # a repository that git cannot read holds no pin
        return None


def write_pin(repository: Repository, ref: str, commit: str) -> Base:
    """Record that `commit` is here and whole; the last step of every fetch.

    The caller keeps all others away from the ref.
    """
    base = read_base(repository, commit)
    repository.free_refs([ref])
    try:
        repository.update_refs([RefChange(ref, commit)], reason="patchkit: fetched")
    except BaseException:
        repository.free_refs([ref])  # ^C ends that git, too
        raise
    _write_receipt(repository, ref, base)
    return base


def read_base(repository: Repository, commit: str) -> Base:
    """The base that a commit is; GitFailureError if it is not here."""
    form = "--format=%T%n%cd"
    out = repository.git("log", "-1", "--no-show-signature", "--date=raw", form, commit).out
    tree, date = lines_of(out.decode("ascii"))
    return Base(commit, tree, date)


def is_damaged(repository: Repository, ref: str) -> bool:
    """Whether some recorded pin is not whole any more, or git can't read the repository.

    A repository that never held a pin is not damaged.
    """
    packs = _packs(repository).items()
    receipts = [_read_receipt(path) for path in _receipt_folder(repository).glob("*.json")]
    stale = any(receipt is None or not receipt[1].items() <= packs for receipt in receipts)
    if not repository.exists:
        return bool(receipts) or bool(packs)
    try:
        recorded = repository.refs(PINS if stale else ref)
        return any(_examine(repository, each) is None for each in recorded)
    except SurroundingsError:
        return True


def is_sound(repository: Repository, ref: str) -> bool:
    """Whether every pack holds what its checksums say, and the pin, if it is here, is whole."""
    packs = sorted((repository.git_dir / "objects" / "pack").glob("pack-*.idx"))
    try:
        if packs:
            repository.git("verify-pack", *map(str, packs))
    except SurroundingsError:
        return False
    return not is_damaged(repository, ref)


def _examine(repository: Repository, ref: str) -> Base | None:
    commit = repository.commit(ref) if repository.exists else None
    if commit is None:
        return None
    if not absent_blobs(repository).issuperset(missing_objects(repository, commit)):
        return None
    base = read_base(repository, commit)
    _write_receipt(repository, ref, base)
    return base


def _packs(repository: Repository) -> dict[str, int]:
    """The size of every pack and index, by name."""
    folder = repository.git_dir / "objects" / "pack"
    files = (path for ending in ("pack", "idx") for path in folder.glob(f"pack-*.{ending}"))
    sizes: dict[str, int] = {}
    for path in files:
        with suppress(FileNotFoundError):  # gone since it was listed
            sizes[path.name] = path.stat().st_size
    return sizes


def _receipt_folder(repository: Repository) -> Path:
    return repository.git_dir / "patchkit-pins"


def _receipt_path(repository: Repository, ref: str) -> Path:
    return _receipt_folder(repository) / (ref.rpartition("/pins/")[2].replace("/", "_") + ".json")


def _read_receipt(path: Path) -> tuple[Base, dict[str, int]] | None:
    try:
        noted = json.loads(path.read_bytes())
        return Base(noted["commit"], noted["tree"], noted["date"]), dict(noted["packs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_receipt(repository: Repository, ref: str, base: Base) -> None:
    """Best effort: without a receipt git is asked, as on a disk that can only be read."""
    path = _receipt_path(repository, ref)
    noted = {
        "commit": base.commit,
        "tree": base.tree,
        "date": base.date,
        "packs": _packs(repository),
    }
    draft = path.with_name(f"{path.stem}.{os.urandom(6).hex()}.draft")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        draft.write_text(json.dumps(noted, indent=2, sort_keys=True) + "\n")
        draft.replace(path)
