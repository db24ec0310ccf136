"""Which patch set is for which upstream: by the words of their names, and how near they stand.

Invariant: a set goes to one upstream or to none. It is sure of it where the words of the upstream's
name stand in the set's path or at the pin, or no other one has a pin in the folders around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os.path import relpath
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from patchkit.adoption.carrier import Carrier, folder_of, folders_up
from patchkit.adoption.patch_sets import PatchSet
from patchkit.adoption.upstreams import (
    Upstream,
    files_near,
    git_urls,
    upstreams_near,
    words_of,
)


class Adoption(Struct, frozen=True):
    """A component to be: patch sets, and their upstream with the place of its pin.

    `others` are upstreams that are as likely, `sets` is what a manifest says of the patches.
    """

    upstream: Upstream
    sets: tuple[PatchSet, ...]
    others: tuple[Upstream, ...]


class Proposal(Struct, frozen=True):
    """What a carrier's patches may be adopted as.

    `homeless` are sets for which no pin was found, with the repository that they are called after,
    or ""; `older` ones stand beside another of the same patches for a newer version.
    """

    adoptions: tuple[Adoption, ...]
    homeless: tuple[tuple[PatchSet, str], ...]
    older: tuple[PatchSet, ...]


def propose(carrier: Carrier, sets: Sequence[PatchSet]) -> Proposal:
    """Match the sets with the upstreams that files near them name."""
    kept, older = _newest(sets)
    adoptions: dict[tuple[str, str, str], Adoption] = {}
    homeless: list[tuple[PatchSet, str]] = []
    for patches in kept:
        near = upstreams_near(carrier, patches.folder)
        for part in _apart(carrier, patches, near):
            called = _called(part.patches[0], near) if "patch" in part.entry else ""
            meant = [up for up in near if called in ("", up.url.removesuffix(".git"))]
            ranked = sorted(meant, key=lambda upstream: -_likeness(part, upstream))
            version = re.compile(
                rf"(?<![\d.]){re.escape(part.target.rpartition('/')[2])}(?![\d.]*\d)"
            )
            pinned = [upstream for upstream in ranked if upstream.pin]
            if part.target:
                pinned = [up for up in pinned if version.search(f"{up.url} {up.value} {up.pin}")]
            best = [up for up in pinned if _likeness(part, up) >= _LEAST]
            best = best or _only(part, pinned)
            if not best:
                homeless.append((part, called))
                continue
            same = [up for up in best[1:] if _likeness(part, up) > _likeness(part, best[0]) - 2]
            key = best[0].where, part.folder, part.target
            known = adoptions.get(key)
            if known is None:
                others = tuple(up for up in same if up.where != best[0].where)
                adoptions[key] = Adoption(best[0], (part,), others)
            else:
                adoptions[key] = replace(known, sets=(*known.sets, part))
    return Proposal(tuple(adoptions.values()), tuple(homeless), tuple(older))


def _only(patches: PatchSet, pinned: Sequence[Upstream]) -> list[Upstream]:
    """The one repository with a pin around the set, or its archive; a submodule says more than a
    file's value, wherever it is if nothing else is near.
    """
    around = [*folders_up(patches.folder)]
    near = [upstream for upstream in pinned if upstream.folder in around]
    submodules = [upstream for upstream in pinned if "submodule" in dict(upstream.pin)]
    found = [upstream for upstream in near if upstream in submodules] or near or submodules
    return found if len({next(git_urls(up.url), up.url) for up in found}) == 1 else []


#: Below it nothing but nearness speaks for an upstream.
_LEAST = 3


def _likeness(patches: PatchSet, upstream: Upstream) -> int:
    """How much speaks for an upstream."""
    named = words_of(f"{patches.folder} {patches.target}")
    if "patch" in patches.entry:
        named |= words_of(patches.patches[0])
    score = 4 * len(upstream.words & named) + 2 * bool(upstream.about & named)
    if upstream.about:
        score += 3 if upstream.words & upstream.about else -6
    between = relpath(patches.folder or ".", upstream.folder or ".")
    return score - len(PurePosixPath(between).parts)


def _apart(carrier: Carrier, patches: PatchSet, near: Sequence[Upstream]) -> Iterator[PatchSet]:
    """A folder whose order nothing in it says, patch by patch: in the order in which a file near it
    names those for one upstream, or called after several upstreams.
    """
    by_upstream: dict[str, list[str]] = {}
    for path in patches.patches:
        by_upstream.setdefault(_called(path, near), []).append(path)
    strangers = len(by_upstream) > 1 and "" in by_upstream
    if patches.entry.get("order") != "name" or strangers:
        yield patches
        return
    for paths in by_upstream.values():
        file, ordered = _named_in_order(carrier, patches.folder, paths)
        if not file and len(by_upstream) == 1:
            yield patches
            return
        why = f"{file} names them in this order" if file else "they are called after the upstream"
        for path in ordered:
            yield PatchSet({"patch": path}, patches.folder, (path,), why)


def _named_in_order(carrier: Carrier, folder: str, paths: Sequence[str]) -> tuple[str, list[str]]:
    """A file near the folder that names all of several patches, and their order there."""
    names = [
        re.compile(rf"(?<![\w.+-]){re.escape(path.rpartition('/')[2])}(?![\w.+-])")
        for path in paths
    ]
    for file in files_near(carrier, folder) if len(paths) > 1 else ():
        found = [name.search(carrier.text(file)) for name in names]
        places = [place.start() for place in found if place]
        if len(places) == len(paths):
            return file, [path for _, path in sorted(zip(places, paths, strict=True))]
    return "", [*paths]


def _called(path: str, near: Sequence[Upstream]) -> str:
    """The upstream that a patch's name has all words of, without `.git`; "" for none."""
    name = path.rpartition("/")[2].lower()
    words = words_of(name)

    def fit(upstream: Upstream) -> tuple[int, int, int]:
        known = upstream.words & words
        return len(known), -min(map(name.index, known)), -len(upstream.words)

    best = max((up for up in near if up.words & words), key=fit, default=None)
    return best.url.removesuffix(".git") if best is not None else ""


_NEWEST = frozenset({"latest", "main", "master", "head", "current"})


def _newest(sets: Sequence[PatchSet]) -> tuple[list[PatchSet], list[PatchSet]]:
    """Of folders beside each other that are called as versions the newest one, and the rest."""
    folders = [patches.folder for patches in sets if _version(patches.folder)]
    newest = {folder_of(folder): folder for folder in sorted(folders, key=_version)}
    older = [
        patches
        for patches in sets
        if patches.folder in folders and newest[folder_of(patches.folder)] != patches.folder
    ]
    return [patches for patches in sets if patches not in older], older


def _version(folder: str) -> tuple[int, ...]:
    """What a folder's name says of a version, () for nothing."""
    name = folder.rpartition("/")[2].lower()
    if name in _NEWEST:
        return (1 << 30,)
    return tuple(map(int, re.findall(r"\d+", name))) if re.match(r"[a-z]*\d+[._-]\d", name) else ()
