"""A component's metadata along its branch, as its patches leave it: what it declares from where."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.drift.along import Along, tree_of
from patchkit.drift.forecasting import Forecaster
from patchkit.gitcmd.firstparent import Line
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.manifest.values import Component
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.model.overlay import Overlay
from patchkit.model.tree import ObjectSource, Tree
from patchkit.planning.declaring import ReadFile, asked_for, declaration_of
from patchkit.planning.tagging import AskTags, TaggedVersions
from patchkit.planning.values import Declaration
from patchkit.stack import SeriesPatch, build_stack


class Metadata:
    """The files with metadata of a component, those of its pin and of the tip.

    `paths` are all that are looked at; `at_pin` is what the patched pin declares.
    """

    def __init__(
        self,
        along: Along,
        component: Component,
        patches: Sequence[SeriesPatch],
        tags: AskTags | None = None,
    ) -> None:
        self._along, self._component = along, component
        history = along.history
        self._tags = TaggedVersions(history.repository, tags or dict)
        self._found: list[tuple[int, Declaration]] = []
        self._files: tuple[TreeEntry | None, ...] = ()
        pin, tip = history.base(history.pin), tree_of(along.reader, history.tip)
        at_pin = self._patched(patches)
        asked = [
            path
            for read in (self._at(along.reader, pin.tree), at_pin, self._at(along.reader, tip))
            for path in asked_for(read, component.install)
        ]
        self.paths = tuple(dict.fromkeys(asked))
        self.at_pin = self._tags.at(history.pin, self._declared(at_pin))

    def note(self, position: int, forecaster: Forecaster) -> None:
        """Note what is declared from a position of the line on, which was judged last."""
        files = tuple(map(forecaster.after, self.paths))
        if self._found and files == self._files:
            return
        self._files = files
        try:
            declared = self._declared(forecaster.patched)
        except MissingObjectError:  # a file that no server gives
            return
        if not self._found or declared != self._found[-1][1]:
            self._found.append((position, declared))

    def along(self, line: Line) -> tuple[tuple[int, Declaration], ...]:
        """(position, what is declared from there on), from the start of the line to its tip."""
        return self._tags.along(line, self._found)

    def _declared(self, read: ReadFile) -> Declaration:
        return declaration_of(read, self._component.install, self._component.name)

    def _patched(self, patches: Sequence[SeriesPatch]) -> ReadFile:
        """The files of the pin with the patches that apply there."""
        history, reader = self._along.history, self._along.reader
        try:
            stack = build_stack(reader, history.base(history.pin), patches, stop_at_conflict=False)
        except MissingObjectError:  # a file that no server gives
            return self._at(reader, history.base(history.pin).tree)
        return self._at(Overlay(reader, stack.objects), stack.tree)

    def _at(self, source: ObjectSource, tree: str) -> ReadFile:
        files = Tree(source, tree)

        def read(path: str) -> bytes | None:
            entry = files.entry(path)
            if entry is None or entry.mode == SUBMODULE_MODE:
                return None
            try:
                return source.read(entry.oid, "blob")
            except MissingObjectError:
                self._along.bring([entry.oid])
                self._along.reader.close()  # a git that runs need not see new packs
            try:
                return source.read(entry.oid, "blob")
            except MissingObjectError:
                return None

        return read
