"""What is known of the modules of several trees: parsed once, and what earlier looks found of each.

Kept below the cache folder, by what an answer follows from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.result_cache import ResultCache, code_digest, memory_path
from patchkit.extensions.python_guards.guard_keys import Contracts
from patchkit.extensions.python_guards.modules import JoinedModules, Modules, ParsedModules
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Location

#: The code that decides what the same trees come to.
CODE = ("extensions/python_guards", "model")


class Partner(Struct, frozen=True):
    """A component that takes part: its tree as patched, and what the manifest says of it."""

    name: str  # the component's
    tree: TreeView
    declared: Contracts  # what the manifest says of its calls


#: So many answers about modules are kept that nobody asked for the last time, some 100 bytes each.
_SPARE = 20_000


class KnownModules(Struct, frozen=True):
    """Modules of trees that were looked at, for versions of them in which most files are the same.

    `answers` has what was found of single modules, `trees` the last tree of each component,
    `parsed` the modules of all.
    """

    answers: ResultCache = field(default_factory=ResultCache)
    trees: dict[str, tuple[TreeView, Modules]] = {}
    parsed: ParsedModules = field(default_factory=ParsedModules)

    def of(self, partner: Partner) -> Modules:
        """The modules of a component's tree."""
        name, tree = partner.name, partner.tree
        known = self.trees.get(name)
        if known is None or known[0] is not tree:
            modules = Modules(tree.files(), tree.data, partner.declared.root, name, self.parsed)
            self.trees[name] = known = (tree, modules)
        return known[1]


#: Held by whoever looks: the answers of one serve the next, and memory has the trees of one look.
_LOOKING = Lock()


@contextmanager
def known_modules(
    cache: Path, partners: Sequence[Partner], given: Collection[str]
) -> Iterator[KnownModules]:
    """What earlier looks found of single modules, kept below the cache folder."""
    facts = ["modules", *facts_of(partners, given)]
    with _LOOKING:
        answers = ResultCache(memory_path(cache, "contracts", facts), _SPARE)
        known = KnownModules(answers)
        try:
            yield known
        finally:
            known.parsed.close()
            answers.close()


_NOWHERE = Location(Path(), 0)


def facts_of(partners: Sequence[Partner], given: Collection[str]) -> list[Any]:
    """What is found of a module follows from beside the trees, for the name of what is kept."""
    facts = [[each.name, repr(_told(each.declared))] for each in partners]
    version = list(sys.version_info[:2])  # the syntax that can be read
    return [code_digest(*CODE), version, facts, sorted(given)]


def _told(declared: Contracts) -> Contracts:
    """What an answer follows from: not the places in the manifest, nor what is explained."""
    calls = tuple(replace(each, where=_NOWHERE) for each in declared.calls)
    return replace(declared, calls=calls, absent=(), where=_NOWHERE)


#: So many answers are kept about one version of a module, for what it leads to differs.
_ANSWERS = 6

#: An answer that JSON can hold, and whether it is good for another run.
FoundAnswer = tuple[Any, bool]


class ModuleAnswers(Struct, frozen=True):
    """What was found of single modules, by their contents.

    Invariant: an answer follows from the text of its module, from what the manifest says (the
    key of the cache), and from what stands at the names that were asked for on the way to it:
    which file of which tree, with what contents, and what modules that were loaded have given to
    the one there. With each answer is a digest of that, over these names; it holds where the
    digest is the same.
    """

    modules: JoinedModules  # of all components
    trees: Mapping[str, TreeView]  # by component
    answers: ResultCache
    given: dict[str, str] = {}  # to a module, by others: what, by which
    known: dict[str, str] = {}  # name -> what stands there

    def of(self, question: str, name: str, find: Callable[[], FoundAnswer]) -> Any:
        """The answer to a question about a module, kept or found."""
        asked = f"{question} {name} {self._standing(name)}"
        rows = self.answers.known(asked) or []
        for names, digest, answer in rows:
            if self._digest(names) == digest:
                return answer
        self.modules.asked.clear()
        answer, is_good = find()
        names = sorted(each for each in self.modules.asked if self.modules.may_have(each))
        if is_good and not any(map(self.modules.is_lacking, (name, *names))):
            row = [names, self._digest(names), answer]
            self.answers.note(asked, [row, *rows[: _ANSWERS - 1]])
        return answer

    def note_given(self, giver: str, given: Iterable[tuple[str, str]]) -> None:
        """A module has given something to others, from now on."""
        for home, what in given:
            row = f"{what} {giver} {self._standing(giver)}"
            self.given[home] = f"{self.given.get(home, '')}\n{row}"

    def _digest(self, names: Sequence[str]) -> str:
        rows = (f"{self._standing(each)} {self.given.get(each, '')}" for each in names)
        return sha256("\0".join(rows).encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def _standing(self, name: str) -> str:
        """The file that is a module: its tree, path and blob; or a folder, or nothing."""
        if name not in self.known:
            path, home = self.modules.path_of(name), self.modules.home(name)
            there = repr(path)
            if home is not None and path:
                there = f"{home.tree} {path} {self.trees[home.tree].files()[path]}"
            self.known[name] = there
        return self.known[name]
