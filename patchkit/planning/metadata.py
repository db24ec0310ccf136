"""A component's metadata along its branch: what it declares, and from which commit on."""

from __future__ import annotations

from patchkit.drift.along import Bring
from patchkit.gitcmd.firstparent import entries_at
from patchkit.gitcmd.objects import ObjectReader
from patchkit.histories import History
from patchkit.manifest.values import Component
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.planning.declaring import ReadFile, asked_for, declaration_of
from patchkit.planning.following import Route
from patchkit.planning.tagging import AskTags, TaggedVersions
from patchkit.planning.values import Declaration


class Metadata:
    """The files with metadata of a component, those of its pin and of the tip.

    `paths` are all that are looked at; `at_pin` is what the pin declares.
    """

    def __init__(
        self,
        history: History,
        reader: ObjectReader,
        bring: Bring,
        component: Component,
        tags: AskTags | None = None,
    ) -> None:
        self._history, self._reader, self._bring = history, reader, bring
        self._component = component
        ends = (history.pin, history.tip)
        asked = [path for end in ends for path in asked_for(self._at(end), component.install)]
        self.paths = tuple(dict.fromkeys(asked))
        self._tags = TaggedVersions(history.repository, tags or dict)
        self.at_pin = self._tags.at(history.pin, self._declared(self._at(history.pin)))

    def along(self, route: Route) -> tuple[tuple[int, Declaration], ...]:
        """(position, what is declared from there on), from the start of the line to its tip.

        The files' versions must have been brought.
        """
        state = {path: route.start.get(path) for path in self.paths}
        found = [(0, self._of_state(state))]
        for step in route.steps:
            touched = {p: e for p, e in step.landing.touches.items() if p in state}
            if touched:
                state.update(touched)
                declared = self._of_state(state)
                if declared != found[-1][1]:
                    found.append((step.position, declared))
        return self._tags.along(route.line, found)

    def _of_state(self, state: dict[str, TreeEntry | None]) -> Declaration:
        def read(path: str) -> bytes | None:
            entry = state.get(path)
            return None if entry is None else self._contents(entry)

        return self._declared(read)

    def _declared(self, read: ReadFile) -> Declaration:
        return declaration_of(read, self._component.install, self._component.name)

    def _at(self, commit: str) -> ReadFile:
        def read(path: str) -> bytes | None:
            entry = entries_at(self._history.repository, commit, [path]).get(path)
            if entry is None:
                return None
            self._bring([entry.oid])
            self._reader.close()  # a git that runs need not see new packs
            return self._contents(entry)

        return read

    def _contents(self, entry: TreeEntry) -> bytes | None:
        if entry.mode == SUBMODULE_MODE:
            return None
        return self._reader.read_present([entry.oid]).get(entry.oid)
