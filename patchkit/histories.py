"""Histories of tracked branches, for looking back over them; kept apart from the store's bases.

    histories/<name>-<hash>.git   refs/patchkit/tracks/<ref>: where the branch was when last asked

They hold commits and trees, and of files what was looked at. A base's repository is shallow, whole,
and its packs are linked into checkouts: nothing of this would be welcome there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.firstparent import Line, first_parents, merge_base, missing_blobs
from patchkit.gitcmd.partial import absent_blobs
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import RefChange, Repository, init_repository
from patchkit.gitcmd.urls import folder_name
from patchkit.manifest.values import Component, GitPin, GitSource
from patchkit.model.base import Base
from patchkit.model.names import COMMIT_ID
from patchkit.model.progress import Progress
from patchkit.sources.fetching import Fetching, about
from patchkit.sources.history import fetch_file_contents, fetch_history
from patchkit.sources.identity import upstream_key
from patchkit.store import Store

_TRACKS = "refs/patchkit/tracks/"
_PINS = "refs/patchkit/pins/"


class History(Struct, frozen=True):
    """The line of a tracked branch beyond a pin.

    `ref` is what was asked for, `tip` its commit. `fork` is the newest commit that both pin and tip
    have: the pin itself, unless that is on another branch.
    """

    repository: Repository
    source: GitSource
    ref: str
    pin: str
    tip: str
    fork: str

    @property
    def on_branch(self) -> bool:
        """Whether the tracked branch has the pin."""
        return self.fork == self.pin

    def base(self, commit: str) -> Base:
        """A commit of the history as a base to build on."""
        return read_base(self.repository, commit)

    def line(self) -> Line:
        """The first-parent commits beyond the fork."""
        return first_parents(self.repository, self.fork, self.tip)


def open_history(store: Store, component: Component, ref: str, progress: Progress) -> History:
    """The history of `ref` beyond the component's pin, brought up to date.

    With the store offline as it was when last asked. BadInputError for a component
    whose source has no history.
    """
    source, pin = component.source, component.pin
    if not isinstance(source, GitSource) or not isinstance(pin, GitPin):
        what = "comes from no git repository: there is no history to look at"
        raise BadInputError(Problem(what, component.name))
    repository = _repository(store, source)
    tip = _known(repository, ref, pin.commit, fixed=not store.offline)
    if tip is None:
        what = f"the history of {ref} is not in the cache"
        store.require_network(component.name, what)
        with (
            store.locked(f"history-{repository.git_dir.stem}", component.name, progress),
            about(component.name),
        ):
            progress.step(component.name, f"fetching the history of {ref}")
            fetching = store.fetching(component.name, progress)
            tip = _updated(repository, source, pin.commit, ref, fetching)
    fork = merge_base(repository, pin.commit, tip)
    if fork is None:
        what = f"{ref} has nothing in common with the pin {pin.commit}"
        raise BadInputError(Problem(what, str(component.pin_where), "correct `track`"))
    return History(repository, source, ref, pin.commit, tip, fork)


def known_commit(store: Store, source: GitSource, short: str) -> str | None:
    """The only commit of the history that is here whose id begins so."""
    repository = _repository(store, source)
    return repository.commit(short) if repository.exists else None


def known_history(store: Store, source: GitSource, commit: str) -> History | None:
    """The history up to a commit, if an earlier command brought it."""
    repository = _repository(store, source)
    if not repository.exists or repository.commit(commit) is None:
        return None
    return History(repository, source, commit, commit, commit, commit)


def bring_blobs(
    store: Store, component: Component, history: History, blobs: Iterable[str], progress: Progress
) -> frozenset[str]:
    """Bring those of `blobs` that are not here, all at once; the ids of those that nobody gives."""
    repository = history.repository
    lacking = missing_blobs(repository, blobs)
    absent = lacking & absent_blobs(repository)
    if lacking == absent:
        return absent
    store.require_network(component.name, f"{len(lacking - absent)} files are not in the cache")
    with (
        store.locked(f"history-{repository.git_dir.stem}", component.name, progress),
        about(component.name),
    ):
        lacking = missing_blobs(repository, lacking) - absent
        if lacking:
            progress.step(component.name, f"fetching {len(lacking)} versions of files")
            fetching = store.fetching(component.name, progress)
            absent |= fetch_file_contents(history.source, sorted(lacking), repository, fetching)
    return absent


def _repository(store: Store, source: GitSource) -> Repository:
    return Repository(store.cache / "histories" / f"{folder_name(upstream_key(source))}.git")


def _known(repository: Repository, ref: str, pin: str, *, fixed: bool) -> str | None:
    """The tip as far as it is here; with `fixed` only one that cannot have moved since."""
    if not repository.exists or repository.commit(_PINS + pin) is None:
        return None
    if COMMIT_ID.fullmatch(ref):
        return repository.commit(ref)  # what is here is here with all that came before it
    return None if fixed else repository.commit(_track(ref))


def _updated(
    repository: Repository, source: GitSource, pin: str, ref: str, fetching: Fetching
) -> str:
    init_repository(repository.git_dir)
    tip = fetch_history(source, ref, pin, repository, fetching)
    refs = [RefChange(_PINS + pin, pin), RefChange(_track(ref), tip.commit)]
    repository.free_refs(change.name for change in refs)
    repository.update_refs(refs, reason="patchkit: fetched")
    return tip.commit


def _track(ref: str) -> str:
    """The ref of ours for a branch, tag, pattern or commit as the user writes it."""
    plain = all(char.isalnum() or char in "-_." for char in ref) and ".." not in ref
    safe = plain and ref[0] not in ".-" and not ref.endswith((".", ".lock"))
    return _TRACKS + (ref if safe else hashlib.sha256(ref.encode()).hexdigest()[:20])
