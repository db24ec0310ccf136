"""Resolutions of conflicts that are kept in the project, so that nobody resolves one twice.

They stand in the folder `resolutions` beside the series, one file for each conflict; a colleague
or a CI job that carries the same patch over the same change of upstream takes them from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from patchkit.export import canonical_diffs
from patchkit.gitcmd.objects import write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import GitObject
from patchkit.model.resolution import ENDING, Resolution, format_resolution, parse_resolution
from patchkit.model.tree import ObjectSource, Tree
from patchkit.refresh.deciding import Decision
from patchkit.refresh.planning import Home

FOLDER = "resolutions"
# as much of the key as a file's name takes
_NAME = 16


def load_resolutions(home: Home) -> dict[str, Resolution]:
    """Key -> resolution, of all that are beside the series; BadInputError for one that is none."""
    found = {}
    for path in sorted((home.folder / FOLDER).glob(f"*{ENDING}")):
        where = path.relative_to(home.root).as_posix()
        resolution = parse_resolution(path.read_bytes(), where)
        found[resolution.key] = resolution
    return found


def new_resolutions(
    repository: Repository,
    source: ObjectSource,
    home: Home,
    decisions: Mapping[str, Decision],
) -> dict[Path, bytes]:
    """The files to write for what was decided; `repository` takes trial objects.

    A decision that changes files beside those in conflict is not remembered: half of it would be
    wrong elsewhere.
    """
    files: dict[Path, bytes] = {}
    for patch, decision in decisions.items():
        if decision.tree is None:
            continue
        others = _changed(repository, decision.offered, decision.tree) - decision.keys.keys()
        if others:
            continue
        for path, key in decision.keys.items():
            resolution, diff = _resolved(repository, source, decision, path)
            data = format_resolution(resolution, patch, path, diff)
            files[home.folder / FOLDER / f"{key[:_NAME]}{ENDING}"] = data
    return files


def _resolved(
    repository: Repository, source: ObjectSource, decision: Decision, path: str
) -> tuple[Resolution, bytes]:
    """What one conflict came to, and that as a diff on upstream's file."""
    before, after = Tree(source, decision.onto), Tree(source, str(decision.tree))
    upstream, result = before.entry(path), after.entry(path)
    alone = before
    if result is not None:
        alone = before.put(path, result)
    elif upstream is not None:
        alone = before.remove(path)
    written: list[GitObject] = []
    tree = alone.write(written)
    write_objects(repository, written)
    (diff,) = canonical_diffs(repository, [(decision.onto, tree)])
    return Resolution(decision.keys[path], upstream, result, (), ""), diff


def _changed(repository: Repository, old: str, new: str) -> set[str]:
    return set(_names(repository, old, new))


def _names(repository: Repository, old: str, new: str) -> Iterator[str]:
    out = repository.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new).out
    yield from out.decode("utf-8", "surrogateescape").split("\0")[:-1]
