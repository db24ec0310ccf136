"""The keys of a component by which patchkit sees that its patches still do what they are for."""

from __future__ import annotations

import re

from patchkit.manifest.shapes import Choice, Complaint, Field, ListOf, Record, Text
from patchkit.manifest.texts import COMPONENT, INNER_FILE, INNER_FOLDER, LINE, PROSE

_NAME_PART = r"[A-Za-z_*?\[\]][\w*?\[\]]*"
_PACKAGE = Text("a Python package's name", r"[A-Za-z_]\w*", example="megatron")
_TARGET = Text(
    "a dotted name", rf"{_NAME_PART}(?:\.{_NAME_PART})*", example="megatron.core.utils.log"
)
_CODE = Text("text", lines=True)


def check_files(text: str) -> Complaint | None:
    """What is wrong with a glob of files."""
    if text.startswith(("/", "./", "../")) or "\\" in text or text.endswith("/"):
        hint = "globs start at the root of the upstream: megatron/**/*.py"
        return Complaint("is no glob from the root", hint)
    if not re.fullmatch(r"[^\[\]{}]*(?:(?:\[[^\]/]+\]|\{[^{}]*\})[^\[\]{}]*)*", text):
        return Complaint("is not a glob", "* ? ** [ab] {a,b}")
    return None


_FILES = ListOf(Text("a glob", check=check_files, example="megatron/**/*.py"), "glob")
_RULES = Text("a rule file", INNER_FILE.pattern, INNER_FILE.check)

_ABSENT = Record(
    "absent target",
    (
        Field("name", _TARGET, "The target, or a glob over targets.", required=True),
        Field("reason", PROSE, "Why it is not there, and needs not be.", required=True),
    ),
    "Targets that are not in the target's tree, on purpose.",
)

_OVERRIDES = Record(
    "overrides",
    (
        Field(
            "target",
            COMPONENT,
            "The component whose functions are replaced.",
            required=True,
            synonyms=("component", "of"),
        ),
        Field(
            "rule",
            _RULES,
            "A rule file (a recipe without `fix`) that finds the calls which replace something; "
            "`$TARGET` in its pattern stands for the argument that names what.",
            required=True,
            synonyms=("rules", "calls"),
        ),
        Field(
            "packages",
            ListOf(_PACKAGE, "package"),
            "The target's Python packages: names in others are not looked at.",
            required=True,
            synonyms=("package", "modules"),
        ),
        Field(
            "root",
            INNER_FOLDER,
            "Folder of the target's tree that its packages are in.",
            default="the root",
            synonyms=("directory", "folder"),
        ),
        Field(
            "absent",
            ListOf(_ABSENT, "target"),
            "Targets that need not be there, each with the reason.",
            synonyms=("additions", "missing", "allow"),
        ),
    ),
    "Functions of another component that this one replaces while it runs.",
)

_AFTER = Field(
    "after",
    Text("a patch's name", r"[^/]+\.patch"),
    "Look at the tree as it stands after this patch.",
    default="the last patch",
    synonyms=("patch",),
)
_NAME = Field("name", LINE, "What the step makes sure of, for messages.")


def _text_step(key: str, what: str) -> Record:
    return Record(
        key,
        (
            Field(key, _CODE, what, required=True),
            Field(
                "files",
                _FILES,
                "The files to look at, as globs.",
                required=True,
                synonyms=("file", "paths", "in"),
            ),
            _NAME,
            _AFTER,
        ),
        what,
    )


_VERIFY = Choice(
    "verify step",
    (
        _text_step("present", "A text that at least one of the files must have."),
        _text_step("absent", "A text that none of the files may have."),
        Record(
            "rules",
            (
                Field(
                    "rules",
                    _RULES,
                    "A rule file: what each rule finds must be as its `expect` says.",
                    required=True,
                ),
                _NAME,
                _AFTER,
            ),
            "Rules on syntax, by a file of their own.",
        ),
        Record(
            "run",
            (
                Field(
                    "run",
                    PROSE,
                    "Shell commands that must pass in a scratch checkout; only with "
                    "`patchkit check --run`.",
                    required=True,
                    synonyms=("command", "shell", "cmd"),
                ),
                _NAME,
                Field(
                    "directory",
                    INNER_FOLDER,
                    "Folder of the checkout to run in.",
                    default="the checkout's root",
                    synonyms=("cwd", "dir"),
                ),
                _AFTER,
            ),
            "A command that must pass.",
        ),
    ),
)

_RESIDUAL = Record(
    "residual",
    (
        Field(
            "rules",
            ListOf(_RULES, "rule file"),
            "Rule files (recipes without `fix`) whose sites are looked for, besides those of the "
            "recipes in the series.",
            synonyms=("rule", "lint"),
        ),
        Field(
            "baseline",
            INNER_FILE,
            "The file of reviewed sites.",
            default="residual.yml beside the series",
        ),
    ),
    "Sites that a rule names and no patch covers.",
)

_MODULE = Text(
    "a module's dotted name",
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
    example="megatron.core",
    written=True,
)
_MODULES = Text(
    "a module's dotted name, or a glob",
    rf"{_NAME_PART}(?:\.{_NAME_PART})*",
    example="sglang.srt.models.qwen3*",
)
_OUTSIDE = Text("a package's name, or a glob", _TARGET.pattern, example="torch_*")
_VARIABLE = Text("a Python name", r"[A-Za-z_]\w*", example="is_npu", written=True)

_DECLARED_CALL = Record(
    "declared call",
    (
        Field(
            "call",
            LINE,
            "What is called, as it is written: `model`, `self.bridge.load`.",
            required=True,
        ),
        Field("files", _FILES, "The files that have such calls, as globs.", required=True),
        Field(
            "to",
            _MODULE,
            "The function, class or method that they lead to, by its dotted name.",
            required=True,
            synonyms=("target", "is"),
        ),
    ),
    "Calls of something whose class the source does not show.",
)

_CONTRACTS = Record(
    "contracts",
    (
        Field(
            "packages",
            ListOf(_MODULE, "package"),
            "The Python packages that the component gives. Calls in them, into packages of other "
            "components with `contracts`, are held to the signatures there.",
            required=True,
            synonyms=("package", "modules"),
        ),
        Field(
            "root",
            INNER_FOLDER,
            "Folder of the tree that the packages are in.",
            default="the root",
            synonyms=("directory", "folder"),
        ),
        Field(
            "entries",
            ListOf(_MODULES, "module"),
            "Modules that the stack starts. If a component has some, only modules that these load "
            "are looked at, in all components, and imports of packages that nothing brings are "
            "told.",
            default="all modules",
            synonyms=("entry", "start", "roots"),
        ),
        Field(
            "holds",
            ListOf(_VARIABLE, "name"),
            "Names of variables, attributes and functions that are true (or give true) on the "
            "machine: code behind `if not` of them is not looked at.",
            synonyms=("true", "assume"),
        ),
        Field(
            "fails",
            ListOf(_VARIABLE, "name"),
            "Names that are false (or give false) on the machine.",
            synonyms=("false",),
        ),
        Field(
            "calls",
            ListOf(_DECLARED_CALL, "call"),
            "Where calls lead of which the source does not show it.",
            synonyms=("receivers",),
        ),
        Field(
            "outside",
            ListOf(_OUTSIDE, "package"),
            "Python packages, or globs, that come from elsewhere: with another package, or with "
            "the machine. What the metadata and `environment.versions` name need not be listed.",
            synonyms=("requires", "given", "provided"),
        ),
        Field(
            "absent",
            ListOf(_ABSENT, "name"),
            "Modules, packages and functions that need not be there or fit, each with the reason.",
            synonyms=("missing", "allow", "except"),
        ),
    ),
    "What a component offers to the others, and how its calls into them are looked at.",
)

GUARD_FIELDS = (
    Field(
        "contracts",
        _CONTRACTS,
        "Take part in contracts: `check` tells which calls into other components do not fit.",
        synonyms=("interfaces", "calls", "api"),
    ),
    Field(
        "overrides",
        ListOf(_OVERRIDES, "target"),
        "Other components whose functions this one replaces while it runs: `check` tells when they "
        "are gone, or are not what was reviewed.",
        synonyms=("monkey-patches", "replaces"),
    ),
    Field(
        "verify",
        ListOf(_VERIFY, "step"),
        "What must hold once the patches are applied. That files which parsed still do is always "
        "looked at.",
        synonyms=("tests", "assert", "guard"),
    ),
    Field(
        "residual",
        _RESIDUAL,
        "What to look for in the whole patched tree.",
        synonyms=("lint", "scan"),
    ),
)
