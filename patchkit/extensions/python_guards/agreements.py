"""What holds between the components of a manifest: found once for a run, whoever asks."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from patchkit.errors import BadInputError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.manifest.values import Component, GitPin, Manifest, whole_environment
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.upstream.store import Store

if TYPE_CHECKING:
    from patchkit.drift.drift_report import BrokenContract
    from patchkit.extensions.python_guards.agreement import Agreement
    from patchkit.extensions.python_guards.breaches import ComponentAgreement
    from patchkit.extensions.python_guards.known_modules import Partner


class Agreements:
    """What holds between the components of each manifest, found once; for several threads."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._lock = Lock()
        self._known: dict[Path, Agreement] = {}

    def of(self, manifest: Manifest, component: Component) -> ComponentAgreement:
        """What was found in one component that has contracts.

        Fetches the others. BadInputError if the stack of one of them is broken.
        """
        assert component.contracts is not None
        with self._lock:
            if manifest.path not in self._known:
                self._known[manifest.path] = self._look(manifest)
        # most manifests have no contracts, and a check should feel instant
        from patchkit.extensions.python_guards.agreement import explain  # noqa: PLC0415

        found = self._known[manifest.path]
        return explain(component.contracts, found, component.name, manifest.path)

    def _look(self, manifest: Manifest) -> Agreement:
        from patchkit.extensions.python_guards.agreement import agreement_of  # noqa: PLC0415

        with ExitStack() as stack:
            partners, given = partners_of(manifest, self._store, self._progress, stack)
            self._progress.step(manifest.name, "binding calls between components", local=True)
            return agreement_of(self._store.cache, partners, given)


def broken_by_moving(
    manifest: Manifest, component: Component, commit: CommitId, store: Store, progress: Progress
) -> tuple[Problem, ...]:
    """The calls between components that fit at the component's pin, and not at a commit of it.

    Each with the upstream commit that broke it. Fetches the history between the two; what keeps
    that from being told is told instead. A pin without history (a package index's, an archive's)
    gives nothing here: `check` looks at its calls as soon as it has moved.
    """
    if component.contracts is None or not isinstance(component.pin, GitPin):
        return ()
    from patchkit.extensions.python_guards.broken_calls import find_broken_contracts  # noqa: PLC0415
    from patchkit.upstream.history import HistoryReader, open_history  # noqa: PLC0415

    try:
        history = open_history(store, component, commit, progress)
        progress.step(component.name, "binding calls between components", local=True)
        with ExitStack() as stack:
            partners, given = partners_of(manifest, store, progress, stack)
            reader = stack.enter_context(ObjectReader(history.repository))
            along = HistoryReader(history, reader)
            found = find_broken_contracts(along, component.name, partners, given, store.cache)
    except (BadInputError, SurroundingsError) as error:
        what = f"calls between components were not looked at: {error.problems[0].what}"
        hint = f"patchkit contracts {manifest.options()}  once it has moved"
        return (Problem(what, component.name, hint),)
    return tuple(map(_told, found))


def _told(broken: BrokenContract) -> Problem:
    place = broken.place
    text = place.words
    if broken.by is not None:
        text += f", since {short_id(broken.by.commit)} {broken.by.subject}"
    return Problem(f"upstream breaks a call: {text}", f"{place.component} {place.place}")


def partners_of(
    manifest: Manifest, store: Store, progress: Progress, stack: ExitStack
) -> tuple[list[Partner], frozenset[str]]:
    """The components with contracts as they are patched, and the packages that all bring.

    Their objects can be read until `stack` is closed. BadInputError if a stack is broken.
    """
    from patchkit.extensions.python_guards.known_modules import Partner  # noqa: PLC0415
    from patchkit.upstream.requirements import modules_asked_for, modules_of  # noqa: PLC0415

    given = set(modules_of(whole_environment(manifest).versions))
    partners: list[Partner] = []
    for component in manifest.components:
        built = stack.enter_context(built_stack(manifest, component, store, progress))
        require_clean(built, manifest)
        given |= modules_asked_for(built.tip.data, component.install)
        if component.contracts is not None:
            partners.append(Partner(component.name, built.tip, component.contracts))
    return partners, frozenset(given)
