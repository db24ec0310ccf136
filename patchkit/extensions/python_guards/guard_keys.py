"""Keys of manifests by which a component takes part in contracts, says what it replaces, and what
rewrites it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from patchkit.errors import Problem
from patchkit.manifest.globs import Glob
from patchkit.manifest.types import (
    ComponentName,
    InnerFile,
    InnerFolder,
    Key,
    Line,
    Number,
    Reason,
    Text,
    also,
)
from patchkit.manifest.values import Location, RuleFile

if TYPE_CHECKING:
    from patchkit.manifest.yaml_nodes import Table

_NAME_PART = r"[A-Za-z_*?\[\]][\w*?\[\]]*"
_NAMES = rf"{_NAME_PART}(?:\.{_NAME_PART})*"
_PythonName = Annotated[str, Text("a Python name", r"[A-Za-z_]\w*", example="is_npu", written=True)]
_Module = Annotated[
    str,
    Text(
        "a module's dotted name",
        r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
        example="megatron.core",
        written=True,
    ),
]
_Root = Annotated[
    InnerFolder,
    Key(default="the root"),
    "Folder of the tree that the packages are in.",
    also("directory", "folder"),
]


class AbsentTarget(Struct, frozen=True):
    """Targets that are not in the target's tree, on purpose."""

    name: Annotated[
        str,
        Text("a dotted name", _NAMES, example="megatron.core.utils.log"),
        "The target, or a glob over targets.",
    ]
    reason: Annotated[Reason, "Why it is not there, and needs not be."]
    where: Location  # the entry in the manifest


class Overrides(Struct, frozen=True):
    """Functions of another component that this one replaces while it runs."""

    target: Annotated[
        ComponentName,
        "The component whose functions are replaced.",
        also("component", "of"),
    ]
    packages: Annotated[
        tuple[
            Annotated[str, Text("a Python package's name", r"[A-Za-z_]\w*", example="megatron")],
            ...,
        ],
        "The target's Python packages: names in others are not looked at.",
        also("package", "modules"),
    ]
    where: Location  # the entry in the manifest
    rule: Annotated[
        RuleFile,
        Key(default="the rules that patchkit brings"),
        "A rule file (a recipe without `fix`) that finds the calls which replace something; "
        "`$TARGET` in its pattern stands for the argument that names what, or for a call whose "
        "first two arguments do.",
        also("rules", "calls"),
    ] = ""
    root: _Root = ""
    absent: Annotated[
        tuple[AbsentTarget, ...],
        "Targets that need not be there, each with the reason.",
        also("additions", "missing", "allow"),
    ] = ()


class MeantRewrite(Struct, frozen=True):
    """What is meant by a rewrite, where its text does not say it."""

    anchor: Annotated[
        Line,
        "Text of the command, of what it replaces, or of the path: which rewrite this is about.",
    ]
    where: Location  # the entry in the manifest
    path: Annotated[InnerFile, Key(default="as it is written"), "The file that it edits."] = ""
    hits: Annotated[Annotated[int, Number(1, 99_999)] | None, "How many lines it changes."] = None
    text: Annotated[Line, Key(default="anything"), "What the first of them says, or a part."] = ""
    reason: Annotated[Reason, Key(default="it is watched"), "Why it is not to be watched."] = ""


class Rewrites(Struct, frozen=True):
    """Files that rewrite the text of this component: where it is built, or while it runs."""

    where: Location  # the entry in the manifest
    carrier: Annotated[
        ComponentName, Key("from", default="the project"), "The component that has the files."
    ] = ""
    files: Annotated[
        tuple[Glob, ...],
        Key(default="Dockerfiles, *.sh and *.py, but for tests"),
        "Dockerfiles, shell scripts and Python files to look at, as globs.",
        also("file", "paths"),
    ] = ("**/*Dockerfile*", "**/*.sh", "**/*.py")
    meant: Annotated[
        tuple[MeantRewrite, ...],
        "What is meant, where a rewrite does not say it.",
        also("expect"),
    ] = ()


class DeclaredCall(Struct, frozen=True):
    """Calls of something whose class the source does not show."""

    call: Annotated[Line, "What is called, as it is written: `model`, `self.bridge.load`."]
    files: Annotated[tuple[Glob, ...], "The files that have such calls, as globs."]
    to: Annotated[
        _Module,
        "The function, class or method that they lead to, by its dotted name.",
        also("target", "is"),
    ]
    where: Location  # the entry in the manifest


class Contracts(Struct, frozen=True):
    """What a component offers to the others, and how its calls into them are looked at."""

    packages: Annotated[
        tuple[_Module, ...],
        "The Python packages that the component gives. Calls in them, into packages of other "
        "components with `contracts`, are held to the signatures there.",
        also("package", "modules"),
    ]
    where: Location  # the entry in the manifest
    root: _Root = ""
    entries: Annotated[
        tuple[
            Annotated[
                str,
                Text(
                    "a module's dotted name, or a glob", _NAMES, example="sglang.srt.models.qwen3*"
                ),
            ],
            ...,
        ],
        Key(default="all modules"),
        "Modules that the stack starts. If a component has some, only modules that these load are "
        "looked at, in all components, and imports of packages that nothing brings are reported.",
        also("entry", "start", "roots"),
    ] = ()
    holds: Annotated[
        tuple[_PythonName, ...],
        "Names of variables, attributes and functions that are true (or give true) on the "
        "machine: code behind `if not` of them is not looked at.",
        also("true", "assume"),
    ] = ()
    fails: Annotated[
        tuple[_PythonName, ...],
        "Names that are false (or give false) on the machine.",
        also("false"),
    ] = ()
    calls: Annotated[
        tuple[DeclaredCall, ...],
        "Where calls lead of which the source does not show it.",
        also("receivers"),
    ] = ()
    outside: Annotated[
        tuple[Annotated[str, Text("a package's name, or a glob", _NAMES, example="torch_*")], ...],
        "Python packages, or globs, that come from elsewhere: with another package, or with the "
        "machine. What the metadata and `environment.versions` name need not be listed.",
        also("requires", "given", "provided"),
    ] = ()
    absent: Annotated[
        tuple[AbsentTarget, ...],
        "Modules, packages and functions that need not be there or fit, each with the reason.",
        also("missing", "allow", "except"),
    ] = ()


class GuardKeys(Struct, frozen=True):
    """Keys of a component."""

    contracts: Annotated[
        Contracts | None,
        "Take part in contracts: `check` reports calls into other components that do not fit.",
        also("interfaces", "calls", "api"),
    ] = None
    overrides: Annotated[
        tuple[Overrides, ...],
        "Other components whose functions this one replaces while it runs: `check` tells when they "
        "are gone, or are not what was reviewed.",
        also("monkey-patches", "replaces"),
    ] = ()
    rewrites: Annotated[
        tuple[Rewrites, ...],
        "Files that change text of this component by `sed`, `git apply`, `patch` or Python's "
        "`replace`: `check` tells when these find it no more.",
        also("sed", "rewritten"),
    ] = ()

    @staticmethod
    def problems(manifest: "Table") -> Iterator[Problem]:
        """What is wrong between the values of several components."""
        # a manifest that did not change is not read
        from patchkit.manifest.rules import repeated, strangers  # noqa: PLC0415
        from patchkit.manifest.validate import Suggestions  # noqa: PLC0415
        from patchkit.manifest.yaml_nodes import Table  # noqa: PLC0415

        pairs = manifest.pairs("components")
        components = [(key.text, table) for key, table in pairs if isinstance(table, Table)]
        names, suggestions = dict(components), Suggestions()
        packages = [
            (package.text, (package, name))
            for name, table in components
            for package in table.scalars("contracts.packages")
        ]
        for (package, _), (_, other) in repeated(packages):
            hint = "name what lies in each: megatron.core, megatron.bridge"
            yield Problem(f"{package.text} is given by {other}, too", str(package.where), hint)
        for name, table in components:
            holding = {each.text for each in table.scalars("contracts.holds")}
            for each in table.scalars("contracts.fails"):
                if each.text in holding:
                    hint = "leave out what is not certainly one of them"
                    what = f"{each.text} is under `holds`, too"
                    yield Problem(what, str(each.where), hint)
            for carrier in table.scalars("rewrites.*.from"):
                yield from strangers(carrier, names, suggestions)
            targets = [(t.text, t) for t in table.scalars("overrides.*.target")]
            for word, target in targets:
                if word == name:
                    what, where = f"{name} overrides itself", str(target.where)
                    yield Problem(what, where, "name another component")
                yield from strangers(target, names, suggestions)
            for target, _ in repeated(targets):
                if target.text != name and target.text in names:
                    what = f"{name} overrides {target.text} twice"
                    yield Problem(what, str(target.where), "put the rules into one file")
