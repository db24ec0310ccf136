"""What makes two sources one upstream, for the cache and for a checkout."""

from __future__ import annotations

from patchkit.manifest.values import GitSource, IndexSource, Source, normal_name
from patchkit.model.names import normal_url


def upstream_key(source: Source) -> str:
    """A key that is equal for all spellings of one upstream; its mirrors are no part of it."""
    if isinstance(source, GitSource):
        return normal_url(source.url)
    if isinstance(source, IndexSource):
        return "index/" + normal_name(source.project)
    return "archive/" + normal_url(source.url)
