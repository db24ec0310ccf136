"""Upstream repositories that somebody damaged."""

from __future__ import annotations

import os
from pathlib import Path

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


def nest_too_deep(folder: Path) -> None:
    """Folders in `folder` whose path is longer than the system takes: not even root can list them
    by it.
    """
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("a" * 250, dir_fd=inside)
        deeper = os.open("a" * 250, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    os.close(inside)
