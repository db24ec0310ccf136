"""The versions of a component whose build takes them from git's tags, as setuptools-scm does.

A tagged commit has its version; one behind it is on its way to the next, `1.2` to `1.3.dev0`. Tags
are kept as refs of the history, so that a plan offline knows them, too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace
from packaging.version import Version

from patchkit.gitcmd.firstparent import Line
from patchkit.gitcmd.repository import RefChange, Repository
from patchkit.model.objects import lines_of
from patchkit.planning.values import Declaration

#: Asks the upstream for its tags: name -> commit.
AskTags: TypeAlias = Callable[[], Mapping[str, str]]

_BEHIND = ".dev0"
_REFS = "refs/patchkit/tags/"
# Of a release; another product's of the same repository begins with its name.
_TAG = re.compile(r"v?([0-9]+(?:\.[0-9]+)+(?:\.?(?:a|b|rc|post|dev)\.?[0-9]+)*)")


class TaggedVersions:
    """Versions by the tags of a history; these are asked for when one is first wanted."""

    def __init__(self, repository: Repository, ask: AskTags) -> None:
        self._repository = repository
        self._ask: AskTags | None = ask

    def at(self, commit: str, declared: Declaration) -> Declaration:
        """The declaration with the version that tags give a commit, if they do."""
        if not declared.by_tags:
            return declared
        self._bring()
        return _tagged(declared, self._version(commit))

    def along(
        self, line: Line, declared: Sequence[tuple[int, Declaration]]
    ) -> tuple[tuple[int, Declaration], ...]:
        """(position, what is declared from there on), the versions of tags with it."""
        if not any(each.by_tags for _, each in declared):
            return tuple(declared)
        self._bring()
        versions = list(self._along(line))
        found: list[tuple[int, Declaration]] = []
        for position in sorted({each for each, _ in (*declared, *versions)}):
            said = [each for first, each in declared if first <= position][-1]
            version = [each for first, each in versions if first <= position][-1]
            now = _tagged(said, version) if said.by_tags else said
            if not found or found[-1][1] != now:
                found.append((position, now))
        return tuple(found)

    def _along(self, line: Line) -> Iterable[tuple[int, str]]:
        """(position, version from there on), from the line's start."""
        ids = (line.start, *line.commits)
        places = {commit: number for number, commit in enumerate(ids)}
        landed: dict[int, tuple[Version, bool]] = {}
        for name, commit in self._names(ids[-1]).items() - self._names(line.start).items():
            position = places.get(commit) or self._lands(ids, commit)
            found = _version(name), commit in places
            landed[position] = max(found, landed.get(position, found))
        start = self._version(line.start)
        yield 0, start
        if start and len(ids) > 1 and 1 not in landed and not start.endswith(_BEHIND):
            yield 1, _next(Version(start))
        for position, (version, exact) in sorted(landed.items()):
            yield position, str(version) if exact else _next(version)
            if exact and position + 1 < len(ids) and position + 1 not in landed:
                yield position + 1, _next(version)

    def _lands(self, ids: Sequence[str], commit: str) -> int:
        """The position of the first commit of the line that has a commit of another branch."""

        def has(position: int) -> bool:
            arguments = ["merge-base", "--is-ancestor", commit, ids[position]]
            return self._repository.git(*arguments, accept=(0, 1)).code == 0

        return bisect_left(range(len(ids)), True, key=has)

    def _version(self, commit: str) -> str:
        """What a commit is called, by the highest version among the tags that it has."""
        names = self._names(commit)
        best = max(names, key=_version, default=None)
        if best is None:
            return ""
        version = _version(best)
        return str(version) if names[best] == commit else _next(version)

    def _names(self, commit: str) -> dict[str, str]:
        """Tag -> commit, of the releases that a commit has."""
        arguments = ["for-each-ref", "--format=%(objectname) %(refname)", f"--merged={commit}"]
        out = self._repository.git(*arguments, _REFS).out.decode("utf-8", "surrogateescape")
        rows = (row.split(" ", 1) for row in lines_of(out))
        return {name.removeprefix(_REFS): oid for oid, name in rows}

    def _bring(self) -> None:
        """Note the tags of commits that are here."""
        ask, self._ask = self._ask, None
        if ask is None:
            return
        known = self._repository.refs(_REFS)
        found = {
            _REFS + name: commit
            for name, commit in ask().items()
            if _TAG.fullmatch(name) and self._repository.commit(commit) is not None
        }
        changes = [
            RefChange(name, commit, known.get(name))
            for name, commit in found.items()
            if known.get(name) != commit
        ]
        if changes:
            self._repository.free_refs(each.name for each in changes)
            self._repository.update_refs(changes, reason="patchkit: tags")


def _tagged(declared: Declaration, version: str) -> Declaration:
    return replace(declared, version=version)


def _version(name: str) -> Version:
    match = _TAG.fullmatch(name)
    return Version(match[1] if match else name)


def _next(version: Version) -> str:
    """What comes behind a release on its way to the next one."""
    *first, last = version.release
    step = 0 if version.is_prerelease else 1
    return f"{'.'.join(map(str, [*first, last + step]))}{_BEHIND}"
