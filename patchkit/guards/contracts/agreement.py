"""All components of a manifest that take part, each module that can be loaded looked at once."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import memory_path, recall_as, remember
from patchkit.gitcmd.trees import TreeView
from patchkit.guards.contracts.breaches import Breach, BrokenCall, Examined, joined
from patchkit.guards.contracts.module_uses import Examiner
from patchkit.guards.contracts.traversal import Conditions, Traversal, loaded_by
from patchkit.machine.requirements import ReadFile, read_requirements
from patchkit.manifest.values import AbsentTarget, Contracts, DeclaredCall, InstallStep, normal_name
from patchkit.model.lint import Finding, Severity
from patchkit.model.text import counted
from patchkit.python.inference import Values
from patchkit.python.modules import JoinedModules, Module, Modules, ParsedModules
from patchkit.python.resolve import Resolver

#: Raise it when the same trees could come to something else.
_FORM = 1


class Partner(Struct, frozen=True):
    """A component that takes part: its tree as patched, and what the manifest says of it."""

    name: str
    tree: TreeView
    declared: Contracts


class Agreement(Struct, frozen=True):
    """What was found in each component; `modules` is how many were looked at."""

    found: Mapping[str, Examined]
    modules: Mapping[str, int]


class Explained(Struct, frozen=True):
    """A place that does not fit, and the manifest's reason why it need not."""

    place: BrokenCall
    reason: str


class ComponentAgreement(Struct, frozen=True):
    """What was found in one component, less what its `absent` explains.

    `unused` are explanations that nothing needs, `unmatched` declared calls that no call is.
    """

    found: Examined
    modules: int
    explained: tuple[Explained, ...] = ()
    unused: tuple[AbsentTarget, ...] = ()
    unmatched: tuple[DeclaredCall, ...] = ()


class KnownModules(Struct, frozen=True):
    """Modules of trees that were looked at, for versions of them in which most files are the same.

    `trees` has the last tree of each component, `parsed` all its modules by their contents.
    """

    trees: dict[str, tuple[TreeView, Modules]] = field(default_factory=dict)
    parsed: dict[str, ParsedModules] = field(default_factory=dict)

    def of(self, partner: Partner) -> Modules:
        """The modules of a component's tree."""
        name, tree = partner.name, partner.tree
        known = self.trees.get(name)
        if known is None or known[0] is not tree:
            parsed = self.parsed.setdefault(name, {})
            modules = Modules(tree.files(), tree.data, partner.declared.root, name, parsed)
            self.trees[name] = known = (tree, modules)
        return known[1]


def agreement_of(
    cache: Path,
    partners: Sequence[Partner],
    given: Collection[str],
    known: KnownModules | None = None,
) -> Agreement:
    """See `examine_partners`; kept below the cache folder, since it follows from the trees."""
    path = memory_path(cache, "contracts", facts_of(partners, given))
    kept = recall_as(path, Agreement)
    if kept is None:
        kept = examine_partners(partners, given, known)
        remember(path, to_builtins(kept))
    return kept


def facts_of(partners: Sequence[Partner], given: Collection[str]) -> list[Any]:
    """All that an agreement follows from, for the name of a file that keeps it."""
    facts = [[each.name, each.tree.oid, repr(_told(each.declared))] for each in partners]
    version = list(sys.version_info[:2])  # the syntax that can be read
    return [_FORM, version, facts, sorted(given)]


def _told(declared: Contracts) -> Contracts:
    """What an answer follows from: not the lines of the manifest, nor what is explained."""
    calls = tuple(replace(each, where=declared.where) for each in declared.calls)
    told = replace(declared, calls=calls, absent=())
    nowhere = replace(declared.where, line=0)
    calls = tuple(replace(each, where=nowhere) for each in calls)
    return replace(told, calls=calls, where=nowhere)


def explain(
    declared: Contracts, found: Examined, modules: int, manifest: Path
) -> ComponentAgreement:
    """Take out what the manifest explains, and name explanations in it that nothing needs.

    Those of a part that several manifests share may be for another one of them.
    """
    broken: list[BrokenCall] = []
    explained: list[Explained] = []
    used: set[int] = set()
    for place in found.broken:
        number = next(
            (n for n, each in enumerate(declared.absent) if fnmatchcase(place.target, each.name)),
            None,
        )
        if number is None:
            broken.append(place)
        else:
            used.add(number)
            explained.append(Explained(place, declared.absent[number].reason))
    return ComponentAgreement(
        replace(found, broken=tuple(broken)),
        modules,
        tuple(explained),
        tuple(
            each
            for n, each in enumerate(declared.absent)
            if n not in used and each.where.file.resolve() == manifest.resolve()
        ),
        tuple(each for n, each in enumerate(declared.calls) if n not in found.used),
    )


def examine_partners(
    partners: Sequence[Partner], given: Collection[str], known: KnownModules | None = None
) -> Agreement:
    """Look at every module that the entries load, or at all where no component has entries.

    `given` are the first names of packages that requirements bring; with entries, imports of others
    are told.
    """
    together = _Together.of(partners, given, known or KnownModules())
    everything = dict(_all_modules(partners, together.trees))
    globs = [glob for each in partners for glob in each.declared.entries]
    entries = [name for name in everything if any(fnmatchcase(name, glob) for glob in globs)]
    modules = together.resolver.modules
    loaded = list(_loaded(together.traversal, modules, entries if globs else everything))
    for module in loaded:
        together.resolver.load(module)
    parts: dict[str, list[Examined]] = {each.name: [] for each in partners}
    for module in loaded:
        parts[module.tree].append(together.examiners[module.tree].examine(module))
    return Agreement(
        {name: joined(found) for name, found in parts.items()},
        {name: len(found) for name, found in parts.items()},
    )


def examine_module(
    partners: Sequence[Partner], given: Collection[str], tree: str, name: str, known: KnownModules
) -> Examined:
    """Look at one module of one component; nothing is found if it is not there."""
    together = _Together.of(partners, given, known)
    module = together.resolver.modules.module(name)
    if module is None or module.tree != tree:
        return Examined()
    together.resolver.load(module)
    return together.examiners[tree].examine(module)


class _Together(Struct, frozen=True):
    """The modules of all components as one program, and who looks at those of each."""

    trees: Mapping[str, Modules]
    resolver: Resolver
    traversal: Traversal
    examiners: Mapping[str, Examiner]

    @classmethod
    def of(
        cls, partners: Sequence[Partner], given: Collection[str], known: KnownModules
    ) -> _Together:
        trees = {each.name: known.of(each) for each in partners}
        modules = JoinedModules([(trees[each.name], each.declared.packages) for each in partners])
        values = Values(Resolver(modules))
        assume = {each.name: _assumed(each.declared) for each in partners}
        traversal = Traversal(Conditions(values, assume))
        told = any(each.declared.entries for each in partners)
        examiners = {
            each.name: Examiner(
                each.name,
                modules,
                values,
                traversal,
                each.declared.calls,
                {*given, *each.declared.outside} if told else None,
            )
            for each in partners
        }
        return cls(trees, values.resolver, traversal, examiners)


def _loaded(traversal: Traversal, modules: Modules, entries: Collection[str]) -> Iterator[Module]:
    """The modules that entries load, with themselves."""
    seen = dict.fromkeys(entries)
    queue = list(seen)
    for name in queue:  # grows while it is walked
        module = modules.module(name)
        if module is None or not module.path:
            continue
        yield module
        with suppress(RecursionError):  # the examiner tells it
            for statement in traversal.imports(module):
                for each in loaded_by(module, statement):
                    if each not in seen and modules.path_of(each) is not None:
                        seen[each] = None
                        queue.append(each)


def _assumed(declared: Contracts) -> Mapping[str, bool]:
    return {**dict.fromkeys(declared.holds, True), **dict.fromkeys(declared.fails, False)}


def _all_modules(
    partners: Sequence[Partner], trees: Mapping[str, Modules]
) -> Iterator[tuple[str, str]]:
    """Every module of the components' packages, with its component."""
    for partner in partners:
        for path in sorted(partner.tree.files()):
            name = trees[partner.name].name_of(path)
            packages = partner.declared.packages
            if path.endswith(".py") and any(f"{name}.".startswith(f"{p}.") for p in packages):
                yield name, partner.name


# What `patchkit check` says about contracts: one finding for all places that miss one thing.


#: So many places are named, the rest is counted.
_NAMED = 3

_CODES = {
    Breach.MODULE: "module",
    Breach.PACKAGE: "package",
    Breach.NAME: "name",
    Breach.ARGUMENTS: "arguments",
    Breach.CROSSED: "crossed",
}


def contract_findings(found: ComponentAgreement, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `command` shows the details."""
    look = f"`{command}` shows each place; if it is right so, say why under `absent:`"
    groups: dict[tuple[Breach, str, str], list[BrokenCall]] = {}
    for each in found.found.broken:
        groups.setdefault((each.breach, each.target, each.what), []).append(each)
    for (breach, target, what), places in groups.items():
        text = what if target in what else f"{target} {what}"
        more = f", and in {places_text(places[1:])}" if len(places) > 1 else ""
        where = places[0].place
        code = f"contract-{_CODES[breach]}"
        yield Finding(Severity.ERROR, code, f"{text}{more}", where, look)
    for declared in found.unmatched:
        what = f"no call of {declared.call} is there that could lead to {declared.to}"
        hint = "look for it in the patched files, and correct or delete the entry"
        yield Finding(Severity.ERROR, "contract-unmatched", what, str(declared.where), hint)
    for absent in found.unused:
        what = f"{absent.name} is declared absent, and nothing that it names is"
        where = str(absent.where)
        yield Finding(Severity.WARNING, "contract-unused", what, where, "delete the declaration")


def places_text(places: list[BrokenCall]) -> str:
    """The first places, and how many more there are."""
    shown = ", ".join(each.place for each in places[:_NAMED])
    more = len(places) - _NAMED
    return f"{shown} and {counted(more, 'more place')}" if more > 0 else shown


# Which Python packages are there because somebody asks for them: by the metadata, read not run.


#: Distributions whose module has another name than they have.
_MODULES = {
    "antlr4-python3-runtime": ("antlr4",),
    "attrs": ("attr", "attrs"),
    "beautifulsoup4": ("bs4",),
    "decord2": ("decord",),
    "gitpython": ("git",),
    "grpcio": ("grpc",),
    "grpcio-health-checking": ("grpc_health",),
    "grpcio-reflection": ("grpc_reflection",),
    "grpcio-tools": ("grpc_tools",),
    "hydra-core": ("hydra",),
    "msgpack-python": ("msgpack",),
    "opencv-python": ("cv2",),
    "opencv-python-headless": ("cv2",),
    "pillow": ("PIL",),
    "protobuf": ("google",),
    "pyjwt": ("jwt",),
    "python-dateutil": ("dateutil",),
    "python-multipart": ("multipart", "python_multipart"),
    "pyyaml": ("yaml",),
    "pyzmq": ("zmq",),
    "scikit-learn": ("sklearn",),
    "triton-ascend": ("triton",),
}


def modules_asked_for(read: ReadFile, steps: tuple[InstallStep, ...]) -> frozenset[str]:
    """The first names of the modules of what a component's metadata asks for."""
    return modules_of(each.requirement.name for each in read_requirements(read, steps).requirements)


def modules_of(distributions: Iterable[str]) -> frozenset[str]:
    """The first names of the modules that distributions have, as a rule or as is known."""
    names: set[str] = set()
    for distribution in distributions:
        name = normal_name(distribution)
        names |= set(_MODULES.get(name, (name.replace("-", "_"),)))
        names.add(distribution)  # as IPython, which is written so in both places
    return frozenset(names)
