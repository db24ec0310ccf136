"""Keys from which the files for a machine are made (environment, site values, image, launches), and
the site values that a machine gives.

A text that "may have site values" has them as `${name}` (model/names.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem, UsageError
from patchkit.manifest.types import (
    ARGUMENT_PATTERN,
    COMPONENT,
    GROUP_PATTERN,
    IMAGE_PATTERN,
    INNER_FOLDER,
    LINE,
    PACKAGE,
    PACKAGE_PATTERN,
    PROSE,
    SPECIFIER_PATTERN,
    SYSTEM_PACKAGE_PATTERN,
    VALUE_PATTERN,
    VARIABLE_PATTERN,
    ByForm,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    check_specifier,
    check_value_name,
)
from patchkit.manifest.validate import Suggestions, read_table, shown
from patchkit.manifest.values import Manifest
from patchkit.manifest.yaml_nodes import Scalar
from patchkit.model.names import ALWAYS_THERE

_TEXT = Text("text on one line", r"[^\n\r]+")
_VARIABLE = Text("a variable's name", VARIABLE_PATTERN, example="HCCL_PORT")
_VARIABLES = MapOf(_VARIABLE, Text("text", r"[^\n\r]*", empty=True))

STEP = Record(
    "install step",
    (
        Field(
            "run",
            PROSE,
            "Shell commands.",
            required=True,
            synonyms=("command", "shell", "cmd"),
        ),
        Field("name", LINE, "What the step does, for the output.", default="the command"),
        Field(
            "directory",
            INNER_FOLDER,
            "Folder of the checkout to run in.",
            default="the checkout's root",
            synonyms=("cwd", "dir", "folder", "workdir"),
        ),
    ),
    "One step of the installation.",
)

ENVIRONMENT = Record(
    "environment",
    (
        Field(
            "versions",
            MapOf(
                Text("a name", PACKAGE_PATTERN, example="torch-npu"),
                Text("a version specifier", SPECIFIER_PATTERN, check_specifier, example="==2.8.0"),
            ),
            "What must be there, as version specifiers: python, cann, hdk or a package's name.",
        ),
        Field(
            "scripts",
            ListOf(_TEXT, "script"),
            "Shell scripts that set up more, such as CANN's set_env.sh: env.sh sources them, in "
            "order, before it sets the variables. May have site values.",
            synonyms=("source", "setup"),
        ),
        Field(
            "variables",
            _VARIABLES,
            "Environment variables to set. May have site values.",
        ),
        Field(
            "paths",
            MapOf(_VARIABLE, ListOf(_TEXT, "folder")),
            "Folders to put before what a variable like PYTHONPATH has already. May have site "
            "values.",
            synonyms=("path", "prepend"),
        ),
        Field(
            "unsupported",
            MapOf(PACKAGE, PROSE),
            "Packages known not to work here, each with the reason.",
        ),
    ),
    "What a stack runs in.",
)

VALUE = Record(
    "site value",
    (
        Field(
            "description",
            LINE,
            "What it is, for whoever has to give it.",
            required=True,
        ),
        Field(
            "default",
            Text("text", r"[^\n\r]*", empty=True, written=True),
            "What it is where nothing else is said. Without one, it must be given.",
        ),
    ),
    "What a site decides: given by `patchkit render --values FILE` or `--set NAME=VALUE`, used as "
    "`${NAME}`. `${workspace}`, the folder of the checkouts, is always there.",
)

VALUES = MapOf(Text("a value's name", VALUE_PATTERN, check_value_name, example="model_path"), VALUE)

IMAGE = Record(
    "image",
    (
        Field(
            "base",
            Text("an image", IMAGE_PATTERN, example="ascendai/cann:8.5.0-a3-ubuntu22.04-py3.11"),
            "The image to build on, with its tag. May have site values.",
            required=True,
            synonyms=("from", "name"),
        ),
        Field(
            "packages",
            ListOf(Text("a system package", SYSTEM_PACKAGE_PATTERN, example="git"), "package"),
            "System packages to install, as apt names them.",
            synonyms=("apt",),
        ),
    ),
    "What the Dockerfile starts from.",
)

UPSTREAM_TESTS = Record(
    "upstream tests",
    (
        Field(
            "run",
            PROSE,
            "A shell command that runs the tests and writes JUnit XML to $PATCHKIT_JUNIT: "
            '`python -m pytest --junitxml="$PATCHKIT_JUNIT" tests/unit`.',
            required=True,
            synonyms=("command", "cmd", "shell"),
        ),
        Field(
            "directory",
            INNER_FOLDER,
            "Folder of the checkout to run in.",
            default="the checkout's root",
            synonyms=("cwd", "dir"),
        ),
        Field(
            "variables",
            MapOf(
                Text("a variable", r"[A-Za-z_][A-Za-z0-9_]*", example="PYTHONPATH"), Text("text")
            ),
            "Environment variables to set for it. Paths are as the command sees them.",
            synonyms=("env", "environment"),
        ),
    ),
    "How to run tests of upstream's own.",
)

LAUNCH = Record(
    "launch",
    (
        Field("description", PROSE, "What is run, for the head of the script."),
        Field(
            "component",
            COMPONENT,
            "The component in whose checkout it runs.",
            default="none: it runs in the workspace",
        ),
        Field(
            "directory",
            INNER_FOLDER,
            "Folder in there to run in.",
            default="the checkout's root",
            synonyms=("cwd", "dir", "folder", "workdir"),
        ),
        Field(
            "variables",
            _VARIABLES,
            "Environment variables of this launch alone. May have site values.",
            synonyms=("env", "environment"),
        ),
        Field(
            "before",
            ListOf(STEP, "step"),
            "What is run first, such as starting Ray: where the command runs, unless a step names "
            "its `directory`.",
        ),
        Field(
            "command",
            _TEXT,
            "The command, as shell words; the arguments follow it.",
            required=True,
            synonyms=("run", "program", "cmd"),
        ),
        Field(
            "arguments",
            MapOf(
                Text("a group's name", GROUP_PATTERN, example="optimizer"),
                MapOf(
                    Text("an argument's name", ARGUMENT_PATTERN, example="--lr"),
                    ByForm(
                        "text, or a list of texts",
                        scalar=Text("text", r"[^\n\r]*", empty=True, written=True),
                        items=ListOf(Text("text", r"[^\n\r]*", empty=True, written=True), "text"),
                    ),
                ),
            ),
            "The arguments, in groups. A name that begins with - is followed by its value, or by "
            "each of a list, or stands alone if it is empty; any other becomes NAME=VALUE. May "
            "have site values.",
            synonyms=("args", "parameters", "params"),
        ),
    ),
    "One way to start the stack: a script of its own.",
)


# Site values: what a manifest leaves open, from a values file and from the command line.
#
# A values file is YAML, `name: value` a line. Nothing is guessed: a name that the manifest does
# not declare, a value that is a placeholder and a value that is missing are reported, all at once.


_FILE = MapOf(Text("a value's name"), Text("text", r"[^\n\r]*", empty=True, written=True))

#: Where checkouts are, unless somebody says otherwise; relative to the project's folder.
DEFAULT_WORKSPACE = "workspace"

# What people leave in examples: <path>, /path/to/model, your-model, TODO, xxx.
_PLACEHOLDER = re.compile(
    r"<[^>]*>|(?:^|/)path/to(?:/|$)|\b(?:your|my)[-_ ][a-z]|\b(?:todo|fixme|changeme|xxx+)\b",
    re.IGNORECASE,
)


class GivenValue(Struct, frozen=True):
    """A value that somebody gave, and where: "site.yaml:3" or "--set model_path"."""

    name: str  # the site value's
    text: str  # as it was typed
    where: str


class SiteValues(Struct, frozen=True):
    """The values that are there; `missing` maps those declared and not given to what they are."""

    values: Mapping[str, str]
    missing: Mapping[str, str]

    def require(self, names: Iterable[str], manifest: Manifest) -> None:
        """Raise UsageError that names every value of `names` that is missing."""
        absent = [name for name in dict.fromkeys(names) if name in self.missing]
        if absent:
            places = {each.name: str(each.where) for each in manifest.values}
            raise UsageError(
                *(
                    Problem(f"{name} has no value: {self.missing[name]}", places[name])
                    for name in absent[:-1]
                ),
                Problem(
                    f"{absent[-1]} has no value: {self.missing[absent[-1]]}",
                    places[absent[-1]],
                    "give "
                    + " ".join(f"--set {name}=..." for name in absent)
                    + ", or name a file that has them with --values",
                ),
            )


def read_values(path: Path) -> tuple[GivenValue, ...]:
    """The values of a values file; raises BadInputError with every problem."""
    try:
        data = read_plain(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if not re.search(rb"^[^#\s]", data, re.MULTILINE):
        return ()  # nothing but comments
    node = read_table(data, path, _FILE, "the values file")
    return tuple(
        GivenValue(key.text, value.text, str(key.where))
        for key, value in node.entries
        if isinstance(value, Scalar)
    )


def typed_values(settings: Sequence[str]) -> tuple[GivenValue, ...]:
    """The values of NAME=VALUE words; raises UsageError."""
    given: list[GivenValue] = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            hint = f"write --set {name}=VALUE"
            raise UsageError(Problem(f"--set {shown(setting)} has no =", hint=hint))
        given.append(GivenValue(name, text, f"--set {shown(name)}"))
    return tuple(given)


def resolve_site(manifest: Manifest, given: Sequence[GivenValue]) -> SiteValues:
    """What the manifest's values are at this site; of values given twice, the later holds.

    Raises BadInputError for values that the manifest does not declare, or that are none.
    """
    problems = [problem for each in given for problem in _wrong(each, manifest)]
    if problems:
        raise BadInputError(*problems)
    values = {"workspace": DEFAULT_WORKSPACE}
    values |= {each.name: each.default for each in manifest.values if each.default is not None}
    values |= {each.name: each.text for each in given}
    missing = {each.name: each.description for each in manifest.values if each.name not in values}
    return SiteValues(values, missing)


def _wrong(given: GivenValue, manifest: Manifest) -> Iterator[Problem]:
    known = [*(each.name for each in manifest.values), *ALWAYS_THERE]
    text = given.text
    if given.name not in known:
        hint = Suggestions().hint([given.name], known, f"it has {', '.join(known)}")
        what = f"{shown(given.name)} is not a site value of {manifest.path.name}"
        yield Problem(what, given.where, hint)
    elif not text.isprintable():
        yield Problem(
            f"{given.name}: {shown(text)} has a control character", given.where, "delete it"
        )
    elif text != text.strip():
        yield Problem(f"{given.name} begins or ends with a blank", given.where, "delete the blank")
    elif text.startswith("~"):
        yield Problem(
            f"{given.name}: {shown(text)} begins with ~, which nothing expands in a script",
            given.where,
            "write the folder in full",
        )
    elif _PLACEHOLDER.search(text):
        hint = "write its value for this site"
        yield Problem(f"{given.name}: {shown(text)} is a placeholder", given.where, hint)
