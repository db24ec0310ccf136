"""Files for judging: blobs that a walk read ahead, or that a patch made, else upstream's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from patchkit.model.tree import ObjectSource


class SuppliedSource:
    """An ObjectSource in front of `source`; blobs that patches make are put into `_made`."""

    def __init__(self, source: ObjectSource) -> None:
        self._source = source
        self._made: dict[str, bytes] = {}
        self._loaded: Mapping[str, bytes] = {}

    def supply(self, contents: Mapping[str, bytes]) -> None:
        """Take these blobs of the upstream as read; those of the last time are forgotten."""
        self._loaded = contents

    def read(self, oid: str, kind: str) -> bytes:
        """A blob of the upstream, or one that a patch made."""
        made = self._made.get(oid, self._loaded.get(oid))
        return self._source.read(oid, kind) if made is None else made

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """See ObjectSource."""
        for oid in oids:
            yield oid, self.read(oid, kind)
