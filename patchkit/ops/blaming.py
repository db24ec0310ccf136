"""What upstream's history knows between two pins: to carry, and to say who is behind a conflict.

The upstream's repository in the store has the two pins and nothing in between. The history is
brought when it is first asked for, and where it cannot be had that is told: it is a help, no more.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.between import Between
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.touching import that_touched, touches_of
from patchkit.histories import History, bring_blobs, open_history
from patchkit.manifest.values import Component, GitPin
from patchkit.model.progress import Progress
from patchkit.refresh.halting import Conflict, ConflictedFile
from patchkit.store import Store

_SHOWN = 5


class Upstream(Struct):
    """The history of a component's upstream from the commit `old` to its pin.

    `unknown` says why there is none, "" as long as nothing went wrong.
    """

    store: Store
    component: Component
    old: str
    progress: Progress
    unknown: str = ""
    _hint: str = ""
    _history: History | None = None
    _asked: bool = False

    def past(self) -> Between:
        """What happened in between, for the carry engine; it goes without where it must."""
        cache = self.store.repository(self.component)
        new = self.store.base(self.component, self.progress).commit
        return Between(cache, self.old, new, self._repository, self.bring)

    def history(self) -> History | None:
        """The history; None where there is none, or it cannot be had."""
        pin = self.component.pin
        if self._asked or not isinstance(pin, GitPin):
            return self._history
        self._asked = True
        try:
            at_old = replace(self.component, pin=GitPin(self.old))
            self._history = open_history(self.store, at_old, pin.commit, self.progress)
        except PatchkitError as error:
            self._note(error)
        return self._history

    def bring(self, blobs: Iterable[str]) -> None:
        """Bring files of the history, as far as they can be had."""
        history = self.history()
        if history is None:
            return
        try:
            bring_blobs(self.store, self.component, history, blobs, self.progress)
        except PatchkitError as error:
            self._note(error)

    def note(self) -> tuple[Problem, ...]:
        """What the user should know of a carry that had to go without."""
        if not self.unknown:
            return ()
        what = (
            f"upstream's history is not known, so no renames or moves are followed: {self.unknown}"
        )
        return (Problem(what, self.component.name, self._hint),)

    def _repository(self) -> Repository:
        history = self.history()
        return self.store.repository(self.component) if history is None else history.repository

    def _note(self, error: PatchkitError) -> None:
        self.unknown = "; ".join(each.what for each in error.problems)
        away = isinstance(error, SurroundingsError)
        self._hint = "run it again where the upstream can be had" if away else ""


def with_upstream(conflict: Conflict, upstream: Upstream) -> Conflict:
    """The conflict with the commits that touched its lines, or a word why none are named."""
    history = upstream.history()
    if history is not None:
        files = tuple(_named(each, history, upstream) for each in conflict.files)
        conflict = replace(conflict, files=files)
    return replace(conflict, unknown=upstream.unknown)


def _named(file: ConflictedFile, history: History, upstream: Upstream) -> ConflictedFile:
    repository = history.repository
    touches = touches_of(repository, history.pin, history.tip, file.path)
    if file.lines:
        upstream.bring(oid for each in touches for oid in each.blobs)
        touches = that_touched(repository, touches, file.lines) or touches
    return replace(file, upstream=tuple(each.told for each in touches[:_SHOWN]))
