"""Upstream repositories that somebody damaged."""

from __future__ import annotations

from patchkit.model.objects import make_object
from tests.support.repos import Upstream


def lose_blob(upstream: Upstream, text: str) -> str:
    """Take a blob out of the repository; its id."""
    oid = make_object("blob", text.encode()).oid
    packs = upstream.path / "objects" / "pack"
    held = list(packs.glob("*.pack"))
    upstream.git("config", "uploadpack.allowFilter", "true")
    for pack in held:
        data = pack.read_bytes()
        for file in packs.glob(f"{pack.stem}.*"):
            file.unlink()
        upstream.git("unpack-objects", "-q", stdin=data)
    (upstream.path / "objects" / oid[:2] / oid[2:]).unlink()
    return oid
