"""Objects that exist in memory only, in front of those of a repository."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from patchkit.model.objects import GitObject
from patchkit.model.tree import ObjectSource


class Overlay:
    """An ObjectSource of `objects`, and behind them of `source`."""

    def __init__(self, source: ObjectSource, objects: Iterable[GitObject]) -> None:
        self._source = source
        self._objects = {each.oid: each.payload for each in objects}

    def read(self, oid: str, kind: str) -> bytes:
        """See ObjectSource."""
        payload = self._objects.get(oid)
        return self._source.read(oid, kind) if payload is None else payload

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """See ObjectSource."""
        behind = dict(self._source.read_many([o for o in oids if o not in self._objects], kind))
        for oid in oids:
            yield oid, self._objects[oid] if oid in self._objects else behind[oid]
