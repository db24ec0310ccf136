"""Keys from which the files for a machine are made: environment, site values, image, launches.

A text that "may have site values" has them as `${name}` (model/names.py).
"""

from __future__ import annotations

from patchkit.manifest.scalars import (
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
    check_specifier,
    check_value_name,
)
from patchkit.manifest.types import ByForm, Field, ListOf, MapOf, Record, Text

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
        Field("before", ListOf(STEP, "step"), "What is run first, such as starting Ray."),
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
