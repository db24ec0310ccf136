"""A file in which the places that nobody could settle stand with conflict markers."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.model.merging.file import FileMerge
from patchkit.model.merging.regions import Region


@dataclass(frozen=True, slots=True)
class Labels:
    """What the three sides are called behind the markers."""

    upstream: str = "upstream"
    base: str = "base"
    patch: str = "patch"


def conflict_text(merge: FileMerge, labels: Labels | None = None) -> bytes:
    """The file with git's diff3 markers where it conflicts; everything else is merged.

    Every place where git's three-way merge gives up is marked, whatever our rules would put there:
    a person who has to look at the file sees all of them alike.
    """
    named = labels or Labels()
    settled = [(region, region.settled) for region in merge.three.regions]
    texts = [_marked(region, named) if text is None else text for region, text in settled]
    return merge.three.assemble(texts)


def _marked(region: Region, labels: Labels) -> tuple[bytes, ...]:
    return (
        b"<<<<<<< %s\n" % labels.upstream.encode("utf-8", "surrogateescape"),
        *_ended(region.upstream),
        b"||||||| %s\n" % labels.base.encode("utf-8", "surrogateescape"),
        *_ended(region.base),
        b"=======\n",
        *_ended(region.patch),
        b">>>>>>> %s\n" % labels.patch.encode("utf-8", "surrogateescape"),
    )


def _ended(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    if lines and not lines[-1].endswith(b"\n"):
        return (*lines[:-1], lines[-1] + b"\n")
    return lines
